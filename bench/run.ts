// `bun run bench [--quick] [--only=rates,pairs,prompts,chunks,sockets,…] [--no-gateway | --gateway=<program>]`: direct, nginx,
// a bare proxy and the gateway in one run, a table with ratios and goals, a file under bench/results. Refuses to compare across runs.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { type Ask, type Job, type LoadResult, type Target, chatBody } from "./load.ts";
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

const PROJECT_DIR = dirname(import.meta.dir);
const BUN = process.execPath;
const SECTIONS = [
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
    memoryRequests: 100_000,
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
    memoryRequests: 20_000,
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

const wrk = Bun.which("wrk");

function closedLoop(target: Target, concurrency: number, seconds: number, ask?: Ask): Promise<LoadResult> {
  if (!wrk) return load({ kind: "closed", target, concurrency, seconds, ...(ask ? { ask } : {}) });
  const url = `${origin(target.port)}${ask?.path ?? "/v1/chat/completions"}`;
  const script = join(import.meta.dir, "wrk.lua");
  const headers = ["-H", "Content-Type: application/json", "-H", `Authorization: Bearer ${target.key}`];
  const command = [
    wrk,
    "-t1",
    `-c${concurrency}`,
    `-d${Math.ceil(seconds)}s`,
    "--timeout",
    "10s",
    "-s",
    script,
  ];
  return runForJson<LoadResult>([...command, ...headers, url], { BENCH_BODY: ask?.body ?? chatBody() });
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

async function measureMemory(gateway: Gateway, sizes: (typeof SIZES)["full"], idleMb: number) {
  const { target, running } = gateway;
  const requests = await load({ kind: "closed", target, concurrency: 32, requests: sizes.memoryRequests });
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
async function measurePairs(
  target: Target,
  sizes: (typeof SIZES)["full"],
): Promise<Record<string, LoadResult>> {
  const rounds: Record<string, LoadResult[]> = {};
  for (const client of DIALECTS) await closedLoop(target, 32, 1, askFor(client, client));
  for (let round = 0; round < sizes.rounds; round++) {
    for (const client of DIALECTS) {
      for (const upstream of DIALECTS) {
        const result = await withCpu(target, (each) =>
          closedLoop(each, 32, sizes.pairSeconds, askFor(client, upstream)),
        );
        (rounds[`${client}>${upstream}`] ??= []).push(result);
      }
    }
  }
  return Object.fromEntries(Object.entries(rounds).map(([name, results]) => [name, leastDisturbed(results)]));
}

/** Memory and processor time of idle realtime sockets. */
async function measureSockets(gateway: Gateway, sizes: (typeof SIZES)["full"]) {
  const { pid } = gateway.running;
  const beforeMb = residentMb(pid) ?? Number.NaN;
  const { sockets: count, socketSeconds: seconds } = sizes;
  const open = load({ kind: "sockets", target: gateway.target, count, seconds });
  const peakMb = await peakDuring(pid, open);
  const { errors } = await open;
  return { count, errors, growthMb: peakMb - beforeMb };
}

async function main(options: Options, dir: string, cleanups: (() => Promise<void>)[]): Promise<Figures> {
  const sizes = options.isQuick ? SIZES.quick : SIZES.full;
  const wants = (section: Section) => options.sections.includes(section);
  // This process keeps off the subject's core too.
  pinSelf(LOAD_CORE);
  const mock = await startWithPort(LOAD_CORE, [BUN, join(import.meta.dir, "mock-upstream.ts")]);
  cleanups.push(mock.stop);
  const http = await startWithPort(LOAD_CORE, [BUN, join(import.meta.dir, "http-mock.ts")]);
  cleanups.push(http.stop);
  const nginx = await startNginx(dir, mock.port);
  const httpNginx = await startNginx(join(dir, "http"), http.port);
  if (nginx) cleanups.push(nginx.stop);
  if (httpNginx) cleanups.push(httpNginx.stop);
  else console.error("nginx is not installed: no yardstick in this run");
  const bareBefore = (upstream: number) =>
    startWithPort(SUBJECT_CORE, [BUN, join(import.meta.dir, "bare-proxy.ts"), origin(upstream)]);
  const bare = await bareBefore(mock.port);
  const httpBare = await bareBefore(http.port);
  cleanups.push(bare.stop, httpBare.stop);
  const ticksBefore = processorTicks();
  const syncUs = syncedWriteUs(dir);
  const figures: Figures = {
    startedAt: new Date().toISOString(),
    isQuick: options.isQuick,
    isPinned: canPin,
    loader: wrk ? "wrk" : "own",
    gatewayCommand: options.gateway?.map((part) => relative(PROJECT_DIR, part)).join(" ") ?? "none",
    closed: {},
    rate: {},
    streams: {},
    streamsConcurrency: sizes.streams,
  };
  const gateway = options.gateway
    ? await startGateway(options.gateway, dir, mock.port, http.port)
    : undefined;
  // The start section stops it earlier; a second stop finds it gone.
  if (gateway) cleanups.push(gateway.running.stop);
  const plain = { hostname: "127.0.0.1", key: "sk-bench" };
  const targets: [SubjectName, Target][] = [["direct", { ...plain, port: mock.port }]];
  if (nginx) targets.push(["nginx", { ...plain, port: nginx.port, pid: nginx.pid }]);
  targets.push(["bare", { ...plain, port: bare.port, pid: bare.pid }]);
  if (gateway) targets.push(["gateway", gateway.target]);
  // Bun's fetch has 256 calls under way at most unless it is told otherwise, as the gateway tells it (src/env.ts).
  const streamTargets = targets.filter(([name]) => name !== "bare");

  let answered = 0;
  const count = (results: BySubject<LoadResult>) => (answered += results.gateway?.requests ?? 0);
  let idleMb = Number.NaN;
  if (gateway) {
    // Past the first look at which a resting gateway gives back what its start left (src/serve.ts).
    await Bun.sleep(sizes.idleSeconds * 1000);
    idleMb = residentMb(gateway.running.pid) ?? Number.NaN;
  }
  // First memory, so that "idle" and "a minute after" are told of the same young process.
  if (gateway && wants("memory")) {
    console.error("memory …");
    figures.memory = await measureMemory(gateway, sizes, idleMb);
    answered += figures.memory.requests;
  }
  if (gateway && wants("slow")) {
    console.error("slow client …");
    figures.slowClient = await measureSlowClient(gateway, sizes.slowSeconds);
  }
  if (wants("rates")) {
    // Long enough for the engine to have compiled what runs often.
    for (const [, target] of targets) await closedLoop(target, 32, sizes.warmSeconds);
    for (const concurrency of sizes.concurrencies) {
      console.error(`concurrency ${concurrency} …`);
      const results = await interleaved(targets, sizes.rounds, (target) =>
        closedLoop(target, concurrency, sizes.roundSeconds),
      );
      figures.closed[concurrency] = results;
      count(results);
    }
    console.error("concurrency 32, an HTTP server upstream …");
    const httpTargets: [SubjectName, Target][] = [["direct", { ...plain, port: http.port }]];
    if (httpNginx) httpTargets.push(["nginx", { ...plain, port: httpNginx.port, pid: httpNginx.pid }]);
    httpTargets.push(["bare", { ...plain, port: httpBare.port, pid: httpBare.pid }]);
    if (gateway) httpTargets.push(["gateway", gateway.target]);
    const httpAsk = { path: "/v1/chat/completions", body: chatBody().replace(CHAT_MODEL, HTTP_MODEL) };
    figures.http = await interleaved(httpTargets, sizes.rounds, (target) =>
      closedLoop(target, 32, sizes.roundSeconds, httpAsk),
    );
    count(figures.http);
    console.error("steady rate …");
    figures.rate = await interleaved(targets, sizes.rounds, (target) =>
      load({ kind: "rate", target, perSecond: 1000, seconds: sizes.rateSeconds }),
    );
    count(figures.rate);
  }
  if (wants("streams")) {
    console.error("streams …");
    figures.streams = await interleaved(streamTargets, 1, (target) =>
      load({ kind: "streams", target, concurrency: sizes.streams, total: sizes.streamsTotal, rampMs: 2000 }),
    );
    count(figures.streams);
  }
  if (gateway && wants("pairs")) {
    console.error("pairs …");
    figures.pairs = await measurePairs(gateway.target, sizes);
    for (const result of Object.values(figures.pairs)) answered += result.requests;
  }
  if (gateway && wants("prompts")) {
    console.error("large prompts …");
    figures.prompts = {};
    const both = targets.filter(([name]) => name === "direct" || name === "gateway");
    for (const kilobytes of [100, 400]) {
      const job = { kind: "rate", perSecond: 50, seconds: sizes.promptSeconds } as const;
      const promptBytes = kilobytes * 1024;
      const results = await interleaved(both, 1, (target) => load({ ...job, target, promptBytes }));
      figures.prompts[kilobytes] = results;
      count(results);
    }
  }
  if (wants("chunks")) {
    console.error("paced chunks …");
    const job = {
      kind: "paced",
      concurrency: sizes.pacedStreams,
      total: sizes.pacedTotal,
      rampMs: 1000,
    } as const;
    figures.paced = await interleaved(streamTargets, 1, (target) => load({ ...job, target }));
    count(figures.paced);
  }
  if (gateway && wants("sockets")) {
    console.error("idle sockets …");
    figures.sockets = await measureSockets(gateway, sizes);
  }
  if (gateway) {
    const { calls } = await readAccount(origin(gateway.port), gateway.prepared);
    figures.books = { calls, expectedAtLeast: answered };
    if (wants("start")) {
      console.error("start …");
      await gateway.running.stop();
      figures.startMs = await measureStart(gateway.command, dir, gateway.port, sizes.starts);
    }
  }
  const ticks = processorTicks();
  const stolen = ticks && ticksBefore && (ticks.stolen - ticksBefore.stolen) / (ticks.all - ticksBefore.all);
  figures.machine = { syncUs, stolen };
  return figures;
}

const dir = mkdtempSync(join(tmpdir(), "weir-bench-"));
const cleanups: (() => Promise<void>)[] = [];
let exitCode = 0;
try {
  const options = readOptions(process.argv.slice(2));
  const figures = await main(options, dir, cleanups);
  // Written first: minutes of measuring must not be lost to a fault of the table.
  const file = await save(figures);
  console.log(`\n${render(figures)}\n`);
  console.log(`written to ${file.replace(`${PROJECT_DIR}/`, "")}`);
  if (goalsOf(figures).some((goal) => goal.reached === false)) exitCode = 2;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  exitCode = 1;
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
  rmSync(dir, { recursive: true, force: true });
}
process.exit(exitCode);
