// The table of what comes round by itself, and how often the operator wants it.
// Refuses logic of its own: each job is one call of a core function.
import type { Backups } from "../core/backup/schedule.ts";
import { probesWait } from "../core/channels/key-probes.ts";
import { purgeRemoteObjects } from "../core/channels/remote-objects.ts";
import type { ChannelWatch } from "../core/channels/watch.ts";
import type { Deps } from "../core/deps.ts";
import { buildCoarse, coarseValues, coarseWaits } from "../core/ledger/coarse-build.ts";
import { applyDueDrafts, draftsWait } from "../core/prices/drafts.ts";
import { auditForInbox, auditHours } from "../core/inbox/audits.ts";
import { expireOrders } from "../core/payments/orders.ts";
import { askForOpenOrders } from "../core/payments/rails.ts";
import { allocatePlans, plansWait, renewDuePlans } from "../core/plans/periods.ts";
import { ensureLogParts, retainLogs } from "../core/logs/retention.ts";
import { isQuiet } from "../core/options/quiet.ts";
import { isFilling } from "../core/site/setup.ts";
import { purgeItems } from "../core/inbox/items.ts";
import { syncKeptSources } from "../core/prices/kept-sources.ts";
import { tasksWait } from "../core/tasks/store.ts";
import { purgeModelDays } from "../core/site/model-days.ts";
import { purgeFlows } from "../core/users/auth-flows.ts";
import { purgeBulks } from "../core/users/bulk.ts";
import { bulksWait, resumeBulks } from "../core/users/bulk-run.ts";
import { erasuresWait, resumeErasures } from "../core/users/erasure.ts";
import { lettersWait, sendDue } from "../core/users/outbox.ts";
import type { Job } from "./scheduler.ts";

const MINUTE = 60;
const HOUR = 3600;
const DAY = 24 * HOUR;

/** Seconds between two looks at open tasks; the scheduler's own pace is the lower bound. */
const TASK_SECONDS = 15;

/** Seconds between two looks at upstreams' lists of models; only channels that ask for it are looked at. */
const UPSTREAM_MODELS_SECONDS = 30 * MINUTE;

/** Seconds between two looks for drafts of prices whose moment has come. */
const PRICE_SECONDS = 10;

/** Seconds between two looks at orders that nobody has paid yet. */
const PAYMENT_SECONDS = 5 * MINUTE;

/** Seconds between two looks for plans whose period is over; who calls first does not wait for it. */
const PLAN_SECONDS = MINUTE;

/** Seconds between two looks for letters that wait. */
const OUTBOX_SECONDS = 15;

interface Row extends Job {
  /** It asks or tells somebody elsewhere: on a quiet site it does not come round (core/options/quiet.ts). */
  leaves?: true;
}

type JobDeps = Pick<
  Deps,
  | "options"
  | "sessions"
  | "db"
  | "clock"
  | "ledger"
  | "accounts"
  | "logger"
  | "inbox"
  | "guard"
  | "reach"
  | "routing"
  | "seal"
  | "rails"
>;

/** Those of which the database says together with their marks whether there is anything to do. */
function watchfulRows(deps: JobDeps, watch: ChannelWatch, pollTasks: () => Promise<void>): Row[] {
  return [
    {
      name: "key-probe",
      leaves: true,
      everySeconds: () => MINUTE,
      waits: probesWait(deps),
      run: () => watch.probeOffKeys(),
    },
    {
      name: "outbox",
      leaves: true,
      everySeconds: () => OUTBOX_SECONDS,
      waits: lettersWait(deps),
      run: async () => void (await sendDue(deps)),
    },
    {
      name: "erasure",
      everySeconds: () => OUTBOX_SECONDS,
      waits: erasuresWait(deps),
      run: () => resumeErasures(deps),
    },
    {
      name: "user-bulk",
      everySeconds: () => OUTBOX_SECONDS,
      waits: bulksWait(deps),
      run: () => resumeBulks(deps),
    },
    {
      name: "plan-periods",
      everySeconds: () => PLAN_SECONDS,
      waits: plansWait(deps),
      run: () => renewDuePlans(deps),
    },
    {
      name: "price-schedule",
      everySeconds: () => PRICE_SECONDS,
      waits: draftsWait(deps),
      run: () => applyDueDrafts(deps),
    },
    {
      name: "coarse-sums",
      everySeconds: () => MINUTE,
      waits: coarseWaits(deps),
      values: () => coarseValues(deps),
      run: () => buildCoarse(deps),
    },
    {
      name: "task-poll",
      leaves: true,
      everySeconds: () => TASK_SECONDS,
      waits: tasksWait(deps),
      run: pollTasks,
    },
  ];
}

export function jobsOf(
  deps: JobDeps,
  watch: ChannelWatch,
  pollTasks: () => Promise<void>,
  { logRetentionDays = 0, backups }: { logRetentionDays?: number; backups?: Backups | undefined } = {},
): Job[] {
  const { options } = deps;
  const rows: Row[] = [
    ...watchfulRows(deps, watch, pollTasks),
    {
      name: "channel-test",
      leaves: true,
      everySeconds: () => options.get("relay.channel_test_minutes") * MINUTE,
      run: async () => (await watch.testAll(false)).finished,
    },
    {
      name: "channel-balance",
      leaves: true,
      everySeconds: () => options.get("relay.channel_balance_minutes") * MINUTE,
      run: () => watch.updateBalances(),
    },
    {
      name: "upstream-models",
      leaves: true,
      everySeconds: () => UPSTREAM_MODELS_SECONDS,
      run: async () => void (await watch.upstreamModels.detectAll()),
    },
    {
      name: "warm-probe",
      leaves: true,
      everySeconds: () => (options.get("relay.probe_max_quota_per_day") > 0 ? MINUTE : 0),
      run: () => watch.warm(),
    },
    {
      name: "session-purge",
      everySeconds: () => HOUR,
      run: () => deps.sessions.purge(),
    },
    {
      name: "auth-flow-purge",
      everySeconds: () => HOUR,
      run: () => purgeFlows(deps),
    },
    { name: "model-days-purge", everySeconds: () => DAY, run: () => purgeModelDays(deps) },
    { name: "user-bulk-purge", everySeconds: () => DAY, run: () => purgeBulks(deps) },
    {
      name: "payment-check",
      // Orders end only after their rail was asked.
      leaves: true,
      everySeconds: () => PAYMENT_SECONDS,
      run: async () => {
        await askForOpenOrders(deps);
        await expireOrders(deps);
      },
    },
    { name: "plan-allocation", everySeconds: () => HOUR, run: () => allocatePlans(deps) },
    {
      name: "remote-object-purge",
      everySeconds: () => HOUR,
      run: () => purgeRemoteObjects(deps),
    },
    {
      name: "price-sync",
      leaves: true,
      everySeconds: () => (options.get("PriceSources").some(({ auto }) => auto) ? DAY : 0),
      run: () => syncKeptSources(deps),
    },
    {
      name: "inbox-audit",
      everySeconds: () => auditHours(deps) * HOUR,
      run: () => auditForInbox(deps),
    },
    {
      name: "inbox-purge",
      everySeconds: () => HOUR,
      run: () => purgeItems(deps.db, Math.floor(deps.clock.nowMs() / 1000)),
    },
    { name: "log-parts", everySeconds: () => HOUR, run: () => ensureLogParts(deps) },
    {
      name: "log-retention",
      everySeconds: () => (logRetentionDays > 0 ? HOUR : 0),
      run: async () => void (await retainLogs(deps, logRetentionDays)),
    },
    {
      name: "backup",
      everySeconds: () => (backups ? MINUTE : 0),
      run: async () => backups?.makeDue(),
    },
  ];
  return rows.map((row) => resting(row, deps));
}

/**
 * The job with the times at which it does not come round. While a site is moved in its rows are there in part: nothing is
 * concluded from them, nor from channels that this process does not know yet.
 */
function resting({ leaves, ...job }: Row, { db, options }: Pick<Deps, "db" | "options">): Job {
  const rests = (): boolean => isFilling(db) || (leaves === true && isQuiet(options));
  return { ...job, everySeconds: () => (rests() ? 0 : job.everySeconds()) };
}
