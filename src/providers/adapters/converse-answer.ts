// What Bedrock's Converse answers, whole and as a stream, in canonical form.
// Refuses to call a stream whole that has no messageStop.
import { brokenStream } from "../../protocol/assemble.ts";
import type { BlockPayload, CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString } from "../../protocol/json.ts";
import { createSequencer } from "../../protocol/sequencer.ts";
import type { BlockSpec } from "../../protocol/sequencer.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import { streamFailure } from "../adapter-kit.ts";
import { bedrockEvents } from "./bedrock-events.ts";

type Wire = Record<string, unknown>;

const FINISH: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  stop_sequence: "stop-sequence",
  tool_use: "tool-calls",
  guardrail_intervened: "content-filter",
  content_filtered: "content-filter",
};

/**
 * Converse counts cached tokens beside inputTokens (its totalTokens is the sum of all); where the total shows that they
 * are contained, they are taken out.
 */
function converseUsage(raw: unknown): Usage {
  const usage = emptyUsage();
  const wire = asObject(raw);
  if (!wire) return usage;
  usage.raw = raw;
  const input = boundedCount(wire["inputTokens"]);
  const output = boundedCount(wire["outputTokens"]);
  const read = boundedCount(wire["cacheReadInputTokens"]);
  const written = boundedCount(wire["cacheWriteInputTokens"]);
  const isContained = read + written > 0 && boundedCount(wire["totalTokens"]) === input + output;
  const long = asList(wire["cacheDetails"])
    .map(asObject)
    .filter((detail) => detail?.["ttl"] === "1h")
    .reduce((sum, detail) => sum + boundedCount(detail?.["inputTokens"]), 0);
  usage.input.fresh = isContained ? Math.max(0, input - read - written) : input;
  usage.input.cacheRead = read;
  usage.input.cacheWrite1h = Math.min(long, written);
  usage.input.cacheWrite5m = written - usage.input.cacheWrite1h;
  usage.output.text = output;
  return usage;
}

function reasoningPayload(reasoning: Wire): BlockPayload[] {
  const inner = asObject(reasoning["reasoningText"]) ?? reasoning;
  const payloads: BlockPayload[] = [];
  const text = asString(inner["text"]);
  if (text) payloads.push({ type: "text", delta: text });
  const signature = asString(inner["signature"]);
  if (signature) payloads.push({ type: "note", note: "signature", dialect: "anthropic", value: signature });
  const hidden = asString(inner["redactedContent"]);
  if (hidden) payloads.push({ type: "note", note: "redacted", dialect: "anthropic", value: hidden });
  return payloads;
}

/** The events of a Converse stream, fed one by one. */
function createReader(call: AdapterCall) {
  const blocks = createSequencer();
  const specs = new Map<number, BlockSpec>();
  let usage: unknown;
  let reason: string | null = null;
  let isStarted = false;
  let isStopped = false;
  let isOver = false;

  const start = (out: CanonicalEvent[]): void => {
    if (isStarted) return;
    isStarted = true;
    out.push({ type: "start" });
  };
  const specFor = (index: number, kind: BlockSpec["kind"]): BlockSpec => {
    const known = specs.get(index);
    if (known && (known.kind === kind || kind === "tool-call")) return known;
    const spec: BlockSpec = { key: `${index}:${kind}`, kind };
    specs.set(index, spec);
    return spec;
  };
  const write = (out: CanonicalEvent[], spec: BlockSpec, payloads: readonly BlockPayload[]): void => {
    for (const payload of payloads) blocks.write(out, spec, payload);
  };

  function delta(out: CanonicalEvent[], index: number, wire: Wire): void {
    const text = asString(wire["text"]);
    const tool = asObject(wire["toolUse"]);
    const reasoning = asObject(wire["reasoningContent"]);
    if (text) write(out, specFor(index, "text"), [{ type: "text", delta: text }]);
    if (reasoning) write(out, specFor(index, "thinking"), reasoningPayload(reasoning));
    const json = asString(tool?.["input"]);
    const spec = specs.get(index);
    if (json && spec?.kind === "tool-call") write(out, spec, [{ type: "json", delta: json }]);
  }

  function finish(): CanonicalEvent[] {
    if (isOver) return [];
    isOver = true;
    const out: CanonicalEvent[] = [];
    start(out);
    blocks.closeAll(out);
    out.push({ type: "usage", usage: converseUsage(usage) });
    out.push({ type: "finish", reason: reason ? (FINISH[reason] ?? "other") : "stop", raw: reason });
    return out;
  }

  return {
    event(type: string, wire: Wire): CanonicalEvent[] {
      const out: CanonicalEvent[] = [];
      if (isOver) return out;
      const index = asNumber(wire["contentBlockIndex"]) ?? 0;
      start(out);
      switch (type) {
        case "contentBlockStart": {
          const tool = asObject(asObject(wire["start"])?.["toolUse"]);
          if (!tool) break;
          const spec: BlockSpec = {
            key: `${index}:tool-call`,
            kind: "tool-call",
            callId: asString(tool["toolUseId"]) || call.newId("call_"),
            name: asString(tool["name"]) ?? "",
          };
          specs.set(index, spec);
          blocks.write(out, spec);
          break;
        }
        case "contentBlockDelta":
          delta(out, index, asObject(wire["delta"]) ?? {});
          break;
        case "contentBlockStop":
          blocks.complete(out, specs.get(index)?.key ?? "");
          break;
        case "messageStop":
          isStopped = true;
          reason = asString(wire["stopReason"]) ?? null;
          break;
        case "metadata":
          usage = wire["usage"];
          // The figures come last; without them the end of the body ends the answer.
          if (isStopped) out.push(...finish());
      }
      return out;
    },
    fail(status: number, type: string, message: string): CanonicalEvent[] {
      if (isOver) return [];
      isOver = true;
      return [{ type: "fail", failure: streamFailure(status, type, message) }];
    },
    end(): CanonicalEvent[] {
      if (isOver) return [];
      if (!isStopped) throw brokenStream("no messageStop");
      return finish();
    },
  };
}

export async function* streamedAnswer(response: Response, call: AdapterCall): AsyncGenerator<CanonicalEvent> {
  const reader = createReader(call);
  for await (const { type, payload, exception } of bedrockEvents(response)) {
    if (exception) yield* reader.fail(exception.status, exception.type, exception.message);
    else yield* reader.event(type, payload);
  }
  yield* reader.end();
}

/** A whole answer, played through the same reader. */
export function completeAnswer(body: Wire, call: AdapterCall): CanonicalEvent[] {
  const reader = createReader(call);
  const content = asList(asObject(asObject(body["output"])?.["message"])?.["content"]);
  const events = reader.event("messageStart", {});
  content.forEach((value, contentBlockIndex) => {
    const block = asObject(value) ?? {};
    const tool = asObject(block["toolUse"]);
    if (tool) {
      events.push(...reader.event("contentBlockStart", { contentBlockIndex, start: { toolUse: tool } }));
      const delta = { toolUse: { input: JSON.stringify(tool["input"] ?? {}) } };
      events.push(...reader.event("contentBlockDelta", { contentBlockIndex, delta }));
    } else events.push(...reader.event("contentBlockDelta", { contentBlockIndex, delta: block }));
    events.push(...reader.event("contentBlockStop", { contentBlockIndex }));
  });
  events.push(...reader.event("messageStop", { stopReason: body["stopReason"] ?? "end_turn" }));
  events.push(...reader.event("metadata", { usage: body["usage"] }));
  return events;
}
