// Turns the bench's figures into a table with ratios and goals, and into a file to compare runs by.
// Refuses to call a goal reached when its figure is missing.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { LoadResult } from "./load.ts";
import type { IdleShares } from "./idle.ts";
import { type RatioFigures, coldQuotient, floorQuotients, processorUs, ratioLines } from "./ratios.ts";

/** `bare`: a proxy of a dozen lines on the gateway's own runtime (bare-proxy.ts). */
export type SubjectName = "direct" | "nginx" | "bare" | "gateway";
const SUBJECTS: readonly SubjectName[] = ["direct", "nginx", "bare", "gateway"];
export type BySubject<T> = Partial<Record<SubjectName, T>>;

export interface Figures {
  startedAt: string;
  isQuick: boolean;
  isPinned: boolean;
  gatewayCommand: string;
  /** Closed loop by concurrency. */
  closed: Record<number, BySubject<LoadResult>>;
  rate: BySubject<LoadResult>;
  streams: BySubject<LoadResult>;
  streamsConcurrency: number;
  memory?: {
    idleMb: number;
    afterMb: number;
    laterMb: number;
    laterSeconds: number;
    requests: number;
    aborts: number;
  };
  slowClient?: { growthMb: number; bytesRead: number; errors: number };
  startMs?: number;
  /** Concurrency 32 with an ordinary HTTP server as the upstream. */
  http?: BySubject<LoadResult>;
  /** By `client>upstream`. */
  pairs?: Record<string, LoadResult>;
  /** Steady 50 a second, by size of the prompt in KB. */
  prompts?: Record<number, BySubject<LoadResult>>;
  paced?: BySubject<LoadResult>;
  sockets?: { count: number; errors: number; growthMb: number };
  ratios?: RatioFigures;
  books?: { calls: number; expectedAtLeast: number };
  /** Of the machine: a synced write, and the share of processor time that other guests took during the run. */
  machine?: { syncUs: number; stolen: number | undefined };
}

/** Above this share of stolen time, absolute figures tell of the neighbours. */
const QUIET_SHARE = 0.01;

interface Goal {
  name: string;
  wanted: string;
  got: string;
  /** Undefined: not measured. */
  reached: boolean | undefined;
}

/** A load that got no answer has no quantiles: NaN, which travels between the bench's processes as null. */
const isFigure = (value: number | null | undefined): value is number =>
  value !== undefined && value !== null && !Number.isNaN(value);
const number = (value: number | null | undefined, digits = 2) =>
  isFigure(value) ? value.toFixed(digits) : "–";
const thousands = (value: number) => Math.round(value).toLocaleString("en-US");
export const perSecond = (result: LoadResult) => result.requests / result.seconds;

function difference(a: number | undefined, b: number | undefined): number | undefined {
  return isFigure(a) && isFigure(b) ? a - b : undefined;
}

/** The issue's figures against this run's. */
export function goalsOf(figures: Figures): Goal[] {
  const at32 = figures.closed[32] ?? {};
  const at1 = figures.closed[1] ?? {};
  const rate32 = at32.gateway && perSecond(at32.gateway);
  const { http = {}, pairs = {}, prompts = {}, paced = {}, sockets } = figures;
  const share = http.gateway && http.nginx ? perSecond(http.gateway) / perSecond(http.nginx) : undefined;
  const rawShare = at32.gateway && at32.nginx ? perSecond(at32.gateway) / perSecond(at32.nginx) : undefined;
  const added = (kilobytes: number) =>
    difference(prompts[kilobytes]?.gateway?.p99Ms, prompts[kilobytes]?.direct?.p99Ms);
  const worst = worstPair(pairs);
  const addedMs = difference(at1.gateway?.p50Ms, at1.direct?.p50Ms);
  const { direct, gateway } = figures.streams;
  const firstTokenMs = difference(gateway?.p50Ms, direct?.p50Ms);
  const isInteger = gateway?.eventsMin === direct?.eventsMin && gateway?.eventsMax === direct?.eventsMax;
  const badStreams = gateway && (isInteger ? gateway.errors : Math.max(1, gateway.errors));
  const { memory, slowClient } = figures;
  const goal = (
    name: string,
    wanted: string,
    value: number | undefined,
    unit: string,
    isGood: (v: number) => boolean,
  ) => ({
    name,
    wanted,
    got: isFigure(value) ? `${number(value)}${unit}` : "–",
    reached: isFigure(value) ? isGood(value) : undefined,
  });
  return [
    goal(
      "requests a second at concurrency 32",
      "≥ 9,000",
      rate32,
      "",
      (v) => v >= 9000 && at32.gateway?.errors === 0,
    ),
    goal("share of nginx at concurrency 32", "≥ 0.25", rawShare, "", (v) => v >= 0.25),
    goal("share of nginx at concurrency 32, HTTP upstream", "≥ 0.25", share, "", (v) => v >= 0.25),
    goal("added p50 at concurrency 1", "< 0.7 ms", addedMs, " ms", (v) => v < 0.7),
    goal("p99 at 1,000 requests a second", "< 3 ms", figures.rate.gateway?.p99Ms, " ms", (v) => v < 3),
    goal(`unclean of ${figures.streamsConcurrency}-at-once streams`, "0", badStreams, "", (v) => v === 0),
    goal("first token's added delay, median", "< 1 ms", firstTokenMs, " ms", (v) => v < 1),
    goal("memory idle", "< 90 MB", memory?.idleMb, " MB", (v) => v < 90),
    goal(
      `memory ${memory?.laterSeconds ?? 60} s after the load ÷ idle`,
      "≤ 1.20",
      memory && memory.laterMb / memory.idleMb,
      "",
      (v) => v <= 1.2,
    ),
    goal("slow client on a 400 MB stream", "< 30 MB", slowClient?.growthMb, " MB", (v) => v < 30),
    goal(
      `slowest pair ÷ passthrough${worst ? ` (${worst.name})` : ""}`,
      "≥ 0.70",
      worst?.ratio,
      "",
      (v) => v >= 0.7 && Object.values(pairs).every(({ errors }) => errors === 0),
    ),
    goal("added p99, 100 KB prompts at 50 a second", "< 15 ms", added(100), " ms", (v) => v < 15),
    goal("added p99, 400 KB prompts at 50 a second", "< 15 ms", added(400), " ms", (v) => v < 15),
    goal(
      "chunks of 512 paced streams over 100 ms late",
      "0",
      paced.gateway?.lateChunks,
      "",
      (v) => v === 0 && paced.gateway?.errors === 0,
    ),
    goal("idle realtime sockets lost", "0", sockets?.errors, "", (v) => v === 0),
    goal(
      "start on an existing database to first answer",
      "≤ 150 ms",
      figures.startMs,
      " ms",
      (v) => v <= 150,
    ),
  ];
}

/** The pair that is slowest beside its client's own passthrough. */
function worstPair(pairs: Record<string, LoadResult>): { name: string; ratio: number } | undefined {
  let worst: { name: string; ratio: number } | undefined;
  for (const name in pairs) {
    const ratio = pairRatio(pairs, name);
    if (ratio !== undefined && (!worst || ratio < worst.ratio)) worst = { name, ratio };
  }
  return worst;
}

/**
 * How much of its passthrough's throughput a pair has: by processor time where it is known, for the gateway is what is
 * busy in these loads, and a neighbour on the host takes seconds from one pair and not from the next.
 */
function pairRatio(pairs: Record<string, LoadResult>, name: string): number | undefined {
  const [client = ""] = name.split(">");
  const own = pairs[`${client}>${client}`];
  const pair = pairs[name];
  if (!own || !pair) return undefined;
  return isFigure(own.cpuUs) && isFigure(pair.cpuUs)
    ? own.cpuUs / pair.cpuUs
    : perSecond(pair) / perSecond(own);
}

function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[]) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  ");
  const [head = [], ...body] = rows;
  return [line(head), widths.map((width) => "─".repeat(width)).join("  "), ...body.map(line)].join("\n");
}

function loadRows(label: string, results: BySubject<LoadResult>): string[][] {
  const rows: string[][] = [];
  for (const name of SUBJECTS) {
    const result = results[name];
    if (!result) continue;
    const ratio =
      results.nginx && name !== "nginx" ? `${number(perSecond(result) / perSecond(results.nginx))}×` : "";
    rows.push([
      label,
      name,
      thousands(perSecond(result)),
      number(result.p50Ms, 3),
      number(result.p99Ms, 3),
      name === "direct" ? "" : number(difference(result.p50Ms, results.direct?.p50Ms), 3),
      name === "direct" ? "" : number(difference(result.p99Ms, results.direct?.p99Ms), 3),
      ratio,
      number(result.cpuUs, 0),
      String(result.errors),
    ]);
  }
  return rows;
}

function idleText({ postgres, embedded }: NonNullable<RatioFigures["idle"]>): string {
  const shares = ({ young, atRest }: IdleShares) =>
    `${(young * 100).toFixed(2)} % of a core in the first seconds, ${(atRest * 100).toFixed(3)} % at rest`;
  return `while nobody calls: on PostgreSQL, just started, ${shares(postgres)}; embedded ${shares(embedded)}`;
}

function ratioTables(ratios: RatioFigures): string {
  const lines = ratioLines(ratios).map(({ name, value, unit, must, goal }) => [
    name,
    `${number(value)} ${unit}`,
    `${must} ${unit}`,
    `${goal} ${unit}`,
    !isFigure(value) ? "not measured" : value <= goal ? "goal" : value <= must ? "must" : "NO",
  ]);
  const loads = [
    ["32 callers", "callers"],
    ["30 calls a second", "lone"],
    ["streams of 50 chunks", "streams"],
  ] as const;
  const costs = loads.map(([title, name]) => [
    title,
    ...(["bare", "floor", "embedded", "postgres", "limited", "shared"] as const).map((each) =>
      number(processorUs(ratios, name, each), 0),
    ),
  ]);
  const { floor, gateway } = floorQuotients(ratios);
  const each = (values: readonly number[]) => values.map((value) => number(value)).join("; ");
  return [
    table([["middle quotient of rounds side by side", "value", "must", "goal", "reached"], ...lines]),
    table([["CPU µs", "bare", "floor", "embedded", "PostgreSQL", "with limits", "and Valkey"], ...costs]),
    `at 32 callers; 30 calls a second; streams: the least that meters (floor.ts) ÷ bare proxy ${each(floor)} ×; the gateway ÷ that ${each(gateway)} ×`,
    ...(ratios.idle ? [idleText(ratios.idle)] : []),
    `the first seconds of each at 32 callers, cold where the run has --only=ratios: ${number(coldQuotient(ratios))} × the bare proxy`,
  ].join("\n\n");
}

export function render(figures: Figures): string {
  const rows = [
    [
      "1 KB answers",
      "",
      "per s",
      "p50 ms",
      "p99 ms",
      "added p50",
      "added p99",
      "of nginx",
      "CPU µs",
      "errors",
    ],
  ];
  for (const [concurrency, results] of Object.entries(figures.closed)) {
    rows.push(...loadRows(`concurrency ${concurrency}`, results));
  }
  if (figures.http) rows.push(...loadRows("concurrency 32, HTTP upstream", figures.http));
  rows.push(...loadRows("steady 1,000 a second", figures.rate));
  rows.push(...loadRows(`${figures.streamsConcurrency} streams, first token`, figures.streams));
  for (const [kilobytes, results] of Object.entries(figures.prompts ?? {}))
    rows.push(...loadRows(`${kilobytes} KB prompts, 50 a second`, results));
  const goals = goalsOf(figures).map((goal) => [
    goal.name,
    goal.wanted,
    goal.got,
    goal.reached === undefined ? "not measured" : goal.reached ? "yes" : "NO",
  ]);
  const parts = [table(rows), table([["goal", "wanted", "got", "reached"], ...goals])];
  const { memory, slowClient, books, pairs, paced, sockets } = figures;
  if (pairs) {
    const lines = Object.keys(pairs).map((name) => {
      const result = pairs[name];
      const ratio = `${number(pairRatio(pairs, name))}×`;
      const rate = result ? thousands(perSecond(result)) : "";
      return [name, rate, number(result?.cpuUs, 0), ratio, String(result?.errors ?? "")];
    });
    parts.push(table([["client > upstream", "per s", "CPU µs", "of passthrough", "errors"], ...lines]));
  }
  if (paced) {
    const lines = Object.entries(paced).map(([name, result]) => [
      name,
      number(result.latenessP99Ms, 1),
      number(result.latenessMaxMs, 1),
      String(result.lateChunks ?? ""),
      String(result.errors),
    ]);
    parts.push(
      table([["64 chunks at 20 ms", "late p99 ms", "latest ms", "over 100 ms", "errors"], ...lines]),
    );
  }
  if (figures.ratios) parts.push(ratioTables(figures.ratios));
  if (sockets)
    parts.push(
      `idle sockets: ${sockets.count} open, ${number(sockets.growthMb, 1)} MB more, ${sockets.errors} lost`,
    );
  if (memory) {
    parts.push(
      `memory: idle ${number(memory.idleMb, 1)} MB, after ${thousands(memory.requests)} requests and ` +
        `${thousands(memory.aborts)} aborted streams ${number(memory.afterMb, 1)} MB, ` +
        `${memory.laterSeconds} s later ${number(memory.laterMb, 1)} MB`,
    );
  }
  if (slowClient)
    parts.push(`slow client: read ${number(slowClient.bytesRead / 1024 / 1024, 1)} MB of 400 MB`);
  if (slowClient?.errors)
    parts.push("slow client: the stream ended before its time, the figure above counts for nothing");
  if (books) {
    const verdict = books.calls >= books.expectedAtLeast ? "complete" : "INCOMPLETE";
    parts.push(
      `books: ${thousands(books.calls)} calls on record, ${thousands(books.expectedAtLeast)} answered: ${verdict}`,
    );
  }
  if (figures.machine) {
    const { syncUs, stolen } = figures.machine;
    const share =
      stolen === undefined ? "" : `, ${number(stolen * 100, 1)} % of its time went to other guests`;
    const verdict =
      stolen !== undefined && stolen > QUIET_SHARE
        ? ": not quiet enough for absolute figures, compare two builds with bench/pair.ts"
        : "";
    parts.push(`machine: a synced 4 KB write takes ${number(syncUs, 0)} µs${share}${verdict}`);
  }
  if (!figures.isPinned)
    parts.push("not pinned to cores (taskset or a second core is missing): compare ratios only");
  if (figures.http)
    parts.push(
      "CPU µs: processor time of the subject with all its threads per request. Where nginx waits for the mock, as it does " +
        "behind both upstreams on two cores, the quotient of these is the fair share; requests a second flatter the gateway. " +
        "bare: Bun's server and Bun's fetch with nothing between, the floor of the runtime.",
    );
  if (figures.isQuick) parts.push("quick run: smaller loads, shorter waits; not for the record");
  parts.push(`gateway: ${figures.gatewayCommand}; ${figures.startedAt}`);
  return parts.join("\n\n");
}

export async function save(figures: Figures): Promise<string> {
  const dir = join(import.meta.dir, "results");
  mkdirSync(dir, { recursive: true });
  const file = join(dir, `${figures.startedAt.replaceAll(/[:.]/g, "-")}.json`);
  await Bun.write(file, `${JSON.stringify({ ...figures, goals: goalsOf(figures) }, null, 2)}\n`);
  return file;
}
