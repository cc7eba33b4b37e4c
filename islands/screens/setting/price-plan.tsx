// What prices typed in the settings would do, before anything of it is stored: the same plan as at the price desk.
// Refuses to apply while a warning forbids it, and a plan that others were quicker than: it is made anew.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useState } from "react";
import { api, ApiFailure, call, failureMessage } from "../../lib/api.ts";
import { t, useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { Drawer } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { PlanDifference } from "../../ui/price-plan/plan-difference.tsx";
import { PlanWarnings } from "../../ui/price-plan/plan-warnings.tsx";
import { undoRevision } from "../../ui/price-plan/undo-revision.ts";
import type { PlannedPrices, Settings } from "./state.ts";

const MOST_NOTE = 1000;

export interface PricePlanProps {
  settings: Settings;
  planned: PlannedPrices;
}

async function applied(settings: Settings, { plan, changes }: PlannedPrices, note: string): Promise<void> {
  const { plan_hash, parent } = plan;
  type Body = Parameters<typeof api.price.apply.post>[0];
  const body = { plan_hash, parent, changes, note: note.trim() } as Body;
  const { revision, changes: count } = await call(api.price.apply.post(body));
  await settings.priced();
  toast({
    key: "prices",
    text: t("plan.applied", { count }),
    undo: async () => {
      await undoRevision(revision).catch(toastFailure);
      await settings.refresh();
    },
  });
}

export default function PricePlanDrawer({ settings, planned }: PricePlanProps) {
  useSignals();
  const words = useT();
  const id = useId();
  const [note, setNote] = useState("");
  const [failure, setFailure] = useState<string>();
  const [isStale, setStale] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const { plan } = planned;
  const isBlocked = plan.warnings.some(({ blocking }) => blocking);
  const apply = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await applied(settings, planned, note);
    } catch (error) {
      if (error instanceof ApiFailure && error.code === "price_plan_stale") {
        setStale(true);
        await settings.planAgain();
      } else setFailure(failureMessage(error));
      setBusy(false);
    }
  };
  const close = () => (settings.pricePlan.value = undefined);
  return (
    <Drawer
      isOpen
      width="wide"
      title={words("setting.pricePlan")}
      onClose={close}
      footer={
        <>
          <button type="button" className="btn btn-default" onClick={close}>
            {words("common.cancel")}
          </button>
          <button
            type="button"
            className="btn btn-primary"
            disabled={isBusy || isBlocked || plan.changes.length === 0}
            aria-busy={isBusy}
            onClick={() => void apply()}
          >
            {isBusy ? <span className="loading loading-xs" aria-hidden /> : null}
            {words("plan.apply", { count: plan.changes.length })}
          </button>
        </>
      }
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy && !isBlocked) void apply();
        }}
      >
        {isStale ? <Notice tone="warning">{words("setting.pricePlanStale")}</Notice> : null}
        <PlanWarnings plan={plan} />
        <PlanDifference plan={plan} />
        <label htmlFor={`${id}-note`}>
          <span className="text-dense font-semibold">{words("plan.note")}</span>
          <textarea
            id={`${id}-note`}
            className="textarea mt-0.5 w-full"
            rows={2}
            maxLength={MOST_NOTE}
            placeholder={words("plan.noteHint")}
            value={note}
            onChange={(event) => setNote(event.target.value)}
          />
        </label>
        {failure === undefined ? null : (
          <p className="text-error" role="alert">
            {failure}
          </p>
        )}
      </form>
    </Drawer>
  );
}
