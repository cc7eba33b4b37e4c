// The one error type of the product: thrown inside, rendered at the edge in the caller's own protocol.
// Texts are not here: a code is a row of failure-codes.ts and a key of locales/*/failure.json.
import type { FailureCode } from "./failure-codes.ts";

export type FailureKind =
  | "client"
  | "auth"
  | "forbidden"
  | "quota"
  | "limit"
  | "no-channel"
  | "upstream-auth"
  | "upstream-quota"
  | "upstream-limit"
  | "upstream-request"
  | "upstream-refusal"
  | "context-length"
  | "upstream-down"
  | "upstream-timeout"
  | "broken-stream"
  | "internal";

/** HTTP status of a kind where the failure names none of its own. */
export const KIND_STATUS: Record<FailureKind, number> = {
  client: 400,
  auth: 401,
  forbidden: 403,
  quota: 403,
  limit: 429,
  "no-channel": 503,
  "upstream-auth": 502,
  "upstream-quota": 502,
  "upstream-limit": 429,
  "upstream-request": 400,
  "upstream-refusal": 400,
  "context-length": 400,
  "upstream-down": 502,
  "upstream-timeout": 504,
  "broken-stream": 502,
  internal: 500,
};

/** Seconds that a caller is asked to wait where nobody said how long; own limits of a moment end within one. */
const SHORT_WAIT_SECONDS = 1;
export const UPSTREAM_WAIT_SECONDS = 5;

export type FailureParams = Record<string, string | number>;

export interface FailureDetails {
  /** HTTP status at the relay; the kind's own when absent. Console calls answer 200 for business refusals. */
  status?: number;
  /** Which of the code's texts says it: `code.variant` in the dictionaries; the code's own where there is none. */
  variant?: string;
  /** Values for the placeholders of the translated text. */
  params?: FailureParams;
  /** Text that replaces the dictionary's: only for messages of an upstream that are already scrubbed. */
  text?: string;
  /** What administrators may read in the log: scrubbed upstream body, cause. Never sent to ordinary users. */
  internal?: string;
  /** Whether another channel may be tried. */
  retryable?: boolean;
  /** Wire type of the OpenAI-shaped error object, when it is not the gateway's own. */
  type?: string;
  /** Wire code, when it differs from `code` (an upstream's own code). */
  wireCode?: string | number | null;
  /** Name of the offending field. */
  param?: string;
  /** Status the upstream answered with, before status mapping. */
  upstreamStatus?: number;
  /** The sentence of the upstream's error, scrubbed. For administrators only. */
  upstreamText?: string;
  /** Seconds the upstream asked to wait. */
  retryAfterSeconds?: number;
  /** What programs read of a refusal besides its code, as the envelope's data. */
  data?: Record<string, unknown>;
  cause?: unknown;
}

/** A refusal or error with a public and an internal face. `code` is stable and a key of the dictionaries. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly kind: FailureKind;
  readonly code: FailureCode;
  readonly status: number;
  /** The status that was asked for, when one was: console calls otherwise answer 200 for business refusals. */
  readonly explicitStatus: number | undefined;
  readonly params: FailureParams;
  readonly variant: string | undefined;
  readonly text: string | undefined;
  readonly internal: string | undefined;
  readonly retryable: boolean;
  readonly type: string | undefined;
  readonly wireCode: string | number | null | undefined;
  readonly param: string | undefined;
  readonly upstreamStatus: number | undefined;
  readonly upstreamText: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly data: Record<string, unknown> | undefined;

  constructor(kind: FailureKind, code: FailureCode, details: FailureDetails = {}) {
    super(code, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.code = code;
    this.status = details.status ?? KIND_STATUS[kind];
    this.explicitStatus = details.status;
    this.params = details.params ?? {};
    this.variant = details.variant;
    this.text = details.text;
    this.internal = details.internal;
    this.retryable = details.retryable ?? false;
    this.type = details.type;
    this.wireCode = details.wireCode;
    this.param = details.param;
    this.upstreamStatus = details.upstreamStatus;
    this.upstreamText = details.upstreamText;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.data = details.data;
  }

  /** The same failure with each of its words written anew; itself where that changes none. */
  reworded(write: (text: string) => string): Failure {
    let hasChanged = false;
    const anew = <Word>(word: Word): Word => {
      if (typeof word !== "string") return word;
      const written = write(word);
      if (written !== word) hasChanged = true;
      return written as Word;
    };
    const details: FailureDetails = {
      status: this.explicitStatus,
      variant: this.variant,
      params: Object.fromEntries(Object.entries(this.params).map(([name, value]) => [name, anew(value)])),
      text: anew(this.text),
      internal: anew(this.internal),
      retryable: this.retryable,
      type: anew(this.type),
      wireCode: anew(this.wireCode),
      param: anew(this.param),
      upstreamStatus: this.upstreamStatus,
      upstreamText: anew(this.upstreamText),
      retryAfterSeconds: this.retryAfterSeconds,
      data: this.data,
      cause: this.cause,
    };
    return hasChanged ? new Failure(this.kind, this.code, details) : this;
  }
}

/**
 * What `Retry-After` says to the caller; undefined for none. Every 429 has one: clients that read none guess, many of them at
 * once.
 */
export function waitSecondsOf({ kind, status, retryAfterSeconds }: Failure): number | undefined {
  if (retryAfterSeconds !== undefined || status !== 429) return retryAfterSeconds;
  return kind === "limit" ? SHORT_WAIT_SECONDS : UPSTREAM_WAIT_SECONDS;
}

/** Shorthand for a refused console action: the call answers 200 with success false. */
export function refuse(code: FailureCode, params?: FailureParams): Failure {
  return new Failure("client", code, params ? { params } : {});
}
