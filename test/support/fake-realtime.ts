// A realtime provider on loopback: real WebSockets, every frame kept, and a test decides what is said.
// Refuses timers: it speaks when it is told to, and never by itself except for the greeting.
import type { ServerWebSocket } from "bun";

export type Frame = string | Buffer;

/** A list whose items can be waited for. */
export class Inbox<T> {
  readonly items: T[] = [];
  #taken = 0;
  #waiting: ((item: T) => void)[] = [];

  push(item: T): void {
    this.items.push(item);
    const waiting = this.#waiting.shift();
    if (waiting) waiting(this.items[this.#taken++] as T);
  }

  /** The next item that nobody took yet. */
  next(): Promise<T> {
    if (this.#taken < this.items.length) return Promise.resolve(this.items[this.#taken++] as T);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

export interface RealtimeConnection {
  /** Path with query. */
  url: string;
  headers: Headers;
  /** Sub-protocols that were offered. */
  protocols: string[];
  received: Inbox<Frame>;
  /** The next received frame as JSON. */
  nextJson(): Promise<Record<string, unknown>>;
  say(event: Record<string, unknown> | Frame): number;
  /** Bytes that the socket could not send yet. */
  buffered(): number;
  close(code?: number, reason?: string): void;
  /** Breaks off without a goodbye. */
  cut(): void;
  stopReading(): void;
  goOnReading(): void;
  drained: Inbox<void>;
  closed: Promise<{ code: number; reason: string }>;
}

export interface FakeRealtime {
  /** http://127.0.0.1:port, what a channel's base_url takes. */
  url: string;
  connections: Inbox<RealtimeConnection>;
  /** Answers the next handshakes with these statuses in place of a socket. */
  refuse(...statuses: number[]): void;
  /** What an opened socket says first; undefined: nothing. */
  greeting: Record<string, unknown> | undefined;
  stop(): void;
}

interface Link {
  connection: RealtimeConnection;
  socket: ServerWebSocket<Link> | undefined;
  close: (end: { code: number; reason: string }) => void;
}

export const GREETING = {
  type: "session.created",
  event_id: "event_1",
  session: { object: "realtime.session", id: "sess_1" },
};

export function startFakeRealtime(): FakeRealtime {
  const refusals: number[] = [];
  const connections = new Inbox<RealtimeConnection>();
  const server = Bun.serve<Link, never>({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch(request, self) {
      const status = refusals.shift();
      if (status !== undefined)
        return Response.json({ error: { message: "no", type: "x", code: "x" } }, { status });
      const protocols = (request.headers.get("sec-websocket-protocol") ?? "")
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "");
      const { promise: closed, resolve: close } = Promise.withResolvers<{ code: number; reason: string }>();
      const link: Link = { socket: undefined, close, connection: undefined as unknown as RealtimeConnection };
      const open = (): ServerWebSocket<Link> => {
        if (!link.socket) throw new Error("not open");
        return link.socket;
      };
      const url = new URL(request.url);
      link.connection = {
        url: url.pathname + url.search,
        headers: new Headers([...request.headers]),
        protocols,
        received: new Inbox(),
        async nextJson() {
          return JSON.parse(String(await link.connection.received.next())) as Record<string, unknown>;
        },
        say: (event) =>
          open().send(typeof event === "string" || Buffer.isBuffer(event) ? event : JSON.stringify(event)),
        buffered: () => open().getBufferedAmount(),
        close: (code, reason) => open().close(code, reason),
        cut: () => open().terminate(),
        stopReading: () => open().pause(),
        goOnReading: () => open().resume(),
        drained: new Inbox(),
        closed,
      };
      const headers: Record<string, string> = protocols.includes("realtime")
        ? { "sec-websocket-protocol": "realtime" }
        : {};
      if (self.upgrade(request, { data: link, headers })) return undefined;
      return new Response("no socket", { status: 400 });
    },
    websocket: {
      maxPayloadLength: 128 * 1024 * 1024,
      backpressureLimit: 0,
      open(socket) {
        socket.data.socket = socket;
        if (fake.greeting) socket.send(JSON.stringify(fake.greeting));
        connections.push(socket.data.connection);
      },
      message: (socket, message) => socket.data.connection.received.push(message),
      drain: (socket) => socket.data.connection.drained.push(),
      close: (socket, code, reason) => socket.data.close({ code, reason }),
    },
  });
  const fake: FakeRealtime = {
    url: `http://127.0.0.1:${server.port}`,
    connections,
    refuse: (...statuses) => void refusals.push(...statuses),
    greeting: GREETING,
    stop: () => void server.stop(true),
  };
  return fake;
}

export const REALTIME_USAGE = {
  total_tokens: 253,
  input_tokens: 132,
  output_tokens: 121,
  input_token_details: {
    text_tokens: 119,
    audio_tokens: 13,
    cached_tokens: 64,
    cached_tokens_details: { text_tokens: 64, audio_tokens: 0 },
  },
  output_token_details: { text_tokens: 30, audio_tokens: 91 },
};

export function responseDone(id: string, usage: unknown, status = "completed"): Record<string, unknown> {
  return {
    type: "response.done",
    event_id: `event_${id}`,
    response: { object: "realtime.response", id, status, output: [], usage },
  };
}
