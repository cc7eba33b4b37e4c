// A stream told in another dialect while it passes: frames in, canonical events between, the client's frames out.
// Refuses to let the end out early: the closing frames are made when the call has been settled.
import type {
  MeterState,
  StreamDecoder,
  StreamEncoder,
  StreamMeter,
  WireFrame,
} from "../../protocol/dialect.ts";
import { newMeterState } from "../../protocol/dialect.ts";
import type { CanonicalEvent, FinishEvent, StartEvent, UsageEvent } from "../../protocol/events.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import { emptyUsage } from "../../shared/usage.ts";

/** A meter that also writes: what the client gets in place of the upstream's frames. */
export interface StreamConversion extends StreamMeter {
  /** Frames for the client since the last call; "" = none. */
  take(): string;
  /** The upstream closed: what is still due is told. */
  end(): void;
  /** Usage that the upstream told on the way; for streams that never come to its last word. */
  usageSoFar(): Usage | null;
  /** The closing frames of a whole stream; `usage` as charged, where the upstream reported none. */
  tail(usage: Usage | undefined): string;
  /** Everything up to this length of the output is paid: what waited is told, what comes behind it waits. */
  pay(chars: number): void;
  /** UTF-16 length of the output that was told. */
  toldChars(): number;
  /** The closing frames of a stream that ends as if it had reached its limit, with the charged usage. */
  cut(usage: Usage, choices: number): string;
  /** The closing frames of a stream that failed. */
  fail(failure: Failure): string;
  /** Keeps a silent connection alive without meaning anything. */
  readonly ping: string;
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

export function createConversion(options: ConversionOptions): StreamConversion {
  const { decoder, encoder, onText } = options;
  const state: MeterState = newMeterState();
  let out = "";
  let usageEvent: UsageEvent | undefined;
  let finishEvent: FinishEvent | undefined;
  /** Place of the block that the client knows to be open. */
  let openAt: number | undefined;
  /** Output up to which everything is told at once; what comes behind waits until it is paid. */
  let pauseAt = Infinity;
  let waiting: CanonicalEvent[] | undefined;
  let toldChars = 0;
  /** Places of thinking blocks that are told as text. */
  const retold = new Set<number>();

  function tell(event: CanonicalEvent): void {
    if (waiting) waiting.push(event);
    else say(event);
  }

  function say(event: CanonicalEvent): void {
    if (event.type === "open") openAt = event.at;
    else if (event.type === "close") openAt = undefined;
    if (options.thinkingAsText === true) out += retell(event);
    else out += encoder.push(event);
  }

  function retell(event: CanonicalEvent): string {
    if (event.type === "open" && event.kind === "thinking") {
      retold.add(event.at);
      return (
        encoder.push({ ...event, kind: "text" }) +
        encoder.push({ type: "text", at: event.at, delta: THINKING_BEGIN })
      );
    }
    if ("at" in event && event.at !== undefined && retold.has(event.at)) {
      if (event.type === "note" || event.type === "opaque") return "";
      if (event.type === "close")
        return encoder.push({ type: "text", at: event.at, delta: THINKING_END }) + encoder.push(event);
    }
    return encoder.push(event);
  }

  function handle(event: CanonicalEvent): void {
    switch (event.type) {
      case "start":
        if (event.usage) state.usage = event.usage;
        tell(options.isStrict === true ? withoutExtra(event) : event);
        return;
      case "text":
      case "json":
        state.sawText = true;
        state.textChars += event.delta.length;
        if (state.textChars > pauseAt) waiting ??= [];
        else toldChars = state.textChars;
        onText?.(event.delta);
        tell(event);
        return;
      case "bytes":
        state.sawText = true;
        tell(event);
        return;
      case "usage":
        usageEvent = event;
        if (event.usage.raw !== undefined) {
          state.usage = event.usage;
          state.usageFinal = event.isProvisional !== true;
        }
        return;
      case "finish":
        finishEvent = event;
        state.ended = true;
        return;
      case "fail":
        state.failure ??= event.failure;
        return;
      default:
        tell(event);
    }
  }

  function run(events: readonly CanonicalEvent[]): void {
    for (const event of events) {
      if (state.failure) return;
      handle(event);
    }
  }

  return {
    state,
    ping: encoder.push({ type: "ping" }),
    contentType: options.contentType,
    push: (frame: WireFrame) => run(decoder.push(frame)),
    take() {
      const text = out;
      out = "";
      return text;
    },
    end: () => run(decoder.end()),
    usageSoFar: () => decoder.usageSoFar() ?? state.usage,
    tail(charged) {
      const usage = state.usageFinal && usageEvent ? usageEvent.usage : (charged ?? emptyUsage());
      const finish: FinishEvent = finishEvent ?? { type: "finish", reason: "other", raw: null };
      return encoder.push({ type: "usage", usage }) + encoder.push(finish);
    },
    toldChars: () => toldChars,
    pay(chars) {
      pauseAt = chars;
      const due = waiting;
      waiting = undefined;
      toldChars = state.textChars;
      for (const event of due ?? []) say(event);
    },
    cut(usage, choices) {
      const close = openAt === undefined ? "" : encoder.push({ type: "close", at: openAt });
      const finish: FinishEvent = { type: "finish", reason: "length", raw: null };
      if (choices > 1)
        finish.others = Array.from({ length: choices - 1 }, (_, at) => ({
          choice: at + 1,
          reason: "length",
          raw: null,
        }));
      return close + encoder.push({ type: "usage", usage }) + encoder.push(finish);
    },
    fail: (failure) => encoder.push({ type: "fail", failure }),
  };
}

function withoutExtra({ extra: _extra, ...event }: StartEvent): StartEvent {
  return event;
}

/**
 * A Gemini stream for clients that did not ask for events: the upstream's own chunks, as the elements of one JSON array.
 */
export function createArrayFraming(
  meter: StreamMeter,
  failureBody: (failure: Failure) => unknown,
  limitBody: (usage: Usage) => string,
): StreamConversion {
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
  let toldChars = 0;
  const say = (data: string): void => {
    toldChars = state.textChars;
    if (state.ended) held += element(data);
    else out += element(data);
  };
  return {
    state,
    ping: "\r\n",
    contentType: "application/json",
    push(frame) {
      meter.push(frame);
      if (state.failure) return;
      if (state.textChars > pauseAt) waiting ??= [];
      if (waiting) waiting.push(frame.data);
      else say(frame.data);
    },
    toldChars: () => toldChars,
    pay(chars) {
      pauseAt = chars;
      const due = waiting;
      waiting = undefined;
      for (const data of due ?? []) say(data);
    },
    cut: (usage) => `${element(limitBody(usage))}]`,
    take() {
      const text = out;
      out = "";
      return text;
    },
    end: () => {},
    usageSoFar: () => state.usage,
    tail: () => `${held}${isFirst ? "[" : ""}]`,
    fail: (failure) => `${element(JSON.stringify(failureBody(failure)))}]`,
  };
}
