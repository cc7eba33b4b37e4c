// A gateway with a realtime provider behind it, and a client whose frames can be waited for.
// Refuses nothing; every test file starts its own.
import { request as httpRequest } from "node:http";
import type { WebSocket as BunSocket } from "bun";
import { eq } from "drizzle-orm";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestAppOptions, TestUser } from "../../support/app.ts";
import { Inbox, startFakeRealtime } from "../../support/fake-realtime.ts";
import type { FakeRealtime, Frame } from "../../support/fake-realtime.ts";
import type { LogLine } from "../support.ts";

export const MODEL = "gpt-4o-realtime-preview";

export interface SocketClient {
  socket: BunSocket;
  frames: Inbox<Frame>;
  closed: Promise<{ code: number; reason: string }>;
  next(): Promise<Record<string, unknown>>;
  /** The next event of that type; others are passed over. */
  nextOf(type: string): Promise<Record<string, unknown>>;
  say(event: Record<string, unknown> | Frame): void;
}

export interface RealtimeGateway {
  app: TestApp;
  upstream: FakeRealtime;
  user: TestUser;
  key: string;
  tokenId: number;
  channelId: number;
  /** Opens a socket as a server would, with the key in a header. */
  open(options?: {
    key?: string;
    query?: string;
    protocols?: string[];
    headers?: Record<string, string>;
  }): Promise<SocketClient>;
  /** What the handshake was answered with, when it was not a socket. */
  refused(options?: {
    key?: string;
    query?: string;
    headers?: Record<string, string>;
    plain?: boolean;
  }): Promise<Refusal>;
  logs(): Promise<LogLine[]>;
  balance(): Promise<{ quota: number; used: number; requests: number }>;
  tokenLeft(id?: number): Promise<number>;
  setOption(key: string, value: string): Promise<void>;
  close(): Promise<void>;
}

interface Refusal {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  error: { message: string; type: string; code?: string; param?: string };
}

export function attach(socket: BunSocket): SocketClient {
  const frames = new Inbox<Frame>();
  const { promise: closed, resolve } = Promise.withResolvers<{ code: number; reason: string }>();
  socket.binaryType = "nodebuffer";
  socket.onmessage = ({ data }) => frames.push(data as Frame);
  socket.onclose = ({ code, reason }) => resolve({ code, reason });
  const next = async () => JSON.parse(String(await frames.next())) as Record<string, unknown>;
  return {
    socket,
    frames,
    closed,
    next,
    async nextOf(type) {
      for (;;) {
        const event = await next();
        if (event["type"] === type) return event;
      }
    },
    say: (event) =>
      socket.send(typeof event === "string" || Buffer.isBuffer(event) ? event : JSON.stringify(event)),
  };
}

export async function startRealtimeGateway(
  options: TestAppOptions & { quota?: number; channel?: Record<string, unknown> } = {},
): Promise<RealtimeGateway> {
  const upstream = startFakeRealtime();
  const app = await startTestApp(options);
  const channelId = await app.createChannel({ baseUrl: upstream.url, models: MODEL, ...options.channel });
  const user = await app.createUser({ quota: options.quota ?? 100_000_000 });
  const { key, id: tokenId } = await app.createToken(user.id);
  const { deps } = app;
  const path = (query?: string): string => `/v1/realtime${query ?? `?model=${MODEL}`}`;

  return {
    app,
    upstream,
    user,
    key,
    tokenId,
    channelId,
    async open({ key: other, query, protocols, headers = {} } = {}) {
      const init = {
        headers: protocols ? headers : { authorization: `Bearer ${other ?? key}`, ...headers },
        protocols: protocols ?? [],
      };
      const socket = new WebSocket(
        app.url.replace("http", "ws") + path(query),
        init as unknown as string[],
      ) as unknown as BunSocket;
      const client = attach(socket);
      await new Promise<void>((resolve, reject) => {
        socket.onopen = () => resolve();
        socket.onerror = ({ message }) => reject(new Error(message));
      });
      return client;
    },
    refused({ key: other, query, headers = {}, plain = false } = {}) {
      const { promise, resolve, reject } = Promise.withResolvers<Refusal>();
      const handshake = {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": Buffer.from("0123456789abcdef").toString("base64"),
      };
      const sent = httpRequest(app.url + path(query), {
        headers: {
          authorization: `Bearer ${other ?? key}`,
          ...(plain ? {} : handshake),
          ...headers,
        },
      });
      sent.on("upgrade", (_, socket) => {
        socket.destroy();
        reject(new Error("the socket was opened"));
      });
      sent.on("response", (response) => {
        let text = "";
        response.on("data", (piece: Buffer) => (text += piece.toString()));
        response.on("end", () => {
          const { error } = JSON.parse(text) as { error: Refusal["error"] };
          resolve({ status: response.statusCode ?? 0, headers: response.headers, error });
        });
      });
      sent.on("error", reject);
      sent.end();
      return promise;
    },
    async logs() {
      await deps.ledger.flush();
      const rows = await deps.db.orm.select().from(deps.db.t.logs).orderBy(deps.db.t.logs.id);
      return rows
        .filter((row) => row.type === 2)
        .map((row) => ({ ...row, other: JSON.parse(row.other) as Record<string, unknown> }));
    },
    async balance() {
      await deps.ledger.flush();
      const { users } = deps.db.t;
      const [row] = await deps.db.orm.select().from(users).where(eq(users.id, user.id));
      return { quota: row?.quota ?? 0, used: row?.usedQuota ?? 0, requests: row?.requestCount ?? 0 };
    },
    async tokenLeft(id = tokenId) {
      await deps.ledger.flush();
      const { tokens } = deps.db.t;
      const [row] = await deps.db.orm.select().from(tokens).where(eq(tokens.id, id));
      return row?.remainQuota ?? 0;
    },
    setOption: (name, value) => deps.options.set(name, value),
    async close() {
      await app.close();
      upstream.stop();
    },
  };
}
