// The plans of one account: a bar for the period that runs, when it ends, what waits, and what there was before.
// Refuses countdowns: moments stand as moments.
import type { ReactNode } from "react";
import { formatQuota } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { quotaText } from "../lib/plan-words.ts";
import type { UserPlan } from "../lib/wire.ts";
import { StatusDot, When } from "./badges.tsx";
import type { StatusTone } from "./badges.tsx";

const TONES: Readonly<Record<string, StatusTone>> = {
  active: "ok",
  waiting: "running",
  ended: "off",
  cancelled: "off",
  refunded: "off",
};

export const isUnfinished = ({ status }: Pick<UserPlan, "status">): boolean =>
  status === "active" || status === "waiting";

function PlanState({ plan }: { plan: UserPlan }) {
  const t = useT();
  const { status } = plan;
  return (
    <StatusDot tone={TONES[status] ?? "off"}>
      {t(status in TONES ? `plans.status.${status}` : "common.unknown")}
    </StatusDot>
  );
}

/** What of the running period is left; empty for a plan that waits. */
function PeriodBar({ plan }: { plan: UserPlan }) {
  const t = useT();
  const { period } = plan;
  if (!period)
    return (
      <p className="mt-2 text-dense">
        {t("plans.begins")} <When at={plan.starts_at} isAbsolute />
      </p>
    );
  const left = period.quota - period.used;
  const figures = { left: formatQuota(left), quota: formatQuota(period.quota) };
  return (
    <div className="mt-2">
      <p className="flex flex-wrap justify-between gap-x-3 text-dense tabular-nums">
        <span>{t("plans.left", figures)}</span>
        <span className="text-muted">
          {t(period.ends_at < plan.ends_at ? "plans.renews" : "plans.ends")}{" "}
          <When at={period.ends_at} isAbsolute />
        </span>
      </p>
      <progress
        className="progress progress-primary mt-1 w-full"
        value={left}
        max={period.quota}
        aria-label={t("plans.leftOf", { title: plan.title })}
      />
    </div>
  );
}

interface PlanRunsProps {
  plans: readonly UserPlan[];
  /** Buttons of a plan that runs or waits. */
  actions: (plan: UserPlan) => ReactNode;
}

export function PlanRuns({ plans, actions }: PlanRunsProps) {
  const t = useT();
  const current = plans.filter(isUnfinished);
  const past = plans.filter((plan) => !isUnfinished(plan));
  return (
    <>
      {current.length === 0 ? null : (
        <ul className="grid gap-3">
          {current.map((plan) => (
            <li
              key={plan.id}
              className="rounded-box border border-base-300 bg-base-100 px-5 py-4"
              data-user-plan={plan.id}
              data-status={plan.status}
            >
              <div className="flex flex-wrap items-center justify-between gap-2">
                <h3 className="wrap-anywhere font-semibold">{plan.title}</h3>
                <PlanState plan={plan} />
              </div>
              <PeriodBar plan={plan} />
              <div className="mt-2 flex flex-wrap items-end justify-between gap-2">
                <p className="text-dense text-muted">
                  {quotaText(t, plan)} · {t("plans.until")} <When at={plan.ends_at} isAbsolute />
                  {plan.group === "" ? null : ` · ${t("plans.inGroup", { group: plan.group })}`}
                </p>
                <div className="flex flex-wrap gap-2">{actions(plan)}</div>
              </div>
            </li>
          ))}
        </ul>
      )}
      {past.length === 0 ? null : (
        <details className="mt-3">
          <summary className="cursor-pointer text-dense">{t("plans.past", { count: past.length })}</summary>
          <ul className="mt-2 grid gap-2 text-dense">
            {past.map((plan) => (
              <li key={plan.id} className="flex flex-wrap justify-between gap-x-4" data-user-plan={plan.id}>
                <span className="wrap-anywhere">{plan.title}</span>
                <span className="text-muted">
                  <When at={plan.starts_at} isAbsolute /> –{" "}
                  <When at={plan.cancelled_at || plan.ends_at} isAbsolute />
                </span>
                <span className="text-muted tabular-nums">
                  {t("plans.usedOf", { amount: formatQuota(plan.used_total) })}
                </span>
                <PlanState plan={plan} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
