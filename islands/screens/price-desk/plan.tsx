// What the changes at hand would do, as a page: the difference in money, what the last days would have cost, warnings first;
// root applies it, administrators keep it as a draft. Refuses to apply what nobody has seen.
import { useSignals } from "@preact/signals-react/runtime";
import { formatWhen } from "../../lib/format.ts";
import { nowMs } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { setQuery, useQuery } from "../../lib/url-state.ts";
import type { PriceRevision } from "../../lib/wire.ts";
import { Empty, FailureNotice, Notice } from "../../ui/feedback.tsx";
import { useKeptFocus } from "./keep-focus.ts";
import { ApplyPlan } from "./plan-apply.tsx";
import { authorText, firstNamesText } from "./history-words.tsx";
import { PlanDifference } from "../../ui/price-plan/plan-difference.tsx";
import { PlanEffect } from "./plan-effect.tsx";
import { PlanWarnings } from "../../ui/price-plan/plan-warnings.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";
import { PLAN_DAYS, usePlan } from "./use-plan.ts";
import type { PlanDays } from "./use-plan.ts";

const toSheet = () => setQuery({ section: undefined, days: undefined, by: undefined });

export default function PlanSection(props: SectionProps) {
  useSignals();
  const t = useT();
  if (props.desk.changes.value.length > 0) return <Planned {...props} />;
  return (
    <Empty
      title={t("plan.nothing")}
      text={t("plan.nothingText")}
      action={
        <button type="button" className="btn btn-primary" onClick={toSheet}>
          {t("plan.toSheet")}
        </button>
      }
    />
  );
}

function Planned({ desk, canApply, reload }: SectionProps) {
  const t = useT();
  const query = useQuery();
  const days: PlanDays = PLAN_DAYS.find((each) => String(each) === query.days) ?? 7;
  const plan = usePlan(desk, days);
  const { state } = plan;
  const around = useKeptFocus(`${state.is} ${plan.effect.is}`);
  return (
    <div ref={around} tabIndex={-1} className="mt-4 flex flex-col gap-5 outline-0">
      <p>
        <button type="button" className="link text-dense" onClick={toSheet}>
          {t("plan.back")}
        </button>
      </p>
      {state.is === "loading" ? <Waiting /> : null}
      {state.is === "failed" ? <FailureNotice text={state.text} onRetry={async () => plan.again()} /> : null}
      {state.is === "stale" ? (
        <Stale since={state.since} onAgain={() => void reload().then(plan.again)} />
      ) : null}
      {state.is === "there" ? (
        <>
          <PlanWarnings plan={state.plan} />
          <div className="grid items-start gap-x-10 gap-y-8 lg:grid-cols-2">
            <PlanDifference plan={state.plan} />
            <PlanEffect
              effect={plan.effect}
              days={days}
              onDays={(next) => setQuery({ days: next === 7 ? undefined : next }, { replace: true })}
              by={query.by}
              onBy={(by) => setQuery({ by }, { replace: true })}
              onCancel={plan.cancel}
              onAgain={plan.again}
            />
          </div>
          <ApplyPlan
            desk={desk}
            plan={state.plan}
            effect={plan.effect.is === "there" ? plan.effect.effect : undefined}
            days={days}
            canApply={canApply}
            reload={reload}
            onStale={plan.tellStale}
          />
        </>
      ) : null}
    </div>
  );
}

function Waiting() {
  const t = useT();
  return (
    <>
      <p className="sr-only" role="status">
        {t("plan.planning")}
      </p>
      <div className="grid gap-8 lg:grid-cols-2" aria-hidden>
        <div className="skeleton h-64 rounded-box" />
        <div className="skeleton h-64 rounded-box" />
      </div>
    </>
  );
}

/** Somebody else was quicker: who changed what, and the way on. */
function Stale({ since, onAgain }: { since: readonly PriceRevision[]; onAgain: () => void }) {
  useSignals();
  const t = useT();
  return (
    <Notice
      tone="warning"
      action={
        <button type="button" className="btn btn-sm btn-primary" onClick={onAgain}>
          {t("plan.planAgain")}
        </button>
      }
    >
      <div role="status">
        <p className="font-semibold">{t("plan.stale", { count: since.length })}</p>
        <ul className="mt-1 list-disc pl-5">
          {since.map((revision) => (
            <li key={revision.id} className="wrap-anywhere">
              {t("plan.staleBy", {
                who: authorText(t, revision),
                when: formatWhen(revision.created_at * 1000, nowMs.value),
                names: firstNamesText(revision.names),
                count: revision.change_count,
              })}
            </li>
          ))}
        </ul>
        <p className="mt-1">{t("plan.staleText")}</p>
      </div>
    </Notice>
  );
}
