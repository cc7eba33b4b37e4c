// Writes canonical events as an Anthropic Messages stream: one message_start, blocks with gapless indexes,
// message_delta with usage, message_stop. Refuses a clean end after a failure: the error event is the last.
import type { Usage } from "../../shared/usage.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { FinishEvent, NoteEvent, OpaqueEvent, OpenEvent, StartEvent } from "../events.ts";
import { asObject } from "../json.ts";
import { KEEP_ALIVE } from "../keep-alive.ts";
import { packSignature } from "../signatures.ts";
import { errorEnvelope } from "./failure.ts";
import { encodeUsage } from "./usage.ts";
import { finishToWire } from "./wire.ts";

interface OpenBlock {
  event: OpenEvent;
  /** Place on the wire; -1 until the block's start is written. */
  index: number;
  /** Signatures are sent in one piece, at the end of their block. */
  signature: string;
  redacted: boolean;
}

/** Clients show how full the context is from the first event on; the last one brings the upstream's own numbers. */
function estimated(promptTokens: number): Usage {
  const usage = emptyUsage();
  usage.input.fresh = promptTokens;
  return usage;
}

/** What the stream has written so far; everything below reads and moves it. */
interface Writing {
  readonly context: AnswerContext;
  nextIndex: number;
  block: OpenBlock | null;
  usage: Usage;
}

export function encodeStream(context: AnswerContext): StreamEncoder {
  const to: Writing = { context, nextIndex: 0, block: null, usage: emptyUsage() };
  return {
    push(event) {
      switch (event.type) {
        case "start":
          return writeStart(context, event);
        case "open":
          to.block = { event, index: -1, signature: "", redacted: false };
          // A call waits for a signature that may have to stand before it; thinking may turn out redacted.
          return event.kind === "text" || event.kind === "refusal" ? beginBlock(to) : "";
        case "text":
          return writeText(to, event.delta);
        case "json": {
          const begun = beginBlock(to);
          return isOpen(to.block)
            ? begun + textDelta(to, "input_json_delta", "partial_json", event.delta)
            : begun;
        }
        case "note":
          return writeNote(to, event);
        case "close":
          return closeBlock(to);
        case "opaque":
          return writeOpaque(to, event);
        case "usage":
          to.usage = event.usage;
          return "";
        case "finish":
          return writeFinish(event, to.usage);
        case "fail": {
          const text = context.failureText?.(event.failure) ?? event.failure.text ?? event.failure.code;
          return `event: error\ndata: ${JSON.stringify(errorEnvelope(event.failure, text))}\n\n`;
        }
        case "ping":
          return KEEP_ALIVE.anthropic.between;
        case "bytes":
          return "";
      }
    },
  };
}

function frame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function deltaFrame(to: Writing, delta: JsonObject): string {
  return frame("content_block_delta", { index: to.block?.index ?? 0, delta });
}

/** The same for a delta of one text, which streams are made of: only the text is escaped. */
function textDelta(to: Writing, type: string, field: string, text: string): string {
  return (
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":${to.block?.index ?? 0},` +
    `"delta":{"type":"${type}","${field}":${JSON.stringify(text)}}}\n\n`
  );
}

function isOpen(block: OpenBlock | null): block is OpenBlock {
  return block !== null && block.index !== -1;
}

function writeStart(context: AnswerContext, event: StartEvent): string {
  const id = event.id?.startsWith("msg_") ? event.id : context.newId("msg_");
  const message = {
    id,
    type: "message",
    role: "assistant",
    model: context.model ?? event.model ?? "",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: encodeUsage(event.usage ?? estimated(context.promptTokens ?? 0)),
  };
  return frame("message_start", { message });
}

function beginWith(to: Writing, content: JsonObject): string {
  if (to.block) to.block.index = to.nextIndex;
  return frame("content_block_start", { index: to.nextIndex++, content_block: content });
}

/** Writes the block's start when its first content (or its end) shows what it is. */
function beginBlock(to: Writing): string {
  const { block, context } = to;
  if (!block || block.index !== -1) return "";
  const { kind, callId, name } = block.event;
  switch (kind) {
    case "text":
    case "refusal":
      return beginWith(to, { type: "text", text: "" });
    case "thinking":
      return beginWith(to, { type: "thinking", thinking: "", signature: "" });
    case "tool-call": {
      const id = callId ?? context.newId("toolu_");
      return beginWith(to, { type: "tool_use", id, name: name ?? "", input: {} });
    }
    default:
      // Pictures, sounds and foreign hosted tools have no block in this protocol.
      return "";
  }
}

function writeText(to: Writing, delta: string): string {
  const begun = beginBlock(to);
  return (
    begun +
    (to.block?.event.kind === "thinking"
      ? textDelta(to, "thinking_delta", "thinking", delta)
      : textDelta(to, "text_delta", "text", delta))
  );
}

function writeNote(to: Writing, event: NoteEvent): string {
  const { block } = to;
  if (!block) return "";
  const { kind } = block.event;
  if (event.note === "citation" && kind === "text") {
    const citation = citationFor("anthropic", event);
    return citation === undefined
      ? ""
      : beginBlock(to) + deltaFrame(to, { type: "citations_delta", citation });
  }
  if (event.note !== "signature" && event.note !== "redacted") return "";
  const proof = () => packSignature({ dialect: event.dialect, value: String(event.value) }, "anthropic");
  if (kind === "thinking") return writeThinkingProof(to, block, event.note, proof());
  return event.note === "signature" && kind === "tool-call" && block.index === -1
    ? writeCallProof(to, proof())
    : "";
}

function writeThinkingProof(
  to: Writing,
  block: OpenBlock,
  note: "signature" | "redacted",
  proof: string,
): string {
  if (note === "signature") {
    block.signature += proof;
    return "";
  }
  if (block.index !== -1) {
    // The block already shows text: the proof can only follow as its signature.
    block.signature = proof;
    return "";
  }
  block.redacted = true;
  return beginWith(to, { type: "redacted_thinking", data: proof });
}

/** tool_use has no field for it: an empty thinking block in front carries it. */
function writeCallProof(to: Writing, signature: string): string {
  const index = to.nextIndex++;
  const content_block = { type: "thinking", thinking: "", signature: "" };
  return (
    frame("content_block_start", { index, content_block }) +
    frame("content_block_delta", { index, delta: { type: "signature_delta", signature } }) +
    frame("content_block_stop", { index })
  );
}

function writeOpaque(to: Writing, event: OpaqueEvent): string {
  const value = asObject(event.value);
  if (event.dialect !== "anthropic" || !value) return "";
  if (event.at === undefined) return frame(String(value["type"]), value);
  if (to.block?.event.kind === "hosted-tool" && to.block.index === -1) return beginWith(to, value);
  const begun = beginBlock(to);
  return isOpen(to.block) ? begun + deltaFrame(to, value) : begun;
}

function closeBlock(to: Writing): string {
  const begun = beginBlock(to);
  const { block } = to;
  if (!isOpen(block)) {
    to.block = null;
    return begun;
  }
  const { index, signature, redacted } = block;
  const signed = signature && !redacted ? deltaFrame(to, { type: "signature_delta", signature }) : "";
  to.block = null;
  return begun + signed + frame("content_block_stop", { index });
}

function writeFinish(event: FinishEvent, usage: Usage): string {
  const delta = { stop_reason: finishToWire(event.reason), stop_sequence: event.stopSequence ?? null };
  return frame("message_delta", { delta, usage: encodeUsage(usage) }) + frame("message_stop", {});
}
