// What the last days' calls would have cost at other prices: read from the log in small parts beside the traffic, each row
// replayed. Assumes that people call what they called. Refuses more than a few at once.
import { and, asc, between, eq, gt, gte, lt, or, sql } from "drizzle-orm";
import { countRows, sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import type { PriceTables } from "./prices.ts";
import { comparePrices, replay } from "./replay.ts";
import type { Comparison } from "./replay.ts";

/** Sums in units: at the prices in force, at the planned ones, and as they were charged. */
export interface Sums {
  calls: number;
  old: number;
  new: number;
  charged: number;
}

export interface WhatIf extends Sums {
  /** Unix seconds. */
  from: number;
  to: number;
  /** Only every so manieth hour was read, and the sums are projected; 1 = every hour. */
  everyHours: number;
  /** Calls whose replay is not exact: rows of other software, old estimates, no figures, no log. */
  approximate: { calls: number; charged: number };
  /** Calls that began within a second of a moment at which their price changes. */
  uncertain: number;
  /** Calls of models that would have no price: they would be refused. */
  lostCalls: number;
  /** Calls that failed: a number alone, nobody knows what they would have cost. */
  refusedCalls: number;
  /** Those that change most first. */
  byModel: (Sums & { model: string })[];
  byGroup: (Sums & { group: string })[];
  /** Those whose bills rise most first. */
  byUser: (Sums & { userId: number; username: string })[];
  cells: (Sums & { model: string; group: string; userId: number; username: string })[];
}

interface Cell extends Sums {
  model: string;
  group: string;
  userId: number;
  username: string;
  /** Charged without figures: to be scaled by what the model's other calls do. */
  unknownCalls: number;
  unknown: number;
}

export interface WhatIfQuery {
  before: PriceTables;
  after: PriceTables;
  days: number;
  nowMs: number;
  /** Ends the reading when nobody waits for it any more. */
  signal?: AbortSignal | undefined;
  /** More rows than this are read in samples. */
  maxRows?: number;
}

const HOUR = 3600;
const DAY = 86_400;
const MAX_ROWS = 2_000_000;
/** Rows of a part: some milliseconds of the event loop. */
const PART_ROWS = 1000;
const MOST = { models: 500, groups: 200, users: 50, cells: 100 };
/** At once: one runs, the others wait. */
const MOST_WAITING = 4;

/** The end of the last one that was asked for, and how many are not through. */
const lines = new WeakMap<Database, { last: Promise<unknown>; length: number }>();

/** Runs one after the other: reading the log is work for the database. */
export async function whatIf(db: Database, query: WhatIfQuery): Promise<WhatIf> {
  const line = lines.get(db) ?? { last: Promise.resolve(), length: 0 };
  lines.set(db, line);
  if (line.length >= MOST_WAITING) throw new Failure("limit", "price_what_if_busy");
  line.length += 1;
  const mine = line.last.then(() => run(db, query));
  line.last = mine.catch(() => undefined);
  try {
    return await mine;
  } finally {
    line.length -= 1;
  }
}

interface Totals {
  cells: Map<string, Cell>;
  approximateCalls: number;
  approximateCharged: number;
  uncertainCalls: number;
  lostCalls: number;
}

function cellOf(
  { cells }: Totals,
  { model, group, userId, username }: Pick<Cell, "model" | "group" | "userId" | "username">,
): Cell {
  const key = `${userId} ${JSON.stringify([model, group])}`;
  let cell = cells.get(key);
  if (!cell) {
    const sums = { calls: 0, old: 0, new: 0, charged: 0, unknownCalls: 0, unknown: 0 };
    cells.set(key, (cell = { model, group, userId, username, ...sums }));
  }
  if (username !== "") cell.username = username;
  return cell;
}

async function run(db: Database, query: WhatIfQuery): Promise<WhatIf> {
  const { before, after, days, nowMs, maxRows = MAX_ROWS } = query;
  const to = Math.floor(nowMs / 1000);
  // At the hour, so that the hourly sums are of the same calls.
  const from = Math.floor((to - days * DAY) / HOUR) * HOUR;
  const comparison = comparePrices(before, after);
  const totals: Totals = {
    cells: new Map(),
    approximateCalls: 0,
    approximateCharged: 0,
    uncertainCalls: 0,
    lostCalls: 0,
  };
  const hours = await loggedHours(db, from, to);
  const logged = hours.reduce((sum, { count: rows }) => sum + rows, 0);
  const counts = new Map(hours.map((each) => [each.hour, each.count]));
  const { everyHours, phase, readCount } = sampleOf(hours, logged, maxRows);
  for (let hour = from; hour <= to; hour += HOUR) {
    if ((hour / HOUR) % everyHours !== phase) continue;
    for (const slice of slicesOf(hour, Math.min(hour + HOUR, to + 1), counts.get(hour) ?? 0))
      await readRows(db, query, comparison, totals, slice);
  }
  project(totals, everyHours === 1 || readCount === 0 ? 1 : logged / readCount);
  await addUnlogged(db, totals, from, to);
  scaleUnknown(totals, comparison);
  return {
    from,
    to,
    everyHours,
    refusedCalls: await failedCalls(db, from, to),
    ...summary(totals),
  };
}

/** Hours with rows in the log, and how many; sums of the roll-ups, so that nothing is counted row by row. */
async function loggedHours(
  db: Database,
  from: number,
  to: number,
): Promise<{ hour: number; count: number }[]> {
  const { rollups } = db.t;
  return db.reader
    .select({ hour: rollups.hour, count: sumOf(rollups.loggedCount) })
    .from(rollups)
    .where(between(rollups.hour, from, to))
    .groupBy(rollups.hour)
    .orderBy(asc(rollups.hour));
}

/**
 * Which hours are read: all of them, or every so manieth from the phase on whose share of the rows is the fairest. Never a
 * divisor of a day, or the same hours of each day would stand for all.
 */
function sampleOf(
  hours: readonly { hour: number; count: number }[],
  logged: number,
  maxRows: number,
): { everyHours: number; phase: number; readCount: number } {
  let everyHours = Math.max(1, Math.ceil(logged / maxRows));
  if (everyHours === 1) return { everyHours, phase: 0, readCount: logged };
  while (everyHours % 2 === 0 || everyHours % 3 === 0) everyHours += 1;
  const shares = Array.from({ length: everyHours }, () => 0);
  for (const { hour, count } of hours) {
    const phase = (hour / HOUR) % everyHours;
    shares[phase] = (shares[phase] ?? 0) + count;
  }
  const fair = logged / everyHours;
  // An empty share says nothing at all.
  const distance = (share: number): number => (share === 0 ? Infinity : Math.abs(share - fair));
  const phase = shares.reduce(
    (best, share, at) => (distance(share) < distance(shares[best] ?? 0) ? at : best),
    0,
  );
  return { everyHours, phase, readCount: shares[phase] ?? 0 };
}

/**
 * The time in slices of a part each, by how many rows its hour has: a database that has to sort a slice sorts no more than
 * that, however busy the hour was.
 */
function slicesOf(from: number, end: number, rows: number): { from: number; end: number }[] {
  const parts = Math.max(1, Math.ceil(rows / PART_ROWS));
  const seconds = Math.max(1, Math.ceil((end - from) / parts));
  const slices: { from: number; end: number }[] = [];
  for (let at = from; at < end; at += seconds) slices.push({ from: at, end: Math.min(at + seconds, end) });
  return slices;
}

async function readRows(
  db: Database,
  { signal }: WhatIfQuery,
  comparison: Comparison,
  totals: Totals,
  range: { from: number; end: number },
): Promise<void> {
  const { logs } = db.t;
  let at = range.from;
  let lastId = 0;
  for (;;) {
    if (signal?.aborted === true) throw new Failure("client", "client_gone", { status: 499 });
    const rows = await db.reader
      .select({
        id: logs.id,
        createdAt: logs.createdAt,
        userId: logs.userId,
        username: logs.username,
        model: logs.modelName,
        group: logs.group,
        quota: logs.quota,
        prompt_tokens: logs.promptTokens,
        completion_tokens: logs.completionTokens,
        useTimeMs: logs.useTimeMs,
        other: logs.other,
      })
      .from(logs)
      .where(
        and(
          eq(logs.type, LogType.consume),
          gte(logs.createdAt, at),
          lt(logs.createdAt, range.end),
          or(gt(logs.createdAt, at), gt(logs.id, lastId)),
        ),
      )
      .orderBy(asc(logs.createdAt), asc(logs.id))
      .limit(PART_ROWS);
    for (const row of rows) addRow(totals, comparison, row);
    const last = rows.at(-1);
    if (!last || rows.length < PART_ROWS) return;
    at = last.createdAt;
    lastId = last.id;
  }
}

interface Row {
  userId: number;
  username: string;
  model: string;
  group: string;
  quota: number;
  prompt_tokens: number;
  completion_tokens: number;
  createdAt: number;
  useTimeMs: number;
  other: string;
}

function fieldsOf(other: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(other === "" ? "{}" : other);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function addRow(totals: Totals, comparison: Comparison, row: Row): void {
  const startMs = row.createdAt * 1000 - row.useTimeMs;
  const replayed = replay({ ...row, startMs, other: fieldsOf(row.other) }, comparison);
  const cell = cellOf(totals, row);
  cell.calls += 1;
  cell.charged += row.quota;
  cell.old += replayed.old;
  cell.new += replayed.new;
  if (replayed.isLost) totals.lostCalls += 1;
  if (replayed.isUncertain) totals.uncertainCalls += 1;
  if (replayed.trust === "exact") return;
  totals.approximateCalls += 1;
  totals.approximateCharged += row.quota;
  if (replayed.trust !== "unknown") return;
  cell.unknownCalls += 1;
  cell.unknown += row.quota;
}

/** From the hours that were read to all of them. */
function project(totals: Totals, factor: number): void {
  if (factor === 1) return;
  for (const cell of totals.cells.values())
    for (const name of ["calls", "old", "new", "charged", "unknownCalls", "unknown"] as const)
      cell[name] = Math.round(cell[name] * factor);
  totals.lostCalls = Math.round(totals.lostCalls * factor);
  totals.uncertainCalls = Math.round(totals.uncertainCalls * factor);
  totals.approximateCalls = Math.round(totals.approximateCalls * factor);
  totals.approximateCharged = Math.round(totals.approximateCharged * factor);
}

/** What was charged while no log was written: the roll-ups have the sums, and nothing else. */
async function addUnlogged(db: Database, totals: Totals, from: number, to: number): Promise<void> {
  const { rollups } = db.t;
  const calls = sumOf(sql`${rollups.count} - ${rollups.loggedCount}`);
  const quota = sumOf(sql`${rollups.quota} - ${rollups.loggedQuota}`);
  const rows = await db.reader
    .select({ userId: rollups.userId, model: rollups.modelName, group: rollups.group, calls, quota })
    .from(rollups)
    .where(and(between(rollups.hour, from, to), sql`${rollups.count} > ${rollups.loggedCount}`))
    .groupBy(rollups.userId, rollups.modelName, rollups.group);
  for (const row of rows) {
    const cell = cellOf(totals, { ...row, username: "" });
    cell.calls += row.calls;
    cell.charged += row.quota;
    cell.unknownCalls += row.calls;
    cell.unknown += row.quota;
    totals.approximateCalls += row.calls;
    totals.approximateCharged += row.quota;
  }
}

/** Charges without figures change as the model's other charges do on the mean; without any, as its first price does. */
function scaleUnknown({ cells }: Totals, comparison: Comparison): void {
  const known = new Map<string, { old: number; new: number; charged: number }>();
  for (const cell of cells.values()) {
    const sums = known.get(cell.model) ?? { old: 0, new: 0, charged: 0 };
    sums.old += cell.old;
    sums.new += cell.new;
    sums.charged += cell.charged - cell.unknown;
    known.set(cell.model, sums);
  }
  for (const cell of cells.values()) {
    if (cell.unknown === 0) continue;
    const sums = known.get(cell.model);
    const pair = comparison.pricesOf([cell.model], cell.group, cell.group);
    if (sums && sums.old > 0 && sums.charged > 0) {
      cell.old += Math.round((cell.unknown * sums.old) / sums.charged);
      cell.new += Math.round((cell.unknown * sums.new) / sums.charged);
      continue;
    }
    const firstPrice = ({ price: { ratios, groupRatio } }: typeof pair.old): number =>
      (ratios.callPrice ?? ratios.modelRatio) * groupRatio;
    const old = firstPrice(pair.old);
    cell.old += cell.unknown;
    cell.new +=
      pair.isSame || old === 0 ? cell.unknown : Math.round((cell.unknown * firstPrice(pair.new)) / old);
  }
}

async function failedCalls(db: Database, from: number, to: number): Promise<number> {
  const { logs } = db.t;
  const [row] = await db.reader
    .select({ calls: countRows() })
    .from(logs)
    .where(and(eq(logs.type, LogType.error), between(logs.createdAt, from, to)));
  return row?.calls ?? 0;
}

const rise = (sums: Sums): number => sums.new - sums.old;
const byRise = (a: Sums, b: Sums): number => rise(b) - rise(a) || b.old - a.old;
const byChange = (a: Sums, b: Sums): number => Math.abs(rise(b)) - Math.abs(rise(a)) || b.old - a.old;

function grouped<T extends object>(
  cells: readonly Cell[],
  keyOf: (cell: Cell) => string | number,
  fieldsOfGroup: (cell: Cell) => T,
): (Sums & T)[] {
  const groups = new Map<string | number, Sums & T>();
  for (const cell of cells) {
    const key = keyOf(cell);
    let sums = groups.get(key);
    if (!sums) groups.set(key, (sums = { ...fieldsOfGroup(cell), calls: 0, old: 0, new: 0, charged: 0 }));
    for (const name of ["calls", "old", "new", "charged"] as const) sums[name] += cell[name];
  }
  return [...groups.values()];
}

function summary(totals: Totals): Omit<WhatIf, "from" | "to" | "everyHours" | "refusedCalls"> {
  const cells = [...totals.cells.values()];
  const [all] = grouped(
    cells,
    () => "",
    () => ({}),
  );
  const named = new Map(cells.map((cell) => [cell.userId, cell.username]));
  for (const { userId, username } of cells) if (username !== "") named.set(userId, username);
  const nameOf = (userId: number): string => named.get(userId) ?? "";
  return {
    ...(all ?? { calls: 0, old: 0, new: 0, charged: 0 }),
    approximate: { calls: totals.approximateCalls, charged: totals.approximateCharged },
    uncertain: totals.uncertainCalls,
    lostCalls: totals.lostCalls,
    byModel: grouped(
      cells,
      ({ model }) => model,
      ({ model }) => ({ model }),
    )
      .sort(byChange)
      .slice(0, MOST.models),
    byGroup: grouped(
      cells,
      ({ group }) => group,
      ({ group }) => ({ group }),
    )
      .sort(byChange)
      .slice(0, MOST.groups),
    byUser: grouped(
      cells,
      ({ userId }) => userId,
      ({ userId }) => ({ userId, username: nameOf(userId) }),
    )
      .sort(byRise)
      .slice(0, MOST.users),
    cells: cells
      .map(({ model, group, userId, calls, old, new: fresh, charged }) => ({
        model,
        group,
        userId,
        username: nameOf(userId),
        calls,
        old,
        new: fresh,
        charged,
      }))
      .sort(byRise)
      .slice(0, MOST.cells),
  };
}
