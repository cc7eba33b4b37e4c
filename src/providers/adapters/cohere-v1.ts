// Cohere's chat v1: one message and its history, answered whole or as lines of JSON.
// Only plain text conversations are sent here.
import { defined } from "../../protocol/assemble.ts";
import type { CanonicalRequest, JsonObject, Role } from "../../protocol/canonical.ts";
import type { CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import { eventWriter, linesOf, streamFailure } from "../adapter-kit.ts";
import type { EventWriter } from "../adapter-kit.ts";
import { textOf } from "./chat-request.ts";

const ROLES: Readonly<Record<Role, string>> = {
  system: "SYSTEM",
  developer: "SYSTEM",
  user: "USER",
  tool: "USER",
  assistant: "CHATBOT",
};

const FINISH: Readonly<Record<string, FinishReason>> = {
  COMPLETE: "stop",
  STOP_SEQUENCE: "stop-sequence",
  MAX_TOKENS: "length",
  ERROR_LIMIT: "length",
  TOOL_CALL: "tool-calls",
  ERROR_TOXIC: "content-filter",
};

export function cohereFinish(raw: string | undefined): FinishReason {
  return raw === undefined ? "stop" : (FINISH[raw] ?? "other");
}

/** What Cohere bills, else what it counted; empty when it says nothing, and the gateway counts. */
export function cohereUsage(raw: unknown): Usage {
  const wire = asObject(raw);
  const units = asObject(wire?.["billed_units"]) ?? asObject(wire?.["tokens"]);
  const usage = emptyUsage();
  if (!units) return usage;
  usage.raw = raw;
  usage.input.fresh = boundedCount(units["input_tokens"]);
  usage.output.text = boundedCount(units["output_tokens"]);
  const cached = Math.min(boundedCount(wire?.["cached_tokens"]), usage.input.fresh);
  usage.input.cacheRead = cached;
  usage.input.fresh -= cached;
  return usage;
}

/** Sampling settings under Cohere's names, the same in both versions. */
export function cohereSettings({ settings }: CanonicalRequest): JsonObject {
  return defined({
    max_tokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    p: settings.topP,
    k: settings.topK,
    seed: settings.seed,
    frequency_penalty: settings.frequencyPenalty,
    presence_penalty: settings.presencePenalty,
    stop_sequences: settings.stop?.length ? settings.stop : undefined,
  });
}

/** The last thing the user said is the message; everything else is history, in its order. */
export function requestV1(request: CanonicalRequest, call: AdapterCall): JsonObject {
  const last = request.messages.findLastIndex((message) => message.role === "user");
  const history = request.messages.filter((_, index) => index !== last);
  const question = request.messages[last];
  return {
    model: call.model,
    message: question ? textOf(question) : "",
    chat_history: history.map((message) => ({ role: ROLES[message.role], message: textOf(message) })),
    stream: call.isStream,
    ...cohereSettings(request),
  };
}

export async function* streamedV1(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  for await (const line of linesOf(response)) {
    const wire = asObject(parseJson(line));
    if (!wire) continue;
    const message = asString(wire["message"]);
    if (message !== undefined && wire["event_type"] === undefined)
      yield* writer.fail(streamFailure(500, "error", message));
    else if (wire["is_finished"] === true) yield* lastEvents(writer, wire);
    else yield* writer.text(asString(wire["text"]) ?? "");
  }
  writer.end();
}

function lastEvents(writer: EventWriter, wire: JsonObject): CanonicalEvent[] {
  const raw = asString(wire["finish_reason"]) ?? "COMPLETE";
  if (raw === "ERROR") return writer.fail(streamFailure(502, "error", asString(wire["error"]) ?? raw));
  const response = asObject(wire["response"]);
  return writer.finish(cohereFinish(raw), raw, cohereUsage(response?.["meta"]));
}

export function wholeV1(body: JsonObject): CanonicalEvent[] {
  const writer = eventWriter();
  const raw = asString(body["finish_reason"]) ?? "COMPLETE";
  return [
    ...writer.start(asString(body["generation_id"])),
    ...writer.text(asString(body["text"]) ?? ""),
    ...writer.finish(cohereFinish(raw), raw, cohereUsage(body["meta"])),
  ];
}
