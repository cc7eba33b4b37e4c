// `weir serve` with WORKERS above 1: what an earlier run left in journals is settled, the directory and the port are made
// sure of, then the parent of the workers takes over. Loads nothing of the product, so that the parent stays small.
// Refuses a port or a directory that another process has: workers share theirs, and would share it with a second copy too.
import { createParent } from "./cluster/parent.ts";
import type { Parent } from "./cluster/parent.ts";
import { createLogger } from "./core/kit/logger.ts";
import { DataDirInUse, DataDirUnusable, lockDataDir, prepareDataDir } from "./db/data-dir-lock.ts";
import { cannotListen, EnvError, ownCommand, readEnv, workerEnvironment } from "./env.ts";
import type { Env } from "./env.ts";

/** Beyond its delay and its drain a worker has so long to end its connections and to record everything (serve.ts). */
const RECORD_SECONDS = 25;

/** The port, free a moment ago: nobody listens on it, sharing or not. PORT 0 becomes a number that all workers get. */
function freePort({ port, host }: Env): number {
  try {
    const probe = Bun.serve({ port, hostname: host, reusePort: false, fetch: () => new Response() });
    const found = probe.port ?? port;
    void probe.stop(true);
    return found;
  } catch (error) {
    throw cannotListen({ port, host }, error);
  }
}

function listenToSignals(parent: Parent, end: (code: number) => void): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      parent.stop().then(end, () => end(1));
    });
  process.on("SIGHUP", () => void parent.roll());
}

/** What an operator has to know of limits in memory; undefined: through Valkey all processes keep them together. */
export function limitsWarning({ valkey }: Pick<Env, "valkey">): string | undefined {
  if (valkey) return undefined;
  return "limits of requests are kept by each worker: together they let through up to so many times as much";
}

async function serveWithWorkers(): Promise<void> {
  const env = readEnv();
  const logger = createLogger(env.logLevel);
  prepareDataDir(env.dataDir);
  // Another process does it, which loads the product and ends: it has the directory's lock meanwhile.
  const settling = Bun.spawn(ownCommand(["settle"]), { stdio: ["ignore", "ignore", "inherit"] });
  const settled = await settling.exited;
  if (settled !== 0) process.exit(settled);
  const lock = lockDataDir(env.dataDir);
  const port = freePort(env);
  const { workers } = env;
  const parent = createParent({
    workers,
    command: ownCommand(["serve"]),
    environmentOf: (index) => workerEnvironment(index, port),
    endLimitMs: (env.drainDelaySeconds + env.drainSeconds + RECORD_SECONDS) * 1000,
    logger,
  });
  listenToSignals(parent, (code) => {
    lock.release();
    process.exit(code);
  });
  if (!(await parent.start())) process.exit(1);
  const warning = limitsWarning(env);
  if (warning !== undefined) logger.warn(warning, { workers });
  logger.info("serving", {
    url: `http://${env.host === "0.0.0.0" ? "localhost" : env.host}:${port}`,
    workers,
  });
}

export async function runCommand(): Promise<void> {
  try {
    await serveWithWorkers();
  } catch (error) {
    if (!(error instanceof EnvError || error instanceof DataDirInUse || error instanceof DataDirUnusable))
      throw error;
    console.error(`weir cannot start: ${error.message}`);
    process.exit(1);
  }
}
