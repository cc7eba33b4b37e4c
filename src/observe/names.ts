// Every name that leaves the house for people who watch it: metrics, labels, attributes of spans. OpenTelemetry's names for
// generative AI (semantic conventions, 2026) are still "development" and were renamed before: here is the one place to follow.
// Refuses names of users, keys, addresses and requests as labels of metrics.

/** Labels of metrics, as the conventions' attributes are written for Prometheus. */
export const LABEL = {
  operation: "gen_ai_operation_name",
  provider: "gen_ai_provider_name",
  model: "gen_ai_request_model",
  tokenType: "gen_ai_token_type",
  error: "error_type",
} as const;

/** Attributes of spans. */
export const ATTRIBUTE = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  /** What the provider was called before; older readers know no other. */
  system: "gen_ai.system",
  requestModel: "gen_ai.request.model",
  responseModel: "gen_ai.response.model",
  responseId: "gen_ai.response.id",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  error: "error.type",
  status: "http.response.status_code",
  requestId: "weir.request_id",
  channel: "weir.channel",
  /** Dollars. */
  cost: "weir.cost",
  service: "service.name",
  version: "service.version",
  instance: "service.instance.id",
} as const;

/** A model that no channel serves, or one too many: clients choose names, so names of theirs are no labels. */
export const OTHER_MODEL = "_other";

/** What the conventions call an operation; whatever they have no word for keeps its own, with underscores. */
const OPERATIONS: Readonly<Record<string, string>> = {
  messages: "chat",
  responses: "chat",
  gemini: "generate_content",
  completions: "text_completion",
};

export function operationName(endpoint: string): string {
  return OPERATIONS[endpoint] ?? endpoint.replaceAll("-", "_");
}

/** How a request ended for its client. */
export const OUTCOMES = [
  "ok",
  "client",
  "auth",
  "quota",
  "limit",
  "upstream",
  "internal",
  "cancelled",
] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface MetricRow {
  type: "counter" | "gauge" | "histogram";
  help: string;
  labels: readonly string[];
  /** Of several processes behind one port the figures become one by this rule. */
  merge: "sum" | "max" | "min" | "first";
  /** Upper bounds, ascending, of a histogram. */
  buckets?: readonly number[];
}

/** `count` bounds, each `factor` times the one before. */
function steps(first: number, factor: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => Number((first * factor ** index).toPrecision(12)));
}

const CALL_LABELS = [LABEL.operation, LABEL.provider, LABEL.model, LABEL.error];
/** As the conventions ask for: 10 ms to 81.92 s, doubling. */
const DURATIONS = steps(0.01, 2, 14);
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const PER_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const TOKENS = steps(1, 4, 14);
const ADDED = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SYNCS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const LOOP = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5];

/** What an attempt says of its channel. */
export const ATTEMPT_OUTCOMES = ["ok", "refused", "rejected", "limited", "down", "cancelled"] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Kinds of tokens in `weir_tokens_total`. */
export const TOKEN_TYPES = ["input", "output", "cache_read", "cache_write", "reasoning"] as const;
export type TokenType = (typeof TOKEN_TYPES)[number];

/** Every metric of the product. */
export const METRICS = {
  gen_ai_client_operation_duration_seconds: {
    type: "histogram",
    help: "Seconds that an attempt at an upstream took, a stream to its end.",
    labels: CALL_LABELS,
    merge: "sum",
    buckets: DURATIONS,
  },
  gen_ai_server_request_duration_seconds: {
    type: "histogram",
    help: "Seconds until a request was answered in full, as its client saw it.",
    labels: CALL_LABELS,
    merge: "sum",
    buckets: DURATIONS,
  },
  gen_ai_server_time_to_first_token_seconds: {
    type: "histogram",
    help: "Seconds until the first content of a stream.",
    labels: CALL_LABELS.slice(0, 3),
    merge: "sum",
    buckets: FIRST_TOKEN,
  },
  gen_ai_server_time_per_output_token_seconds: {
    type: "histogram",
    help: "Seconds for each token of a stream behind its first.",
    labels: CALL_LABELS.slice(0, 3),
    merge: "sum",
    buckets: PER_TOKEN,
  },
  gen_ai_client_token_usage: {
    type: "histogram",
    help: "Tokens of a call, as charged.",
    labels: [...CALL_LABELS.slice(0, 3), LABEL.tokenType],
    merge: "sum",
    buckets: TOKENS,
  },
  weir_tokens_total: {
    type: "counter",
    help: "Tokens as charged; input holds what caches gave and took, output holds reasoning.",
    labels: ["type"],
    merge: "sum",
  },
  weir_requests_total: {
    type: "counter",
    help: "Requests of clients by how they ended.",
    labels: ["endpoint", "outcome"],
    merge: "sum",
  },
  weir_inflight: {
    type: "gauge",
    help: "Calls in flight, those included that are read on without their client.",
    labels: [],
    merge: "sum",
  },
  weir_added_seconds: {
    type: "histogram",
    help: "Seconds of a call that were spent in the gateway and not at an upstream.",
    labels: [],
    merge: "sum",
    buckets: ADDED,
  },
  weir_channel_up: {
    type: "gauge",
    help: "1: the channel is on and takes calls; 0: it was switched off by itself, or rests, as a whole or with each of its models, and, unless it was only busy, nobody was answered since.",
    labels: ["channel"],
    merge: "max",
  },
  weir_channel_info: {
    type: "gauge",
    help: "Name and provider of a channel; always 1.",
    labels: ["channel", "name", LABEL.provider],
    merge: "max",
  },
  weir_channel_attempts_total: {
    type: "counter",
    help: "Attempts at a channel: ok, refused (the request's own fault), rejected (key or account), limited, down, cancelled.",
    labels: ["channel", "outcome"],
    merge: "sum",
  },
  weir_channel_key_rests: {
    type: "gauge",
    help: "Keys of a channel that rest, for all models or for some.",
    labels: ["channel"],
    merge: "max",
  },
  weir_channel_cells_open: {
    type: "gauge",
    help: "Models of a channel that nobody is sent to now.",
    labels: ["channel"],
    merge: "max",
  },
  weir_ledger_waiting: {
    type: "gauge",
    help: "Settlements that are durable in the journal and not yet in the tables.",
    labels: [],
    merge: "sum",
  },
  weir_ledger_oldest_seconds: {
    type: "gauge",
    help: "For how long settlements have been waiting for the tables.",
    labels: [],
    merge: "max",
  },
  weir_journal_bytes: {
    type: "gauge",
    help: "Size of the journal's files.",
    labels: [],
    merge: "sum",
  },
  weir_journal_sync_seconds: {
    type: "histogram",
    help: "Seconds that a durable write to the journal took.",
    labels: [],
    merge: "sum",
    buckets: SYNCS,
  },
  weir_settlements_refused_total: {
    type: "counter",
    help: "Settlements since the start that could not be written down, and those that the tables refused.",
    labels: [],
    merge: "sum",
  },
  weir_settlements_early_total: {
    type: "counter",
    help: "Answers since the start that left before the database had their settlement (DURABILITY=database, in an outage).",
    labels: [],
    merge: "sum",
  },
  weir_database_falls_total: {
    type: "counter",
    help: "How often since the start the database was found in an older state than it had been.",
    labels: [],
    merge: "sum",
  },
  weir_node_stopped: {
    type: "gauge",
    help: "1: the process answers no calls until a person has decided (another has its node id, or its books fell back too far).",
    labels: [],
    merge: "max",
  },
  weir_nodes_lost: {
    type: "gauge",
    help: "Nodes that ended without having stopped in order, and whose journal nobody has entered or given up since.",
    labels: [],
    merge: "max",
  },
  weir_audit_differences: {
    type: "gauge",
    help: "Differences that the last audit of the books found.",
    labels: [],
    merge: "max",
  },
  weir_database_up: {
    type: "gauge",
    help: "1: the database answers.",
    labels: [],
    merge: "min",
  },
  weir_valkey_up: {
    type: "gauge",
    help: "1: the Valkey or Redis of REDIS_URL is asked; 0: it is away, each process limits by what it knows.",
    labels: [],
    merge: "min",
  },
  weir_valkey_missed_total: {
    type: "counter",
    help: "Questions to Valkey that the process answered by what it knows: it was away, late, or emptied a moment ago.",
    labels: [],
    merge: "sum",
  },
  weir_job_last_success_seconds: {
    type: "gauge",
    help: "When a job that comes round by itself last succeeded on this node, in Unix seconds.",
    labels: ["job"],
    merge: "max",
  },
  weir_clock_skew_seconds: {
    type: "gauge",
    help: "This machine's clock less the database's.",
    labels: [],
    merge: "max",
  },
  weir_backup_age_seconds: {
    type: "gauge",
    help: "Age of the last good backup; absent as long as there was none.",
    labels: [],
    merge: "min",
  },
  weir_disk_free_ratio: {
    type: "gauge",
    help: "Free share of the disk that holds the data directory.",
    labels: [],
    merge: "min",
  },
  weir_eventloop_delay_seconds: {
    type: "histogram",
    help: "Seconds by which the event loop was late.",
    labels: [],
    merge: "sum",
    buckets: LOOP,
  },
  weir_metrics_labels_refused_total: {
    type: "counter",
    help: "Calls that were counted as _other because too many combinations of labels were known.",
    labels: [],
    merge: "sum",
  },
  process_cpu_seconds_total: {
    type: "counter",
    help: "Processor time of the process.",
    labels: [],
    merge: "sum",
  },
  process_resident_memory_bytes: {
    type: "gauge",
    help: "Resident memory of the process.",
    labels: [],
    merge: "sum",
  },
  process_start_time_seconds: {
    type: "gauge",
    help: "Start of the process, in Unix seconds.",
    labels: [],
    merge: "min",
  },
  process_open_fds: {
    type: "gauge",
    help: "Open file descriptors, where the system tells.",
    labels: [],
    merge: "sum",
  },
  weir_build_info: {
    type: "gauge",
    help: "Version of the program; always 1.",
    labels: ["version"],
    merge: "max",
  },
} as const satisfies Record<string, MetricRow>;

export type MetricName = keyof typeof METRICS;
