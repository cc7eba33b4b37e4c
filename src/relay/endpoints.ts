// What each inference endpoint of the OpenAI dialect asks of its body: model, checks, prompt texts, output limit.
// Refuses missing fields, wrong types and absurd numbers by name; unknown fields are nobody's business here.
import type { DialectName } from "../protocol/canonical.ts";
import { Failure } from "../shared/failures.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Endpoint {
  name: "chat" | "completions" | "embeddings";
  /** Path at the upstream, below its base address. */
  path: string;
  /** Dialect of the client: of the answers, the stream and the errors. */
  dialect: DialectName;
  /** Wire code of a refused body. */
  refusalCode: string;
  canStream: boolean;
  /** Whether prompts are held against the list of forbidden words. */
  isScreened: boolean;
  check: (body: Json) => void;
  visitPrompt: (body: Json, visitor: PromptVisitor) => void;
}

export interface PromptVisitor {
  /** Words of the prompt: counted, and held against the forbidden ones. */
  text: (text: string) => void;
  /** Tool descriptions and calls: counted only. */
  tool: (text: string) => void;
  /** A picture, sound or file. */
  media: () => void;
}

/** Larger limits are a mistake or an attack; the number is the one clients of this API know. */
const MAX_OUTPUT_LIMIT = 1_073_741_823;

interface NumberRule {
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

const LIMIT_FIELDS = ["max_tokens", "max_completion_tokens"];
const CONTEXT_SIZES = new Set(["low", "medium", "high"]);

function refused(endpoint: Pick<Endpoint, "refusalCode">, code: string, field: string, reason = ""): Failure {
  return new Failure("client", code, {
    params: { field, reason },
    wireCode: endpoint.refusalCode,
    param: field,
  });
}

function checkNumbers(endpoint: Pick<Endpoint, "refusalCode">, body: Json): void {
  for (const field in NUMBER_RULES) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    const rule = NUMBER_RULES[field];
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

function checkCommon(endpoint: Pick<Endpoint, "refusalCode">, body: Json): void {
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
function visitContent(content: unknown, visitor: PromptVisitor): void {
  if (typeof content === "string") return visitor.text(content);
  if (!Array.isArray(content)) return;
  for (const part of content as unknown[]) {
    if (!isObject(part)) continue;
    if (typeof part["text"] === "string") visitor.text(part["text"]);
    else visitor.media();
  }
}

/** A text, or a list of texts or token lists. */
function visitInput(input: unknown, visitor: PromptVisitor): void {
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

const TEXT = { refusalCode: "invalid_text_request", dialect: "openai-chat" } as const;

export const chat: Endpoint = {
  ...TEXT,
  name: "chat",
  path: "/v1/chat/completions",
  canStream: true,
  isScreened: true,
  check(body) {
    checkCommon(TEXT, body);
    const { messages } = body;
    if (messages === undefined || messages === null || (Array.isArray(messages) && messages.length === 0))
      throw refused(TEXT, "field_required", "messages");
    if (!Array.isArray(messages)) throw refused(TEXT, "invalid_field", "messages", "must be a list");
    if (!(messages as unknown[]).every(isObject))
      throw refused(TEXT, "invalid_field", "messages", "every message must be an object");
  },
  visitPrompt(body, visitor) {
    for (const message of body["messages"] as Json[]) {
      visitContent(message["content"], visitor);
      if (Array.isArray(message["tool_calls"])) visitor.tool(JSON.stringify(message["tool_calls"]));
    }
    if (Array.isArray(body["tools"])) visitor.tool(JSON.stringify(body["tools"]));
  },
};

export const completions: Endpoint = {
  ...TEXT,
  name: "completions",
  path: "/v1/completions",
  canStream: true,
  isScreened: true,
  check(body) {
    checkCommon(TEXT, body);
    const { prompt } = body;
    if (
      prompt === undefined ||
      prompt === null ||
      prompt === "" ||
      (Array.isArray(prompt) && prompt.length === 0)
    )
      throw refused(TEXT, "field_required", "prompt");
    if (typeof prompt !== "string" && !Array.isArray(prompt))
      throw refused(TEXT, "invalid_field", "prompt", "must be a text or a list");
  },
  visitPrompt: (body, visitor) => visitInput(body["prompt"], visitor),
};

const EMBEDDINGS = { refusalCode: "invalid_embedding_request" } as const;

export const embeddings: Endpoint = {
  ...EMBEDDINGS,
  name: "embeddings",
  path: "/v1/embeddings",
  dialect: "openai-chat",
  canStream: false,
  isScreened: false,
  check(body) {
    checkNumbers(EMBEDDINGS, body);
    const { input } = body;
    if (input === undefined || input === null || input === "" || (Array.isArray(input) && input.length === 0))
      throw refused(EMBEDDINGS, "input_empty", "input");
    if (typeof input !== "string" && !Array.isArray(input))
      throw refused(EMBEDDINGS, "invalid_field", "input", "must be a text or a list");
    const format = body["encoding_format"];
    if (format !== undefined && format !== null && format !== "float" && format !== "base64")
      throw refused(EMBEDDINGS, "invalid_field", "encoding_format", "must be float or base64");
  },
  visitPrompt: (body, visitor) => visitInput(body["input"], visitor),
};

/** The larger of the two spellings; 0 when the client named no limit. */
export function outputLimit(body: Json): number {
  let limit = 0;
  for (const field of LIMIT_FIELDS) {
    const value = body[field];
    if (typeof value === "number" && value > limit) limit = value;
  }
  return limit;
}
