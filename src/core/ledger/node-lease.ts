// A node's lease on its row: the row holds the journal's mark, and one process at a time may move it.
// Refuses a second process under the same node id while the first lives, and stops a process whose lease was taken.
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { and, eq, gte, lte, or, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { lookEvery } from "../../db/look-around.ts";
import type { Look, LookEvery } from "../../db/look-around.ts";
import { within } from "../kit/deadline.ts";
import type { Moment } from "../../db/moments.ts";
import type { Clock, Logger } from "../deps.ts";
import type { StorePosition } from "./journal/recovery.ts";

const LEASE_SECONDS = 30;
const RENEW_MS = 5000;
/** With every so many renewals the node tells how it is. */
const TELL_RENEWALS = 3;
/**
 * Between two renewals the mark is looked at so often: a database that fell back is noticed before somebody calls, by a process
 * that rests with the next renewal, or by the first look of whom a call wakes.
 */
const MARK_MS = 1000;
/** Renewals come every five seconds, heard or not: this long without one the process was frozen, with its machine or alone. */
const STALE_MS = 20_000;
const LOOK_MS = 1000;
const DATABASE_WAIT_MS = 5000;
/** So long a renewal waits for what the node has to tell: a disk that hangs costs it no lease. */
const FIGURES_MS = 1000;

/** The start is stopped with this sentence. */
export class NodeTaken extends Error {
  constructor(nodeId: string, dataDir: string) {
    super(
      `the node id ${nodeId} of ${dataDir} belongs to a process that is running elsewhere: give each node a DATA_DIR of its own; ` +
        "if this one is a copy whose journal nobody needs, delete node.id and the journal-*.log files in it.",
    );
  }
}

/** Nothing more may be entered under this node id by this process. */
export class LeaseLost extends Error {}

/**
 * Why a process answers no more: another one has its node id, the database does not know the node, or the tables fell back
 * further than its journal reaches.
 */
export type LossReason = "taken" | "unknown" | "missing";

const LOSS = {
  taken: "another process has taken this node's id. Stop this one, and give each node a DATA_DIR of its own",
  unknown:
    "the database does not know this node any more. Stop it, and see which database DATABASE_URL names",
};

export interface NodeLease {
  readonly nodeId: string;
  /** Stands in every statement that moves the mark. */
  readonly incarnation: number;
  readonly position: StorePosition;
  /** When this process wrote its row last, by the database's clock in seconds; Infinity from an older row to `takeOlder`. */
  readonly writtenAt: number;
  /** False once another process has taken the lease, or the tables fell back too far: nothing more may be answered. */
  readonly isHeld: boolean;
  /** Undefined while it is held. */
  readonly lostBy: LossReason | undefined;
  /** The process stood still so long that another may have taken the lease unheard: ask `confirm` before an answer. */
  isStale(): boolean;
  /** Throws LeaseLost when another has; in an outage of the database nobody can. */
  confirm(): Promise<void>;
  /** The mark as it stands in the tables now; throws LeaseLost when they are another process's. */
  look(): Promise<number>;
  /**
   * Calls with the mark once a second, with each renewal while the process rests, and until `takeOlder` where the row was older than what this process wrote of itself:
   * an older state of the database was put back, or a standby was promoted that lacked the last commits.
   */
  watchMark(listener: (mark: number, isOlder: boolean) => void): void;
  /** Whether the row was found older since this was asked last; whoever asks tells of it, so that it is told once. */
  takeOlder(): boolean;
  /** Ends it, with a sentence for the log. */
  lose(why: LossReason, sentence: string): void;
  /**
   * Lets go of the lease, so that the next start need not wait for it. Not where entries of the journal are in no table yet:
   * then it ends by itself, and the node counts as lost until somebody enters them.
   */
  release(isWhole?: boolean): Promise<void>;
}

export interface LeaseDeps {
  db: Database;
  logger: Logger;
  clock: Pick<Clock, "monotonicMs">;
  nodeId: string;
  dataDir: string;
  leaseSeconds?: number;
  /** What the other nodes may show of this one, as a text; undefined: there is nothing yet. Never rejects. */
  figures?: () => Promise<string | undefined>;
  /** Between two looks at a lease of another process; and the pause itself. */
  pause?: () => Promise<void>;
  /** Whose timer brings the rounds; the process's own when absent. */
  lookEvery?: LookEvery;
}

/** Machine, as long as it runs, and directory: a copy of the directory is another place. */
function placeOf(dataDir: string): string {
  const { dev, ino } = statSync(dataDir);
  let machine: string;
  try {
    machine = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    machine = hostname();
  }
  return createHash("sha256").update(`${machine} ${dev} ${ino}`).digest("hex").slice(0, 16);
}

/** What the statements of one process's lease share. */
interface LeaseContext extends LeaseDeps {
  leaseSeconds: number;
  place: string;
  /** On the embedded database the directory's lock is the lease: the file lies in it. */
  isShared: boolean;
  now: SQL<number>;
  leaseEnd: SQL;
  /** So often the lease was renewed. */
  renewals: number;
}

function contextOf(deps: LeaseDeps): LeaseContext {
  const leaseSeconds = deps.leaseSeconds ?? LEASE_SECONDS;
  const isShared = deps.db.kind === "postgres";
  return {
    ...deps,
    leaseSeconds,
    place: placeOf(deps.dataDir),
    isShared,
    now: isShared ? sql<number>`floor(extract(epoch from now()))` : sql<number>`unixepoch()`,
    leaseEnd: isShared ? sql`floor(extract(epoch from now())) + ${leaseSeconds}` : sql`0`,
    renewals: 0,
  };
}

interface LeaseRow {
  incarnation: number;
  history: string;
  mark: number;
  journaled: number;
  leaseUntil: number;
  place: string;
  updatedAt: number;
  now: number;
}

async function findRow({ db, nodeId, now }: LeaseContext): Promise<LeaseRow | undefined> {
  const { nodes } = db.t;
  const [row] = await db.orm
    .select({
      incarnation: nodes.incarnation,
      history: nodes.history,
      mark: nodes.mark,
      journaled: nodes.journaled,
      leaseUntil: nodes.leaseUntil,
      place: nodes.place,
      updatedAt: nodes.updatedAt,
      now: now.mapWith(Number),
    })
    .from(nodes)
    .where(eq(nodes.nodeId, nodeId));
  return row;
}

/**
 * Takes the lease of a node. Whoever holds the lock of the same directory on the same machine knows that the last process
 * is gone and takes it at once; any other waits for a full lease and is refused when it was renewed meanwhile.
 */
export async function takeLease(deps: LeaseDeps): Promise<NodeLease> {
  const context = contextOf(deps);
  const { db, logger, nodeId, dataDir, leaseSeconds } = context;
  const pause = deps.pause ?? (() => Bun.sleep(LOOK_MS));
  let seen: { leaseUntil: number; incarnation: number; patience: number } | undefined;
  for (;;) {
    const row = await findRow(context);
    if (!row) {
      const history = historyOf(await databaseNumber(db), nodeId);
      await db.orm.insert(db.t.nodes).values({ nodeId, history }).onConflictDoNothing();
      continue;
    }
    const isFree = !context.isShared || row.leaseUntil === 0 || row.place === context.place;
    if (!isFree && !seen) {
      logger.warn("another process held this node id last: waiting for its lease to end", {
        node: nodeId,
        seconds: leaseSeconds,
      });
      seen = { ...row, patience: row.now + leaseSeconds };
    }
    if (!isFree && seen) {
      if (row.leaseUntil !== seen.leaseUntil || row.incarnation !== seen.incarnation)
        throw new NodeTaken(nodeId, dataDir);
      if (row.now <= seen.patience) {
        await pause();
        continue;
      }
    }
    const taken = await raiseIncarnation(context, row);
    if (taken) {
      const { incarnation, updatedAt, ...position } = taken;
      return keepLease(context, { incarnation, updatedAt }, position);
    }
  }
}

/** Undefined where somebody else has taken the row since it was read. */
async function raiseIncarnation(
  { db, nodeId, place, leaseEnd, now }: LeaseContext,
  row: LeaseRow,
): Promise<Pick<LeaseRow, "incarnation" | "mark" | "journaled" | "history" | "updatedAt"> | undefined> {
  const { nodes } = db.t;
  const [taken] = await db.orm
    .update(nodes)
    .set({ incarnation: row.incarnation + 1, place, leaseUntil: leaseEnd, updatedAt: now })
    .where(
      and(
        eq(nodes.nodeId, nodeId),
        eq(nodes.incarnation, row.incarnation),
        eq(nodes.leaseUntil, row.leaseUntil),
      ),
    )
    .returning({
      incarnation: nodes.incarnation,
      mark: nodes.mark,
      journaled: nodes.journaled,
      history: nodes.history,
      updatedAt: nodes.updatedAt,
    });
  return taken;
}

function inTime<T>(work: Promise<T>): Promise<T | undefined> {
  return within(FIGURES_MS, work).catch(() => undefined);
}

/** The lease from here on: renewed by a timer where nodes share the database. */
function keepLease(
  context: LeaseContext,
  { incarnation, updatedAt }: Pick<LeaseRow, "incarnation" | "updatedAt">,
  position: StorePosition,
): NodeLease {
  const { db, logger, clock, nodeId, dataDir, isShared } = context;
  const { nodes } = db.t;
  const own = and(eq(nodes.nodeId, nodeId), eq(nodes.incarnation, incarnation));
  let lostBy: LossReason | undefined;
  /** When the database last had a chance to say whose the lease is, with whatever outcome. */
  let checkedAtMs = clock.monotonicMs();
  /** What this process wrote into its row last, by the database's clock. */
  let writtenAt = updatedAt;
  /** The row was found older than that, and nobody has taken it on to tell yet. */
  let isOlder = false;
  let onMark = (_mark: number, _isOlder: boolean) => {};
  let writeLease: ReturnType<typeof leaseWriter> | undefined;

  function lose(why: LossReason, sentence: string): void {
    if (lostBy) return;
    lostBy = why;
    logger.error(`no more calls are answered: ${sentence}`, { node: nodeId, dataDir });
  }

  async function look(): Promise<number> {
    // Before the question: what is written meanwhile may not be seen yet.
    const known = writtenAt;
    const row = await findRow(context);
    // Another look may have found the same meanwhile: it is one fall.
    if (row && row.updatedAt < Math.min(known, writtenAt)) {
      isOlder = true;
      writtenAt = row.updatedAt;
    }
    if (row?.incarnation === incarnation) {
      // A renewal may have been committed unheard.
      if (writtenAt === known) writtenAt = Math.max(known, row.updatedAt);
      return row.mark;
    }
    const restored = row && (await restoreIncarnation(context, incarnation, row));
    if (restored) {
      isOlder = true;
      writtenAt = restored.updatedAt;
      return restored.mark;
    }
    // Another look of this process may have written it between these two questions.
    const again = row && (await findRow(context));
    if (again?.incarnation === incarnation) return again.mark;
    const why = row ? "taken" : "unknown";
    lose(why, LOSS[why]);
    throw new LeaseLost();
  }

  /** The mark, after the row was written; undefined: it is older than what was written last, or another process's. */
  async function renew(): Promise<number | undefined> {
    writeLease ??= leaseWriter(context, own);
    const written = await writeLease(writtenAt);
    writtenAt = written?.updatedAt ?? writtenAt;
    return written?.mark;
  }

  async function round(isRenewal: boolean): Promise<boolean> {
    if (lostBy) return true;
    try {
      const mark = (isRenewal ? await renew() : undefined) ?? (await within(DATABASE_WAIT_MS, look()));
      onMark(mark, isOlder);
      return true;
    } catch (error) {
      // In an outage nobody can take the lease either: the journal rides it out.
      logger.debug("the lease of the node id could not be looked at", { error: String(error) });
      return false;
    } finally {
      checkedAtMs = clock.monotonicMs();
    }
  }
  const stop = isShared ? comeRound(context.lookEvery ?? lookEvery, round) : undefined;

  return {
    nodeId,
    incarnation,
    position,
    get writtenAt() {
      return isOlder ? Infinity : writtenAt;
    },
    get isHeld() {
      return lostBy === undefined;
    },
    get lostBy() {
      return lostBy;
    },
    isStale: () => isShared && clock.monotonicMs() - checkedAtMs > STALE_MS,
    async confirm() {
      try {
        await within(DATABASE_WAIT_MS, look());
      } catch (error) {
        if (error instanceof LeaseLost) throw error;
      }
      checkedAtMs = clock.monotonicMs();
    },
    look,
    watchMark(listener) {
      onMark = listener;
    },
    takeOlder() {
      const wasOlder = isOlder;
      isOlder = false;
      return wasOlder;
    },
    lose,
    async release(isWhole = true) {
      stop?.();
      if (!isShared || lostBy || !isWhole) return;
      const letting = Promise.resolve(db.orm.update(nodes).set({ leaseUntil: 0 }).where(own));
      await within(DATABASE_WAIT_MS, letting).catch(() => undefined);
    },
  };
}

/**
 * Calls `round`, which never rejects, once a second and never twice at a time; each fifth one is to renew, and those that
 * follow a failure. Of a process that rests, nothing but the renewals, at the same times: each brings the mark, too. Returns what ends it.
 */
function comeRound(lookEach: LookEvery, round: (isRenewal: boolean) => Promise<boolean>): () => void {
  let sinceRenewalMs = 0;
  let isOverdue = false;
  let isAtIt = false;
  async function once(): Promise<void> {
    isAtIt = true;
    const isRenewal = sinceRenewalMs >= RENEW_MS || isOverdue;
    if (isRenewal) sinceRenewalMs = 0;
    isOverdue = !(await round(isRenewal));
    isAtIt = false;
  }
  const look = ({ dueMs }: Look): void => {
    sinceRenewalMs += dueMs;
    if (!isAtIt) void once();
  };
  return lookEach(MARK_MS, look, RENEW_MS);
}

/**
 * What a renewal asks of the row beside whose it is. Not older than what was written last: a database that fell back is looked
 * at first. Nor written by a successor while this renewal waited for the row: it would set the row back to the moment at
 * which it began. As it was written last the row is renewed at any hour, so that a clock that was set back ends no lease.
 */
export function isRenewable(
  { db, now }: Pick<LeaseContext, "db" | "now">,
  writtenAt: Moment,
): SQL | undefined {
  const { updatedAt } = db.t.nodes;
  return and(gte(updatedAt, writtenAt), or(eq(updatedAt, writtenAt), lte(updatedAt, now)));
}

/**
 * Renews the row that `own` names. Undefined where it is not as `isRenewable` says of what was written last. Built once: it comes
 * every five seconds, also of a process that rests.
 */
function leaseWriter(
  context: LeaseContext,
  own: SQL | undefined,
): (writtenAt: number) => Promise<{ mark: number; updatedAt: number } | undefined> {
  const { db, leaseEnd, now } = context;
  const { nodes } = db.t;
  const built = (isTelling: boolean) =>
    db.orm
      .update(nodes)
      .set({
        leaseUntil: leaseEnd,
        updatedAt: now,
        ...(isTelling ? { figures: sql`${sql.placeholder("figures")}` } : {}),
      })
      .where(and(own, isRenewable(context, sql.placeholder("writtenAt"))))
      .returning({ mark: nodes.mark, updatedAt: nodes.updatedAt })
      .prepare(isTelling ? "tell" : "renew");
  const [renewal, telling] = [built(false), built(true)];
  return async (writtenAt) => {
    const isTelling = context.renewals++ % TELL_RENEWALS === 0;
    const figures = isTelling && context.figures ? await inTime(context.figures()) : undefined;
    const renewed =
      figures === undefined ? renewal.execute({ writtenAt }) : telling.execute({ writtenAt, figures });
    const [row] = await within(DATABASE_WAIT_MS, renewed);
    return row;
  };
}

/**
 * Mark and moment of the row, where an older state of the database was put back: the lease is still this process's, whose directory is
 * locked, and its incarnation is written again.
 */
async function restoreIncarnation(
  { db, nodeId, place, leaseEnd, now }: LeaseContext,
  incarnation: number,
  row: LeaseRow,
): Promise<{ mark: number; updatedAt: number } | undefined> {
  if (row.place !== place || row.incarnation >= incarnation) return undefined;
  const { nodes } = db.t;
  const [restored] = await db.orm
    .update(nodes)
    .set({ incarnation, leaseUntil: leaseEnd, updatedAt: now })
    .where(and(eq(nodes.nodeId, nodeId), eq(nodes.incarnation, row.incarnation), eq(nodes.place, place)))
    .returning({ mark: nodes.mark, updatedAt: nodes.updatedAt });
  return restored;
}

/** The key under which a database keeps a number of its own. */
export const NUMBER_KEY = "database";

export async function databaseNumber(db: Database): Promise<number | undefined> {
  const { marks } = db.t;
  const [row] = await db.orm.select({ value: marks.value }).from(marks).where(eq(marks.key, NUMBER_KEY));
  return row?.value;
}

/** The same for a node's row that is made again, after an older state of the database was put back. */
function historyOf(databaseNo: number | undefined, nodeId: string): string {
  const seed = databaseNo === undefined ? randomBytes(16) : `${databaseNo} ${nodeId}`;
  return createHash("sha256").update(seed).digest("hex").slice(0, 16);
}

/** Where the tables of a node stand, without taking its lease; undefined when they do not know it. */
export async function findStorePosition(db: Database, nodeId: string): Promise<StorePosition | undefined> {
  const { nodes } = db.t;
  const [row] = await db.orm
    .select({ mark: nodes.mark, journaled: nodes.journaled, history: nodes.history })
    .from(nodes)
    .where(eq(nodes.nodeId, nodeId));
  return row;
}
