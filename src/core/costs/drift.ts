// What providers billed beside what was reckoned, by UTC day and upstream model: how far apart, and whether tokens or
// prices are the reason. Refuses to change a price of sale: what it offers is a cost row, from now on.
import { and, asc, desc, eq, gt, gte, inArray, lt, ne, or, sql } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { upstreamModel } from "../channels/rows.ts";
import type { Channel } from "../channels/rows.ts";
import { LogType } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import { jsonObject } from "../../shared/json-object.ts";
import { tidyDollars, TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceRow, TokenKind } from "../../shared/price-row.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { NANOS_PER_DOLLAR, nanosOf } from "./book.ts";
import { BILL_SOURCES } from "../../shared/bill-sources.ts";
import type { BillSource } from "../../shared/bill-sources.ts";

type DriftDeps = Pick<Deps, "db" | "clock" | "routing" | "costs">;

/** Sources that speak of the same money: one has the amounts, another the tokens. */
const FAMILIES: Readonly<Record<BillSource, readonly BillSource[]>> = {
  "openai-costs": ["openai-costs", "openai-usage"],
  "openai-usage": ["openai-costs", "openai-usage"],
  "anthropic-cost": ["anthropic-cost", "anthropic-usage"],
  "anthropic-usage": ["anthropic-cost", "anthropic-usage"],
  openrouter: ["openrouter"],
  instance: ["instance"],
  csv: ["csv"],
};

const DAY_SECONDS = 86_400;
const MOST_DAYS = 93;
const MOST_CELLS = 500;
/** Tolerated: half a percent of the bill, or a cent. */
const SHARE = 0.005;
const LEAST_NANOS = 0.01 * NANOS_PER_DOLLAR;
const PAGE_ROWS = 2000;
const MOST_ROWS = 500_000;
const TOKENS_PER_MTOK = 1e6;

export interface DriftQuery {
  channelId: number;
  /** UTC days, widened; the end is not included. */
  from: number;
  to: number;
  /** Absent: that of the latest import. */
  source?: BillSource | undefined;
}

/** Nanos; null: unknown. */
interface DriftFigures {
  billed: number | null;
  billed_tokens: number | null;
  billed_calls: number | null;
  reckoned: number | null;
  reckoned_tokens: number;
  reckoned_calls: number;
  /** Calls whose cost was not known: they are in no sum. */
  unknown_calls: number;
  drift: number | null;
  /** What other tokens than ours make of it, at our costs. */
  token_drift: number | null;
  /** What other prices than our costs make of it. */
  price_drift: number | null;
  /** No more apart than is tolerated. */
  is_within: boolean;
}

interface DriftOffer {
  model: string;
  /** Dollars; null: the row in force, times `factor`. */
  row: PriceRow | null;
  factor: number;
  group_ratio: number;
}

interface DriftCell extends DriftFigures {
  day: number;
  model: string;
}

interface DriftModel extends DriftFigures {
  model: string;
  /** A cost row that would have hit the bill; null: none is needed, or the bill does not say enough. */
  offer: DriftOffer | null;
}

export interface Drift {
  channel_id: number;
  source: BillSource | null;
  from: number;
  to: number;
  total: DriftFigures;
  models: DriftModel[];
  days: DriftCell[];
  others: number;
  /** Lines of the bill that were found by the upstream's id of a call, and that have one which nobody knows. */
  matched_by_id: number;
  unmatched_ids: number;
}

/** One day of one model, ours and theirs. */
interface Cell {
  day: number;
  model: string;
  ours: { calls: number; tokens: number; nanos: number; costed: number };
  bill: {
    nanos: number | null;
    calls: number | null;
    tokens: Map<TokenKind, number>;
    amounts: Map<TokenKind, number>;
    hasTokens: boolean;
  };
}

/** Beginnings and dates that one side has and the other has not. */
function bareName(model: string): string {
  return model
    .toLowerCase()
    .replace(/^.*\//, "")
    .replace(/[-@]20\d{2}-?\d{2}-?\d{2}(?:-v\d+(?::\d+)?)?$/, "");
}

class Cells {
  readonly all = new Map<string, Cell>();
  readonly #names = new Set<string>();
  readonly #byBare = new Map<string, string | undefined>();

  at(day: number, model: string): Cell {
    const key = `${day} ${model}`;
    let cell = this.all.get(key);
    if (!cell) {
      cell = {
        day,
        model,
        ours: { calls: 0, tokens: 0, nanos: 0, costed: 0 },
        bill: { nanos: null, calls: null, tokens: new Map(), amounts: new Map(), hasTokens: false },
      };
      this.all.set(key, cell);
    }
    return cell;
  }

  /** Names of ours; a bare one that two of them share names neither. */
  know(model: string): void {
    if (this.#names.has(model)) return;
    this.#names.add(model);
    const bare = bareName(model);
    this.#byBare.set(bare, this.#byBare.has(bare) ? undefined : model);
  }

  /** Our name of a model of the bill. */
  named(model: string): string {
    if (this.#names.has(model)) return model;
    return this.#byBare.get(bareName(model)) ?? model;
  }
}

/** What was reckoned, by UTC day and the name that the channel gives the model upstream. */
async function addOurs({ db }: DriftDeps, channel: Channel, { from, to }: DriftQuery, cells: Cells) {
  const { rollups } = db.t;
  const day = sql`(${rollups.hour} - ${rollups.hour} % 86400)`;
  const rows = await db.reader
    .select({
      day: day.mapWith(Number),
      model: rollups.modelName,
      calls: sumOf(rollups.count),
      tokens: sumOf(sql`${rollups.promptTokens} + ${rollups.completionTokens}`),
      nanos: sumOf(rollups.costNanos),
      costed: sumOf(rollups.costCount),
    })
    .from(rollups)
    .where(
      and(
        eq(rollups.channelId, channel.id),
        gte(rollups.hour, from),
        lt(rollups.hour, to),
        or(gt(rollups.count, 0), ne(rollups.costNanos, 0)),
      ),
    )
    .groupBy(day, rollups.modelName);
  for (const row of rows) {
    const model = upstreamModel(channel, row.model);
    cells.know(model);
    const { ours } = cells.at(row.day, model);
    ours.calls += row.calls;
    ours.tokens += row.tokens;
    ours.nanos += row.nanos;
    ours.costed += row.costed;
  }
}

interface MatchedCall {
  day: number;
  model: string;
}

/** Calls by the id that their upstream gave them, of rows between two moments; newest first, and no more than MOST_ROWS. */
async function callsById(
  { db }: DriftDeps,
  channel: Channel,
  { from, to }: DriftQuery,
  wanted: ReadonlySet<string>,
): Promise<Map<string, MatchedCall>> {
  const { logs } = db.t;
  const found = new Map<string, MatchedCall>();
  let before = { createdAt: to + DAY_SECONDS, id: Number.MAX_SAFE_INTEGER };
  for (let read = 0; read < MOST_ROWS && found.size < wanted.size; read += PAGE_ROWS) {
    const rows = await db.reader
      .select({
        id: logs.id,
        createdAt: logs.createdAt,
        model: logs.modelName,
        channelId: logs.channelId,
        other: logs.other,
      })
      .from(logs)
      .where(
        and(
          eq(logs.type, LogType.consume),
          gte(logs.createdAt, from - DAY_SECONDS),
          sql`(${logs.createdAt}, ${logs.id}) < (${before.createdAt}, ${before.id})`,
        ),
      )
      .orderBy(desc(logs.createdAt), desc(logs.id))
      .limit(PAGE_ROWS);
    for (const row of rows) {
      if (row.channelId !== channel.id) continue;
      const info = jsonObject(row.other)?.["admin_info"] as Record<string, unknown> | undefined;
      const id = info?.["upstream_id"];
      if (typeof id !== "string" || !wanted.has(id)) continue;
      const model = info?.["upstream_model"];
      found.set(id, {
        day: row.createdAt - (row.createdAt % DAY_SECONDS),
        model: typeof model === "string" ? model : row.model,
      });
    }
    const last = rows.at(-1);
    if (!last || rows.length < PAGE_ROWS) break;
    before = { createdAt: last.createdAt, id: last.id };
  }
  return found;
}

async function addBills(
  deps: DriftDeps,
  channel: Channel,
  query: DriftQuery,
  source: BillSource,
  cells: Cells,
): Promise<{ matched: number; unmatched: number }> {
  const { costBills } = deps.db.t;
  const lines = await deps.db.reader
    .select()
    .from(costBills)
    .where(
      and(
        eq(costBills.channelId, channel.id),
        inArray(costBills.source, [...FAMILIES[source]]),
        gte(costBills.day, query.from),
        lt(costBills.day, query.to),
      ),
    )
    .orderBy(asc(costBills.id));
  const wanted = new Set(lines.map(({ requestId }) => requestId).filter((id) => id !== ""));
  const calls =
    wanted.size > 0 ? await callsById(deps, channel, query, wanted) : new Map<string, MatchedCall>();
  for (const line of lines) {
    const call = calls.get(line.requestId);
    const { bill } = call ? cells.at(call.day, call.model) : cells.at(line.day, cells.named(line.model));
    if (line.requests !== null) bill.calls = (bill.calls ?? 0) + line.requests;
    const kind = TOKEN_KINDS.find((each) => each === line.kind);
    if (line.amountNanos !== null) {
      bill.nanos = (bill.nanos ?? 0) + line.amountNanos;
      if (kind) bill.amounts.set(kind, (bill.amounts.get(kind) ?? 0) + line.amountNanos);
    }
    if (line.tokens !== null && kind) {
      bill.hasTokens = true;
      bill.tokens.set(kind, (bill.tokens.get(kind) ?? 0) + line.tokens);
    }
  }
  return { matched: calls.size, unmatched: wanted.size - calls.size };
}

function usageOf(tokens: ReadonlyMap<TokenKind, number>): Usage {
  const of = (kind: TokenKind) => tokens.get(kind) ?? 0;
  const usage = emptyUsage();
  return {
    ...usage,
    input: {
      ...usage.input,
      fresh: of("in"),
      cacheRead: of("cache_read"),
      cacheWrite5m: of("cache_write"),
      cacheWrite1h: of("cache_write_1h"),
      image: of("image_in"),
      audio: of("audio_in"),
    },
    output: {
      ...usage.output,
      text: of("out"),
      thinking: of("thinking"),
      image: of("image_out"),
      audio: of("audio_out"),
    },
  };
}

/** What the tokens of the bill cost at our rows; undefined: the bill has none, or we have no row. */
function expectedNanos(
  { costs }: DriftDeps,
  channelId: number,
  { day, model, bill }: Cell,
): number | undefined {
  if (!bill.hasTokens) return undefined;
  const atMs = (day + DAY_SECONDS) * 1000 - 1;
  const price = costs.price(channelId, { upstreamModel: model, model }, atMs);
  if (!price || price.ratios.callPrice !== undefined) return undefined;
  // Sums of a day: conditions on the length of single calls cannot act on them.
  return nanosOf({ ...price, rules: undefined }, { usage: usageOf(bill.tokens), facts: {}, atMs });
}

interface Sums {
  billed: number | null;
  tokens: number | null;
  calls: number | null;
  ours: Cell["ours"];
  /** Of the days on which tokens and amount of the bill are known, with a row of ours. */
  expected: number | null;
  expectedBilled: number;
}

const NO_SUMS = (): Sums => ({
  billed: null,
  tokens: null,
  calls: null,
  ours: { calls: 0, tokens: 0, nanos: 0, costed: 0 },
  expected: null,
  expectedBilled: 0,
});

function plus(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}

function figuresOf(sums: Sums, isWhole: boolean): DriftFigures {
  const { ours, billed, expected } = sums;
  const reckoned = ours.costed > 0 || ours.nanos > 0 ? ours.nanos : ours.calls === 0 ? 0 : null;
  const drift = billed === null || reckoned === null ? null : billed - reckoned;
  const isSplit = drift !== null && expected !== null && isWhole;
  return {
    billed,
    billed_tokens: sums.tokens,
    billed_calls: sums.calls,
    reckoned,
    reckoned_tokens: ours.tokens,
    reckoned_calls: ours.calls,
    unknown_calls: ours.calls - ours.costed,
    drift,
    token_drift: isSplit && reckoned !== null ? expected - reckoned : null,
    price_drift: isSplit && billed !== null ? billed - expected : null,
    is_within: drift !== null && isTolerated(drift, billed ?? 0),
  };
}

/** Half a percent of the bill, or a cent, whichever is more. */
export function isTolerated(drift: number, billed: number): boolean {
  return Math.abs(drift) <= Math.max(SHARE * Math.abs(billed), LEAST_NANOS);
}

function sumCells(
  cells: readonly Cell[],
  expectedOf: (cell: Cell) => number | undefined,
): { sums: Sums; isWhole: boolean } {
  const sums = NO_SUMS();
  let isWhole = true;
  for (const cell of cells) {
    const { bill, ours } = cell;
    sums.billed = plus(sums.billed, bill.nanos);
    if (bill.hasTokens)
      sums.tokens = plus(
        sums.tokens,
        [...bill.tokens.values()].reduce((a, b) => a + b, 0),
      );
    sums.calls = plus(sums.calls, bill.calls);
    sums.ours.calls += ours.calls;
    sums.ours.tokens += ours.tokens;
    sums.ours.nanos += ours.nanos;
    sums.ours.costed += ours.costed;
    const expected = expectedOf(cell);
    if (expected === undefined || bill.nanos === null) isWhole &&= bill.nanos === null && ours.nanos === 0;
    else {
      sums.expected = (sums.expected ?? 0) + expected;
      sums.expectedBilled += bill.nanos;
    }
  }
  return { sums, isWhole };
}

/** A row that says what the bill does: prices by kind where it has both, else the row in force times a factor. */
function offerOf(
  { costs, clock }: DriftDeps,
  channelId: number,
  model: string,
  cells: readonly Cell[],
  { expected, expectedBilled }: Sums,
): DriftOffer | null {
  const tokens = new Map<TokenKind, number>();
  const amounts = new Map<TokenKind, number>();
  for (const { bill } of cells) {
    for (const [kind, count] of bill.tokens) tokens.set(kind, (tokens.get(kind) ?? 0) + count);
    for (const [kind, nanos] of bill.amounts) amounts.set(kind, (amounts.get(kind) ?? 0) + nanos);
  }
  const prices: Partial<Record<TokenKind, number>> = {};
  for (const [kind, count] of tokens) {
    const nanos = amounts.get(kind);
    if (nanos !== undefined && nanos >= 0 && count > 0)
      prices[kind] = tidyDollars(((nanos / NANOS_PER_DOLLAR) * TOKENS_PER_MTOK) / count);
  }
  if (prices.in !== undefined && prices.out !== undefined)
    return { model, row: prices, factor: 1, group_ratio: 1 };
  const row = costs.row(channelId, model, clock.nowMs());
  if (!row || expected === null || expected <= 0 || expectedBilled <= 0) return null;
  const price = row.price === "" ? null : ((jsonObject(row.price) as PriceRow | undefined) ?? null);
  const factor = Number(((row.factor * expectedBilled) / expected).toPrecision(8));
  return { model, row: price, factor, group_ratio: row.groupRatio };
}

async function latestSource({ db }: DriftDeps, channelId: number): Promise<BillSource | undefined> {
  const { costImports } = db.t;
  const [row] = await db.reader
    .select({ source: costImports.source })
    .from(costImports)
    .where(eq(costImports.channelId, channelId))
    .orderBy(desc(costImports.id))
    .limit(1);
  return BILL_SOURCES.find((each) => each === row?.source);
}

/** The report. Throws record_missing, and drift_days_many for more than a quarter of a year. */
export async function drift(deps: DriftDeps, asked: DriftQuery): Promise<Drift> {
  const channel = deps.routing.channel(asked.channelId);
  if (!channel) throw refuse("record_missing");
  const from = asked.from - (asked.from % DAY_SECONDS);
  const to = Math.max(from + DAY_SECONDS, Math.ceil(asked.to / DAY_SECONDS) * DAY_SECONDS);
  if (to - from > MOST_DAYS * DAY_SECONDS) throw refuse("drift_days_many", { max: MOST_DAYS });
  const query = { ...asked, from, to };
  const source = asked.source ?? (await latestSource(deps, channel.id));
  const cells = new Cells();
  await addOurs(deps, channel, query, cells);
  const ids = source ? await addBills(deps, channel, query, source, cells) : { matched: 0, unmatched: 0 };
  const all = [...cells.all.values()];
  const expectedBy = new Map(all.map((cell) => [cell, expectedNanos(deps, channel.id, cell)]));
  const figures = (some: readonly Cell[]) => {
    const { sums, isWhole } = sumCells(some, (cell) => expectedBy.get(cell));
    return { sums, figures: figuresOf(sums, isWhole) };
  };
  const byModel = Map.groupBy(all, ({ model }) => model);
  const apart = ({ drift: by }: DriftFigures) => Math.abs(by ?? 0);
  const models = [...byModel].map(([model, some]): DriftModel => {
    const { sums, figures: own } = figures(some);
    const isWrong =
      own.price_drift === null ? !own.is_within : !isTolerated(own.price_drift, own.billed ?? 0);
    const offer = own.billed !== null && isWrong ? offerOf(deps, channel.id, model, some, sums) : null;
    return { model, ...own, offer };
  });
  const days = all
    .map((cell): DriftCell => ({ day: cell.day, model: cell.model, ...figures([cell]).figures }))
    .sort((a, b) => apart(b) - apart(a) || a.day - b.day);
  return {
    channel_id: channel.id,
    source: source ?? null,
    from,
    to,
    total: figures(all).figures,
    models: models.sort((a, b) => apart(b) - apart(a) || a.model.localeCompare(b.model)),
    days: days.slice(0, MOST_CELLS),
    others: Math.max(0, days.length - MOST_CELLS),
    matched_by_id: ids.matched,
    unmatched_ids: ids.unmatched,
  };
}
