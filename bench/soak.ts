// `bun run soak [--minutes=30] [--db=sqlite|postgres] [--workers=2] [--rate=300] [--gateway=<program>]`: steady calls and streams
// for half an hour, the gateway's memory every minute. Ends with 1 when the last third needs over a tenth more than the
// second, or a call failed. `--workers` needs PostgreSQL; `--rate` is calls a second, and the streams beside them grow with it.
// Refuses to judge the first third: caches fill there, and code is compiled.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { type Gateway, startGateway } from "./gateway.ts";
import type { Job, LoadResult } from "./load.ts";
import { LOAD_CORE, pinSelf, residentMb, runForJson, startWithPort } from "./processes.ts";
import { startOnPostgres } from "./ratios.ts";

const CALLS_PER_SECOND = 300;
/** Streams that are open at the usual rate. */
const STREAMS = 50;
/** A stream takes two seconds; the minute's last ones end within it. */
const STREAMS_A_MINUTE = 28;
const MOST_GROWTH = 1.1;
const SAMPLE_MS = 1000;

const middle = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

function load(job: Job): Promise<LoadResult> {
  return runForJson<LoadResult>([process.execPath, join(import.meta.dir, "load.ts"), JSON.stringify(job)]);
}

/** Of a process and its workers, in MB. */
function allOf(pid: number): number {
  const children = `/proc/${pid}/task/${pid}/children`;
  const workers = existsSync(children) ? readFileSync(children, "utf8").split(" ").filter(Boolean) : [];
  return [pid, ...workers.map(Number)].reduce((sum, each) => sum + (residentMb(each) ?? 0), 0);
}

/** A minute of calls and streams; the middle of what the process needed meanwhile, in MB. */
async function minute(
  { target }: Gateway,
  perSecond: number,
): Promise<{ megabytes: number; answered: number; errors: number; reopened: number }> {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(allOf(target.pid ?? 0)), SAMPLE_MS);
  const concurrency = Math.max(1, Math.round((STREAMS * perSecond) / CALLS_PER_SECOND));
  try {
    const results = await Promise.all([
      load({ kind: "rate", target, perSecond, seconds: 60 }),
      load({ kind: "streams", target, concurrency, total: concurrency * STREAMS_A_MINUTE, rampMs: 1000 }),
    ]);
    const sum = (of: (result: LoadResult) => number) => results.reduce((all, each) => all + of(each), 0);
    return {
      megabytes: middle(samples),
      answered: sum(({ requests }) => requests),
      errors: sum(({ errors }) => errors),
      reopened: sum(({ reopened = 0 }) => reopened),
    };
  } finally {
    clearInterval(timer);
  }
}

/** True when memory stays flat and every call was answered. */
async function soak(gateway: Gateway, minutes: number, perSecond: number): Promise<boolean> {
  const megabytes: number[] = [];
  let errors = 0;
  for (let at = 1; at <= minutes; at++) {
    const result = await minute(gateway, perSecond);
    megabytes.push(result.megabytes);
    errors += result.errors;
    console.log(
      `minute ${at}: ${result.megabytes.toFixed(1)} MB, ${result.answered} answered, ${result.errors} failed, ${result.reopened} connections opened again`,
    );
  }
  const third = Math.floor(minutes / 3);
  const second = middle(megabytes.slice(-2 * third, -third));
  const last = middle(megabytes.slice(-third));
  const growth = last / second;
  console.log(
    `second third ${second.toFixed(1)} MB, last third ${last.toFixed(1)} MB: ${growth.toFixed(3)} of it, ${MOST_GROWTH} is allowed`,
  );
  if (errors > 0) console.log(`${errors} calls failed`);
  return growth <= MOST_GROWTH && errors === 0;
}

async function main(dir: string): Promise<boolean> {
  const valueOf = (name: string) =>
    process.argv.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
  const minutes = Number(valueOf("minutes") ?? "30");
  const database = valueOf("db") ?? "sqlite";
  const perSecond = Number(valueOf("rate") ?? CALLS_PER_SECOND);
  const workers = valueOf("workers") ?? "1";
  if (!Number.isInteger(minutes) || minutes < 3)
    throw new Error("--minutes must be a whole number from 3 on");
  if (database !== "sqlite" && database !== "postgres") throw new Error("--db must be sqlite or postgres");
  if (!Number.isInteger(perSecond) || perSecond < 1)
    throw new Error("--rate must be a whole number from 1 on");
  if (workers !== "1" && database !== "postgres") throw new Error("--workers needs --db=postgres");
  const built = join(dirname(import.meta.dir), "dist/weir");
  const program = resolve(valueOf("gateway") ?? built);
  if (!existsSync(program)) throw new Error(`${program} is not there: bun run build makes it`);
  pinSelf(LOAD_CORE);
  const mocks = await Promise.all(
    ["mock-upstream.ts", "http-mock.ts"].map((name) =>
      startWithPort(LOAD_CORE, [process.execPath, join(import.meta.dir, name)]),
    ),
  );
  const [chat = 0, http = 0] = mocks.map(({ port }) => port);
  try {
    const onPostgres =
      database === "postgres"
        ? await startOnPostgres([program], dir, { upstreamPort: chat, httpPort: http, workers })
        : undefined;
    const gateway = onPostgres ?? (await startGateway([program], dir, chat, http));
    try {
      return await soak(gateway, minutes, perSecond);
    } finally {
      await (onPostgres ? onPostgres.stop() : gateway.running.stop());
    }
  } finally {
    await Promise.all(mocks.map(({ stop }) => stop()));
  }
}

const dir = mkdtempSync(join(tmpdir(), "weir-soak-"));
let isFlat = false;
try {
  isFlat = await main(dir);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
} finally {
  rmSync(dir, { recursive: true, force: true });
}
process.exit(isFlat ? 0 : 1);
