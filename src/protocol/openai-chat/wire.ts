// Wire shapes of OpenAI chat completions, read loosely: every field may be missing or of another type.
// Names follow the provider's documentation.
import type { FinishReason } from "../events.ts";

export interface WireToolDelta {
  index?: number;
  id?: string | null;
  type?: string;
  function?: { name?: string | null; arguments?: unknown } | null;
  custom?: { name?: string | null; input?: unknown } | null;
  /** Google's OpenAI-compatible form carries the proof of a call here. */
  extra_content?: { google?: { thought_signature?: string } } | null;
}

interface WireAudio {
  id?: string;
  data?: string;
  transcript?: string;
  expires_at?: number;
}

/** Reasoning as OpenRouter and its followers spell it out; carries signatures back and forth. */
interface WireReasoningDetail {
  type?: string;
  text?: string;
  data?: string;
  signature?: string | null;
  index?: number;
}

export interface WireDelta {
  role?: string;
  content?: unknown;
  refusal?: string | null;
  reasoning_content?: string | null;
  reasoning?: unknown;
  reasoning_details?: WireReasoningDetail[] | null;
  tool_calls?: WireToolDelta[] | null;
  function_call?: { name?: string; arguments?: unknown } | null;
  audio?: WireAudio | null;
  annotations?: unknown[] | null;
  images?: { type?: string; image_url?: { url?: string } }[] | null;
}

export interface WireChoice {
  index?: number;
  delta?: WireDelta | null;
  message?: WireDelta | null;
  logprobs?: unknown;
  finish_reason?: string | null;
}

export interface WireChunk {
  id?: string;
  object?: string;
  created?: number;
  model?: string;
  choices?: WireChoice[] | null;
  usage?: unknown;
  error?: unknown;
}

/** Top-level answer fields with a canonical place; the others go to `start.extra`. */
export const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "error",
]);

/** Request fields with a canonical place; all others are extras. */
export const REQUEST_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "top_k",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
  "n",
  "logprobs",
  "top_logprobs",
  "parallel_tool_calls",
  "user",
  "metadata",
  "service_tier",
  "verbosity",
  "modalities",
  "audio",
  "tools",
  "tool_choice",
  "response_format",
  "reasoning_effort",
  "web_search_options",
]);

/** Extras that change what is asked for: refused by name towards another dialect. */
export const MUST_CARRY: readonly string[] = ["functions", "function_call"];

/** Canonical reasons from the wire's finish_reason. */
export function finishFromWire(raw: string | null | undefined): FinishReason {
  switch (raw) {
    case "stop":
    case "eos":
    case "end_turn":
      return "stop";
    case "length":
    case "max_tokens":
      return "length";
    case "tool_calls":
    case "function_call":
    case "tool_use":
      return "tool-calls";
    case "content_filter":
      return "content-filter";
    default:
      return "other";
  }
}

/** The wire's finish_reason for a canonical reason; unknown reasons end as "stop", which every client knows. */
export function finishToWire(reason: FinishReason): string {
  switch (reason) {
    case "length":
      return "length";
    case "tool-calls":
      return "tool_calls";
    case "content-filter":
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}
