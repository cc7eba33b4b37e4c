// A user's own budget and limits in the drawer, beside those that are in force by their group or for everybody.
import { useEffect, useState } from "react";
import { api, call, failureMessage, isAbort } from "../../lib/api.ts";
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import type { OwnLimits, UserRow } from "../../lib/wire.ts";
import { Section } from "../../ui/form.tsx";
import { LimitFieldsPart } from "../../ui/limit-fields.tsx";
import { LimitsInForce } from "../../ui/limits-in-force.tsx";
import type { UserValues } from "./values.ts";

type Loaded = { limits: OwnLimits | null } | { failure: string } | undefined;

function useLimitsOf(id: number): Loaded {
  const [loaded, setLoaded] = useState<Loaded>();
  useEffect(() => {
    const controller = new AbortController();
    call(api.user({ id: String(id) }).limits.get({ fetch: { signal: controller.signal } })).then(
      (limits) => setLoaded({ limits }),
      (error: unknown) => {
        if (!isAbort(error) && !controller.signal.aborted) setLoaded({ failure: failureMessage(error) });
      },
    );
    return () => controller.abort();
  }, [id]);
  return loaded;
}

export function UserLimitsPart({ form, row }: { form: Form<UserValues>; row: UserRow }) {
  const t = useT();
  const loaded = useLimitsOf(row.id);
  return (
    <Section title={t("user.limits")} isFolded={row.limits === null}>
      <LimitFieldsPart form={form} note={t("user.limitsNote")} />
      <h3 className="text-dense font-semibold">{t("user.limitsInForce")}</h3>
      {loaded === undefined ? (
        <p className="text-muted">{t("common.loading")}</p>
      ) : "failure" in loaded ? (
        <p className="text-error">{loaded.failure}</p>
      ) : loaded.limits === null ? (
        <p className="text-muted">{t("user.limitsNone")}</p>
      ) : (
        <LimitsInForce limits={loaded.limits} />
      )}
    </Section>
  );
}
