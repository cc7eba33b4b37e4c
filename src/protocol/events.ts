// The canonical event form: what every answer, streamed or whole, becomes between two dialects.
// validate-events.ts states the invariants that every decoder keeps.
import type { Failure } from "../shared/failures.ts";
import type { Usage } from "../shared/usage.ts";
import type { DialectName, JsonObject } from "./canonical.ts";

export type BlockKind = "text" | "thinking" | "tool-call" | "refusal" | "image" | "audio" | "hosted-tool";

export type FinishReason =
  "stop" | "stop-sequence" | "length" | "tool-calls" | "content-filter" | "refusal" | "pause" | "other";

/**
 * Side information of the open block. `signature`: value is the provider's proof text. `redacted`: value is the
 * encrypted thinking text. `citation`, `logprobs`: value in the wire form of `dialect`. `transcript`: spoken text.
 */
export type NoteKind = "signature" | "redacted" | "citation" | "logprobs" | "transcript";

export interface StartEvent {
  type: "start";
  id?: string;
  model?: string;
  /** Unix seconds. */
  createdAt?: number;
  /** What the upstream says about usage at the beginning (Anthropic): provisional. */
  usage?: Usage;
  /** Envelope fields of chat completions without a place of their own, which is also the only dialect that writes them. */
  extra?: JsonObject;
}
export interface OpenEvent {
  type: "open";
  at: number;
  kind: BlockKind;
  callId?: string;
  name?: string;
  /** Free-text tool call (OpenAI custom tools). */
  custom?: boolean;
  /** Responses: the namespace of the called tool, and the type of a tool whose calls are items of their own. */
  namespace?: string;
  form?: string;
  /** Which of several answers (n > 1) the block belongs to; absent means the first. */
  choice?: number;
}
interface TextEvent {
  type: "text";
  at: number;
  delta: string;
}
interface JsonEvent {
  type: "json";
  at: number;
  delta: string;
}
interface BytesEvent {
  type: "bytes";
  at: number;
  /** Base64. */
  data: string;
  mime?: string;
}
export interface NoteEvent {
  type: "note";
  at: number;
  note: NoteKind;
  dialect: DialectName;
  value: unknown;
}
interface CloseEvent {
  type: "close";
  at: number;
}
export interface UsageEvent {
  type: "usage";
  /** Final numbers; `raw` is absent when the upstream reported none. */
  usage: Usage;
  /** The upstream ended in order, but only ever said what it knew at the beginning. */
  isProvisional?: boolean;
}
export interface FinishEvent {
  type: "finish";
  reason: FinishReason;
  /** The upstream's own word. */
  raw: string | null;
  stopSequence?: string;
  /** Reasons of the further answers when n > 1. */
  others?: { choice: number; reason: FinishReason; raw: string | null }[];
}
interface FailEvent {
  type: "fail";
  failure: Failure;
}
interface PingEvent {
  type: "ping";
}
/** Wire value only its own dialect understands; `at` ties it to an open hosted-tool block. */
export interface OpaqueEvent {
  type: "opaque";
  dialect: DialectName;
  value: unknown;
  at?: number;
}

export type CanonicalEvent =
  | StartEvent
  | OpenEvent
  | TextEvent
  | JsonEvent
  | BytesEvent
  | NoteEvent
  | CloseEvent
  | UsageEvent
  | FinishEvent
  | FailEvent
  | PingEvent
  | OpaqueEvent;

/** The payload of a block: an event without its place. */
export type BlockPayload =
  | { type: "text"; delta: string }
  | { type: "json"; delta: string }
  | { type: "bytes"; data: string; mime?: string }
  | { type: "note"; note: NoteKind; dialect: DialectName; value: unknown }
  | { type: "opaque"; dialect: DialectName; value: unknown };
