// Turns rows of users and tokens into the accounts of the hot path, and refreshes those in place.
// Refuses nothing: settings and lists that do not parse count as absent.
import ipaddr from "ipaddr.js";
import type { Schema } from "../../../drizzle/schema.ts";
import type { TokenAccount, UserAccount, UserSetting } from "../deps.ts";

export type UserRow = Schema["users"]["$inferSelect"];
export type TokenRow = Schema["tokens"]["$inferSelect"];

export function userAccount(row: UserRow): UserAccount {
  const account = { id: row.id, reserved: 0, pending: 0, returning: 0 } as UserAccount;
  refreshUser(account, row);
  return account;
}

/** Overwrites every field but the reservations of this process. */
export function refreshUser(account: UserAccount, row: UserRow): void {
  account.username = row.username;
  account.displayName = row.displayName;
  account.email = row.email;
  account.role = row.role;
  account.status = row.status;
  account.group = row.group;
  account.setting = parseSetting(row.setting);
  account.sessionVersion = row.sessionVersion;
  account.deleted = row.deletedAt !== null;
  account.quota = row.quota;
  account.usedQuota = row.usedQuota;
  account.requestCount = row.requestCount;
}

export function tokenAccount(row: TokenRow, user: UserAccount): TokenAccount {
  const account = {
    id: row.id,
    userId: row.userId,
    user,
    reserved: 0,
    pending: 0,
    returning: 0,
  } as TokenAccount;
  refreshToken(account, row);
  return account;
}

/** Overwrites every field but the owner and the reservations of this process. */
export function refreshToken(account: TokenAccount, row: TokenRow): void {
  account.name = row.name;
  account.masked = `${row.keyHead.slice(0, 3)}***${row.keyTail.slice(-3)}`;
  account.status = row.status;
  account.expiredTime = row.expiredTime;
  account.unlimitedQuota = row.unlimitedQuota;
  account.remainQuota = row.remainQuota;
  account.usedQuota = row.usedQuota;
  account.modelLimits = row.modelLimitsEnabled ? parseModelLimits(row.modelLimits) : undefined;
  account.allowIps = parseAllowIps(row.allowIps);
  account.group = row.group;
}

/** JSON of a user's setting; what cannot be read is none. */
export function parseSetting(text: string): UserSetting {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as UserSetting) : {};
  } catch {
    return {};
  }
}

/** Comma-separated exact model names. */
export function parseModelLimits(text: string): ReadonlySet<string> {
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
