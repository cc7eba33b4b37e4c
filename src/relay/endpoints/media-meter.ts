// Reads usage, end and errors out of the event streams of speech, transcription and pictures as they pass.
// Refuses to parse frames of sound and pixels, which are large and say nothing to a meter.
import { isError, readErrorBody, upstreamFailure } from "../../protocol/classify.ts";
import { newMeterState } from "../../protocol/dialect.ts";
import type { MeterOptions, StreamMeter, WireFrame } from "../../protocol/dialect.ts";
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { decodeUsage } from "../../protocol/openai-chat/usage.ts";

/** Types of events that carry sound or pixels and never usage. */
const BULK = /^\{\s*"type"\s*:\s*"(?:speech\.audio\.delta|[\w.]*partial_image)"/;
/** Types that end a stream: speech.audio.done, transcript.text.done, image_generation.completed and the like. */
const FINAL = /\.(?:done|completed)$/;

export function mediaMeter(options: MeterOptions = {}): StreamMeter {
  const state = newMeterState();
  return {
    state,
    push({ event, data }: WireFrame) {
      if (data.trim() === "[DONE]") {
        state.ended = true;
        return;
      }
      if (BULK.test(data)) {
        state.sawText = true;
        return;
      }
      const json = asObject(parseJson(data));
      if (!json) return;
      if (isError(json["error"]) || event === "error" || json["type"] === "error") {
        state.failure ??= upstreamFailure({ status: 200, ...readErrorBody(json) });
        return;
      }
      const delta = asString(json["delta"]);
      if (delta !== undefined && delta !== "") {
        state.sawText = true;
        state.textChars += delta.length;
        options.onText?.(delta);
      }
      const isFinal = FINAL.test(asString(json["type"]) ?? event);
      const usage = decodeUsage(json["usage"]);
      if (usage) {
        state.usage = usage;
        state.usageFinal = isFinal;
      }
      if (isFinal) {
        state.ended = true;
        state.sawText = true;
      }
    },
  };
}
