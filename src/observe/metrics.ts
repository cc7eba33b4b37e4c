// The metrics as Prometheus reads them: what was counted, and what is looked up when somebody asks.
// Refuses to hold a scrape up: a look-up that fails or hangs leaves its figures out, and two scrapes at once share one look.
import { readdir } from "node:fs/promises";
import type { Metric, Registry } from "prom-client";
import type { EventLoopWatch } from "./event-loop.ts";
import { ATTEMPT_OUTCOMES, LABEL, METRICS, OUTCOMES, TOKEN_TYPES } from "./names.ts";
import type { MetricName } from "./names.ts";
import type { Figures } from "./observer.ts";
import type { Tally } from "./tally.ts";

interface Value {
  value: number;
  labels: Record<string, string | number>;
  /** Of a histogram's parts. */
  metricName?: string;
}

/** A metric with its values, as it travels from a worker to its parent. */
export interface MetricSnapshot {
  name: string;
  help: string;
  type: string;
  aggregator: string;
  values: Value[];
}

type Values = Partial<Record<MetricName, Value[]>>;
/** Looks figures up when somebody asks for them. */
export type Source = () => Values | Promise<Values>;

export interface Metrics {
  /** What is asked at each scrape, besides what was counted. */
  watch(source: Source): void;
  /** In Prometheus' text format. */
  text(): Promise<string>;
  /** For a parent that puts several processes' figures together. */
  snapshot(): Promise<MetricSnapshot[]>;
}

const SOURCE_MS = 2000;
export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const STARTED_SECONDS = performance.timeOrigin / 1000;

/** A gauge's or counter's value. */
export function one(value: number, labels: Value["labels"] = {}): Value {
  return { value, labels };
}

function histogram(name: MetricName, tally: Tally, labels: Value["labels"] = {}): Value[] {
  let below = 0;
  const parts = tally.bounds.map((bound, place) => {
    below += tally.counts[place] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: below };
  });
  return [
    ...parts,
    { metricName: `${name}_bucket`, labels: { le: "+Inf", ...labels }, value: tally.count },
    { metricName: `${name}_sum`, labels, value: tally.sum },
    { metricName: `${name}_count`, labels, value: tally.count },
  ];
}

function callValues({ calls }: Figures): Values {
  const attempts: Value[] = [];
  const requests: Value[] = [];
  const firstToken: Value[] = [];
  const perToken: Value[] = [];
  const usage: Value[] = [];
  for (const figures of calls.all()) {
    const { operation, provider, model, error } = figures.labels;
    const of = { [LABEL.operation]: operation, [LABEL.provider]: provider, [LABEL.model]: model };
    const ofError = { ...of, [LABEL.error]: error };
    const add = (
      list: Value[],
      name: MetricName,
      tally: Tally | undefined,
      labels: Value["labels"],
    ): void => {
      if (tally) list.push(...histogram(name, tally, labels));
    };
    add(attempts, "gen_ai_client_operation_duration_seconds", figures.attempts, ofError);
    add(requests, "gen_ai_server_request_duration_seconds", figures.requests, ofError);
    add(firstToken, "gen_ai_server_time_to_first_token_seconds", figures.firstToken, of);
    add(perToken, "gen_ai_server_time_per_output_token_seconds", figures.perToken, of);
    add(usage, "gen_ai_client_token_usage", figures.input, { ...of, [LABEL.tokenType]: "input" });
    add(usage, "gen_ai_client_token_usage", figures.output, { ...of, [LABEL.tokenType]: "output" });
  }
  return {
    gen_ai_client_operation_duration_seconds: attempts,
    gen_ai_server_request_duration_seconds: requests,
    gen_ai_server_time_to_first_token_seconds: firstToken,
    gen_ai_server_time_per_output_token_seconds: perToken,
    gen_ai_client_token_usage: usage,
    weir_metrics_labels_refused_total: [one(calls.refused())],
  };
}

function countedValues(figures: Figures, loop: EventLoopWatch): Values {
  return {
    ...callValues(figures),
    weir_tokens_total: TOKEN_TYPES.map((type) => one(figures.tokens[type], { type })),
    weir_requests_total: [...figures.requests].flatMap(([endpoint, counts]) =>
      OUTCOMES.map((outcome, place) => one(counts[place] ?? 0, { endpoint, outcome })),
    ),
    weir_channel_attempts_total: [...figures.attempts].flatMap(([channel, counts]) =>
      ATTEMPT_OUTCOMES.map((outcome, place) => one(counts[place] ?? 0, { channel, outcome })),
    ),
    weir_added_seconds: histogram("weir_added_seconds", figures.added),
    weir_journal_sync_seconds: histogram("weir_journal_sync_seconds", figures.syncs),
    weir_eventloop_delay_seconds: histogram("weir_eventloop_delay_seconds", loop.delays),
  };
}

async function processValues(): Promise<Values> {
  const { user, system } = process.cpuUsage();
  const open = await readdir("/proc/self/fd").catch(() => undefined);
  return {
    process_cpu_seconds_total: [one((user + system) / 1e6)],
    process_resident_memory_bytes: [one(process.memoryUsage.rss())],
    process_start_time_seconds: [one(STARTED_SECONDS)],
    process_open_fds: open ? [one(open.length)] : [],
  };
}

async function inTime(source: Source): Promise<Values> {
  const late = Promise.withResolvers<Values>();
  const timer = setTimeout(() => late.resolve({}), SOURCE_MS);
  try {
    return await Promise.race([source(), late.promise]);
  } catch {
    return {};
  } finally {
    clearTimeout(timer);
  }
}

/** The library comes with the first scrape: most processes never see one. */
async function registryOf(valuesOf: (name: MetricName) => Value[]): Promise<Registry> {
  const { Registry } = await import("prom-client");
  const registry = new Registry();
  for (const [name, { help, type, merge }] of Object.entries(METRICS)) {
    const get = (): Promise<MetricSnapshot> =>
      Promise.resolve({ name, help, type, aggregator: merge, values: valuesOf(name as MetricName) });
    // The library asks a metric for its values by this one function; observing by its own would cost each call too much.
    registry.registerMetric({ name, get } as unknown as Metric);
  }
  return registry;
}

export function createMetrics(figures: Figures, loop: EventLoopWatch): Metrics {
  const sources: Source[] = [() => countedValues(figures, loop), processValues];
  let known: Values = {};
  let looking: Promise<void> | undefined;
  let registry: Promise<Registry> | undefined;

  async function looked(): Promise<Registry> {
    looking ??= Promise.all(sources.map(inTime))
      .then((found) => {
        known = Object.assign({}, ...found) as Values;
      })
      .finally(() => {
        looking = undefined;
      });
    await looking;
    return (registry ??= registryOf((name) => known[name] ?? []));
  }

  return {
    watch: (source) => void sources.push(source),
    text: async () => (await looked()).metrics(),
    snapshot: async () => (await (await looked()).getMetricsAsJSON()) as unknown as MetricSnapshot[],
  };
}

/** The figures of several processes behind one port as one text: each metric by the rule of its row. */
export async function mergedText(snapshots: readonly MetricSnapshot[][]): Promise<string> {
  const { AggregatorRegistry } = await import("prom-client");
  return AggregatorRegistry.aggregate([...snapshots]).metrics();
}
