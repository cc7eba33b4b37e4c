// Reservations of several nodes on one PostgreSQL: near zero the amount leaves the balance durably before the call.
// Refuses to trust memory there: the guarded update decides, and a lease returns what a dead node held.
import { randomBytes } from "node:crypto";
import { Failure } from "../../shared/failures.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import { readWhenBack } from "../../db/away.ts";
import type { Database } from "../../db/database.ts";
import type { Clock, Deps, Ledger, ReserveRequest } from "../deps.ts";
import { within } from "../kit/deadline.ts";
import type { LimitLease } from "../limits/limits.ts";
import { beginPending } from "./items.ts";
import type { DurableHold } from "./items.ts";
import { OUTAGE_MS } from "./outage.ts";
import { Hold } from "./reservation.ts";
import type { HoldKeeper } from "./reservation.ts";
import {
  areAnyExpired,
  BalanceShort,
  isExpired,
  isOfNode,
  renewLeases,
  returnReservations,
  sumOfRows,
  takeAgainSteps,
} from "./reservation-rows.ts";
import type { Payers, Shortage } from "./reservation-rows.ts";
import { createTaker } from "./reservation-take.ts";
import type { TakerDeps } from "./reservation-take.ts";

/**
 * Memory is trusted while the balance pays for this many more calls of the same size: another node's spending is
 * unknown here for at most about a second, and one user does not make a thousand calls a second on one other node.
 */
const TRUSTED_CALLS = 1000;
/** One US dollar at the default unit: a single long answer may cost that much more than what was reserved for it. */
const TRUST_FLOOR = 500_000;
const OPEN_SUM_MS = 1000;
/** So long a database that fell back may be away again until open holds are taken once more; their calls are over by then. */
const TAKE_AGAIN_MS = 600_000;
const MAX_OPEN_SUMS = 10_000;

export interface SharedReservations {
  isNearZero(available: number, amount: number): boolean;
  /** Throws what `refusal` makes of the figures that were found. */
  reserve(request: ReserveRequest, keeper: HoldKeeper, lease?: LimitLease): Promise<Hold>;
  /** Lengthens the hold durably; where the database stays silent memory decides. Never rejects. */
  lengthen(hold: Hold, more: number, keeper: HoldKeeper): Promise<number>;
  renew(keys: readonly string[]): Promise<void>;
  /** An older state of the database was put back: takes again what open holds had taken. Never rejects. */
  takeAgain(open: Iterable<Hold>): Promise<void>;
  /** Gives back what an earlier run of this node held: call before the first reservation. */
  releaseOwn(): Promise<void>;
  /** Gives back what any dead node held. */
  releaseExpired(): Promise<void>;
}

export interface SharedReservationsDeps extends Pick<Deps, "clock" | "logger">, TakerDeps {
  /** Longest wait for one answer of the database, in milliseconds. */
  databaseWaitMs: number;
  /** What memory may trust of the balances. */
  available: Ledger["available"];
  refusal: (shortage: Shortage, least: number) => Failure;
}

export function createSharedReservations(deps: SharedReservationsDeps): SharedReservations {
  const { db, clock, nodeId, accounts, databaseWaitMs, outage } = deps;
  const taker = createTaker(deps);
  const newRow = rowMaker(nodeId);
  const sumOfOpen = openSums(db, clock, databaseWaitMs);

  async function reserve(request: ReserveRequest, keeper: HoldKeeper, lease?: LimitLease): Promise<Hold> {
    const { requestId, user, token, amount, least = amount } = request;
    const payers = payersOf(request);
    const { planFloor } = user;
    const userFree = user.quota - planFloor - taker.unknownToDatabase(user);
    if (userFree + user.returning <= 0 && accounts.isCertain(user.id)) {
      // Memory knows the holds of this node only, and not those that are rows.
      const open = outage.silentMs() < OUTAGE_MS ? await sumOfOpen(user.id) : 0;
      const userWithoutHolds = user.quota - planFloor + open - user.pending;
      throw deps.refusal(
        { userFree, userWithoutHolds, planFloor, tokenFree: MAX_QUOTA, tokenWithoutHolds: MAX_QUOTA },
        least,
      );
    }
    try {
      const taken = await taker.take({
        step: { row: newRow(requestId, payers), more: amount, least },
        payers,
        waitMs: databaseWaitMs,
        onStray(row) {
          // Nobody has it: it goes back at once rather than with its lease.
          giveBack(keeper, row, payers);
          return newRow(requestId, payers);
        },
      });
      const durable = taken.amount > 0 ? { ...taken.row, amount: taken.amount } : undefined;
      return new Hold(keeper, requestId, taken.amount, user, token, durable, lease);
    } catch (error) {
      if (error instanceof BalanceShort) throw deps.refusal(error.shortage, least);
      throw new Failure("internal", "ledger_down", { status: 503, cause: error });
    }
  }

  /** By how much the rows lengthened the hold; undefined where the database stayed silent. */
  async function lengthenRow(
    held: Hold,
    more: number,
    keeper: HoldKeeper,
    waitMs: number,
  ): Promise<number | undefined> {
    const payers = payersOf(held);
    const row = held.durable ?? newRow(held.requestId, payers);
    try {
      const { amount } = await taker.take({
        step: { row, more, least: 1 },
        payers,
        waitMs,
        onStray(stray) {
          // The settlement gives back whatever the row holds; one that is on its way already may not know the row.
          if (held.isClosed) giveBack(keeper, stray, payers);
          else held.durable ??= stray;
          return stray;
        },
      });
      if (!held.isClosed) {
        held.extendDurably(row, amount);
        return amount;
      }
      giveBack(keeper, { ...row, amount }, payers);
      return 0;
    } catch (error) {
      return error instanceof BalanceShort ? 0 : undefined;
    }
  }

  return {
    isNearZero: (available, amount) => available < Math.max(TRUSTED_CALLS * amount, TRUST_FLOOR),
    reserve,
    async lengthen(held, more, keeper) {
      // All of the outage counts: a stream waits it out once, not at every step.
      const waitMs = databaseWaitMs - outage.silentMs();
      const added = waitMs > 0 ? await lengthenRow(held, more, keeper, waitMs) : undefined;
      if (added !== undefined) return added;
      if (held.isClosed) return 0;
      const trusted = Math.max(0, Math.min(more, deps.available(held)));
      held.extend(trusted);
      return trusted;
    },
    renew: (keys) => renewLeases(db, keys),
    takeAgain: (open) => takeAgain(deps, open),
    releaseOwn: () => returnReservations(deps, isOfNode(nodeId)),
    async releaseExpired() {
      if (await areAnyExpired(db.orm)) await returnReservations(deps, isExpired(nodeId));
    },
  };
}

/** Until the database has them; what is settled meanwhile needs no row any more. */
async function takeAgain(
  { db, nodeId, accounts, logger }: SharedReservationsDeps,
  open: Iterable<Hold>,
): Promise<void> {
  const held = new Map<string, Hold>();
  for (const hold of open) if (hold.durable) held.set(hold.durable.key, hold);
  if (held.size === 0) return;
  const isOpen = (key: string): boolean => held.get(key)?.isClosed === false;
  const holds = (): DurableHold[] => [...held.values()].flatMap(({ durable }) => durable ?? []);
  const users = new Set([...held.values()].map(({ user }) => user.id));
  const tokens = new Set(holds().flatMap(({ tokenId }) => tokenId || []));
  try {
    await readWhenBack(TAKE_AGAIN_MS, async () => {
      const endWrite = accounts.beginWrite([...users], [...tokens]);
      try {
        await db.atomic((tx) => takeAgainSteps(tx, nodeId, holds(), isOpen));
      } finally {
        endWrite();
      }
    });
    await accounts.usersCharged([...users]);
    for (const id of tokens) await accounts.tokenCharged(id);
  } catch (error) {
    logger.warn("open reservations could not be taken again", { error: String(error) });
  }
}

function payersOf({ user, token }: Pick<ReserveRequest, "user" | "token">): Payers {
  return { user, limited: token && !token.unlimitedQuota ? token : undefined };
}

/** Keys of this run's rows are its own: an earlier run's row is never taken for one of this. */
function rowMaker(nodeId: string): (requestId: string, payers: Payers) => DurableHold {
  const prefix = `${nodeId}.${randomBytes(4).toString("hex")}`;
  let count = 0;
  return (requestId, { user, limited }) => ({
    key: `${prefix}.${++count}.${requestId}`,
    amount: 0,
    userId: user.id,
    tokenId: limited?.id ?? 0,
  });
}

/** Whatever the row holds in the database goes back; memory counts what it knows to have left. */
function giveBack(keeper: HoldKeeper, hold: DurableHold, { user, limited }: Payers): void {
  beginPending({ hold }, user, limited);
  // Where even that cannot be written its lease returns it.
  keeper.add({ hold }).catch(() => undefined);
}

/**
 * What open holds of all nodes took from users whose balance is used up. A second's memory, so that someone without any
 * balance costs no transaction per call.
 */
function openSums(
  db: Database,
  clock: Pick<Clock, "monotonicMs">,
  databaseWaitMs: number,
): (userId: number) => Promise<number> {
  const known = new Map<number, { untilMs: number; sum: Promise<number> }>();
  return (userId) => {
    const nowMs = clock.monotonicMs();
    const found = known.get(userId);
    if (found && found.untilMs > nowMs) return found.sum;
    if (known.size >= MAX_OPEN_SUMS) known.clear();
    const sum = within(
      databaseWaitMs,
      db.atomic((tx) => sumOfRows(tx, "user_id", userId)),
    ).catch(() => 0);
    known.set(userId, { untilMs: nowMs + OPEN_SUM_MS, sum });
    return sum;
  };
}
