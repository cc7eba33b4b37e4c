// Listens, keeps the process alive through stray rejections, and drains on SIGTERM and SIGINT.
// Refuses new connections while draining; running answers get a bounded time to finish.
import type { AnyElysia } from "elysia";
import type { Services } from "./app.ts";
import { openWorkerEnd } from "./cluster/control.ts";
import type { WorkerEnd } from "./cluster/control.ts";
import { steerAway, steerToAll, workerAt } from "./cluster/steer.ts";
import type { Env } from "./env.ts";
import { cannotListen, replaceProcess } from "./env.ts";
import { lookEvery } from "./db/look-around.ts";
import { listen } from "./http/listen.ts";
import { mergedText } from "./observe/metrics.ts";
import { drainSockets } from "./http/sockets.ts";
import { uncaughtPolicy } from "./uncaught.ts";

/** Behind the end of the drain: until the last words are read, and until everything must be recorded. */
const LAST_WORDS_MS = 2000;
const RECORD_LIMIT_MS = 20_000;

/** So long connections that were on their way to a worker arrive after no more are sent to it. */
const ARRIVING_MS = 500;
/** Where a process that listens everywhere finds itself. */
const ANY_HOST = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

const LOOK_MS = 5000;
/** Processor time within one look: above the first the process is busy, below the second it rests. */
const BUSY_US = 1_000_000;
const RESTING_US = 250_000;

/**
 * After a busy time the engine keeps what it grew. The first rest gives garbage back, when nobody waits for anything. Compiled
 * code is left to the engine, which lets go of it minutes later: to give it back after half a minute of silence saved 20 MB, and
 * the calls that came next cost twice their processor time for minutes.
 */
function collectWhenResting(): void {
  let before = process.cpuUsage();
  // The start was busy too.
  let wasBusy = true;
  lookEvery(LOOK_MS, () => {
    const now = process.cpuUsage();
    const used = now.user + now.system - before.user - before.system;
    before = now;
    if (used > BUSY_US) wasBusy = true;
    else if (wasBusy && used < RESTING_US) {
      wasBusy = false;
      Bun.gc(true);
    }
  });
}

export interface Running {
  port: number;
  stop(): Promise<void>;
}

async function within(limitMs: number, done: Promise<unknown>): Promise<boolean> {
  const limit = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => limit.resolve(false), limitMs);
  const isDone = await Promise.race([done.then(() => true), limit.promise]);
  clearTimeout(timer);
  return isDone;
}

/** Refuses newcomers at once; what runs may end by itself until the limit, then it is settled, told and closed. */
async function drain(app: AnyElysia, { deps, gateway }: Services, limitMs: number): Promise<void> {
  const { server } = app;
  if (!server) return;
  const { relay } = gateway;
  const closed = server.stop(false);
  // A server waits for its open sockets, which would never end by themselves.
  const sockets = drainSockets(server, limitMs);
  // Calls without a client last: nobody can begin one any more.
  const quiet = Promise.all([closed, sockets]).then(() => relay.idle());
  if (await within(limitMs, quiet)) return;
  deps.logger.warn("the time to drain is over: ending what still runs");
  await Promise.all([relay.endAll(), sockets]);
  await within(LAST_WORDS_MS, closed);
  await server.stop(true);
}

export async function serve(env: Env, services: Services, app: AnyElysia): Promise<Running> {
  const { logger } = services.deps;
  // One unhandled rejection would end the process and with it every open stream.
  process.on("unhandledRejection", (reason) => {
    logger.error("unhandled rejection", { error: reason instanceof Error ? reason.stack : String(reason) });
  });
  try {
    const isShared = env.worker !== undefined;
    listen(app, services.session.visitors, { port: env.port, hostname: env.host, isShared });
  } catch (error) {
    throw cannotListen(env, error);
  }
  // The binary starts with a compiler that holds back (scripts/build-binary.ts): from here on its work pays.
  Bun.unsafe.setJITPolicy(1);
  collectWhenResting();

  const { worker } = env;
  let parent: WorkerEnd | undefined;
  let stopping: Promise<void> | undefined;
  /** `delayMs`: so long calls are served as ever, while probes are told that it ends. */
  const stop = (delayMs = 0) => {
    stopping ??= (async () => {
      services.gateway.readiness.drain();
      if (delayMs > 0) await Bun.sleep(delayMs);
      const drainMs = env.drainSeconds * 1000;
      const guard = setTimeout(() => {
        logger.error("could not record everything in time; the journal has what was answered");
        process.exit(1);
      }, drainMs + RECORD_LIMIT_MS);
      await drain(app, services, drainMs);
      await services.close();
      clearTimeout(guard);
    })();
    return stopping;
  };
  process.on("uncaughtException", uncaughtPolicy({ logger, stop, exit: (code) => process.exit(code) }));
  const end = (why: string, delayMs: number, more: { isSteered?: boolean } = {}) => {
    logger.info("draining", { signal: why, ...(worker === undefined ? {} : { worker }), ...more });
    stop(delayMs).then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  services.gateway.moving.restart = () => {
    // The others have nothing of the site in memory either.
    if (parent) return parent.tell({ kind: "roll" });
    logger.info("beginning anew with the site that was moved in");
    stop().then(
      () => {
        replaceProcess();
        process.exit(0);
      },
      () => process.exit(1),
    );
  };
  const signals = ["SIGTERM", "SIGINT", ...(worker === undefined ? (["SIGHUP"] as const) : [])] as const;
  for (const signal of signals) process.on(signal, () => end(signal, env.drainDelaySeconds * 1000));
  // Said last: whoever reads it may send a signal at once.
  const port = app.server?.port ?? env.port;
  logger.info(worker === undefined ? "serving" : "worker is serving", {
    ...(worker === undefined ? {} : { worker }),
    url: `http://${env.host === "0.0.0.0" ? "localhost" : env.host}:${port}`,
    database: services.deps.db.kind,
    version: services.deps.version,
  });
  if (worker !== undefined) {
    // The parent's: a terminal that closes tells all of them.
    process.on("SIGHUP", () => {});
    steerToAll();
    const retire = async (among: number) => {
      const host = ANY_HOST.get(env.host) ?? env.host;
      const isSteered = await steerAway(among, async () => (await workerAt(host, port)) === worker);
      if (isSteered) await Bun.sleep(ARRIVING_MS);
      end("retire", 0, { isSteered });
    };
    const { metrics, gateway } = services;
    const channel = (parent = openWorkerEnd({
      onRetire: (among) => void retire(among),
      snapshot: () => metrics.snapshot(),
    }));
    // Whoever is asked answers for all of them.
    gateway.metrics.text = async () => mergedText(await channel.gather());
    channel.tell({ kind: "serving" });
  }
  return { port, stop };
}
