// `bun bench/pair.ts <program> <program> [rounds] [concurrency]`: two builds side by side on the same machine. Each gets a
// second of load in turn, and each second is compared with the other's next to it, so that a noisy minute hits both.
// Refuses to print a rate without its fellow: on a shared machine only the quotient means something.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Job, LoadResult, Target } from "./load.ts";
import { prepareGateway } from "./prepare.ts";
import {
  LOAD_CORE,
  SUBJECT_CORE,
  cpuMs,
  freePort,
  pinSelf,
  runForJson,
  start,
  startWithPort,
  waitForAnswer,
} from "./processes.ts";

interface Side {
  name: string;
  target: Target & { pid: number };
  stop: () => Promise<void>;
  /** One a round. */
  cpuUs: number[];
  perSecond: number[];
}

const here = (name: string) => join(import.meta.dir, name);
const middle = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function startSide(program: string, dir: string, mockPort: number, httpPort: number): Promise<Side> {
  const port = freePort();
  const dataDir = join(dir, "data");
  mkdirSync(dataDir, { recursive: true });
  const command = program.endsWith(".ts") ? [process.execPath, resolve(program)] : [resolve(program)];
  const env = { PORT: String(port), HOST: "127.0.0.1", DATA_DIR: dataDir, DATABASE_URL: "", REDIS_URL: "" };
  const running = start(SUBJECT_CORE, command, { cwd: dir, env, logFile: join(dir, "gateway.log") });
  const origin = `http://127.0.0.1:${port}`;
  await waitForAnswer(`${origin}/api/status`, 30_000, running);
  const local = (each: number) => `http://127.0.0.1:${each}`;
  const { key } = await prepareGateway(origin, local(mockPort), local(httpPort));
  const target = { hostname: "127.0.0.1", port, key, pid: running.pid };
  return { name: program, target, stop: running.stop, cpuUs: [], perSecond: [] };
}

async function loadOf(
  side: Side,
  concurrency: number,
  seconds: number,
): Promise<{ us: number; rate: number }> {
  const job: Job = { kind: "closed", target: side.target, concurrency, seconds };
  const before = cpuMs(side.target.pid) ?? Number.NaN;
  const { requests, errors } = await runForJson<LoadResult>([
    process.execPath,
    here("load.ts"),
    JSON.stringify(job),
  ]);
  if (errors > 0) throw new Error(`${side.name}: ${errors} calls failed`);
  const after = cpuMs(side.target.pid) ?? Number.NaN;
  return { us: ((after - before) * 1000) / requests, rate: requests / seconds };
}

const [first, second, rounds = "15", concurrency = "32"] = process.argv.slice(2);
if (first === undefined || second === undefined) {
  console.error("usage: bun bench/pair.ts <program> <program> [rounds] [concurrency]");
  process.exit(2);
}
pinSelf(LOAD_CORE);
const dir = mkdtempSync(join(tmpdir(), "weir-pair-"));
const mock = await startWithPort(LOAD_CORE, [process.execPath, here("mock-upstream.ts")]);
const http = await startWithPort(LOAD_CORE, [process.execPath, here("http-mock.ts")]);
const sides: Side[] = [];
try {
  for (const program of [first, second])
    sides.push(await startSide(program, join(dir, String(sides.length)), mock.port, http.port));
  // What is measured is compiled code.
  for (const side of sides) await loadOf(side, Number(concurrency), 4);
  for (let round = 0; round < Number(rounds); round++) {
    for (const side of sides) {
      const { us, rate } = await loadOf(side, Number(concurrency), 1);
      side.cpuUs.push(us);
      side.perSecond.push(rate);
    }
  }
  const [base] = sides;
  for (const { name, cpuUs, perSecond } of sides) {
    const quotients = cpuUs.map((us, round) => us / (base?.cpuUs[round] ?? Number.NaN));
    console.log(
      `${name}: ${middle(cpuUs).toFixed(0)} µs of processor time a call, ${middle(perSecond).toFixed(0)} calls a second, ` +
        `${middle(quotients).toFixed(3)} of the first`,
    );
  }
} finally {
  for (const { stop } of sides) await stop();
  await Promise.all([mock.stop(), http.stop()]);
  rmSync(dir, { recursive: true, force: true });
}
process.exit(0);
