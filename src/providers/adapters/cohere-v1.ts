// Cohere's chat v1: one message and its history, answered whole or as lines of JSON.
// Refuses nothing itself: only plain text conversations are sent here.
import type { Answer } from "../../protocol/assemble.ts";
import { collect, defined } from "../../protocol/assemble.ts";
import type { CanonicalRequest, JsonObject, Role } from "../../protocol/canonical.ts";
import type { CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { asObject, asString } from "../../protocol/json.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import { jsonLines } from "./answers.ts";
import type { ByteDecoder } from "./answers.ts";
import { textOf } from "./asked.ts";
import { createTextEvents } from "./text-events.ts";

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
  return (raw !== undefined && FINISH[raw]) || "other";
}

/** What Cohere bills, else what it counted; null when it says nothing. */
export function cohereUsage(raw: unknown): Usage | null {
  const wire = asObject(raw);
  const units = asObject(wire?.["billed_units"]) ?? asObject(wire?.["tokens"]);
  if (!units) return null;
  const usage = emptyUsage();
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
  const asked = request.messages[last];
  return {
    model: call.model,
    message: asked ? textOf(asked) : "",
    chat_history: history.map((message) => ({ role: ROLES[message.role], message: textOf(message) })),
    stream: call.isStream,
    ...cohereSettings(request),
  };
}

export function decodeV1(): ByteDecoder<CanonicalEvent> {
  const events = createTextEvents();
  return jsonLines<CanonicalEvent>(
    (wire) => {
      const type = asString(wire["event_type"]);
      const isEnd = wire["is_finished"] === true;
      const message = asString(wire["message"]);
      if (message !== undefined && type === undefined) return events.fail(500, "error", message);
      if (!isEnd) return events.text(asString(wire["text"]) ?? "");
      const raw = asString(wire["finish_reason"]) ?? "COMPLETE";
      if (raw === "ERROR") return events.fail(502, "error", asString(wire["error"]) ?? "ERROR");
      const response = asObject(wire["response"]);
      const usage = cohereUsage(response?.["meta"] ?? response?.["token_count"]);
      return events.finish(cohereFinish(raw), raw, usage);
    },
    () => events.end(),
  );
}

export function answerV1(body: JsonObject): Answer {
  const events = createTextEvents(asString(body["generation_id"]));
  const raw = asString(body["finish_reason"]) ?? "COMPLETE";
  return collect([
    ...events.text(asString(body["text"]) ?? ""),
    ...events.finish(cohereFinish(raw), raw, cohereUsage(body["meta"])),
  ]);
}
