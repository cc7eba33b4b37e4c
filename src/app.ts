// Builds the services and the application: cross-cutting plugins first, then the routes; tests call this.
// Refuses to build when a route declares no permission.
import { Elysia } from "elysia";
import type { AnyElysia } from "elysia";
import packageJson from "../package.json" with { type: "json" };
import { createAccounts } from "./core/users/accounts.ts";
import { systemClock } from "./core/kit/clock.ts";
import type { Clock, Deps, Logger, BalanceWatch } from "./core/deps.ts";
import { createChannelWatch } from "./core/channels/watch.ts";
import { createGuard } from "./net/guard.ts";
import type { Lookup } from "./net/guard.ts";
import { readNodeId, refuseLostFile, settleIn } from "./core/ledger/installation.ts";
import { createInbox } from "./core/inbox/inbox.ts";
import type { InboxService } from "./core/inbox/inbox.ts";
import { startLooks } from "./core/inbox/looks.ts";
import type { LookDeps, Looks } from "./core/inbox/looks.ts";
import { createCaps } from "./core/channels/caps.ts";
import { createAffinityStore } from "./core/channels/affinity.ts";
import { createKeyring } from "./core/channels/keyring.ts";
import { createLimitBook } from "./core/limits/limits.ts";
import { createLedger } from "./core/ledger/ledger.ts";
import { createLogger } from "./core/kit/logger.ts";
import { createBudgetWarnings } from "./core/users/budget-warnings.ts";
import { createLowQuota } from "./core/users/low-quota.ts";
import { outboundOf } from "./core/users/outbound.ts";
import type { BudgetWarnings } from "./core/users/budget-warnings.ts";
import type { LowQuota } from "./core/users/low-quota.ts";
import { openSealer, refuseInRotation, sessionSecret } from "./core/options/seal-keys.ts";
import { renewPlans } from "./core/plans/periods.ts";
import { createOptions } from "./core/options/store.ts";
import { optionTrail } from "./core/users/option-trail.ts";
import { waysInRecorder } from "./core/users/providers/methods.ts";
import { RAILS } from "./core/payments/rails.ts";
import type { PaymentRail } from "./core/payments/rail.ts";
import { settleOrigins } from "./core/prices/origins.ts";
import { createCostBook } from "./core/costs/book.ts";
import { createPriceBook } from "./core/prices/price-book.ts";
import { priceRecorder } from "./core/prices/revisions.ts";
import { createReach } from "./net/reach.ts";
import { createPicker } from "./core/channels/picker.ts";
import { createRouting } from "./core/channels/routing.ts";
import { createCatalogue } from "./core/channels/catalogue.ts";
import { createMaintenance } from "./core/site/maintenance.ts";
import { createReadiness } from "./core/site/readiness.ts";
import { encryptionSecret } from "./core/kit/seal.ts";
import { createSessions } from "./core/users/sessions.ts";
import { createSiteLimits } from "./core/kit/site-limits.ts";
import { connect } from "./db/connect.ts";
import { lockDataDir, prepareDataDir } from "./db/data-dir-lock.ts";
import type { Env } from "./env.ts";
import { inRanges, parseRanges } from "./http/address.ts";
import { assets, publicFiles, readManifest } from "./http/assets.ts";
import { openapiDocument } from "./http/document.ts";
import { failures, unknownPath } from "./http/failures.ts";
import { refuseBadHost } from "./http/host.ts";
import { assertEveryRouteDeclaresAccess } from "./http/session.ts";
import type { SessionSettings } from "./http/session.ts";
import { socketSettings } from "./http/sockets.ts";
import { createVisitors } from "./http/visitors.ts";
import { createPages } from "./pages/serve-pages.ts";
import { listPresetModels, presetModelsByType } from "./providers/models.ts";
import { vendors } from "./providers/vendors.ts";
import { jobsOf } from "./jobs/jobs.ts";
import { createScheduler } from "./jobs/scheduler.ts";
import type { Scheduler } from "./jobs/scheduler.ts";
import { createMediaFetch } from "./relay/wire/media.ts";
import { createRelay } from "./relay/call/pipeline.ts";
import { createProbe } from "./relay/probe.ts";
import { pollTasks } from "./relay/tasks/poll.ts";
import { unknownCall } from "./relay/unknown-call.ts";
import { createRoutes } from "./routes.ts";
import type { Gateway } from "./routes.ts";

export interface Services {
  deps: Deps;
  session: SessionSettings;
  gateway: Gateway;
  jobs: Scheduler;
  lowQuota: LowQuota;
  budgetWarnings: BudgetWarnings;
  inbox: InboxService;
  /** What the inbox looks at by itself. */
  looks: Looks;
  /** Waits until all that was answered is durable, then lets go of the database. */
  close(): Promise<void>;
}

export interface Overrides {
  /** One that tells only the time of day leaves durations to the machine. */
  clock?: Pick<Clock, "nowMs"> & Partial<Clock>;
  logger?: Logger;
  /** Name server of the guard and of channels' addresses. */
  lookup?: Lookup;
  /** How long an upstream is read on for its usage once the client has left. */
  drainMs?: number;
  /** Rails of payment in place of the shipped ones; their options have been made known (`addRailOptions`). */
  rails?: readonly PaymentRail[];
  /** What the inbox takes for the space on the disk, and for an outage. */
  looks?: Pick<LookDeps, "diskSpace" | "awayMs">;
}

const guardOf =
  (deps: () => Deps): Deps["guard"] =>
  (address, limits) =>
    deps().guard(address, limits);

/** What decides who serves a call. */
function choosersOf(routing: Deps["routing"], caps: Deps["caps"]): Pick<Deps, "picker" | "keyring" | "caps"> {
  return { picker: createPicker(routing), keyring: createKeyring(caps), caps };
}

export async function createServices(env: Env, overrides: Overrides = {}): Promise<Services> {
  prepareDataDir(env.dataDir);
  const lock = lockDataDir(env.dataDir);
  const logger = overrides.logger ?? createLogger(env.logLevel);
  const clock: Clock = { ...systemClock, ...overrides.clock };
  refuseLostFile(env.dataDir, env.databaseUrl, env.startsNew);
  const db = await connect(env, undefined, {
    waitSeconds: env.databaseWaitSeconds,
    waiting: (reason, leftSeconds) => logger.warn("waiting for the database", { reason, leftSeconds }),
  });
  // Before anything is left in the directory: a start that ends here is a first start again.
  await settleIn(db, env.dataDir, env.startsNew);
  const nowSeconds = Math.floor(clock.nowMs() / 1000);
  const seal = await openSealer(db, encryptionSecret(env.encryptionKey, env.keyDir), nowSeconds);
  const options = await createOptions(db, seal);
  const recordPrices = priceRecorder({ db, clock });
  options.recordWith(recordPrices);
  await settleOrigins({ db, options, clock, record: recordPrices });
  const accounts = await createAccounts({ db, seal, clock, logger });
  const nodeId = readNodeId(env.dataDir);
  // What the ledger applies before the services stand was told by an earlier run.
  let lowQuota: LowQuota | undefined;
  const balances: BalanceWatch = {
    charged: (changed) => lowQuota?.charged(changed),
    credited: (ids) => lowQuota?.credited(ids),
  };
  const { dataDir, journalKeepMinutes } = env;
  const base = { db, clock, logger, seal, options, accounts };
  const limits = createLimitBook({ ...base, nodeId });
  const ledger = await createLedger({ ...base, limits, dataDir, nodeId, journalKeepMinutes, balances });
  // The node has its lease now: a change of the key that began meanwhile has seen it, or is seen here.
  await refuseInRotation(db);
  options.recordWith(optionTrail({ db, clock, ledger }));
  const routing = await createRouting({ db, seal, logger });
  const maintenance = createMaintenance(options);
  const sessions = await createSessions({ db, clock, logger });
  const prices = createPriceBook(options, () => clock.nowMs());
  const reach = createReach(env.upstreamNetworks, clock, overrides.lookup, !env.hasProxy);
  const inbox = await createInbox({ ...base, reach, guard: guardOf(() => deps) });
  const deps: Deps = {
    ...base,
    sessions,
    limits,
    ledger,
    routing,
    maintenance,
    prices,
    costs: await createCostBook(base),
    rails: overrides.rails ?? RAILS,
    vendors,
    catalogue: createCatalogue({ routing, prices, vendors }),
    inbox,
    guard: createGuard(overrides.lookup),
    reach,
    ...choosersOf(routing, createCaps(ledger, clock)),
    affinity: createAffinityStore(base),
    presets: { byType: presetModelsByType(), all: listPresetModels() },
    startedAt: Math.floor(clock.nowMs() / 1000),
    version: packageJson.version,
    dataDir,
    nodeId,
    trustedProxies: env.trustedProxies,
  };
  options.recordWith(waysInRecorder(deps));
  // The guard is looked up with each notice: tests put their own in its place.
  const notified = { ...deps, accounts, guard: guardOf(() => deps) };
  const lowBalances = (lowQuota = createLowQuota(notified));
  const budgetWarnings = createBudgetWarnings(notified);
  limits.warnBy(budgetWarnings.tell);
  accounts.onPlanDue((userId) => renewPlans(deps, userId));
  const officeRanges = parseRanges(env.rateLimitTrusted);
  const session: SessionSettings = {
    accounts,
    sessions,
    options,
    maintenance,
    limits: createSiteLimits(env.limits, clock, (address) => inRanges(address, officeRanges)),
    secret: await sessionSecret(db, seal, { fromEnv: env.sessionSecret, nowSeconds }),
    visitors: createVisitors(parseRanges(env.trustedProxies)),
  };
  const relay = createRelay(deps, session.visitors, createMediaFetch(outboundOf(deps)), overrides.drainMs);
  const probe = createProbe(deps, relay);
  const watch = createChannelWatch(deps, probe);
  const looks = startLooks({
    ...deps,
    inbox,
    condition: () => ledger.condition(),
    ...overrides.looks,
  });
  const jobs = createScheduler(
    deps,
    jobsOf(deps, watch, () => pollTasks(deps), env.logRetentionDays),
  );
  return {
    deps,
    session,
    gateway: { relay, watch, probe, readiness: createReadiness(() => ledger.condition()) },
    jobs,
    lowQuota: lowBalances,
    budgetWarnings,
    inbox,
    looks,
    async close() {
      await Promise.all([watch.stop(), jobs.stop(), looks.stop()]);
      session.visitors.close();
      relay.close();
      await sessions.close();
      await limits.close();
      await ledger.close();
      await lowBalances.settled();
      await budgetWarnings.settled();
      await inbox.close();
      accounts.close();
      await db.close();
      lock.release();
    },
  };
}

export async function createApp({ deps, session, gateway }: Services) {
  const manifest = readManifest();
  // By default the framework looks for the path behind the eleventh character: "http://gw/v1" would lose its own.
  const handler = { standardHostname: false };
  const app: AnyElysia = new Elysia({ websocket: socketSettings, handler })
    .use(
      failures(
        deps,
        (request) => refuseBadHost({ request }) ?? unknownCall(deps, request) ?? unknownPath(request),
      ),
    )
    .use(createRoutes(deps, session, gateway))
    .use(assets())
    .use(await publicFiles())
    .use(
      openapiDocument(() => app, {
        version: deps.version,
        serverAddress: () => deps.options.get("ServerAddress"),
      }),
    )
    .use(createPages(deps, session, manifest));
  assertEveryRouteDeclaresAccess(app.routes);
  return app;
}
