// Forms of one draft: what it is called and why, and the moment at which it comes into force, in the site's zone.
// Refuses moments that have passed or that the zone's clock leaves out.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { api, ApiFailure, call } from "../../lib/api.ts";
import { nowMs, siteZone } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { formatDateTime } from "../../lib/format.ts";
import { t as translate, useT } from "../../lib/i18n.ts";
import { parseLocal } from "../../lib/time-range.ts";
import { toast } from "../../lib/toasts.ts";
import type { PriceDraft } from "../../lib/wire.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Field, SwitchField } from "../../ui/form.tsx";
import { countsText } from "../../ui/price-plan/change-words.ts";
import { draftName, openDraftOf } from "./open-draft.ts";
import { DraftFields } from "./save-draft.tsx";
import type { DraftValues } from "./save-draft.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";

interface DraftDrawerProps extends SectionProps {
  draft: PriceDraft;
  refresh: () => Promise<void>;
  onClose: () => void;
}

/** A draft that is open at the desk follows what was saved here. */
function follow({ desk }: SectionProps, kept: PriceDraft): void {
  if (desk.draft.peek()?.id === kept.id) desk.draft.value = openDraftOf(kept);
}

export function RenameDraft(props: DraftDrawerProps) {
  const t = useT();
  const { draft, refresh, onClose } = props;
  const { id, version } = draft;
  const form = useForm<DraftValues>({
    initial: { title: draft.title, note: draft.note, announce: draft.announce },
  });
  return (
    <DrawerForm
      isOpen
      form={form}
      title={t("plan.draft.renameTitle", { name: draftName(draft) })}
      onClose={onClose}
      onSave={async (values) => {
        const kept = await call(api.price.drafts.put({ id, version, ...values, title: values.title.trim() }));
        follow(props, kept);
        toast({ key: "draft", text: t("plan.draft.saved", { name: draftName(kept) }) });
        await refresh();
      }}
    >
      <DraftFields form={form} />
    </DrawerForm>
  );
}

interface ScheduleValues extends Record<string, unknown> {
  /** `datetime-local` text in the site's zone. */
  moment: string;
  announce: boolean;
}

const fieldText = (seconds: number, zone: string): string =>
  formatDateTime(seconds * 1000, zone)
    .slice(0, 16)
    .replace(" ", "T");

/** Unix seconds; undefined: no such time of day in the zone, which sets its clock forward then. */
function momentOf(text: string, zone: string): number | undefined {
  const guess = parseLocal(text, zone);
  if (guess === undefined) return undefined;
  // Near a change of the clock the offset at the guess is not that of the moment.
  return [guess, guess - 3600, guess + 3600, guess - 1800, guess + 1800].find(
    (each) => fieldText(each, zone) === text,
  );
}

function problemOf(text: string, zone: string): string | undefined {
  if (text === "") return translate("plan.draft.momentMissing");
  const moment = momentOf(text, zone);
  if (moment === undefined) return translate("plan.draft.momentUnknown", { zone });
  return moment * 1000 <= Math.max(Date.now(), nowMs.peek()) ? translate("plan.draft.momentPast") : undefined;
}

export function ScheduleDraft(props: DraftDrawerProps) {
  useSignals();
  const t = useT();
  const { draft, desk, reload, refresh, onClose } = props;
  const { id, version } = draft;
  const zone = siteZone.value;
  const [isStale, setStale] = useState(false);
  const form = useForm<ScheduleValues>({
    initial: {
      moment: draft.effective_at > 0 ? fieldText(draft.effective_at, zone) : "",
      announce: draft.announce,
    },
    validate: ({ moment }) => {
      const problem = problemOf(moment, zone);
      return problem === undefined ? {} : { moment: problem };
    },
  });
  const save = async ({ moment, announce }: ScheduleValues) => {
    try {
      const kept = await call(
        api.price.drafts.put({
          id,
          version,
          announce,
          effective_at: momentOf(moment, zone) ?? 0,
          parent: desk.prices.peek()?.revision ?? 0,
        }),
      );
      follow(props, kept);
      toast({ key: "draft", text: t("plan.draft.isScheduled", { name: draftName(kept) }) });
    } catch (error) {
      if (error instanceof ApiFailure && error.code === "price_plan_stale") {
        setStale(true);
        await reload();
      }
      throw error;
    }
    await refresh();
  };
  return (
    <DrawerForm
      isOpen
      isNew
      form={form}
      title={t("plan.draft.scheduleTitle", { name: draftName(draft) })}
      saveLabel={t("plan.draft.schedule")}
      onClose={onClose}
      onSave={save}
    >
      {isStale ? (
        <div className="mb-4">
          <Notice tone="warning">{t("plan.draft.scheduleStale")}</Notice>
        </div>
      ) : null}
      <p className="mb-4">{t("plan.draft.scheduleText", { what: countsText(t, draft.changes) })}</p>
      <Field
        form={form}
        name="moment"
        label={t("plan.draft.moment")}
        hint={t("plan.draft.momentHint", { zone })}
        isRequired
      >
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            className="input"
            value={form.values.moment}
            onChange={(event) => form.set("moment", event.target.value)}
          />
        )}
      </Field>
      <SwitchField
        form={form}
        name="announce"
        label={t("plan.draft.announce")}
        hint={t("plan.draft.announceHint")}
      />
    </DrawerForm>
  );
}
