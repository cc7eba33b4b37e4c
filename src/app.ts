// Builds the services and the application: cross-cutting plugins first, then the routes; tests call this.
// Refuses to build when a route declares no permission.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Elysia } from "elysia";
import type { AnyElysia } from "elysia";
import packageJson from "../package.json" with { type: "json" };
import { createAccounts } from "./core/accounts.ts";
import type { Clock, Deps, Logger } from "./core/deps.ts";
import { createChannelWatch } from "./core/channel-watch.ts";
import { createGuard } from "./core/guard.ts";
import type { Lookup } from "./core/guard.ts";
import { createKeyring } from "./core/keyring.ts";
import { createLedger } from "./core/ledger.ts";
import { createLogger } from "./core/logger.ts";
import { createLowQuota } from "./core/low-quota.ts";
import type { BalanceWatch, LowQuota } from "./core/low-quota.ts";
import { checkSealKey, createOptions, sessionSecret } from "./core/options.ts";
import { createPriceBook } from "./core/price-book.ts";
import { createReach } from "./core/reach.ts";
import { createRouting } from "./core/routing.ts";
import { createSealer, encryptionSecret } from "./core/seal.ts";
import { connect } from "./db/connect.ts";
import { lockDataDir, prepareDataDir } from "./db/data-dir-lock.ts";
import type { Env } from "./env.ts";
import { parseRanges } from "./http/address.ts";
import { assets, publicFiles, readManifest } from "./http/assets.ts";
import { openapiDocument } from "./http/document.ts";
import { failures, unknownPath } from "./http/failures.ts";
import { refuseShortHost } from "./http/host.ts";
import { assertEveryRouteDeclaresAccess } from "./http/session.ts";
import type { SessionSettings } from "./http/session.ts";
import { socketSettings } from "./http/sockets.ts";
import { createPages } from "./pages/serve-pages.ts";
import { listPresetModels, presetModelsByType } from "./providers/models.ts";
import { jobsOf } from "./jobs/jobs.ts";
import { createScheduler } from "./jobs/scheduler.ts";
import type { Scheduler } from "./jobs/scheduler.ts";
import { createMediaFetch } from "./relay/media.ts";
import { createRelay } from "./relay/pipeline.ts";
import { createProbe } from "./relay/probe.ts";
import { pollTasks } from "./relay/task-poll.ts";
import { createRoutes } from "./routes.ts";
import type { Gateway } from "./routes.ts";

/** Above the largest body an operator may allow (option relay.max_body_mb): the relay refuses by itself, with 413. */
const MAX_BODY_BYTES = 1100 * 1024 * 1024;

export interface Services {
  deps: Deps;
  session: SessionSettings;
  gateway: Gateway;
  jobs: Scheduler;
  lowQuota: LowQuota;
  /** Waits until all that was answered is durable, then lets go of the database. */
  close(): Promise<void>;
}

export interface Overrides {
  clock?: Clock;
  logger?: Logger;
  /** Name server of the guard and of channels' addresses. */
  lookup?: Lookup;
  /** How long an upstream is read on for its usage once the client has left. */
  drainMs?: number;
}

/** A random name for this data directory: the journal's position in the tables hangs on it. */
export function readNodeId(dataDir: string): string {
  const path = join(dataDir, "node.id");
  if (existsSync(path)) return readFileSync(path, "utf8").trim();
  const id = randomBytes(8).toString("hex");
  // Synced: after a power cut another name would make the journal a stranger's.
  writeFileSync(path, `${id}\n`, { flush: true });
  return id;
}

export async function createServices(env: Env, overrides: Overrides = {}): Promise<Services> {
  prepareDataDir(env.dataDir);
  const lock = lockDataDir(env.dataDir);
  const logger = overrides.logger ?? createLogger(env.logLevel);
  const clock = overrides.clock ?? { nowMs: () => Date.now() };
  const seal = createSealer(encryptionSecret(env.encryptionKey, env.dataDir));
  const db = await connect(env);
  await checkSealKey(db, seal);
  const options = await createOptions(db, seal);
  const accounts = await createAccounts({ db, seal, clock, logger });
  const nodeId = readNodeId(env.dataDir);
  // What the ledger applies before the services stand was told by an earlier run.
  let lowQuota: LowQuota | undefined;
  const balances: BalanceWatch = {
    charged: (changed) => lowQuota?.charged(changed),
    credited: (ids) => lowQuota?.credited(ids),
  };
  const { dataDir } = env;
  const ledger = await createLedger({ db, clock, logger, accounts, options, dataDir, nodeId, balances });
  const routing = await createRouting({ db, seal, logger });
  const deps: Deps = {
    db,
    clock,
    logger,
    seal,
    options,
    accounts,
    ledger,
    routing,
    prices: createPriceBook(options),
    guard: createGuard(overrides.lookup),
    reach: createReach(env.upstreamNetworks, clock, overrides.lookup, !env.hasProxy),
    keyring: createKeyring(),
    presets: { byType: presetModelsByType(), all: listPresetModels() },
    startedAt: Math.floor(clock.nowMs() / 1000),
    version: packageJson.version,
    dataDir,
    nodeId,
    trustedProxies: env.trustedProxies,
  };
  const lowBalances = createLowQuota({
    ...deps,
    accounts,
    guard: (address, limits) => deps.guard(address, limits),
  });
  lowQuota = lowBalances;
  const session: SessionSettings = {
    accounts,
    secret: await sessionSecret(db, seal, env.sessionSecret),
    trustedProxies: parseRanges(env.trustedProxies),
  };
  const relay = createRelay(deps, session.trustedProxies, createMediaFetch(deps.guard), overrides.drainMs);
  const probe = createProbe(deps, relay);
  const watch = createChannelWatch(deps, probe);
  const jobs = createScheduler(
    deps,
    jobsOf(deps, watch, () => pollTasks(deps)),
  );
  return {
    deps,
    session,
    gateway: { relay, watch, probe },
    jobs,
    lowQuota: lowBalances,
    async close() {
      await Promise.all([watch.stop(), jobs.stop()]);
      relay.close();
      routing.close();
      await ledger.close();
      await lowBalances.settled();
      accounts.close();
      await db.close();
      lock.release();
    },
  };
}

export async function createApp({ deps, session, gateway }: Services) {
  const manifest = readManifest();
  const serve = { idleTimeout: 0, maxRequestBodySize: MAX_BODY_BYTES };
  const app: AnyElysia = new Elysia({ serve, websocket: socketSettings })
    .use(failures(deps.logger, (request) => refuseShortHost({ request }) ?? unknownPath(request)))
    .use(createRoutes(deps, session, gateway))
    .use(assets())
    .use(await publicFiles())
    .use(openapiDocument(() => app, deps.version))
    .use(createPages(deps, session, manifest));
  assertEveryRouteDeclaresAccess(app.routes);
  return app;
}
