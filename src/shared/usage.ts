// What one call consumed, in disjoint token counts. Every decoder fills it, billing reads nothing else.
// Callers bound foreign numbers with boundedCount before they get here.

/** Largest token count accepted from outside for one field: far above any context window, far below 2^53. */
export const MAX_TOKEN_COUNT = 100_000_000;

/** Disjoint input token counts: no token is counted in two fields. */
interface InputUsage {
  /** Text tokens that were neither read from nor written to a cache. */
  fresh: number;
  cacheRead: number;
  /** Cache writes with the short (5 minute) or unspecified life. */
  cacheWrite5m: number;
  cacheWrite1h: number;
  audio: number;
  image: number;
}

/** Disjoint output token counts; `thinking` is not contained in `text`. */
interface OutputUsage {
  text: number;
  thinking: number;
  audio: number;
  image: number;
}

/** Hosted tool calls that are billed by the piece. */
interface CallUsage {
  webSearch: number;
  fileSearch: number;
}

export interface Usage {
  input: InputUsage;
  output: OutputUsage;
  calls: CallUsage;
  /** The upstream's own usage object, kept verbatim for the log; absent when nothing was reported. */
  raw?: unknown;
  /** True when the numbers were counted here because the upstream was silent. */
  estimated?: boolean;
}

export function emptyUsage(): Usage {
  return {
    input: { fresh: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, audio: 0, image: 0 },
    output: { text: 0, thinking: 0, audio: 0, image: 0 },
    calls: { webSearch: 0, fileSearch: 0 },
  };
}

/** Every input token, however it was served: what the log and rate figures call prompt tokens. */
export function promptTokens(usage: Usage): number {
  const i = usage.input;
  return i.fresh + i.cacheRead + i.cacheWrite5m + i.cacheWrite1h + i.audio + i.image;
}

/** Every output token: what the log calls completion tokens. */
export function completionTokens(usage: Usage): number {
  const o = usage.output;
  return o.text + o.thinking + o.audio + o.image;
}

/**
 * A token count that came from outside, made safe: anything but a finite positive number becomes 0,
 * fractions are cut, and MAX_TOKEN_COUNT caps the rest, so that no upstream number can raise or sink a balance.
 */
export function boundedCount(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) return 0;
  return Math.min(Math.trunc(value), MAX_TOKEN_COUNT);
}
