// What of an upstream's events goes on to the client, as it came or converted, and where the stream has to stop.
// Never passes on the terminal frame, nor an event that is not surely paid.
import { brokenStream } from "../../protocol/assemble.ts";
import { createSseReader, isNoise, unlisted } from "./framing.ts";
import type { SseEvent } from "./framing.ts";
import { keylessEvents } from "./keyless.ts";
import type { PassedFrame, Unpaid } from "./stream-allowance.ts";
import type { StreamConversion } from "./stream-convert.ts";
import type { StreamEnd } from "./stream-end.ts";
import { encoder, hasContent, stop } from "./stream-state.ts";
import type { StreamState } from "./stream-state.ts";

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const LOWER_D = 0x64;
const DONE = "[DONE]";
const NONE: readonly string[] = [];
/** Longer data is no end line, whatever blanks are around it. */
const MAX_DONE_CHARS = 32;

/** What of one chunk goes on to the client; undefined = nothing. */
export function passChunk(stream: StreamState, chunk: Uint8Array): Uint8Array | undefined {
  const { sse, options } = stream;
  if (options.conversion) return convertChunk(stream, options.conversion, chunk);
  if (isPlain(stream, chunk)) {
    stream.lastPlain = chunk;
    return chunk;
  }
  const wasCarried = stream.carriedBytes;
  const read = sse.push(chunk);
  if (read.length === 0) {
    stream.carriedBytes += chunk.length;
    // A comment is the upstream's sign of life: pass the sign on, its bytes come with the next event.
    return wasCarried === 0 && chunk[0] === COLON ? options.ping : undefined;
  }
  let taken = 0;
  for (const event of read) taken += event.bytes?.length ?? 0;
  stream.carriedBytes += chunk.length - taken;
  const kept = sift(stream, said(stream, read));
  if (kept !== read || wasCarried !== 0 || stream.carriedBytes !== 0) return joined(stream, kept);
  notePassed(stream, kept);
  return chunk;
}

/** What the events say, each one thing, without the secrets of the key; the same list where that changes nothing. */
function said({ options }: StreamState, read: readonly SseEvent[]): readonly SseEvent[] {
  return unlisted(keylessEvents(read, options.secrets ?? NONE));
}

/**
 * Whether the chunk is whole events that say nothing but more text, in the form of the last one: nearly all are, and go on
 * as they came, metered by their bytes. What passes the hold is read, because it may have to wait.
 */
function isPlain({ options, hold, sse }: StreamState, chunk: Uint8Array): boolean {
  const { meter } = options;
  if (meter.skim === undefined || !sse.isBetween()) return false;
  return meter.skim(chunk, hold.freeChars - meter.state.textChars) !== -1;
}

/**
 * Meters the events and drops those the client must not see; stops at the terminal one, and before one that is not
 * surely paid. `paidAt`: an event that was metered, and paid since; those before it have gone on.
 */
function sift(stream: StreamState, events: readonly SseEvent[], paidAt = -1): readonly SseEvent[] {
  const { meter, hidesUsage, dataOnly } = stream.options;
  const { state } = meter;
  let kept: SseEvent[] | undefined = paidAt === -1 ? undefined : [];
  for (let i = Math.max(0, paidAt); i < events.length; i++) {
    let event = events[i] as SseEvent;
    if (dataOnly === true && !isDataLine(event)) {
      kept ??= events.slice(0, i);
      event = asDataLine(event);
    }
    if (i !== paidAt) {
      const before = state.textChars;
      meter.push(event);
      if (stream.waits && !hasContent(stream)) state.sawOther = isContent(stream, event);
      if (state.textChars > stream.hold.freeChars && !stream.isEof) {
        stream.unpaid = { events, at: i, before };
        return kept ?? events.slice(0, i);
      }
    }
    const ending = endingBy(stream, event);
    if (ending !== undefined) {
      kept ??= events.slice(0, i);
      if (ending === "last") return kept;
    } else if (isNoise(event.data) || (hidesUsage && state.lastWasUsageOnly)) kept ??= events.slice(0, i);
    else kept?.push(event);
  }
  return kept ?? events;
}

/** Whether the event says something of the answer, and no word of it was seen before. */
function isContent({ options }: StreamState, event: SseEvent): boolean {
  const { meter, saysNothing } = options;
  return meter.state.failure === null && !isNoise(event.data) && saysNothing?.(event) !== true;
}

/** Whether the event is one data line and the blank line behind it, and nothing else: no comment, name, or second line. */
function isDataLine({ event, bytes }: SseEvent): boolean {
  if (event !== "" || !bytes || bytes[0] !== LOWER_D || bytes[5] !== SPACE) return false;
  const lf = bytes.indexOf(LF);
  // Google's own lines end in CR LF, those of most others in LF.
  return lf !== -1 && bytes.length === lf + (bytes[lf - 1] === CR ? 3 : 2) && bytes[bytes.length - 1] === LF;
}

/** The event as Google writes its own; line ends between JSON's tokens mean nothing. */
function asDataLine({ data }: SseEvent): SseEvent {
  const line = data.replaceAll("\n", " ");
  return { event: "", data: line, bytes: encoder.encode(`data: ${line}\r\n\r\n`) };
}

/** Whether the event is the last of the stream, or is held back until the body ends; undefined: it is neither. */
function endingBy(stream: StreamState, { data, bytes }: SseEvent): "last" | "held" | undefined {
  const { state } = stream.options.meter;
  if (data.length <= MAX_DONE_CHARS && data.trim() === DONE) {
    // No word of Google's, and without a reason no end of its streams.
    if (stream.options.dataOnly !== true) stream.held.push(bytes as Uint8Array);
    else if (!state.ended) return undefined;
    stop(stream, "completed");
    return "last";
  }
  if (state.failure) {
    stop(stream, "error-in-stream", state.failure);
    return "last";
  }
  if (!state.ended || stream.terminal === "done-line") return undefined;
  stream.held.push(bytes as Uint8Array);
  // Gemini's usage may follow its finishing chunk: those streams are complete when the body ends.
  if (stream.terminal === "end-of-body") return "held";
  stop(stream, "completed");
  return "last";
}

function joined(stream: StreamState, kept: readonly SseEvent[]): Uint8Array | undefined {
  if (kept.length === 0) return undefined;
  notePassed(stream, kept);
  return Buffer.concat(kept.map((event) => event.bytes as Uint8Array));
}

/** Notes what the client has of the stream. */
function notePassed(stream: StreamState, kept: readonly PassedFrame[]): void {
  stream.firstPassed ??= kept[0];
  if (kept.length === 1 && kept[0]?.event === "ping") return;
  stream.lastPassed = kept;
  stream.lastPlain = undefined;
}

/** The last frame that the client has and that says something. */
function lastFrame({ lastPlain, lastPassed }: StreamState): PassedFrame | undefined {
  if (lastPlain) return createSseReader().push(lastPlain).at(-1);
  return lastPassed.findLast(({ event }) => event !== "ping");
}

/** As `passChunk`, for a stream that the client gets in another form. */
function convertChunk(
  stream: StreamState,
  conversion: StreamConversion,
  chunk: Uint8Array,
): Uint8Array | undefined {
  const events = said(stream, stream.sse.push(chunk));
  convertEvents(stream, conversion, events);
  const text = conversion.take();
  if (text !== "") return encoder.encode(text);
  return events.length === 0 && chunk[0] === COLON ? stream.options.ping : undefined;
}

function convertEvents(
  stream: StreamState,
  conversion: StreamConversion,
  events: readonly SseEvent[],
  from = 0,
): void {
  const { state } = conversion;
  for (let i = from; i < events.length; i++) {
    const event = events[i] as SseEvent;
    if (stream.end) return;
    if (isNoise(event.data) && event.data.trim() !== DONE) continue;
    const before = state.textChars;
    conversion.push(event);
    if (state.textChars > stream.hold.freeChars && !stream.isEof) {
      stream.unpaid = { events, at: i, before };
      return;
    }
    stopWhereConverted(stream, conversion);
  }
}

function stopWhereConverted(stream: StreamState, { state }: StreamConversion): void {
  if (state.failure) stop(stream, "error-in-stream", state.failure);
  else if (state.ended && stream.terminal !== "end-of-body") stop(stream, "completed");
}

/** The upstream's body has ended: what is left of it goes on, and how the stream ended is clear. */
export function passRest(stream: StreamState): Uint8Array | undefined {
  const { options } = stream;
  const { conversion, meter } = options;
  // What is left is part of one event at most.
  stream.isEof = true;
  const events = said(stream, stream.sse.end());
  if (conversion) {
    convertEvents(stream, conversion, events);
    if (!stream.end) conversion.end();
    // The decoder's own finding: the upstream closed before its terminal event.
    if (meter.state.failure) stop(stream, "upstream-cut", meter.state.failure);
    stopAtEof(stream);
    const text = conversion.take();
    return text === "" ? undefined : encoder.encode(text);
  }
  const kept = sift(stream, events);
  stopAtEof(stream);
  if (kept.length === 0) return undefined;
  if (options.dataOnly === true) return joined(stream, kept);
  // The last event came without its blank line, which the client needs.
  return Buffer.concat([...kept.map((event) => event.bytes as Uint8Array), encoder.encode("\n\n")]);
}

function stopAtEof(stream: StreamState): void {
  if (stream.end) return;
  if (stream.options.meter.state.ended) stop(stream, "completed");
  else stop(stream, "upstream-cut", brokenStream("the body ended without a terminal event"));
}

/** What of the counted output is delivered and paid where the stream ends before an event that is not. */
export function deliveredPart(
  { options, hold }: StreamState,
  before: number,
): Required<Pick<StreamEnd, "deliveredShare" | "paidTokens">> {
  const { conversion, meter } = options;
  const delivered = conversion ? conversion.writtenChars() : before;
  return { deliveredShare: delivered / meter.state.textChars, paidTokens: hold.paidTokens };
}

/** Lengthens the hold for the event that is not surely paid, and goes on with it; or the stream ends before it. */
export async function payAndGoOn(
  stream: StreamState,
  { events, at, before }: Unpaid,
): Promise<Uint8Array | undefined> {
  const { hold, options } = stream;
  const { conversion } = options;
  const chars = options.meter.state.textChars;
  const isPaid = await hold.cover(chars);
  // It may have been ended meanwhile; what is not paid stays so.
  if (stream.end && !isPaid) return undefined;
  const part = deliveredPart(stream, before);
  stream.unpaid = undefined;
  if (stream.end) return undefined;
  if (!isPaid) {
    stream.end = {
      reason: hold.shortOf,
      failure: undefined,
      ...part,
      first: stream.firstPassed,
      last: lastFrame(stream),
    };
    stream.timers.clear(stream.watchTimer);
    return undefined;
  }
  if (!conversion) return joined(stream, sift(stream, events, at));
  conversion.pay(hold.freeChars);
  stopWhereConverted(stream, conversion);
  convertEvents(stream, conversion, events, at + 1);
  const text = conversion.take();
  return text === "" ? undefined : encoder.encode(text);
}
