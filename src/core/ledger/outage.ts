// Whether the shared database answers, and how many nodes live on it: what the ledger may trust its memory with.
// It decides nothing: it knows how long the silence lasts and the last count that was heard.
import { refusesWrites } from "../../db/away.ts";
import { fixedQuery } from "../../db/database.ts";
import { lookAround } from "../../db/look-around.ts";
import type { Look, LookAround } from "../../db/look-around.ts";
import type { RawRow } from "../../db/database.ts";
import { within } from "../kit/deadline.ts";
import type { Deps } from "../deps.ts";

/** From this age on other nodes spend unseen for so long that each may trust its share only (operations R2.8). */
export const OUTAGE_MS = 5000;
const BEAT_MS = 1000;
/** A node writes so often, and after a silence, that it lives, and counts the others. */
const SIGN_MS = 5000;
const ALIVE_SECONDS = 15;
const FORGET_SECONDS = 86_400;
const BEAT_WAIT_MS = 3000;
/** Between counts that are further apart another node may have come, spent and gone; notes of what it wrote are lost then as well. */
const UNSEEN_MS = 30_000;
const NODE_PREFIX = "node:";
const NOW = "extract(epoch from now())::bigint";

/** Writes a node's sign of life, and counts in the same statement the others, which do not see it yet. */
const SIGN = `with sign as (
    insert into marks (key, value) values ($1, ${NOW})
    on conflict (key) do update set value = excluded.value
  )
  select count(*) as others, count(*) filter (where key < $1) as rank from marks
  where key like '${NODE_PREFIX}%' and key <> $1 and value > ${NOW} - ${ALIVE_SECONDS}`;

const FORGET = `delete from marks where key like '${NODE_PREFIX}%' and value < ${NOW} - ${FORGET_SECONDS}`;

export interface OutageWatch {
  /** The database has just answered; counts only while it also takes what is written. */
  answered(): void;
  /** Since its last answer of that kind; while all is well half a second and the time of an answer; two and a half where nobody calls. */
  silentMs(): number;
  /** Asks at once; rejects with what the database said, or when it stayed silent. */
  ask(): Promise<void>;
  /** As last heard, this one included. */
  nodesAlive(): number;
  /** For how long no other node can have lived, in milliseconds, as far as was heard; 0 while one does, or none was counted yet. */
  aloneMs(): number;
  /** This node among them, in the order of their names. */
  place(): { nodes: number; rank: number };
  /** Counts the nodes for the first time, then every few seconds. */
  start(): Promise<void>;
  /** This node lives no longer. */
  close(): Promise<void>;
}

export interface OutageWatchDeps extends Pick<Deps, "db" | "nodeId"> {
  /** Milliseconds of a clock that nobody sets. */
  monotonicMs: () => number;
  /** Whose timer brings the beats; the process's own when absent. */
  around?: Pick<LookAround, "lookEvery">;
}

export function createOutageWatch({
  db,
  nodeId,
  monotonicMs,
  around = lookAround,
}: OutageWatchDeps): OutageWatch {
  const key = NODE_PREFIX + nodeId;
  let answeredAtMs = monotonicMs();
  let nodes = 1;
  let rank = 0;
  let sinceSignMs = 0;
  let isBeating = false;
  /** Of the last count. */
  let countedAtMs = monotonicMs();
  let aloneSinceMs: number | undefined;
  /** False while it answers and takes nothing: what the other nodes charge is in no table then, as in any outage. */
  let takesWrites = true;
  let stop: (() => void) | undefined;

  function run(statement: PromiseLike<RawRow[]>): Promise<RawRow[]> {
    return within(BEAT_WAIT_MS, Promise.resolve(statement));
  }

  async function sign(): Promise<void> {
    try {
      const [row] = await run(fixedQuery(db.orm, SIGN, [key]));
      nodes = 1 + Number(row?.others ?? 0);
      rank = Number(row?.rank ?? 0);
      takesWrites = true;
      const atMs = monotonicMs();
      // What another node spent until then is in the tables: the count did not see it any more.
      if (nodes > 1) aloneSinceMs = undefined;
      else if (aloneSinceMs === undefined || atMs - countedAtMs > UNSEEN_MS) aloneSinceMs = atMs;
      countedAtMs = atMs;
    } catch (error) {
      takesWrites &&= !refusesWrites(error);
      throw error;
    }
  }

  function answered(): void {
    if (takesWrites) answeredAtMs = monotonicMs();
  }

  async function beat(): Promise<void> {
    sinceSignMs = 0;
    await sign();
    answered();
  }

  async function beatQuietly({ dueMs, isWaking }: Look): Promise<void> {
    sinceSignMs += dueMs;
    // Who wakes asks the change feed at this moment: whether that is answered is known at the next beat.
    const isSilent = !isWaking && monotonicMs() - answeredAtMs >= BEAT_MS;
    if (isBeating || (sinceSignMs < SIGN_MS && !isSilent)) return;
    isBeating = true;
    // A silence is reported by those who wait for an answer.
    await beat().catch(() => undefined);
    isBeating = false;
  }

  return {
    answered,
    silentMs: () => monotonicMs() - answeredAtMs,
    async ask() {
      await run(fixedQuery(db.orm, "select 1", []));
      answered();
    },
    nodesAlive: () => nodes,
    aloneMs: () => (aloneSinceMs === undefined ? 0 : monotonicMs() - aloneSinceMs),
    place: () => ({ nodes, rank }),
    async start() {
      await run(fixedQuery(db.orm, FORGET, []));
      await beat();
      stop = around.lookEvery(BEAT_MS, (look) => void beatQuietly(look), SIGN_MS);
    },
    async close() {
      stop?.();
      await run(fixedQuery(db.orm, "delete from marks where key = $1", [key])).catch(() => undefined);
    },
  };
}
