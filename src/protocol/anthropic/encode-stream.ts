// Writes canonical events as an Anthropic Messages stream: one message_start, blocks with gapless indexes,
// message_delta with usage, message_stop. Refuses a clean end after a failure: the error event is the last.
import type { Usage } from "../../shared/usage.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { CanonicalEvent, FinishEvent, NoteEvent, OpenEvent } from "../events.ts";
import { asObject } from "../json.ts";
import { packSignature } from "../signatures.ts";
import { errorEnvelope } from "./failure.ts";
import { encodeUsage } from "./usage.ts";
import { finishToWire } from "./wire.ts";

interface OpenBlock {
  event: OpenEvent;
  /** Place on the wire; -1 until the block's start is written. */
  index: number;
  /** Signatures are sent whole, at the end of their block. */
  signature: string;
  redacted: boolean;
}

/** Clients show how full the context is from the first event on; the last one brings the upstream's own numbers. */
function estimated(promptTokens: number): Usage {
  const usage = emptyUsage();
  usage.input.fresh = promptTokens;
  return usage;
}

export function encodeStream(context: AnswerContext): StreamEncoder {
  let nextIndex = 0;
  let block: OpenBlock | null = null;
  let usage: Usage = emptyUsage();

  const frame = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const startWith = (content: JsonObject): string => {
    if (block) block.index = nextIndex;
    return frame("content_block_start", { index: nextIndex++, content_block: content });
  };
  const delta = (fields: JsonObject): string =>
    frame("content_block_delta", { index: block?.index ?? 0, delta: fields });
  /** The same for a delta of one text, which streams are made of: only the text is escaped. */
  const quick = (type: string, field: string, text: string): string =>
    `event: content_block_delta\ndata: {"type":"content_block_delta","index":${block?.index ?? 0},` +
    `"delta":{"type":"${type}","${field}":${JSON.stringify(text)}}}\n\n`;

  /** Writes the block's start when its first content (or its end) shows what it is. */
  const ensure = (): string => {
    if (!block || block.index !== -1) return "";
    const { kind, callId, name } = block.event;
    switch (kind) {
      case "text":
      case "refusal":
        return startWith({ type: "text", text: "" });
      case "thinking":
        return startWith({ type: "thinking", thinking: "", signature: "" });
      case "tool-call":
        return startWith({
          type: "tool_use",
          id: callId ?? context.newId("toolu_"),
          name: name ?? "",
          input: {},
        });
      default:
        // Pictures, sounds and foreign hosted tools have no block in this protocol.
        return "";
    }
  };

  const note = (event: NoteEvent): string => {
    if (!block) return "";
    const kind = block.event.kind;
    if (event.note === "redacted" && kind === "thinking") {
      const data = packSignature({ dialect: event.dialect, value: String(event.value) }, "anthropic");
      if (block.index !== -1) {
        // The block already shows text: the proof can only follow as its signature.
        block.signature = data;
        return "";
      }
      block.redacted = true;
      return startWith({ type: "redacted_thinking", data });
    }
    if (event.note === "signature" && kind === "thinking") {
      block.signature += packSignature({ dialect: event.dialect, value: String(event.value) }, "anthropic");
      return "";
    }
    if (event.note === "signature" && kind === "tool-call" && block.index === -1) {
      // tool_use has no field for it: an empty thinking block in front carries it.
      const signature = packSignature({ dialect: event.dialect, value: String(event.value) }, "anthropic");
      const index = nextIndex++;
      return (
        frame("content_block_start", {
          index,
          content_block: { type: "thinking", thinking: "", signature: "" },
        }) +
        frame("content_block_delta", { index, delta: { type: "signature_delta", signature } }) +
        frame("content_block_stop", { index })
      );
    }
    if (event.note === "citation" && kind === "text") {
      const citation = citationFor("anthropic", event);
      return citation === undefined ? "" : ensure() + delta({ type: "citations_delta", citation });
    }
    return "";
  };

  const close = (): string => {
    const start = ensure();
    if (!block || block.index === -1) return start;
    const { index, signature } = block;
    const signed = signature && !block.redacted ? delta({ type: "signature_delta", signature }) : "";
    return start + signed + frame("content_block_stop", { index });
  };

  const finish = (event: FinishEvent): string => {
    const stop_reason = finishToWire(event.reason);
    return (
      frame("message_delta", {
        delta: { stop_reason, stop_sequence: event.stopSequence ?? null },
        usage: encodeUsage(usage),
      }) + frame("message_stop", {})
    );
  };

  const opaque = (event: Extract<CanonicalEvent, { type: "opaque" }>): string => {
    const value = asObject(event.value);
    if (event.dialect !== "anthropic" || !value) return "";
    if (event.at === undefined) return frame(String(value["type"]), value);
    if (block?.event.kind === "hosted-tool" && block.index === -1) return startWith(value);
    return ensure() + (block && block.index !== -1 ? delta(value) : "");
  };

  return {
    push(event) {
      switch (event.type) {
        case "start": {
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
        case "open":
          block = { event, index: -1, signature: "", redacted: false };
          // A call waits for a signature that may have to stand before it; thinking may turn out redacted.
          return event.kind === "text" || event.kind === "refusal" ? ensure() : "";
        case "text":
          return (
            ensure() +
            (block?.event.kind === "thinking"
              ? quick("thinking_delta", "thinking", event.delta)
              : quick("text_delta", "text", event.delta))
          );
        case "json": {
          const start = ensure();
          return block && block.index !== -1
            ? start + quick("input_json_delta", "partial_json", event.delta)
            : start;
        }
        case "note":
          return note(event);
        case "close": {
          const wire = close();
          block = null;
          return wire;
        }
        case "opaque":
          return opaque(event);
        case "usage":
          usage = event.usage;
          return "";
        case "finish":
          return finish(event);
        case "fail": {
          const text = context.failureText?.(event.failure) ?? event.failure.text ?? event.failure.code;
          return `event: error\ndata: ${JSON.stringify(errorEnvelope(event.failure, text))}\n\n`;
        }
        case "ping":
          return frame("ping", {});
        case "bytes":
          return "";
      }
    },
  };
}
