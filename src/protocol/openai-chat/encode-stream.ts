// Writes canonical events as a chat completions stream: role chunk, deltas, finish, usage, [DONE].
// Refuses a clean end after a failure: an error object is the last thing the client sees.
import type { Usage } from "../../shared/usage.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { BlockKind, FinishEvent, FinishReason, NoteEvent, OpenEvent, StartEvent } from "../events.ts";
import { asObject, dataUrl } from "../json.ts";
import { KEEP_ALIVE } from "../keep-alive.ts";
import { sharedLogprobs } from "../logprobs.ts";
import { packSignature } from "../signatures.ts";
import { errorObject } from "./failure.ts";
import { encodeUsage } from "./usage.ts";
import { finishToWire } from "./wire.ts";

interface OpenBlock {
  kind: BlockKind;
  choice: number;
  /** Some arguments were sent. */
  filled: boolean;
  /** Position among the calls of its answer. */
  toolIndex: number;
  custom: boolean;
  callId: string | undefined;
}

/** What the stream has written so far; everything below reads and moves it. */
interface Writing {
  readonly context: AnswerContext;
  /** The frame up to its fields, written once: the head is the same in every chunk. */
  lead: string;
  block: OpenBlock;
  /** Tool calls by choice, and the choices that have had their role chunk. */
  readonly toolCounts: Map<number, number>;
  readonly greeted: Set<number>;
  usage: Usage | null;
}

export function encodeStream(context: AnswerContext): StreamEncoder {
  const to: Writing = {
    context,
    lead: "data: {",
    block: { kind: "text", choice: 0, toolIndex: 0, filled: false, custom: false, callId: undefined },
    toolCounts: new Map(),
    greeted: new Set(),
    usage: null,
  };
  return {
    push(event) {
      switch (event.type) {
        case "start":
          to.lead = leadOf(context, event);
          return greet(to, 0);
        case "open":
          return openBlock(to, event);
        case "text":
          return writeText(to, event.delta);
        case "json":
          return writeJson(to, event.delta);
        case "bytes":
          return writeBytes(to, event.data, event.mime);
        case "note":
          return writeNote(to, event);
        case "usage":
          to.usage = event.usage;
          return "";
        case "finish":
          return writeFinish(to, event);
        case "fail": {
          const { failure } = event;
          const message = context.failureText?.(failure) ?? failure.text ?? failure.code;
          return `data: ${JSON.stringify({ error: errorObject(failure, message) })}\n\n`;
        }
        case "ping":
          return KEEP_ALIVE["openai-chat"].between;
        case "close":
          // Clients parse the arguments, and nothing is no JSON.
          return to.block.kind === "tool-call" && !to.block.custom && !to.block.filled
            ? writeJson(to, "{}")
            : "";
        case "opaque":
          return "";
      }
    },
  };
}

function leadOf(context: AnswerContext, event: StartEvent): string {
  const head = {
    id: event.id ?? context.newId("chatcmpl-"),
    object: "chat.completion.chunk",
    created: event.createdAt ?? context.nowSeconds,
    model: context.model ?? event.model ?? "",
    ...asObject(event.extra),
  };
  return `data: ${JSON.stringify(head).slice(0, -1)},`;
}

function frame(to: Writing, fields: object): string {
  return `${to.lead}${JSON.stringify(fields).slice(1)}\n\n`;
}

/** The role chunk that every answer begins with. */
function greet(to: Writing, choice: number): string {
  if (to.greeted.has(choice)) return "";
  to.greeted.add(choice);
  const delta = { role: "assistant", content: "" };
  return frame(to, { choices: [{ index: choice, delta, logprobs: null, finish_reason: null }] });
}

function chunk(to: Writing, choice: number, delta: object): string {
  const piece = { index: choice, delta, logprobs: null, finish_reason: null };
  return greet(to, choice) + frame(to, { choices: [piece] });
}

function logprobsChunk(to: Writing, choice: number, logprobs: unknown): string {
  const piece = { index: choice, delta: {}, logprobs, finish_reason: null };
  return greet(to, choice) + frame(to, { choices: [piece] });
}

function lastChunk(to: Writing, choice: number, reason: FinishReason): string {
  const piece = { index: choice, delta: {}, logprobs: null, finish_reason: finishToWire(reason) };
  return greet(to, choice) + frame(to, { choices: [piece] });
}

function openBlock(to: Writing, event: OpenEvent): string {
  const { kind, callId: id, name } = event;
  const choice = event.choice ?? 0;
  const toolIndex = to.toolCounts.get(choice) ?? 0;
  const custom = event.custom === true;
  to.block = { kind, choice, toolIndex, filled: false, custom, callId: id };
  if (kind !== "tool-call") return greet(to, choice);
  to.toolCounts.set(choice, toolIndex + 1);
  const call = custom
    ? { index: toolIndex, id, type: "custom", custom: { name, input: "" } }
    : { index: toolIndex, id, type: "function", function: { name, arguments: "" } };
  return chunk(to, choice, { tool_calls: [call] });
}

/** Streams are made of these: only the text is escaped. */
function writeText(to: Writing, delta: string): string {
  const { kind, choice } = to.block;
  const field = kind === "thinking" ? "reasoning_content" : kind === "refusal" ? "refusal" : "content";
  return (
    greet(to, choice) +
    `${to.lead}"choices":[{"index":${choice},"delta":{"${field}":${JSON.stringify(delta)}},` +
    `"logprobs":null,"finish_reason":null}]}\n\n`
  );
}

function writeJson(to: Writing, delta: string): string {
  const { block } = to;
  if (block.kind !== "tool-call") return "";
  block.filled = true;
  const index = block.toolIndex;
  const call = block.custom ? { index, custom: { input: delta } } : { index, function: { arguments: delta } };
  return chunk(to, block.choice, { tool_calls: [call] });
}

function writeBytes(to: Writing, data: string, mime: string | undefined): string {
  const { kind, choice, callId: id } = to.block;
  if (kind === "audio") return chunk(to, choice, { audio: { id, data } });
  const url = dataUrl(mime ?? "image/png", data);
  return chunk(to, choice, { images: [{ type: "image_url", image_url: { url } }] });
}

function writeNote(to: Writing, event: NoteEvent): string {
  const { choice, callId: id } = to.block;
  switch (event.note) {
    case "signature":
      return writeSignature(to, event);
    case "redacted": {
      const data = packSignature({ dialect: event.dialect, value: String(event.value) }, "openai-chat");
      return chunk(to, choice, { reasoning_details: [{ type: "reasoning.encrypted", data, index: 0 }] });
    }
    case "citation": {
      const value = citationFor("openai-chat", event);
      return value === undefined ? "" : chunk(to, choice, { annotations: [value] });
    }
    case "logprobs": {
      if (event.dialect === "openai-chat") return logprobsChunk(to, choice, event.value);
      if (event.dialect !== "openai-responses") return "";
      return logprobsChunk(to, choice, { content: sharedLogprobs(event.value), refusal: null });
    }
    case "transcript":
      return chunk(to, choice, { audio: { id, transcript: event.value } });
  }
}

function writeSignature(to: Writing, { dialect, value }: NoteEvent): string {
  const { kind, choice, custom, toolIndex: index } = to.block;
  if (kind !== "tool-call" && kind !== "thinking") return "";
  const signature = packSignature({ dialect, value: String(value) }, "openai-chat");
  if (kind === "thinking")
    return chunk(to, choice, { reasoning_details: [{ type: "reasoning.text", signature, index: 0 }] });
  // Clients that check chunks against a schema want the function's object in every delta of a call.
  const piece = custom ? { custom: { input: "" } } : { function: { arguments: "" } };
  const proof = { extra_content: { google: { thought_signature: signature } } };
  return chunk(to, choice, { tool_calls: [{ index, ...piece, ...proof }] });
}

function writeFinish(to: Writing, event: FinishEvent): string {
  const { context, usage } = to;
  let wire = lastChunk(to, 0, event.reason);
  for (const other of event.others ?? []) wire += lastChunk(to, other.choice, other.reason);
  if (context.includeUsage !== false && usage) wire += frame(to, { choices: [], usage: encodeUsage(usage) });
  return `${wire}data: [DONE]\n\n`;
}
