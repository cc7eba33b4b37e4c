// One relayed stream: what its caller decides, and what is known of it at any moment. Every step works on this one object.
import type { StreamMeter, WireFrame } from "../../protocol/dialect.ts";
import type { Failure } from "../../shared/failures.ts";
import { createSseReader } from "./framing.ts";
import type { SseReader } from "./framing.ts";
import { UNHELD } from "./stream-allowance.ts";
import type { PassedFrame, StreamHold, Unpaid } from "./stream-allowance.ts";
import type { StreamConversion } from "./stream-convert.ts";
import type { StreamEnd, StreamEndReason } from "./stream-end.ts";
import { realTimers } from "./timers.ts";
import type { Timers } from "./timers.ts";

/** The upstream's side: an open body, and the way to hang up. */
export interface StreamSource {
  reader: ReadableStreamDefaultReader<Uint8Array>;
  abort(): void;
}

/**
 * What makes a passed-through stream complete: a `[DONE]` line, the dialect's terminal event, or the end of the body
 * behind its finishing chunk.
 */
export type TerminalRule = "done-line" | "terminal-event" | "end-of-body";

/** How a stream is read on whose client has left. */
export interface StreamReadOn {
  /** For the usage of what was delivered and can be counted: so long, and so much of it. */
  readonly countedMs: number;
  readonly countedBytes: number;
  /**
   * Before the first content, and where `keepsReasoning` says that more is billed than is delivered: milliseconds to wait
   * for the upstream's end; 0 = none. `end` follows `begin`.
   */
  begin(): number;
  end(): void;
  keepsReasoning(): boolean;
}

export interface StreamOptions {
  meter: StreamMeter;
  /** Absent: "done-line". Means nothing to a conversion, whose decoder knows its end. */
  terminal?: TerminalRule;
  /** The meter again, when the client gets the stream in another form than the upstream's. */
  conversion?: StreamConversion | undefined;
  /** Of the key that the upstream was asked with: they leave every event that is read. */
  secrets?: readonly string[];
  /** Leave out the frame that carries nothing but usage: only the gateway asked for it. */
  hidesUsage: boolean;
  /** Only data lines go on: the client's parser knows nothing else (Google's). */
  dataOnly?: boolean;
  /** Whether a frame says nothing of the answer; absent: every frame is content. Means nothing to a conversion. */
  saysNothing?: ((frame: WireFrame) => boolean) | undefined;
  /** Upstream silence that ends the stream. */
  idleMs: number;
  /** Until the first event of the stream; 0 = only the silence counts. */
  firstEventMs?: number;
  /** Silence towards the client after which its connection is kept alive; 0 = never. */
  pingMs: number;
  /** What keeps it alive between frames, also where the upstream sends a comment; absent: nothing is ever sent. */
  ping?: Uint8Array | undefined;
  /** The first frame of the stream is there: from here on only its own timers count. */
  onFirstEvent?: () => void;
  /** Pays for what goes on; absent: nothing has to be paid by the token. */
  hold?: StreamHold;
  readOn: StreamReadOn;
  timers?: Timers;
}

export type ChunkRead = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

export interface StreamState {
  readonly source: StreamSource;
  readonly options: StreamOptions;
  readonly terminal: TerminalRule;
  readonly timers: Timers;
  readonly hold: StreamHold;
  readonly sse: SseReader;
  /** Bytes that the reader holds of an event that is not complete. */
  carriedBytes: number;
  /** Read before the client was answered: the frames up to the first content. */
  first: Uint8Array | undefined;
  /** As long as nothing but the stream's life cycle came, and nothing has been sent: another channel can still be asked. */
  waits: boolean;
  /** Resolved when the wait is over for another reason than content. */
  released: PromiseWithResolvers<undefined> | undefined;
  /** `nowMs` when the first content came; undefined until then. */
  contentMs: number | undefined;
  /** Where keep-alives go; undefined until there is a body. */
  sink: ReadableStreamDefaultController<Uint8Array> | undefined;
  pending: Promise<ChunkRead> | undefined;
  /** What a read and a broken one become: made once for the stream. */
  onRead: ((read: ChunkRead) => Uint8Array | undefined) | undefined;
  onBroken: ((error: unknown) => undefined) | undefined;
  /** The same where it meets the client's demand at once: what is done with it, and what a read and a broken one become. */
  onMet: ((chunk: Uint8Array | undefined) => Promise<void> | void) | undefined;
  onReadOn: ((read: ChunkRead) => Promise<void> | void) | undefined;
  onBrokenOn: ((error: unknown) => Promise<void> | void) | undefined;
  /** What was read and not looked at yet. */
  unread: Uint8Array | undefined;
  /** The client's demand that is being met. */
  taking: Promise<Uint8Array | undefined> | undefined;
  /** Where the stream waits until more of it is paid. */
  unpaid: Unpaid | undefined;
  /** Frames from the terminal one on: they leave when the call is settled. */
  readonly held: Uint8Array[];
  /** What the client has of the stream: its first frame, and those of its last chunk that says something. */
  firstPassed: PassedFrame | undefined;
  lastPassed: readonly PassedFrame[];
  /** What went on behind `lastPassed` unread, if anything did: the last such chunk, of whole events. */
  lastPlain: Uint8Array | undefined;
  isEof: boolean;
  /** The client has left. */
  isGone: boolean;
  /** The upstream said nothing for too long. */
  isSilent: boolean;
  lastByteMs: number;
  /** The first frame is due then; Infinity = it came, or only the silence counts. */
  firstDueMs: number;
  /** When the client last got something. */
  lastSentMs: number;
  watchTimer: unknown;
  /** How it ended, as soon as that is known. */
  end: StreamEnd | undefined;
  /** The end was reported: the call is being settled. */
  isReported: boolean;
  readonly ended: PromiseWithResolvers<StreamEnd>;
  /** The last bytes: they come when the call is settled. */
  readonly tail: PromiseWithResolvers<Uint8Array>;
}

export const encoder = new TextEncoder();
const NO_FRAMES: readonly PassedFrame[] = [];

export function newStreamState(source: StreamSource, options: StreamOptions): StreamState {
  const { conversion, timers = realTimers } = options;
  return {
    source,
    options,
    terminal: options.terminal ?? "done-line",
    timers,
    hold: options.hold ?? UNHELD,
    sse: createSseReader({ keepBytes: conversion === undefined }),
    carriedBytes: 0,
    first: undefined,
    waits: true,
    released: undefined,
    contentMs: undefined,
    sink: undefined,
    pending: undefined,
    onRead: undefined,
    onBroken: undefined,
    onMet: undefined,
    onReadOn: undefined,
    onBrokenOn: undefined,
    unread: undefined,
    taking: undefined,
    unpaid: undefined,
    held: [],
    firstPassed: undefined,
    lastPassed: NO_FRAMES,
    lastPlain: undefined,
    isEof: false,
    isGone: false,
    isSilent: false,
    lastByteMs: timers.nowMs(),
    firstDueMs: Infinity,
    lastSentMs: timers.nowMs(),
    watchTimer: undefined,
    end: undefined,
    isReported: false,
    ended: Promise.withResolvers(),
    tail: Promise.withResolvers(),
  };
}

/** The first reason stands. */
export function stop(stream: StreamState, reason: StreamEndReason, failure?: Failure): void {
  if (stream.end) return;
  stream.end = { reason, failure };
  stream.timers.clear(stream.watchTimer);
}

/** Whether something of the answer itself came, which ends the wait for it. */
export function hasContent({ options }: StreamState): boolean {
  const { state } = options.meter;
  return state.sawText || state.sawOther;
}
