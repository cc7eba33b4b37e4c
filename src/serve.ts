// Listens, keeps the process alive through stray rejections, and drains on SIGTERM and SIGINT.
// Refuses new connections while draining; running answers get a bounded time to finish.
import type { AnyElysia } from "elysia";
import type { Services } from "./app.ts";
import { EnvError } from "./env.ts";
import type { Env } from "./env.ts";
import { drainSockets } from "./http/sockets.ts";

const DRAIN_LIMIT_MS = 30_000;

const LOOK_MS = 5000;
/** Processor time within one look: above the first the process is busy, below the second it rests. */
const BUSY_US = 1_000_000;
const RESTING_US = 250_000;
/** Nobody calls: this little is timers. After so many such looks, half a minute, compiled code goes too. */
const SILENT_US = 100_000;
const SILENT_LOOKS = 6;

/**
 * After a busy time the engine keeps what it grew. The first rest gives garbage back, when nobody waits for anything;
 * a long silence also gives back what was compiled for the load, some 15 MB, which the next callers compile anew.
 */
function collectWhenResting(): void {
  let before = process.cpuUsage();
  // The start was busy too.
  let wasBusy = true;
  let hasGrown = false;
  let silentLooks = 0;
  setInterval(() => {
    const now = process.cpuUsage();
    const used = now.user + now.system - before.user - before.system;
    before = now;
    if (used > BUSY_US) wasBusy = hasGrown = true;
    else if (wasBusy && used < RESTING_US) {
      wasBusy = false;
      Bun.gc(true);
    }
    silentLooks = used < SILENT_US ? silentLooks + 1 : 0;
    if (hasGrown && silentLooks >= SILENT_LOOKS) {
      hasGrown = false;
      Bun.shrink();
    }
  }, LOOK_MS).unref();
}

export interface Running {
  port: number;
  stop(): Promise<void>;
}

export async function serve(env: Env, services: Services, app: AnyElysia): Promise<Running> {
  const { logger } = services.deps;
  // One unhandled rejection would end the process and with it every open stream.
  process.on("unhandledRejection", (reason) => {
    logger.error("unhandled rejection", { error: reason instanceof Error ? reason.stack : String(reason) });
  });
  await new Promise<void>((resolve) => {
    app.listen({ port: env.port, hostname: env.host, idleTimeout: 0, reusePort: false }, () => resolve());
  }).catch((error: unknown) => {
    const isTaken = (error as { code?: unknown }).code === "EADDRINUSE";
    throw new EnvError(
      isTaken
        ? `PORT ${env.port} is in use: stop the other program, or set PORT.`
        : `HOST is "${env.host}", PORT ${env.port}, where this machine cannot listen: ${String(error)}.`,
    );
  });
  const port = app.server?.port ?? env.port;
  logger.info("serving", {
    url: `http://${env.host === "0.0.0.0" ? "localhost" : env.host}:${port}`,
    database: services.deps.db.kind,
    version: services.deps.version,
  });

  // The binary starts with a compiler that holds back (scripts/build-binary.ts): from here on its work pays.
  Bun.unsafe.setJITPolicy(1);
  collectWhenResting();

  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= (async () => {
      const limit = setTimeout(() => process.exit(1), DRAIN_LIMIT_MS);
      // A server waits for its open sockets, which would never end by themselves.
      if (app.server) await drainSockets(app.server);
      await app.server?.stop(false);
      await services.close();
      clearTimeout(limit);
    })();
    return stopping;
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      logger.info("draining", { signal });
      stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
  return { port, stop };
}
