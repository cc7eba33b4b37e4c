// Writes canonical events as Gemini chunks, as server-sent events or as the JSON array of a stream without alt=sse.
// Refuses a clean end after a failure: the error object is the last thing the client sees.
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { newBlock } from "../assemble.ts";
import type { AnswerBlock } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { CanonicalEvent, FinishEvent, NoteEvent } from "../events.ts";
import { joinBase64 } from "../json.ts";
import { packSignature } from "../signatures.ts";
import { encodePart, grounding } from "./answer.ts";
import { errorEnvelope } from "./failure.ts";
import { encodeUsage } from "./usage.ts";
import { finishToWire } from "./wire.ts";

export function encodeStream(context: AnswerContext): StreamEncoder {
  const inArray = context.framing === "json-array";
  let first = true;
  let head: JsonObject = {};
  /** The end of every chunk, written once. */
  let tail = "}";
  let block: AnswerBlock = newBlock("text");
  let pieces: string[] = [];
  const sources: AnswerBlock[] = [];
  let usage: Usage = emptyUsage();

  const frame = (value: object): string => framed(JSON.stringify(value));
  const framed = (text: string): string => {
    if (!inArray) return `data: ${text}\r\n\r\n`;
    const lead = first ? "[" : ",\r\n";
    first = false;
    return lead + text;
  };
  const chunk = (parts: JsonObject[]): string =>
    frame({ candidates: [{ content: { role: "model", parts }, index: block.choice ?? 0 }], ...head });

  const note = (event: NoteEvent): string => {
    const { note: kind, dialect, value } = event;
    block.notes.push({ note: kind, dialect, value });
    if (kind !== "signature" && kind !== "redacted") return "";
    // Text is already on its way, so its proof follows in an empty part; other blocks are sent whole.
    const thoughtSignature = packSignature({ dialect, value: String(value) }, "gemini", kind === "redacted");
    if (block.kind === "thinking") return chunk([{ text: "", thought: true, thoughtSignature }]);
    return block.kind === "text" ? chunk([{ text: "", thoughtSignature }]) : "";
  };

  const close = (): string => {
    if (block.notes.some((item) => item.note === "citation")) sources.push(block);
    if (block.kind === "text" || block.kind === "thinking" || block.kind === "refusal") return "";
    block.text = pieces.join("");
    const part = encodePart(block);
    return part ? chunk([part]) : "";
  };

  const finish = (event: FinishEvent): string => {
    const metadata = grounding(sources);
    const all = [{ choice: 0, reason: event.reason }, ...(event.others ?? [])];
    const candidates = all.map(({ choice, reason }) => ({
      content: { role: "model", parts: [{ text: "" }] },
      finishReason: finishToWire(reason),
      index: choice,
      ...(choice === 0 && metadata ? { groundingMetadata: metadata } : {}),
    }));
    const wire = frame({ candidates, usageMetadata: encodeUsage(usage), ...head });
    return inArray ? `${wire}]` : wire;
  };

  return {
    push(event: CanonicalEvent) {
      switch (event.type) {
        case "start":
          head = {
            modelVersion: context.model ?? event.model ?? "",
            responseId: event.id ?? context.newId("resp_"),
          };
          tail = `,${JSON.stringify(head).slice(1)}`;
          return "";
        case "open": {
          const { kind, callId, name, choice } = event;
          block = newBlock(kind, { callId, name, choice });
          pieces = [];
          return "";
        }
        case "text": {
          // What streams are made of: only the text is escaped.
          const thought = block.kind === "thinking" ? ',"thought":true' : "";
          const part = `{"text":${JSON.stringify(event.delta)}${thought}}`;
          const content = `{"role":"model","parts":[${part}]}`;
          return framed(`{"candidates":[{"content":${content},"index":${block.choice ?? 0}}]${tail}`);
        }
        case "json":
          pieces.push(event.delta);
          return "";
        case "bytes": {
          block.data = joinBase64(block.data === undefined ? [event.data] : [block.data, event.data]);
          if (event.mime !== undefined) block.mime = event.mime;
          return "";
        }
        case "note":
          return note(event);
        case "opaque":
          if (event.at !== undefined) block.opaque.push({ dialect: event.dialect, value: event.value });
          return "";
        case "close":
          return close();
        case "usage":
          usage = event.usage;
          return "";
        case "finish":
          return finish(event);
        case "fail": {
          const text = context.failureText?.(event.failure) ?? event.failure.text ?? event.failure.code;
          const wire = frame(errorEnvelope(event.failure, text));
          return inArray ? `${wire}]` : wire;
        }
        case "ping":
          // Google's own clients take comments for broken JSON.
          return "";
      }
    },
  };
}
