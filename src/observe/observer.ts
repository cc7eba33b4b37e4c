// What the product tells those who watch it: counts of calls, kept as they end, in memory alone. Everybody may report here.
// Refuses to know anybody: what is read at a scrape is handed in by who has it.
import { createCallTallies, note } from "./call-tallies.ts";
import type { CallTallies } from "./call-tallies.ts";
import { countModel } from "./model-figures.ts";
import type { ModelFigures, ModelTable } from "./model-figures.ts";
import { ATTEMPT_OUTCOMES, METRICS, OTHER_MODEL, OUTCOMES } from "./names.ts";
import type { AttemptOutcome, Outcome, TokenType } from "./names.ts";
import { createTally, observe } from "./tally.ts";
import type { Tally } from "./tally.ts";
import type { Traces } from "./traces.ts";

/** A request of a client as it ended. */
export interface EndedRequest {
  /** The operation's name in the table of endpoints. */
  endpoint: string;
  /** As the conventions call it; "" = nobody was asked. */
  provider: string;
  /** One that channels serve, or OTHER_MODEL. */
  model: string;
  outcome: Outcome;
  /** Code of what went wrong; "" = nothing did. */
  error: string;
  durationMs: number;
  /** Of the duration, what was spent in the gateway; undefined: nobody was asked. */
  addedMs: number | undefined;
  /** Until the first content of a stream. */
  firstTokenMs: number | undefined;
  /** As charged; undefined: nothing was. */
  tokens: ChargedTokens | undefined;
}

/** Whole tokens: `input` holds those from and for caches, `output` those of reasoning. */
export interface ChargedTokens {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
}

/** One try at an upstream. */
interface Attempt {
  channel: number;
  endpoint: string;
  provider: string;
  model: string;
  error: string;
  ms: number;
}

export interface Observer {
  /** An attempt has its answer, or the first of its stream. */
  attempted(channel: number, outcome: AttemptOutcome): void;
  /** An attempt is over, a stream with its last byte. */
  attemptEnded(attempt: Attempt): void;
  /** Once for each request of a client. */
  ended(request: EndedRequest): void;
  /** A durable write to the journal took so long. */
  synced(ms: number): void;
  readonly figures: Figures;
  /** Undefined: nobody traces. */
  readonly traces: Traces | undefined;
  /** Writes the line of a request that has ended; undefined: nobody wants one. */
  readonly access: ((fields: Record<string, string | number | undefined>) => void) | undefined;
}

/** Everything that was counted, for whoever writes it out. */
export interface Figures {
  readonly calls: CallTallies;
  /** By endpoint, in the order of OUTCOMES. */
  readonly requests: ReadonlyMap<string, readonly number[]>;
  /** By channel, in the order of ATTEMPT_OUTCOMES. */
  readonly attempts: ReadonlyMap<number, readonly number[]>;
  readonly tokens: Readonly<Record<TokenType, number>>;
  readonly models: ModelTable;
  readonly added: Tally;
  readonly syncs: Tally;
}

const zeros = (length: number): number[] => Array.from({ length }, () => 0);

function countIn<Key>(map: Map<Key, number[]>, key: Key, place: number, places: number): void {
  let counts = map.get(key);
  if (!counts) map.set(key, (counts = zeros(places)));
  counts[place] = (counts[place] ?? 0) + 1;
}

export function createObserver({
  traces,
  access,
}: Partial<Pick<Observer, "traces" | "access">> = {}): Observer {
  const calls = createCallTallies();
  const requests = new Map<string, number[]>();
  const attempts = new Map<number, number[]>();
  const models = new Map<string, ModelFigures>();
  const tokens: Record<TokenType, number> = {
    input: 0,
    output: 0,
    cache_read: 0,
    cache_write: 0,
    reasoning: 0,
  };
  const added = createTally(METRICS.weir_added_seconds.buckets);
  const syncs = createTally(METRICS.weir_journal_sync_seconds.buckets);

  function countTokens(charged: ChargedTokens): void {
    tokens.input += charged.input;
    tokens.output += charged.output;
    tokens.cache_read += charged.cacheRead;
    tokens.cache_write += charged.cacheWrite;
    tokens.reasoning += charged.reasoning;
  }

  return {
    attempted: (channel, outcome) =>
      countIn(attempts, channel, ATTEMPT_OUTCOMES.indexOf(outcome), ATTEMPT_OUTCOMES.length),
    attemptEnded({ endpoint, provider, model, error, ms }) {
      note(calls.of(model, endpoint, provider, error), "attempts", ms / 1000);
    },
    ended(request) {
      const { endpoint, provider, model, outcome, error, durationMs, addedMs, firstTokenMs } = request;
      countIn(requests, endpoint, OUTCOMES.indexOf(outcome), OUTCOMES.length);
      note(calls.of(model, endpoint, provider, error), "requests", durationMs / 1000);
      if (model !== OTHER_MODEL) countModel(models, request);
      if (addedMs !== undefined) observe(added, Math.max(0, addedMs) / 1000);
      const charged = request.tokens;
      if (!charged) return;
      countTokens(charged);
      // These know no error: what was delivered is the same whatever came of it.
      const delivered = calls.of(model, endpoint, provider, "");
      note(delivered, "input", charged.input);
      note(delivered, "output", charged.output);
      if (firstTokenMs === undefined) return;
      note(delivered, "firstToken", firstTokenMs / 1000);
      if (charged.output > 1)
        note(delivered, "perToken", (durationMs - firstTokenMs) / 1000 / (charged.output - 1));
    },
    synced: (ms) => observe(syncs, ms / 1000),
    traces,
    access,
    figures: { calls, requests, attempts, models, tokens, added, syncs },
  };
}
