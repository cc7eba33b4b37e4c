// Which rows were written in PostgreSQL since somebody last asked, by whatever process: triggers note it beside each write (drizzle/row-changes.ts). Exact in any order of commits: what counts is which transactions a snapshot sees, not
// numbers that were drawn before the commit.
// Refuses to leave anything out: where it cannot know it says so, and its caller reads everything anew.
import { fixedQuery } from "./database.ts";
import type { Orm } from "./database.ts";

/** Kinds that are noted. */
export type NotedKind = "users" | "tokens" | "channels" | "costs" | "inbox";

export interface RowChanges<K extends NotedKind> {
  /**
   * Ids of the rows whose writers have committed since the call before; undefined where that is not known: the first time,
   * after a long pause, after a new start of the server, or because they are too many. Rejects while the database is away.
   * Nothing is lost then, nor where the caller does not wait for the answer: the next call tells it.
   */
  next(): Promise<Readonly<Record<K, number[]>> | undefined>;
}

/** Sees no transaction as new. */
const NOTHING_NEW = "9223372036854775807:9223372036854775807:";
/** Who asks less often is told nothing: notes are kept twice as long. */
const MAX_GAP_MS = 30_000;
const KEEP_MS = 2 * MAX_GAP_MS;
const TRIM_EVERY_MS = 15_000;
/** Any constant: the same for all processes, so that one of them tidies up at a time. */
const TRIM_LOCK = 0x77656973;

const NEW_ONES = `with fresh as materialized (
    select kind, ids from row_changes
    where kind = any(string_to_array($2::text, ','))
      and xact >= pg_snapshot_xmin($1::text::pg_snapshot)
      and not pg_visible_in_snapshot(xact, $1::text::pg_snapshot)
  )
  select pg_current_snapshot()::text as snapshot, pg_snapshot_xmin(pg_current_snapshot())::text as xmin,
    extract(epoch from pg_postmaster_start_time())::text as server,
    (select count(*) from fresh where ids is null)::int as many,
    (select json_object_agg(kind, ids)::text from (
      select kind, array_agg(distinct id) as ids from fresh, unnest(ids) as id group by kind) as each) as told`;

/** A copied database brings transactions of another server's count along: those lie ahead of this one's. */
const TRIM = `with turn as materialized (select pg_try_advisory_xact_lock(${TRIM_LOCK}) as mine)
  delete from row_changes where (select mine from turn)
    and (xact < $1::text::xid8 or xact >= pg_snapshot_xmax(pg_current_snapshot()))`;

/** `monotonicMs` is a steady clock. */
export function createRowChanges<K extends NotedKind>(
  orm: Orm,
  kinds: readonly K[],
  monotonicMs: () => number,
): RowChanges<K> {
  const list = kinds.join(",");
  let calls = 0;
  let last: { snapshot: string; server: string; atMs: number } | undefined;
  /** When every transaction below a number had ended, oldest first. */
  const ended: { atMs: number; xmin: string }[] = [];

  async function trim(xmin: string, atMs: number): Promise<void> {
    if (atMs - (ended.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) < TRIM_EVERY_MS) return;
    ended.push({ atMs, xmin });
    const [oldest] = ended;
    if (!oldest || atMs - oldest.atMs < KEEP_MS) return;
    ended.shift();
    await fixedQuery(orm, TRIM, [oldest.xmin]);
  }

  return {
    async next() {
      const atMs = monotonicMs();
      const call = ++calls;
      const [found] = await fixedQuery(orm, NEW_ONES, [last?.snapshot ?? NOTHING_NEW, list]);
      // Whoever gave it up and asked again must not miss what this answer alone would tell.
      if (!found || call !== calls) throw new Error("the answer came too late");
      const [snapshot, server] = [String(found["snapshot"]), String(found["server"])];
      const isKnown =
        last !== undefined && last.server === server && atMs - last.atMs <= MAX_GAP_MS && found["many"] === 0;
      // The numbers of another server's transactions say nothing of this one's.
      if (last?.server !== server) ended.length = 0;
      last = { snapshot, server, atMs };
      await trim(String(found["xmin"]), atMs).catch(() => undefined);
      if (!isKnown) return undefined;
      const told = JSON.parse(String(found["told"] ?? "{}")) as Partial<Record<K, number[]>>;
      return Object.fromEntries(kinds.map((kind) => [kind, told[kind] ?? []])) as Record<K, number[]>;
    },
  };
}
