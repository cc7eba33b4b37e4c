// Who is at the other end of a request, how many requests of strangers are open, and which connections stay open: all of
// it asked of the server object that listening returned, handed over once. Elysia's own `server` is read out of the
// source of handlers, which minifying rewrites: in the binary it was undefined, and every visitor had one address.
// Refuses a stand-in for an address that is not known, and more open requests of one address than any person has.
import type { Server } from "bun";
import { addressGroup } from "../core/kit/site-limits.ts";
import { Failure } from "../shared/failures.ts";
import { IndexedSet } from "../shared/indexed-set.ts";
import type { Indexed } from "../shared/indexed-set.ts";
import { clientAddress, inRanges } from "./address.ts";
import type { Range } from "./address.ts";

/**
 * Silence that closes a connection, and all the time that a request without a live body has: what a client sends does
 * not count for Bun, only what is sent to it (measured). Steps of four seconds. Silent and dripping connections that
 * have not said a whole request yet are closed by Bun after some twelve seconds.
 */
export const IDLE_SECONDS = 20;
/** What a connection that the gateway still owes something gets at every look; longer than a look and its delay. */
const OWED_SECONDS = 32;
const LOOK_MS = 6000;
/** No call of the console takes longer: a channel test may use the whole deadline of a relayed call. */
const MAX_HELD_MS = 2 * 3600 * 1000;
/** So many held requests are looked through for those that were answered, not only at the next look. */
const MANY_HELD = 1024;

/**
 * Open requests of one address before a key or a session is accepted; and as many different keys and sessions that are
 * being looked up for it, so that who has one is never refused because of neighbours who have none.
 */
export const MAX_OPEN_REQUESTS = 64;

/** A stream whose connection stays open while the upstream is the one who is silent, not while its client is. */
interface Owing {
  isOwing(): boolean;
}

/** A call whose answer is being worked on. */
export interface Work extends Indexed {
  readonly request: Request;
}

export interface Visitors {
  /** The listening server; called once, when it listens. */
  attach(server: Server<unknown>): void;
  /** Throws until somebody listens: no request can have come. */
  readonly server: Server<unknown>;
  /** The visitor's address; UNKNOWN_ADDRESS when the socket is gone already. Throws until somebody listens. */
  addressOf(request: Request): string;
  /** A visitor nobody has accepted: counted until the request is answered. Throws `too_many_open`. */
  stranger(request: Request): void;
  /** Runs the look-up of what a visitor shows; a crowd with one key or session is one. Throws `too_many_open`. */
  lookUp<T>(request: Request, shown: string, work: () => Promise<T>): Promise<T>;
  /** Another span of silence for a connection on which something arrives. */
  alive(request: Request): void;
  /** Work has begun that must be ended by `done`. */
  working(request: Request): Work;
  done(work: Work | undefined): void;
  /** As `working`, for what has no end of its own: forgotten when the answer has left, or at the limit. */
  hold(request: Request, maxMs?: number): void;
  /** What was held has come to its end, or says from here on whether it is owed. */
  release(request: Request): void;
  /** From here on the stream says whether it owes its client something; `fed` when its last bytes are about to leave. */
  feed(request: Request, stream: Owing): void;
  fed(request: Request): void;
  /** One look at all of them; the timer's work. */
  look(): void;
  close(): void;
}

type LookEvery = (ms: number, look: () => void) => () => void;

function ownInterval(ms: number, look: () => void): () => void {
  const timer = setInterval(look, ms);
  timer.unref();
  return () => clearInterval(timer);
}

/** `lookEvery` brings the looks until what it returns is called: the timer that the process shares (db/look-around.ts). */
export function createVisitors(trusted: readonly Range[], lookEvery: LookEvery = ownInterval): Visitors {
  let listening: Server<unknown> | undefined;
  let stopLooking: (() => void) | undefined;
  /** By address; those that were answered are found when it matters, or at the next look. */
  const open = new Map<string, Set<Request>>();
  /** By address, then by what is shown: how many wait for it. */
  const lookUps = new Map<string, Map<string, number>>();
  const inFlight = new IndexedSet<Work>();
  const held = new Map<Request, number>();
  const streams = new Map<Request, Owing>();
  let manyHeld = MANY_HELD;

  function server(): Server<unknown> {
    if (!listening) throw new Error("a request before the server listens");
    return listening;
  }

  function addressOf(request: Request): string {
    return clientAddress(request, server(), trusted);
  }

  /** Undefined: a proxy's own request; its clients' count by their addresses. */
  function countedAs(request: Request): string | undefined {
    const address = addressOf(request);
    return trusted.length > 0 && inRanges(address, trusted) ? undefined : addressGroup(address);
  }

  /** Nobody tells when an answer has left, or a client; the request has no address any more then. */
  function isOver(request: Request): boolean {
    return server().requestIP(request) === null;
  }

  function tooMany(): Failure {
    return new Failure("limit", "too_many_open", { retryAfterSeconds: 1 });
  }

  function look(): void {
    const here = server();
    const nowMs = performance.now();
    for (const { request } of inFlight) here.timeout(request, OWED_SECONDS);
    for (const [request, untilMs] of held) {
      if (nowMs > untilMs || isOver(request)) held.delete(request);
      else here.timeout(request, OWED_SECONDS);
    }
    for (const [request, stream] of streams) {
      if (isOver(request)) streams.delete(request);
      else if (stream.isOwing()) here.timeout(request, OWED_SECONDS);
    }
    for (const [address, requests] of open) {
      for (const request of requests) if (isOver(request)) requests.delete(request);
      if (requests.size === 0) open.delete(address);
    }
    manyHeld = MANY_HELD;
  }

  return {
    attach(started) {
      listening = started;
      stopLooking = lookEvery(LOOK_MS, look);
    },
    get server() {
      return server();
    },
    addressOf,
    stranger(request) {
      const address = countedAs(request);
      if (address === undefined) return;
      let requests = open.get(address);
      if (!requests) open.set(address, (requests = new Set()));
      if (requests.size >= MAX_OPEN_REQUESTS) {
        for (const earlier of requests) if (isOver(earlier)) requests.delete(earlier);
        if (requests.size >= MAX_OPEN_REQUESTS) throw tooMany();
      }
      requests.add(request);
    },
    async lookUp(request, shown, work) {
      const address = countedAs(request);
      if (address === undefined) return work();
      let waiting = lookUps.get(address);
      if (!waiting) lookUps.set(address, (waiting = new Map()));
      const before = waiting.get(shown) ?? 0;
      if (before === 0 && waiting.size >= MAX_OPEN_REQUESTS) throw tooMany();
      waiting.set(shown, before + 1);
      try {
        return await work();
      } finally {
        const left = (waiting.get(shown) ?? 1) - 1;
        if (left > 0) waiting.set(shown, left);
        else if (waiting.delete(shown) && waiting.size === 0) lookUps.delete(address);
      }
    },
    alive: (request) => server().timeout(request, IDLE_SECONDS),
    working(request) {
      const work = { request, index: -1 };
      inFlight.add(work);
      return work;
    },
    done: (work) => work && inFlight.delete(work),
    hold(request, maxMs = MAX_HELD_MS) {
      if (held.size >= manyHeld) {
        for (const earlier of held.keys()) if (isOver(earlier)) held.delete(earlier);
        manyHeld = Math.max(MANY_HELD, 2 * held.size);
      }
      held.set(request, performance.now() + maxMs);
    },
    release: (request) => void held.delete(request),
    feed: (request, stream) => void streams.set(request, stream),
    fed(request) {
      if (streams.delete(request)) server().timeout(request, OWED_SECONDS);
    },
    look,
    close() {
      stopLooking?.();
    },
  };
}
