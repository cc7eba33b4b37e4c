// Relays an answer that is no text (speech) as its bytes come, one chunk per demand; the end is told after settlement.
// Refuses a clean end for a body that broke off: bytes have no place for an error, so the connection breaks too.
import { Failure } from "../shared/failures.ts";
import { brokenStream } from "../protocol/assemble.ts";
import { realTimers } from "./stream.ts";
import type { StreamEnd, StreamEndReason, StreamSource, Timers } from "./stream.ts";

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
}

export function createByteRelay(source: StreamSource, options: ByteOptions): ByteRelay {
  const { timers = realTimers } = options;
  let first: Uint8Array | undefined;
  let isFinished = false;
  let isSilent = false;

  async function read(): Promise<Uint8Array | undefined> {
    const timer = timers.set(() => {
      isSilent = true;
      source.abort();
    }, options.idleMs);
    try {
      for (;;) {
        const { done, value } = await source.reader.read();
        if (done) return undefined;
        if (value.length > 0) return value;
      }
    } finally {
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
    async begin() {
      try {
        first = await read();
      } catch (error) {
        throw explained(error).failure;
      }
      if (!first) throw new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" });
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
