// The budget of an API key and its limits of a minute and at once, in its drawer; and how much of the budget is spent.
import { formatDateTime, formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { BudgetBar } from "../../ui/budget-bar.tsx";
import { Section } from "../../ui/form.tsx";
import { LimitFieldsPart } from "../../ui/limit-fields.tsx";
import type { TokenForm } from "./drawer-parts.tsx";

export function BudgetPart({ form, row }: { form: TokenForm; row: TokenRow | undefined }) {
  const t = useT();
  const { budget, rpm, tpm, atOnce } = form.values;
  return (
    <Section title={t("token.budgetTitle")} isFolded={(budget ?? rpm ?? tpm ?? atOnce) === undefined}>
      {row && row.budget_quota > 0 ? (
        <div className="mb-4">
          <BudgetBar
            budget={row.budget_quota}
            used={row.budget_used}
            label={t("token.budgetOf", { name: row.name })}
          />
          <p className="mt-1 text-dense text-muted">
            {t("token.budgetUse", {
              used: formatQuota(row.budget_used),
              budget: formatQuota(row.budget_quota),
              at: formatDateTime(row.budget_resets_at * 1000),
            })}
          </p>
        </div>
      ) : null}
      <LimitFieldsPart form={form} note={t("token.budgetNote")} />
    </Section>
  );
}
