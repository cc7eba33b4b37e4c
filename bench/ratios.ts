// The gateway beside a bare proxy of its own runtime, and PostgreSQL beside the embedded database, at three loads: processor
// time a call and a stream, the wait that is added, and what PostgreSQL costs while nobody calls.
// Refuses absolute figures: every round puts one subject beside the other, and the middle quotient counts.
import { mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { startRedis } from "../test/support/redis.ts";
import type { TestRedis } from "../test/support/redis.ts";
import { createPostgresDatabase } from "../test/support/postgres.ts";
import { type Gateway, origin, startGateway, withCpu } from "./gateway.ts";
import type { IdleShares, IdleSizes } from "./idle.ts";
import type { Job, LoadResult, Target } from "./load.ts";
import { SUBJECT_CORE, runForJson, startWithPort } from "./processes.ts";
import { closedLoop } from "./wrk.ts";

/**
 * `floor` is what any metered gateway has to do (floor.ts); `postgres` is the same program on PostgreSQL; `limited` asks nobody
 * about its key's limits, `shared` a server of its own.
 */
type RatioSubject = "direct" | "bare" | "floor" | "embedded" | "postgres" | "limited" | "shared";
type LoadName = "callers" | "lone" | "streams";
type Round = Partial<Record<RatioSubject, LoadResult>>;

export interface RatioFigures {
  rounds: Record<LoadName, Round[]>;
  /** The first calls of each at 32 callers, while the engine still compiles: part of no goal. */
  cold: Round;
  /** What the gateway takes while nobody calls, on PostgreSQL and on the embedded database; undefined: it was not measured. */
  idle: Record<"postgres" | "embedded", IdleShares> | undefined;
  /** Share of the questions to Valkey that were answered without it; undefined: it was not measured. */
  missedShare: number | undefined;
}

interface RatioSizes {
  /** Calls that each subject has answered before it counts as warm: the engine has compiled what they run through. */
  warmCalls: number;
  rounds: number;
  callerSeconds: number;
  loneSeconds: number;
  /** Streams at once, each of fifty chunks in two seconds, and how many of them. */
  streams: number;
  streamsTotal: number;
  idle: IdleSizes;
}

export const RATIO_SIZES: Readonly<Record<"full" | "quick", RatioSizes>> = {
  full: {
    warmCalls: 60_000,
    rounds: 4,
    callerSeconds: 3,
    loneSeconds: 8,
    streams: 60,
    streamsTotal: 120,
    idle: { youngSeconds: 30, restSeconds: 60 },
  },
  quick: {
    warmCalls: 30_000,
    rounds: 1,
    callerSeconds: 1,
    loneSeconds: 4,
    streams: 60,
    streamsTotal: 60,
    idle: { youngSeconds: 25, restSeconds: 15 },
  },
};

const CALLERS = 32;
const WARM_STEP_SECONDS = 2;
/** Of each load, uncounted, before it is measured. */
const AGAIN_SECONDS = 3;
const LONE_PER_SECOND = 30;

/** The gateway on a PostgreSQL of its own; both end with `stop`. */
export async function startOnPostgres(
  command: string[],
  dir: string,
  { upstreamPort, httpPort, workers = "1" }: { upstreamPort: number; httpPort: number; workers?: string },
): Promise<Gateway & { stop: () => Promise<void> }> {
  const database = await createPostgresDatabase();
  const own = join(dir, "postgres");
  mkdirSync(own, { recursive: true });
  try {
    const gateway = await startGateway(command, own, upstreamPort, httpPort, {
      env: { DATABASE_URL: database.url, WORKERS: workers },
    });
    const stop = async (): Promise<void> => {
      await gateway.running.stop();
      await database.drop();
    };
    return { ...gateway, stop };
  } catch (error) {
    await database.drop();
    throw error;
  }
}

/** The least that meters, with its files in a directory of its own below `dir`. */
export async function startFloor(dir: string, upstreamPort: number) {
  const own = mkdtempSync(join(dir, "floor-"));
  const program = join(import.meta.dir, "floor.ts");
  return startWithPort(SUBJECT_CORE, [process.execPath, program, origin(upstreamPort), own]);
}

const MOST_MISSED = 0.01;
/** Never reached, and asked about with every call; what is open is told at its end. */
export const LIMITS = { rpm_limit: 1_000_000_000, max_concurrency: 1_000_000 } as const;

/** It would have a machine of its own: here it comes to its turn before the load. */
export async function startOwnRedis(): Promise<TestRedis> {
  const redis = await startRedis();
  if (redis.pid !== undefined) Bun.spawnSync(["renice", "-n", "-19", "-p", String(redis.pid)]);
  return redis;
}

/** Two gateways whose key has limits, one of them with a Redis of its own; all end with `stop`. */
export async function startLimited(
  command: string[],
  dir: string,
  upstreams: readonly [upstreamPort: number, httpPort: number],
): Promise<{ limited: Target; shared: Target; stop: () => Promise<void> }> {
  const redis = await startOwnRedis();
  const running: Gateway[] = [];
  const stop = async (): Promise<void> => {
    for (const gateway of running) await gateway.running.stop();
    await redis.remove();
  };
  const begin = async (name: string, env: Record<string, string>): Promise<Target> => {
    const own = join(dir, name);
    mkdirSync(own, { recursive: true });
    const gateway = await startGateway(command, own, ...upstreams, { env, limits: LIMITS });
    running.push(gateway);
    return gateway.target;
  };
  try {
    return {
      limited: await begin("limited", {}),
      shared: await begin("shared", { REDIS_URL: redis.url }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function load(job: Job): Promise<LoadResult> {
  return runForJson<LoadResult>([process.execPath, join(import.meta.dir, "load.ts"), JSON.stringify(job)]);
}

/** Every subject in turn, round after round, so that a noisy minute hits them all. */
export async function measureRatios(
  targets: Partial<Record<RatioSubject, Target>>,
  sizes: RatioSizes,
  say: (text: string) => void,
): Promise<RatioFigures> {
  const { rounds: count, warmCalls, callerSeconds, loneSeconds, streams, streamsTotal } = sizes;
  const loads: Record<LoadName, (target: Target) => Promise<LoadResult>> = {
    callers: (target) => closedLoop(target, { concurrency: CALLERS, seconds: callerSeconds }),
    lone: (target) => load({ kind: "rate", target, perSecond: LONE_PER_SECOND, seconds: loneSeconds }),
    streams: (target) =>
      load({ kind: "streams", target, concurrency: streams, total: streamsTotal, rampMs: 1000 }),
  };
  const again: Record<LoadName, (target: Target) => Promise<LoadResult>> = {
    callers: (target) => closedLoop(target, { concurrency: CALLERS, seconds: AGAIN_SECONDS }),
    lone: (target) => load({ kind: "rate", target, perSecond: LONE_PER_SECOND, seconds: AGAIN_SECONDS }),
    streams: (target) => load({ kind: "streams", target, concurrency: streams, total: streams, rampMs: 500 }),
  };
  const subjects = Object.entries(targets) as [RatioSubject, Target][];
  const figures: RatioFigures = {
    rounds: { callers: [], lone: [], streams: [] },
    cold: {},
    idle: undefined,
    missedShare: undefined,
  };
  const before = targets.shared && (await readMissed(targets.shared));
  // What is measured is compiled code. By calls, not by seconds: on a busy machine a second compiles less.
  for (const [subject, target] of subjects) {
    if (subject === "direct") continue;
    say(`warming ${subject}`);
    const first = await withCpu(target, loads.callers);
    figures.cold[subject] = first;
    for (let calls = first.requests; calls < warmCalls;) {
      const { requests, errors } = await closedLoop(target, {
        concurrency: CALLERS,
        seconds: WARM_STEP_SECONDS,
      });
      if (errors > 0 || requests === 0) throw new Error(`${subject}: ${errors} of its calls failed`);
      calls += requests;
    }
  }
  for (const name of ["callers", "lone", "streams"] as const) {
    say(name);
    for (let round = 0; round < count; round++) {
      const results: Round = {};
      for (const [subject, target] of subjects) {
        if (name !== "lone" && subject === "direct") continue;
        // While the others had their turn nobody ran its code: caches are cold, and the engine lets go of some of it.
        if (subject !== "direct") await again[name](target);
        const result = await withCpu(target, loads[name]);
        if (result.errors > 0) throw new Error(`${subject}, ${name}: ${result.errors} failed`);
        results[subject] = result;
      }
      figures.rounds[name].push(results);
    }
  }
  if (targets.shared && before !== undefined) {
    const asked = Object.values(figures.rounds)
      .flat()
      .reduce((sum, { shared }) => sum + (shared?.requests ?? 0), 0);
    figures.missedShare = ((await readMissed(targets.shared)) - before) / asked;
  }
  return figures;
}

/** Questions that the process answered by itself since its start. */
async function readMissed({ hostname, port }: Target): Promise<number> {
  const text = await (await fetch(`http://${hostname}:${port}/metrics`)).text();
  return Number(/^weir_valkey_missed_total (\d+)$/m.exec(text)?.[1]);
}

const middle = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

function quotient({ rounds }: RatioFigures, name: LoadName, of: RatioSubject, beside: RatioSubject): number {
  return middle(
    rounds[name].map((round) => (round[of]?.cpuUs ?? Number.NaN) / (round[beside]?.cpuUs ?? Number.NaN)),
  );
}

function addedMs({ rounds }: RatioFigures, of: RatioSubject): number {
  return middle(
    rounds.lone.map((round) => (round[of]?.p50Ms ?? Number.NaN) - (round.direct?.p50Ms ?? Number.NaN)),
  );
}

interface RatioLine {
  name: string;
  value: number;
  unit: "×" | "ms" | "%";
  must: number;
  goal: number;
}

/** The figures that the gateway is held to, each with what it must be at most and what it should be. */
export function ratioLines(figures: RatioFigures): RatioLine[] {
  const { idle, missedShare = Number.NaN } = figures;
  // Where Redis did not come to its turn, one gateway without it was held against another.
  const asked = (name: LoadName): number =>
    missedShare <= MOST_MISSED ? quotient(figures, name, "shared", "limited") : Number.NaN;
  const times = (name: string, value: number, must: number, goal: number): RatioLine => ({
    name,
    value,
    unit: "×",
    must,
    goal,
  });
  return [
    times(
      "processor time a call, 32 callers ÷ bare proxy",
      quotient(figures, "callers", "embedded", "bare"),
      2,
      1.5,
    ),
    times("the same at 30 calls a second", quotient(figures, "lone", "embedded", "bare"), 3, 2),
    times(
      "processor time a stream of 50 chunks ÷ bare proxy",
      quotient(figures, "streams", "embedded", "bare"),
      2,
      1.5,
    ),
    times(
      "PostgreSQL ÷ embedded, 32 callers",
      quotient(figures, "callers", "postgres", "embedded"),
      1.3,
      1.1,
    ),
    times(
      "PostgreSQL ÷ embedded, 30 calls a second",
      quotient(figures, "lone", "postgres", "embedded"),
      1.3,
      1.1,
    ),
    times("limits asked of Valkey ÷ kept here, 32 callers", asked("callers"), 1.1, 1.05),
    times("the same at 30 calls a second", asked("lone"), 1.1, 1.05),
    times("the same, streams", asked("streams"), 1.1, 1.05),
    times("PostgreSQL ÷ embedded, streams", quotient(figures, "streams", "postgres", "embedded"), 1.3, 1.1),
    {
      name: "added median at 30 calls a second",
      value: addedMs(figures, "embedded"),
      unit: "ms",
      must: 1,
      goal: 0.7,
    },
    { name: "the same on PostgreSQL", value: addedMs(figures, "postgres"), unit: "ms", must: 1.5, goal: 1 },
    {
      name: "a core, at rest on PostgreSQL",
      value: (idle?.postgres.atRest ?? Number.NaN) * 100,
      unit: "%",
      must: 0.3,
      goal: 0.1,
    },
  ];
}

/** Processor time of a call of the gateway beside the bare proxy's, of processes that have just started. */
export function coldQuotient({ cold }: RatioFigures): number {
  return (cold.embedded?.cpuUs ?? Number.NaN) / (cold.bare?.cpuUs ?? Number.NaN);
}

/** Middle quotients at the three loads: what a metered gateway costs at least beside the bare proxy, and the gateway beside that. */
export function floorQuotients(figures: RatioFigures): { floor: number[]; gateway: number[] } {
  const loads = ["callers", "lone", "streams"] as const;
  return {
    floor: loads.map((name) => quotient(figures, name, "floor", "bare")),
    gateway: loads.map((name) => quotient(figures, name, "embedded", "floor")),
  };
}

/** Processor time of one subject at one load, in µs a call or stream. */
export function processorUs({ rounds }: RatioFigures, name: LoadName, subject: RatioSubject): number {
  return middle(rounds[name].map((round) => round[subject]?.cpuUs ?? Number.NaN));
}
