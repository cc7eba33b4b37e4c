// What a plan lasts and when its quota begins anew: calendar arithmetic from the anchor, in a named zone.
// Refuses to drift: the fifth month begins five months after the anchor, not one month after the fourth.
import { offsetSeconds } from "./local-time.ts";

export const PLAN_UNITS = ["day", "week", "month", "year"] as const;
export type PlanUnit = (typeof PLAN_UNITS)[number];
export const PLAN_RESETS = ["none", "day", "week", "month"] as const;
export type PlanReset = (typeof PLAN_RESETS)[number];
export const PLAN_STACKS = ["extend", "parallel"] as const;
export type PlanStack = (typeof PLAN_STACKS)[number];

/** Ten years, in each unit. */
export const MOST_OF_UNIT: Readonly<Record<PlanUnit, number>> = {
  day: 3660,
  week: 522,
  month: 120,
  year: 10,
};
export const MAX_PLAN_TITLE = 64;
export const MAX_PLAN_DESCRIPTION = 500;

/** A stretch of time in Unix seconds; the end is not part of it. */
export interface Period {
  startsAt: number;
  endsAt: number;
}

const DAY = 86_400;
const ABOUT_SECONDS: Readonly<Record<PlanUnit, number>> = {
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};

/**
 * The moment (Unix seconds) so many units after `anchor`, at the same time of the local day; months end with their last day
 * where the anchor's does not exist (31 January, 28 February, 31 March). A time that a changed clock leaves out is the one
 * an hour later.
 */
export function momentAfter(anchor: number, unit: PlanUnit, count: number, zone: string): number {
  const local = new Date((anchor + offsetSeconds(zone, anchor * 1000)) * 1000);
  const months = unit === "month" ? count : unit === "year" ? 12 * count : 0;
  const days = unit === "day" ? count : unit === "week" ? 7 * count : 0;
  const year = local.getUTCFullYear();
  const month = local.getUTCMonth() + months;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const day = months === 0 ? local.getUTCDate() + days : Math.min(local.getUTCDate(), lastDay);
  const time = ((local.getTime() % (DAY * 1000)) + DAY * 1000) % (DAY * 1000);
  const wall = Math.floor((Date.UTC(year, month, day) + time) / 1000);
  // The offset there is not always that of here: guessed, then taken twice where it is looked up.
  let moment = wall - offsetSeconds(zone, anchor * 1000);
  for (let turn = 0; turn < 2; turn++) moment = wall - offsetSeconds(zone, moment * 1000);
  return moment;
}

/** The period of a running plan at `now`: from one reset to the next, the last one cut at the plan's end. */
export function periodAt(plan: Period & { reset: PlanReset; zone: string }, now: number): Period {
  const { startsAt, endsAt, reset, zone } = plan;
  if (reset === "none") return { startsAt, endsAt };
  const at = (index: number) => momentAfter(startsAt, reset, index, zone);
  let index = Math.max(0, Math.floor((now - startsAt) / ABOUT_SECONDS[reset]));
  while (index > 0 && at(index) > now) index--;
  while (at(index + 1) <= now) index++;
  return { startsAt: at(index), endsAt: Math.min(at(index + 1), endsAt) };
}

/** How often the quota of a plan is given when it runs its whole time from `from` on. */
export function periodsIn(
  { durationUnit, durationCount, reset }: { durationUnit: PlanUnit; durationCount: number; reset: PlanReset },
  from: number,
  zone: string,
): number {
  if (reset === "none") return 1;
  const end = momentAfter(from, durationUnit, durationCount, zone);
  let count = Math.max(1, Math.floor((end - from) / ABOUT_SECONDS[reset]) - 2);
  while (momentAfter(from, reset, count, zone) < end) count++;
  return count;
}

/** A period that quota is taken from; `used` is at most `quota`. */
export interface PurseShare {
  id: number;
  endsAt: number;
  quota: number;
  used: number;
}

/**
 * Shares use since the last time out among open periods: what lapses first pays first, and what none of them has is the
 * wallet's. Refunded calls (`use` below 0) go back in reverse. Answers each period's new `used` where it changed.
 */
export function shareOut(use: number, periods: readonly PurseShare[]): Map<number, number> {
  const changed = new Map<number, number>();
  const inOrder = periods.toSorted((a, b) => a.endsAt - b.endsAt || a.id - b.id);
  if (use < 0) inOrder.reverse();
  let left = use;
  for (const { id, quota, used } of inOrder) {
    const part = left > 0 ? Math.min(left, quota - used) : Math.max(left, -used);
    if (part === 0) continue;
    changed.set(id, used + part);
    left -= part;
  }
  return changed;
}
