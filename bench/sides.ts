// What is loaded side by side: a build of the gateway, or one of the two proxies that it is held against, each started for
// itself before the same mocks, and the loads that they get.
// Refuses results with failed calls.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { origin, startGateway, withCpu } from "./gateway.ts";
import type { Job, LoadResult, Target } from "./load.ts";
import { LOAD_CORE, SUBJECT_CORE, pinSelf, runForJson, startWithPort } from "./processes.ts";
import { LIMITS, startFloor, startOwnRedis } from "./ratios.ts";
import type { TestRedis } from "../test/support/redis.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

export interface Side {
  name: string;
  target: Target;
  stop: () => Promise<void>;
}

/** A program, `bare` or `floor`, and the settings that are its own. */
export interface SideWords {
  program: string;
  env: Record<string, string>;
}

/** In place of a program: the least that a gateway on this runtime can be, and the least of one that meters. */
const BARE = "bare";
const FLOOR = "floor";

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

/** Streams at the same rate whose chunks come all at once: what is left of a stream's cost when its chunks cost nothing. */
const BURSTS = "bursts";
/** They begin one after another all the time, not in crowds. */
const BURST_RAMP_MS = 2000;

const here = (name: string) => join(import.meta.dir, name);

/** The next side's words off the front of a command line; settings before a program are its own. */
export function nextSide(words: string[]): SideWords | undefined {
  const env: Record<string, string> = {};
  for (let word = words[0]; word?.includes("="); word = words[0]) {
    const at = word.indexOf("=");
    env[word.slice(0, at)] = word.slice(at + 1);
    words.shift();
  }
  const program = words.shift();
  return program === undefined ? undefined : { program, env };
}

/** Starts each side and the mocks, hands them on, and ends everything. `limits`: the keys have limits that are never reached. */
export async function withSides(
  asked: readonly SideWords[],
  run: (sides: Side[]) => Promise<void>,
  limits = false,
): Promise<void> {
  ensureWrk();
  pinSelf(LOAD_CORE);
  const dir = mkdtempSync(join(tmpdir(), "weir-sides-"));
  const mock = await startWithPort(LOAD_CORE, [process.execPath, here("mock-upstream.ts")]);
  const http = await startWithPort(LOAD_CORE, [process.execPath, here("http-mock.ts")]);
  const sides: Side[] = [];
  let redis: TestRedis | undefined;
  try {
    for (const { program, env } of asked) {
      const name = [...Object.entries(env).map((pair) => pair.join("=")), program].join(" ");
      if (program === BARE || program === FLOOR) {
        const running = await (program === FLOOR
          ? startFloor(dir, mock.port)
          : startWithPort(SUBJECT_CORE, [process.execPath, here("bare-proxy.ts"), origin(mock.port)]));
        const target = { hostname: "127.0.0.1", port: running.port, key: "none", pid: running.pid };
        sides.push({ name, target, stop: running.stop });
        continue;
      }
      if (env["REDIS_URL"] === "own") {
        redis ??= await startOwnRedis();
        env["REDIS_URL"] = redis.url;
      }
      const command = program.endsWith(".ts") ? [process.execPath, resolve(program)] : [resolve(program)];
      const own = join(dir, String(sides.length));
      mkdirSync(own);
      const ways = { env, limits: limits ? LIMITS : undefined };
      const { target, running } = await startGateway(command, own, mock.port, http.port, ways);
      sides.push({ name, target, stop: running.stop });
    }
    await run(sides);
  } finally {
    for (const { stop } of sides) await stop();
    await Promise.all([mock.stop(), http.stop(), redis?.remove()]);
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * So many seconds of load on one side: at a concurrency ("32"), at a steady rate ("30/s"), of streams ("streams"), or of
 * streams whose chunks come at once ("bursts"). Throws when a call failed.
 */
export async function loadOf(
  { name, target: subject }: Side,
  load: string,
  seconds: number,
): Promise<LoadResult> {
  const amount = Number.parseInt(load, 10);
  const result = await withCpu(subject, (target) => {
    if (!load.endsWith("s")) return closedLoop(target, { concurrency: amount, seconds });
    const job: Job =
      load === "streams" || load === BURSTS
        ? {
            kind: "streams",
            target,
            concurrency: STREAMS,
            total: STREAMS * seconds,
            rampMs: load === BURSTS ? BURST_RAMP_MS : 500,
            isBurst: load === BURSTS,
          }
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
export async function warm(sides: readonly Side[], load: string): Promise<void> {
  const loop = load.endsWith("s") ? String(WARM_CONCURRENCY) : load;
  const calls = sides.map(() => 0);
  while (Math.min(...calls) < WARM_CALLS)
    for (const [at, side] of sides.entries())
      calls[at] = (calls[at] ?? 0) + (await loadOf(side, loop, 2)).requests;
  if (load !== loop) for (const side of sides) await loadOf(side, load, WARM_SECONDS);
}
