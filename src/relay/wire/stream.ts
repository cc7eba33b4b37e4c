// Relays an event stream as the upstream sends it, reading along for the meter, one chunk per demand of the client.
// Refuses a clean end for a stream that is not complete, and keeps its last bytes back until the call is settled.
import { brokenStream } from "../../protocol/assemble.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens } from "../../shared/usage.ts";
import { endOfLeaving, isCut } from "./stream-end.ts";
import type { StreamEnd } from "./stream-end.ts";
import { deliveredPart } from "./stream-pass.ts";
import { hangUp, isReadDue, readOn, take, watch } from "./stream-read.ts";
import { encoder, hasContent, newStreamState, stop } from "./stream-state.ts";
import type { StreamOptions, StreamSource, StreamState } from "./stream-state.ts";

export interface StreamRelay {
  /** Reads up to the first content; throws what another channel may make good, as long as nothing was sent. */
  begin(): Promise<void>;
  /** Ends the wait for content: the client has got a sign of life, or has left. What waits goes on. */
  readonly release: () => void;
  /** `nowMs` of the timers when the first content came; undefined while none has. */
  contentMs(): number | undefined;
  /** The client's body. `signal` fires when the client leaves. */
  body(signal: AbortSignal): ReadableStream<Uint8Array>;
  /** How the stream ended. The client waits from then on for the last bytes, which `finish` gives. */
  readonly ended: Promise<StreamEnd>;
  /** The upstream's own terminal frames, held back so far: the clean end of a stream that was not converted. */
  terminalFrames(): string;
  /** The call is settled: these are the last bytes. */
  finish(tail: string): void;
  /** Ends the stream now, for what it delivered. */
  endNow(failure: Failure): void;
  /** The client waits for the upstream or for the settlement; false while it is the client who takes nothing. */
  isOwing(): boolean;
}

/** More than the life cycle of any stream, which in Responses repeats the whole request; what is longer goes on. */
const MAX_WAITING_BYTES = 512 * 1024;
const DONE_FRAME = "data: [DONE]\n\n";

export function createStreamRelay(source: StreamSource, options: StreamOptions): StreamRelay {
  const stream = newStreamState(source, options);
  options.conversion?.pay(stream.hold.freeChars);
  return {
    begin: () => begin(stream),
    release() {
      stream.waits = false;
      stream.released?.resolve(undefined);
    },
    contentMs: () => stream.contentMs,
    body: (signal) => clientBody(stream, signal),
    ended: stream.ended.promise,
    terminalFrames: () => terminalFrames(stream),
    finish: (tail) => stream.tail.resolve(encoder.encode(tail)),
    endNow: (failure) => endNow(stream, failure),
    isOwing: () => stream.taking !== undefined || stream.isReported,
  };
}

/**
 * Reads up to the first content. The frames before it wait, so that whatever fails there can be made good elsewhere, until
 * `release` says that nothing is won by waiting any more, or too much waits.
 */
async function begin(stream: StreamState): Promise<void> {
  const { options, timers, source } = stream;
  const limitMs = options.firstEventMs ?? 0;
  if (limitMs > 0) stream.firstDueMs = timers.nowMs() + limitMs;
  watch(stream);
  // An upstream's comment is a sign of life, not an answer: another channel may still be tried.
  while ((stream.first === undefined || stream.first === options.ping) && !stream.end)
    stream.first = await take(stream);
  stream.firstDueMs = Infinity;
  options.onFirstEvent?.();
  if (hasContent(stream)) stream.contentMs = timers.nowMs();
  else if (!stream.end && stream.waits) await waitForContent(stream);
  stream.waits = false;
  const { end } = stream;
  if (!end || isCut(end.reason) || isAnswer(stream, end)) return;
  timers.clear(stream.watchTimer);
  source.abort();
  // It ended as an answer does, and said nothing.
  if (end.reason === "completed") throw new Failure("upstream-down", "upstream_bad_answer");
  throw end.failure ?? brokenStream("the stream was empty");
}

/** Whether a stream that ended before its client got anything is an answer: with content, or with output that is billed. */
function isAnswer(stream: StreamState, end: StreamEnd): boolean {
  if (end.reason !== "completed") return stream.first !== undefined && hasContent(stream);
  const { usage } = stream.options.meter.state;
  return hasContent(stream) || (usage !== null && completionTokens(usage) > 0);
}

async function waitForContent(stream: StreamState): Promise<void> {
  const frames = [stream.first as Uint8Array];
  stream.released = Promise.withResolvers();
  stream.taking = readToContent(stream, frames);
  await Promise.race([stream.taking, stream.released.promise]);
  // After a release it is still reading: the first that the client demands is what comes of it.
  if (stream.waits) stream.taking = undefined;
  if (frames.length > 1) stream.first = Buffer.concat(frames);
  if (hasContent(stream)) stream.contentMs = stream.timers.nowMs();
}

/** Collects what comes before the first content, and that; undefined then. What comes after the release is handed on. */
async function readToContent(stream: StreamState, frames: Uint8Array[]): Promise<Uint8Array | undefined> {
  let bytes = (frames[0] as Uint8Array).length;
  while (stream.waits && !stream.end && !hasContent(stream) && bytes < MAX_WAITING_BYTES) {
    const chunk = await take(stream);
    if (!stream.waits) return chunk;
    if (chunk === undefined || chunk === stream.options.ping) continue;
    frames.push(chunk);
    bytes += chunk.length;
  }
  return undefined;
}

function clientBody(stream: StreamState, signal: AbortSignal): ReadableStream<Uint8Array> {
  const gone = (): void => {
    leave(stream).catch(() => {});
  };
  const close = (controller: Sink): void => {
    signal.removeEventListener("abort", gone);
    controller.close();
  };
  if (signal.aborted) queueMicrotask(gone);
  else signal.addEventListener("abort", gone, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stream.sink = controller;
        stream.lastSentMs = stream.timers.nowMs();
      },
      pull(controller) {
        if (stream.first === undefined) return meet(stream, controller, close);
        controller.enqueue(stream.first);
        stream.first = undefined;
        return undefined;
      },
      cancel: gone,
    },
    { highWaterMark: 0 },
  );
}

type Sink = ReadableStreamDefaultController<Uint8Array>;

/**
 * Meets one demand of the client: the next chunk that says anything, or the end. Nearly always the next read is that chunk,
 * and what is made of it goes on where the read ends, without another promise; whatever else it is takes the long way.
 */
function meet(stream: StreamState, sink: Sink, close: (sink: Sink) => void): Promise<void> {
  if (stream.taking || stream.end || stream.isGone || !isReadDue(stream))
    return meetSlowly(stream, sink, close);
  stream.onMet ??= (chunk) => {
    stream.taking = undefined;
    return chunk === undefined ? meetSlowly(stream, sink, close) : handOn(stream, sink, chunk);
  };
  const met = readOn(stream, stream.onMet);
  stream.taking = met as Promise<undefined>;
  return met;
}

/** As `meet`, from any state, for as many reads as it takes. */
async function meetSlowly(stream: StreamState, sink: Sink, close: (sink: Sink) => void): Promise<void> {
  while (!stream.end && !stream.isGone) {
    stream.taking ??= take(stream);
    const chunk = await stream.taking;
    stream.taking = undefined;
    if (chunk !== undefined) return handOn(stream, sink, chunk);
  }
  if (stream.isGone || !stream.end) return;
  report(stream, stream.end);
  const tail = await stream.tail.promise;
  if (tail.length > 0) sink.enqueue(tail);
  close(sink);
}

function handOn(stream: StreamState, sink: Sink, chunk: Uint8Array): void {
  stream.lastSentMs = stream.lastByteMs;
  if (stream.contentMs === undefined && hasContent(stream)) stream.contentMs = stream.lastByteMs;
  if (!stream.isGone) sink.enqueue(chunk);
}

/** Says once how the stream ended, whoever comes to it first: its client, one that left, or the end of the process. */
function report(stream: StreamState, reported: StreamEnd): void {
  if (stream.isReported) return;
  stream.isReported = true;
  const { unpaid } = stream;
  const end = unpaid ? { ...reported, ...deliveredPart(stream, unpaid.before) } : reported;
  stream.timers.clear(stream.watchTimer);
  hangUp(stream, end.reason);
  stream.ended.resolve(end);
}

/** The frames that were held back, with the blank line that an upstream may have left out. */
function terminalFrames({ held, terminal }: StreamState): string {
  if (held.length === 0) return terminal === "done-line" ? DONE_FRAME : "";
  const text = Buffer.concat(held).toString("utf8");
  return text.endsWith("\n\n") || text.endsWith("\r\n\r\n") ? text : `${text}\n\n`;
}

/**
 * Reads on without a client until the usage is known or the caps are reached. What has delivered is charged by its count
 * if need be: a moment is enough. What never reached it, or cannot be counted, is waited for like a plain answer.
 */
async function leave(stream: StreamState): Promise<void> {
  if (stream.isGone || stream.isReported) return;
  stream.isGone = true;
  const { options, source, timers } = stream;
  const { readOn } = options;
  const { state } = options.meter;
  const isCounted = stream.first === undefined && state.sawText && !readOn.keepsReasoning();
  const timer = timers.set(
    () => {
      stop(stream, "abandoned");
      source.abort();
    },
    isCounted ? readOn.countedMs : readOn.begin(),
  );
  let left = isCounted ? readOn.countedBytes : Number.POSITIVE_INFINITY;
  try {
    await stream.taking?.catch(() => undefined);
    // What came with the usage may still have to be paid.
    while (!stream.end && (stream.unpaid || state.usage === null || !state.usageFinal)) {
      const chunk = await take(stream);
      left -= chunk?.length ?? 0;
      if (left < 0) break;
    }
  } finally {
    timers.clear(timer);
    if (!isCounted) readOn.end();
  }
  source.abort();
  report(stream, endOfLeaving(stream.end, state.sawText));
}

function endNow(stream: StreamState, failure: Failure): void {
  if (stream.isReported) return;
  if (!stream.end) {
    stop(stream, "draining", failure);
    stream.source.abort();
  }
  // Who has left is settled by `leave`; a client that does not read must not hold up the settlement.
  if (stream.isGone) return;
  const end = stream.end ?? { reason: "draining", failure };
  const settle = (): void => report(stream, end);
  if (stream.taking) void stream.taking.then(settle, settle);
  else settle();
}
