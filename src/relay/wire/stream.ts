// Relays an event stream as the upstream sends it, reading along for the meter, one chunk per demand of the client.
// Refuses a clean end for a stream that is not whole, and keeps the terminal frame back until the call is settled.
import type { StreamMeter } from "../../protocol/dialect.ts";
import { brokenStream } from "../../protocol/assemble.ts";
import { Failure } from "../../shared/failures.ts";
import { createSseReader, isNoise } from "./framing.ts";
import type { SseEvent } from "./framing.ts";
import type { StreamConversion } from "./stream-convert.ts";
import { endOfLeaving } from "./stream-end.ts";
import type { StreamEnd, StreamEndReason } from "./stream-end.ts";
import { UNHELD } from "./stream-allowance.ts";
import type { PassedFrame, StreamHold, Unpaid } from "./stream-allowance.ts";
import { realTimers } from "./timers.ts";
import type { Timers } from "./timers.ts";

export type { StreamEnd, StreamEndReason } from "./stream-end.ts";

/** The upstream's side: an open body, and the way to hang up. */
export interface StreamSource {
  reader: ReadableStreamDefaultReader<Uint8Array>;
  abort(): void;
}

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
  /** Pays for what goes on; absent: nothing has to be paid by the token. */
  hold?: StreamHold;
  /** How long and how much is read on for the usage after the client left. */
  drain: { ms: number; bytes: number };
  /**
   * Before the first content, and where `keepsReasoning` says that more is billed than is delivered: milliseconds to wait
   * for the upstream's end; 0 = none. `end` follows `begin`.
   */
  readOn: { begin(): number; end(): void; keepsReasoning(): boolean };
  /** Sees every forwarded event, for callers that need more of it than the meter. */
  onEvent?: (event: SseEvent) => void;
  /**
   * Settles the call; resolves when that is durable with the frames that belong before the terminal one (of a
   * conversion, and where the balance ended the stream: with the closing frames).
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
  /** Ends the stream now: it is settled for what it delivered, and the client told the failure. */
  endNow(failure: Failure): void;
  /** The client waits for the upstream or for the books; false while it is the client who takes nothing. */
  isOwing(): boolean;
}

const DONE_FRAME = "data: [DONE]\n\n";
const PING = new TextEncoder().encode(": PING\n\n");
const encoder = new TextEncoder();
const COLON = 0x3a;
const NO_FRAMES: readonly PassedFrame[] = [];
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
  const hold = options.hold ?? UNHELD;
  conversion?.pay(hold.freeChars);
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
  /** How many of them are `[DONE]` lines. */
  let doneLines = 0;
  let isGone = false;
  let concluded: Promise<Uint8Array> | undefined;
  /** What the client has of the stream: its first frame, and those of its last chunk that says something. */
  let firstPassed: PassedFrame | undefined;
  let lastPassed: readonly PassedFrame[] = NO_FRAMES;
  /** Where the stream waits until more of it is paid. */
  let unpaid: Unpaid | undefined;
  let isEof = false;
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

  function retell(told: StreamConversion, events: readonly SseEvent[], from = 0): void {
    for (let i = from; i < events.length; i++) {
      const event = events[i] as SseEvent;
      if (end) return;
      if (isNoise(event.data) && event.data.trim() !== "[DONE]") continue;
      const before = state.textChars;
      told.push(event);
      options.onEvent?.(event);
      if (state.textChars > hold.freeChars && !isEof) {
        unpaid = { events, at: i, before };
        return;
      }
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
    if (kept.length !== events.length || wasCarried !== 0 || carried !== 0) return joined(kept);
    pass(kept);
    return chunk;
  }

  /**
   * Meters the events and drops those the client must not see; stops at the terminal one, and before one that is not
   * surely paid. `paidAt`: an event that was metered, and paid since; those before it have gone on.
   */
  function sift(events: readonly SseEvent[], paidAt = -1): readonly SseEvent[] {
    let kept: SseEvent[] | undefined = paidAt === -1 ? undefined : [];
    for (let i = Math.max(0, paidAt); i < events.length; i++) {
      const event = events[i] as SseEvent;
      if (i !== paidAt) {
        const before = state.textChars;
        meter.push(event);
        if (state.textChars > hold.freeChars && !isEof) {
          unpaid = { events, at: i, before };
          return kept ?? events.slice(0, i);
        }
      }
      const { data } = event;
      if (data === "[DONE]" || data.trim() === "[DONE]") {
        held.push(event.bytes as Uint8Array);
        doneLines++;
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
    // What is left is part of one event at most.
    isEof = true;
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

  /** One read or a piece of it, processed and paid. Undefined = nothing to send (look at `end`). */
  async function take(): Promise<Uint8Array | undefined> {
    if (unpaid) return pay(unpaid);
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

  /** Lengthens the hold for the event that is not surely paid, and goes on with it; or the stream ends before it. */
  async function pay({ events, at, before }: Unpaid): Promise<Uint8Array | undefined> {
    const after = state.textChars;
    const isPaid = await hold.cover(after);
    unpaid = undefined;
    // It may have been ended meanwhile.
    if (end) return undefined;
    if (!isPaid) {
      end = {
        reason: "balance",
        failure: undefined,
        deliveredShare: (conversion ? conversion.toldChars() : before) / after,
        paidTokens: hold.paidTokens,
        first: firstPassed,
        last: lastPassed.findLast(({ event }) => event !== "ping"),
      };
      timers.clear(idleTimer);
      return undefined;
    }
    if (!conversion) return joined(sift(events, at));
    conversion.pay(hold.freeChars);
    lookForEnd();
    retell(conversion, events, at + 1);
    const text = conversion.take();
    return text === "" ? undefined : encoder.encode(text);
  }

  function joined(kept: readonly SseEvent[]): Uint8Array | undefined {
    if (kept.length === 0) return undefined;
    pass(kept);
    return Buffer.concat(kept.map((event) => event.bytes as Uint8Array));
  }

  /** Notes what the client has of the stream. */
  function pass(kept: readonly PassedFrame[]): void {
    firstPassed ??= kept[0];
    if (kept.length > 1 || kept[0]?.event !== "ping") lastPassed = kept;
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
  function conclude(end: StreamEnd): Promise<Uint8Array> {
    return (concluded ??= settleAndTell(end));
  }

  async function settleAndTell(end: StreamEnd): Promise<Uint8Array> {
    timers.clear(idleTimer);
    hangUp(end.reason);
    let tail: string;
    try {
      const frames = await options.finish(end);
      if (end.reason === "balance") tail = frames;
      else if (end.reason === "completed") tail = conversion ? frames : frames + closing();
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

  /**
   * Reads on without a client until the usage is known or the caps are reached. What has delivered is charged by its count
   * if need be: a moment is enough. What never reached it, or cannot be counted, is waited for like a plain answer.
   */
  async function leave(): Promise<void> {
    if (isGone || concluded) return;
    isGone = true;
    const isCounted = first === undefined && state.sawText && !options.readOn.keepsReasoning();
    const timer = timers.set(
      () => {
        stop("abandoned");
        source.abort();
      },
      isCounted ? options.drain.ms : options.readOn.begin(),
    );
    let left = isCounted ? options.drain.bytes : Number.POSITIVE_INFINITY;
    try {
      await taking?.catch(() => undefined);
      while (!end && !(state.usage !== null && state.usageFinal)) {
        const chunk = await take();
        left -= chunk?.length ?? 0;
        if (left < 0) break;
      }
    } finally {
      timers.clear(timer);
      if (!isCounted) options.readOn.end();
    }
    source.abort();
    await conclude(endOfLeaving(end, state.sawText));
  }

  function endNow(failure: Failure): void {
    if (concluded) return;
    if (!end) {
      stop("draining", failure);
      source.abort();
    }
    // Who has left is settled by `leave`; a client that does not read must not hold up the settlement.
    if (isGone) return;
    const settle = async (ending: StreamEnd): Promise<void> => {
      await taking?.catch(() => undefined);
      await conclude(ending);
    };
    settle(end ?? { reason: "draining", failure }).catch(() => {});
  }

  return {
    endNow,
    isOwing: () => taking !== undefined || concluded !== undefined,
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
      if (first !== undefined || end?.reason === "balance") return;
      const isEmpty = held.length <= doneLines && !state.sawText && state.usage === null;
      if (end?.reason === "completed" && !isEmpty) return;
      timers.clear(idleTimer);
      source.abort();
      // It ended as an answer does, and said nothing.
      if (end?.reason === "completed") throw new Failure("upstream-down", "upstream_bad_answer");
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
            if (isGone || !end) return;
            const tail = await conclude(end);
            signal.removeEventListener("abort", gone);
            if (tail.length > 0) controller.enqueue(tail);
            controller.close();
          },
          cancel: gone,
        },
        { highWaterMark: 0 },
      );
    },
  };
}
