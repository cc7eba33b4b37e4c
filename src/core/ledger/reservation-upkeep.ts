// Looks after open reservations twice a minute: those that nobody closed are given back, leases are renewed, and what
// dead nodes held returns to its balance, not with the first word of a database that was away: others renew theirs then.
import { lookAround } from "../../db/look-around.ts";
import type { Look, LookAround } from "../../db/look-around.ts";
import type { Clock, Logger } from "../deps.ts";
import type { HoldKeeper } from "./reservation.ts";
import type { SharedReservations } from "./shared-reservations.ts";

/** A reservation that nobody closed is given back after this time; a later settlement still charges in full. */
const HOLD_LIFE_MS = 2 * 60 * 60 * 1000;
const INTERVAL_MS = 30_000;

export interface UpkeepDeps {
  keeper: HoldKeeper;
  shared: SharedReservations | undefined;
  clock: Pick<Clock, "monotonicMs">;
  logger: Logger;
  /** Whose timer brings the rounds; the process's own when absent. */
  around?: Pick<LookAround, "lookEvery">;
}

export interface Upkeep {
  /** One round; the timer's never rejects. */
  run(): Promise<void>;
  stop(): void;
}

export function startUpkeep({ keeper, shared, clock, logger, around = lookAround }: UpkeepDeps): Upkeep {
  async function run(mayReturn = true): Promise<void> {
    const since = clock.monotonicMs() - HOLD_LIFE_MS;
    for (const hold of keeper.open) {
      if (hold.openedAtMs >= since) continue;
      logger.warn("a reservation was never closed and is given back", { request_id: hold.requestId });
      hold.abandon();
    }
    if (!shared) return;
    const keys = [...keeper.open].flatMap((hold) => (hold.durable ? [hold.durable.key] : []));
    await shared.renew(keys);
    if (mayReturn) await shared.releaseExpired();
  }

  let isRunning = false;
  /** The last round was heard: who lives has had the time since to renew what is theirs, and the lease of their node. */
  let wasHeard = true;
  async function runQuietly({ isWaking }: Look): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    try {
      await run(wasHeard && !isWaking);
      wasHeard = true;
    } catch (error) {
      wasHeard = false;
      logger.warn("reservations could not be maintained", { error: String(error) });
    } finally {
      isRunning = false;
    }
  }
  return { run: () => run(), stop: around.lookEvery(INTERVAL_MS, (look) => void runQuietly(look)) };
}
