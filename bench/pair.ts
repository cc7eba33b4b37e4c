// `bun bench/pair.ts [--limits] [NAME=value…] <program> [NAME=value…] <program> [rounds] [concurrency, a steady rate as 1000/s, or
// streams]`: two builds side by side on the same machine, one in two environments, or a build and `bare`, the proxy of this runtime
// that does nothing else, or `floor`, one that meters and does nothing else. `REDIS_URL=own` is a Redis started for it; with `--limits` keys have limits that are never reached.
// Each gets a second of load in turn, and each second is compared with the other's next to it, so that a
// noisy minute hits both. The first seconds, in which the engine still compiles, are told apart from what comes after.
// Refuses to print a rate without its fellow: on a shared machine only the quotient means something.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { origin, startGateway, withCpu } from "./gateway.ts";
import type { Job, LoadResult, Target } from "./load.ts";
import { LOAD_CORE, SUBJECT_CORE, pinSelf, runForJson, startWithPort } from "./processes.ts";
import { LIMITS, startFloor, startOwnRedis } from "./ratios.ts";
import { perSecond } from "./report.ts";
import type { TestRedis } from "../test/support/redis.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

interface Side {
  name: string;
  target: Target;
  stop: () => Promise<void>;
  /** One for each of the first seconds. */
  cold: LoadResult[];
  /** One a round. */
  results: LoadResult[];
}

/** Seconds of load on a process that has just started. */
const COLD_SECONDS = 3;
/**
 * Calls that a process has answered before it is measured as warm. The cost of a call falls to its half over the first 25,000
 * to 50,000 (what the engine compiles meanwhile is counted with them), and stays after that.
 */
const WARM_CALLS = 60_000;
const WARM_CONCURRENCY = 32;
/** Of code that only streams or a steady rate run through. */
const WARM_SECONDS = 4;

/** At once, of fifty chunks in two seconds each. */
const STREAMS = 60;

/** In place of a program: the least that a gateway on this runtime can be, and the least of one that meters. */
const BARE = "bare";
const FLOOR = "floor";

const here = (name: string) => join(import.meta.dir, name);
const middle = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const cpuUs = ({ cpuUs: us = Number.NaN }: LoadResult) => us;

async function loadOf({ name, target: subject }: Side, load: string, seconds: number): Promise<LoadResult> {
  const amount = Number.parseInt(load, 10);
  const result = await withCpu(subject, (target) => {
    if (!load.endsWith("s")) return closedLoop(target, { concurrency: amount, seconds });
    const job: Job =
      load === "streams"
        ? { kind: "streams", target, concurrency: STREAMS, total: STREAMS * seconds, rampMs: 500 }
        : { kind: "rate", target, perSecond: amount, seconds };
    return runForJson<LoadResult>([process.execPath, here("load.ts"), JSON.stringify(job)]);
  });
  if (result.errors > 0) throw new Error(`${name}: ${result.errors} calls failed`);
  return result;
}

/**
 * More calls until each process has answered enough of them, then some seconds of the load itself. In turn: the engine throws
 * away what it compiled and nobody ran for some twenty seconds.
 */
async function warm(sides: readonly Side[], load: string): Promise<void> {
  const loop = load.endsWith("s") ? String(WARM_CONCURRENCY) : load;
  const calls = sides.map(() => 0);
  while (Math.min(...calls) < WARM_CALLS)
    for (const [at, side] of sides.entries())
      calls[at] = (calls[at] ?? 0) + (await loadOf(side, loop, 2)).requests;
  if (load !== loop) for (const side of sides) await loadOf(side, load, WARM_SECONDS);
}

/** A line for each side; `resultsOf` names what is compared. */
function say(what: string, sides: readonly Side[], resultsOf: (side: Side) => readonly LoadResult[]): void {
  const base = sides[0] ? resultsOf(sides[0]) : [];
  for (const side of sides) {
    const results = resultsOf(side);
    const quotients = results.map((result, round) => {
      const beside = base[round];
      return beside ? cpuUs(result) / cpuUs(beside) : Number.NaN;
    });
    console.log(
      `${what}: ${side.name}: ${middle(results.map(cpuUs)).toFixed(0)} µs of processor time a call, ` +
        `${middle(results.map(perSecond)).toFixed(0)} calls a second, ${middle(quotients).toFixed(3)} of the first, ` +
        `p50 ${middle(results.map(({ p50Ms }) => p50Ms)).toFixed(2)} ms, p99 ${middle(results.map(({ p99Ms }) => p99Ms)).toFixed(2)} ms`,
    );
  }
}

const words = process.argv.slice(2).filter((word) => word !== "--limits");
const limits = process.argv.includes("--limits") ? LIMITS : undefined;

/** Settings before a program are its own. */
function nextProgram(): { program: string | undefined; env: Record<string, string> } {
  const env: Record<string, string> = {};
  for (let word = words[0]; word?.includes("="); word = words[0]) {
    const at = word.indexOf("=");
    env[word.slice(0, at)] = word.slice(at + 1);
    words.shift();
  }
  return { program: words.shift(), env };
}

const programs = [nextProgram(), nextProgram()];
const [rounds = "15", load = "32"] = words;
if (programs.some(({ program }) => program === undefined)) {
  console.error(
    "usage: bun bench/pair.ts [--limits] [NAME=value…] <program> [NAME=value…] <program> [rounds] [concurrency | rate/s | streams]",
  );
  process.exit(2);
}
ensureWrk();
pinSelf(LOAD_CORE);
const dir = mkdtempSync(join(tmpdir(), "weir-pair-"));
const mock = await startWithPort(LOAD_CORE, [process.execPath, here("mock-upstream.ts")]);
const http = await startWithPort(LOAD_CORE, [process.execPath, here("http-mock.ts")]);
const sides: Side[] = [];
let redis: TestRedis | undefined;
try {
  for (const { program = "", env } of programs) {
    const name = [...Object.entries(env).map((pair) => pair.join("=")), program].join(" ");
    if (program === BARE || program === FLOOR) {
      const running = await (program === FLOOR
        ? startFloor(dir, mock.port)
        : startWithPort(SUBJECT_CORE, [process.execPath, here("bare-proxy.ts"), origin(mock.port)]));
      const target = { hostname: "127.0.0.1", port: running.port, key: "none", pid: running.pid };
      sides.push({ name, target, stop: running.stop, cold: [], results: [] });
      continue;
    }
    if (env["REDIS_URL"] === "own") {
      redis ??= await startOwnRedis();
      env["REDIS_URL"] = redis.url;
    }
    const command = program.endsWith(".ts") ? [process.execPath, resolve(program)] : [resolve(program)];
    const own = join(dir, String(sides.length));
    mkdirSync(own);
    const { target, running } = await startGateway(command, own, mock.port, http.port, { env, limits });
    sides.push({ name, target, stop: running.stop, cold: [], results: [] });
  }
  for (let second = 0; second < COLD_SECONDS; second++)
    for (const side of sides) side.cold.push(await loadOf(side, load, 1));
  await warm(sides, load);
  for (let round = 0; round < Number(rounds); round++)
    for (const side of sides) side.results.push(await loadOf(side, load, 1));
  say("cold", sides, ({ cold }) => cold);
  say("warm", sides, ({ results }) => results);
} finally {
  for (const { stop } of sides) await stop();
  await Promise.all([mock.stop(), http.stop(), redis?.remove()]);
  rmSync(dir, { recursive: true, force: true });
}
process.exit(0);
