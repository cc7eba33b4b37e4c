// A pool's connections to a server that says nothing any more: a firewall or balancer that has forgotten them drops what is sent,
// and TCP goes on trying for a quarter of an hour, with every query of the pool behind it. They are closed, and opened anew.
// Refuses to judge one connection alone: a long query is silent too. All must be, more than one must be owed an answer, and a
// fresh connection is asked before: who works or waits for a lock on the server is left in peace. Below TLS the runtime counts
// no bytes, and no firewall forgets the sockets of one machine: nothing is judged there.
import { connect } from "node:net";
import type { Socket } from "node:net";
import { lookEvery } from "./look-around.ts";
import type { Look } from "./look-around.ts";

const LOOK_MS = 1000;
const REST_MS = 2500;
/** The heartbeat of the ledger, looks at leases and whoever calls ask each second, on connections of their own. */
const LEAST_WAITING = 2;

/** Where a pooler hides whose server process is whose, working ones are given up at most so often. */
const BLIND_MS = 60_000;

/** What a fresh connection has to say of the others. */
interface Verdict {
  /** `silent`: it was not answered either. `refused`: the server is there, and takes no more. */
  outcome: "answered" | "silent" | "refused";
  /** Of the ports that were asked for: those that the server knows, and those whose server process is at work. */
  known: ReadonlySet<number>;
  working: ReadonlySet<number>;
}

/** Asks on a connection of its own about those with these ports at this end. Never rejects. */
export type Inquiry = (ports: readonly number[]) => Promise<Verdict>;

/** What the driver tells of where it wants to go. */
interface Destination {
  host: readonly string[];
  port: readonly number[];
  path?: string | false | undefined;
}

interface Seen {
  bytesRead: number;
  bytesWritten: number;
  /** Something was sent then, and nothing has come since. */
  sinceMs: number | undefined;
}

/**
 * Opens the driver's sockets. Once nothing has come on any of them for `silentMs` milliseconds, and two or more have waited for
 * as long, all are destroyed but those whose server process is at work: their queries reject as those of any lost connection do.
 */
export function createSilenceWatch(silentMs: number, inquire: Inquiry): (to: Destination) => Socket {
  const sockets = new Map<Socket, Seen>();
  let stop: (() => void) | undefined;
  let opened = 0;
  let readAtMs = 0;
  let lookedAtMs = 0;
  let isAsking = false;
  let askedAtMs = -Infinity;
  let blindAtMs = -Infinity;

  function note(socket: Socket, seen: Seen, nowMs: number): void {
    const { bytesRead, bytesWritten } = socket;
    if (bytesRead !== seen.bytesRead) {
      readAtMs = nowMs;
      seen.sinceMs = undefined;
    } else if (bytesWritten !== seen.bytesWritten) seen.sinceMs ??= nowMs;
    seen.bytesRead = bytesRead;
    seen.bytesWritten = bytesWritten;
  }

  function isSilent(nowMs: number): boolean {
    if (nowMs - readAtMs < silentMs) return false;
    const waiting = [...sockets.values()].filter(({ sinceMs = nowMs }) => nowMs - sinceMs >= silentMs);
    return waiting.length >= LEAST_WAITING;
  }

  async function judge(): Promise<void> {
    const asked = [...sockets.keys()];
    const silentSinceMs = readAtMs;
    const { outcome, known, working } = await inquire(asked.flatMap(({ localPort }) => localPort ?? []));
    const nowMs = performance.now();
    // One has heard something meanwhile, or the server is there and is short of connections.
    if (readAtMs !== silentSinceMs || outcome === "refused") return;
    if (outcome === "answered" && known.size === 0) {
      if (nowMs - blindAtMs < BLIND_MS) return;
      blindAtMs = nowMs;
    }
    if (working.size === 0) readAtMs = nowMs;
    for (const socket of asked) if (!working.has(socket.localPort ?? 0)) socket.destroy();
  }

  function look({ dueMs }: Look): void {
    const nowMs = performance.now();
    // A process that stood still has not read what came meanwhile.
    if (nowMs - lookedAtMs > dueMs + 2 * LOOK_MS) {
      readAtMs = nowMs;
      for (const seen of sockets.values()) seen.sinceMs = undefined;
    }
    lookedAtMs = nowMs;
    // The driver takes listeners off where it goes on with TLS.
    for (const [socket, seen] of sockets)
      if (socket.destroyed) sockets.delete(socket);
      else note(socket, seen, nowMs);
    if (sockets.size === 0) stop?.();
    if (isAsking || nowMs - askedAtMs < silentMs || !isSilent(nowMs)) return;
    isAsking = true;
    askedAtMs = nowMs;
    void judge().finally(() => (isAsking = false));
  }

  return ({ host, port, path }) => {
    if (path) return connect(path);
    const turn = opened++ % host.length;
    const socket = connect(port[turn] ?? 5432, host[turn]);
    // Whose certificate the driver asks for.
    Object.assign(socket, { host: host[turn], port: port[turn] });
    if (sockets.size === 0) {
      readAtMs = lookedAtMs = performance.now();
      stop = lookEvery(LOOK_MS, look, REST_MS);
    }
    sockets.set(socket, { bytesRead: 0, bytesWritten: 0, sinceMs: undefined });
    return socket;
  };
}
