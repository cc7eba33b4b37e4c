// Whether PostgreSQL is there at all, for those who only read: where it has gone silent, reads that wait for it are refused within
// some seconds, and new ones at once, until it says something again.
// Refuses to judge one query: a long one is silent while it works, and so is a pool that is full of them. Nothing of the pool's
// must have been answered, and nobody must answer at the door. Refuses to touch writes that may have left: whoever lost an answer
// does not know whether it was committed. A transaction that has not begun has written nothing.
import { connect } from "node:net";
import type { Sql } from "postgres";
import { isAway } from "./away.ts";
import { DatabaseSilent } from "./deadline.ts";

/** A look that is so late was kept from it: this process stood still, and has not read what came meanwhile. */
const LATE_MS = 1500;
const LEAST_MS = 50;
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
/** Somebody is there, and wants nothing of this: sessions end by themselves, and tell it. */
const TURNED_AWAY = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE"]);

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

export interface Presence {
  /** Of each statement outside a transaction, before it is sent. What only reads is refused from here on while nobody is there. */
  attend(query: ReturnType<Sql["unsafe"]>, text: string): void;
  /**
   * A transaction, refused as reads are until `begins` is called, which says that its first statement may be sent: nothing was written
   * then. One that was refused meanwhile throws there, and is rolled back.
   */
  transact<T>(run: (begins: () => void) => Promise<T>): Promise<T>;
  close(): void;
}

const WRITES = /\b(?:insert|update|delete|merge|nextval|setval|pg_notify)\b/i;

/** In doubt it is none. */
function isRead(text: string): boolean {
  if (!/^[\s(]*(?:select|with)\b/i.test(text)) return false;
  return !WRITES.test(text);
}

/** Whether anybody answers at this address within the time, be it by turning it away. Never rejects. */
function answersAt(to: { host: string; port: number } | { path: string }, limitMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(to, () => socket.write(SSL_REQUEST));
  let limit = setTimeout(() => {
    limit = setTimeout(() => resolve(false), GRACE_MS);
  }, limitMs);
  socket.once("data", () => resolve(true));
  socket.once("error", ({ code = "" }: NodeJS.ErrnoException) => resolve(TURNED_AWAY.has(code)));
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
  answered(query: DriverQuery): void;
  /** The server has said something. */
  heard(): void;
  isSilent(): boolean;
  close(): void;
}

/** Knocks once somebody has waited for `quietMs` milliseconds and none of the pool's statements was answered for as long. */
function watchDoor(door: Door, quietMs: number, isBack: () => void): Watch {
  /** Reads without an answer, and since when. */
  const waiting = new Map<DriverQuery, number>();
  /** Only while somebody waits: a process that rests is woken by none of this. */
  let timer: ReturnType<typeof setTimeout> | undefined;
  let dueAtMs = 0;
  let heardAtMs = performance.now();
  let isKnocking = false;
  let isSilent = false;
  let isClosed = false;

  function heard(): void {
    heardAtMs = performance.now();
    isSilent = false;
  }

  function inTime(ms: number, work: () => void): void {
    if (isClosed || timer) return;
    dueAtMs = performance.now() + ms;
    timer = setTimeout(() => {
      timer = undefined;
      work();
    }, ms);
    timer.unref();
  }

  async function knock(): Promise<void> {
    const beforeMs = heardAtMs;
    isKnocking = true;
    const isThere = await isAnswered(door, quietMs * KNOCK_SHARE);
    isKnocking = false;
    if (isClosed) return;
    if (isThere) {
      if (isSilent) isBack();
      isSilent = false;
      if (waiting.size > 0) inTime(PEACE_MS, look);
      return;
    }
    // The pool may have heard something meanwhile.
    if (heardAtMs !== beforeMs) return look();
    isSilent = true;
    const all = [...waiting.keys()];
    waiting.clear();
    for (const query of all) query.reject(new DatabaseSilent());
    inTime(AGAIN_MS, () => void knock());
  }

  function look(): void {
    const nowMs = performance.now();
    if (nowMs - dueAtMs > LATE_MS) heardAtMs = nowMs;
    // What nobody has sent yet waits for nothing.
    for (const query of waiting.keys()) if (!query.executed) waiting.delete(query);
    const [oldestMs] = waiting.values();
    if (oldestMs === undefined || isSilent || isKnocking) return;
    const leftMs = quietMs - (nowMs - Math.max(oldestMs, heardAtMs));
    if (leftMs <= 0) void knock();
    else inTime(Math.max(LEAST_MS, leftMs), look);
  }

  function wait(query: DriverQuery): void {
    waiting.set(query, performance.now());
    if (!isKnocking) inTime(quietMs, look);
  }

  function answered(query: DriverQuery): void {
    waiting.delete(query);
    if (waiting.size > 0 || isSilent) return;
    clearTimeout(timer);
    timer = undefined;
  }

  return {
    wait,
    answered,
    heard,
    isSilent: () => isSilent,
    close() {
      isClosed = true;
      clearTimeout(timer);
      waiting.clear();
    },
  };
}

/** `isBack`: called when somebody answers again where nobody did. */
export function createPresence(door: Door, quietMs: number, isBack: () => void): Presence {
  const watch = watchDoor(door, quietMs, isBack);

  function refuse(query: DriverQuery): void {
    // It is never sent, and whoever does not wait for it is no unhandled rejection.
    query.executed = true;
    void Promise.prototype.then.call(query, undefined, () => undefined);
    query.reject(new DatabaseSilent());
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
      watch.heard();
      watch.answered(block);
      if (isRefused) throw new DatabaseSilent();
    };
    run(begins).then(resolve, (error: unknown) => {
      if (!isAway(error)) watch.heard();
      watch.answered(block);
      reject(error);
    });
    return promise;
  }

  return {
    transact,
    attend(sent, text) {
      const query = sent as unknown as DriverQuery;
      const reads = isRead(text);
      if (reads && watch.isSilent()) return refuse(query);
      const { resolve, reject } = query;
      query.resolve = (answer) => {
        watch.heard();
        watch.answered(query);
        resolve(answer);
      };
      query.reject = (error) => {
        // A lost connection is no word of the server's.
        if (!isAway(error)) watch.heard();
        watch.answered(query);
        reject(error);
      };
      if (reads) watch.wait(query);
    },
    close: () => watch.close(),
  };
}
