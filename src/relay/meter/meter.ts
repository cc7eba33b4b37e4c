// What a call consumed when its upstream does not report it: counted from the prompt and from the answer as it passes.
// Keeps no text: deltas are handed to the counter in small pieces and forgotten.
import type { Answer } from "../../protocol/assemble.ts";
import type { MeterOptions, StreamMeter } from "../../protocol/dialect.ts";
import { asList, asObject } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Endpoint, Json } from "../endpoints/endpoint.ts";
import { estimateFromLengths, estimateTokens } from "./token-count.ts";
import type { TokenCounter } from "./token-count.ts";

/** A picture at low detail: what the estimate assumes for media it does not open. */
const MEDIA_TOKENS = 85;

export interface PromptSize {
  /** Cheap estimate, for the amount that is held back. */
  tokens: number;
  /** No encoder counts more: a token has at least one byte. Equal to `tokens` once they were counted. */
  mostTokens: number;
  /** The encoder was asked and gave no answer: `mostTokens` is what has to be paid. */
  isUncountable?: boolean;
  /** What the estimate adds besides text. */
  fixedTokens: number;
  /** Those of them that stand for pictures, sound and files. */
  mediaTokens: number;
  /** What of the prompt may be written to a cache: nothing, for the usual five minutes, or for an hour. */
  cacheWrite: "none" | "short" | "long";
}

/** One walk over the prompt; `onText` sees every text that must be screened. */
export function measurePrompt(endpoint: Endpoint, body: Json, onText?: (text: string) => void): PromptSize {
  let chars = 0;
  let bytes = 0;
  let mediaTokens = 0;
  let cacheWrite: PromptSize["cacheWrite"] = "none";
  const add = (text: string): void => {
    chars += text.length;
    bytes += Buffer.byteLength(text);
  };
  endpoint.visitPrompt(body, {
    text(text) {
      add(text);
      onText?.(text);
    },
    tool: add,
    media() {
      mediaTokens += MEDIA_TOKENS;
    },
    cached(control) {
      if (asObject(control)?.["ttl"] === "1h") cacheWrite = "long";
      else if (cacheWrite === "none") cacheWrite = "short";
    },
  });
  const fixedTokens = mediaTokens + (endpoint.frameTokens?.(body) ?? 0);
  return {
    tokens: estimateFromLengths(chars, bytes) + fixedTokens,
    mostTokens: bytes + fixedTokens,
    fixedTokens,
    mediaTokens,
    cacheWrite,
  };
}

/** A count that a client requested and cannot have now. */
export function countBusy(): Failure {
  return new Failure("limit", "count_busy", { type: "rate_limit_error", retryAfterSeconds: 1 });
}

export interface PromptToCount {
  endpoint: Endpoint;
  body: Json;
  model: string;
  /** Of a client who requested the count itself; absent for a settlement, which never waits for others. */
  signal?: AbortSignal;
}

/**
 * The prompt counted by the encoder, or the estimate when that takes too long. With a signal the count is given up when the
 * client leaves, and throws `count_busy` while too much waits already; without one the estimate is taken then.
 */
export async function countPrompt(counter: TokenCounter, prompt: PromptToCount): Promise<number> {
  return (await countedPrompt(counter, prompt)) ?? measurePrompt(prompt.endpoint, prompt.body).tokens;
}

/** The same for those whom an estimate does not help: undefined where the encoder gave no answer. */
export async function countedPrompt(
  counter: TokenCounter,
  { endpoint, body, model, signal }: PromptToCount,
): Promise<number | undefined> {
  const texts: string[] = [];
  let chars = 0;
  const add = (text: string): void => {
    texts.push(text);
    chars += text.length;
  };
  endpoint.visitPrompt(body, { text: add, tool: add, media: () => {} });
  if (signal && counter.isFullFor(chars)) throw countBusy();
  const { fixedTokens } = measurePrompt(endpoint, body);
  const counted = await counter.count(texts, model, signal);
  return counted === undefined ? undefined : counted + fixedTokens;
}

/** The texts of an answer in canonical form, for counting only. */
export function canonicalTexts(answer: Answer): string[] {
  return answer.blocks.flatMap((block) => [block.name ?? "", block.text]).filter((text) => text !== "");
}

/** The texts of a full OpenAI-shaped answer, for counting only. */
export function answerTexts(body: unknown): string[] {
  const texts: string[] = [];
  const add = (value: unknown): void => {
    if (typeof value === "string" && value !== "") texts.push(value);
  };
  for (const value of asList(asObject(body)?.["choices"])) {
    const choice = asObject(value);
    add(choice?.["text"]);
    const message = asObject(choice?.["message"]);
    for (const key of ["content", "reasoning_content", "reasoning", "refusal"]) add(message?.[key]);
    for (const call of asList(message?.["tool_calls"])) {
      const inner = asObject(asObject(call)?.["function"]);
      add(inner?.["name"]);
      add(inner?.["arguments"]);
    }
  }
  return texts;
}

/** A stream's meter, and the count of what passed through it. */
export interface OutputCounter {
  meter: StreamMeter;
  /** Output tokens seen so far: exact where deltas were counted, else from the length. */
  outputTokens(): Promise<number>;
  /** The same while the stream runs, for its hold; the newest text may be estimated. */
  countedTokens(): number | Promise<number>;
  /** Tokens that the text may have beyond `countedTokens`, as long as its end is estimated. */
  unsureTokens(): number;
  /** The most tokens that this count gives one UTF-16 unit. */
  readonly tokensPerUnit: number;
}

const BATCH_CHARS = 4096;
/** Enough to be counted while the stream runs, for its hold. */
const HOLD_BATCH_CHARS = 1024;
/** Of one UTF-16 unit; a token is at least one of them. */
const MAX_UTF8_BYTES = 3;

/** Looks at the model's words as they come; the failure of a hit ends the stream. */
export type OutputScreen = (delta: string) => Failure | undefined;

export interface OutputCounterOptions {
  /** The meter that the counter reads along with. */
  makeMeter: (options: MeterOptions) => StreamMeter;
  counter: TokenCounter;
  model: string;
  /**
   * The upstream is known to report no usage, so each delta goes to the encoder as it passes (costs a parse per frame).
   * Otherwise only lengths are kept, and the estimate serves in the rare case that usage is missing.
   */
  countsDeltas: boolean;
  screen: OutputScreen | undefined;
}

export function createOutputCounter(options: OutputCounterOptions): OutputCounter {
  return options.countsDeltas ? encoderCounter(options) : lengthCounter(options);
}

/** Counts by the length of what passes. */
function lengthCounter({ makeMeter, screen }: OutputCounterOptions): OutputCounter {
  const onText = screen
    ? (delta: string): void => {
        meter.state.failure ??= screen(delta) ?? null;
      }
    : undefined;
  const meter: StreamMeter = makeMeter(onText ? { onText } : {});
  let bytes = 0;
  let chars = 0;
  const push = meter.push.bind(meter);
  meter.push = (frame) => {
    push(frame);
    chars += frame.data.length;
    bytes += frame.dataBytes ?? Buffer.byteLength(frame.data);
  };
  const { skim } = meter;
  if (skim)
    meter.skim = (event, mostUnits) => {
      const surplus = skim(event, mostUnits);
      // Only the difference to the characters counts, and what is around the text has none.
      if (surplus > 0) bytes += surplus;
      return surplus;
    };
  const countedTokens = (): number => {
    const { textChars } = meter.state;
    return textChars === 0 ? 0 : Math.max(1, estimateFromLengths(textChars, textChars + bytes - chars));
  };
  return {
    meter,
    countedTokens,
    unsureTokens: () => 0,
    tokensPerUnit: 1,
    outputTokens: () => Promise.resolve(countedTokens()),
  };
}

/** Counts what passes by the model's own encoder. */
function encoderCounter({ makeMeter, counter, model, screen }: OutputCounterOptions): OutputCounter {
  let batch = "";
  let estimate = 0;
  let exact = 0;
  let isExact = true;
  let open: Promise<void> = Promise.resolve();
  const flush = (): void => {
    if (batch === "") return;
    const text = batch;
    batch = "";
    estimate += estimateTokens(text);
    const answer = counter.count([text], model);
    open = open.then(async () => {
      const tokens = await answer;
      if (tokens === undefined) isExact = false;
      else exact += tokens;
    });
  };
  const meter = makeMeter({
    onText(delta) {
      if (screen) meter.state.failure ??= screen(delta) ?? null;
      batch += delta;
      if (batch.length >= BATCH_CHARS) flush();
    },
  });
  const outputTokens = async (): Promise<number> => {
    flush();
    await open;
    return isExact ? exact : estimate;
  };
  return {
    meter,
    outputTokens,
    unsureTokens: () => (batch === "" ? 0 : Math.max(0, Buffer.byteLength(batch) - estimateTokens(batch))),
    tokensPerUnit: MAX_UTF8_BYTES,
    async countedTokens() {
      // Each cut may part a word and count a token more: the newest text is estimated until there is enough of it.
      if (batch.length >= HOLD_BATCH_CHARS) flush();
      await open;
      return (isExact ? exact : estimate) + estimateTokens(batch);
    },
  };
}

export function estimatedUsage(promptTokens: number, outputTokens: number): Usage {
  const usage = emptyUsage();
  usage.input.fresh = promptTokens;
  usage.output.text = outputTokens;
  usage.estimated = true;
  return usage;
}
