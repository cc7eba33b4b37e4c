// Reads usage, ends and errors out of a chat completions stream whose bytes go to the client untouched.
// Refuses to build anything per frame: common frames are read by position, only telling ones are parsed.
import { hasError, readErrorBody, upstreamFailure } from "../classify.ts";
import { newMeterState } from "../dialect.ts";
import type { MeterOptions, MeterState, StreamMeter, WireFrame } from "../dialect.ts";
import { asList, asObject, asString, asText, parseJson } from "../json.ts";
import { plainShapeOf, plainTextLength } from "../plain-frames.ts";
import type { PlainShape } from "../plain-frames.ts";
import { decodeUsage } from "./usage.ts";

const CONTENT = '"delta":{"content":"';
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/** Whatever is cut off, or has something around it, does not go on to clients as it is. */
function isWholeObject(data: string): boolean {
  return data.charCodeAt(0) === OPENING_BRACE && data.charCodeAt(data.length - 1) === CLOSING_BRACE;
}
const DONE = "[DONE]";
/** Longer data is no end line, whatever blanks are around it. */
const MAX_DONE_CHARS = 32;

/** What OpenAI hides the length of words by: it differs from frame to frame, and says nothing. */
const FILLER = ',"obfuscation":"';
const FILLER_END = '"}';

/** The end of a plain frame up to its filler; all of it where there is none. */
function withoutFiller(behind: string): string {
  const at = behind.lastIndexOf(FILLER);
  if (at === -1) return behind;
  const from = at + FILLER.length;
  return behind.indexOf('"', from) === behind.length - FILLER_END.length ? behind.slice(0, from) : behind;
}

/** Measures frames that carry nothing but content, by position. */
function createPlainMeter(state: MeterState): {
  skim: NonNullable<StreamMeter["skim"]>;
  measure: (frame: WireFrame) => boolean;
} {
  /** What stood before and behind the content of the last plain frame: within a stream it is mostly the same. */
  let before = "";
  let behind = "";
  /** Behind it comes a filler. */
  let hasFiller = false;
  /** The same as bytes, once two frames after each other had it; null where their bytes are none to go by. */
  let shape: PlainShape | null | undefined;

  const add = (length: number): void => {
    if (length <= 0) return;
    state.sawText = true;
    state.textChars += length;
  };

  /** The same frame as the last one but for its content. */
  const measureAlike = (data: string): boolean => {
    const from = before.length;
    if (from === 0 || !data.startsWith(before)) return false;
    // What is behind begins with the closing quote, which has to be the first one.
    const to = data.indexOf('"', from);
    if (to === -1 || data.charCodeAt(to - 1) === BACKSLASH || !data.startsWith(behind, to)) return false;
    const end = to + behind.length;
    if (hasFiller ? data.indexOf('"', end) !== data.length - FILLER_END.length : end !== data.length)
      return false;
    if (hasFiller && !data.endsWith(FILLER_END)) return false;
    add(to - from);
    return true;
  };

  /** The plain content frame of every compatible upstream, measured between its quotes; false when it is another. */
  const measure = (data: string): boolean => {
    const at = data.indexOf(CONTENT);
    if (at === -1) return false;
    const from = at + CONTENT.length;
    const to = data.indexOf('"', from);
    // An escaped quote inside: leave it to the parser.
    if (to === -1 || data.charCodeAt(to - 1) === BACKSLASH) return false;
    // Exactly the end of the delta, else there is more in it than content.
    if (data.charCodeAt(to + 1) !== 0x7d) return false;
    if (data.indexOf('"finish_reason":"', to) !== -1 || data.indexOf('"usage":{') !== -1) return false;
    if (data.indexOf('"error":{') !== -1 || data.indexOf(CONTENT, to) !== -1) return false;
    before = data.slice(0, from);
    const rest = data.slice(to);
    behind = withoutFiller(rest);
    hasFiller = behind !== rest;
    shape = undefined;
    add(to - from);
    return true;
  };

  const shapeOf = (bytes: Uint8Array): PlainShape | null => {
    const head = `data: ${before}`;
    return hasFiller
      ? plainShapeOf(bytes, {
          fixed: [head, behind, `${FILLER_END}\n\n`],
          holes: ["text", "filler"],
          escapes: "written",
        })
      : plainShapeOf(bytes, { fixed: [head, `${behind}\n\n`], holes: ["text"], escapes: "written" });
  };

  /** As `measure`, for a frame whose bytes are at hand: the next of its kind need not be decoded. */
  const measureFrame = ({ data, bytes }: WireFrame): boolean => {
    if (!measureAlike(data)) return measure(data);
    if (shape === undefined && bytes !== undefined) shape = isWholeObject(data) ? shapeOf(bytes) : null;
    return true;
  };

  const skim = (bytes: Uint8Array, mostUnits: number): number => {
    if (!shape || state.ended || state.failure !== null) return -1;
    const length = plainTextLength(shape, bytes);
    if (length <= 0 || length > mostUnits) return -1;
    state.lastWasUsageOnly = false;
    add(length);
    return Math.max(0, shape.textBytes - length);
  };

  return { measure: measureFrame, skim };
}

/** Also reads legacy completions streams, whose choices carry `text`. */
export function meterStream(options: MeterOptions = {}): StreamMeter {
  const state = newMeterState();
  const { onText } = options;

  const saw = (text: unknown): void => {
    if (typeof text !== "string" || text === "") return;
    state.sawText = true;
    state.textChars += text.length;
    onText?.(text);
  };

  const plain = createPlainMeter(state);

  const readDelta = (delta: Record<string, unknown>): void => {
    if (typeof delta["content"] === "string") saw(delta["content"]);
    else for (const part of asList(delta["content"])) saw(asObject(part)?.["text"]);
    saw(delta["reasoning_content"] ?? delta["reasoning"]);
    saw(delta["refusal"]);
    saw(asObject(delta["audio"])?.["transcript"]);
    for (const call of asList(delta["tool_calls"])) {
      const item = asObject(call);
      const inner = asObject(item?.["function"]) ?? asObject(item?.["custom"]);
      saw(inner?.["name"]);
      const args = inner?.["arguments"] ?? inner?.["input"];
      if (args !== undefined && args !== null) saw(asText(args));
    }
  };

  return {
    state,
    // Whoever wants the text has every frame decoded.
    skim: onText ? undefined : plain.skim,
    push(frame: WireFrame) {
      state.lastWasUsageOnly = false;
      const { data } = frame;
      if (data.length <= MAX_DONE_CHARS && data.trim() === DONE) {
        state.ended = true;
        state.usageFinal = state.usage !== null;
        return;
      }
      if (!onText && frame.event !== "error" && plain.measure(frame)) return;
      const chunk = asObject(parseJson(data));
      if (!chunk) return;
      if (hasError(chunk, "choices") || frame.event === "error") {
        state.failure ??= upstreamFailure({ status: 200, ...readErrorBody(chunk) });
        return;
      }
      const choices = asList(chunk["choices"]);
      let finished = false;
      for (const value of choices) {
        const choice = asObject(value);
        const delta = asObject(choice?.["delta"]);
        if (delta) readDelta(delta);
        saw(choice?.["text"]);
        if (asString(choice?.["finish_reason"])) finished = true;
      }
      if (finished) state.ended = true;
      const usage = decodeUsage(chunk["usage"]);
      if (usage) {
        const tier = asString(chunk["service_tier"]);
        if (tier !== undefined) state.servedTier = tier;
        state.usage = usage;
        // Some count on every chunk: only what comes with the end, or as the frame that carries nothing else, is the bill.
        state.usageFinal = state.ended || choices.length === 0;
      }
      state.lastWasUsageOnly = asObject(chunk["usage"]) !== undefined && choices.length === 0;
    },
  };
}
