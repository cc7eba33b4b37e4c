// The door in front of the gateway: everything that a client says and hears passes through it unchanged and is kept.
// Refuses to alter a byte, so that what is recorded is what was sent; WebSocket attempts are passed on, too.
import { createServer, request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";

export interface Exchange {
  method: string;
  /** Path with query. */
  url: string;
  /** Names and values in the client's own order and case. */
  rawHeaders: [string, string][];
  body: string;
  /** 0 until the gateway has answered. */
  status: number;
  answerHeaders: Record<string, string>;
  answer: string;
}

export interface Door {
  url: string;
  exchanges: Exchange[];
  stop(): void;
}

function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [
    raw[2 * index] ?? "",
    raw[2 * index + 1] ?? "",
  ]);
}

function begin(request: IncomingMessage): Exchange {
  return {
    method: request.method ?? "",
    url: request.url ?? "",
    rawHeaders: pairs(request.rawHeaders),
    body: "",
    status: 0,
    answerHeaders: {},
    answer: "",
  };
}

/** Opens a door on a free port of loopback to the gateway at `target`. */
export async function openDoor(target: string): Promise<Door> {
  const exchanges: Exchange[] = [];
  const { hostname, port } = new URL(target);
  const server = createServer((request, response) => {
    const exchange = begin(request);
    exchanges.push(exchange);
    const parts: Buffer[] = [];
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      exchange.body = body.toString();
      const headers = { ...request.headers, "accept-encoding": "identity" };
      delete headers["transfer-encoding"];
      if (body.length > 0) headers["content-length"] = String(body.length);
      const onward = httpRequest(
        { hostname, port, method: exchange.method, path: exchange.url, headers },
        (incoming) => {
          exchange.status = incoming.statusCode ?? 0;
          exchange.answerHeaders = Object.fromEntries(
            pairs(incoming.rawHeaders).map(([name, value]) => [name.toLowerCase(), value]),
          );
          const { "transfer-encoding": _chunked, connection: _connection, ...kept } = incoming.headers;
          response.writeHead(exchange.status, kept);
          incoming.on("data", (part: Buffer) => {
            exchange.answer += part.toString();
            response.write(part);
          });
          incoming.on("end", () => response.end());
          incoming.on("error", () => response.destroy());
        },
      );
      onward.on("error", () => response.destroy());
      response.on("close", () => {
        if (!response.writableFinished) onward.destroy();
      });
      onward.end(body);
    });
  });
  server.on("upgrade", (request: IncomingMessage, socket, head: Buffer) => {
    const exchange = begin(request);
    exchanges.push(exchange);
    const onward = connect(Number(port), hostname, () => {
      const lines = exchange.rawHeaders.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      onward.write(`${exchange.method} ${exchange.url} HTTP/1.1\r\n${lines}\r\n`);
      onward.write(head);
      onward.on("data", (part: Buffer) => {
        if (exchange.status === 0)
          exchange.status = Number(/^HTTP\/1\.1 (\d+)/.exec(part.toString())?.[1] ?? 0);
        socket.write(part);
      });
      socket.on("data", (part: Buffer) => onward.write(part));
      onward.on("end", () => socket.end());
      socket.on("end", () => onward.end());
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
