// Sessions: one row for each sign-in, kept in memory where it is used, ended by a sign-out, its age, or the account.
// Refuses to query the database on every call: rows are read on first use, and re-read when a node announces a change.
import { randomBytes } from "node:crypto";
import { eq } from "drizzle-orm";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { lookEvery } from "../../db/look-around.ts";
import type { Deps } from "../deps.ts";
import {
  endAllSteps,
  endSteps,
  openSteps,
  proveSteps,
  purgeRows,
  removeSteps,
  writeLastUse,
} from "./session-rows.ts";
import type { LastUse, NewSession } from "./session-rows.ts";

const MAX_CACHED = 100_000;
const SEEN_STEP_SECONDS = 300;
const WRITE_MS = 60_000;
const MAX_READS = 5;

export interface Session {
  readonly id: string;
  readonly userId: number;
  readonly sessionVersion: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** Unix seconds until which it counts as freshly proven. */
  readonly sudoUntil: number;
  readonly method: string;
  readonly provider: string;
}

type Also = (tx: Orm) => Steps<void>;

export interface Sessions {
  /** Opens a new session and answers its id. `also`, here and below: what is written in the same transaction. */
  open(fields: NewSession, also?: Also): Promise<string>;
  /** The live session of this id; a known one answers at once. */
  find(id: string): Session | undefined | Promise<Session | undefined>;
  /** Notes that the session was used now, from this address; written later. */
  seen(session: Session, ip: string): void;
  /** The session has proven itself afresh, until then (Unix seconds); on every node. */
  prove(id: string, sudoUntil: number): Promise<void>;
  /** Ends one session, on every node. */
  end(id: string, reason: string, also?: Also): Promise<void>;
  /** Ends all sessions of a user but, where it is named, one; that one goes on under the given version. */
  endAll(
    userId: number,
    reason: string,
    kept?: { id: string; sessionVersion: number },
    also?: Also,
  ): Promise<void>;
  /** Removes the rows of a user who is removed. */
  remove(userId: number): Promise<void>;
  /** Deletes rows whose session ended long ago. */
  purge(): Promise<void>;
  /** Writes down when sessions were last used. */
  write(): Promise<void>;
  close(): Promise<void>;
}

interface Entry extends Session, LastUse {
  readonly id: string;
  sessionVersion: number;
  /** False: ended, or there is no such row. */
  isLive: boolean;
}

interface SessionCache {
  known(id: string): Entry | undefined;
  /** Reads the row; everybody who asks meanwhile shares the read. */
  load(id: string): Promise<Entry>;
  forget(id: string): void;
  forgetAll(): void;
}

/** Sessions in memory; a read that a change overtook is repeated. */
function createSessionCache({ orm, t: { sessions } }: Database, maxCached: number): SessionCache {
  const cache = new Map<string, Entry>();
  const loads = new Map<string, Promise<Entry>>();
  /** Ids of reads under way that a change has overtaken. */
  const overtaken = new Set<string>();

  function keep(entry: Entry): void {
    cache.set(entry.id, entry);
    const [oldest] = cache.keys();
    if (cache.size > maxCached && oldest !== undefined) cache.delete(oldest);
  }

  async function read(id: string): Promise<Entry> {
    for (let reads = 1; ; reads++) {
      overtaken.delete(id);
      const [row] = await orm.select().from(sessions).where(eq(sessions.id, id));
      const entry: Entry = row
        ? { ...row, isLive: row.revokedAt === null }
        : {
            id,
            userId: 0,
            sessionVersion: 0,
            expiresAt: 0,
            sudoUntil: 0,
            method: "",
            provider: "",
            isLive: false,
            lastSeenAt: 0,
            lastIp: "",
          };
      const isOld = overtaken.has(id);
      if (!isOld) keep(entry);
      if (!isOld || reads >= MAX_READS) return entry;
    }
  }

  return {
    known: (id) => cache.get(id),
    load(id) {
      let load = loads.get(id);
      if (!load) {
        load = read(id).finally(() => {
          loads.delete(id);
          overtaken.delete(id);
        });
        loads.set(id, load);
      }
      return load;
    },
    forget(id) {
      if (loads.has(id)) overtaken.add(id);
      cache.delete(id);
    },
    forgetAll() {
      for (const id of loads.keys()) overtaken.add(id);
      cache.clear();
    },
  };
}

export async function createSessions({
  db,
  clock,
  logger,
  maxCached = MAX_CACHED,
}: Pick<Deps, "db" | "clock" | "logger"> & { maxCached?: number }): Promise<Sessions> {
  const cache = createSessionCache(db, maxCached);
  /** Used since they were last written. */
  const dirty = new Map<string, Entry>();
  const nowSeconds = () => Math.floor(clock.nowMs() / 1000);
  const isValid = (entry: Entry): boolean => entry.isLive && entry.expiresAt > nowSeconds();

  /** Changes rows and announces them to the other nodes, both or neither; then forgets them here. */
  async function change(steps: (tx: Orm) => Steps<readonly string[]>, also?: Also): Promise<void> {
    const ids = await db.atomic(function* (tx): Steps<readonly string[]> {
      const changed = yield* steps(tx);
      if (also) yield* also(tx);
      yield* db.announceSteps(tx, "sessions", changed);
      return changed;
    });
    for (const id of ids) cache.forget(id);
  }

  await db.onChange("sessions", {
    changed: (ids) => ids.forEach((id) => cache.forget(id)),
    lost: () => cache.forgetAll(),
  });

  async function write(): Promise<void> {
    if (dirty.size === 0) return;
    const entries = [...dirty.values()];
    dirty.clear();
    try {
      await writeLastUse(db, entries);
    } catch (error) {
      // They are noted again with their next use; only the figure of a list is older meanwhile.
      logger.warn("sessions' last use could not be written", { error: String(error) });
    }
  }

  const stopWriting = lookEvery(WRITE_MS, () => void write());

  return {
    async open(fields, also) {
      const id = randomBytes(16).toString("hex");
      const now = nowSeconds();
      await change((tx) => openSteps(tx, db, id, fields, now), also);
      return id;
    },
    find(id) {
      const known = cache.known(id);
      if (known) return isValid(known) ? known : undefined;
      return cache.load(id).then((entry) => (isValid(entry) ? entry : undefined));
    },
    seen(session, ip) {
      const entry = session as Entry;
      const step = Math.floor(nowSeconds() / SEEN_STEP_SECONDS) * SEEN_STEP_SECONDS;
      if (entry.lastIp === ip && entry.lastSeenAt >= step && entry.lastSeenAt < step + SEEN_STEP_SECONDS)
        return;
      entry.lastSeenAt = step;
      entry.lastIp = ip;
      dirty.set(entry.id, entry);
      if (dirty.size >= maxCached) void write();
    },
    prove: (id, sudoUntil) => change((tx) => proveSteps(tx, db.t, id, sudoUntil)),
    end: (id, reason, also) => change((tx) => endSteps(tx, db.t, id, { reason, now: nowSeconds() }), also),
    endAll: (userId, reason, kept, also) =>
      change(
        (tx) => endAllSteps(tx, db.t, userId, { reason, now: nowSeconds(), ...(kept ? { kept } : {}) }),
        also,
      ),
    remove: (userId) => change((tx) => removeSteps(tx, db.t, userId)),
    purge: () => purgeRows(db, nowSeconds()),
    write,
    async close() {
      stopWriting();
      await write();
    },
  };
}
