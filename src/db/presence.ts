// Whether PostgreSQL is there at all, for those who only read: where it has gone silent, reads that wait for it are refused within
// some seconds, and new ones at once, until it says something again.
// Refuses to judge one query: a long one is silent while it works, and so is a pool that is full of them. Nothing of the pool's
// must have been answered, and nobody must answer at the door. Refuses to touch what may have been written: whoever lost an
// answer does not know whether it was committed. A transaction that has not begun has written nothing.
import { connect, isIP } from "node:net";
import type { Sql } from "postgres";
import { DatabaseSilent } from "./deadline.ts";

const LOOK_MS = 500;
/** A look that is so late was kept from it: this process stood still, and has not read what came meanwhile. */
const LATE_MS = 2000;
/** Of the time after which somebody knocks, so much is waited for an answer. */
const KNOCK_SHARE = 2 / 3;
/** A process that was busy reads first what has arrived meanwhile. */
const GRACE_MS = 50;
/** While nobody answers it is tried again after so long: the next call must not wait for that. */
const AGAIN_MS = 250;
/** A door at which somebody answered is left in peace for so long. */
const PEACE_MS = 1000;
/** SSLRequest of the PostgreSQL protocol: whoever serves it answers by one byte, before anybody has said who he is. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
/**
 * What a network says of an address at which nobody is. With any other error somebody turned this away, whose sessions end by themselves
 * and tell it, or nobody was asked: a name that is not known, no descriptor left. Trouble of this machine's own cuts no read that works.
 */
const NOBODY = new Set(["EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ETIMEDOUT"]);

/** What of the driver's query decides its end (postgres 3.4.9, src/query.js). */
interface DriverQuery {
  executed: boolean;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** Where the server listens, as the driver has read it. */
interface Door {
  host: readonly string[];
  port: readonly number[];
  path?: string | false | undefined;
}

type Statement = ReturnType<Sql["unsafe"]>;

export interface Presence {
  /** Of each statement outside a transaction, before it is sent. What only reads is refused from here on while nobody is there. */
  attend(query: Statement, text: string): void;
  /** Of each statement that is never refused: what answers it is a sign of life. */
  listenTo(query: Statement): void;
  /**
   * A transaction, refused as reads are until it calls `begins`, before its first statement: nothing was written then. One that was
   * refused meanwhile throws there, and is rolled back.
   */
  transact<T>(run: (begins: () => void) => Promise<T>): Promise<T>;
  /** Something was answered; by an error, if it is given: those of the driver's own are none. */
  heard(error?: unknown): void;
  close(): void;
}

const WRITES = /\b(?:insert|update|delete|merge|nextval|setval|pg_notify)\b/i;

/** In doubt it is none. */
function isRead(text: string): boolean {
  if (!/^[\s(]*(?:select|with)\b/i.test(text)) return false;
  return !WRITES.test(text);
}

/** The server's own errors have a severity, the driver's have none (postgres 3.4.9, src/errors.js). */
function isOfServer(error: unknown): boolean {
  return typeof (error as { severity?: unknown } | null)?.severity === "string";
}

/**
 * Whether anybody answers at this address within the time, be it by turning it away. The time begins when the address is known; a name
 * that is not resolved in it is no proof of anybody's absence. Never rejects.
 */
function answersAt(to: { host: string; port: number } | { path: string }, limitMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(to, () => socket.write(SSL_REQUEST));
  let limit: ReturnType<typeof setTimeout> | undefined;
  const resolveLater = (isThere: boolean): void => {
    clearTimeout(limit);
    limit = setTimeout(() => {
      limit = setTimeout(() => resolve(isThere), GRACE_MS);
    }, limitMs);
  };
  resolveLater("host" in to && isIP(to.host) === 0);
  socket.once("lookup", () => resolveLater(false));
  socket.once("data", () => resolve(true));
  socket.once("error", ({ code = "" }: NodeJS.ErrnoException) => resolve(!NOBODY.has(code)));
  socket.once("end", () => resolve(true));
  return promise.finally(() => {
    clearTimeout(limit);
    socket.on("error", () => undefined);
    socket.destroy();
  });
}

async function isAnswered({ host, port, path }: Door, limitMs: number): Promise<boolean> {
  if (path) return answersAt({ path }, limitMs);
  const all = host.map((each, at) => answersAt({ host: each, port: port[at] ?? 5432 }, limitMs));
  return (await Promise.all(all)).includes(true);
}

/** Who waits for the server, and whether anybody is there. */
interface Watch {
  /** It is refused by its `reject` once nobody is there. */
  wait(query: DriverQuery): void;
  /** It waits no more, whatever came. */
  leave(query: DriverQuery): void;
  heard: Presence["heard"];
  isSilent(): boolean;
  close(): void;
}

/** Knocks once somebody has waited for `quietMs` milliseconds and none of the pool's statements was answered for as long. */
function watchDoor(door: Door, quietMs: number): Watch {
  /** Reads without an answer, and since when. */
  const waiting = new Map<DriverQuery, number>();
  /** One for all who wait, and none of those that others share: reads come and go. */
  let timer: ReturnType<typeof setInterval> | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  let heardAtMs = performance.now();
  let lookedAtMs = 0;
  let peaceUntilMs = 0;
  let isKnocking = false;
  let isSilent = false;
  let isClosed = false;

  function heard(error?: unknown): void {
    // Of a lost connection, of what is cancelled before it was sent, of a pool that is closed the driver tells by itself.
    if (error !== undefined && !isOfServer(error)) return;
    heardAtMs = performance.now();
    isSilent = false;
    clearTimeout(again);
  }

  /** Whether somebody waits, and has waited for so long without a word of the server's. */
  function isQuiet(nowMs: number): boolean {
    const [oldestMs] = waiting.values();
    return oldestMs !== undefined && nowMs - Math.max(oldestMs, heardAtMs) >= quietMs;
  }

  /** Nobody waits: nothing is to be woken for. */
  function rest(): void {
    clearInterval(timer);
    timer = undefined;
  }

  function leave(query: DriverQuery): void {
    if (waiting.delete(query) && waiting.size === 0) rest();
  }

  async function knock(): Promise<void> {
    isKnocking = true;
    const isThere = await isAnswered(door, quietMs * KNOCK_SHARE);
    isKnocking = false;
    if (isClosed) return;
    if (isThere) {
      isSilent = false;
      peaceUntilMs = performance.now() + PEACE_MS;
    }
    // The pool may have heard something meanwhile, or lost those who had waited for so long.
    if (isThere || !(isSilent || isQuiet(performance.now()))) return;
    isSilent = true;
    const all = [...waiting.keys()];
    waiting.clear();
    rest();
    for (const query of all) query.reject(new DatabaseSilent());
    again = setTimeout(() => void knock(), AGAIN_MS);
    again.unref();
  }

  function look(): void {
    const nowMs = performance.now();
    if (nowMs - lookedAtMs > LATE_MS) heardAtMs = nowMs;
    lookedAtMs = nowMs;
    if (isQuiet(nowMs) && nowMs >= peaceUntilMs && !isKnocking && !isSilent) void knock();
  }

  function wait(query: DriverQuery): void {
    waiting.set(query, performance.now());
    if (timer) return;
    lookedAtMs = performance.now();
    timer = setInterval(look, LOOK_MS);
    timer.unref();
  }

  return {
    wait,
    leave,
    heard,
    isSilent: () => isSilent,
    close() {
      isClosed = true;
      clearInterval(timer);
      clearTimeout(again);
      waiting.clear();
    },
  };
}

export function createPresence(door: Door, quietMs: number): Presence {
  const watch = watchDoor(door, quietMs);

  function refuse(query: DriverQuery): void {
    // It is never sent, and whoever does not wait for it is no unhandled rejection.
    query.executed = true;
    void Promise.prototype.then.call(query, undefined, () => undefined);
    query.reject(new DatabaseSilent());
  }

  function listenTo(query: DriverQuery): void {
    const { resolve, reject } = query;
    query.resolve = (answer) => {
      watch.leave(query);
      watch.heard();
      resolve(answer);
    };
    query.reject = (error) => {
      watch.leave(query);
      watch.heard(error);
      reject(error);
    };
  }

  function transact<T>(run: (begins: () => void) => Promise<T>): Promise<T> {
    if (watch.isSilent()) return Promise.reject(new DatabaseSilent());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let isRefused = false;
    const block: DriverQuery = {
      executed: true,
      resolve: () => undefined,
      reject(error) {
        isRefused = true;
        reject(error);
      },
    };
    watch.wait(block);
    const begins = (): void => {
      watch.leave(block);
      watch.heard();
      if (isRefused) throw new DatabaseSilent();
    };
    run(begins).then(
      (answer) => {
        // Its end is a statement of the driver's.
        watch.heard();
        resolve(answer);
      },
      (error: unknown) => {
        watch.leave(block);
        watch.heard(error);
        reject(error);
      },
    );
    return promise;
  }

  return {
    attend(sent, text) {
      const query = sent as unknown as DriverQuery;
      const reads = isRead(text);
      if (reads && watch.isSilent()) return refuse(query);
      listenTo(query);
      if (reads) watch.wait(query);
    },
    listenTo: (query) => listenTo(query as unknown as DriverQuery),
    transact,
    heard: (error) => watch.heard(error),
    close: () => watch.close(),
  };
}
