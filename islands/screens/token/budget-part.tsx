// The budget of an API key and its limits of a minute and at once, in its drawer; and the bar that tells how much is spent.
import { status } from "../../lib/boot.ts";
import { formatDateTime, formatDollars, formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { NumberField, Section, SelectField } from "../../ui/form.tsx";
import { BudgetBar } from "./budget-bar.tsx";
import type { TokenForm } from "./drawer-parts.tsx";

const PERIODS = ["day", "week", "month"] as const;

export function BudgetPart({ form, row }: { form: TokenForm; row: TokenRow | undefined }) {
  const t = useT();
  const { budget, rpm, tpm, atOnce } = form.values;
  const perUnit = status.peek().quota_per_unit || 500_000;
  return (
    <Section title={t("token.budgetTitle")} isFolded={(budget ?? rpm ?? tpm ?? atOnce) === undefined}>
      {row && row.budget_quota > 0 ? (
        <div className="mb-4">
          <BudgetBar row={row} label={t("token.budget")} />
          <p className="mt-1 text-dense text-muted">
            {t("token.budgetUse", {
              used: formatQuota(row.budget_used),
              budget: formatQuota(row.budget_quota),
              at: formatDateTime(row.budget_resets_at * 1000),
            })}
          </p>
        </div>
      ) : null}
      <NumberField
        form={form}
        name="budget"
        label={t("token.budget")}
        min={0}
        step={1}
        hint={
          budget === undefined
            ? t("token.budgetHint")
            : t("token.maxQuotaIs", { dollars: formatDollars(budget / perUnit) })
        }
      />
      <SelectField
        form={form}
        name="budgetPeriod"
        label={t("token.budgetPeriod")}
        hint={t("token.budgetPeriodHint")}
        choices={PERIODS.map((value) => ({ value, label: t(`token.budgetPeriod.${value}`) }))}
      />
      <NumberField
        form={form}
        name="rpm"
        label={t("token.rpm")}
        min={0}
        step={1}
        hint={t("token.zeroIsNone")}
      />
      <NumberField
        form={form}
        name="tpm"
        label={t("token.tpm")}
        min={0}
        step={1}
        hint={t("token.zeroIsNone")}
      />
      <NumberField
        form={form}
        name="atOnce"
        label={t("token.atOnce")}
        min={0}
        step={1}
        hint={t("token.zeroIsNone")}
      />
    </Section>
  );
}
