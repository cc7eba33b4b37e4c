// Spark on loopback: the signed socket as its documentation describes it, and the OpenAI-shaped address beside it.
// The last message says what happens. Refuses unsigned handshakes with 401, as the provider does.
import { createHmac } from "node:crypto";
import type { Server, ServerWebSocket } from "bun";

type Json = Record<string, unknown>;

export const SOCKET_KEY = "app-1|secret-1|key-1";
export const PASSWORD = "a-password";
const USAGE = { question_tokens: 4, prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

export interface SparkFake {
  url: string;
  /** Path of each signed handshake and, behind it, each body. */
  seen: { path: string; body: Json }[];
  /** What each handshake that was answered said in `x-own`. */
  own: (string | null)[];
  /** Bodies at the HTTP address. */
  posted: Json[];
  /** Settles when a socket is closed. */
  closed: Promise<void>;
  /** Settles when a message has arrived at a socket. */
  asked: Promise<void>;
  stop: () => void;
}

function isSigned(url: URL): boolean {
  const { searchParams: query, pathname, host } = url;
  const header = Buffer.from(query.get("authorization") ?? "", "base64").toString();
  const base = `host: ${host}\ndate: ${query.get("date")}\nGET ${pathname} HTTP/1.1`;
  const signature = createHmac("sha256", "secret-1").update(base).digest("base64");
  return (
    header ===
    `api_key="key-1", algorithm="hmac-sha256", headers="host date request-line", signature="${signature}"`
  );
}

const head = { code: 0, message: "Success", sid: "cht000cb087@dx18793cd421fb894542" };

function frame(status: number, piece: Json, usage?: Json): string {
  const text = [{ role: "assistant", index: 0, ...piece }];
  const payload = { choices: { status, seq: status, text }, ...(usage ? { usage: { text: usage } } : {}) };
  return JSON.stringify({ header: { ...head, status }, payload });
}

const problem = (code: number): string =>
  JSON.stringify({ header: { code, message: `says ${code}`, sid: head.sid, status: 2 } });

function speak(socket: ServerWebSocket<unknown>, prompt: string): void {
  const code = /^code (\d+)$/.exec(prompt)?.[1];
  if (code) {
    socket.send(problem(Number(code)));
    socket.close();
    return;
  }
  socket.send(frame(0, { content: "", reasoning_content: "Hm." }));
  socket.send(frame(1, { content: "Hello" }));
  if (prompt === "hang") return;
  if (prompt === "flood") {
    for (let sent = 0; sent < 200; sent++) socket.send(frame(1, { content: "x".repeat(64 * 1024) }));
    return;
  }
  if (prompt === "cut") return socket.close();
  if (prompt === "late error") return void socket.send(problem(10_012));
  socket.send(frame(2, { content: " world" }, USAGE));
  socket.close();
}

function chunk(delta: Json, more: Json = {}): string {
  return `data: ${JSON.stringify({ code: 0, message: "Success", sid: head.sid, choices: [{ index: 0, delta }], ...more })}\n\n`;
}

function answer(body: Json): Response {
  const prompt = (body["messages"] as { content: string }[]).at(-1)?.content ?? "";
  const code = /^code (\d+)$/.exec(prompt)?.[1];
  const refused = { code: Number(code), message: `says ${code}`, sid: head.sid };
  if (code && prompt.length > 9)
    return Response.json({ error: { message: `says ${code}`, type: "api_error", code } }, { status: 500 });
  if (body["stream"] !== true) {
    if (code) return Response.json(refused);
    const message = { role: "assistant", content: "Hello world" };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return Response.json({ code: 0, message: "Success", sid: head.sid, choices, usage: USAGE });
  }
  const said = [chunk({ role: "assistant", content: "Hello" })];
  if (code) said[0] = `data: ${JSON.stringify(refused)}\n\n`;
  else if (prompt === "late error")
    said.push(`data: ${JSON.stringify({ ...refused, code: 10_012, message: "engine broke" })}\n\n`);
  else if (prompt !== "cut") said.push(chunk({ content: " world" }, { usage: USAGE }), "data:[DONE]\n\n");
  return new Response(said.join(""), { headers: { "content-type": "text/event-stream" } });
}

export function startSparkFake(): SparkFake {
  const asked = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  const seen: SparkFake["seen"] = [];
  const posted: Json[] = [];
  const own: SparkFake["own"] = [];
  const server: Server<{ path: string }> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request, self) {
      const url = new URL(request.url);
      if (url.pathname.endsWith("/chat/completions")) {
        if (request.headers.get("authorization") !== `Bearer ${PASSWORD}`)
          return Response.json(
            { message: "HMAC signature cannot be verified: fail to retrieve credential" },
            { status: 401 },
          );
        const body = (await request.json()) as Json;
        if (url.pathname !== `${body["model"] === "x1" ? "/v2" : "/v1"}/chat/completions`)
          return Response.json({ error: { message: "model and path do not match" } }, { status: 404 });
        posted.push(body);
        return answer(body);
      }
      if (!isSigned(url)) return Response.json({ message: "HMAC signature does not match" }, { status: 401 });
      own.push(request.headers.get("x-own"));
      if (self.upgrade(request, { data: { path: url.pathname } })) return undefined;
      return new Response("no socket", { status: 400 });
    },
    websocket: {
      message(socket, message) {
        const body = JSON.parse(String(message)) as Json;
        seen.push({ path: socket.data.path, body });
        const { text } = (body["payload"] as { message: { text: { content: string }[] } }).message;
        asked.resolve();
        speak(socket, text.at(-1)?.content ?? "");
      },
      close: () => closed.resolve(),
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    seen,
    own,
    posted,
    closed: closed.promise,
    asked: asked.promise,
    stop: () => void server.stop(true),
  };
}
