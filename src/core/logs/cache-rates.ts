// How much of the prompts came from caches, and what that was worth: by channel, model, user, or rule of affinity.
// Refuses to guess: calls whose upstream said nothing of its usage are in no rate.
import { and, gte, inArray, lt, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { sumOf } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
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

async function byField(
  db: Database,
  by: keyof typeof FIELDS,
  from: number,
  to: number,
): Promise<(CacheSums & { id: string })[]> {
  const field = FIELDS[by];
  const parts = await sumParts(db, { filter: { type: 0, from, to }, from, to, by: [field] });
  const found = await Promise.all(
    parts.map(({ table, where }) => {
      const column = table[field] as PgColumn;
      return db.reader
        .select({ id: sql<string | number>`${column}`.as("id"), ...sumsOf(table) })
        .from(table)
        .where(where)
        .groupBy(column);
    }),
  );
  const sums = new Map<string, CacheSums>();
  for (const { id, ...raw } of found.flat()) sums.set(String(id), add(sums.get(String(id)) ?? NOTHING, raw));
  return [...sums].map(([id, raw]) => ({ id, ...raw }));
}

async function byRule(db: Database, from: number, to: number): Promise<CacheRow[]> {
  const { affinitySums: t } = db.t;
  const rows = await db.reader
    .select({ id: t.rule, ...sumsOf(t), kept: sumOf(t.kept), switched: sumOf(t.switched) })
    .from(t)
    .where(and(gte(t.hour, from), lt(t.hour, to)))
    .groupBy(t.rule);
  return rows.map((row) => ({ ...row, name: row.id }));
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
  const found: (CacheSums & { id: string })[] =
    by === "rule" ? await byRule(db, from, to) : await byField(db, by, from, to);
  const rows = found.filter(({ input }) => input > 0).sort((a, b) => b.input - a.input);
  const shown = rows.slice(0, MOST_ROWS);
  const names = await namesOf(
    db,
    by,
    shown.map(({ id }) => id),
  );
  return {
    from,
    to,
    by,
    total: found.reduce<CacheSums>(add, NOTHING),
    rows: shown.map((row) => ({ ...row, name: names.get(row.id) ?? "" })),
    others: rows.length - shown.length,
  };
}
