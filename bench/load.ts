// The bench's own load, a process of its own: steady rate, concurrent streams, aborted streams, slow reader, idle sockets.
// Takes one job as JSON in its argument, prints one JSON line. Refuses to retry: what fails is counted.

import { type Connection, connect } from "./raw-client.ts";
import { CHAT_MODEL, CHUNK_INTERVAL_MS, FAST, MARKS, STREAM_CHUNKS } from "./mock-upstream.ts";

export interface Target {
  hostname: string;
  port: number;
  key: string;
  /** The subject's process; absent for the mock itself. */
  pid?: number;
}

/** Another call than the usual chat completion. */
export interface Ask {
  path: string;
  body: string;
}

export type Job =
  | { kind: "rate"; target: Target; perSecond: number; seconds: number; promptBytes?: number }
  | { kind: "paced"; target: Target; concurrency: number; total: number; rampMs: number }
  | { kind: "sockets"; target: Target; count: number; seconds: number }
  | { kind: "streams"; target: Target; concurrency: number; total: number; rampMs: number; isBurst?: boolean }
  | { kind: "aborts"; target: Target; concurrency: number; total: number }
  | { kind: "slow"; target: Target; seconds: number };

export interface LoadResult {
  requests: number;
  seconds: number;
  errors: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of the subject, all its threads, per request; measured from outside. */
  cpuUs?: number;
  /** Streams only: events a stream carried, smallest and largest. */
  eventsMin?: number;
  eventsMax?: number;
  /** Steady rate only: connections that the other side had closed and that were opened again; no error by itself. */
  reopened?: number;
  /** Slow reader only. */
  bytesRead?: number;
  /** Paced streams only: how much later than its pace a chunk came, over all chunks; chunks above LATE_MS. */
  latenessP99Ms?: number;
  latenessMaxMs?: number;
  lateChunks?: number;
}

/** Body of a chat call; a mark asks the mock for that kind of stream. */
export function chatBody(mark?: (typeof MARKS)[keyof typeof MARKS]): string {
  const messages = [
    { role: "user", content: "Say something short about rivers and the people who live on their banks." },
  ];
  const streaming = mark ? { stream: true, stream_options: { include_usage: true }, user: mark } : {};
  return JSON.stringify({ model: CHAT_MODEL, messages, temperature: 0.7, max_tokens: 256, ...streaming });
}

/** The usual call with a prompt of about so many bytes. */
function largeBody(bytes: number): string {
  const words = "The river bends where the old mill stands. ";
  const content = words.repeat(Math.ceil(bytes / words.length));
  return JSON.stringify({ model: CHAT_MODEL, messages: [{ role: "user", content }], max_tokens: 256 });
}

function requestBytes(target: Target, body: string): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: ${target.hostname}:${target.port}\r\nContent-Type: application/json\r\n` +
      `Authorization: Bearer ${target.key}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

interface Tally {
  timesMs: number[];
  errors: number;
  startedMs: number;
}

function startTally(): Tally {
  return { timesMs: [], errors: 0, startedMs: performance.now() };
}

function resultOf(tally: Tally): LoadResult {
  const sorted = Float64Array.from(tally.timesMs).sort();
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  const seconds = (performance.now() - tally.startedMs) / 1000;
  return { requests: sorted.length, seconds, errors: tally.errors, p50Ms: at(0.5), p99Ms: at(0.99) };
}

async function reopen(target: Target, connection: Connection | undefined): Promise<Connection> {
  return connection?.isOpen() ? connection : await connect(target.hostname, target.port);
}

/** Runs one exchange to its end; resolves with the status, 0 when the connection broke. */
function exchangeOnce(connection: Connection, request: Buffer): Promise<number> {
  return new Promise((resolve) => {
    let status = 0;
    connection.exchange(request, {
      onHead: (value) => (status = value),
      onEnd: () => resolve(status),
      onBroken: () => resolve(0),
    });
  });
}

/** Connections of a steady load; plenty for its rate. */
const STEADY_CONNECTIONS = 64;

/**
 * Connections that take turns, so that none of them is silent for long and every worker has its share. A server may close
 * one that is silent, as the protocol lets it: such a one is opened again and counted, and no call is lost by it.
 */
interface Turns {
  /** The one whose turn it is; undefined: all are in use, or none could be opened. */
  take(): Promise<Connection | undefined> | Connection | undefined;
  give(connection: Connection): void;
  /** How many had to be opened again. */
  readonly reopened: number;
  close(): void;
}

async function takeTurns(target: Target, count: number): Promise<Turns> {
  const idle = await Promise.all(Array.from({ length: count }, () => reopen(target, undefined)));
  const all = new Set(idle);
  let reopened = 0;
  return {
    take() {
      const next = idle.shift();
      if (!next || next.isOpen()) return next;
      reopened++;
      all.delete(next);
      return reopen(target, undefined).then(
        (opened) => {
          all.add(opened);
          return opened;
        },
        () => {
          // Nobody listens: its turn comes again, and the call that wanted it is counted as failed.
          idle.push(next);
          return undefined;
        },
      );
    },
    give: (connection) => void idle.push(connection),
    get reopened() {
      return reopened;
    },
    close() {
      for (const connection of all) connection.close();
    },
  };
}

/**
 * Open loop: requests leave when they are due, whether or not earlier ones are back. A request that had to wait for a
 * free connection counts from when it was due; the load's own timer being late is not held against the target.
 */
async function steadyRate(job: Extract<Job, { kind: "rate" }>): Promise<LoadResult> {
  const { promptBytes } = job;
  const request = requestBytes(job.target, promptBytes === undefined ? chatBody() : largeBody(promptBytes));
  const turns = await takeTurns(job.target, STEADY_CONNECTIONS);
  const tally = startTally();
  const total = job.perSecond * job.seconds;
  const backlog: number[] = [];
  let busy = 0;
  let sent = 0;
  let finished = 0;
  const done = Promise.withResolvers<void>();
  const finish = () => {
    busy--;
    finished++;
    const waitingMs = backlog.shift();
    if (waitingMs !== undefined) launch(waitingMs);
    if (finished === total) done.resolve();
  };
  const ask = async (connection: Connection, sinceMs: number) => {
    const status = await exchangeOnce(connection, request);
    if (status === 200) tally.timesMs.push(performance.now() - sinceMs);
    else tally.errors++;
    turns.give(connection);
    finish();
  };
  const launch = (sinceMs: number) => {
    busy++;
    const turn = turns.take();
    // Usually at once: a promise for every call would cost the load a turn.
    if (!(turn instanceof Promise)) {
      void ask(turn as Connection, sinceMs);
      return;
    }
    void turn.then((connection) => {
      if (connection) return ask(connection, sinceMs);
      tally.errors++;
      return finish();
    });
  };
  const startedMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const dueCount = Math.min(total, Math.floor(((nowMs - startedMs) / 1000) * job.perSecond));
    for (; sent < dueCount; sent++) {
      if (busy < STEADY_CONNECTIONS) launch(performance.now());
      else backlog.push(nowMs);
    }
    if (sent === total) clearInterval(timer);
  }, 1);
  await Promise.race([done.promise, Bun.sleep((job.seconds + 30) * 1000)]);
  clearInterval(timer);
  tally.errors += total - finished;
  turns.close();
  return { ...resultOf(tally), reopened: turns.reopened };
}

const EVENT = "data: ";

/** One stream; resolves with its events, or -1 when it did not end as a whole stream should. */
function streamOnce(
  connection: Connection,
  request: Buffer,
  onFirst: () => boolean,
  onEvents?: (count: number) => void,
): Promise<number> {
  return new Promise((resolve) => {
    let events = 0;
    let status = 0;
    // A border of two reads may run through the middle of a marker.
    let tail = "";
    let sawDone = false;
    connection.exchange(request, {
      onHead: (value) => (status = value),
      onBody(bytes) {
        const text = tail + bytes.toString("latin1");
        const before = events;
        for (let at = text.indexOf(EVENT); at >= 0; at = text.indexOf(EVENT, at + EVENT.length)) events++;
        if (!sawDone && text.includes("[DONE]")) sawDone = true;
        tail = text.slice(-(EVENT.length - 1));
        if (before === 0 && events > 0 && !onFirst()) {
          resolve(events);
          connection.close();
        }
        if (events > before) onEvents?.(events);
      },
      onEnd: () => resolve(status === 200 && sawDone ? events : -1),
      onBroken: () => resolve(-1),
    });
  });
}

async function streams(job: Extract<Job, { kind: "streams" | "aborts" }>): Promise<LoadResult> {
  const isBurst = job.kind === "streams" && job.isBurst === true;
  const request = requestBytes(job.target, chatBody(isBurst ? MARKS.burst : MARKS.paced));
  const mustAbort = job.kind === "aborts";
  const tally = startTally();
  let left = job.total;
  let eventsMin = Number.POSITIVE_INFINITY;
  let eventsMax = 0;
  const worker = async (_: unknown, index: number) => {
    let connection = await reopen(job.target, undefined);
    if (job.kind === "streams") await Bun.sleep((job.rampMs * index) / job.concurrency);
    while (left-- > 0) {
      connection = await reopen(job.target, connection);
      const startedMs = performance.now();
      const events = await streamOnce(connection, request, () => {
        tally.timesMs.push(performance.now() - startedMs);
        return !mustAbort;
      });
      if (events < 0) tally.errors++;
      else {
        eventsMin = Math.min(eventsMin, events);
        eventsMax = Math.max(eventsMax, events);
      }
      // As many a second as there would be of paced ones.
      if (isBurst && left > 0) await Bun.sleep(STREAM_CHUNKS * CHUNK_INTERVAL_MS);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: job.concurrency }, worker));
  return { ...resultOf(tally), eventsMin, eventsMax };
}

/** A chunk later than this behind its pace is one that a reader notices. */
const LATE_MS = 100;

/** Streams of the fast pace: every chunk is held against the moment it was due, counted from the stream's first one. */
async function paced(job: Extract<Job, { kind: "paced" }>): Promise<LoadResult> {
  const request = requestBytes(job.target, chatBody(MARKS.fast));
  const tally = startTally();
  const lateness: number[] = [];
  let left = job.total;
  let eventsMin = Number.POSITIVE_INFINITY;
  let eventsMax = 0;
  const worker = async (_: unknown, index: number) => {
    let connection = await reopen(job.target, undefined);
    await Bun.sleep((job.rampMs * index) / job.concurrency);
    while (left-- > 0) {
      connection = await reopen(job.target, connection);
      const startedMs = performance.now();
      let firstMs = 0;
      let seen = 0;
      const events = await streamOnce(
        connection,
        request,
        () => {
          firstMs = performance.now();
          tally.timesMs.push(firstMs - startedMs);
          return true;
        },
        (count) => {
          for (; seen < Math.min(count, FAST.chunks); seen++)
            lateness.push(performance.now() - firstMs - seen * FAST.intervalMs);
        },
      );
      if (events < 0) tally.errors++;
      else {
        eventsMin = Math.min(eventsMin, events);
        eventsMax = Math.max(eventsMax, events);
      }
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: job.concurrency }, worker));
  const sorted = Float64Array.from(lateness).sort();
  return {
    ...resultOf(tally),
    eventsMin,
    eventsMax,
    latenessP99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    latenessMaxMs: sorted.at(-1) ?? Number.NaN,
    lateChunks: lateness.filter((ms) => ms > LATE_MS).length,
  };
}

/** Opens realtime sockets and leaves them idle; `errors` counts those that did not open or did not stay. */
async function idleSockets(job: Extract<Job, { kind: "sockets" }>): Promise<LoadResult> {
  const { target } = job;
  const tally = startTally();
  const url = `ws://${target.hostname}:${target.port}/v1/realtime?model=gpt-4o-realtime-preview`;
  const open: WebSocket[] = [];
  for (let i = 0; i < job.count; i++) {
    const startedMs = performance.now();
    const protocols = ["realtime", `openai-insecure-api-key.${target.key}`];
    const socket = new WebSocket(url, protocols);
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.onopen = () => resolve(true);
      socket.onerror = () => resolve(false);
      socket.onclose = () => resolve(false);
    });
    if (!isOpen) tally.errors++;
    else {
      tally.timesMs.push(performance.now() - startedMs);
      socket.onclose = () => void tally.errors++;
      open.push(socket);
    }
  }
  await Bun.sleep(job.seconds * 1000);
  for (const socket of open) {
    socket.onclose = null;
    socket.close();
  }
  return resultOf(tally);
}

/** Reads a sip every 50 ms for the given time, then leaves. */
async function slowReader(job: Extract<Job, { kind: "slow" }>): Promise<LoadResult> {
  const tally = startTally();
  const connection = await reopen(job.target, undefined);
  let bytesRead = 0;
  let isOver = false;
  connection.exchange(requestBytes(job.target, chatBody(MARKS.bulk)), {
    onHead: (status) => void (status === 200 || tally.errors++),
    onBody(bytes) {
      bytesRead += bytes.length;
      connection.pause();
    },
    onEnd: () => (isOver = true),
    onBroken: () => (isOver = true),
  });
  const endMs = performance.now() + job.seconds * 1000;
  while (performance.now() < endMs && !isOver) {
    await Bun.sleep(50);
    if (!isOver) connection.resume();
  }
  // Over before its time: the client was not slow at all, or was thrown out.
  if (isOver) tally.errors++;
  else connection.close();
  return { ...resultOf(tally), bytesRead };
}

if (import.meta.main) {
  const job = JSON.parse(process.argv[2] ?? "") as Job;
  let result: LoadResult;
  if (job.kind === "rate") result = await steadyRate(job);
  else if (job.kind === "slow") result = await slowReader(job);
  else if (job.kind === "paced") result = await paced(job);
  else if (job.kind === "sockets") result = await idleSockets(job);
  else result = await streams(job);
  console.log(JSON.stringify(result));
  process.exit(0);
}
