// Sessions: one row for each sign-in, kept in memory where it is used, ended by a sign-out, its age, or the account.
// Refuses to ask the database on every call: rows are read on first use, and re-read when a node tells of their change.
import { randomBytes } from "node:crypto";
import { and, desc, eq, inArray, isNull, lt, ne, or, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";

export const SESSION_SECONDS = 30 * 24 * 3600;
/** Ended rows stay so long for the account's own list and for whoever looks into a break-in. */
const KEPT_SECONDS = 30 * 24 * 3600;
const MAX_LIVE = 50;
const MAX_CACHED = 100_000;
const SEEN_STEP_SECONDS = 300;
const WRITE_MS = 60_000;
const MAX_AGENT_CHARS = 256;
const MAX_READS = 5;

export interface NewSession {
  userId: number;
  sessionVersion: number;
  method: "password";
  ip: string;
  userAgent: string;
}

export interface Session {
  readonly id: string;
  readonly userId: number;
  readonly sessionVersion: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export interface Sessions {
  /** Opens a new session and answers its id. */
  open(fields: NewSession): Promise<string>;
  /** The live session of this id; a known one answers at once. */
  find(id: string): Session | undefined | Promise<Session | undefined>;
  /** Notes that the session was used now, from this address; written later. */
  seen(session: Session, ip: string): void;
  /** Ends one session, on every node. */
  end(id: string, reason: string): Promise<void>;
  /** Ends all sessions of a user but, where it is named, one; that one goes on under the given version. */
  endAll(userId: number, reason: string, kept?: { id: string; sessionVersion: number }): Promise<void>;
  /** Removes the rows of a user who is removed. */
  remove(userId: number): Promise<void>;
  /** Deletes rows whose session ended long ago. */
  purge(): Promise<void>;
  /** Writes down when sessions were last used. */
  write(): Promise<void>;
  close(): Promise<void>;
}

interface Entry extends Session {
  sessionVersion: number;
  /** False: ended, or there is no such row. */
  isLive: boolean;
  lastSeenAt: number;
  lastIp: string;
}

export async function createSessions({
  db,
  clock,
  logger,
  maxCached = MAX_CACHED,
}: Pick<Deps, "db" | "clock" | "logger"> & { maxCached?: number }): Promise<Sessions> {
  const { sessions, users } = db.t;
  const cache = new Map<string, Entry>();
  /** Reads under way; one that a change overtook is repeated. */
  const loads = new Map<string, { isOld: boolean; result: Promise<Entry> }>();
  /** Used since they were last written. */
  const dirty = new Map<string, Entry>();
  const nowSeconds = () => Math.floor(clock.nowMs() / 1000);

  function forget(id: string): void {
    const load = loads.get(id);
    if (load) load.isOld = true;
    cache.delete(id);
  }

  function keep(entry: Entry): void {
    cache.set(entry.id, entry);
    const [oldest] = cache.keys();
    if (cache.size > maxCached && oldest !== undefined) cache.delete(oldest);
  }

  const isValid = (entry: Entry): boolean => entry.isLive && entry.expiresAt > nowSeconds();

  async function read(id: string, load: { isOld: boolean }): Promise<Entry> {
    for (let reads = 1; ; reads++) {
      load.isOld = false;
      const [row] = await db.orm.select().from(sessions).where(eq(sessions.id, id));
      const entry: Entry = row
        ? { ...row, isLive: row.revokedAt === null }
        : { id, userId: 0, sessionVersion: 0, expiresAt: 0, isLive: false, lastSeenAt: 0, lastIp: "" };
      if (!load.isOld) keep(entry);
      if (!load.isOld || reads >= MAX_READS) return entry;
    }
  }

  function load(id: string): Promise<Entry> {
    const under = loads.get(id);
    if (under) return under.result;
    const started = { isOld: false, result: Promise.resolve() as unknown as Promise<Entry> };
    started.result = read(id, started).finally(() => loads.delete(id));
    loads.set(id, started);
    return started.result;
  }

  /** Changes rows and tells the other nodes of them, both or neither; then forgets them here. */
  async function change(steps: (tx: Orm) => Steps<readonly string[]>): Promise<void> {
    const ids = await db.atomic(function* (tx): Steps<readonly string[]> {
      const changed = yield* steps(tx);
      yield* db.announceSteps(tx, "sessions", changed);
      return changed;
    });
    for (const id of ids) forget(id);
  }

  await db.onChange("sessions", {
    changed: (ids) => ids.forEach(forget),
    lost() {
      for (const each of loads.values()) each.isOld = true;
      cache.clear();
    },
  });

  async function write(): Promise<void> {
    if (dirty.size === 0) return;
    const entries = [...dirty.values()];
    dirty.clear();
    const list = JSON.stringify(entries.map(({ id, lastSeenAt, lastIp }) => [id, lastSeenAt, lastIp]));
    const seen =
      db.kind === "postgres"
        ? sql`json_array_elements(${list}::json) as seen(value)`
        : sql`json_each(${list}) as seen`;
    try {
      await db.orm
        .update(sessions)
        .set({
          lastSeenAt: sql`cast(value->>1 as bigint)`,
          lastIp: sql`value->>2`,
        })
        .from(seen)
        .where(eq(sessions.id, sql`value->>0`));
    } catch (error) {
      // They are noted again with their next use; only the figure of a list is older meanwhile.
      logger.warn("sessions' last use could not be written", { error: String(error) });
    }
  }

  const timer = setInterval(() => void write(), WRITE_MS);
  timer.unref();

  return {
    async open({ userId, sessionVersion, method, ip, userAgent }) {
      const id = randomBytes(16).toString("hex");
      const now = nowSeconds();
      await change(function* (tx) {
        // Sign-ins of one user over several nodes count one after another.
        if (db.kind === "postgres")
          yield* q(tx.select({ id: users.id }).from(users).where(eq(users.id, userId)).for("no key update"));
        const live = yield* q(
          tx
            .select({ id: sessions.id })
            .from(sessions)
            .where(
              and(
                eq(sessions.userId, userId),
                isNull(sessions.revokedAt),
                sql`${sessions.expiresAt} > ${now}`,
                eq(sessions.sessionVersion, sessionVersion),
              ),
            )
            .orderBy(desc(sessions.lastSeenAt), desc(sessions.createdAt), sessions.id),
        );
        yield* q(
          tx
            .insert(sessions)
            .values({
              id,
              userId,
              sessionVersion,
              method,
              ip,
              lastIp: ip,
              userAgent: userAgent.slice(0, MAX_AGENT_CHARS),
              createdAt: now,
              lastSeenAt: now,
              expiresAt: now + SESSION_SECONDS,
            })
            .returning({ id: sessions.id }),
        );
        const tooMany = live.slice(MAX_LIVE - 1).map((each) => each.id);
        if (tooMany.length > 0)
          yield* q(
            tx
              .update(sessions)
              .set({ revokedAt: now, reason: "too_many" })
              .where(inArray(sessions.id, tooMany))
              .returning({ id: sessions.id }),
          );
        return tooMany;
      });
      return id;
    },
    find(id) {
      const known = cache.get(id);
      if (known) return isValid(known) ? known : undefined;
      return load(id).then((entry) => (isValid(entry) ? entry : undefined));
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
    async end(id, reason) {
      await change(function* (tx) {
        const rows = yield* q(
          tx
            .update(sessions)
            .set({ revokedAt: nowSeconds(), reason })
            .where(and(eq(sessions.id, id), isNull(sessions.revokedAt)))
            .returning({ id: sessions.id }),
        );
        return rows.map((row) => row.id);
      });
    },
    async endAll(userId, reason, kept) {
      await change(function* (tx) {
        const others = yield* q(
          tx
            .update(sessions)
            .set({ revokedAt: nowSeconds(), reason })
            .where(
              and(
                eq(sessions.userId, userId),
                isNull(sessions.revokedAt),
                kept ? ne(sessions.id, kept.id) : undefined,
              ),
            )
            .returning({ id: sessions.id }),
        );
        if (!kept) return others.map((row) => row.id);
        const { id, sessionVersion } = kept;
        const own = yield* q(
          tx
            .update(sessions)
            .set({ sessionVersion })
            .where(and(eq(sessions.id, id), eq(sessions.userId, userId)))
            .returning({ id: sessions.id }),
        );
        return [...others, ...own].map((row) => row.id);
      });
    },
    async remove(userId) {
      await change(function* (tx) {
        const rows = yield* q(
          tx.delete(sessions).where(eq(sessions.userId, userId)).returning({ id: sessions.id }),
        );
        return rows.map((row) => row.id);
      });
    },
    async purge() {
      const before = nowSeconds() - KEPT_SECONDS;
      await db.orm.delete(sessions).where(or(lt(sessions.expiresAt, before), lt(sessions.revokedAt, before)));
    },
    write,
    async close() {
      clearInterval(timer);
      await write();
    },
  };
}
