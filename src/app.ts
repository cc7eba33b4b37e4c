// Builds the services and the application: cross-cutting plugins first, then the routes; tests call this.
// Refuses to build when a route declares no permission.
import { Elysia } from "elysia";
import type { AnyElysia } from "elysia";
import packageJson from "../package.json" with { type: "json" };
import { createBackups } from "./core/backup/schedule.ts";
import { createAccounts } from "./core/users/accounts.ts";
import { systemClock } from "./core/kit/clock.ts";
import type { Clock, Deps, Logger, BalanceWatch } from "./core/deps.ts";
import { createChannelWatch } from "./core/channels/watch.ts";
import { createGuard } from "./net/guard.ts";
import type { Lookup } from "./net/guard.ts";
import { databaseNumber } from "./core/ledger/node-lease.ts";
import { databasePlace } from "./db/place.ts";
import { readNodeId, refuseLostFile, settleIn } from "./core/ledger/installation.ts";
import { createInbox } from "./core/inbox/inbox.ts";
import { fallTeller } from "./core/inbox/ledger-causes.ts";
import type { InboxService } from "./core/inbox/inbox.ts";
import { startLooks } from "./core/inbox/looks.ts";
import type { LookDeps, Looks } from "./core/inbox/looks.ts";
import { createCaps } from "./core/channels/caps.ts";
import { createSharedCaps } from "./core/channels/shared-caps.ts";
import { createSharedWire } from "./core/kit/shared-wire.ts";
import { createAffinityStore } from "./core/channels/affinity.ts";
import { createKeyring, wakeSwitchedOn } from "./core/channels/keyring.ts";
import { createLimitBook } from "./core/limits/limits.ts";
import { createLedger } from "./core/ledger/ledger.ts";
import type { LedgerService } from "./core/ledger/ledger.ts";
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
import { refuseWrongClock } from "./core/site/clock-check.ts";
import { metricSources } from "./core/site/metric-sources.ts";
import { createModelDays } from "./core/site/model-days.ts";
import type { ModelDays } from "./core/site/model-days.ts";
import { createNodeFigures } from "./core/site/node-figures.ts";
import type { NodeFigures } from "./core/site/node-figures.ts";
import { createMaintenance } from "./core/site/maintenance.ts";
import { createReadiness } from "./core/site/readiness.ts";
import { encryptionSecret } from "./core/kit/seal.ts";
import { createSharedAttempts } from "./core/kit/shared-attempts.ts";
import { createSessions } from "./core/users/sessions.ts";
import { createSiteLimits } from "./core/kit/site-limits.ts";
import { connect } from "./db/connect.ts";
import type { Database } from "./db/database.ts";
import { openValkey } from "./db/valkey.ts";
import type { Valkey } from "./db/valkey.ts";
import { lockDataDir, prepareDataDir } from "./db/data-dir-lock.ts";
import { lookEvery } from "./db/look-around.ts";
import { backupPlan } from "./backup-process.ts";
import type { Env } from "./env.ts";
import { refuseHalfImported } from "./import/state.ts";
import { inRanges, parseRanges } from "./http/address.ts";
import { assets, publicFiles, readManifest } from "./http/assets.ts";
import { openapiDocument } from "./http/document.ts";
import { failures, unknownPath } from "./http/failures.ts";
import { refuseBadHost } from "./http/host.ts";
import { assertEveryRouteDeclaresAccess } from "./http/session.ts";
import type { SessionSettings } from "./http/session.ts";
import { socketSettings } from "./http/sockets.ts";
import { createVisitors } from "./http/visitors.ts";
import { watchEventLoop } from "./observe/event-loop.ts";
import type { EventLoopWatch } from "./observe/event-loop.ts";
import { createMetrics } from "./observe/metrics.ts";
import type { Metrics } from "./observe/metrics.ts";
import type { Observer } from "./observe/observer.ts";
import { createObserver } from "./observe/observer.ts";
import type { Traces } from "./observe/traces.ts";
import { createPages } from "./pages/serve-pages.ts";
import { listPresetModels, presetModelsByType } from "./providers/models.ts";
import { providerName } from "./providers/telemetry.ts";
import { vendors } from "./providers/vendors.ts";
import { jobsOf } from "./jobs/jobs.ts";
import { createScheduler } from "./jobs/scheduler.ts";
import type { Scheduler } from "./jobs/scheduler.ts";
import { createMoving } from "./moving.ts";
import { createMediaFetch } from "./relay/wire/media.ts";
import { createRelay } from "./relay/call/pipeline.ts";
import type { Relay } from "./relay/call/pipeline.ts";
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
  metrics: Metrics;
  /** Tests write before the minute is over. */
  modelDays: ModelDays;
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
  /** How many milliseconds an answer of the Valkey is waited for. */
  valkeyTicks?: number;
  /** Rails of payment in place of the shipped ones; their options have been made known (`addRailOptions`). */
  rails?: readonly PaymentRail[];
  /** What the inbox takes for the space on the disk, and for an outage. */
  looks?: Pick<LookDeps, "diskSpace" | "awayMs" | "makesBackups">;
}

const guardOf =
  (deps: () => Deps): Deps["guard"] =>
  (address, limits) =>
    deps().guard(address, limits);

/** What decides who serves a call. */
function choosersOf(routing: Deps["routing"], caps: Deps["caps"]): Pick<Deps, "picker" | "keyring" | "caps"> {
  const keyring = createKeyring(caps);
  wakeSwitchedOn(keyring, routing);
  return { picker: createPicker(routing), keyring, caps };
}

async function connectPatiently(env: Env, logger: Logger): Promise<Database> {
  const db = await connect(env, undefined, {
    waitSeconds: env.databaseWaitSeconds,
    waiting: (reason, leftSeconds) => logger.warn("waiting for the database", { reason, leftSeconds }),
  });
  await refuseWrongClock({ db, logger, clock: systemClock });
  return db;
}

/** Sites that share a server are told apart by their databases' numbers, and a copy that has the number by where it is. */
async function valkeyOf(
  { valkey }: Env,
  { db, clock, logger }: Pick<Deps, "db" | "clock" | "logger">,
  deadlineTicks: number | undefined,
): Promise<Valkey | undefined> {
  if (!valkey) return undefined;
  const place = await databasePlace(db);
  const prefix = `weir:${((await databaseNumber(db)) ?? 0).toString(36)}${place && `.${place}`}:`;
  const opened = await openValkey({
    address: valkey,
    prefix,
    monotonicMs: () => clock.monotonicMs(),
    logger,
    deadlineTicks,
  });
  db.carryChanges(opened);
  return opened;
}

const accessTo =
  (logger: Logger): Observer["access"] =>
  (fields) =>
    logger.info("call", fields);

/** The packages are loaded where somebody wants traces. */
async function tracesOf({ tracing }: Env, instance: string): Promise<Traces | undefined> {
  if (!tracing) return undefined;
  const { createTraces } = await import("./observe/traces.ts");
  return createTraces({ ...tracing, version: packageJson.version, instance });
}

function sessionSettings(env: Env, deps: Deps, secret: string): SessionSettings {
  const { accounts, sessions, options, maintenance, clock, valkey, seal } = deps;
  const officeRanges = parseRanges(env.rateLimitTrusted);
  return {
    accounts,
    sessions,
    options,
    databaseKind: deps.db.kind,
    maintenance,
    limits: createSiteLimits(
      env.limits,
      clock,
      (address) => inRanges(address, officeRanges),
      valkey && createSharedAttempts(valkey, seal, () => deps.ledger.place().nodes),
    ),
    secret,
    visitors: createVisitors(parseRanges(env.trustedProxies), lookEvery),
  };
}

function metricsOf(
  deps: Deps,
  loop: EventLoopWatch,
  { ledger, relay, jobs }: { ledger: LedgerService; relay: Relay; jobs: Scheduler },
): Metrics {
  const metrics = createMetrics(deps.observer.figures, loop);
  const read = {
    lag: () => ledger.lag(),
    isStopped: () => ledger.condition().stoppedBy !== undefined,
    inFlight: () => relay.inFlight(),
    jobs: () => jobs.succeeded,
    providerName,
  };
  for (const source of metricSources({ ...deps, ...read })) metrics.watch(source);
  return metrics;
}

/** What answers calls, and what comes round by itself. */
function beginWork(
  env: Env,
  { deps, session, ledger, inbox }: Pick<Services, "deps" | "session" | "inbox"> & { ledger: LedgerService },
  overrides: Overrides,
) {
  const relay = createRelay(deps, session.visitors, createMediaFetch(outboundOf(deps)), overrides.drainMs);
  const probe = createProbe(deps, relay);
  const watch = createChannelWatch(deps, probe);
  const looks = startLooks({
    ...deps,
    inbox,
    condition: () => ledger.condition(),
    makesBackups: env.backupDir !== "",
    ...overrides.looks,
  });
  const { logRetentionDays } = env;
  const backups = env.backupDir === "" ? undefined : createBackups(deps, backupPlan(env));
  const jobs = createScheduler(
    deps,
    jobsOf(deps, watch, () => pollTasks(deps), { logRetentionDays, backups }),
    lookEvery,
  );
  const loop = watchEventLoop({ lookEvery });
  const modelDays = createModelDays({ ...deps, models: deps.observer.figures.models });
  const metrics = metricsOf(deps, loop, { ledger, relay, jobs });
  const gateway: Gateway = {
    relay,
    watch,
    probe,
    readiness: createReadiness(() => ledger.condition(), deps.valkey),
    worker: env.worker,
    moving: createMoving(deps),
    metrics: { text: () => metrics.text(), token: env.metricsToken },
  };
  return {
    gateway,
    figures: createNodeFigures({
      ...deps,
      lag: () => ledger.lag(),
      inFlight: () => relay.inFlight(),
      delays: loop.delays,
      durability: deps.db.kind === "postgres" ? env.durability : "journal",
    }),
    jobs,
    looks,
    metrics,
    modelDays,
    async stop() {
      loop.stop();
      await modelDays.stop();
      // A copy of many gigabytes would hold up the stop.
      backups?.stop();
      await Promise.all([watch.stop(), jobs.stop(), looks.stop()]);
    },
  };
}

export async function createServices(env: Env, overrides: Overrides = {}): Promise<Services> {
  prepareDataDir(env.dataDir);
  const lock = lockDataDir(env.dataDir);
  let node: string | undefined;
  const logger = overrides.logger ?? createLogger(env.logLevel, undefined, () => node);
  const clock: Clock = { ...systemClock, ...overrides.clock };
  refuseLostFile(env.dataDir, env.databaseUrl, env.startsNew);
  const db = await connectPatiently(env, logger);
  // Before anything is left in the directory: a start that ends here is a first start again.
  await settleIn(db, env.dataDir, env.startsNew);
  await refuseHalfImported(db);
  const valkey = await valkeyOf(env, { db, clock, logger }, overrides.valkeyTicks);
  const nowSeconds = Math.floor(clock.nowMs() / 1000);
  const seal = await openSealer(db, encryptionSecret(env.encryptionKey, env.keyDir), nowSeconds);
  const options = await createOptions(db, seal);
  const recordPrices = priceRecorder({ db, clock });
  options.recordWith(recordPrices);
  await settleOrigins({ db, options, clock, record: recordPrices });
  const accounts = await createAccounts({ db, seal, clock, logger });
  const nodeId = (node = readNodeId(env.dataDir));
  // What the ledger applies before the services stand was told by an earlier run.
  let lowQuota: LowQuota | undefined;
  let figures: (() => Promise<NodeFigures>) | undefined;
  const ownFigures = async () => figures?.().catch(() => undefined);
  const balances: BalanceWatch = {
    charged: (changed) => lowQuota?.charged(changed),
    credited: (ids) => lowQuota?.credited(ids),
  };
  const falls = fallTeller(nodeId);
  const { dataDir, journalKeepMinutes, durability } = env;
  const base = { db, valkey, clock, logger, seal, options, accounts };
  const traces = await tracesOf(env, nodeId);
  const observer = createObserver({ traces, access: env.accessLog ? accessTo(logger) : undefined });
  const limits = createLimitBook({ ...base, nodeId });
  const ledger = await createLedger({
    ...base,
    limits,
    dataDir,
    nodeId,
    journalKeepMinutes,
    durability,
    balances,
    fellBack: falls.tell,
    figures: async () => JSON.stringify(await ownFigures()),
    synced: (ms) => observer.synced(ms),
  });
  // The node has its lease now: a change of the key that began meanwhile has seen it, or is seen here.
  await refuseInRotation(db);
  options.recordWith(optionTrail({ db, clock, ledger }));
  const routing = await createRouting({ db, seal, logger });
  const maintenance = createMaintenance(options);
  const sessions = await createSessions({ db, clock, logger });
  const prices = createPriceBook(options, () => clock.nowMs());
  const reach = createReach(env.upstreamNetworks, clock, overrides.lookup, !env.hasProxy);
  const inbox = await createInbox({ ...base, reach, guard: guardOf(() => deps) });
  falls.into(inbox);
  const sharedCaps = valkey && createSharedCaps(createSharedWire(valkey, clock), clock);
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
    ...choosersOf(routing, createCaps(ledger, clock, sharedCaps)),
    affinity: createAffinityStore(base),
    observer,
    ownFigures,
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
  const secret = await sessionSecret(db, seal, { fromEnv: env.sessionSecret, nowSeconds });
  const session = sessionSettings(env, deps, secret);
  const work = beginWork(env, { deps, session, ledger, inbox }, overrides);
  figures = work.figures;
  return {
    deps,
    session,
    ...work,
    lowQuota: lowBalances,
    budgetWarnings,
    inbox,
    async close() {
      await work.stop();
      session.visitors.close();
      work.gateway.relay.close();
      await sessions.close();
      await limits.close();
      await ledger.close();
      await traces?.close();
      await lowBalances.settled();
      await budgetWarnings.settled();
      await inbox.close();
      accounts.close();
      sharedCaps?.close();
      valkey?.close();
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
