// Budget and limits of a key or a user as a form has them, made from the wire's fields and back.
import type { BudgetPeriod, LimitFields } from "../../src/shared/key-limits.ts";
import { LIMIT_MAXIMA } from "../../src/shared/key-limits.ts";
import type { Translate } from "./i18n.ts";

export interface LimitValues extends Record<string, unknown> {
  /** Units in a period; NaN: what was typed is no amount. This and the limits: undefined = the field is empty. */
  budget: number | undefined;
  budgetPeriod: BudgetPeriod;
  rpm: number | undefined;
  tpm: number | undefined;
  atOnce: number | undefined;
}

export const NO_LIMITS: LimitValues = {
  budget: undefined,
  budgetPeriod: "day",
  rpm: undefined,
  tpm: undefined,
  atOnce: undefined,
};

/** Names of the wire's fields by those of the form. */
export const LIMIT_NAMES = {
  budget: "budget_quota",
  budgetPeriod: "budget_period",
  rpm: "rpm_limit",
  tpm: "tpm_limit",
  atOnce: "max_concurrency",
} as const;

const NUMBERS = ["budget", "rpm", "tpm", "atOnce"] as const;

/** What is not named stays empty. */
export function limitValuesOf(fields: LimitFields | null): LimitValues {
  return {
    budget: fields?.budget_quota,
    budgetPeriod: fields?.budget_period ?? NO_LIMITS.budgetPeriod,
    rpm: fields?.rpm_limit,
    tpm: fields?.tpm_limit,
    atOnce: fields?.max_concurrency,
  };
}

/** Without the fields that are empty: those follow what stands behind. */
function limitFieldsOf({ budget, budgetPeriod, rpm, tpm, atOnce }: LimitValues): LimitFields {
  return {
    ...(budget === undefined ? {} : { budget_quota: budget, budget_period: budgetPeriod }),
    ...(rpm === undefined ? {} : { rpm_limit: rpm }),
    ...(tpm === undefined ? {} : { tpm_limit: tpm }),
    ...(atOnce === undefined ? {} : { max_concurrency: atOnce }),
  };
}

/** The fields that were changed, a budget with its period; null where one was emptied. */
export function limitChangesOf(values: LimitValues, changed: Partial<LimitValues>): SentLimits {
  const fields = limitFieldsOf(values);
  const isBudget = "budget" in changed || "budgetPeriod" in changed;
  return {
    ...(isBudget
      ? { budget_quota: fields.budget_quota ?? null, budget_period: fields.budget_period ?? null }
      : {}),
    ...("rpm" in changed ? { rpm_limit: fields.rpm_limit ?? null } : {}),
    ...("tpm" in changed ? { tpm_limit: fields.tpm_limit ?? null } : {}),
    ...("atOnce" in changed ? { max_concurrency: fields.max_concurrency ?? null } : {}),
  };
}

type SentLimits = { [Name in keyof LimitFields]: LimitFields[Name] | null };

/** What is wrong, by field. */
export function limitProblems(
  t: Translate,
  values: LimitValues,
): Partial<Record<(typeof NUMBERS)[number], string>> {
  const found: Partial<Record<(typeof NUMBERS)[number], string>> = {};
  for (const name of NUMBERS) {
    const value = values[name];
    if (value === undefined) continue;
    const isWhole = Number.isSafeInteger(value) && value >= 0 && value <= LIMIT_MAXIMA[LIMIT_NAMES[name]];
    if (!isWhole) found[name] = t(name === "budget" ? "form.limits.badBudget" : "form.limits.badNumber");
  }
  return found;
}
