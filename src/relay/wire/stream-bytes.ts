// Relays an answer that is no text (speech) as its bytes come, one chunk per demand; its end waits for the settlement.
// Refuses a clean end for a body that broke off: bytes have no place for an error, so the connection breaks too.
import { Failure } from "../../shared/failures.ts";
import { brokenStream } from "../../protocol/assemble.ts";
import type { StreamEnd, StreamEndReason } from "./stream-end.ts";
import type { StreamSource } from "./stream-state.ts";
import { realTimers } from "./timers.ts";
import type { Timers } from "./timers.ts";

/** So much of the beginning is kept: enough of any container to tell its rate. */
const HEAD_BYTES = 64 * 1024;

export interface ByteOptions {
  /** Upstream silence that ends the answer. */
  idleMs: number;
  timers?: Timers;
}

export interface ByteRelay {
  /** Reads the first chunk; throws what another channel may make good. */
  begin(): Promise<void>;
  /** The client's body. `signal` fires when the client leaves. */
  body(signal: AbortSignal): ReadableStream<Uint8Array>;
  /** How the answer ended. The end of the client's body waits from then on for `finish`. */
  readonly ended: Promise<StreamEnd>;
  /** The call is settled; with an error, it could not be. */
  finish(error?: unknown): void;
  /** Ends the answer now: it breaks off. */
  endNow(failure: Failure): void;
  /** What has come so far: its beginning, and how much. */
  passed(): { head: Uint8Array; total: number };
  /** The client waits for the upstream or for the settlement; false while it is the client who takes nothing. */
  isOwing(): boolean;
}

interface ByteState {
  readonly source: StreamSource;
  readonly idleMs: number;
  readonly timers: Timers;
  /** Read before the client was answered. */
  first: Uint8Array | undefined;
  /** The beginning of the answer, by chunks, and how many bytes have come. */
  readonly head: Uint8Array[];
  total: number;
  isReading: boolean;
  isSilent: boolean;
  isReported: boolean;
  /** Why the gateway itself ended the answer. */
  cut: Failure | undefined;
  readonly ended: PromiseWithResolvers<StreamEnd>;
  /** What `finish` was given. */
  readonly settled: PromiseWithResolvers<unknown>;
}

export function createByteRelay(source: StreamSource, options: ByteOptions): ByteRelay {
  const { idleMs, timers = realTimers } = options;
  const state: ByteState = {
    source,
    idleMs,
    timers,
    first: undefined,
    head: [],
    total: 0,
    isReading: false,
    isSilent: false,
    isReported: false,
    cut: undefined,
    ended: Promise.withResolvers(),
    settled: Promise.withResolvers(),
  };
  return {
    begin: () => begin(state),
    body: (signal) => clientBody(state, signal),
    ended: state.ended.promise,
    finish: (error) => state.settled.resolve(error),
    endNow(failure) {
      if (state.isReported) return;
      state.cut = failure;
      report(state, "draining", failure);
      source.abort();
    },
    passed: () => ({ head: Buffer.concat(state.head), total: state.total }),
    isOwing: () => state.isReading || state.isReported,
  };
}

/** An error that is said as if it were sound: no format of sound begins so. */
function isJson(first: Uint8Array): boolean {
  return /^\s*\{\s*"/.test(Buffer.from(first.subarray(0, 64)).toString("latin1"));
}

async function begin(state: ByteState): Promise<void> {
  try {
    state.first = await read(state);
  } catch (error) {
    throw breakOf(state, error).failure;
  }
  if (state.first && isJson(state.first)) {
    state.source.abort();
    state.first = undefined;
  }
  if (!state.first) throw new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" });
}

/** The next chunk that has any bytes; undefined at the end of the body. */
async function read(state: ByteState): Promise<Uint8Array | undefined> {
  const { source, timers } = state;
  const timer = timers.set(() => {
    state.isSilent = true;
    source.abort();
  }, state.idleMs);
  state.isReading = true;
  try {
    for (;;) {
      const { done, value } = await source.reader.read();
      if (done) return undefined;
      if (value.length === 0) continue;
      if (state.total < HEAD_BYTES) state.head.push(value.slice(0, HEAD_BYTES - state.total));
      state.total += value.length;
      return value;
    }
  } finally {
    state.isReading = false;
    timers.clear(timer);
  }
}

function breakOf({ isSilent }: ByteState, error: unknown): { reason: StreamEndReason; failure: Failure } {
  if (isSilent)
    return { reason: "upstream-stall", failure: new Failure("upstream-timeout", "upstream_timeout") };
  return { reason: "upstream-cut", failure: brokenStream(String(error)) };
}

function report(state: ByteState, reason: StreamEndReason, failure?: Failure): void {
  if (state.isReported) return;
  state.isReported = true;
  state.ended.resolve({ reason, failure });
}

function clientBody(state: ByteState, signal: AbortSignal): ReadableStream<Uint8Array> {
  const gone = (): void => {
    state.source.abort();
    // What was made has been paid for, whoever hears it.
    report(state, "client-gone");
  };
  if (signal.aborted) queueMicrotask(gone);
  else signal.addEventListener("abort", gone, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (state.first) {
          controller.enqueue(state.first);
          state.first = undefined;
          return;
        }
        let next: Uint8Array | undefined;
        try {
          next = await read(state);
        } catch (error) {
          return breakOff(state, controller, error);
        }
        if (state.isReported) return;
        if (next) return controller.enqueue(next);
        // Sound has to be heard at once: what waits for the settlement is the end of the body.
        report(state, "completed");
        const unsettled = await state.settled.promise;
        if (unsettled !== undefined) return controller.error(unsettled);
        signal.removeEventListener("abort", gone);
        controller.close();
      },
      cancel: gone,
    },
    { highWaterMark: 0 },
  );
}

/** The upstream's body broke: so does the client's, when the call is settled. */
async function breakOff(
  state: ByteState,
  controller: ReadableStreamDefaultController<Uint8Array>,
  error: unknown,
): Promise<void> {
  if (state.cut) {
    await state.settled.promise;
    return controller.error(state.cut);
  }
  if (state.isReported) return;
  const { reason, failure } = breakOf(state, error);
  report(state, reason, failure);
  controller.error((await state.settled.promise) ?? failure);
}
