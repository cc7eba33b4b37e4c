// A plan as a card: prices, quota of each period, what happens beyond it. The same for buyers and those who make it.
// Refuses to praise: no plan is the popular one.
import type { ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { durationText, pricesOf, quotaText, termsOf } from "../lib/plan-words.ts";
import type { SoldPlan } from "../lib/wire.ts";

interface PlanCardProps {
  plan: Omit<SoldPlan, "bought" | "is_open" | "methods">;
  /** Beside the title. */
  badge?: ReactNode;
  children: ReactNode;
}

export function PlanCard({ plan, badge, children }: PlanCardProps) {
  const t = useT();
  const [first = "", ...others] = pricesOf(t, plan);
  return (
    <li
      className="flex flex-col rounded-box border border-base-300 bg-base-100 px-5 py-4"
      data-plan={plan.id}
    >
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 className="wrap-anywhere font-semibold">{plan.title}</h3>
        {badge}
      </div>
      <p className="mt-1">
        <span className="text-xl font-semibold tabular-nums">{first}</span>{" "}
        <span className="text-muted">{t("plans.for", { duration: durationText(t, plan) })}</span>
      </p>
      {others.map((price) => (
        <p key={price} className="text-dense text-muted tabular-nums">
          {t("plans.or", { price })}
        </p>
      ))}
      <p className="mt-3 font-semibold tabular-nums">{quotaText(t, plan)}</p>
      <ul className="mt-1 mb-4 grid list-disc gap-1 pl-4 text-dense text-muted">
        {termsOf(t, plan).map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {plan.description === "" ? null : (
        <p className="mb-4 text-dense whitespace-pre-line wrap-anywhere">{plan.description}</p>
      )}
      <div className="mt-auto flex flex-wrap gap-2">{children}</div>
    </li>
  );
}
