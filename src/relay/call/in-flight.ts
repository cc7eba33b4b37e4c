// The calls in flight: how long one may be read on when its client has left, and how all of them end when the process has
// to stop. Refuses to read on for more of them than memory bears: the others are hung up on at once.
import { IndexedSet } from "../../shared/indexed-set.ts";
import type { Call } from "./call.ts";

/** Calls that nobody waits for any more, and the bytes of their requests, that may be in flight at a time. */
const MAX_READ_ON = 1000;
const MAX_READ_ON_BYTES = 256 * 1024 * 1024;

/** A call whose client has left goes on by itself for a while: its upstream bills it, and says how much at its end. */
export interface ReadingOn {
  /** Milliseconds that the call may be read on; 0 = not at all. `end` must follow, also then. */
  begin(call: Pick<Call, "body">): number;
  end(call: Pick<Call, "body">): void;
}

export interface InFlightCalls extends ReadingOn {
  /** From the reservation on. */
  add(call: Call): void;
  /** Settled or released. */
  remove(call: Call): void;
  readonly size: number;
  /** The process ends its calls: no upstream is called any more. */
  readonly isEnding: boolean;
  /** Resolves when no call is in flight. */
  idle(): Promise<void>;
  /** Ends them all: each is settled for what it did, and its client gets the failure; resolves when none is in flight. */
  endAll(): Promise<void>;
}

export function createInFlightCalls(readOnMs: () => number): InFlightCalls {
  const calls = new IndexedSet<Call>();
  let idle: PromiseWithResolvers<void> | undefined;
  let isEnding = false;
  let readOn = 0;
  let readOnBytes = 0;
  /** When the client left, so that an answer which begins meanwhile gets no time anew. */
  const leftAtMs = new WeakMap<object, number>();

  const whenIdle = (): Promise<void> => {
    if (calls.size === 0) return Promise.resolve();
    return (idle ??= Promise.withResolvers<void>()).promise;
  };

  return {
    begin(call) {
      const { bytes } = call.body;
      const isFull = readOn >= MAX_READ_ON || readOnBytes + bytes.length > MAX_READ_ON_BYTES;
      readOn += 1;
      readOnBytes += bytes.length;
      const nowMs = performance.now();
      const leftMs = leftAtMs.get(call) ?? nowMs;
      leftAtMs.set(call, leftMs);
      return isFull || isEnding ? 0 : Math.max(0, readOnMs() - (nowMs - leftMs));
    },
    end({ body }) {
      readOn -= 1;
      readOnBytes -= body.bytes.length;
    },
    add: (call) => calls.add(call),
    remove(call) {
      call.lease?.release();
      calls.delete(call);
      if (calls.size > 0 || !idle) return;
      idle.resolve();
      idle = undefined;
    },
    get size() {
      return calls.size;
    },
    get isEnding() {
      return isEnding;
    },
    idle: whenIdle,
    endAll() {
      isEnding = true;
      for (const call of calls) call.hangUp?.("draining");
      return whenIdle();
    },
  };
}
