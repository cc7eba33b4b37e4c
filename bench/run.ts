// `bun run bench [--quick] [--only=ratios,rates,pairs,prompts,chunks,…] [--no-gateway | --gateway=<program>]`: direct, nginx,
// a bare proxy and the gateway in one run, a table with ratios and goals, a file under bench/results. Refuses to compare across runs.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { type Job, type LoadResult, type Target, chatBody } from "./load.ts";
import { DIALECTS, askFor } from "./dialects.ts";
import { type Gateway, launchGateway, origin, startGateway, withCpu } from "./gateway.ts";
import { CHAT_MODEL } from "./mock-upstream.ts";
import { processorTicks, syncedWriteUs } from "./machine.ts";
import { HTTP_MODEL, readAccount } from "./prepare.ts";
import {
  LOAD_CORE,
  SUBJECT_CORE,
  canPin,
  pinSelf,
  residentMb,
  runForJson,
  startNginx,
  startWithPort,
  waitForAnswer,
} from "./processes.ts";
import {
  type BySubject,
  type Figures,
  type SubjectName,
  goalsOf,
  perSecond,
  render,
  save,
} from "./report.ts";
import { measureIdle } from "./idle.ts";
import { RATIO_SIZES, measureRatios, startFloor, startLimited, startOnPostgres } from "./ratios.ts";
import { benchRows } from "./rows.ts";
import { closedLoop, ensureWrk } from "./wrk.ts";

const PROJECT_DIR = dirname(import.meta.dir);
const BUN = process.execPath;
const SECTIONS = [
  "ratios",
  "rates",
  "streams",
  "pairs",
  "prompts",
  "chunks",
  "sockets",
  "memory",
  "slow",
  "start",
] as const;
type Section = (typeof SECTIONS)[number];

/** How much of everything; the quick sizes fit into a minute. */
const SIZES = {
  full: {
    concurrencies: [1, 32, 256],
    warmSeconds: 12,
    rounds: 3,
    roundSeconds: 4,
    rateSeconds: 10,
    streams: 500,
    streamsTotal: 2000,
    memorySeconds: 15,
    memoryAborts: 3000,
    idleSeconds: 12,
    memoryWaitSeconds: 60,
    slowSeconds: 15,
    starts: 7,
    pairSeconds: 2,
    promptSeconds: 8,
    pacedStreams: 512,
    pacedTotal: 2048,
    sockets: 1000,
    socketSeconds: 10,
  },
  quick: {
    concurrencies: [1, 32, 256],
    warmSeconds: 3,
    rounds: 1,
    roundSeconds: 1.5,
    rateSeconds: 3,
    streams: 500,
    streamsTotal: 700,
    memorySeconds: 4,
    memoryAborts: 600,
    idleSeconds: 3,
    memoryWaitSeconds: 8,
    slowSeconds: 5,
    starts: 3,
    pairSeconds: 1,
    promptSeconds: 2,
    pacedStreams: 128,
    pacedTotal: 128,
    sockets: 200,
    socketSeconds: 3,
  },
};

type Sizes = (typeof SIZES)["full"];

interface Options {
  isQuick: boolean;
  /** The command to measure; undefined: only direct and nginx. */
  gateway: string[] | undefined;
  sections: readonly Section[];
}

/** The binary when it is built, else the source; both with the data directory's parent as their working directory. */
function defaultGateway(): string[] {
  const binary = join(PROJECT_DIR, "dist/weir");
  return existsSync(binary) ? [binary] : [BUN, join(PROJECT_DIR, "src/main.ts")];
}

function readOptions(args: readonly string[]): Options {
  const valueOf = (name: string) => args.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
  const only = valueOf("only")?.split(",");
  const program = valueOf("gateway");
  const unknown = (only ?? []).filter((name) => !(SECTIONS as readonly string[]).includes(name));
  const strange = args.filter((arg) => !/^--(quick|no-gateway|only=.+|gateway=.+)$/.test(arg));
  if (unknown.length + strange.length > 0) {
    throw new Error(`unknown: ${[...unknown, ...strange].join(" ")}; --only= takes ${SECTIONS.join(",")}`);
  }
  return {
    isQuick: args.includes("--quick"),
    gateway: args.includes("--no-gateway") ? undefined : program ? [resolve(program)] : defaultGateway(),
    sections: only ? SECTIONS.filter((name) => only.includes(name)) : SECTIONS,
  };
}

function load(job: Job): Promise<LoadResult> {
  return runForJson<LoadResult>([BUN, join(import.meta.dir, "load.ts"), JSON.stringify(job)]);
}

/** The run whose throughput is in the middle; errors of all rounds count. */
function middle(results: readonly LoadResult[]): LoadResult {
  const sorted = [...results].sort((a, b) => perSecond(a) - perSecond(b));
  const chosen = sorted[Math.floor(sorted.length / 2)];
  if (!chosen) throw new Error("no rounds were run");
  return { ...chosen, errors: results.reduce((sum, result) => sum + result.errors, 0) };
}

/** The run that its neighbours disturbed least: the one with the least processor time a call; errors of all count. */
function leastDisturbed(results: readonly LoadResult[]): LoadResult {
  const byCpu = results.filter(({ cpuUs }) => cpuUs !== undefined);
  const [chosen] = byCpu.sort((a, b) => (a.cpuUs ?? 0) - (b.cpuUs ?? 0));
  return chosen ? { ...chosen, errors: middle(results).errors } : middle(results);
}

type Targets = readonly (readonly [SubjectName, Target])[];

/** Rounds go from subject to subject and begin again, so that a noisy minute hits them all. */
async function interleaved(
  targets: Targets,
  rounds: number,
  measure: (target: Target) => Promise<LoadResult>,
): Promise<BySubject<LoadResult>> {
  const collected = new Map<SubjectName, LoadResult[]>();
  for (let round = 0; round < rounds; round++) {
    for (const [name, target] of targets) {
      const results = collected.get(name) ?? [];
      results.push(await withCpu(target, measure));
      collected.set(name, results);
    }
  }
  const chosen: BySubject<LoadResult> = {};
  for (const [name, results] of collected) chosen[name] = middle(results);
  return chosen;
}

/** Samples memory four times a second while something runs; resolves with the highest value. */
async function peakDuring(pid: number, work: Promise<unknown>): Promise<number> {
  let peakMb = residentMb(pid) ?? Number.NaN;
  const timer = setInterval(() => (peakMb = Math.max(peakMb, residentMb(pid) ?? 0)), 250);
  try {
    await work;
  } finally {
    clearInterval(timer);
  }
  return peakMb;
}

async function measureMemory(gateway: Gateway, sizes: Sizes, idleMb: number) {
  const { target, running } = gateway;
  const requests = await closedLoop(target, { concurrency: 32, seconds: sizes.memorySeconds });
  const aborts = await load({ kind: "aborts", target, concurrency: 100, total: sizes.memoryAborts });
  if (requests.errors + aborts.errors > 0) {
    console.error(`memory: ${requests.errors} failed requests, ${aborts.errors} failed streams`);
  }
  const afterMb = residentMb(running.pid) ?? Number.NaN;
  await Bun.sleep(sizes.memoryWaitSeconds * 1000);
  const laterMb = residentMb(running.pid) ?? Number.NaN;
  const laterSeconds = sizes.memoryWaitSeconds;
  return { idleMb, afterMb, laterMb, laterSeconds, requests: requests.requests, aborts: aborts.requests };
}

async function measureSlowClient(gateway: Gateway, seconds: number) {
  const beforeMb = residentMb(gateway.running.pid) ?? Number.NaN;
  const reading = load({ kind: "slow", target: gateway.target, seconds });
  const peakMb = await peakDuring(gateway.running.pid, reading);
  const { bytesRead = 0, errors } = await reading;
  return { growthMb: errors > 0 ? Number.NaN : peakMb - beforeMb, bytesRead, errors };
}

/** Median time from spawning the gateway on its used database to its first answer. */
async function measureStart(command: string[], dir: string, port: number, times: number): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < times; i++) {
    const startedMs = performance.now();
    const running = launchGateway(command, dir, port);
    await waitForAnswer(`${origin(port)}/api/status`, 20_000, running);
    samples.push(performance.now() - startedMs);
    await running.stop();
  }
  samples.sort((a, b) => a - b);
  return samples[Math.floor(samples.length / 2)] ?? Number.NaN;
}

/** Every client dialect against every upstream dialect; keys are `client>upstream`. */
async function measurePairs(target: Target, sizes: Sizes): Promise<Record<string, LoadResult>> {
  const rounds: Record<string, LoadResult[]> = {};
  for (const client of DIALECTS)
    await closedLoop(target, { concurrency: 32, seconds: 1, ask: askFor(client, client) });
  for (let round = 0; round < sizes.rounds; round++) {
    for (const client of DIALECTS) {
      for (const upstream of DIALECTS) {
        const result = await withCpu(target, (each) =>
          closedLoop(each, { concurrency: 32, seconds: sizes.pairSeconds, ask: askFor(client, upstream) }),
        );
        (rounds[`${client}>${upstream}`] ??= []).push(result);
      }
    }
  }
  return Object.fromEntries(Object.entries(rounds).map(([name, results]) => [name, leastDisturbed(results)]));
}

/** Memory and processor time of idle realtime sockets. */
async function measureSockets(gateway: Gateway, sizes: Sizes) {
  const { pid } = gateway.running;
  const beforeMb = residentMb(pid) ?? Number.NaN;
  const { sockets: count, socketSeconds: seconds } = sizes;
  const open = load({ kind: "sockets", target: gateway.target, count, seconds });
  const peakMb = await peakDuring(pid, open);
  const { errors } = await open;
  return { count, errors, growthMb: peakMb - beforeMb };
}

/** What is under way: everybody who is measured, and what came out so far. */
interface Run {
  options: Options;
  sizes: Sizes;
  dir: string;
  figures: Figures;
  gateway: Gateway | undefined;
  /** By the mock of chat completions, and by a plain HTTP server. */
  targets: Targets;
  httpTargets: Targets;
  /** Ports of the two mocks. */
  upstreams: readonly [chat: number, http: number];
  /** Calls that the gateway answered, for its account. */
  answered: number;
}

/** Starts mocks, yardsticks and the gateway, each of which has its stop in `cleanups`. */
async function startRun(options: Options, dir: string, cleanups: (() => Promise<void>)[]): Promise<Run> {
  const sizes = options.isQuick ? SIZES.quick : SIZES.full;
  // This process keeps off the subject's core too.
  pinSelf(LOAD_CORE);
  const mock = await startWithPort(LOAD_CORE, [BUN, join(import.meta.dir, "mock-upstream.ts")]);
  cleanups.push(mock.stop);
  const http = await startWithPort(LOAD_CORE, [BUN, join(import.meta.dir, "http-mock.ts")]);
  cleanups.push(http.stop);
  const chatYardsticks = await startYardsticks(join(dir, "chat"), mock.port, cleanups);
  const httpYardsticks = await startYardsticks(join(dir, "http"), http.port, cleanups);
  if (chatYardsticks.length === 1) console.error("nginx is not installed: no yardstick in this run");
  const gateway = options.gateway
    ? await startGateway(options.gateway, dir, mock.port, http.port)
    : undefined;
  // The start section stops it earlier; a second stop finds it gone.
  if (gateway) cleanups.push(gateway.running.stop);
  const direct = (port: number) => ["direct", { ...PLAIN, port }] as const;
  const last = gateway ? [["gateway", gateway.target] as const] : [];
  return {
    options,
    sizes,
    dir,
    gateway,
    targets: [direct(mock.port), ...chatYardsticks, ...last],
    httpTargets: [direct(http.port), ...httpYardsticks, ...last],
    upstreams: [mock.port, http.port],
    answered: 0,
    figures: {
      startedAt: new Date().toISOString(),
      isQuick: options.isQuick,
      isPinned: canPin,
      gatewayCommand: options.gateway?.map((part) => relative(PROJECT_DIR, part)).join(" ") ?? "none",
      closed: {},
      rate: {},
      streams: {},
      streamsConcurrency: sizes.streams,
    },
  };
}

const PLAIN = { hostname: "127.0.0.1", key: "sk-bench" };

/** nginx, where it is installed, and the bare proxy, both before one upstream. */
async function startYardsticks(
  dir: string,
  upstream: number,
  cleanups: (() => Promise<void>)[],
): Promise<Targets> {
  const nginx = await startNginx(dir, upstream);
  if (nginx) cleanups.push(nginx.stop);
  const program = join(import.meta.dir, "bare-proxy.ts");
  const bare = await startWithPort(SUBJECT_CORE, [BUN, program, origin(upstream)]);
  cleanups.push(bare.stop);
  const own = ["bare", { ...PLAIN, port: bare.port, pid: bare.pid }] as const;
  return nginx ? [["nginx", { ...PLAIN, port: nginx.port, pid: nginx.pid }], own] : [own];
}

/** Adds what the gateway answered to its account, and hands the figures on. */
function counted(run: Run, results: BySubject<LoadResult>): BySubject<LoadResult> {
  run.answered += results.gateway?.requests ?? 0;
  return results;
}

async function runRatios(run: Run, gateway: Gateway): Promise<void> {
  const { targets, figures, options } = run;
  const sizes = RATIO_SIZES[options.isQuick ? "quick" : "full"];
  const target = (name: SubjectName) => targets.find(([each]) => each === name)?.[1];
  const [direct, bare] = [target("direct"), target("bare")];
  if (!direct || !bare) throw new Error("the ratios need the mock and the bare proxy");
  const [upstreamPort, httpPort] = run.upstreams;
  const onPostgres = await startOnPostgres(gateway.command, run.dir, { upstreamPort, httpPort });
  const others: { stop: () => Promise<void> }[] = [];
  try {
    console.error("idle …");
    // Before anybody else is started. Nobody calls the embedded one either.
    const [postgres, embedded] = await measureIdle([onPostgres.running.pid, gateway.running.pid], sizes.idle);
    const floor = await startFloor(run.dir, upstreamPort);
    others.push(floor);
    const both = await startLimited(gateway.command, run.dir, run.upstreams);
    others.push(both);
    const { limited, shared } = both;
    const subjects = {
      direct,
      bare,
      floor: { ...PLAIN, port: floor.port, pid: floor.pid },
      embedded: gateway.target,
      postgres: onPostgres.target,
      limited,
      shared,
    };
    figures.ratios = await measureRatios(subjects, sizes, (text) => console.error(`${text} …`));
    if (postgres && embedded) figures.ratios.idle = { postgres, embedded };
  } finally {
    for (const each of others) await each.stop();
    await onPostgres.stop();
  }
}

/** First of all, so that "idle" and "a minute after" are said of the same young process. */
async function runMemory(run: Run, gateway: Gateway, idleMb: number): Promise<void> {
  run.figures.memory = await measureMemory(gateway, run.sizes, idleMb);
  run.answered += run.figures.memory.requests;
}

async function runRates(run: Run): Promise<void> {
  const { figures, sizes, targets } = run;
  const { rounds, roundSeconds: seconds } = sizes;
  // Long enough for the engine to have compiled what runs often.
  for (const [, target] of targets) await closedLoop(target, { concurrency: 32, seconds: sizes.warmSeconds });
  for (const concurrency of sizes.concurrencies) {
    console.error(`concurrency ${concurrency} …`);
    const results = await interleaved(targets, rounds, (target) =>
      closedLoop(target, { concurrency, seconds }),
    );
    figures.closed[concurrency] = counted(run, results);
  }
  console.error("concurrency 32, an HTTP server upstream …");
  const ask = { path: "/v1/chat/completions", body: chatBody().replace(CHAT_MODEL, HTTP_MODEL) };
  const http = await interleaved(run.httpTargets, rounds, (target) =>
    closedLoop(target, { concurrency: 32, seconds, ask }),
  );
  figures.http = counted(run, http);
  console.error("steady rate …");
  const rate = await interleaved(targets, rounds, (target) =>
    load({ kind: "rate", target, perSecond: 1000, seconds: sizes.rateSeconds }),
  );
  figures.rate = counted(run, rate);
}

/** Bun's fetch has 256 calls under way at most unless it is told otherwise, as the gateway tells it (src/env.ts). */
function streamTargets({ targets }: Run): Targets {
  return targets.filter(([name]) => name !== "bare");
}

async function runStreams(run: Run): Promise<void> {
  const { streams: concurrency, streamsTotal: total } = run.sizes;
  const results = await interleaved(streamTargets(run), 1, (target) =>
    load({ kind: "streams", target, concurrency, total, rampMs: 2000 }),
  );
  run.figures.streams = counted(run, results);
}

async function runPairs(run: Run, gateway: Gateway): Promise<void> {
  run.figures.pairs = await measurePairs(gateway.target, run.sizes);
  for (const result of Object.values(run.figures.pairs)) run.answered += result.requests;
}

async function runPrompts(run: Run): Promise<void> {
  const prompts: NonNullable<Figures["prompts"]> = {};
  run.figures.prompts = prompts;
  const both = run.targets.filter(([name]) => name === "direct" || name === "gateway");
  for (const kilobytes of [100, 400]) {
    const job = { kind: "rate", perSecond: 50, seconds: run.sizes.promptSeconds } as const;
    const promptBytes = kilobytes * 1024;
    const results = await interleaved(both, 1, (target) => load({ ...job, target, promptBytes }));
    prompts[kilobytes] = counted(run, results);
  }
}

async function runChunks(run: Run): Promise<void> {
  const { pacedStreams: concurrency, pacedTotal: total } = run.sizes;
  const results = await interleaved(streamTargets(run), 1, (target) =>
    load({ kind: "paced", target, concurrency, total, rampMs: 1000 }),
  );
  run.figures.paced = counted(run, results);
}

/** The gateway's own account against what it answered, and then its start: it is stopped for that. */
async function runEnd(run: Run, gateway: Gateway, wantsStart: boolean): Promise<void> {
  const { calls } = await readAccount(origin(gateway.port), gateway.prepared);
  run.figures.books = { calls, expectedAtLeast: run.answered };
  if (!wantsStart) return;
  console.error("start …");
  await gateway.running.stop();
  run.figures.startMs = await measureStart(gateway.command, run.dir, gateway.port, run.sizes.starts);
}

async function main(options: Options, dir: string, cleanups: (() => Promise<void>)[]): Promise<Figures> {
  ensureWrk();
  const ticksBefore = processorTicks();
  const syncUs = syncedWriteUs(dir);
  const run = await startRun(options, dir, cleanups);
  const { figures, gateway, sizes } = run;
  const section = async (name: Section, title: string, work: () => Promise<void>) => {
    if (!options.sections.includes(name)) return;
    console.error(`${title} …`);
    await work();
  };
  if (gateway) {
    // Past the first look at which a resting gateway gives back what its start left (src/serve.ts).
    await Bun.sleep(sizes.idleSeconds * 1000);
    const idleMb = residentMb(gateway.running.pid) ?? Number.NaN;
    await section("memory", "memory", () => runMemory(run, gateway, idleMb));
    await section("slow", "slow client", async () => {
      figures.slowClient = await measureSlowClient(gateway, sizes.slowSeconds);
    });
  }
  if (gateway) await section("ratios", "ratios", () => runRatios(run, gateway));
  await section("rates", "warming up", () => runRates(run));
  await section("streams", "streams", () => runStreams(run));
  if (gateway) {
    await section("pairs", "pairs", () => runPairs(run, gateway));
    await section("prompts", "large prompts", () => runPrompts(run));
  }
  await section("chunks", "paced chunks", () => runChunks(run));
  if (gateway) {
    await section("sockets", "idle sockets", async () => {
      figures.sockets = await measureSockets(gateway, sizes);
    });
    await runEnd(run, gateway, options.sections.includes("start"));
  }
  const ticks = processorTicks();
  const stolen = ticks && ticksBefore && (ticks.stolen - ticksBefore.stolen) / (ticks.all - ticksBefore.all);
  figures.machine = { syncUs, stolen };
  return figures;
}

const dir = mkdtempSync(join(tmpdir(), "weir-bench-"));
const cleanups: (() => Promise<void>)[] = [];
let exitCode = 0;

async function figuresOf(args: string[]): Promise<void> {
  const options = readOptions(args);
  const figures = await main(options, dir, cleanups);
  // Written first: minutes of measuring must not be lost to a fault of the table.
  const file = await save(figures);
  console.log(`\n${render(figures)}\n`);
  console.log(`written to ${file.replace(`${PROJECT_DIR}/`, "")}`);
  if (goalsOf(figures).some((goal) => goal.reached === false)) exitCode = 2;
}

try {
  const [, , section, ...args] = process.argv;
  if (section === "rows") await benchRows(args, dir);
  else await figuresOf(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  exitCode = 1;
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
  rmSync(dir, { recursive: true, force: true });
}
process.exit(exitCode);
