// Relays an event stream as the upstream sends it, reading along for the meter, one chunk per demand of the client.
// Refuses a clean end for a stream that is not complete, and keeps its last bytes back until the call is settled.
import { brokenStream } from "../../protocol/assemble.ts";
import { Failure } from "../../shared/failures.ts";
import { endOfLeaving } from "./stream-end.ts";
import type { StreamEnd } from "./stream-end.ts";
import { hangUp, take, watchSilence } from "./stream-read.ts";
import { encoder, newStreamState, stop } from "./stream-state.ts";
import type { StreamOptions, StreamSource, StreamState } from "./stream-state.ts";

export interface StreamRelay {
  /** Reads up to the first event; throws what another channel may make good, as long as nothing was sent. */
  begin(): Promise<void>;
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

const DONE_FRAME = "data: [DONE]\n\n";

export function createStreamRelay(source: StreamSource, options: StreamOptions): StreamRelay {
  const stream = newStreamState(source, options);
  options.conversion?.pay(stream.hold.freeChars);
  return {
    begin: () => begin(stream),
    body: (signal) => clientBody(stream, signal),
    ended: stream.ended.promise,
    terminalFrames: () => terminalFrames(stream),
    finish: (tail) => stream.tail.resolve(encoder.encode(tail)),
    endNow: (failure) => endNow(stream, failure),
    isOwing: () => stream.taking !== undefined || stream.isReported,
  };
}

async function begin(stream: StreamState): Promise<void> {
  const { options, source, timers } = stream;
  watchSilence(stream);
  const limitMs = options.firstEventMs ?? 0;
  const timer =
    limitMs === 0
      ? undefined
      : timers.set(() => {
          stream.isSilent = true;
          source.abort();
        }, limitMs);
  try {
    // An upstream's comment is a sign of life, not an answer: another channel may still be tried.
    while ((stream.first === undefined || stream.first === stream.ping) && !stream.end)
      stream.first = await take(stream);
  } finally {
    timers.clear(timer);
  }
  const { end } = stream;
  if (stream.first !== undefined || end?.reason === "balance") return;
  const { state } = options.meter;
  const isEmpty = stream.held.length <= stream.doneLines && !state.sawText && state.usage === null;
  if (end?.reason === "completed" && !isEmpty) return;
  timers.clear(stream.idleTimer);
  source.abort();
  // It ended as an answer does, and said nothing.
  if (end?.reason === "completed") throw new Failure("upstream-down", "upstream_bad_answer");
  throw end?.failure ?? brokenStream("the stream was empty");
}

function clientBody(stream: StreamState, signal: AbortSignal): ReadableStream<Uint8Array> {
  const gone = (): void => {
    leave(stream).catch(() => {});
  };
  if (signal.aborted) queueMicrotask(gone);
  else signal.addEventListener("abort", gone, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (stream.first !== undefined) {
          controller.enqueue(stream.first);
          stream.first = undefined;
          return;
        }
        while (!stream.end && !stream.isGone) {
          stream.taking = take(stream);
          const chunk = await stream.taking;
          stream.taking = undefined;
          if (chunk === undefined) continue;
          if (!stream.isGone) controller.enqueue(chunk);
          return;
        }
        if (stream.isGone || !stream.end) return;
        report(stream, stream.end);
        const tail = await stream.tail.promise;
        signal.removeEventListener("abort", gone);
        if (tail.length > 0) controller.enqueue(tail);
        controller.close();
      },
      cancel: gone,
    },
    { highWaterMark: 0 },
  );
}

/** Says once how the stream ended, whoever comes to it first: its client, one that left, or the end of the process. */
function report(stream: StreamState, end: StreamEnd): void {
  if (stream.isReported) return;
  stream.isReported = true;
  stream.timers.clear(stream.idleTimer);
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
    while (!stream.end && !(state.usage !== null && state.usageFinal)) {
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
