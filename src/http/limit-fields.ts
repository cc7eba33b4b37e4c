// Budget and limits as fields of a body: the same of a key, and of a user by an administrator.
import { t } from "elysia";
import { LIMIT_MAXIMA } from "../shared/key-limits.ts";
import type { LimitNumber } from "../shared/key-limits.ts";
import { given } from "./plain-text.ts";

/** Fields for a schema; null counts as absent. */
export function limitFields() {
  const whole = (name: LimitNumber) => given(t.Integer({ minimum: 0, maximum: LIMIT_MAXIMA[name] }));
  return {
    budget_quota: whole("budget_quota"),
    budget_period: given(t.Union([t.Literal("day"), t.Literal("week"), t.Literal("month")])),
    rpm_limit: whole("rpm_limit"),
    tpm_limit: whole("tpm_limit"),
    max_concurrency: whole("max_concurrency"),
  };
}
