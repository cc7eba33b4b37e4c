// Reads Responses streams into canonical events: items and parts become blocks, hosted items stay whole.
// Refuses to call a stream whole without completed, incomplete or failed.
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../json.ts";
import { createSequencer } from "../sequencer.ts";
import type { BlockSpec } from "../sequencer.ts";
import { openProof } from "../signatures.ts";
import { decodeUsage } from "./usage.ts";
import { packReasoning } from "./wire.ts";

const DIALECT = "openai-responses";

export function decodeStream(context: Pick<AnswerContext, "newId">): WireDecoder {
  const blocks = createSequencer();
  /** Keys that already got text, so that `done` events and items do not repeat it. */
  const written = new Set<string>();
  const calls = new Map<number, BlockSpec>();
  const reasoningIds = new Map<number, string>();
  const summaries = new Map<number, number>();
  let started = false;
  let over = false;
  let sawCall = false;
  let webSearch = 0;
  let fileSearch = 0;

  /** The newest usage object: some upstreams fill it in before the end. */
  let told: unknown;
  const start = (out: CanonicalEvent[], response: JsonObject): void => {
    if (started) return;
    started = true;
    out.push({
      type: "start",
      ...defined({
        id: asString(response["id"]),
        model: asString(response["model"]),
        createdAt: asNumber(response["created_at"]),
      }),
    });
  };
  const write = (out: CanonicalEvent[], spec: BlockSpec, payload: BlockPayload): void => {
    written.add(spec.key);
    blocks.write(out, spec, payload);
  };
  const partSpec = (kind: "text" | "refusal", item: number, part: number): BlockSpec => ({
    key: `${kind}:${item}:${part}`,
    kind,
  });
  /** A reasoning item's id goes with its block: its encrypted content is only valid under that id. */
  const thinkingSpec = (item: number): BlockSpec => ({
    key: `thinking:${item}`,
    kind: "thinking",
    ...defined({ callId: reasoningIds.get(item) }),
  });

  const beginCall = (out: CanonicalEvent[], item: JsonObject, index: number): BlockSpec => {
    const known = calls.get(index);
    if (known) return known;
    sawCall = true;
    const custom = item["type"] === "custom_tool_call";
    const spec: BlockSpec = {
      key: `call:${index}`,
      kind: "tool-call",
      callId: asString(item["call_id"]) || asString(item["id"]) || context.newId("call_"),
      name: asString(item["name"]) ?? "",
      custom,
    };
    calls.set(index, spec);
    blocks.write(out, spec);
    return spec;
  };

  /** The end of an item: what its deltas left unsaid, its proof, and that it is whole. */
  const endItem = (out: CanonicalEvent[], item: JsonObject, index: number): void => {
    switch (item["type"]) {
      case "message":
        asList(item["content"]).forEach((value, part) => endPart(out, asObject(value) ?? {}, index, part));
        return;
      case "function_call":
      case "custom_tool_call": {
        const spec = beginCall(out, item, index);
        const text = asString(item["arguments"]) ?? asString(item["input"]) ?? "";
        if (text !== "" && !written.has(spec.key)) write(out, spec, { type: "json", delta: text });
        blocks.complete(out, spec.key);
        return;
      }
      case "reasoning": {
        const id = asString(item["id"]);
        if (id !== undefined) reasoningIds.set(index, id);
        const spec = thinkingSpec(index);
        const pieces = [...asList(item["summary"]), ...asList(item["content"])];
        const text = pieces.map((piece) => asString(asObject(piece)?.["text"]) ?? "").join("\n\n");
        if (text !== "" && !written.has(spec.key)) write(out, spec, { type: "text", delta: text });
        const encrypted = asString(item["encrypted_content"]);
        if (encrypted) {
          const { signature, redacted } = openProof(encrypted, DIALECT);
          const own = signature.dialect === DIALECT;
          const value = own ? packReasoning(asString(item["id"]) ?? "", signature.value) : signature.value;
          const note = redacted ? "redacted" : "signature";
          write(out, spec, { type: "note", note, dialect: signature.dialect, value });
        }
        return;
      }
      case "image_generation_call": {
        const data = asString(item["result"]);
        if (!data) return;
        const spec: BlockSpec = { key: `image:${index}`, kind: "image" };
        const mime = `image/${asString(item["output_format"]) ?? "png"}`;
        write(out, spec, { type: "bytes", data, mime });
        blocks.complete(out, spec.key);
        return;
      }
      default: {
        if (item["type"] === "web_search_call") webSearch += 1;
        if (item["type"] === "file_search_call") fileSearch += 1;
        const spec: BlockSpec = {
          key: `hosted:${index}`,
          kind: "hosted-tool",
          ...defined({ callId: asString(item["id"]), name: asString(item["type"]) }),
        };
        write(out, spec, { type: "opaque", dialect: DIALECT, value: item });
        blocks.complete(out, spec.key);
      }
    }
  };

  const endPart = (out: CanonicalEvent[], part: JsonObject, item: number, index: number): void => {
    const kind = part["type"] === "refusal" ? "refusal" : "text";
    const spec = partSpec(kind, item, index);
    const text = asString(part[kind === "text" ? "text" : "refusal"]);
    if (!text || written.has(spec.key)) return;
    write(out, spec, { type: "text", delta: text });
    for (const value of asList(part["annotations"])) {
      write(out, spec, { type: "note", note: "citation", dialect: DIALECT, value });
    }
    if (asList(part["logprobs"]).length > 0) {
      write(out, spec, { type: "note", note: "logprobs", dialect: DIALECT, value: part["logprobs"] });
    }
  };

  const finish = (out: CanonicalEvent[], response: JsonObject): void => {
    over = true;
    start(out, response);
    // A stream that only sends its end still carries the whole output there.
    if (blocks.count() === 0) {
      asList(response["output"]).forEach((value, index) => endItem(out, asObject(value) ?? {}, index));
    }
    blocks.closeAll(out);
    const usage: Usage = decodeUsage(response["usage"]) ?? emptyUsage();
    usage.calls.webSearch = Math.max(usage.calls.webSearch, webSearch);
    usage.calls.fileSearch = Math.max(usage.calls.fileSearch, fileSearch);
    out.push({ type: "usage", usage });
    const why = asString(asObject(response["incomplete_details"])?.["reason"]);
    const status = asString(response["status"]) ?? null;
    out.push({ type: "finish", reason: reasonOf(status, why), raw: why ?? status });
  };
  const reasonOf = (status: string | null, why: string | undefined): FinishReason => {
    if (status === "incomplete") {
      return why === "max_output_tokens" ? "length" : why === "content_filter" ? "content-filter" : "other";
    }
    // A refusal in words is an ordinary end here, as in chat completions.
    return sawCall ? "tool-calls" : "stop";
  };

  const readEvent = (out: CanonicalEvent[], type: string, wire: JsonObject): void => {
    const item = asNumber(wire["output_index"]) ?? 0;
    const part = asNumber(wire["content_index"]) ?? 0;
    const delta = asString(wire["delta"]) ?? "";
    switch (type) {
      case "response.output_item.added": {
        const added = asObject(wire["item"]) ?? {};
        const id = asString(added["id"]);
        if (added["type"] === "reasoning" && id !== undefined) reasoningIds.set(item, id);
        if (added["type"] === "function_call" || added["type"] === "custom_tool_call")
          beginCall(out, added, item);
        break;
      }
      case "response.output_text.delta":
      case "response.refusal.delta": {
        const spec = partSpec(type === "response.refusal.delta" ? "refusal" : "text", item, part);
        if (delta !== "") write(out, spec, { type: "text", delta });
        if (asList(wire["logprobs"]).length > 0) {
          write(out, spec, { type: "note", note: "logprobs", dialect: DIALECT, value: wire["logprobs"] });
        }
        break;
      }
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta": {
        if (delta === "") break;
        const piece = asNumber(wire["summary_index"]) ?? part;
        // Summary parts are paragraphs.
        const gap = summaries.has(item) && summaries.get(item) !== piece ? "\n\n" : "";
        summaries.set(item, piece);
        write(out, thinkingSpec(item), { type: "text", delta: gap + delta });
        break;
      }
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta": {
        const spec = calls.get(item);
        if (spec && delta !== "") write(out, spec, { type: "json", delta });
        break;
      }
      case "response.output_text.annotation.added": {
        const spec = partSpec("text", item, part);
        write(out, spec, { type: "note", note: "citation", dialect: DIALECT, value: wire["annotation"] });
        break;
      }
      case "response.output_item.done":
        endItem(out, asObject(wire["item"]) ?? {}, item);
        break;
    }
  };

  const read = (wire: JsonObject, event = ""): CanonicalEvent[] => {
    const out: CanonicalEvent[] = [];
    if (over) return out;
    const type = asString(wire["type"]) ?? event;
    const response = asObject(wire["response"]) ?? {};
    if (asObject(response["usage"])) told = response["usage"];
    if (type === "error" || type === "response.failed" || asObject(wire["error"])) {
      over = true;
      const body = type === "response.failed" ? { error: response["error"] } : wire;
      out.push({ type: "fail", failure: upstreamFailure({ status: 200, ...readErrorBody(body) }) });
    } else if (type === "response.completed" || type === "response.incomplete") finish(out, response);
    else if (type === "response.keep_alive" || type === "keepalive") out.push({ type: "ping" });
    else {
      start(out, response);
      readEvent(out, type, wire);
    }
    return out;
  };

  return {
    read,
    usageSoFar: () => decodeUsage(told),
    push(frame: WireFrame) {
      const wire = over ? undefined : asObject(parseJson(frame.data));
      return wire ? read(wire, frame.event) : [];
    },
    end() {
      if (over) return [];
      over = true;
      return [{ type: "fail", failure: brokenStream("no response.completed") }];
    },
  };
}
