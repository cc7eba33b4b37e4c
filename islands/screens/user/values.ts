// The values of the user screen's drawers: what may be typed, what is wrong with it, and what a call sends. Comes with them.
import {
  charactersIn,
  MAX_DISPLAY_NAME,
  MAX_PASSWORD,
  MAX_REMARK,
  MAX_USERNAME,
  MIN_PASSWORD,
} from "../../../src/shared/name-limits.ts";
import { limitValuesOf } from "../../lib/limit-values.ts";
import type { LimitValues } from "../../lib/limit-values.ts";
import type { UserRow } from "../../lib/wire.ts";

export const MODES = ["add", "take"] as const;
type Mode = (typeof MODES)[number];

/** How a balance is to change. */
export interface QuotaValues extends Record<string, unknown> {
  mode: Mode;
  /** Whole units; undefined: no change, NaN: what was typed is no number. */
  amount: number | undefined;
  /** Why: the user reads it too. */
  reason: string;
}

export const NO_CHANGE: QuotaValues = { mode: "add", amount: undefined, reason: "" };

/** The balance after the change. */
export function balanceAfter(before: number, { mode, amount }: Pick<QuotaValues, "mode" | "amount">): number {
  if (amount === undefined || !Number.isFinite(amount)) return before;
  return mode === "add" ? before + amount : before - amount;
}

/** Key of what is wrong with the change; undefined when nothing is. */
export function quotaProblem(
  before: number,
  values: Pick<QuotaValues, "mode" | "amount">,
): string | undefined {
  const { amount } = values;
  if (amount === undefined) return undefined;
  if (!Number.isSafeInteger(amount) || amount <= 0) return "user.badAmount";
  const after = balanceAfter(before, values);
  return after < 0 && after < before ? "user.belowZero" : undefined;
}

/** Keys of what is wrong with a change, by field. */
export function changeProblems(
  before: number,
  values: QuotaValues,
): Partial<Record<"amount" | "reason", string>> {
  const amount = quotaProblem(before, values);
  const isReasonMissing = values.amount !== undefined && values.reason.trim() === "";
  return { ...(amount ? { amount } : {}), ...(isReasonMissing ? { reason: "user.noReason" } : {}) };
}

/** What the call sends: a difference, so that calls made meanwhile stay paid, and its reason. */
export function quotaBody({ mode, amount, reason }: QuotaValues): {
  quota_change?: number;
  quota_reason?: string;
} {
  if (amount === undefined) return {};
  return { quota_change: mode === "add" ? amount : -amount, quota_reason: reason.trim() };
}

export interface UserValues extends QuotaValues, LimitValues {
  username: string;
  display_name: string;
  password: string;
  group: string;
  /** For administrators only. */
  remark: string;
  flagged: boolean;
}

export function valuesOf(row: UserRow | undefined): UserValues {
  return {
    username: row?.username ?? "",
    display_name: row?.display_name ?? "",
    password: "",
    group: row?.group ?? "default",
    remark: row?.remark ?? "",
    flagged: row?.flagged ?? false,
    ...NO_CHANGE,
    ...limitValuesOf(row?.limits ?? null),
  };
}

/** Keys of what is wrong with names and password, by field. */
export function accountProblems(
  { username, display_name: displayName, password, remark }: UserValues,
  isNew: boolean,
): Partial<Record<"username" | "display_name" | "password" | "remark", string>> {
  const name = username.trim();
  return {
    ...(name === "" ? { username: "user.noUsername" } : {}),
    ...(charactersIn(name) > MAX_USERNAME ? { username: "user.longUsername" } : {}),
    ...(charactersIn(displayName.trim()) > MAX_DISPLAY_NAME ? { display_name: "user.longDisplayName" } : {}),
    ...(isNew && password === "" ? { password: "user.noPassword" } : {}),
    ...(password !== "" && (charactersIn(password) < MIN_PASSWORD || charactersIn(password) > MAX_PASSWORD)
      ? { password: "user.badPassword" }
      : {}),
    ...(charactersIn(remark) > MAX_REMARK ? { remark: "user.longRemark" } : {}),
  };
}
