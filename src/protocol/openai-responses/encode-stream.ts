// Writes canonical events as a Responses stream with its full life cycle and sequence numbers: created, in_progress,
// items and parts added, deltas, done, completed. Refuses a clean end after a failure: response.failed is the last.
import type { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { newBlock } from "../assemble.ts";
import type { AnswerBlock } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { CanonicalEvent, FinishEvent, NoteEvent, OpenEvent, StartEvent } from "../events.ts";
import { asList, asObject, joinBase64 } from "../json.ts";
import { KEEP_ALIVE } from "../keep-alive.ts";
import { errorFields } from "./failure.ts";
import { carrierOf, hasReasoning } from "./references.ts";
import { carrierItem, contentPart, encodeItem, encodeResponse, isCut } from "./items.ts";
import type { ResponseHead } from "./items.ts";

const ID_PREFIX: Partial<Record<AnswerBlock["kind"], string>> = {
  thinking: "rs_",
  "tool-call": "fc_",
  image: "ig_",
};

/** The message item under way; neighbouring text and refusal blocks are its parts. */
interface MessageItem {
  id: string;
  index: number;
  parts: JsonObject[];
}

/** What the stream has written so far; everything below reads and moves it. */
interface Writing {
  readonly context: AnswerContext;
  sequence: number;
  head: ResponseHead;
  readonly output: JsonObject[];
  message: MessageItem | null;
  block: AnswerBlock;
  pieces: string[];
  itemId: string;
  /** Whether the open block's item (or part) was announced. */
  announced: boolean;
  annotations: number;
  usage: Usage;
}

export function encodeStream(context: AnswerContext): StreamEncoder {
  const to: Writing = {
    context,
    sequence: 0,
    head: { id: "", model: "", createdAt: context.nowSeconds },
    output: [],
    message: null,
    block: newBlock("text"),
    pieces: [],
    itemId: "",
    announced: false,
    annotations: 0,
    usage: emptyUsage(),
  };
  return {
    push(event: CanonicalEvent) {
      switch (event.type) {
        case "start":
          return writeStart(to, event);
        case "open":
          return openBlock(to, event);
        case "text":
          return writeText(to, event.delta);
        case "json":
          return writeJson(to, event.delta);
        case "bytes":
          takeBytes(to.block, event.data, event.mime);
          return "";
        case "note":
          return writeNote(to, event);
        case "opaque":
          if (event.at !== undefined && asObject(event.value)) {
            to.block.opaque.push({ dialect: event.dialect, value: event.value });
          }
          return "";
        case "close":
          return closeBlock(to);
        case "usage":
          to.usage = event.usage;
          return "";
        case "finish":
          return writeFinish(to, event);
        case "fail":
          return writeFailure(to, event.failure);
        case "ping":
          return KEEP_ALIVE["openai-responses"][to.head.id === "" ? "before" : "between"];
      }
    },
  };
}

function frame(to: Writing, type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: to.sequence++, ...fields })}\n\n`;
}

/** A delta's frame, which streams are made of: only its text is escaped. `members` follow the item's id, written out. */
function deltaFrame(to: Writing, type: string, itemId: string, members: string): string {
  return (
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${to.sequence++},` +
    `"item_id":${JSON.stringify(itemId)},${members}}\n\n`
  );
}

function inPart({ message }: Writing): JsonObject {
  return {
    item_id: message?.id ?? "",
    output_index: message?.index ?? 0,
    content_index: message?.parts.length ?? 0,
  };
}

function inItem(to: Writing): JsonObject {
  return { item_id: to.itemId, output_index: to.output.length };
}

function writeStart(to: Writing, event: StartEvent): string {
  const { context } = to;
  const id = event.id?.startsWith("resp_") ? event.id : context.newId("resp_");
  to.head = {
    id,
    model: context.model ?? event.model ?? "",
    createdAt: event.createdAt ?? context.nowSeconds,
  };
  const response = encodeResponse(to.head, [], context);
  return frame(to, "response.created", { response }) + frame(to, "response.in_progress", { response });
}

function openBlock(to: Writing, { kind, callId, name, custom, namespace, form }: OpenEvent): string {
  to.block = newBlock(kind, { callId, name, custom, namespace, form });
  to.pieces = [];
  to.announced = false;
  to.annotations = 0;
  // A call waits for a signature that would have to stand before it.
  return kind === "tool-call" ? "" : announce(to);
}

/** The open block's item, or part of the message, once: with its first content or its end. */
function announce(to: Writing): string {
  if (to.announced) return "";
  to.announced = true;
  const { block, context, output } = to;
  if (block.kind === "text" || block.kind === "refusal") return openPart(to);
  if (block.kind === "audio" || block.kind === "hosted-tool") return "";
  let wire = endMessage(to);
  // The proof of a call has no field of its own: a reasoning item in front carries it.
  const carrier = carrierItem(block, context.newId);
  if (carrier) wire += writeItem(to, carrier);
  const own = block.kind === "thinking" && block.callId?.startsWith("rs_") ? block.callId : undefined;
  to.itemId = own ?? context.newId(ID_PREFIX[block.kind] ?? "item_");
  if (block.kind === "thinking") {
    const item = { id: to.itemId, type: "reasoning", summary: [] };
    return wire + frame(to, "response.output_item.added", { output_index: output.length, item });
  }
  const begun = encodeItem({ ...block, text: "", data: undefined }, to.itemId);
  const item: JsonObject = { ...begun, status: "in_progress" };
  if (item["type"] === "function_call") item["arguments"] = "";
  return wire + frame(to, "response.output_item.added", { output_index: output.length, item });
}

function openPart(to: Writing): string {
  let wire = "";
  if (!to.message) {
    to.message = { id: to.context.newId("msg_"), index: to.output.length, parts: [] };
    const item = messageItem(to.message.id, [], "in_progress");
    wire = frame(to, "response.output_item.added", { output_index: to.message.index, item });
  }
  const part = contentPart(newBlock(to.block.kind));
  return wire + frame(to, "response.content_part.added", { ...inPart(to), part });
}

function endMessage(to: Writing): string {
  const { message } = to;
  if (!message) return "";
  const item = messageItem(message.id, message.parts, "completed");
  to.output.push(item);
  to.message = null;
  return frame(to, "response.output_item.done", { output_index: message.index, item });
}

/** An item that is complete from the first. */
function writeItem(to: Writing, item: JsonObject): string {
  const place = { output_index: to.output.length, item };
  to.output.push(item);
  return frame(to, "response.output_item.added", place) + frame(to, "response.output_item.done", place);
}

function endItem(to: Writing, item: JsonObject | null): string {
  if (!item) return "";
  const wire = frame(to, "response.output_item.done", { output_index: to.output.length, item });
  to.output.push(item);
  return wire;
}

function writeText(to: Writing, delta: string): string {
  let wire = announce(to);
  const { block, message, output, itemId } = to;
  const first = to.pieces.length === 0;
  to.pieces.push(delta);
  if (block.kind === "text" && message) {
    const place = `"output_index":${message.index},"content_index":${message.parts.length}`;
    const members = `${place},"delta":${JSON.stringify(delta)},"logprobs":[]`;
    return wire + deltaFrame(to, "response.output_text.delta", message.id, members);
  }
  if (block.kind === "refusal") return wire + frame(to, "response.refusal.delta", { ...inPart(to), delta });
  if (first) {
    const part = { type: "summary_text", text: "" };
    wire += frame(to, "response.reasoning_summary_part.added", { ...inItem(to), summary_index: 0, part });
  }
  const members = `"output_index":${output.length},"summary_index":0,"delta":${JSON.stringify(delta)}`;
  return wire + deltaFrame(to, "response.reasoning_summary_text.delta", itemId, members);
}

function writeJson(to: Writing, delta: string): string {
  const wire = announce(to);
  to.pieces.push(delta);
  // Items of other forms have no deltas: they are there when they are whole.
  if (to.block.kind !== "tool-call" || to.block.form !== undefined) return wire;
  const type = to.block.custom
    ? "response.custom_tool_call_input.delta"
    : "response.function_call_arguments.delta";
  const members = `"output_index":${to.output.length},"delta":${JSON.stringify(delta)}`;
  return wire + deltaFrame(to, type, to.itemId, members);
}

function takeBytes(block: AnswerBlock, data: string, mime: string | undefined): void {
  block.data = joinBase64(block.data === undefined ? [data] : [block.data, data]);
  if (mime !== undefined) block.mime = mime;
}

/** Citations are written as they come; other notes wait for the end of their block. */
function writeNote(to: Writing, event: NoteEvent): string {
  const { note, dialect, value } = event;
  if (note !== "citation" || to.block.kind !== "text") {
    to.block.notes.push({ note, dialect, value });
    return "";
  }
  const annotation = citationFor("openai-responses", event);
  if (annotation === undefined) return "";
  const wire = announce(to);
  to.block.notes.push({ note, dialect, value });
  const annotation_index = to.annotations++;
  return (
    wire + frame(to, "response.output_text.annotation.added", { ...inPart(to), annotation_index, annotation })
  );
}

function closeBlock(to: Writing): string {
  let wire = announce(to);
  const { block } = to;
  // Clients parse the arguments, and nothing is no JSON.
  if (block.kind === "tool-call" && !block.custom && to.pieces.length === 0) wire += writeJson(to, "{}");
  block.text = to.pieces.join("");
  switch (block.kind) {
    case "text":
    case "refusal":
      return wire + closePart(to);
    case "thinking":
      return wire + closeThinking(to);
    case "tool-call":
      return wire + closeCall(to);
    case "image":
      return wire + endItem(to, encodeItem(block, to.itemId));
    case "hosted-tool": {
      const item = encodeItem(block, to.itemId);
      return item ? wire + endMessage(to) + writeItem(to, item) : wire;
    }
    case "audio":
      return wire;
  }
}

function closePart(to: Writing): string {
  const { block } = to;
  const part = contentPart(block);
  const done =
    block.kind === "text"
      ? frame(to, "response.output_text.done", {
          ...inPart(to),
          text: block.text,
          logprobs: asList(part["logprobs"]),
        })
      : frame(to, "response.refusal.done", { ...inPart(to), refusal: block.text });
  const wire = done + frame(to, "response.content_part.done", { ...inPart(to), part });
  to.message?.parts.push(part);
  return wire;
}

function closeThinking(to: Writing): string {
  const { text } = to.block;
  let wire = "";
  if (text !== "") {
    const place = { ...inItem(to), summary_index: 0 };
    const part = { type: "summary_text", text };
    wire += frame(to, "response.reasoning_summary_text.done", { ...place, text });
    wire += frame(to, "response.reasoning_summary_part.done", { ...place, part });
  }
  return wire + endItem(to, encodeItem(to.block, to.itemId));
}

function closeCall(to: Writing): string {
  const { block } = to;
  if (block.form !== undefined) return endItem(to, encodeItem(block, to.itemId));
  const field = block.custom ? "input" : "arguments";
  const type = block.custom
    ? "response.custom_tool_call_input.done"
    : "response.function_call_arguments.done";
  const item = encodeItem(block, to.itemId);
  const wire = frame(to, type, { ...inItem(to), name: block.name, [field]: item?.[field] });
  return wire + endItem(to, item);
}

/** What references to the items of this stream will need (references.ts). */
function writeCarrier(to: Writing): string {
  const { sealItems: seal, sealsAlways } = to.context;
  if (!seal || !(sealsAlways === true || hasReasoning(to.output))) return "";
  const carrier = carrierOf(to.output, seal);
  return carrier ? writeItem(to, carrier) : "";
}

function writeFinish(to: Writing, event: FinishEvent): string {
  const wire = endMessage(to) + writeCarrier(to);
  const response = encodeResponse(to.head, to.output, to.context, { reason: event.reason, usage: to.usage });
  return wire + frame(to, isCut(event.reason) ? "response.incomplete" : "response.completed", { response });
}

function writeFailure(to: Writing, failure: Failure): string {
  const words = to.context.failureText?.(failure) ?? failure.text ?? failure.code;
  const error = errorFields(failure, words);
  if (to.head.id === "") return frame(to, "error", { ...error, param: failure.param ?? null });
  const response = { ...encodeResponse(to.head, to.output, to.context), status: "failed", error };
  return frame(to, "response.failed", { response });
}

function messageItem(id: string, content: JsonObject[], status: string): JsonObject {
  return { id, type: "message", status, role: "assistant", content };
}
