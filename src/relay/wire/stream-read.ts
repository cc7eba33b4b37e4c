// Reads the upstream's side of a stream, one chunk per demand: in pieces, kept alive, and ended where it falls silent.
import { brokenStream } from "../../protocol/assemble.ts";
import { Failure } from "../../shared/failures.ts";
import type { StreamEndReason } from "./stream-end.ts";
import { passChunk, passRest, payAndGoOn } from "./stream-pass.ts";
import { stop } from "./stream-state.ts";
import type { ChunkRead, StreamState } from "./stream-state.ts";

/**
 * Bun hands over half a megabyte at once when a client is slower than its upstream. Taken apart in one go, that much and
 * its copies would be alive whenever the engine collects, and count as old from then on.
 */
const PIECE_BYTES = 64 * 1024;
/** After the terminal event only the end of the body is due; an upstream that lingers is hung up on. */
const LINGER_MS = 1000;

/** One read or a piece of it, processed and paid. Undefined = nothing to send (look at `end`). Never rejects but for a hold. */
export function take(stream: StreamState): Promise<Uint8Array | undefined> {
  if (stream.unpaid) return payAndGoOn(stream, stream.unpaid);
  if (stream.unread) return Promise.resolve(takePiece(stream, stream.unread));
  stream.pending ??= stream.source.reader.read();
  // No function is made for a chunk, and nothing waits but for the read itself.
  stream.onRead ??= (read) => taken(stream, read);
  stream.onBroken ??= (error) => broken(stream, error);
  return stream.pending.then(stream.onRead, stream.onBroken);
}

/** Nothing is left of what was read: the next chunk is the upstream's. */
export function isReadDue({ unpaid, unread, pending }: StreamState): boolean {
  return unpaid === undefined && unread === undefined && pending === undefined;
}

/** The next read, where one is due: what becomes of it is handed to `onMet`, which is the same for all of a stream. */
export function readOn(stream: StreamState, onMet: NonNullable<StreamState["onMet"]>): Promise<void> {
  stream.pending = stream.source.reader.read();
  stream.onReadOn ??= (read) => onMet(taken(stream, read));
  stream.onBrokenOn ??= (error) => onMet(broken(stream, error));
  return stream.pending.then(stream.onReadOn, stream.onBrokenOn);
}

function taken(stream: StreamState, read: ChunkRead): Uint8Array | undefined {
  stream.pending = undefined;
  stream.lastByteMs = stream.timers.nowMs();
  return read.done ? passRest(stream) : takePiece(stream, read.value);
}

function broken(stream: StreamState, error: unknown): undefined {
  stream.pending = undefined;
  stopBroken(stream, error);
}

function takePiece(stream: StreamState, bytes: Uint8Array): Uint8Array | undefined {
  const isAll = bytes.length <= PIECE_BYTES;
  stream.unread = isAll ? undefined : bytes.subarray(PIECE_BYTES);
  try {
    return passChunk(stream, isAll ? bytes : bytes.subarray(0, PIECE_BYTES));
  } catch (error) {
    stop(stream, "upstream-cut", error instanceof Failure ? error : brokenStream(String(error)));
    return undefined;
  }
}

function stopBroken(stream: StreamState, error: unknown): void {
  // Complete but for the end of its body: what was due has come.
  if (stream.options.meter.state.ended && stream.terminal === "end-of-body") stop(stream, "completed");
  else if (stream.isSilent)
    stop(stream, "upstream-stall", new Failure("upstream-timeout", "upstream_timeout"));
  else stop(stream, "upstream-cut", brokenStream(String(error)));
}

/**
 * One timer for all that is due while nothing comes: hangs up on an upstream that has been silent for too long, and keeps
 * alive a client's connection that has. Nothing of it costs a chunk more than the time that is noted anyway.
 */
export function watch(stream: StreamState): void {
  const { timers, options } = stream;
  const { idleMs, pingMs } = options;
  const pingDueMs = pingMs === 0 ? Infinity : stream.lastSentMs + pingMs;
  const dueMs = Math.min(stream.lastByteMs + idleMs, stream.firstDueMs, pingDueMs);
  stream.watchTimer = timers.set(() => look(stream), Math.max(1, dueMs - timers.nowMs()));
}

function look(stream: StreamState): void {
  const nowMs = stream.timers.nowMs();
  // Only a pending read is the upstream's silence; otherwise the client is the slow one.
  if (!stream.pending) stream.lastByteMs = nowMs;
  else if (nowMs >= Math.min(stream.firstDueMs, stream.lastByteMs + stream.options.idleMs)) {
    stream.isSilent = true;
    stream.source.abort();
    return;
  }
  keepAlive(stream, nowMs);
  watch(stream);
}

/** Between two frames only, and only to a client that waits for one. */
function keepAlive(stream: StreamState, nowMs: number): void {
  const { options, sink, lastSentMs, taking, isGone } = stream;
  if (options.pingMs === 0 || nowMs - lastSentMs < options.pingMs) return;
  stream.lastSentMs = nowMs;
  // What was sent last may not have been fetched: then the client is the slow one.
  if (!sink || !options.ping || isGone || !taking || (sink.desiredSize ?? -1) < 0) return;
  if (!stream.sse.isInLineEnd() || options.conversion) sink.enqueue(options.ping);
}

/** A complete stream is read to its end, so that its connection can serve again. */
export function hangUp(stream: StreamState, reason: StreamEndReason): void {
  const { source, timers } = stream;
  if (reason !== "completed") return source.abort();
  const timer = timers.set(() => source.abort(), LINGER_MS);
  const readOut = async (): Promise<void> => {
    try {
      while (!(await (stream.pending ?? source.reader.read())).done) stream.pending = undefined;
    } catch {
      // Whatever happens behind the terminal event changes nothing.
    } finally {
      timers.clear(timer);
    }
  };
  void readOut();
}
