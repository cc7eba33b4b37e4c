// A pool's connections to a server that says nothing any more: a firewall or balancer that has forgotten them drops what is sent,
// and TCP goes on trying for a quarter of an hour, with every query of the pool behind it. They are closed, and opened anew.
// Refuses to judge one connection alone: a long query is silent too. All must be, and more than one must be owed an answer. Below TLS
// the runtime counts no bytes: nothing is judged there.
import { connect } from "node:net";
import type { Socket } from "node:net";
import { lookEvery } from "./look-around.ts";

const LOOK_MS = 1000;
/** The heartbeat of the ledger, looks at leases and whoever calls ask each second, on connections of their own. */
const LEAST_WAITING = 2;

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
 * as long, all are destroyed: their queries reject as those of any lost connection do.
 */
export function createSilenceWatch(silentMs: number): (to: Destination) => Socket {
  const sockets = new Map<Socket, Seen>();
  let stop: (() => void) | undefined;
  let opened = 0;
  let readAtMs = 0;
  let lookedAtMs = 0;

  function note(socket: Socket, seen: Seen, nowMs: number): void {
    const { bytesRead, bytesWritten } = socket;
    if (bytesRead !== seen.bytesRead) {
      readAtMs = nowMs;
      seen.sinceMs = undefined;
    } else if (bytesWritten !== seen.bytesWritten) seen.sinceMs ??= nowMs;
    seen.bytesRead = bytesRead;
    seen.bytesWritten = bytesWritten;
  }

  function look(): void {
    const nowMs = performance.now();
    // A process that stood still has not read what came meanwhile.
    if (nowMs - lookedAtMs > 3 * LOOK_MS) {
      readAtMs = nowMs;
      for (const seen of sockets.values()) seen.sinceMs = undefined;
    }
    lookedAtMs = nowMs;
    // The driver takes listeners off where it goes on with TLS.
    for (const [socket, seen] of sockets)
      if (socket.destroyed) sockets.delete(socket);
      else note(socket, seen, nowMs);
    if (sockets.size === 0) stop?.();
    if (nowMs - readAtMs < silentMs) return;
    const waiting = [...sockets.values()].filter(({ sinceMs = nowMs }) => nowMs - sinceMs >= silentMs);
    if (waiting.length < LEAST_WAITING) return;
    readAtMs = nowMs;
    for (const socket of sockets.keys()) socket.destroy();
  }

  return ({ host, port, path }) => {
    const turn = opened++ % host.length;
    const socket = path ? connect(path) : connect(port[turn] ?? 5432, host[turn]);
    // Whose certificate the driver asks for.
    Object.assign(socket, { host: host[turn], port: port[turn] });
    if (sockets.size === 0) {
      readAtMs = lookedAtMs = performance.now();
      stop = lookEvery(LOOK_MS, look);
    }
    sockets.set(socket, { bytesRead: 0, bytesWritten: 0, sinceMs: undefined });
    return socket;
  };
}
