// The end of a plan: why it is done, and the button that does it, with both numbers on it; for administrators a draft instead.
// Refuses to apply while a warning forbids it, and what was planned on other prices than those in force.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useState } from "react";
import { SOLD_PLANS } from "../../../src/shared/price-desk.ts";
import { api, ApiFailure, call, failureMessage } from "../../lib/api.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { toast } from "../../lib/toasts.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { PriceEffect, PricePlan } from "../../lib/wire.ts";
import type { Desk } from "../../ui/price-sheet/desk.ts";
import SaveDraft from "./save-draft.tsx";
import { undoRevision } from "../../ui/price-plan/undo-revision.ts";
import { sentOf } from "./use-plan.ts";
import type { PlanDays } from "./use-plan.ts";

export interface ApplyPlanProps {
  desk: Desk;
  plan: PricePlan;
  effect: PriceEffect | undefined;
  days: PlanDays;
  canApply: boolean;
  reload: () => Promise<void>;
  onStale: () => Promise<void>;
}

const MOST_NOTE = 1000;

export function ApplyPlan({ desk, plan, effect, days, canApply, reload, onStale }: ApplyPlanProps) {
  useSignals();
  const t = useT();
  const id = useId();
  const draft = desk.draft.value;
  const [note, setNote] = useState(draft?.note ?? "");
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const isBlocked = plan.warnings.some(({ blocking }) => blocking);
  const isEmpty = plan.changes.length === 0;
  const apply = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const { revision, changes: count } = await call(
        api.price.apply.post({
          plan_hash: plan.plan_hash,
          parent: plan.parent,
          changes: sentOf(desk.changes.peek()),
          note: note.trim(),
          ...(draft ? { draft_id: draft.id, draft_version: draft.version } : {}),
        }),
      );
      toast({
        key: "prices",
        text: t("plan.applied", { count }),
        undo: async () => {
          await undoRevision(revision);
          await reload();
        },
      });
      // A new plan has its own number by now; what made it is done.
      if (desk.changes.peek().some(({ key }) => key === SOLD_PLANS)) desk.discard("");
      await reload();
      setQuery({ section: undefined, days: undefined, by: undefined });
    } catch (error) {
      if (error instanceof ApiFailure && error.code === "price_plan_stale") await onStale();
      else setFailure(failureMessage(error));
      setBusy(false);
    }
  };
  const numbers =
    effect && effect.calls > 0
      ? { old: formatQuota(effect.old), new: formatQuota(effect.new), count: days }
      : undefined;
  return (
    <section className="rounded-box border border-base-300 p-4" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{t(canApply ? "plan.applyTitle" : "plan.keepTitle")}</h2>
      <p className="mt-1 text-dense text-muted">{t(canApply ? "plan.applyText" : "plan.keepText")}</p>
      {canApply ? (
        <label className="mt-3 block max-w-150">
          <span className="text-dense font-semibold">{t("plan.note")}</span>
          <textarea
            className="textarea mt-0.5"
            rows={2}
            maxLength={MOST_NOTE}
            placeholder={t("plan.noteHint")}
            value={note}
            onChange={(event) => setNote(event.target.value)}
          />
        </label>
      ) : null}
      {isBlocked ? (
        <p id={`${id}-blocked`} className="mt-2 text-error">
          {t("plan.blocked")}
        </p>
      ) : null}
      {isEmpty ? <p className="mt-2 text-muted">{t("plan.already")}</p> : null}
      {failure === undefined ? null : (
        <p className="mt-2 text-error" role="alert">
          {failure}
        </p>
      )}
      <div className="mt-3 flex flex-wrap gap-2">
        {canApply ? (
          <button
            type="button"
            className="btn btn-primary h-auto min-h-9 py-1"
            disabled={isBusy || isBlocked || isEmpty}
            aria-busy={isBusy}
            aria-describedby={isBlocked ? `${id}-blocked` : undefined}
            onClick={() => void apply()}
          >
            {isBusy ? <span className="loading loading-xs" aria-hidden /> : null}
            {numbers ? t("plan.applyBoth", numbers) : t("plan.apply", { count: plan.changes.length })}
          </button>
        ) : null}
        <button
          type="button"
          className={canApply ? "btn btn-default" : "btn btn-primary"}
          disabled={isBusy}
          onClick={() => setSaving(true)}
        >
          {t(draft ? "desk.bar.saveDraft" : "desk.bar.saveAsDraft")}
        </button>
      </div>
      {isSaving ? <SaveDraft desk={desk} onClose={() => setSaving(false)} /> : null}
    </section>
  );
}
