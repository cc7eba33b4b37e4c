// The budget and the limits that are in force for a user, with what is spent of the budget: for themselves and administrators.
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import type { OwnLimits } from "../lib/wire.ts";
import { When } from "./badges.tsx";
import { BudgetBar } from "./budget-bar.tsx";

/** Only what is limited has a line. */
export function LimitsInForce({ limits }: { limits: OwnLimits }) {
  const t = useT();
  const { budget_quota: budget, budget_used: used, budget_period: period } = limits;
  const numbers = [
    ["form.limits.rpm", limits.rpm_limit],
    ["form.limits.tpm", limits.tpm_limit],
    ["form.limits.atOnce", limits.max_concurrency],
  ] as const;
  return (
    <dl className="facts">
      {budget > 0 ? (
        <>
          <div>
            <dt>{t(`form.limits.budget.${period}`)}</dt>
            <dd>
              <BudgetBar budget={budget} used={used} label={t(`form.limits.budget.${period}`)} />
            </dd>
          </div>
          <div>
            <dt>{t("form.limits.opens")}</dt>
            <dd>
              <When at={limits.budget_resets_at} isAbsolute />
            </dd>
          </div>
        </>
      ) : null}
      {numbers.map(([label, value]) =>
        value > 0 ? (
          <div key={label}>
            <dt>{t(label)}</dt>
            <dd className="tabular-nums">{formatNumber(value)}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}
