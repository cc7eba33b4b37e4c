// A client that is only a socket: it comes from an address of its own (all of 127.0.0.0/8 is this machine), and may send
// half a request, a byte at a time, or nothing. Refuses every courtesy of an HTTP client.
import { connect } from "node:net";
import type { Socket } from "node:net";

export interface RawConnection {
  readonly socket: Socket;
  /** What came so far. */
  text(): string;
  write(data: string | Uint8Array): void;
  /** Resolves with the status when the first answer's head is there, with 0 when the connection ended before. */
  status(): Promise<number>;
  /** Resolves when the other side has closed. */
  closed: Promise<void>;
  destroy(): void;
}

export function connectRaw(url: string, from: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const closed = Promise.withResolvers<void>();
  const headed = Promise.withResolvers<number>();
  const opened = Promise.withResolvers<RawConnection>();
  let text = "";
  const socket = connect({ host: hostname, port: Number(port), localAddress: from }, () =>
    opened.resolve(connection),
  );
  const connection: RawConnection = {
    socket,
    text: () => text,
    write: (data) => void socket.write(data),
    status: () => headed.promise,
    closed: closed.promise,
    destroy: () => void socket.destroy(),
  };
  socket.on("data", (data: Buffer) => {
    text += data.toString("latin1");
    const status = /^HTTP\/1\.1 (\d{3})[^]*?\r\n\r\n/.exec(text);
    if (status) headed.resolve(Number(status[1]));
  });
  socket.on("error", (error) => opened.reject(error));
  socket.on("close", () => {
    headed.resolve(0);
    closed.resolve();
  });
  return opened.promise;
}

export interface RawAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** One whole call from an address. */
export async function callFrom(
  url: string,
  from: string,
  call: { method?: string; path: string; headers?: Record<string, string>; body?: string },
): Promise<RawAnswer> {
  const connection = await connectRaw(url, from);
  const { method = "GET", path, headers = {}, body } = call;
  const lines = Object.entries({
    host: new URL(url).host,
    connection: "close",
    ...(body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  connection.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`);
  const status = await connection.status();
  await connection.closed;
  const [head = "", ...rest] = connection.text().split("\r\n\r\n");
  const answered = new Headers();
  for (const line of head.split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    answered.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return { status, headers: answered, text: Buffer.from(rest.join("\r\n\r\n"), "latin1").toString("utf8") };
}
