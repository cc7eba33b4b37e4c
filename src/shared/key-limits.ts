// Budgets and limits of a key, a user or a group (reference money.md, section 10): their names, what may stand in them, and
// when a budget's period begins and ends. Weeks begin on Monday; periods are cut in the site's zone.
import { addDays, offsetSeconds, startOfDay } from "./local-time.ts";

const BUDGET_PERIODS = ["day", "week", "month"] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/** What is in force; 0 = no limit. */
export interface KeyLimits {
  /** Units of quota in a period. */
  budgetQuota: number;
  budgetPeriod: BudgetPeriod;
  /** Requests in any 60 seconds. */
  rpmLimit: number;
  /** Tokens, read and written, in any 60 seconds. */
  tpmLimit: number;
  /** Calls at once. */
  maxConcurrency: number;
}

/** As the wire has them; absent = whatever stands behind (a group's, the default for all). */
export interface LimitFields {
  budget_quota?: number;
  budget_period?: BudgetPeriod;
  rpm_limit?: number;
  tpm_limit?: number;
  max_concurrency?: number;
}

/** Half the exact range: what is used and what is held together stay in it. */
const MOST_QUOTA = Math.floor(Number.MAX_SAFE_INTEGER / 2);
const MOST = 1_000_000_000;

/** The largest value of each number; the least is 0. */
export const LIMIT_MAXIMA = {
  budget_quota: MOST_QUOTA,
  rpm_limit: MOST,
  tpm_limit: MOST,
  max_concurrency: 1_000_000,
} as const;

export type LimitNumber = keyof typeof LIMIT_MAXIMA;
export const LIMIT_NUMBERS = Object.keys(LIMIT_MAXIMA) as LimitNumber[];

export const LIMIT_NAMES: ReadonlySet<string> = new Set([...LIMIT_NUMBERS, "budget_period"]);

/** At this share of a budget its owner is warned, once a period. */
export const WARN_SHARE = 0.8;

export function isLimitName(name: string): boolean {
  return LIMIT_NAMES.has(name);
}

export function isBudgetPeriod(value: unknown): value is BudgetPeriod {
  return BUDGET_PERIODS.some((each) => each === value);
}

/** The fields of a JSON object; the name of the first that cannot stand there otherwise. */
export function readLimitFields(value: unknown): LimitFields | { wrong: string } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { wrong: "" };
  const given = value as Record<string, unknown>;
  const unknown = Object.keys(given).find((name) => !isLimitName(name));
  if (unknown !== undefined) return { wrong: unknown };
  const fields: LimitFields = {};
  for (const name of LIMIT_NUMBERS) {
    const number = given[name];
    if (number === undefined || number === null) continue;
    if (!isLimit(name, number)) return { wrong: name };
    fields[name] = number;
  }
  const period = given["budget_period"];
  if (period !== undefined && period !== null) {
    if (!isBudgetPeriod(period)) return { wrong: "budget_period" };
    fields.budget_period = period;
  }
  return fields;
}

function isLimit(name: LimitNumber, value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LIMIT_MAXIMA[name];
}

/** Stored text of a user's own limits; what cannot be read is none. */
export function parseLimitFields(text: string): LimitFields | undefined {
  if (text === "") return undefined;
  try {
    const fields = readLimitFields(JSON.parse(text));
    return "wrong" in fields ? undefined : fields;
  } catch {
    return undefined;
  }
}

/** The first of several sources that names a number decides it, a budget together with its period; undefined: no limit. */
export function limitsInForce(sources: readonly (LimitFields | undefined)[]): KeyLimits | undefined {
  const numberOf = (name: LimitNumber) => sources.find((each) => each?.[name] !== undefined)?.[name] ?? 0;
  const budget = sources.find((each) => each?.budget_quota !== undefined);
  return anyOf({
    budgetQuota: budget?.budget_quota ?? 0,
    budgetPeriod: budget?.budget_period ?? "month",
    rpmLimit: numberOf("rpm_limit"),
    tpmLimit: numberOf("tpm_limit"),
    maxConcurrency: numberOf("max_concurrency"),
  });
}

/** Undefined where nothing is limited: most keys, which then cost nothing. */
export function anyOf(limits: KeyLimits): KeyLimits | undefined {
  const { budgetQuota, rpmLimit, tpmLimit, maxConcurrency } = limits;
  return budgetQuota + rpmLimit + tpmLimit + maxConcurrency > 0 ? limits : undefined;
}

/** A stretch of time in Unix seconds, the end not included. */
export interface Period {
  start: number;
  end: number;
}

const DAY = 86_400;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4;

/** The period that a moment lies in. Days of 23 and 25 hours are days; a month ends with its last day. */
export function budgetPeriodAt(ms: number, period: BudgetPeriod, zone: string): Period {
  const today = startOfDay(ms, zone);
  if (period === "day") return { start: today, end: addDays(today, 1, zone) };
  const local = Math.floor(ms / 1000) + offsetSeconds(zone, ms);
  if (period === "week") {
    const day = Math.floor(local / DAY);
    const monday = addDays(today, -((((day - FIRST_MONDAY) % 7) + 7) % 7), zone);
    return { start: monday, end: addDays(monday, 7, zone) };
  }
  const date = new Date(local * 1000);
  const firstOf = (month: number) => dayStart(Date.UTC(date.getUTCFullYear(), month, 1), zone);
  return { start: firstOf(date.getUTCMonth()), end: firstOf(date.getUTCMonth() + 1) };
}

/** `utcMidnightMs`: the day of the calendar, as if it were in UTC. */
function dayStart(utcMidnightMs: number, zone: string): number {
  const noonMs = utcMidnightMs + (DAY / 2) * 1000;
  return startOfDay(noonMs - offsetSeconds(zone, noonMs) * 1000, zone);
}
