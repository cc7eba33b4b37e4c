// Writes canonical events as a Responses stream with its full life cycle and sequence numbers: created, in_progress,
// items and parts added, deltas, done, completed. Refuses a clean end after a failure: response.failed is the last.
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { newBlock } from "../assemble.ts";
import type { AnswerBlock } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext, StreamEncoder } from "../dialect.ts";
import type { CanonicalEvent, FinishEvent, NoteEvent, OpenEvent } from "../events.ts";
import { asList, asObject, joinBase64 } from "../json.ts";
import { errorFields } from "./failure.ts";
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

export function encodeStream(context: AnswerContext): StreamEncoder {
  let sequence = 0;
  let head: ResponseHead = { id: "", model: "", createdAt: context.nowSeconds };
  const output: JsonObject[] = [];
  let message: MessageItem | null = null;
  let block: AnswerBlock = newBlock("text");
  let pieces: string[] = [];
  let itemId = "";
  /** Whether the open block's item (or part) was announced. */
  let announced = false;
  let annotations = 0;
  let usage: Usage = emptyUsage();

  const frame = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`;
  const inPart = (): JsonObject => ({
    item_id: message?.id ?? "",
    output_index: message?.index ?? 0,
    content_index: message?.parts.length ?? 0,
  });
  const inItem = (): JsonObject => ({ item_id: itemId, output_index: output.length });
  /** A delta's frame, which streams are made of: only its text is escaped. `place` and `more` are members, written out. */
  const quick = (type: string, item: string, place: string, delta: string, more = ""): string =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},"item_id":${JSON.stringify(item)},` +
    `${place},"delta":${JSON.stringify(delta)}${more}}\n\n`;

  const endMessage = (): string => {
    if (!message) return "";
    const item = messageItem(message.id, message.parts, "completed");
    output.push(item);
    const wire = frame("response.output_item.done", { output_index: message.index, item });
    message = null;
    return wire;
  };

  const openPart = (): string => {
    let wire = "";
    if (!message) {
      message = { id: context.newId("msg_"), index: output.length, parts: [] };
      const item = messageItem(message.id, [], "in_progress");
      wire = frame("response.output_item.added", { output_index: message.index, item });
    }
    return (
      wire + frame("response.content_part.added", { ...inPart(), part: contentPart(newBlock(block.kind)) })
    );
  };

  const announce = (): string => {
    if (announced) return "";
    announced = true;
    if (block.kind === "text" || block.kind === "refusal") return openPart();
    if (block.kind === "audio" || block.kind === "hosted-tool") return "";
    let wire = endMessage();
    // The proof of a call has no field of its own: a reasoning item in front carries it.
    const carrier = carrierItem(block, context.newId);
    if (carrier) wire += wholeItem(carrier);
    const own = block.kind === "thinking" && block.callId?.startsWith("rs_") ? block.callId : undefined;
    itemId = own ?? context.newId(ID_PREFIX[block.kind] ?? "item_");
    if (block.kind === "thinking") {
      const item = { id: itemId, type: "reasoning", summary: [] };
      return wire + frame("response.output_item.added", { output_index: output.length, item });
    }
    const item = { ...encodeItem({ ...block, text: "", data: undefined }, itemId), status: "in_progress" };
    if ("arguments" in item) item.arguments = "";
    return wire + frame("response.output_item.added", { output_index: output.length, item });
  };

  const wholeItem = (item: JsonObject): string => {
    const place = { output_index: output.length, item };
    output.push(item);
    return frame("response.output_item.added", place) + frame("response.output_item.done", place);
  };

  const text = (delta: string): string => {
    let wire = announce();
    const first = pieces.length === 0;
    pieces.push(delta);
    if (block.kind === "text" && message) {
      const place = `"output_index":${message.index},"content_index":${message.parts.length}`;
      return wire + quick("response.output_text.delta", message.id, place, delta, ',"logprobs":[]');
    }
    if (block.kind === "refusal") return wire + frame("response.refusal.delta", { ...inPart(), delta });
    const place = { ...inItem(), summary_index: 0 };
    if (first) {
      const part = { type: "summary_text", text: "" };
      wire += frame("response.reasoning_summary_part.added", { ...place, part });
    }
    const inSummary = `"output_index":${output.length},"summary_index":0`;
    return wire + quick("response.reasoning_summary_text.delta", itemId, inSummary, delta);
  };

  const json = (delta: string): string => {
    const wire = announce();
    pieces.push(delta);
    if (block.kind !== "tool-call") return wire;
    const type = block.custom
      ? "response.custom_tool_call_input.delta"
      : "response.function_call_arguments.delta";
    return wire + quick(type, itemId, `"output_index":${output.length}`, delta);
  };

  const note = (event: NoteEvent): string => {
    const { note: kind, dialect, value } = event;
    if (kind === "citation" && block.kind === "text") {
      const annotation = citationFor("openai-responses", event);
      if (annotation === undefined) return "";
      const wire = announce();
      block.notes.push({ note: kind, dialect, value });
      return (
        wire +
        frame("response.output_text.annotation.added", {
          ...inPart(),
          annotation_index: annotations++,
          annotation,
        })
      );
    }
    block.notes.push({ note: kind, dialect, value });
    return "";
  };

  const close = (): string => {
    let wire = announce();
    // Clients parse the arguments, and nothing is no JSON.
    if (block.kind === "tool-call" && !block.custom && pieces.length === 0) wire += json("{}");
    block.text = pieces.join("");
    switch (block.kind) {
      case "text":
      case "refusal": {
        const part = contentPart(block);
        if (block.kind === "text") {
          const logprobs = asList(part["logprobs"]);
          wire += frame("response.output_text.done", { ...inPart(), text: block.text, logprobs });
        } else wire += frame("response.refusal.done", { ...inPart(), refusal: block.text });
        wire += frame("response.content_part.done", { ...inPart(), part });
        message?.parts.push(part);
        return wire;
      }
      case "thinking": {
        if (block.text !== "") {
          const place = { ...inItem(), summary_index: 0 };
          const part = { type: "summary_text", text: block.text };
          wire += frame("response.reasoning_summary_text.done", { ...place, text: block.text });
          wire += frame("response.reasoning_summary_part.done", { ...place, part });
        }
        return wire + endItem(encodeItem(block, itemId));
      }
      case "tool-call": {
        const field = block.custom ? "input" : "arguments";
        const type = block.custom
          ? "response.custom_tool_call_input.done"
          : "response.function_call_arguments.done";
        const item = encodeItem(block, itemId);
        wire += frame(type, { ...inItem(), name: block.name, [field]: item?.[field] });
        return wire + endItem(item);
      }
      case "image":
        return wire + endItem(encodeItem(block, itemId));
      case "hosted-tool": {
        const item = encodeItem(block, itemId);
        return item ? wire + endMessage() + wholeItem(item) : wire;
      }
      case "audio":
        return wire;
    }
  };

  const endItem = (item: JsonObject | null): string => {
    if (!item) return "";
    const wire = frame("response.output_item.done", { output_index: output.length, item });
    output.push(item);
    return wire;
  };

  const open = (event: OpenEvent): string => {
    const { kind, callId, name, custom } = event;
    block = newBlock(kind, { callId, name, custom });
    pieces = [];
    announced = false;
    annotations = 0;
    // A call waits for a signature that would have to stand before it.
    return kind === "tool-call" ? "" : announce();
  };

  const finish = (event: FinishEvent): string => {
    const end = { reason: event.reason, usage };
    const wire = endMessage();
    const cut = isCut(event.reason);
    return (
      wire +
      frame(cut ? "response.incomplete" : "response.completed", {
        response: encodeResponse(head, output, context, end),
      })
    );
  };

  return {
    push(event: CanonicalEvent) {
      switch (event.type) {
        case "start": {
          const id = event.id?.startsWith("resp_") ? event.id : context.newId("resp_");
          head = {
            id,
            model: context.model ?? event.model ?? "",
            createdAt: event.createdAt ?? context.nowSeconds,
          };
          const response = encodeResponse(head, [], context);
          return frame("response.created", { response }) + frame("response.in_progress", { response });
        }
        case "open":
          return open(event);
        case "text":
          return text(event.delta);
        case "json":
          return json(event.delta);
        case "bytes":
          block.data = joinBase64(block.data === undefined ? [event.data] : [block.data, event.data]);
          if (event.mime !== undefined) block.mime = event.mime;
          return "";
        case "note":
          return note(event);
        case "opaque":
          if (event.at !== undefined && asObject(event.value)) {
            block.opaque.push({ dialect: event.dialect, value: event.value });
          }
          return "";
        case "close":
          return close();
        case "usage":
          usage = event.usage;
          return "";
        case "finish":
          return finish(event);
        case "fail": {
          const words = context.failureText?.(event.failure) ?? event.failure.text ?? event.failure.code;
          const error = errorFields(event.failure, words);
          if (head.id === "") return frame("error", { ...error, param: event.failure.param ?? null });
          const response = { ...encodeResponse(head, output, context), status: "failed", error };
          return frame("response.failed", { response });
        }
        case "ping":
          return ": PING\n\n";
      }
    },
  };
}

function messageItem(id: string, content: JsonObject[], status: string): JsonObject {
  return { id, type: "message", status, role: "assistant", content };
}
