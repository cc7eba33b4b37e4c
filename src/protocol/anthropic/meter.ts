// Reads usage, ends and errors out of a Messages stream whose bytes go to the client untouched.
// Refuses to decode a delta that is the last one again but for its text.
import type { JsonObject } from "../canonical.ts";
import { readErrorBody, upstreamFailure } from "../classify.ts";
import { newMeterState } from "../dialect.ts";
import type { MeterOptions, MeterState, StreamMeter, WireFrame } from "../dialect.ts";
import { asObject, asString, parseJson } from "../json.ts";
import { plainShapeOf, plainTextLength } from "../plain-frames.ts";
import type { PlainShape } from "../plain-frames.ts";
import { decodeUsage, mergeUsage } from "./usage.ts";

/** Each block of an answer has a shape of its own; an upstream whose deltas have no common one is read. */
const MAX_SHAPES = 64;
interface PlainDeltas {
  skim: NonNullable<StreamMeter["skim"]>;
  /** A delta was read that had this text: the next may be its like. */
  learn: (frame: WireFrame, text: unknown) => void;
}

function createPlainDeltas(state: MeterState): PlainDeltas {
  let shape: PlainShape | null = null;
  let left = MAX_SHAPES;
  return {
    skim(bytes, mostUnits) {
      if (!shape || state.ended || state.failure !== null) return -1;
      const length = plainTextLength(shape, bytes);
      if (length <= 0 || length > mostUnits) return -1;
      state.sawText = true;
      state.textChars += length;
      return Math.max(0, shape.textBytes - length);
    },
    learn({ data, bytes }, text) {
      if (left === 0 || bytes === undefined || typeof text !== "string") return;
      // Where the shape is known, this was a text that had to be read.
      if (shape && plainTextLength({ ...shape, escapes: "written" }, bytes) !== -1) return;
      const at = data.lastIndexOf(`"${text}"`);
      // It has escapes: a plainer one will come.
      if (text === "" || at === -1) return;
      left--;
      shape = shapeOf(data, bytes, { from: at + 1, to: at + 1 + text.length }) ?? shape;
    },
  };
}

/** The shape of a delta whose text stands there in its data, as the event's bytes have it; null where it is not sure. */
function shapeOf(
  data: string,
  bytes: Uint8Array,
  { from, to }: Record<"from" | "to", number>,
): PlainShape | null {
  if (!data.startsWith("{") || !data.endsWith("}")) return null;
  const before = data.slice(0, from);
  const behind = data.slice(to);
  // Another text in its place has to be the delta's: the same words may stand elsewhere.
  const probe = `${data.slice(from, to)}?`;
  const delta = asObject(asObject(parseJson(before + probe + behind))?.["delta"]);
  if ((delta?.["text"] ?? delta?.["thinking"] ?? delta?.["partial_json"]) !== probe) return null;
  const event = Buffer.from(bytes).toString("utf8");
  const begin = event.indexOf(data);
  if (begin === -1) return null;
  return plainShapeOf(bytes, {
    before: event.slice(0, begin) + before,
    behind: behind + event.slice(begin + data.length),
    escapes: "read",
  });
}

/** Reads a Messages stream whose bytes go to the client untouched. */
export function meterStream(options: MeterOptions = {}): StreamMeter {
  const state = newMeterState();
  let usage: JsonObject | undefined;
  let hasTotals = false;
  const plain = createPlainDeltas(state);
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
          const delta = asObject(wire["delta"]);
          const text = delta?.["text"] ?? delta?.["thinking"] ?? delta?.["partial_json"];
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
