// Which ways to pay are open by what is saved, what each still needs, and the addresses that their providers call.
// Refuses to know any of them: the server names all that there are, and says what they lack.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { status } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import { StatusDot } from "../../../ui/badges.tsx";
import { CopyButton } from "../../../ui/copy-button.tsx";
import type { PayOffers } from "../../../lib/wire.ts";
import type { GroupExtraProps } from "../editor-props.ts";
import { titleOf } from "../names.ts";

type RailState = NonNullable<PayOffers["rails"]>[number];

export default function Rails({ rows }: GroupExtraProps) {
  const t = useT();
  const [rails, setRails] = useState<readonly RailState[]>();
  const [failure, setFailure] = useState("");
  // The server says what each lacks: it is asked again whenever something of the group has been saved.
  const saved = [...rows.values()]
    .filter(({ group }) => group === "payment" || group === "server")
    .map(({ key, value, isSet }) => `${key}=${value}${isSet === true}`)
    .join();
  useEffect(() => {
    let isGone = false;
    call(api.user.topup.info.get()).then(
      (info) => isGone || setRails(info.rails ?? []),
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [saved]);
  const nameOf = (key: string): string => titleOf(rows.get(key) ?? { key });
  const server = status.peek().server_address ?? "";
  const base = (rows.get("CustomCallbackAddress")?.value || server).replace(/\/+$/, "");
  return (
    <div className="setting-line">
      <p className="font-medium">{t("editor.rails.title")}</p>
      <p className="setting-help">{t("editor.rails.help")}</p>
      {failure === "" ? null : (
        <p className="mt-1 text-xs text-error" role="alert">
          {failure}
        </p>
      )}
      <ul className="mt-2 flex flex-col gap-3" aria-busy={rails === undefined && failure === ""}>
        {(rails ?? []).map(({ name, title, callback, open: isOpen, missing }) => {
          const reason =
            missing.length > 0
              ? t("editor.rails.missing", { names: missing.map(nameOf).join(t("editor.rails.comma")) })
              : isOpen
                ? undefined
                : t("editor.rails.notSelling");
          return (
            <li key={name} className="rounded-field border border-base-300 px-3 py-2">
              <p className="flex flex-wrap items-baseline gap-x-3">
                <strong>{title}</strong>
                <StatusDot tone={isOpen ? "ok" : "off"} reason={isOpen ? undefined : reason}>
                  {t(isOpen ? "editor.rails.open" : "editor.rails.closed")}
                </StatusDot>
              </p>
              {base === "" ? null : (
                <p className="mt-1 flex min-w-0 items-center gap-1 text-dense">
                  <span className="text-muted whitespace-nowrap">{t("editor.rails.callback")}</span>
                  <code className="mono min-w-0 break-all">{base + callback}</code>
                  <CopyButton text={base + callback} label={t("editor.rails.copy", { name: title })} />
                </p>
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
