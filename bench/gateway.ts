// The gateway that is measured: started on the subject's core in a directory of its own, set up, its processor time read.
// Its database is the embedded one unless the caller names another.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LoadResult, Target } from "./load.ts";
import { type Prepared, prepareGateway } from "./prepare.ts";
import { type Running, SUBJECT_CORE, cpuMs, freePort, start, waitForAnswer } from "./processes.ts";

export interface Gateway {
  command: string[];
  running: Running;
  port: number;
  target: Target;
  prepared: Prepared;
}

/** What differs from a plain gateway: settings, limits of its key, and whether it may use every core. */
export interface Ways {
  env?: Record<string, string>;
  limits?: Readonly<Record<string, number>>;
  core?: number | "any";
}

export function launchGateway(
  command: string[],
  dir: string,
  port: number,
  { env: more = {}, core = SUBJECT_CORE }: Ways = {},
): Running {
  const dataDir = join(dir, "data");
  mkdirSync(dataDir, { recursive: true });
  const env = { PORT: String(port), HOST: "127.0.0.1", DATA_DIR: dataDir, DATABASE_URL: "", REDIS_URL: "" };
  return start(core, command, { cwd: dir, env: { ...env, ...more }, logFile: join(dir, "gateway.log") });
}

export const origin = (port: number) => `http://127.0.0.1:${port}`;

/** A fresh gateway on the subject's core, set up for the mocks at these ports; told with its log when it fails. */
export async function startGateway(
  command: string[],
  dir: string,
  upstreamPort: number,
  httpPort: number,
  ways: Ways = {},
): Promise<Gateway> {
  const port = freePort();
  const running = launchGateway(command, dir, port, ways);
  try {
    await waitForAnswer(`${origin(port)}/api/status`, 30_000, running);
    const prepared = await prepareGateway(origin(port), origin(upstreamPort), origin(httpPort), ways.limits);
    return {
      command,
      running,
      port,
      target: { hostname: "127.0.0.1", port, key: prepared.key, pid: running.pid },
      prepared,
    };
  } catch (error) {
    await running.stop();
    const log = readFileSync(join(dir, "gateway.log"), "utf8").slice(-2000);
    throw new Error(
      `the gateway could not be set up: ${error instanceof Error ? error.message : String(error)}\n${log}`,
    );
  }
}

/** Adds what the subject, where it is a process of its own, spent on each request. */
export async function withCpu(
  target: Target,
  measure: (target: Target) => Promise<LoadResult>,
): Promise<LoadResult> {
  const before = target.pid === undefined ? undefined : cpuMs(target.pid);
  const result = await measure(target);
  const after = target.pid === undefined ? undefined : cpuMs(target.pid);
  if (before !== undefined && after !== undefined) result.cpuUs = ((after - before) * 1000) / result.requests;
  return result;
}
