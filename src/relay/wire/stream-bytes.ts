// Relays an answer that is no text (speech) as its bytes come, one chunk per demand; the end is told after settlement.
// Refuses a clean end for a body that broke off: bytes have no place for an error, so the connection breaks too.
import { Failure } from "../../shared/failures.ts";
import { brokenStream } from "../../protocol/assemble.ts";
import type { StreamEnd, StreamEndReason, StreamSource } from "./stream.ts";
import { realTimers } from "./timers.ts";
import type { Timers } from "./timers.ts";

export interface ByteOptions {
  /** Upstream silence that ends the answer. */
  idleMs: number;
  /** Settles the call; resolves when that is durable. */
  finish: (end: StreamEnd) => Promise<unknown>;
  timers?: Timers;
}

export interface ByteRelay {
  /** Reads the first chunk; throws what another channel may make good. */
  begin(): Promise<void>;
  /** The client's body. `signal` fires when the client leaves. */
  body(signal: AbortSignal): ReadableStream<Uint8Array>;
  /** Ends the answer now: it is settled, and breaks off. */
  endNow(failure: Failure): void;
  /** The client waits for the upstream or for the books; false while it is the client who takes nothing. */
  isOwing(): boolean;
}

export function createByteRelay(source: StreamSource, options: ByteOptions): ByteRelay {
  const { timers = realTimers } = options;
  let first: Uint8Array | undefined;
  let isFinished = false;
  let isSilent = false;
  /** Why the gateway itself ended the answer, and that it is settled. */
  let cut: { failure: Failure; settled: Promise<void> } | undefined;
  let isReading = false;

  async function read(): Promise<Uint8Array | undefined> {
    const timer = timers.set(() => {
      isSilent = true;
      source.abort();
    }, options.idleMs);
    isReading = true;
    try {
      for (;;) {
        const { done, value } = await source.reader.read();
        if (done) return undefined;
        if (value.length > 0) return value;
      }
    } finally {
      isReading = false;
      timers.clear(timer);
    }
  }

  async function finish(reason: StreamEndReason, failure?: Failure): Promise<void> {
    if (isFinished) return;
    isFinished = true;
    await options.finish({ reason, failure });
  }

  function explained(error: unknown): { reason: StreamEndReason; failure: Failure } {
    if (isSilent)
      return { reason: "upstream-stall", failure: new Failure("upstream-timeout", "upstream_timeout") };
    return { reason: "upstream-cut", failure: brokenStream(String(error)) };
  }

  return {
    isOwing: () => isReading || isFinished,
    async begin() {
      try {
        first = await read();
      } catch (error) {
        throw explained(error).failure;
      }
      if (!first) throw new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" });
    },
    endNow(failure) {
      if (isFinished) return;
      cut = { failure, settled: finish("draining", failure) };
      cut.settled.catch(() => {});
      source.abort();
    },
    body(signal) {
      const gone = (): void => {
        source.abort();
        // What was made has been paid for, whoever hears it.
        finish("client-gone").catch(() => {});
      };
      if (signal.aborted) queueMicrotask(gone);
      else signal.addEventListener("abort", gone, { once: true });
      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            if (first) {
              controller.enqueue(first);
              first = undefined;
              return;
            }
            let next: Uint8Array | undefined;
            try {
              next = await read();
            } catch (error) {
              if (cut) {
                await cut.settled.catch(() => {});
                controller.error(cut.failure);
                return;
              }
              if (isFinished) return;
              const { reason, failure } = explained(error);
              await finish(reason, failure);
              controller.error(failure);
              return;
            }
            if (isFinished) return;
            if (next) {
              controller.enqueue(next);
              return;
            }
            // Sound has to be heard at once: what waits for the books is the end of the body.
            try {
              await finish("completed");
            } catch (error) {
              controller.error(error);
              return;
            }
            signal.removeEventListener("abort", gone);
            controller.close();
          },
          cancel: gone,
        },
        { highWaterMark: 0 },
      );
    },
  };
}
