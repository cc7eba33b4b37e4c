// The warning that most of a budget is spent: to its owner, the way their notices go, once a period over all nodes; to the
// operator's inbox where a user has a budget and no way to be told.
// Refuses to delay or fail a call: it is told in passing, and does its own work later.
import { and, eq, lt } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { offsetSeconds } from "../../shared/local-time.ts";
import { shortQuotaText } from "../../shared/money.ts";
import type { BudgetWarning } from "../limits/limits.ts";
import { quotaDisplay } from "../options/store.ts";
import { budgetNotice } from "./notice-texts.ts";
import { deliverKept, isReachable } from "./notify.ts";
import type { DeliverDeps } from "./notify.ts";

export interface BudgetWarnings {
  tell: (warning: BudgetWarning) => void;
  /** Resolves when everything that is under way has been sent or has failed. */
  settled(): Promise<void>;
}

export function createBudgetWarnings(deps: DeliverDeps): BudgetWarnings {
  const running = new Set<Promise<void>>();
  return {
    tell: (warning) => {
      const work = warn(deps, warning).catch((error: unknown) => {
        deps.logger.warn("a budget could not be told", { user: warning.user.id, error: String(error) });
      });
      running.add(work);
      void work.finally(() => running.delete(work));
    },
    async settled() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}

async function warn(deps: DeliverDeps, { kind, user, token, use }: BudgetWarning): Promise<void> {
  const isToldByUs = isReachable(deps, user);
  // Whose key it is has set its budget, and sees it beside the key; a user's is the operators' doing.
  if (!isToldByUs && kind === "token") return;
  const id = token?.id ?? user.id;
  if (!(await claimPeriod(deps.db, `budget:${kind}:${id}`, use.start))) return;
  const { options } = deps;
  const zone = options.get("site.time_zone");
  const display = quotaDisplay(options);
  if (!isToldByUs) {
    const params = {
      user: user.username,
      used: shortQuotaText(use.spent, display),
      budget: shortQuotaText(use.limits.budgetQuota, display),
    };
    deps.inbox.raise({ kind: "budget", subject: String(user.id), params });
    return;
  }
  const end = new Date((use.end + offsetSeconds(zone, use.end * 1000)) * 1000);
  const notice = budgetNotice(user.setting.language ?? options.get("site.language"), {
    key: token?.name,
    used: shortQuotaText(use.spent, display),
    budget: shortQuotaText(use.limits.budgetQuota, display),
    until: `${end.toISOString().slice(0, 16).replace("T", " ")} (${zone})`,
  });
  await deliverKept(deps, user, user.setting, notice);
}

/** True for the one who may warn of this period; the row keeps the last that was warned of (Unix seconds of its start). */
async function claimPeriod(db: Database, key: string, start: number): Promise<boolean> {
  const { marks } = db.t;
  return db.atomic(function* (tx) {
    const first = yield* q(
      tx.insert(marks).values({ key, value: start }).onConflictDoNothing().returning({ key: marks.key }),
    );
    if (first.length > 0) return true;
    const later = yield* q(
      tx
        .update(marks)
        .set({ value: start })
        .where(and(eq(marks.key, key), lt(marks.value, start)))
        .returning({ key: marks.key }),
    );
    return later.length > 0;
  });
}
