// Reads Anthropic Messages streams into canonical events; those that are passed through are metered by meter.ts.
// Refuses to call a stream whole that has no message_stop.
import { emptyUsage } from "../../shared/usage.ts";
import { brokenStream, defined } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext, WireDecoder, WireFrame } from "../dialect.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../json.ts";
import { createSequencer } from "../sequencer.ts";
import type { BlockSpec } from "../sequencer.ts";
import { proofNote } from "../signatures.ts";
import { decodeUsage, mergeUsage } from "./usage.ts";
import { finishFromWire } from "./wire.ts";

const DIALECT = "anthropic";

export function decodeStream(context: Pick<AnswerContext, "newId">): WireDecoder {
  const blocks = createSequencer();
  const specs = new Map<number, BlockSpec>();
  let usage: JsonObject | undefined;
  /** message_delta told totals; message_start alone is a first word. */
  let hasTotals = false;
  let started = false;
  let over = false;
  let begun = 0;
  let stopReason: string | null = null;
  let stopSequence: string | undefined;

  const start = (out: CanonicalEvent[], message: JsonObject): void => {
    if (started) return;
    started = true;
    usage = asObject(message["usage"]);
    out.push({
      type: "start",
      ...defined({
        id: asString(message["id"]),
        model: asString(message["model"]),
        usage: decodeUsage(usage) ?? undefined,
      }),
    });
  };

  const begin = (out: CanonicalEvent[], index: number, block: JsonObject): void => {
    // Indexes may repeat in broken streams; a block that begins ends the one in its place.
    const before = specs.get(index);
    if (before) blocks.complete(out, before.key);
    const { spec, payloads } = readBlock(`${index}:${begun++}`, block, context.newId);
    specs.set(index, spec);
    blocks.write(out, spec);
    for (const payload of payloads) blocks.write(out, spec, payload);
  };

  /** message_stop says that the message is complete, also without a reason. */
  const unsaidReason = (): FinishReason => {
    for (const { kind } of specs.values()) if (kind === "tool-call") return "tool-calls";
    return "stop";
  };

  const finish = (out: CanonicalEvent[]): void => {
    over = true;
    if (!started) out.push({ type: "start" });
    blocks.closeAll(out);
    const isProvisional = !hasTotals && usage !== undefined;
    out.push({
      type: "usage",
      usage: decodeUsage(usage) ?? emptyUsage(),
      ...(isProvisional ? { isProvisional } : {}),
    });
    const reason = stopReason === null ? unsaidReason() : finishFromWire(stopReason);
    out.push({ type: "finish", reason, raw: stopReason, ...defined({ stopSequence }) });
  };

  const read = (wire: JsonObject, event = ""): CanonicalEvent[] => {
    const out: CanonicalEvent[] = [];
    if (over) return out;
    const type = asString(wire["type"]) ?? event;
    const index = asNumber(wire["index"]) ?? 0;
    switch (type) {
      case "message_start":
        start(out, asObject(wire["message"]) ?? {});
        break;
      case "content_block_start":
        start(out, {});
        begin(out, index, asObject(wire["content_block"]) ?? {});
        break;
      case "content_block_delta": {
        const spec = specs.get(index);
        const delta = asObject(wire["delta"]);
        if (!spec || !delta) break;
        const payload = readDelta(spec, delta);
        if (payload) blocks.write(out, spec, payload);
        break;
      }
      case "content_block_stop":
        blocks.complete(out, specs.get(index)?.key ?? "");
        break;
      case "message_delta": {
        const delta = asObject(wire["delta"]);
        stopReason = asString(delta?.["stop_reason"]) ?? stopReason;
        stopSequence = asString(delta?.["stop_sequence"]) ?? stopSequence;
        usage = mergeUsage(usage, wire["usage"]);
        hasTotals ||= asObject(wire["usage"]) !== undefined;
        break;
      }
      case "message_stop":
        finish(out);
        break;
      case "ping":
        out.push({ type: "ping" });
        break;
      case "error":
        over = true;
        out.push({ type: "fail", failure: upstreamFailure({ status: 200, ...readErrorBody(wire) }) });
        break;
      default:
        if (started) out.push({ type: "opaque", dialect: DIALECT, value: wire });
    }
    return out;
  };

  return {
    read,
    usageSoFar: () => decodeUsage(usage),
    push(frame: WireFrame) {
      const wire = over ? undefined : asObject(parseJson(frame.data));
      return wire ? read(wire, frame.event) : [];
    },
    end() {
      if (over) return [];
      over = true;
      return [{ type: "fail", failure: brokenStream("no message_stop") }];
    },
  };
}

/** What a content block is and what it already holds; whole answers give their blocks complete at the start. */
function readBlock(
  key: string,
  block: JsonObject,
  newId: AnswerContext["newId"],
): { spec: BlockSpec; payloads: BlockPayload[] } {
  const payloads: BlockPayload[] = [];
  switch (block["type"]) {
    case "text": {
      const text = asString(block["text"]);
      if (text) payloads.push({ type: "text", delta: text });
      for (const value of asList(block["citations"])) payloads.push(citation(value));
      return { spec: { key, kind: "text" }, payloads };
    }
    case "thinking": {
      const text = asString(block["thinking"]);
      if (text) payloads.push({ type: "text", delta: text });
      const signature = asString(block["signature"]);
      if (signature) payloads.push(proofNote(signature, DIALECT));
      return { spec: { key, kind: "thinking" }, payloads };
    }
    case "redacted_thinking": {
      const data = asString(block["data"]) ?? "";
      payloads.push({ ...proofNote(data, DIALECT), note: "redacted" });
      return { spec: { key, kind: "thinking" }, payloads };
    }
    case "tool_use": {
      const input = asObject(block["input"]);
      if (input && Object.keys(input).length > 0)
        payloads.push({ type: "json", delta: JSON.stringify(input) });
      const callId = asString(block["id"]) || newId("toolu_");
      return { spec: { key, kind: "tool-call", callId, name: asString(block["name"]) ?? "" }, payloads };
    }
    default: {
      const input = asObject(block["input"]);
      const filled = input !== undefined && Object.keys(input).length > 0;
      payloads.push({ type: "opaque", dialect: DIALECT, value: filled ? { ...block, input: {} } : block });
      if (filled) payloads.push({ type: "json", delta: JSON.stringify(input) });
      const spec: BlockSpec = {
        key,
        kind: "hosted-tool",
        ...defined({
          callId: asString(block["id"]) ?? asString(block["tool_use_id"]),
          name: asString(block["name"]) ?? asString(block["type"]),
        }),
      };
      return { spec, payloads };
    }
  }
}

function citation(value: unknown): BlockPayload {
  return { type: "note", note: "citation", dialect: DIALECT, value };
}

function readDelta(spec: BlockSpec, delta: JsonObject): BlockPayload | undefined {
  const textual = spec.kind === "text" || spec.kind === "thinking";
  switch (delta["type"]) {
    case "text_delta":
    case "thinking_delta": {
      const text = asString(delta["text"]) ?? asString(delta["thinking"]);
      return text && textual ? { type: "text", delta: text } : undefined;
    }
    case "input_json_delta": {
      const json = asString(delta["partial_json"]);
      return json && !textual ? { type: "json", delta: json } : undefined;
    }
    case "signature_delta": {
      const signature = asString(delta["signature"]);
      return signature ? proofNote(signature, DIALECT) : undefined;
    }
    case "citations_delta":
      return citation(delta["citation"]);
    default:
      return { type: "opaque", dialect: DIALECT, value: delta };
  }
}
