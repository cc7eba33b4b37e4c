// The warning that a balance has fallen below its owner's threshold: once per fall, at most one in two hours.
// Refuses to delay or fail a call: it hears of balances after their commit, and does its own work later.
import { eq } from "drizzle-orm";
import { sumOf } from "../../db/database.ts";
import { logQuotaText } from "../../shared/money.ts";
import type { BalanceWatch, ChargedBalance, Deps, LedgerAccounts, UserAccount } from "../deps.ts";
import { claimWarning, findWarning, giveBackWarning, QUIET_SECONDS, rearm } from "./low-quota-marks.ts";
import { lowQuotaNotice } from "./notice-texts.ts";
import { deliverKept, isReachable } from "./notify.ts";
import { quotaDisplay } from "../options/store.ts";

export interface LowQuota extends BalanceWatch {
  /** Resolves when everything that is under way has been sent or has failed. */
  settled(): Promise<void>;
}

/** A receiver that failed is tried again this much later, with the next call. */
const RETRY_SECONDS = 600;
/** Users whose state is remembered; the oldest are looked up again. */
const MAX_KNOWN = 100_000;

export interface LowQuotaDeps extends Pick<
  Deps,
  "db" | "options" | "clock" | "logger" | "guard" | "reach" | "seal" | "inbox"
> {
  accounts: Pick<LedgerAccounts, "user" | "cachedUser">;
}

/** Below which balance the user is warned: by their own word, else by the site's. */
export function thresholdOf({ options }: Pick<Deps, "options">, user: Pick<UserAccount, "setting">): number {
  return user.setting.quota_warning_threshold ?? options.get("QuotaRemindThreshold");
}

/** What this process remembers of users whose balance is low: when there is something to do for them again. */
interface Watched {
  /** On the steady clock. Absent: warned already, so nothing until the balance has risen. */
  dueMs?: number;
}

interface State {
  readonly deps: LowQuotaDeps;
  readonly low: Map<number, Watched>;
  readonly work: WorkPerUser;
  /** Users whose fall waits for its turn. */
  readonly falling: Set<number>;
}

export function createLowQuota(deps: LowQuotaDeps): LowQuota {
  const { accounts, logger } = deps;
  const work = createWorkPerUser((id, error) =>
    logger.warn("a low balance could not be told", { user: id, error: String(error) }),
  );
  const state: State = { deps, low: new Map(), work, falling: new Set() };
  return {
    charged(balances) {
      try {
        for (const balance of balances) {
          const user = accounts.cachedUser(balance.id);
          // Whoever is not in memory made no call here just now.
          if (user) watchCharge(state, user, balance);
        }
      } catch (error) {
        logger.warn("balances could not be watched", { error: String(error) });
      }
    },
    credited(userIds) {
      for (const id of userIds)
        work.add(id, async () => {
          const user = await accounts.user(id);
          if (!user || user.quota < thresholdOf(deps, user)) return;
          state.low.delete(id);
          await rearm(deps, id);
        });
    },
    settled: () => work.settled(),
  };
}

function watchCharge(state: State, user: UserAccount, { id, quota, charge }: ChargedBalance): void {
  const { deps, low, work, falling } = state;
  const threshold = thresholdOf(deps, user);
  if (quota >= threshold) {
    if (low.delete(id)) work.add(id, () => rearm(deps, id));
    return;
  }
  const hasFallen = quota + charge >= threshold;
  if ((!hasFallen && !isDue(state, id)) || falling.has(id)) return;
  falling.add(id);
  work.add(id, () => {
    falling.delete(id);
    return warn(state, id);
  });
}

/** Also where nothing is remembered: the database knows. */
function isDue({ deps, low }: State, id: number): boolean {
  const watched = low.get(id);
  if (!watched) return true;
  return watched.dueMs !== undefined && deps.clock.monotonicMs() >= watched.dueMs;
}

function remember({ low }: State, id: number, watched: Watched): void {
  low.delete(id);
  low.set(id, watched);
  const [oldest] = low.keys();
  if (low.size > MAX_KNOWN && oldest !== undefined) low.delete(oldest);
}

async function warn(state: State, id: number): Promise<void> {
  const { deps } = state;
  const { db, accounts, clock, options } = deps;
  const user = await accounts.user(id);
  if (!user || !isReachable(deps, user)) return;
  const quota = await fullBalance(deps, id);
  if (quota >= thresholdOf(deps, user)) return;
  const now = Math.floor(clock.nowMs() / 1000);
  const inSeconds = (seconds: number): Watched => ({ dueMs: clock.monotonicMs() + seconds * 1000 });
  const isOurs = await claimWarning(db, id, now);
  const warning = await findWarning(db, id);
  if (warning?.isArmed) {
    // Warned not long ago: again when the time has come.
    const waitSeconds = Math.min(QUIET_SECONDS, Math.max(0, QUIET_SECONDS + warning.warnedAt - now));
    remember(state, id, inSeconds(waitSeconds));
  } else remember(state, id, {});
  if (!isOurs) return;
  const text = logQuotaText(quota, quotaDisplay(options));
  const language = user.setting.language ?? options.get("site.language");
  const notice = lowQuotaNotice(language, text, options.get("ServerAddress"));
  try {
    await deliverKept(deps, user, user.setting, notice);
  } catch (error) {
    remember(state, id, inSeconds(RETRY_SECONDS));
    await giveBackWarning(db, id, { claimedAt: now, retryAt: now + RETRY_SECONDS });
    throw error;
  }
}

/** With the amounts that calls hold back in the database: they are not spent yet. */
async function fullBalance({ db }: LowQuotaDeps, id: number): Promise<number> {
  const { users, reservations } = db.t;
  const [user] = await db.orm.select({ quota: users.quota }).from(users).where(eq(users.id, id));
  const [held] = await db.orm
    .select({ amount: sumOf(reservations.amount) })
    .from(reservations)
    .where(eq(reservations.userId, id));
  return (user?.quota ?? 0) + (held?.amount ?? 0);
}

interface WorkPerUser {
  add(userId: number, work: () => Promise<void>): void;
  settled(): Promise<void>;
}

/** One piece of work at a time for a user: falls and rises keep their order. */
function createWorkPerUser(failed: (userId: number, error: unknown) => void): WorkPerUser {
  const running = new Map<number, Promise<void>>();
  return {
    add(id, work) {
      const next = (running.get(id) ?? Promise.resolve())
        .then(work)
        .catch((error: unknown) => failed(id, error));
      running.set(id, next);
      void next.finally(() => {
        if (running.get(id) === next) running.delete(id);
      });
    },
    async settled() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
