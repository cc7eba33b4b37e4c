// The fields of a budget and of limits in a drawer: a key's, and a user's own.
import type { BudgetPeriod } from "../../src/shared/key-limits.ts";
import type { Form } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import type { LimitValues } from "../lib/limit-values.ts";
import { NumberField, SelectField } from "./form.tsx";
import { MoneyField } from "./money-field.tsx";

export const BUDGET_PERIODS: readonly BudgetPeriod[] = ["day", "week", "month"];

/** `note`: what an empty field means. */
export function LimitFieldsPart<V extends LimitValues>({ form, note }: { form: Form<V>; note: string }) {
  const t = useT();
  return (
    <>
      <p className="mb-3 text-dense text-muted">{note}</p>
      <div className="grid gap-x-4 sm:grid-cols-2">
        <MoneyField form={form} name="budget" label={t("form.limits.budget")} />
        <SelectField
          form={form}
          name="budgetPeriod"
          label={t("form.limits.period")}
          hint={t("form.limits.periodHint")}
          choices={BUDGET_PERIODS.map((value) => ({ value, label: t(`form.limits.per.${value}`) }))}
        />
      </div>
      <div className="grid gap-x-4 sm:grid-cols-3">
        <NumberField form={form} name="rpm" label={t("form.limits.rpm")} min={0} step={1} />
        <NumberField form={form} name="tpm" label={t("form.limits.tpm")} min={0} step={1} />
        <NumberField form={form} name="atOnce" label={t("form.limits.atOnce")} min={0} step={1} />
      </div>
    </>
  );
}
