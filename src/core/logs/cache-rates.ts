// How much of the prompts came from caches, and what that was worth: by channel, model, user, or rule of affinity.
// Refuses to guess: calls whose upstream said nothing of its usage are in no rate.
import { and, gte, inArray, lt, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { inTurns } from "../kit/turns.ts";
import { sumParts } from "./coarse.ts";

export const CACHE_DIMENSIONS = ["channel", "model", "user", "rule"] as const;
type CacheDimension = (typeof CACHE_DIMENSIONS)[number];

const HOUR_SECONDS = 3600;
/** Rows of a split; the rest is told as a number. */
const MOST_ROWS = 200;

interface CacheSums {
  calls: number;
  /** Prompt tokens that a cache could hold (fresh, read and written), and those that were read from one. */
  input: number;
  read: number;
  /** Whole units; below 0 where writing cost more than reading saved. */
  saved: number;
}

interface CacheRow extends CacheSums {
  /** A number of a channel or user, a model, or a rule. */
  id: string;
  /** What people call it; empty where it has no name (any more). */
  name: string;
  /** Of rules: calls that were served where their session was bound, and elsewhere than it was. */
  kept?: number;
  switched?: number;
}

export interface CacheRates {
  from: number;
  to: number;
  by: CacheDimension;
  total: CacheSums;
  /** The longest prompts first. */
  rows: CacheRow[];
  /** Rows beyond the most that are told. */
  others: number;
}

interface CacheQuery {
  /** Unix seconds, widened to whole hours; the end is not included. */
  from: number;
  to: number;
  by: CacheDimension;
}

const FIELDS = { channel: "channelId", model: "modelName", user: "userId" } as const;
const NOTHING: CacheSums = { calls: 0, input: 0, read: 0, saved: 0 };

function add(a: CacheSums, b: CacheSums): CacheSums {
  return {
    calls: a.calls + b.calls,
    input: a.input + b.input,
    read: a.read + b.read,
    saved: a.saved + b.saved,
  };
}

function sumsOf(table: Record<"count" | "cacheInput" | "cacheRead" | "cacheSaved", PgColumn>) {
  return {
    calls: sumOf(table.count),
    input: sumOf(table.cacheInput),
    read: sumOf(table.cacheRead),
    saved: sumOf(table.cacheSaved),
  };
}

interface Split {
  total: CacheSums;
  /** The longest prompts first, as many as are told. */
  rows: (CacheSums & { id: string })[];
  /** All that have such prompts. */
  size: number;
}

/** The database sorts all users of a site, however many, and tells those that are shown. */
async function byField(db: Database, by: keyof typeof FIELDS, from: number, to: number): Promise<Split> {
  const field = FIELDS[by];
  const filter = { type: 0, from, to };
  const [all, parts] = await Promise.all([
    sumParts(db, { filter, from, to }),
    sumParts(db, { filter, from, to, by: [field] }),
  ]);
  if (parts.length === 0) return { total: NOTHING, rows: [], size: 0 };
  const sums = parts.map(({ table, where }, at) => {
    const column = table[field] as PgColumn;
    const { calls, input, read, saved } = sumsOf(table);
    const sum = db.reader
      .select({
        id: sql`${column}`.as("id"),
        calls: calls.as("calls"),
        input: input.as("input"),
        read: read.as("read"),
        saved: saved.as("saved"),
      })
      .from(table)
      .where(where)
      .groupBy(column);
    return sql`select * from ${sum} as ${sql.raw(`of${at}`)}`;
  });
  const number = (name: string) => sql`d.${sql.identifier(name)}`.mapWith(Number);
  const [totals, found] = await inTurns(
    () =>
      Promise.all(all.map(({ table, where }) => db.reader.select(sumsOf(table)).from(table).where(where))),
    async () =>
      db.reader
        .select({
          id: sql<string | number>`d.id`,
          calls: number("calls"),
          input: number("input"),
          read: number("read"),
          saved: number("saved"),
          size: number("size"),
        })
        .from(
          sql`(select id, sum(calls) as calls, sum(input) as input, sum(read) as read, sum(saved) as saved, count(*) over () as size
            from (${sql.join(sums, sql` union all `)}) as used group by id having sum(input) > 0
            order by 3 desc, 1 limit ${sql.raw(String(MOST_ROWS))}) as d`,
        ),
  );
  const rows = found.map(({ id, calls, input, read, saved }) => ({
    id: String(id),
    calls,
    input,
    read,
    saved,
  }));
  return {
    total: raisedTo(totals.flat().reduce<CacheSums>(add, NOTHING), rows),
    rows,
    size: found[0]?.size ?? 0,
  };
}

/** What was used between the reading of the total and that of its rows is in these alone: the total has at least what they have. */
function raisedTo(total: CacheSums, rows: readonly CacheSums[]): CacheSums {
  const shown = rows.reduce<CacheSums>((sum, row) => add(sum, row), NOTHING);
  const isBehind = (["calls", "input", "read"] as const).some((figure) => total[figure] < shown[figure]);
  if (!isBehind) return total;
  return {
    calls: Math.max(total.calls, shown.calls),
    input: Math.max(total.input, shown.input),
    read: Math.max(total.read, shown.read),
    saved: Math.max(total.saved, shown.saved),
  };
}

async function byRule(db: Database, from: number, to: number): Promise<Split> {
  const { affinitySums: t } = db.t;
  const found = await db.reader
    .select({ id: t.rule, ...sumsOf(t), kept: sumOf(t.kept), switched: sumOf(t.switched) })
    .from(t)
    .where(and(gte(t.hour, from), lt(t.hour, to)))
    .groupBy(t.rule);
  const rows = found.filter(({ input }) => input > 0).sort((a, b) => b.input - a.input);
  return { total: found.reduce<CacheSums>(add, NOTHING), rows: rows.slice(0, MOST_ROWS), size: rows.length };
}

async function namesOf(
  db: Database,
  by: CacheDimension,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const { channels, users } = db.t;
  if (by === "channel" || by === "user") {
    const table = by === "channel" ? channels : users;
    const name = by === "channel" ? channels.name : users.username;
    const rows = await db.reader
      .select({ id: table.id, name })
      .from(table)
      .where(inArray(table.id, ids.map(Number)));
    return new Map(rows.map((row) => [String(row.id), row.name]));
  }
  return new Map(ids.map((id) => [id, id]));
}

export async function cacheRates({ db }: Pick<Deps, "db">, query: CacheQuery): Promise<CacheRates> {
  const { by } = query;
  const from = query.from - (query.from % HOUR_SECONDS);
  const to = Math.max(from + HOUR_SECONDS, Math.ceil(query.to / HOUR_SECONDS) * HOUR_SECONDS);
  const { total, rows, size } = await (by === "rule" ? byRule(db, from, to) : byField(db, by, from, to));
  const names = await namesOf(
    db,
    by,
    rows.map(({ id }) => id),
  );
  return {
    from,
    to,
    by,
    total,
    rows: rows.map((row) => ({ ...row, name: names.get(row.id) ?? "" })),
    others: size - rows.length,
  };
}
