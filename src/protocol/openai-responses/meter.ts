// Reads usage, ends and hosted calls out of a Responses stream whose bytes go to the client untouched.
// Refuses to parse what the event's name rules out: `done` events only repeat their deltas; and to decode a delta that is the
// last one again but for its text, its number and what hides its length.
import { readErrorBody, upstreamFailure } from "../classify.ts";
import { newMeterState } from "../dialect.ts";
import type { MeterOptions, StreamMeter, WireFrame } from "../dialect.ts";
import { asObject, asString, parseJson } from "../json.ts";
import { createPlainDeltas } from "../plain-deltas.ts";
import type { DeltaForm } from "../plain-deltas.ts";
import { decodeUsage } from "./usage.ts";

const SKIPPED =
  /^response\.(?:content_part\.|output_text\.done|function_call_arguments\.done|reasoning_\w+\.done|in_progress|\w+_call\.)/;

/** Usage before the end is rare, and the frame that may carry it repeats the whole request. */
function isReportedEarly({ event, data }: WireFrame): boolean {
  return event === "response.in_progress" && data.includes('"usage":{');
}

const DELTAS: DeltaForm = {
  textOf: ({ delta }) => delta,
  varying: [
    { name: "sequence_number", hole: "digits" },
    { name: "obfuscation", hole: "filler" },
  ],
};

export function meterStream(options: MeterOptions = {}): StreamMeter {
  const state = newMeterState();
  const plain = createPlainDeltas(state, DELTAS);
  const end = (response: Record<string, unknown> | undefined): void => {
    state.ended = true;
    const id = asString(response?.["id"]);
    if (id !== undefined) state.responseId = id;
    const tier = asString(response?.["service_tier"]);
    if (tier !== undefined) state.servedTier = tier;
    const usage = decodeUsage(response?.["usage"]);
    if (usage) state.usage = usage;
    state.usageFinal = usage !== null;
    if (!state.usage) return;
    state.usage.calls.webSearch = Math.max(state.usage.calls.webSearch, state.webSearchCalls);
    state.usage.calls.fileSearch = Math.max(state.usage.calls.fileSearch, state.fileSearchCalls);
  };
  return {
    state,
    // Whoever wants the text has every frame decoded.
    skim: options.onText ? undefined : plain.skim,
    push(frame) {
      if (SKIPPED.test(frame.event) && !isReportedEarly(frame)) return;
      const wire = asObject(parseJson(frame.data));
      if (!wire) return;
      const type = asString(wire["type"]) ?? frame.event;
      if (type.endsWith(".delta")) {
        const delta = wire["delta"];
        if (typeof delta !== "string" || delta === "") return;
        state.sawText = true;
        state.textChars += delta.length;
        if (options.onText) options.onText(delta);
        else plain.learn(frame, delta);
        return;
      }
      switch (type) {
        case "response.output_item.done": {
          const kind = asObject(wire["item"])?.["type"];
          if (kind === "web_search_call") state.webSearchCalls += 1;
          else if (kind === "file_search_call") state.fileSearchCalls += 1;
          return;
        }
        case "response.completed":
        case "response.incomplete":
          end(asObject(wire["response"]));
          return;
        case "response.created":
        case "response.in_progress":
          state.usage = decodeUsage(asObject(wire["response"])?.["usage"]) ?? state.usage;
          return;
        case "response.failed":
        case "error": {
          const response = asObject(wire["response"]);
          const usage = decodeUsage(response?.["usage"]);
          if (usage) state.usage = usage;
          state.usageFinal = usage !== null;
          const body = response ? { error: response["error"] } : wire;
          state.failure ??= upstreamFailure({ status: 200, ...readErrorBody(body) });
          return;
        }
      }
    },
  };
}
