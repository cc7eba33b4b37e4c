// Looks after open reservations twice a minute: those that nobody closed are given back, leases are renewed, and what
// dead nodes held returns to its balance.
import { lookEvery } from "../../db/look-around.ts";
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
}

export interface Upkeep {
  /** One round; the timer's never rejects. */
  run(): Promise<void>;
  stop(): void;
}

export function startUpkeep({ keeper, shared, clock, logger }: UpkeepDeps): Upkeep {
  async function run(): Promise<void> {
    const since = clock.monotonicMs() - HOLD_LIFE_MS;
    for (const hold of keeper.open) {
      if (hold.openedAtMs >= since) continue;
      logger.warn("a reservation was never closed and is given back", { request_id: hold.requestId });
      hold.abandon();
    }
    if (!shared) return;
    const keys = [...keeper.open].flatMap((hold) => (hold.durable ? [hold.durable.key] : []));
    await shared.renew(keys);
    await shared.releaseExpired();
  }

  let isRunning = false;
  async function runQuietly(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    try {
      await run();
    } catch (error) {
      logger.warn("reservations could not be maintained", { error: String(error) });
    } finally {
      isRunning = false;
    }
  }
  return { run, stop: lookEvery(INTERVAL_MS, () => void runQuietly()) };
}
