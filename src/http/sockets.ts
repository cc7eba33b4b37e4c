// The one set of WebSocket handlers of the server: each socket brings its own, this file hands it over and counts it.
// Refuses Elysia's `.ws()`, which rewrites messages, and new sockets while the process is on its way out.
import type { Server, ServerWebSocket } from "bun";

export type ServerSocket = ServerWebSocket<SocketHandlers>;

/**
 * What a socket's owner does with it. Elysia's server-wide handlers call these by name on the data of the socket, with
 * the raw message.
 */
export interface SocketHandlers {
  open?(socket: ServerSocket): void;
  message(socket: ServerSocket, message: string | Buffer<ArrayBuffer>): void;
  /** What was queued has left: `send` had answered -1 before. */
  drain?(socket: ServerSocket): void;
  close(socket: ServerSocket, code: number, reason: string): void;
  /** `message` threw. */
  failed(error: unknown): void;
  /**
   * The process is about to stop: what is under way may go on for `limitMs`. Resolves when the socket is closed and
   * everything it owes is recorded.
   */
  goAway(limitMs: number): Promise<void>;
}

const MIB = 1024 * 1024;
const MAX_MESSAGE_BYTES = 64 * MIB;

/** Server-wide; goes into the configuration of the application. */
export const socketSettings = {
  // Bun pings by itself shortly before the limit: only peers that are really gone are closed.
  idleTimeout: 120,
  sendPings: true,
  perMessageDeflate: false,
  maxPayloadLength: MAX_MESSAGE_BYTES,
  // Nothing is ever dropped: owners stop their source when `send` answers -1.
  backpressureLimit: 0,
} as const;

export const CloseCode = {
  normal: 1000,
  goingAway: 1001,
  refused: 1008,
  tooLarge: 1009,
  broken: 1011,
} as const;

/** Codes that an endpoint may send; 1005, 1006 and 1015 only ever describe what happened. */
export function isSendableCode(code: number): boolean {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && !(code >= 1004 && code <= 1006);
}

/** A close frame holds at most 123 bytes of text. */
export function closeReason(text: string): string {
  let cut = text.slice(0, 123);
  while (Buffer.byteLength(cut) > 123) cut = cut.slice(0, -1);
  return cut;
}

interface OpenSockets {
  handlers: Set<SocketHandlers>;
  isClosing: boolean;
}

const openSockets = new WeakMap<object, OpenSockets>();

function socketsOf(server: object): OpenSockets {
  let found = openSockets.get(server);
  if (!found) openSockets.set(server, (found = { handlers: new Set(), isClosing: false }));
  return found;
}

/** Whether the client asked for a WebSocket at all. */
export function wantsSocket(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase() === "websocket";
}

/** Base64 of sixteen bytes, which a handshake is answered with a digest of (RFC 6455, 4.2.1). */
const HANDSHAKE_KEY = /^[A-Za-z0-9+/]{22}==$/;

/** Whether a request that asks for a WebSocket is a handshake: without a key it could never be answered with 101. */
export function isHandshake(request: Request): boolean {
  return HANDSHAKE_KEY.test(request.headers.get("sec-websocket-key")?.trim() ?? "");
}

/** Whether the server opens no more sockets: it is on its way out. */
export function isClosing(server: object): boolean {
  return openSockets.get(server)?.isClosing === true;
}

/**
 * Answers the request with 101; false when that is not possible (no proper handshake, client gone, process closing):
 * the request is then still unanswered. Works also after the handler has waited for something.
 */
export function upgradeSocket(
  server: Server<unknown>,
  request: Request,
  handlers: SocketHandlers,
  headers: Record<string, string>,
): boolean {
  const sockets = socketsOf(server);
  if (sockets.isClosing) return false;
  const data: SocketHandlers = {
    open: (socket) => handlers.open?.(socket),
    message(socket, message) {
      try {
        handlers.message(socket, message);
      } catch (error) {
        // What left this function would end the process.
        handlers.failed(error);
      }
    },
    drain: (socket) => handlers.drain?.(socket),
    close(socket, code, reason) {
      sockets.handlers.delete(handlers);
      handlers.close(socket, code, reason);
    },
    failed: (error) => handlers.failed(error),
    goAway: (limitMs) => handlers.goAway(limitMs),
  };
  sockets.handlers.add(handlers);
  if (server.upgrade(request, { headers, data })) return true;
  sockets.handlers.delete(handlers);
  return false;
}

/** Closes every socket of the server politely; a server that stops waits for them, and they never end by themselves. */
export async function drainSockets(server: object, limitMs: number): Promise<void> {
  const sockets = socketsOf(server);
  sockets.isClosing = true;
  await Promise.allSettled([...sockets.handlers].map((each) => each.goAway(limitMs)));
}
