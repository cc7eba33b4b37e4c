// Turns rows of users and tokens into the accounts of the hot path, and refreshes those in place.
// Settings and lists that do not parse count as absent.
import ipaddr from "ipaddr.js";
import { anyOf, isBudgetPeriod, parseLimitFields } from "../../shared/key-limits.ts";
import type { KeyLimits } from "../../shared/key-limits.ts";
import { autoGroupsOf } from "../../shared/auto-group.ts";
import type { Schema } from "../../../drizzle/schema.ts";
import type { TokenAccount, UserAccount, UserSetting } from "../deps.ts";

export type UserRow = Schema["users"]["$inferSelect"];
export type TokenRow = Schema["tokens"]["$inferSelect"];

/** Sums that only this process knows. */
const NO_SUMS = { reserved: 0, pending: 0, returning: 0 };
const NO_USER_SUMS = { ...NO_SUMS, openCalls: 0 };

export function userAccount(row: UserRow): UserAccount {
  return { id: row.id, ...NO_USER_SUMS, ...userFields(row) };
}

/** Overwrites every field but the sums of this process. */
export function refreshUser(account: UserAccount, row: UserRow): void {
  Object.assign(account, userFields(row));
}

function userFields(row: UserRow): Omit<UserAccount, "id" | keyof typeof NO_USER_SUMS> {
  return {
    username: row.username,
    displayName: row.displayName,
    email: row.email,
    role: row.role,
    status: row.status,
    group: row.planGroup || row.group,
    limits: parseLimitFields(row.limits),
    setting: parseSetting(row.setting),
    sessionVersion: row.sessionVersion,
    deleted: row.deletedAt !== null,
    flagged: row.flagged,
    secondFactor: row.secondFactor,
    quota: row.quota,
    planFloor: row.planStrict ? Math.max(0, row.planWallet) : 0,
    planUntil: row.planUntil,
    usedQuota: row.usedQuota,
    requestCount: row.requestCount,
  };
}

export function tokenAccount(row: TokenRow, user: UserAccount): TokenAccount {
  return { id: row.id, userId: row.userId, user, ...NO_SUMS, ...tokenFields(row) };
}

/** Overwrites every field but the owner and the sums of this process. */
export function refreshToken(account: TokenAccount, row: TokenRow): void {
  Object.assign(account, tokenFields(row));
}

function tokenFields(row: TokenRow): Omit<TokenAccount, "id" | "userId" | "user" | keyof typeof NO_SUMS> {
  return {
    name: row.name,
    masked: `${row.keyHead.slice(0, 3)}***${row.keyTail.slice(-3)}`,
    status: row.status,
    expiredTime: row.expiredTime,
    unlimitedQuota: row.unlimitedQuota,
    remainQuota: row.remainQuota,
    usedQuota: row.usedQuota,
    keyLimits: keyLimitsOf(row),
    modelLimits: row.modelLimitsEnabled ? parseModelLimits(row.modelLimits) : undefined,
    allowIps: parseAllowIps(row.allowIps),
    group: row.group,
    autoGroups: autoGroupsOf(row.autoGroups),
    maxQuota: row.maxQuota,
  };
}

/** Undefined where the key has none, which most have not. */
export function keyLimitsOf(row: TokenRow): KeyLimits | undefined {
  const { budgetQuota, budgetPeriod, rpmLimit, tpmLimit, maxConcurrency } = row;
  return anyOf({
    budgetQuota,
    budgetPeriod: isBudgetPeriod(budgetPeriod) ? budgetPeriod : "month",
    rpmLimit,
    tpmLimit,
    maxConcurrency,
  });
}

/** JSON of a user's setting; what cannot be read is none. */
function parseSetting(text: string): UserSetting {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as UserSetting) : {};
  } catch {
    return {};
  }
}

/** Comma-separated exact model names. */
function parseModelLimits(text: string): ReadonlySet<string> {
  const names = text.split(",").map((name) => name.trim());
  return new Set(names.filter((name) => name !== ""));
}

/** One address or CIDR range per line; blanks and commas inside a line are dropped, other lines are ignored. */
export function parseAllowIps(text: string): readonly string[] {
  if (text === "") return [];
  const lines = text.split(/\r?\n/).map((line) => line.replaceAll(/[\s,]/g, ""));
  return lines.filter((line) => (line.includes("/") ? ipaddr.isValidCIDR(line) : isAddress(line)));
}

/** ipaddr.js also reads `1`, `0x7f.1` and the like as IPv4: only the four-part form is meant here. */
function isAddress(line: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(line) || ipaddr.IPv6.isValid(line);
}
