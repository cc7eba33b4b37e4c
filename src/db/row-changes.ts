// Which rows were written in PostgreSQL since somebody last asked, by whatever process: triggers note it beside each write (drizzle/row-changes.ts). Exact in any order of commits: what counts is which transactions a snapshot sees, not
// numbers that were drawn before the commit.
// Refuses to leave anything out: where it cannot know it says so, and its caller reads everything anew.
import { MARK_KIND } from "../../drizzle/row-changes.ts";
import { fixedQuery } from "./database.ts";
import type { Orm } from "./database.ts";

/** Kinds that are noted. */
export type NotedKind = "users" | "tokens" | "channels" | "costs" | "inbox";

/** One look: what was written of which kind, and the marks that were asked for with it. */
interface RowLook<K extends NotedKind> {
  /** Undefined where that is not known. */
  told: Readonly<Record<K, number[]>> | undefined;
  /** Value by key. */
  marks: ReadonlyMap<string, number>;
}

export interface RowChanges<K extends NotedKind> {
  /**
   * Ids of the rows whose writers have committed since the call before; undefined where that is not known: the first time,
   * after a long pause, after a new start or a crash of the server, or because they are too many. Rejects while the database is away.
   * Nothing is lost then, nor where the caller does not wait for the answer: the next call tells it.
   */
  next(): Promise<Readonly<Record<K, number[]>> | undefined>;
  /** The same, together with the marks whose keys begin as the caller of `createRowChanges` said: one question for both. */
  look(): Promise<RowLook<K>>;
}

/** Sees no transaction as new. */
const NOTHING_NEW = "9223372036854775807:9223372036854775807:";
/** Who asks less often is told nothing: notes are kept twice as long. */
const MAX_GAP_MS = 30_000;
const KEEP_MS = 2 * MAX_GAP_MS;
const TRIM_EVERY_MS = 15_000;
/** Any constant: the same for all processes, so that one of them tidies up at a time. */
const TRIM_LOCK = 0x77656973;

/** Its `xact` is nobody's. */
const MARK_XACT = "0";

/** Who writes it at the same time as another gets the other's. */
const WRITE_MARK = `insert into row_changes (xact, kind, ids)
  values ('${MARK_XACT}', '${MARK_KIND}', array[(extract(epoch from clock_timestamp()) * 1000000)::bigint])
  on conflict (kind) where kind = '${MARK_KIND}' do update set kind = excluded.kind
  returning ids[1]::text as mark`;

/**
 * What a snapshot did not see began behind it or was running: asked for by these numbers, it is found at once, however long
 * a forgotten transaction has been open.
 */
const NEW_ONES = `with fresh as materialized (
    select kind, ids from row_changes
    where kind = any(string_to_array($2::text, ','))
      and (xact >= pg_snapshot_xmax($1::text::pg_snapshot)
        or xact = any(array(select pg_snapshot_xip($1::text::pg_snapshot))))
  )
  select pg_current_snapshot()::text as snapshot, extract(epoch from pg_postmaster_start_time())::text as server,
    (select ids[1]::text from row_changes where kind = '${MARK_KIND}') as mark,
    extract(epoch from clock_timestamp())::float8 * 1000 as at_ms,
    (select count(*) from fresh where ids is null)::int as many,
    exists (select 1 from row_changes where kind <> '${MARK_KIND}') as noted,
    (select json_object_agg(kind, ids)::text from (
      select kind, array_agg(distinct id) as ids from fresh, unnest(ids) as id group by kind) as each) as told,
    case when $3::text <> '' then
      (select json_object_agg(key, value)::text from marks where key like $3::text || '%') end as marks`;

/**
 * What a snapshot of a minute ago saw has been told to everybody who still asks. A copied database brings transactions of
 * another server's count along: those lie ahead of this one's.
 */
const TRIM = `with turn as materialized (select pg_try_advisory_xact_lock(${TRIM_LOCK}) as mine)
  delete from row_changes where (select mine from turn) and kind <> '${MARK_KIND}'
    and (pg_visible_in_snapshot(xact, $1::text::pg_snapshot) or xact >= pg_snapshot_xmax(pg_current_snapshot()))`;

/** `monotonicMs` is a steady clock. `markPrefix`: of the marks that `look` brings along; empty: none. */
export function createRowChanges<K extends NotedKind>(
  orm: Orm,
  kinds: readonly K[],
  monotonicMs: () => number,
  markPrefix = "",
): RowChanges<K> {
  const list = kinds.join(",");
  let calls = 0;
  let last: { snapshot: string; server: string; atMs: number; serverMs: number } | undefined;
  /** Oldest first. */
  const earlier: { atMs: number; snapshot: string }[] = [];

  async function trim(snapshot: string, atMs: number): Promise<void> {
    if (atMs - (earlier.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) < TRIM_EVERY_MS) return;
    earlier.push({ atMs, snapshot });
    const [oldest] = earlier;
    if (!oldest || atMs - oldest.atMs < KEEP_MS) return;
    earlier.shift();
    await fixedQuery(orm, TRIM, [oldest.snapshot]);
  }

  return {
    next: async () => (await look()).told,
    look,
  };

  async function look(): Promise<RowLook<K>> {
    const atMs = monotonicMs();
    const call = ++calls;
    const [found] = await fixedQuery(orm, NEW_ONES, [last?.snapshot ?? NOTHING_NEW, list, markPrefix]);
    // Whoever gave it up and asked again must not miss what this answer alone would tell.
    if (!found || call !== calls) throw new Error("the answer came too late");
    // Without a mark notes may be gone too: it is written, and everything is read anew behind it.
    const mark = found["mark"] ?? (await fixedQuery(orm, WRITE_MARK, []))[0]?.["mark"];
    const snapshot = String(found["snapshot"]);
    const server = `${found["server"]} ${mark ?? ""}`;
    const serverMs = Number(found["at_ms"]);
    // By the server's clock too: this machine's stands still while the machine does.
    const isRecent = last && Math.max(atMs - last.atMs, serverMs - last.serverMs) <= MAX_GAP_MS;
    const isKnown = isRecent === true && last?.server === server && found["many"] === 0;
    // The numbers of another server's transactions say nothing of this one's.
    if (last?.server !== server) earlier.length = 0;
    last = { snapshot, server, atMs, serverMs };
    if (found["noted"]) await trim(snapshot, atMs).catch(() => undefined);
    const marks = new Map(
      Object.entries(JSON.parse(String(found["marks"] ?? "{}")) as Record<string, number>),
    );
    if (!isKnown) return { told: undefined, marks };
    const ids = JSON.parse(String(found["told"] ?? "{}")) as Partial<Record<K, number[]>>;
    const told = Object.fromEntries(kinds.map((kind) => [kind, ids[kind] ?? []])) as Record<K, number[]>;
    return { told, marks };
  }
}
