// Reads usage, ends and errors out of a Messages stream whose bytes go to the client untouched.
// Refuses to decode a delta that is the last one again but for its text.
import type { JsonObject } from "../canonical.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import { newMeterState } from "../dialect.ts";
import type { MeterOptions, StreamMeter } from "../dialect.ts";
import { asObject, asString, parseJson } from "../json.ts";
import { createPlainDeltas } from "../plain-deltas.ts";
import { decodeUsage, mergeUsage } from "./usage.ts";

/** The text of a delta's data, by the kinds of delta. */
function textOf(wire: JsonObject): unknown {
  const delta = asObject(wire["delta"]);
  return delta?.["text"] ?? delta?.["thinking"] ?? delta?.["partial_json"];
}

/** Reads a Messages stream whose bytes go to the client untouched. */
export function meterStream(options: MeterOptions = {}): StreamMeter {
  const state = newMeterState();
  let usage: JsonObject | undefined;
  let hasTotals = false;
  const plain = createPlainDeltas(state, { textOf });
  const saw = (text: unknown): void => {
    if (typeof text !== "string" || text === "") return;
    state.sawText = true;
    state.textChars += text.length;
    options.onText?.(text);
  };
  return {
    state,
    // Whoever wants the text has every frame decoded.
    skim: options.onText ? undefined : plain.skim,
    push(frame) {
      // The event's name tells whether its data matter; only frames without a name are parsed blindly.
      if (frame.event === "ping" || frame.event === "content_block_stop") return;
      const wire = asObject(parseJson(frame.data));
      if (!wire) return;
      switch (wire["type"] ?? frame.event) {
        case "content_block_delta": {
          const text = textOf(wire);
          saw(text);
          if (!options.onText) plain.learn(frame, text);
          return;
        }
        case "message_start":
          usage = asObject(asObject(wire["message"])?.["usage"]);
          state.usage = decodeUsage(usage);
          return;
        case "content_block_start": {
          const block = asObject(wire["content_block"]);
          if (block?.["name"] === "web_search" && block["type"] === "server_tool_use")
            state.webSearchCalls += 1;
          saw(block?.["type"] === "tool_use" ? block["name"] : block?.["text"]);
          return;
        }
        case "message_delta":
          usage = mergeUsage(usage, wire["usage"]);
          state.usage = decodeUsage(usage);
          hasTotals ||= asObject(wire["usage"]) !== undefined;
          // More than one may come: the one that says why it stopped has the last word.
          state.usageFinal =
            hasTotals &&
            state.usage !== null &&
            asString(asObject(wire["delta"])?.["stop_reason"]) !== undefined;
          return;
        case "message_stop":
          state.ended = true;
          state.usageFinal = hasTotals && state.usage !== null;
          return;
        case "error":
          state.failure ??= upstreamFailure({ status: 200, ...readErrorBody(wire) });
          return;
      }
    },
  };
}
