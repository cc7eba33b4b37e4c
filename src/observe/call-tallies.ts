// The figures of calls by operation, provider, model and error, kept where a scrape finds them.
// Refuses more than so many combinations: what comes beyond is counted under one name, so that nobody can fill the memory.
import { METRICS, operationName, OTHER_MODEL } from "./names.ts";
import { createTally, observe } from "./tally.ts";
import type { Tally } from "./tally.ts";

/** Combinations of labels of calls; a new one beyond is told as _other. */
export const MOST_COMBINATIONS = 10_000;

/** Whose figures: the endpoint's name, not yet the operation's. */
interface CallLabels {
  endpoint: string;
  provider: string;
  model: string;
  /** "" = it did not fail. */
  error: string;
}

/** Made as they are first observed. */
export interface CallFigures {
  readonly labels: Readonly<CallLabels> & { operation: string };
  attempts: Tally | undefined;
  requests: Tally | undefined;
  firstToken: Tally | undefined;
  perToken: Tally | undefined;
  input: Tally | undefined;
  output: Tally | undefined;
}

const BOUNDS = {
  attempts: METRICS.gen_ai_client_operation_duration_seconds.buckets,
  requests: METRICS.gen_ai_server_request_duration_seconds.buckets,
  firstToken: METRICS.gen_ai_server_time_to_first_token_seconds.buckets,
  perToken: METRICS.gen_ai_server_time_per_output_token_seconds.buckets,
  input: METRICS.gen_ai_client_token_usage.buckets,
  output: METRICS.gen_ai_client_token_usage.buckets,
} as const;

export function note(figures: CallFigures, what: keyof typeof BOUNDS, value: number): void {
  observe((figures[what] ??= createTally(BOUNDS[what])), value);
}

export interface CallTallies {
  /** A string each, in this order: four look-ups cost less than one name put together. */
  of(model: string, endpoint: string, provider: string, error: string): CallFigures;
  all(): readonly CallFigures[];
  /** How many calls were told as _other for want of room. */
  refused(): number;
}

type ByError = Map<string, CallFigures>;

export function createCallTallies(most = MOST_COMBINATIONS): CallTallies {
  const byModel = new Map<string, Map<string, Map<string, ByError>>>();
  const all: CallFigures[] = [];
  let refused = 0;

  function of(model: string, endpoint: string, provider: string, error: string): CallFigures {
    const found = byModel.get(model)?.get(endpoint)?.get(provider)?.get(error);
    if (found) return found;
    if (all.length >= most && model !== OTHER_MODEL) {
      refused++;
      return of(OTHER_MODEL, endpoint, provider, error);
    }
    const figures: CallFigures = {
      labels: { model, endpoint, provider, error, operation: operationName(endpoint) },
      attempts: undefined,
      requests: undefined,
      firstToken: undefined,
      perToken: undefined,
      input: undefined,
      output: undefined,
    };
    below(below(below(byModel, model), endpoint), provider).set(error, figures);
    all.push(figures);
    return figures;
  }

  return { of, all: () => all, refused: () => refused };
}

function below<Below>(map: Map<string, Map<string, Below>>, key: string): Map<string, Below> {
  const found = map.get(key);
  if (found) return found;
  const made = new Map<string, Below>();
  map.set(key, made);
  return made;
}
