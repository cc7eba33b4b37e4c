// A user's month: what came in by kind, what was used by day, model and key, the orders, and the balance at both ends.
// Refuses to reckon by anything but the books: credits to the second, use by the hour, as both stand in the tables.
import { and, asc, eq, gt, gte, lt, sql } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import { offsetSeconds, startOfDay, stretchesOf } from "../../shared/local-time.ts";
import type { Deps } from "../deps.ts";
import { minorText } from "../../shared/currencies.ts";
import { nextTurn } from "../kit/turns.ts";
import { totalOf } from "../logs/coarse.ts";
import { unitOf } from "../logs/coarse-days.ts";
import { creditedOrders } from "./order-list.ts";

type StatementDeps = Pick<Deps, "db" | "clock" | "options" | "rails">;

const HOUR = 3600;
const YEAR_SECONDS = 365 * 24 * HOUR;
const NOON_HOURS = 12;
/** Of the list of months that have a statement. */
const MOST_MONTHS = 240;

interface Month {
  year: number;
  /** From 1. */
  number: number;
}

function monthOf(text: string): Month {
  const [, year, number] = /^(20\d\d)-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year === undefined) throw refuse("statement_month");
  return { year: Number(year), number: Number(number) };
}

const monthText = ({ year, number }: Month): string => `${year}-${String(number).padStart(2, "0")}`;

/** Unix seconds of the first midnight of a month in a zone; months beyond December are those of the years to come. */
function startOfMonth({ year, number }: Month, zone: string): number {
  const noon = Date.UTC(year, number - 1, 1, NOON_HOURS);
  return startOfDay(noon - offsetSeconds(zone, noon) * 1000, zone);
}

/** `2026-11-20` of a moment in a zone. */
function dayText(seconds: number, zone: string): string {
  return new Date((seconds + offsetSeconds(zone, seconds * 1000)) * 1000).toISOString().slice(0, 10);
}

/** Sums of hours count to the day in which the hour begins: zones off the full hour cut no hour in two. */
const wholeHour = (seconds: number): number => Math.ceil(seconds / HOUR) * HOUR;

interface Use {
  count: number;
  /** Prompt and completion. */
  tokens: number;
  /** Whole units. */
  quota: number;
}

interface UseLine extends Use {
  day: string;
  model: string;
  tokenId: number;
}

/** Use of the month, a line for each day, model and key. */
async function useLines(
  { db }: StatementDeps,
  userId: number,
  { from, to, zone }: { from: number; to: number; zone: string },
): Promise<UseLine[]> {
  if (to <= from) return [];
  const { rollups } = db.t;
  const inner = db.reader
    .select({
      unit: unitOf(rollups.hour, "day", stretchesOf(from, to, zone)).as("unit"),
      model: rollups.modelName,
      tokenId: rollups.tokenId,
      count: rollups.count,
      quota: rollups.quota,
      tokens: sql`${rollups.promptTokens} + ${rollups.completionTokens}`.as("tokens"),
    })
    .from(rollups)
    .where(
      and(
        eq(rollups.userId, userId),
        gte(rollups.hour, from),
        lt(rollups.hour, to),
        // Errors alone are no use.
        gt(rollups.count, 0),
      ),
    )
    .as("found");
  const rows = await db.reader
    .select({
      unit: inner.unit,
      model: inner.model,
      tokenId: inner.tokenId,
      count: sumOf(inner.count),
      quota: sumOf(inner.quota),
      tokens: sumOf(sql`${inner.tokens}`),
    })
    .from(inner)
    .groupBy(inner.unit, inner.model, inner.tokenId)
    .orderBy(asc(inner.unit), asc(inner.model), asc(inner.tokenId));
  // Thousands of them were made ready just now.
  await nextTurn();
  // The unit is midnight by the local clock.
  return rows.map(({ unit, ...line }) => ({
    ...line,
    day: new Date(Number(unit) * 1000).toISOString().slice(0, 10),
  }));
}

/** What an account had used before all of its sums, and when: with the credit that it was imported by. */
interface BeforeSums {
  used: number;
  at: number;
}

const IMPORT = "import";

async function useBeforeSums({ db }: StatementDeps, userId: number): Promise<BeforeSums> {
  const { credits, openings } = db.t;
  const [row] = await db.orm
    .select({ used: openings.usedQuota, at: credits.createdAt })
    .from(openings)
    .innerJoin(credits, and(eq(credits.userId, openings.id), eq(credits.kind, IMPORT)))
    .where(and(eq(openings.kind, "user"), eq(openings.id, userId)));
  return row ?? { used: 0, at: 0 };
}

/** What hourly sums say was used before an hour: by days, of a year at a time, because the hours of a user lie far apart. */
async function usedBefore(db: Database, userId: number, before: number): Promise<number> {
  const { rollups } = db.t;
  const [first] = await db.reader
    .select({ hour: sql<number | null>`min(${rollups.hour})` })
    .from(rollups)
    .where(eq(rollups.userId, userId));
  let used = 0;
  for (let from = Number(first?.hour ?? before); from < before; from += YEAR_SECONDS) {
    const to = Math.min(before, from + YEAR_SECONDS);
    const filter = { type: 0, userId, from, to };
    used += await totalOf(db, { filter, from, to }, ({ quota }) => quota);
  }
  return used;
}

/** Balance that the books had before: credits to the second, use to the hour. */
async function balanceBefore(
  { db }: StatementDeps,
  userId: number,
  from: number,
  beforeSums: BeforeSums,
): Promise<number> {
  const { credits } = db.t;
  const [came] = await db.orm
    .select({ sum: sumOf(credits.amount) })
    .from(credits)
    .where(and(eq(credits.userId, userId), lt(credits.createdAt, from)));
  const went = await usedBefore(db, userId, wholeHour(from));
  return (came?.sum ?? 0) - went - (beforeSums.at < from ? beforeSums.used : 0);
}

/** Lines of one key as one, in the order in which the keys came. */
function summed<K extends string | number>(
  lines: readonly UseLine[],
  keyOf: (line: UseLine) => K,
): [K, Use][] {
  const sums = new Map<K, Use>();
  for (const line of lines) {
    const key = keyOf(line);
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { count: 0, tokens: 0, quota: 0 }));
    sum.count += line.count;
    sum.tokens += line.tokens;
    sum.quota += line.quota;
  }
  return [...sums];
}

const byQuota = ([, a]: [unknown, Use], [, b]: [unknown, Use]): number => b.quota - a.quota;

/** Months from the first movement to now, newest first. */
async function monthsOf({ db, clock }: StatementDeps, userId: number, zone: string): Promise<string[]> {
  const { credits, rollups } = db.t;
  const [credit] = await db.orm
    .select({ at: sql<number | null>`min(${credits.createdAt})` })
    .from(credits)
    .where(eq(credits.userId, userId));
  const [use] = await db.orm
    .select({ at: sql<number | null>`min(${rollups.hour})` })
    .from(rollups)
    .where(eq(rollups.userId, userId));
  const now = Math.floor(clock.nowMs() / 1000);
  const first = Math.min(now, ...[credit?.at, use?.at].flatMap((at) => (at == null ? [] : [Number(at)])));
  let { year, number } = monthOf(dayText(now, zone).slice(0, 7));
  const months: string[] = [];
  while (months.length < MOST_MONTHS) {
    months.push(monthText({ year, number }));
    if (startOfMonth({ year, number }, zone) <= first) break;
    [year, number] = number === 1 ? [year - 1, 12] : [year, number - 1];
  }
  return months;
}

/** What the books have of this user besides: rows that say what a payment cost, and names of keys. */
async function namesOf({ db }: StatementDeps, userId: number) {
  const { orders, tokens } = db.t;
  const paid = await db.orm
    .select({ tradeNo: orders.tradeNo, moneyMinor: orders.moneyMinor, currency: orders.currency })
    .from(orders)
    .where(and(eq(orders.userId, userId), gte(orders.creditedAt, 1)));
  const keys = await db.orm
    .select({ id: tokens.id, name: tokens.name })
    .from(tokens)
    .where(eq(tokens.userId, userId));
  return {
    paid: new Map(paid.map((order) => [order.tradeNo, order])),
    keys: new Map(keys.map(({ id, name }) => [id, name])),
  };
}

/**
 * The month of one user in the site's zone: opening + credited − used = closing, and the next month opens with it. Amounts in
 * whole units. `month` as `2026-11`. Throws `statement_month` for anything else and for months to come, `user_missing`.
 */
export async function statementOf(
  deps: StatementDeps,
  { userId, month: asked }: { userId: number; month: string },
) {
  const { db, clock, options } = deps;
  const zone = options.get("site.time_zone");
  const month = monthOf(asked);
  const from = startOfMonth(month, zone);
  const to = startOfMonth({ ...month, number: month.number + 1 }, zone);
  const now = Math.floor(clock.nowMs() / 1000);
  if (from > now) throw refuse("statement_month");
  const { credits, reservations, users } = db.t;
  const [user] = await db.orm
    .select({ id: users.id, username: users.username, display_name: users.displayName })
    .from(users)
    .where(eq(users.id, userId));
  if (!user) throw refuse("user_missing");
  const beforeSums = await useBeforeSums(deps, userId);
  const opening = await balanceBefore(deps, userId, from, beforeSums);
  const found = await db.orm
    .select()
    .from(credits)
    .where(and(eq(credits.userId, userId), gte(credits.createdAt, from), lt(credits.createdAt, to)))
    .orderBy(asc(credits.createdAt), asc(credits.id));
  // An imported account begins with what it had left where the sums of its log begin.
  const rows = found.map((row) =>
    row.kind === IMPORT ? { ...row, amount: row.amount - beforeSums.used } : row,
  );
  const lines = await useLines(deps, userId, { from: wholeHour(from), to: wholeHour(to), zone });
  await nextTurn();
  const { paid, keys } = await namesOf(deps, userId);
  const [held] = await db.orm
    .select({ sum: sumOf(reservations.amount) })
    .from(reservations)
    .where(eq(reservations.userId, userId));
  const kinds = new Map<string, { kind: string; count: number; amount: number }>();
  for (const { kind, amount } of rows) {
    const sum = kinds.get(kind) ?? { kind, count: 0, amount: 0 };
    kinds.set(kind, { kind, count: sum.count + 1, amount: sum.amount + amount });
  }
  const credited = rows.reduce((sum, { amount }) => sum + amount, 0);
  const used = lines.reduce((sum, { quota }) => sum + quota, 0);
  return {
    month: asked,
    zone,
    from,
    to,
    /** The month is not over. */
    is_open: to > now,
    user,
    quota_per_unit: options.get("QuotaPerUnit"),
    opening,
    credited,
    used,
    closing: opening + credited - used,
    /** Held for calls that are under way, now; the balance that is shown elsewhere is less by it. */
    held: to > now ? (held?.sum ?? 0) : 0,
    credits: [...kinds.values()],
    entries: rows.map(({ createdAt, kind, ref, amount }) => {
      const order = paid.get(kind === "refund" ? (ref.split(":")[0] ?? "") : ref);
      return {
        at: createdAt,
        day: dayText(createdAt, zone),
        kind,
        /** The order, code or account that it came by; nothing where only the books know it. */
        ref: order ? order.tradeNo : kind === "redeem" ? ref : "",
        amount,
        money: kind === "payment" && order ? minorText(order.moneyMinor, order.currency) : "",
        currency: kind === "payment" && order ? order.currency.toUpperCase() : "",
      };
    }),
    use: {
      by_day: summed(lines, ({ day }) => day).map(([day, sums]) => ({ day, ...sums })),
      by_model: summed(lines, ({ model }) => model)
        .toSorted(byQuota)
        .map(([model, sums]) => ({ model, ...sums })),
      by_key: summed(lines, ({ tokenId }) => tokenId)
        .toSorted(byQuota)
        .map(([tokenId, sums]) => ({ token_id: tokenId, name: keys.get(tokenId) ?? "", ...sums })),
      lines: lines.map(({ tokenId, ...line }) => ({
        ...line,
        token_id: tokenId,
        name: keys.get(tokenId) ?? "",
      })),
    },
    orders: await creditedOrders(deps, { userId, from, to }),
    months: await monthsOf(deps, userId, zone),
  };
}

export type Statement = Awaited<ReturnType<typeof statementOf>>;
