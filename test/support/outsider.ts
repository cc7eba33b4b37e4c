// Raw connections from any address of loopback: what a stranger sends, byte for byte, and what comes back.
// Refuses manners: nothing is parsed, completed or retried for the caller.
import { connect } from "node:net";
import type { Socket } from "node:net";

export interface RawConnection {
  send(text: string | Uint8Array): void;
  /** What arrived so far. */
  received(): string;
  /** Resolves with all that was received when the text is there or the other side has closed. */
  until(text: string): Promise<string>;
  /** Resolves when the other side has closed, with the milliseconds since the connection stood. */
  closed: Promise<number>;
  readonly isClosed: boolean;
  end(): void;
}

/** Connects from a local address such as 127.0.0.7. */
export async function connectFrom(localAddress: string, url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port), localAddress });
  let text = "";
  let isClosed = false;
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const look of waiting) look();
  };
  socket.on("error", () => {});
  socket.on("data", (part: Buffer) => {
    text += part.toString("latin1");
    wake();
  });
  const closed = Promise.withResolvers<number>();
  let openedMs = performance.now();
  socket.on("close", () => {
    isClosed = true;
    closed.resolve(performance.now() - openedMs);
    wake();
  });
  await new Promise<void>((resolve) => {
    socket.once("connect", () => resolve());
    socket.once("close", () => resolve());
  });
  openedMs = performance.now();
  return {
    send(bytes) {
      if (!isClosed) socket.write(bytes);
    },
    received: () => text,
    until: (wanted) =>
      new Promise((resolve) => {
        const look = () => {
          if (!text.includes(wanted) && !isClosed) return;
          waiting.delete(look);
          resolve(text);
        };
        waiting.add(look);
        look();
      }),
    closed: closed.promise,
    get isClosed() {
      return isClosed;
    },
    end() {
      socket.destroy();
    },
  };
}

/** One request from a local address on a connection of its own; status and text of the answer. */
export async function askFrom(
  localAddress: string,
  url: string,
  request: { method?: string; path: string; headers?: Record<string, string>; body?: string },
): Promise<{ status: number; text: string; headers: string }> {
  const connection = await connectFrom(localAddress, url);
  const body = request.body ?? "";
  const headers = {
    host: new URL(url).host,
    connection: "close",
    ...(body === ""
      ? {}
      : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    ...request.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  connection.send(`${request.method ?? "GET"} ${request.path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  await connection.closed;
  const whole = connection.received();
  const split = whole.indexOf("\r\n\r\n");
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(whole)?.[1] ?? 0),
    headers: whole.slice(0, split),
    text: whole.slice(split + 4),
  };
}
