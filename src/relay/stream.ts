// Relays an event stream as the upstream sends it, reading along for the meter, one chunk per demand of the client.
// Refuses a clean end for a stream that is not whole, and keeps the terminal frame back until the call is settled.
import type { StreamMeter } from "../protocol/dialect.ts";
import { brokenStream } from "../protocol/assemble.ts";
import { Failure } from "../shared/failures.ts";
import { createSseReader } from "./framing.ts";
import type { SseEvent } from "./framing.ts";
import type { StreamConversion } from "./stream-convert.ts";

export type StreamEndReason =
  /** The terminal event was seen. */
  | "completed"
  /** The upstream closed or broke off before it. */
  | "upstream-cut"
  /** The upstream sent an error object. */
  | "error-in-stream"
  /** The upstream was silent for too long. */
  | "upstream-stall"
  /** The client left. */
  | "client-gone";

export interface StreamEnd {
  reason: StreamEndReason;
  failure: Failure | undefined;
}

/** The upstream's side: an open body, and the way to hang up. */
export interface StreamSource {
  reader: ReadableStreamDefaultReader<Uint8Array>;
  abort(): void;
}

export interface Timers {
  set(run: () => void, ms: number): unknown;
  clear(handle: unknown): void;
  nowMs(): number;
}

export const realTimers: Timers = {
  set: (run, ms) => setTimeout(run, ms),
  clear: (handle) => clearTimeout(handle as ReturnType<typeof setTimeout>),
  nowMs: () => performance.now(),
};

/**
 * What makes a passed-through stream whole: a `[DONE]` line, the dialect's terminal event, or the end of the body behind
 * its finishing chunk.
 */
export type TerminalRule = "done-line" | "terminal-event" | "end-of-body";

export interface StreamOptions {
  meter: StreamMeter;
  /** Absent: "done-line". Means nothing to a conversion, whose decoder knows its end. */
  terminal?: TerminalRule;
  /** The meter again, when the client is told the stream in another form than the upstream's. */
  conversion?: StreamConversion | undefined;
  /** Leave out the frame that carries nothing but usage: only the gateway asked for it. */
  hidesUsage: boolean;
  /** Upstream silence that ends the stream. */
  idleMs: number;
  /** Until the first event of the stream; 0 = only the silence counts. */
  firstEventMs?: number;
  /** Silence after which a comment keeps the client's connection alive; 0 = never. */
  pingMs: number;
  /** How long and how much is read on for the usage after the client left. */
  drain: { ms: number; bytes: number };
  /** Sees every forwarded event, for callers that need more of it than the meter. */
  onEvent?: (event: SseEvent) => void;
  /**
   * Settles the call; resolves when that is durable with the frames that belong before the terminal one (of a
   * conversion: with its closing frames).
   */
  finish: (end: StreamEnd) => Promise<string>;
  failureFrame: (failure: Failure) => string;
  timers?: Timers;
}

export interface StreamRelay {
  /** Reads up to the first event; throws what another channel may make good, as long as nothing was sent. */
  begin(): Promise<void>;
  /** The client's body. `signal` fires when the client leaves. */
  body(signal: AbortSignal): ReadableStream<Uint8Array>;
}

const DONE_FRAME = "data: [DONE]\n\n";
const PING = new TextEncoder().encode(": PING\n\n");
const encoder = new TextEncoder();
const COLON = 0x3a;
/**
 * Bun hands over half a megabyte at once when a client is slower than its upstream. Taken apart in one go, that much and
 * its copies would be alive whenever the engine collects, and count as old from then on.
 */
const PIECE_BYTES = 64 * 1024;
/** After the terminal event only the end of the body is due; an upstream that lingers is hung up on. */
const LINGER_MS = 1000;

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

export function createStreamRelay(source: StreamSource, options: StreamOptions): StreamRelay {
  const { meter, conversion, hidesUsage, terminal = "done-line", timers = realTimers } = options;
  const { state } = meter;
  const sse = createSseReader({ keepBytes: conversion === undefined });
  const ping = conversion ? encoder.encode(conversion.ping) : PING;
  /** Bytes that the reader holds of an event that is not complete. */
  let carried = 0;
  let first: Uint8Array | undefined;
  let pending: Promise<Read> | undefined;
  /** What was read and not looked at yet. */
  let unread: Uint8Array | undefined;
  let taking: Promise<Uint8Array | undefined> | undefined;
  let end: StreamEnd | undefined;
  /** Frames from the terminal one on: they leave when the call is settled. */
  const held: Uint8Array[] = [];
  let isGone = false;
  let isFinished = false;
  let lastByteMs = timers.nowMs();
  let idleTimer: unknown;
  let isSilent = false;

  function watch(): void {
    idleTimer = timers.set(
      () => {
        const quietMs = timers.nowMs() - lastByteMs;
        // Only a pending read is the upstream's silence; otherwise the client is the slow one.
        if (pending && quietMs >= options.idleMs) {
          isSilent = true;
          source.abort();
        } else watch();
      },
      Math.max(1, options.idleMs - (timers.nowMs() - lastByteMs)),
    );
  }

  function stop(reason: StreamEndReason, failure?: Failure): void {
    if (end) return;
    end = { reason, failure };
    timers.clear(idleTimer);
  }

  /** The same for a stream that is told in another form. */
  function convert(told: StreamConversion, chunk: Uint8Array): Uint8Array | undefined {
    const events = sse.push(chunk);
    retell(told, events);
    const text = told.take();
    if (text !== "") return encoder.encode(text);
    return events.length === 0 && chunk[0] === COLON ? ping : undefined;
  }

  function retell(told: StreamConversion, events: readonly SseEvent[]): void {
    for (const event of events) {
      if (end) return;
      if (isNoise(event.data) && event.data.trim() !== "[DONE]") continue;
      told.push(event);
      options.onEvent?.(event);
      lookForEnd();
    }
  }

  function lookForEnd(): void {
    if (state.failure) stop("error-in-stream", state.failure);
    // Gemini's usage may follow its finishing chunk: those streams are whole when the body ends.
    else if (state.ended && terminal !== "end-of-body") stop("completed");
  }

  /** What of one chunk goes on to the client; undefined = nothing. */
  function process(chunk: Uint8Array): Uint8Array | undefined {
    if (conversion) return convert(conversion, chunk);
    const wasCarried = carried;
    const events = sse.push(chunk);
    if (events.length === 0) {
      carried += chunk.length;
      // A comment is the upstream's sign of life: pass the sign on, its bytes come with the next event.
      return wasCarried === 0 && chunk[0] === COLON ? PING : undefined;
    }
    let taken = 0;
    for (const event of events) taken += event.bytes?.length ?? 0;
    carried += chunk.length - taken;
    const kept = sift(events);
    if (kept.length === events.length && wasCarried === 0 && carried === 0) return chunk;
    if (kept.length === 0) return undefined;
    return Buffer.concat(kept.map((event) => event.bytes as Uint8Array));
  }

  /** Meters the events and drops those the client must not see; stops at the terminal one. */
  function sift(events: readonly SseEvent[]): readonly SseEvent[] {
    let kept: SseEvent[] | undefined;
    for (let i = 0; i < events.length; i++) {
      const event = events[i] as SseEvent;
      meter.push(event);
      const { data } = event;
      if (data === "[DONE]" || data.trim() === "[DONE]") {
        held.push(event.bytes as Uint8Array);
        kept ??= events.slice(0, i);
        stop("completed");
        return kept;
      }
      if (state.failure) {
        kept ??= events.slice(0, i);
        stop("error-in-stream", state.failure);
        return kept;
      }
      if (state.ended && terminal !== "done-line") {
        held.push(event.bytes as Uint8Array);
        kept ??= events.slice(0, i);
        if (terminal === "end-of-body") continue;
        stop("completed");
        return kept;
      }
      if (isNoise(data) || (hidesUsage && state.lastWasUsageOnly)) {
        kept ??= events.slice(0, i);
        continue;
      }
      kept?.push(event);
      options.onEvent?.(event);
    }
    return kept ?? events;
  }

  function atEof(): Uint8Array | undefined {
    const events = sse.end();
    if (conversion) {
      retell(conversion, events);
      if (!end) conversion.end();
      // The decoder's own finding: the upstream closed before its terminal event.
      if (state.failure) stop("upstream-cut", state.failure);
      else if (state.ended) stop("completed");
      else stop("upstream-cut", brokenStream("the body ended without a terminal event"));
      const text = conversion.take();
      return text === "" ? undefined : encoder.encode(text);
    }
    const kept = sift(events);
    if (!end) {
      if (state.ended) stop("completed");
      else stop("upstream-cut", brokenStream("the body ended without a terminal event"));
    }
    if (kept.length === 0) return undefined;
    // The last event came without its blank line, which the client needs.
    return Buffer.concat([...kept.map((event) => event.bytes as Uint8Array), encoder.encode("\n\n")]);
  }

  /** One read or a piece of it, processed. Undefined = nothing to send (look at `end`). */
  async function take(): Promise<Uint8Array | undefined> {
    if (unread) return processPiece(unread);
    pending ??= source.reader.read();
    let result: Read | "ping";
    try {
      result = options.pingMs > 0 && !isGone ? await orPing(pending) : await pending;
    } catch (error) {
      pending = undefined;
      // Whole but for the end of its body: what was due has been said.
      if (state.ended && terminal === "end-of-body") stop("completed");
      else if (isSilent) stop("upstream-stall", new Failure("upstream-timeout", "upstream_timeout"));
      else stop("upstream-cut", brokenStream(String(error)));
      return undefined;
    }
    if (result === "ping") return ping;
    pending = undefined;
    lastByteMs = timers.nowMs();
    return result.done ? atEof() : processPiece(result.value);
  }

  function processPiece(bytes: Uint8Array): Uint8Array | undefined {
    const isWhole = bytes.length <= PIECE_BYTES;
    unread = isWhole ? undefined : bytes.subarray(PIECE_BYTES);
    try {
      return process(isWhole ? bytes : bytes.subarray(0, PIECE_BYTES));
    } catch (error) {
      stop("upstream-cut", error instanceof Failure ? error : brokenStream(String(error)));
      return undefined;
    }
  }

  function orPing(read: Promise<Read>): Promise<Read | "ping"> {
    return new Promise((resolve, reject) => {
      const timer = timers.set(() => resolve("ping"), options.pingMs);
      read.then(resolve, reject).finally(() => timers.clear(timer));
    });
  }

  /** Settles, once, and gives the last bytes. */
  async function conclude(): Promise<Uint8Array | undefined> {
    if (isFinished || !end) return undefined;
    isFinished = true;
    timers.clear(idleTimer);
    hangUp(end.reason);
    let tail: string;
    try {
      const frames = await options.finish(end);
      if (end.reason === "completed") tail = conversion ? frames : frames + closing();
      else tail = end.failure ? options.failureFrame(end.failure) : "";
    } catch (error) {
      const failure =
        error instanceof Failure ? error : new Failure("internal", "relay_internal", { cause: error });
      tail = options.failureFrame(failure);
    }
    return encoder.encode(tail);
  }

  /** The frames that were held back, with the blank line that an upstream may have left out. */
  function closing(): string {
    if (held.length === 0) return terminal === "done-line" ? DONE_FRAME : "";
    const text = Buffer.concat(held).toString("utf8");
    return text.endsWith("\n\n") || text.endsWith("\r\n\r\n") ? text : `${text}\n\n`;
  }

  /** A whole stream is read to its end, so that its connection can serve again. */
  function hangUp(reason: StreamEndReason): void {
    if (reason !== "completed") return source.abort();
    const timer = timers.set(() => source.abort(), LINGER_MS);
    const drained = async (): Promise<void> => {
      try {
        while (!(await (pending ?? source.reader.read())).done) pending = undefined;
      } catch {
        // Whatever happens behind the terminal event changes nothing.
      } finally {
        timers.clear(timer);
      }
    };
    void drained();
  }

  /** Reads on without a client until the usage is known or the caps are reached. */
  async function leave(): Promise<void> {
    if (isGone || isFinished) return;
    isGone = true;
    const timer = timers.set(() => {
      stop("client-gone");
      source.abort();
    }, options.drain.ms);
    let left = options.drain.bytes;
    await taking?.catch(() => undefined);
    while (!end && !(state.usage !== null && state.usageFinal)) {
      const chunk = await take();
      left -= chunk?.length ?? 0;
      if (left < 0) break;
    }
    timers.clear(timer);
    // Whatever the rest of the stream said: nobody received it.
    end = { reason: "client-gone", failure: undefined };
    source.abort();
    await conclude();
  }

  return {
    async begin() {
      watch();
      const limitMs = options.firstEventMs ?? 0;
      const timer =
        limitMs === 0
          ? undefined
          : timers.set(() => {
              isSilent = true;
              source.abort();
            }, limitMs);
      try {
        // An upstream's comment is a sign of life, not an answer: another channel may still be asked.
        while ((first === undefined || first === ping) && !end) first = await take();
      } finally {
        timers.clear(timer);
      }
      if (first !== undefined || end?.reason === "completed") return;
      timers.clear(idleTimer);
      source.abort();
      throw end?.failure ?? brokenStream("the stream was empty");
    },
    body(signal) {
      const gone = (): void => {
        leave().catch(() => {});
      };
      if (signal.aborted) queueMicrotask(gone);
      else signal.addEventListener("abort", gone, { once: true });
      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            if (first !== undefined) {
              controller.enqueue(first);
              first = undefined;
              return;
            }
            while (!end && !isGone) {
              taking = take();
              const chunk = await taking;
              taking = undefined;
              if (chunk === undefined) continue;
              if (!isGone) controller.enqueue(chunk);
              return;
            }
            if (isGone) return;
            const tail = await conclude();
            signal.removeEventListener("abort", gone);
            if (tail) controller.enqueue(tail);
            controller.close();
          },
          cancel: gone,
        },
        { highWaterMark: 0 },
      );
    },
  };
}

/** A data line that is no JSON object would break every client; the text around it is good. */
function isNoise(data: string): boolean {
  return data.charCodeAt(0) !== 0x7b || data.charCodeAt(data.length - 1) !== 0x7d
    ? !/^\s*[{[][^]*[}\]]\s*$/.test(data)
    : false;
}
