// A node's seat: the row that holds its journal's mark, and the lease by which one process at a time moves it.
// Refuses a second process under the same node id while the first lives, and tells a process whose seat was taken.
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { and, eq, sql } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { within } from "../kit/deadline.ts";
import type { Clock, Logger } from "../deps.ts";
import type { BooksPosition } from "./journal-recovery.ts";

export const LEASE_SECONDS = 30;
const RENEW_MS = 5000;
/** Renewals come every five seconds, heard or not: this long without one the process was frozen, with its machine or alone. */
const STALE_MS = 20_000;
const LOOK_MS = 1000;
const DATABASE_WAIT_MS = 5000;

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
export class SeatLost extends Error {}

export interface NodeSeat {
  readonly nodeId: string;
  /** Stands in every statement that moves the mark. */
  readonly incarnation: number;
  readonly books: BooksPosition;
  /** False once another process has taken the seat, or the books fell back too far: nothing more may be answered. */
  readonly isHeld: boolean;
  /** The process stood still so long that another may have taken the seat unheard: ask `confirm` before an answer. */
  isStale(): boolean;
  /** Throws SeatLost when another has; in an outage of the database nobody can. */
  confirm(): Promise<void>;
  /** The mark as it stands in the books now; throws SeatLost when they are another process's. */
  look(): Promise<number>;
  /** Calls with the mark at each renewal of the lease. */
  watchMark(listener: (mark: number) => void): void;
  /** Ends it with a sentence. */
  lose(reason: string): void;
  /** Lets go of the lease, so that the next start need not wait for it. */
  release(): Promise<void>;
}

export interface SeatDeps {
  db: Database;
  logger: Logger;
  clock: Pick<Clock, "monotonicMs">;
  nodeId: string;
  dataDir: string;
  leaseSeconds?: number;
  /** Between two looks at a lease of another process; and the pause itself. */
  pause?: () => Promise<void>;
}

/** Machine, as long as it runs, and directory: a copy of the directory is another place. */
export function placeOf(dataDir: string): string {
  const { dev, ino } = statSync(dataDir);
  let machine: string;
  try {
    machine = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    machine = hostname();
  }
  return createHash("sha256").update(`${machine} ${dev} ${ino}`).digest("hex").slice(0, 16);
}

/**
 * Takes the seat of a node. Whoever holds the lock of the same directory on the same machine knows that the last process
 * is gone and takes it at once; any other waits for a whole lease and is refused when it was renewed meanwhile.
 */
export async function takeSeat(deps: SeatDeps): Promise<NodeSeat> {
  const { db, logger, nodeId, dataDir } = deps;
  const { nodes } = db.t;
  const leaseSeconds = deps.leaseSeconds ?? LEASE_SECONDS;
  const pause = deps.pause ?? (() => Bun.sleep(LOOK_MS));
  const place = placeOf(dataDir);
  // On the embedded database the directory's lock is the lease: the file lies in it.
  const isShared = db.kind === "postgres";
  const now = isShared ? sql<number>`floor(extract(epoch from now()))` : sql<number>`unixepoch()`;
  const leaseEnd = isShared ? sql`floor(extract(epoch from now())) + ${leaseSeconds}` : sql`0`;

  async function find() {
    const [row] = await db.orm
      .select({
        incarnation: nodes.incarnation,
        history: nodes.history,
        mark: nodes.mark,
        journaled: nodes.journaled,
        leaseUntil: nodes.leaseUntil,
        place: nodes.place,
        now: now.mapWith(Number),
      })
      .from(nodes)
      .where(eq(nodes.nodeId, nodeId));
    return row;
  }

  let seen: { leaseUntil: number; incarnation: number; patience: number } | undefined;
  let taken: { incarnation: number; mark: number; journaled: number; history: string } | undefined;
  while (!taken) {
    const row = await find();
    if (!row) {
      const history = historyOf(await databaseNumber(db), nodeId);
      await db.orm.insert(nodes).values({ nodeId, history }).onConflictDoNothing();
      continue;
    }
    const isFree = !isShared || row.leaseUntil === 0 || row.place === place;
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
    // Nobody else may have taken it since the look.
    [taken] = await db.orm
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
      });
  }

  const { incarnation, mark, journaled, history } = taken;
  const own = and(eq(nodes.nodeId, nodeId), eq(nodes.incarnation, incarnation));
  let isHeld = true;
  /** When the database was last asked, with whatever outcome. */
  let askedAtMs = deps.clock.monotonicMs();
  let onMark = (_mark: number) => {};
  let isRenewing = false;

  function lose(reason: string): void {
    if (!isHeld) return;
    isHeld = false;
    logger.error(`no more calls are answered: ${reason}`, { node: nodeId, dataDir });
  }

  async function look(): Promise<number> {
    const row = await find();
    if (row?.incarnation === incarnation) return row.mark;
    // An older state of the database was put back: the seat is still this process's, whose directory is locked.
    if (row && row.place === place && row.incarnation < incarnation) {
      const [back] = await db.orm
        .update(nodes)
        .set({ incarnation, leaseUntil: leaseEnd, updatedAt: now })
        .where(and(eq(nodes.nodeId, nodeId), eq(nodes.incarnation, row.incarnation), eq(nodes.place, place)))
        .returning({ mark: nodes.mark });
      if (back) return back.mark;
    }
    lose(
      row
        ? "another process has taken this node's id. Stop this one, and give each node a DATA_DIR of its own"
        : "the database does not know this node any more. Stop it, and see which database DATABASE_URL names",
    );
    throw new SeatLost();
  }

  async function renew(): Promise<void> {
    if (isRenewing || !isHeld) return;
    isRenewing = true;
    try {
      const renewed = db.orm
        .update(nodes)
        .set({ leaseUntil: leaseEnd, updatedAt: now })
        .where(own)
        .returning({ mark: nodes.mark });
      const [row] = await within(DATABASE_WAIT_MS, Promise.resolve(renewed));
      onMark(row ? row.mark : await within(DATABASE_WAIT_MS, look()));
    } catch (error) {
      // In an outage nobody can take the seat either: the journal rides it out.
      logger.debug("the lease of the node id could not be renewed", { error: String(error) });
    } finally {
      askedAtMs = deps.clock.monotonicMs();
      isRenewing = false;
    }
  }
  const timer = isShared ? setInterval(() => void renew(), RENEW_MS) : undefined;
  timer?.unref();

  return {
    nodeId,
    incarnation,
    books: { mark, journaled, history },
    get isHeld() {
      return isHeld;
    },
    isStale: () => isShared && deps.clock.monotonicMs() - askedAtMs > STALE_MS,
    async confirm() {
      try {
        await within(DATABASE_WAIT_MS, look());
      } catch (error) {
        if (error instanceof SeatLost) throw error;
      }
      askedAtMs = deps.clock.monotonicMs();
    },
    look,
    watchMark(listener) {
      onMark = listener;
    },
    lose,
    async release() {
      clearInterval(timer);
      if (!isShared || !isHeld) return;
      const letting = Promise.resolve(db.orm.update(nodes).set({ leaseUntil: 0 }).where(own));
      await within(DATABASE_WAIT_MS, letting).catch(() => undefined);
    },
  };
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
  const said = databaseNo === undefined ? randomBytes(16) : `${databaseNo} ${nodeId}`;
  return createHash("sha256").update(said).digest("hex").slice(0, 16);
}

/** Where the books of a node stand, without taking its seat; undefined when they do not know it. */
export async function findBooks(db: Database, nodeId: string): Promise<BooksPosition | undefined> {
  const { nodes } = db.t;
  const [row] = await db.orm
    .select({ mark: nodes.mark, journaled: nodes.journaled, history: nodes.history })
    .from(nodes)
    .where(eq(nodes.nodeId, nodeId));
  return row;
}
