// The warning that a balance has fallen below its owner's threshold: once per fall, at most one in two hours.
// Refuses to delay or fail a call: it is told of balances after their commit, and does its own work later.
import { and, eq, gt, gte, lt, or, sql } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { BalanceWatch, Deps, LedgerAccounts, UserAccount } from "../deps.ts";
import { lowQuotaNotice } from "./notice-texts.ts";
import { deliver, isReachable } from "./notify.ts";
import { quotaDisplay } from "../options/store.ts";

export interface LowQuota extends BalanceWatch {
  /** Resolves when everything that is under way has been sent or has failed. */
  settled(): Promise<void>;
}

/** At most one warning in this time, however often the balance goes up and down. */
const QUIET_SECONDS = 2 * 3600;
/** A receiver that failed is tried again this much later, with the next call. */
const RETRY_SECONDS = 600;
/** Users whose state is remembered; the oldest are looked up again. */
const MAX_KNOWN = 100_000;

/**
 * The row that says whether a user has been warned, the same for all nodes: Unix seconds of the warning, negative once
 * the balance has been above the threshold again.
 */
export function warningMark(userId: number): string {
  return `low-quota:${userId}`;
}

export interface LowQuotaDeps extends Pick<Deps, "db" | "options" | "clock" | "logger" | "guard" | "seal"> {
  accounts: Pick<LedgerAccounts, "user" | "cachedUser">;
}

export function thresholdOf({ options }: Pick<Deps, "options">, user: UserAccount): number {
  return user.setting.quota_warning_threshold ?? options.get("QuotaRemindThreshold");
}

/** After this the next fall is warned of (not sooner than two hours after the last warning). */
export async function rearm({ db }: Pick<Deps, "db">, userId: number): Promise<void> {
  const { marks } = db.t;
  await db.orm
    .update(marks)
    .set({ value: sql`-${marks.value}` })
    .where(and(eq(marks.key, warningMark(userId)), gt(marks.value, 0)));
}

export function createLowQuota(deps: LowQuotaDeps): LowQuota {
  const { db, accounts, clock, logger } = deps;
  /** Users with a low balance, and until when (steady clock) there is nothing to do for them. */
  const known = new Map<number, number>();
  /** One piece of work at a time for a user: falls and rises keep their order. */
  const running = new Map<number, Promise<void>>();
  const waitingFall = new Set<number>();

  function remember(id: number, untilMs: number): void {
    known.delete(id);
    known.set(id, untilMs);
    const [oldest] = known.keys();
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
  }

  function inTurn(id: number, work: () => Promise<void>): void {
    const next = (running.get(id) ?? Promise.resolve()).then(work).catch((error: unknown) => {
      logger.warn("a low balance could not be told", { user: id, error: String(error) });
    });
    running.set(id, next);
    void next.finally(() => {
      if (running.get(id) === next) running.delete(id);
    });
  }

  /** Amounts that calls hold back in the database are not spent yet. */
  async function wholeBalance(id: number): Promise<number> {
    const { users, reservations } = db.t;
    const [user] = await db.orm.select({ quota: users.quota }).from(users).where(eq(users.id, id));
    const [held] = await db.orm
      .select({ amount: sumOf(reservations.amount) })
      .from(reservations)
      .where(eq(reservations.userId, id));
    return (user?.quota ?? 0) + (held?.amount ?? 0);
  }

  /** True for the one who may warn: of any number of nodes and falls exactly one gets it. */
  async function claim(id: number, now: number): Promise<boolean> {
    const { marks } = db.t;
    const claimed = await db.orm
      .insert(marks)
      .values({ key: warningMark(id), value: now })
      .onConflictDoUpdate({
        target: marks.key,
        set: { value: now },
        // A warning of the future is one before the clock was set back: it does not silence anybody for longer.
        setWhere: and(lt(marks.value, 0), or(gte(marks.value, QUIET_SECONDS - now), lt(marks.value, -now))),
      })
      .returning({ key: marks.key });
    return claimed.length > 0;
  }

  async function fall(id: number): Promise<void> {
    const user = await accounts.user(id);
    if (!user || !isReachable(deps, user)) return;
    const quota = await wholeBalance(id);
    if (quota >= thresholdOf(deps, user)) return;
    const now = Math.floor(clock.nowMs() / 1000);
    const isOurs = await claim(id, now);
    const { marks } = db.t;
    const [mark] = await db.orm
      .select()
      .from(marks)
      .where(eq(marks.key, warningMark(id)));
    const value = mark?.value ?? now;
    // Warned already: nothing until the balance has risen. Warned not long ago: again when the time has come.
    const waitSeconds = Math.min(QUIET_SECONDS, Math.max(0, QUIET_SECONDS - value - now));
    remember(id, value > 0 ? Number.POSITIVE_INFINITY : clock.monotonicMs() + waitSeconds * 1000);
    if (!isOurs) return;
    const text = logQuotaText(quota, quotaDisplay(deps.options));
    const notice = lowQuotaNotice(user.setting.language ?? "zh", text, deps.options.get("ServerAddress"));
    try {
      await deliver(deps, user, user.setting, notice);
    } catch (error) {
      // As if the last warning had been so long ago that the next one may go out then.
      const retry = now + RETRY_SECONDS;
      remember(id, clock.monotonicMs() + RETRY_SECONDS * 1000);
      await db.orm
        .update(marks)
        .set({ value: QUIET_SECONDS - retry })
        .where(and(eq(marks.key, warningMark(id)), eq(marks.value, now)));
      throw error;
    }
  }

  return {
    charged(balances) {
      try {
        for (const { id, quota, charge } of balances) {
          const user = accounts.cachedUser(id);
          // Whoever is not in memory made no call here just now.
          if (!user) continue;
          const threshold = thresholdOf(deps, user);
          if (quota >= threshold) {
            if (!known.delete(id)) continue;
            inTurn(id, () => rearm(deps, id));
          } else {
            const hasFallen = quota + charge >= threshold;
            const until = known.get(id);
            const isDue =
              until === undefined || (until !== Number.POSITIVE_INFINITY && clock.monotonicMs() >= until);
            if ((!hasFallen && !isDue) || waitingFall.has(id)) continue;
            waitingFall.add(id);
            inTurn(id, () => {
              waitingFall.delete(id);
              return fall(id);
            });
          }
        }
      } catch (error) {
        logger.warn("balances could not be watched", { error: String(error) });
      }
    },
    credited(userIds) {
      for (const id of userIds)
        inTurn(id, async () => {
          const user = await accounts.user(id);
          if (!user || user.quota < thresholdOf(deps, user)) return;
          known.delete(id);
          await rearm(deps, id);
        });
    },
    async settled() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
