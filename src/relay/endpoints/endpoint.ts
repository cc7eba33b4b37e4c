// What an inference endpoint is to the pipeline, and the checks that all of them share.
// Refuses wrong types and absurd numbers by name; unknown fields are nobody's business here.
import type { DialectName } from "../../protocol/canonical.ts";
import type { MeterOptions, StreamMeter } from "../../protocol/dialect.ts";
import type { Operation } from "../../providers/define.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import { Failure } from "../../shared/failures.ts";
import type { CallUnit } from "../../shared/price-row.ts";
import type { PriceRatios } from "../../shared/cost.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Form } from "../wire/multipart.ts";
import type { RelayBody } from "../wire/read-body.ts";
import type { UnitCounter } from "./call-units.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Endpoint {
  name: Operation;
  /** Path at upstreams that have the same operation; absent: the operation's own. */
  path?: string;
  /** `path` is a part of the operation that not every upstream has: it needs an address that names it. */
  isPart?: boolean;
  /** Dialect of the client: of the answers, the stream and the errors. */
  dialect: DialectName;
  /** Wire code of a refused body. */
  refusalCode: string;
  canStream: boolean;
  /** Whether prompts are held against the list of forbidden words. */
  isScreened: boolean;
  /** Whether upstreams of other dialects may serve it too: it is a conversation. */
  isConversation: boolean;
  /** Model of a request that names none. */
  defaultModel?: string;
  check: (body: Json, form?: Form) => void;
  /** Members that decide what a call costs, besides its model: each stands once in a body, in this spelling. */
  readOnce?: ReadonlySet<string>;
  visitPrompt: (body: Json, visitor: PromptVisitor) => void;
  /** The client's own bound on the answer in tokens; 0 = it named none. */
  outputLimit: (body: Json) => number;
  /** False: what comes back is no text that is counted in tokens (vectors, scores, sound, pictures by the piece). */
  answersTokens?: boolean;
  /** Tokens of the input, where they are not those of its texts: sound, characters. Only for the hold. */
  heldInput?: (facts: Pick<AnswerFacts, "body" | "form" | "model">) => number;
  /** Tokens of sound that the answer may have. Only for the hold. */
  heldSound?: (facts: Pick<AnswerFacts, "body" | "model" | "ratios">) => number;
  /** Tokens of the prompt besides its texts: roles, frames, priming. */
  frameTokens?: (body: Json) => number;
  /** The body in the operation's own form, where the client's is another (Gemini embeddings). */
  rewrite?: (body: Json, model: string) => Record<string, unknown>;
  /**
   * Names of what `rewrite` leaves behind, told where the upstream is not handed the client's own body. Throws client
   * failures that name what cannot be left behind.
   */
  losses?: (body: Json) => readonly string[];
  /** A whole answer in the client's form, where the operation's own is another. */
  answer?: (json: unknown, context: { body: Json; usage: Usage | undefined }) => unknown;
  /**
   * The body that is priced, screened and sent: as another endpoint's, for clients whose own endpoint no upstream has any more, or
   * with one word for what clients say by several.
   */
  translate?: (body: RelayBody) => RelayBody;
  /** Pictures, sound, rerank: the raw pass-through does not concern them, and no limit on tokens. */
  isMedia?: boolean;
  /** The body is a multipart form; gives it as upstreams want it, but for the model. */
  form?: (form: Form) => Form;
  /** What a good answer is: a JSON object where absent, any text, or bytes that are passed on as they come. */
  answers?: "text" | "bytes";
  /** Whether a whole answer of JSON holds what was asked for; `body` as it was sent. Conversations are judged by their words. */
  holds?: (json: unknown, body: Json) => boolean;
  /** Code of the refusal that the balance is too low, where it is another than the usual one. */
  quotaCode?: FailureCode;
  /** What a fixed price counts; one when absent. `json` is the whole answer, once it is there and where it was JSON. */
  pieces?: (body: Json, json?: unknown) => number;
  /** What a price for one of them counts, unit by unit; a unit that is missing is refused. */
  units?: Partial<Record<CallUnit, UnitCounter>>;
  /** What a fixed price is multiplied by besides. */
  factor?: (body: Json, upstreamModel: string) => number;
  /** Usage of a whole answer, where it stands elsewhere than usual. */
  reportedUsage?: (json: unknown) => Usage | null;
  /** What a delivered answer costs where its upstream says nothing: the rule of the endpoint, not an estimate. */
  ownUsage?: (facts: AnswerFacts) => Promise<Usage>;
  /** Reads an event stream that is no conversation; it is whole when its body ends behind the final event. */
  meterStream?: (options?: MeterOptions) => StreamMeter;
  /** Words for the log row's sentence. */
  remark?: (body: Json) => string;
}

/** An answer of sound that has passed: its beginning, and how many bytes it had. */
export interface AnswerSound {
  head: Uint8Array;
  total: number;
}

/** What an endpoint's own rule may ask for. */
export interface AnswerFacts {
  body: Json;
  form: Form | undefined;
  /** The whole answer, where it was JSON; of words as they are, the words. */
  json: unknown;
  /** Of an answer of sound. */
  sound: AnswerSound | undefined;
  /** What the model costs. */
  ratios: PriceRatios;
  /** As requested, and as it is called upstream. */
  model: string;
  upstreamModel: string;
  /** Tokens by the encoder. */
  count: (texts: string[]) => Promise<number>;
}

export interface PromptVisitor {
  /** Words of the prompt: counted, and held against the forbidden ones. */
  text: (text: string) => void;
  /** Tool descriptions and calls: counted only. */
  tool: (text: string) => void;
  /** A picture, sound or file. */
  media: () => void;
  /** A mark that the prompt up to it shall be written to a cache. */
  cached?: (control: unknown) => void;
}

/** Larger limits are a mistake or an attack; the number is the one clients of this API know. */
export const MAX_OUTPUT_LIMIT = 1_073_741_823;

export interface NumberRule {
  min: number;
  max: number;
  whole?: boolean;
}

/** Sampling and limits that gateways multiply or that upstreams read as numbers. */
const NUMBER_RULES: Readonly<Record<string, NumberRule>> = {
  max_tokens: { min: 0, max: MAX_OUTPUT_LIMIT, whole: true },
  max_completion_tokens: { min: 0, max: MAX_OUTPUT_LIMIT, whole: true },
  n: { min: 1, max: 128, whole: true },
  best_of: { min: 1, max: 128, whole: true },
  temperature: { min: -1e6, max: 1e6 },
  top_p: { min: -1e6, max: 1e6 },
  top_k: { min: -1e9, max: 1e9 },
  presence_penalty: { min: -1e6, max: 1e6 },
  frequency_penalty: { min: -1e6, max: 1e6 },
  top_logprobs: { min: 0, max: 1e6, whole: true },
  seed: { min: -1e19, max: 1e19 },
  dimensions: { min: 1, max: 1e6, whole: true },
};

const LIMIT_FIELDS = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"];
const CONTEXT_SIZES = new Set(["low", "medium", "high"]);

export function refused(
  endpoint: Pick<Endpoint, "refusalCode">,
  code: FailureCode,
  field: string,
  reason = "",
): Failure {
  return new Failure("client", code, {
    params: { field, reason },
    wireCode: endpoint.refusalCode,
    param: field,
  });
}

export function checkNumbers(
  endpoint: Pick<Endpoint, "refusalCode">,
  body: Json,
  rules: Readonly<Record<string, NumberRule>> = NUMBER_RULES,
): void {
  for (const field in rules) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    const rule = rules[field];
    if (!rule) continue;
    const isGood =
      typeof value === "number" &&
      Number.isFinite(value) &&
      value >= rule.min &&
      value <= rule.max &&
      (rule.whole !== true || Number.isInteger(value));
    if (isGood) continue;
    if (LIMIT_FIELDS.includes(field)) throw refused(endpoint, "max_tokens_invalid", field);
    throw refused(
      endpoint,
      "invalid_field",
      field,
      `must be a ${rule.whole === true ? "whole " : ""}number from ${rule.min} to ${rule.max}`,
    );
  }
}

export function checkCommon(endpoint: Pick<Endpoint, "refusalCode">, body: Json): void {
  checkNumbers(endpoint, body);
  const { stream, stream_options: streamOptions, web_search_options: search } = body;
  if (stream !== undefined && stream !== null && typeof stream !== "boolean")
    throw refused(endpoint, "invalid_field", "stream", "must be true or false");
  if (streamOptions !== undefined && streamOptions !== null && !isObject(streamOptions))
    throw refused(endpoint, "invalid_field", "stream_options", "must be an object");
  if (isObject(search)) {
    const size = search["search_context_size"];
    if (size !== undefined && !(typeof size === "string" && CONTEXT_SIZES.has(size)))
      throw refused(endpoint, "search_context_size_invalid", "web_search_options");
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Text parts of a message's content; every other part counts as media. */
export function visitContent(content: unknown, visitor: PromptVisitor): void {
  if (typeof content === "string") return visitor.text(content);
  if (!Array.isArray(content)) return;
  for (const part of content as unknown[]) {
    if (!isObject(part)) continue;
    visitCacheMark(part, visitor);
    if (typeof part["text"] === "string") visitor.text(part["text"]);
    else visitor.media();
  }
}

/** Content parts, tools and whole requests may carry one. */
export function visitCacheMark(holder: Json, visitor: PromptVisitor): void {
  const control = holder["cache_control"];
  if (control !== undefined && control !== null) visitor.cached?.(control);
}

/** A text, or a list of texts or token lists. */
export function visitInput(input: unknown, visitor: PromptVisitor): void {
  if (typeof input === "string") return visitor.text(input);
  if (!Array.isArray(input)) return;
  for (const item of input as unknown[]) {
    if (typeof item === "string") visitor.text(item);
    else if (isObject(item) && typeof item["text"] === "string") visitor.text(item["text"]);
    // A token list: as long as so many short words.
    else if (Array.isArray(item)) visitor.tool("    ".repeat(item.length));
    else if (typeof item === "number") visitor.tool("    ");
  }
}

/** The larger of the two spellings of chat completions; 0 when the client named no limit. */
export function largestLimit(body: Json): number {
  let limit = 0;
  for (const field of ["max_tokens", "max_completion_tokens"]) {
    const value = body[field];
    if (typeof value === "number" && value > limit) limit = value;
  }
  return limit;
}
