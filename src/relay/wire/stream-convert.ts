// A stream converted to the client's dialect while it passes: frames in, canonical events between, the client's frames out.
// Never lets the end out early: the closing frames are made when the call has been settled.
import type {
  MeterState,
  StreamDecoder,
  StreamEncoder,
  StreamMeter,
  WireFrame,
} from "../../protocol/dialect.ts";
import { newMeterState } from "../../protocol/dialect.ts";
import type {
  CanonicalEvent,
  FinishEvent,
  OpenEvent,
  StartEvent,
  UsageEvent,
} from "../../protocol/events.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { isNoise } from "./framing.ts";

/** A meter that also writes what the client gets in place of the upstream's frames. */
export interface StreamConversion extends StreamMeter {
  /** Frames for the client since the last call; "" = none. */
  take(): string;
  /** The upstream closed: what is still due is written. */
  end(): void;
  /** Usage that the upstream reported on the way, for streams that never come to its final report. */
  usageSoFar(): Usage | null;
  /** The closing frames of a complete stream; `usage` as charged, where the upstream reported none. */
  tail(usage: Usage | undefined): string;
  /** Everything up to this length of the output is paid: what waited is written, what comes behind it waits. */
  pay(chars: number): void;
  /** UTF-16 length of the output that was written. */
  writtenChars(): number;
  /** The closing frames of a stream that ends as if it had reached its limit, with the charged usage. */
  cut(usage: Usage, choices: number): string;
  /** The closing frames of a stream that failed. */
  fail(failure: Failure): string;
  /** Media type of the client's stream. */
  readonly contentType: string;
}

export interface ConversionOptions {
  decoder: StreamDecoder;
  encoder: StreamEncoder;
  contentType: string;
  /** Sees every piece of output; may throw to stop the stream. */
  onText?: ((delta: string) => void) | undefined;
  /** Thinking goes to the client as ordinary text between tags, for clients that know no thinking. */
  thinkingAsText?: boolean;
  /** Only the fields of the client's dialect: what the upstream invented besides is left out. */
  isStrict?: boolean;
}

const THINKING_BEGIN = "<think>\n";
const THINKING_END = "\n</think>\n";

interface ThinkingAsText {
  readonly open: OpenEvent;
  /** Its first text was written. */
  isBegun: boolean;
}

/** One conversion under way. */
interface ConversionState {
  readonly options: ConversionOptions;
  readonly meter: MeterState;
  /** Frames that were not taken yet. */
  out: string;
  usageEvent: UsageEvent | undefined;
  finishEvent: FinishEvent | undefined;
  /** Place of the block that the client knows to be open. */
  openAt: number | undefined;
  /** Output up to which everything is written at once; what comes behind waits until it is paid. */
  pauseAt: number;
  waiting: CanonicalEvent[] | undefined;
  writtenChars: number;
  /** Thinking blocks that are written as text, by their place. */
  readonly thinkingBlocks: Map<number, ThinkingAsText>;
}

export function createConversion(options: ConversionOptions): StreamConversion {
  const { decoder, encoder } = options;
  const state: ConversionState = {
    options,
    meter: newMeterState(),
    out: "",
    usageEvent: undefined,
    finishEvent: undefined,
    openAt: undefined,
    pauseAt: Infinity,
    waiting: undefined,
    writtenChars: 0,
    thinkingBlocks: new Map(),
  };
  return {
    state: state.meter,
    contentType: options.contentType,
    push: (frame: WireFrame) => convertEvents(state, decoder.push(frame)),
    take() {
      const text = state.out;
      state.out = "";
      return text;
    },
    end: () => convertEvents(state, decoder.end()),
    usageSoFar: () => decoder.usageSoFar() ?? state.meter.usage,
    tail: (charged) => completeTail(state, charged),
    writtenChars: () => state.writtenChars,
    pay: (chars) => payUpTo(state, chars),
    cut: (usage, choices) => cutTail(state, usage, choices),
    fail: (failure) => encoder.push({ type: "fail", failure }),
  };
}

function convertEvents(state: ConversionState, events: readonly CanonicalEvent[]): void {
  for (const event of events) {
    if (state.meter.failure) return;
    convertEvent(state, event);
  }
}

/** Meters the event, and passes it on where it does not belong to the stream's end. */
function convertEvent(state: ConversionState, event: CanonicalEvent): void {
  const { meter, options } = state;
  switch (event.type) {
    case "start":
      if (event.usage) meter.usage = event.usage;
      pass(state, options.isStrict === true ? withoutExtra(event) : event);
      return;
    case "text":
    case "json":
      meter.sawText = true;
      meter.textChars += event.delta.length;
      if (meter.textChars > state.pauseAt) state.waiting ??= [];
      else state.writtenChars = meter.textChars;
      options.onText?.(event.delta);
      pass(state, event);
      return;
    case "bytes":
      meter.sawText = true;
      pass(state, event);
      return;
    case "open":
      // A call is an act of the model; other blocks may turn out empty.
      if (event.kind === "tool-call" || event.kind === "hosted-tool") meter.sawOther = true;
      pass(state, event);
      return;
    case "note":
    case "opaque":
      if (event.at !== undefined) meter.sawOther = true;
      pass(state, event);
      return;
    case "usage":
      state.usageEvent = event;
      if (event.usage.raw !== undefined) {
        meter.usage = event.usage;
        meter.usageFinal = event.isProvisional !== true;
      }
      return;
    case "finish":
      state.finishEvent = event;
      meter.ended = true;
      if (event.reason !== "stop" && event.raw !== null) meter.sawOther = true;
      return;
    case "fail":
      meter.failure ??= event.failure;
      return;
    default:
      pass(state, event);
  }
}

function pass(state: ConversionState, event: CanonicalEvent): void {
  if (state.waiting) state.waiting.push(event);
  else write(state, event);
}

function write(state: ConversionState, event: CanonicalEvent): void {
  if (event.type === "open") state.openAt = event.at;
  else if (event.type === "close") state.openAt = undefined;
  state.out += encode(state, event);
}

function encode(state: ConversionState, event: CanonicalEvent): string {
  const { options, thinkingBlocks } = state;
  if (options.thinkingAsText !== true) return options.encoder.push(event);
  if (event.type === "open" && event.kind === "thinking") {
    thinkingBlocks.set(event.at, { open: event, isBegun: false });
    return "";
  }
  const block = "at" in event && event.at !== undefined ? thinkingBlocks.get(event.at) : undefined;
  return block ? encodeThinkingAsText(options, block, event) : options.encoder.push(event);
}

/** Thoughts between tags; a block without any, which holds no more than a proof, is nothing to a client that knows none. */
function encodeThinkingAsText(
  { encoder }: ConversionOptions,
  block: ThinkingAsText,
  event: CanonicalEvent,
): string {
  const { at } = block.open;
  if (event.type === "close" && block.isBegun)
    return encoder.push({ type: "text", at, delta: THINKING_END }) + encoder.push(event);
  if (event.type !== "text" || event.delta === "") return "";
  const begin = block.isBegun
    ? ""
    : encoder.push({ ...block.open, kind: "text" }) +
      encoder.push({ type: "text", at, delta: THINKING_BEGIN });
  block.isBegun = true;
  return begin + encoder.push(event);
}

function payUpTo(state: ConversionState, chars: number): void {
  const due = state.waiting;
  state.pauseAt = chars;
  state.waiting = undefined;
  state.writtenChars = state.meter.textChars;
  for (const event of due ?? []) write(state, event);
}

function completeTail(state: ConversionState, charged: Usage | undefined): string {
  const { encoder } = state.options;
  const usage =
    state.meter.usageFinal && state.usageEvent ? state.usageEvent.usage : (charged ?? emptyUsage());
  const finish: FinishEvent = state.finishEvent ?? { type: "finish", reason: "other", raw: null };
  return encoder.push({ type: "usage", usage }) + encoder.push(finish);
}

function cutTail(state: ConversionState, usage: Usage, choices: number): string {
  const { openAt } = state;
  const { encoder } = state.options;
  const close = openAt === undefined ? "" : encode(state, { type: "close", at: openAt });
  const finish: FinishEvent = { type: "finish", reason: "length", raw: null };
  if (choices > 1)
    finish.others = Array.from({ length: choices - 1 }, (_, at) => ({
      choice: at + 1,
      reason: "length",
      raw: null,
    }));
  return close + encoder.push({ type: "usage", usage }) + encoder.push(finish);
}

function withoutExtra({ extra: _extra, ...event }: StartEvent): StartEvent {
  return event;
}

/** How the elements of a JSON array say what has no place in the upstream's own chunks. */
export interface ArrayElements {
  saysNothing(frame: WireFrame): boolean;
  failure(failure: Failure): string;
  /** The end of a stream that reached the limit of the balance. */
  limit(usage: Usage): string;
}

/**
 * A Gemini stream for clients that did not ask for events: the upstream's own chunks, as the elements of one JSON array.
 */
export function createArrayFraming(meter: StreamMeter, elements: ArrayElements): StreamConversion {
  const { state } = meter;
  let out = "";
  let isFirst = true;
  const element = (text: string): string => {
    const lead = isFirst ? "[" : ",\r\n";
    isFirst = false;
    return lead + text;
  };
  /** Chunks from the finishing one on: they leave when the call is settled. */
  let held = "";
  let pauseAt = Infinity;
  let waiting: string[] | undefined;
  let writtenChars = 0;
  const write = (data: string): void => {
    writtenChars = state.textChars;
    if (state.ended) held += element(data);
    else out += element(data);
  };
  return {
    state,
    contentType: "application/json",
    push(frame) {
      // Also [DONE], which is no word of Google's and no element.
      if (isNoise(frame.data)) return;
      meter.push(frame);
      if (state.failure) return;
      if (!state.sawText && !state.sawOther) state.sawOther = !elements.saysNothing(frame);
      if (state.textChars > pauseAt) waiting ??= [];
      if (waiting) waiting.push(frame.data);
      else write(frame.data);
    },
    writtenChars: () => writtenChars,
    pay(chars) {
      pauseAt = chars;
      const due = waiting;
      waiting = undefined;
      for (const data of due ?? []) write(data);
    },
    cut: (usage) => `${element(elements.limit(usage))}]`,
    take() {
      const text = out;
      out = "";
      return text;
    },
    end: () => {},
    usageSoFar: () => state.usage,
    tail: () => `${held}${isFirst ? "[" : ""}]`,
    fail: (failure) => `${element(elements.failure(failure))}]`,
  };
}
