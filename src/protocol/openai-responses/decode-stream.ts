// Reads Responses streams into canonical events: items and parts become blocks, hosted items stay as they are.
// Refuses to call a stream complete without completed, incomplete or failed.
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { isError, readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../json.ts";
import { createSequencer } from "../sequencer.ts";
import type { BlockSequencer, BlockSpec } from "../sequencer.ts";
import { openProof } from "../signatures.ts";
import { decodeUsage } from "./usage.ts";
import { packReasoning } from "./wire.ts";

const DIALECT = "openai-responses";

/** What has been read so far; everything below reads and moves it. */
interface Reading {
  readonly newId: AnswerContext["newId"];
  readonly blocks: BlockSequencer;
  /** Keys that already got text, so that `done` events and items do not repeat it. */
  readonly written: Set<string>;
  /** By the item's place in the output. */
  readonly calls: Map<number, BlockSpec>;
  readonly reasoningIds: Map<number, string>;
  /** The summary part that an item's text came from last. */
  readonly summaries: Map<number, number>;
  started: boolean;
  over: boolean;
  sawCall: boolean;
  webSearch: number;
  fileSearch: number;
  /** The newest usage object: some upstreams fill it in before the end. */
  reported: unknown;
}

export function decodeStream({ newId }: Pick<AnswerContext, "newId">): WireDecoder {
  const from: Reading = {
    newId,
    blocks: createSequencer(),
    written: new Set(),
    calls: new Map(),
    reasoningIds: new Map(),
    summaries: new Map(),
    started: false,
    over: false,
    sawCall: false,
    webSearch: 0,
    fileSearch: 0,
    reported: undefined,
  };
  return {
    read: (wire, event) => read(from, wire, event),
    usageSoFar: () => decodeUsage(from.reported),
    push(frame: WireFrame) {
      const wire = from.over ? undefined : asObject(parseJson(frame.data));
      return wire ? read(from, wire, frame.event) : [];
    },
    end() {
      if (from.over) return [];
      from.over = true;
      return [{ type: "fail", failure: brokenStream("no response.completed") }];
    },
  };
}

function read(from: Reading, wire: JsonObject, event = ""): CanonicalEvent[] {
  const out: CanonicalEvent[] = [];
  if (from.over) return out;
  const type = asString(wire["type"]) ?? event;
  const response = asObject(wire["response"]) ?? {};
  if (asObject(response["usage"])) from.reported = response["usage"];
  if (type === "error" || type === "response.failed" || isError(wire["error"])) {
    from.over = true;
    const body = type === "response.failed" ? { error: response["error"] } : wire;
    out.push({ type: "fail", failure: upstreamFailure({ status: 200, ...readErrorBody(body) }) });
  } else if (type === "response.completed" || type === "response.incomplete") readEnd(from, out, response);
  else if (type === "response.keep_alive" || type === "keepalive") out.push({ type: "ping" });
  else {
    start(from, out, response);
    readEvent(from, out, type, wire);
  }
  return out;
}

function start(from: Reading, out: CanonicalEvent[], response: JsonObject): void {
  if (from.started) return;
  from.started = true;
  out.push({
    type: "start",
    ...defined({
      id: asString(response["id"]),
      model: asString(response["model"]),
      createdAt: asNumber(response["created_at"]),
    }),
  });
}

function write(from: Reading, out: CanonicalEvent[], spec: BlockSpec, payload: BlockPayload): void {
  from.written.add(spec.key);
  from.blocks.write(out, spec, payload);
}

function partSpec(kind: "text" | "refusal", item: number, part: number): BlockSpec {
  return { key: `${kind}:${item}:${part}`, kind };
}

/** A reasoning item's id goes with its block: its encrypted content is only valid under that id. */
function thinkingSpec(from: Reading, item: number): BlockSpec {
  const callId = from.reasoningIds.get(item);
  return { key: `thinking:${item}`, kind: "thinking", ...defined({ callId }) };
}

function readEvent(from: Reading, out: CanonicalEvent[], type: string, wire: JsonObject): void {
  const item = asNumber(wire["output_index"]) ?? 0;
  const part = asNumber(wire["content_index"]) ?? 0;
  const delta = asString(wire["delta"]) ?? "";
  switch (type) {
    case "response.output_item.added":
      beginItem(from, out, asObject(wire["item"]) ?? {}, item);
      break;
    case "response.output_text.delta":
    case "response.refusal.delta": {
      const spec = partSpec(type === "response.refusal.delta" ? "refusal" : "text", item, part);
      if (delta !== "") write(from, out, spec, { type: "text", delta });
      if (asList(wire["logprobs"]).length > 0) {
        write(from, out, spec, { type: "note", note: "logprobs", dialect: DIALECT, value: wire["logprobs"] });
      }
      break;
    }
    case "response.reasoning_summary_text.delta":
    case "response.reasoning_text.delta": {
      if (delta === "") break;
      const piece = asNumber(wire["summary_index"]) ?? part;
      // Summary parts are paragraphs.
      const gap = from.summaries.has(item) && from.summaries.get(item) !== piece ? "\n\n" : "";
      from.summaries.set(item, piece);
      write(from, out, thinkingSpec(from, item), { type: "text", delta: gap + delta });
      break;
    }
    case "response.function_call_arguments.delta":
    case "response.custom_tool_call_input.delta": {
      const spec = from.calls.get(item);
      if (spec && delta !== "") write(from, out, spec, { type: "json", delta });
      break;
    }
    case "response.output_text.annotation.added": {
      const spec = partSpec("text", item, part);
      write(from, out, spec, { type: "note", note: "citation", dialect: DIALECT, value: wire["annotation"] });
      break;
    }
    case "response.output_item.done":
      endItem(from, out, asObject(wire["item"]) ?? {}, item);
      break;
  }
}

function beginItem(from: Reading, out: CanonicalEvent[], item: JsonObject, index: number): void {
  const id = asString(item["id"]);
  if (item["type"] === "reasoning" && id !== undefined) from.reasoningIds.set(index, id);
  if (item["type"] === "function_call" || item["type"] === "custom_tool_call")
    beginCall(from, out, item, index);
}

function beginCall(from: Reading, out: CanonicalEvent[], item: JsonObject, index: number): BlockSpec {
  const known = from.calls.get(index);
  if (known) return known;
  from.sawCall = true;
  const custom = item["type"] === "custom_tool_call";
  const spec: BlockSpec = {
    key: `call:${index}`,
    kind: "tool-call",
    callId: asString(item["call_id"]) || asString(item["id"]) || from.newId("call_"),
    name: asString(item["name"]) ?? "",
    custom,
    ...defined({ namespace: asString(item["namespace"]) }),
  };
  from.calls.set(index, spec);
  from.blocks.write(out, spec);
  return spec;
}

/** The end of an item: what its deltas left out, its proof, and that it is complete. */
function endItem(from: Reading, out: CanonicalEvent[], item: JsonObject, index: number): void {
  switch (item["type"]) {
    case "message":
      asList(item["content"]).forEach((value, part) =>
        endPart(from, out, asObject(value) ?? {}, partSpec(kindOf(value), index, part)),
      );
      return;
    case "function_call":
    case "custom_tool_call": {
      const spec = beginCall(from, out, item, index);
      const text = asString(item["arguments"]) ?? asString(item["input"]) ?? "";
      if (text !== "" && !from.written.has(spec.key)) write(from, out, spec, { type: "json", delta: text });
      from.blocks.complete(out, spec.key);
      return;
    }
    case "reasoning":
      endReasoning(from, out, item, index);
      return;
    case "image_generation_call": {
      const data = asString(item["result"]);
      if (!data) return;
      const spec: BlockSpec = { key: `image:${index}`, kind: "image" };
      const mime = `image/${asString(item["output_format"]) ?? "png"}`;
      write(from, out, spec, { type: "bytes", data, mime });
      from.blocks.complete(out, spec.key);
      return;
    }
    default: {
      if (item["type"] === "web_search_call") from.webSearch += 1;
      if (item["type"] === "file_search_call") from.fileSearch += 1;
      const spec: BlockSpec = {
        key: `hosted:${index}`,
        kind: "hosted-tool",
        ...defined({ callId: asString(item["id"]), name: asString(item["type"]) }),
      };
      write(from, out, spec, { type: "opaque", dialect: DIALECT, value: item });
      from.blocks.complete(out, spec.key);
    }
  }
}

function kindOf(part: unknown): "text" | "refusal" {
  return asObject(part)?.["type"] === "refusal" ? "refusal" : "text";
}

function endPart(from: Reading, out: CanonicalEvent[], part: JsonObject, spec: BlockSpec): void {
  const text = asString(part[spec.kind]);
  if (!text || from.written.has(spec.key)) return;
  write(from, out, spec, { type: "text", delta: text });
  for (const value of asList(part["annotations"])) {
    write(from, out, spec, { type: "note", note: "citation", dialect: DIALECT, value });
  }
  if (asList(part["logprobs"]).length > 0) {
    write(from, out, spec, { type: "note", note: "logprobs", dialect: DIALECT, value: part["logprobs"] });
  }
}

function endReasoning(from: Reading, out: CanonicalEvent[], item: JsonObject, index: number): void {
  const id = asString(item["id"]);
  if (id !== undefined) from.reasoningIds.set(index, id);
  const spec = thinkingSpec(from, index);
  const pieces = [...asList(item["summary"]), ...asList(item["content"])];
  const text = pieces.map((piece) => asString(asObject(piece)?.["text"]) ?? "").join("\n\n");
  if (text !== "" && !from.written.has(spec.key)) write(from, out, spec, { type: "text", delta: text });
  const encrypted = asString(item["encrypted_content"]);
  if (!encrypted) return;
  const { signature, redacted } = openProof(encrypted, DIALECT);
  const own = signature.dialect === DIALECT;
  const value = own ? packReasoning(asString(item["id"]) ?? "", signature.value) : signature.value;
  const note = redacted ? "redacted" : "signature";
  write(from, out, spec, { type: "note", note, dialect: signature.dialect, value });
}

function readEnd(from: Reading, out: CanonicalEvent[], response: JsonObject): void {
  from.over = true;
  start(from, out, response);
  // A stream that only sends its end still carries the complete output there.
  if (from.blocks.count() === 0) {
    asList(response["output"]).forEach((value, index) => endItem(from, out, asObject(value) ?? {}, index));
  }
  from.blocks.closeAll(out);
  const usage: Usage = decodeUsage(response["usage"]) ?? emptyUsage();
  usage.calls.webSearch = Math.max(usage.calls.webSearch, from.webSearch);
  usage.calls.fileSearch = Math.max(usage.calls.fileSearch, from.fileSearch);
  out.push({ type: "usage", usage });
  const why = asString(asObject(response["incomplete_details"])?.["reason"]);
  const status = asString(response["status"]) ?? null;
  out.push({ type: "finish", reason: reasonOf(status, why, from.sawCall), raw: why ?? status });
}

function reasonOf(status: string | null, why: string | undefined, sawCall: boolean): FinishReason {
  if (status === "incomplete") {
    return why === "max_output_tokens" ? "length" : why === "content_filter" ? "content-filter" : "other";
  }
  // A refusal in words is an ordinary end here, as in chat completions.
  return sawCall ? "tool-calls" : "stop";
}
