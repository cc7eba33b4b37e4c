// The light provider behind the bench: answers of 1 KB in four dialects, paced streams, embeddings, one endless stream.
// Refuses to be correct beyond that: plain TCP with prepared bytes, so that it never is what limits a figure.

import type { Socket } from "bun";

export const STREAM_CHUNKS = 50;
/** Time between two chunks of a paced stream: 25 tokens a second, a busy model. */
export const CHUNK_INTERVAL_MS = 40;
/** A faster pace: 64 chunks, one every 20 ms. */
export const FAST = { chunks: 64, intervalMs: 20 } as const;
/** Size of the stream that the slow client reads. */
export const BULK_BYTES = 400 * 1024 * 1024;
/** Words in the request's `user` field that choose the kind of stream. */
export const MARKS = {
  paced: "bench-paced",
  burst: "bench-burst",
  bulk: "bench-bulk",
  fast: "bench-fast",
} as const;
export const CHAT_MODEL = "gpt-4o-mini";

const WHEEL_SLOTS = 10;
const TICK_MS = CHUNK_INTERVAL_MS / WHEEL_SLOTS;
const HEAD_END = Buffer.from("\r\n\r\n");
const USAGE = { prompt_tokens: 20, completion_tokens: 50, total_tokens: 70 };
// X-Accel-Buffering tells nginx to pass each chunk on at once.
const STREAM_HEAD =
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n" +
  "Transfer-Encoding: chunked\r\n\r\n";

function event(payload: object | string): string {
  return `data: ${typeof payload === "string" ? payload : JSON.stringify(payload)}\n\n`;
}

function httpChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function delta(content: object, finishReason: string | null): object {
  const choices = [{ index: 0, delta: content, finish_reason: finishReason }];
  return {
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1_750_000_000,
    model: CHAT_MODEL,
    choices,
  };
}

function jsonAnswer(value: object): Buffer {
  const body = JSON.stringify(value);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const CHAT_ANSWER = jsonAnswer({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_750_000_000,
  model: CHAT_MODEL,
  choices: [
    { index: 0, message: { role: "assistant", content: "word ".repeat(150) }, finish_reason: "stop" },
  ],
  usage: USAGE,
});
const EMBEDDING_ANSWER = jsonAnswer({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: Array.from({ length: 64 }, (_, i) => i / 64) }],
  model: "text-embedding-3-small",
  usage: { prompt_tokens: 20, total_tokens: 20 },
});
const WORDS = "word ".repeat(150);
const RESPONSES_ANSWER = jsonAnswer({
  id: "resp_bench",
  object: "response",
  created_at: 1_750_000_000,
  status: "completed",
  model: CHAT_MODEL,
  output: [
    {
      id: "msg_bench",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: WORDS, annotations: [] }],
    },
  ],
  usage: { input_tokens: 20, output_tokens: 50, total_tokens: 70 },
});
const MESSAGES_ANSWER = jsonAnswer({
  id: "msg_bench",
  type: "message",
  role: "assistant",
  model: CHAT_MODEL,
  content: [{ type: "text", text: WORDS }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 20, output_tokens: 50 },
});
const GEMINI_ANSWER = jsonAnswer({
  candidates: [{ content: { role: "model", parts: [{ text: WORDS }] }, finishReason: "STOP", index: 0 }],
  usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 50, totalTokenCount: 70 },
  modelVersion: CHAT_MODEL,
});
const MODELS_ANSWER = jsonAnswer({
  object: "list",
  data: [{ id: CHAT_MODEL, object: "model", owned_by: "bench" }],
});

const ONE_CHUNK_TEXT = httpChunk(event(delta({ content: " token" }, null)));
const ONE_CHUNK = Buffer.from(ONE_CHUNK_TEXT);
const STREAM_START = Buffer.from(STREAM_HEAD + ONE_CHUNK_TEXT);
const STREAM_END_TEXT =
  httpChunk(event(delta({}, "stop"))) +
  httpChunk(event({ ...delta({}, null), choices: [], usage: USAGE })) +
  httpChunk(event("[DONE]")) +
  "0\r\n\r\n";
const STREAM_END = Buffer.from(STREAM_END_TEXT);
const BURST_ANSWER = Buffer.from(STREAM_HEAD + ONE_CHUNK_TEXT.repeat(STREAM_CHUNKS) + STREAM_END_TEXT);
const BULK_UNIT = Buffer.from(httpChunk(event(delta({ content: "x".repeat(1024) }, null))).repeat(48));

interface Peer {
  /** Request bytes that are not a whole request yet. */
  partial: Buffer | undefined;
  /** Answer bytes the socket did not take yet. */
  pending: Buffer | undefined;
  /** Chunks of a paced stream still to come; 0 when none runs. */
  chunksLeft: number;
  bulkBytesLeft: number;
  isOpen: boolean;
  /** A WebSocket by now. */
  isRealtime: boolean;
}

function send(socket: Socket<Peer>, bytes: Buffer): void {
  const peer = socket.data;
  if (peer.pending) {
    peer.pending = Buffer.concat([peer.pending, bytes]);
    return;
  }
  const written = Math.max(0, socket.write(bytes));
  if (written < bytes.length) peer.pending = bytes.subarray(written);
}

function pumpBulk(socket: Socket<Peer>): void {
  const peer = socket.data;
  while (peer.bulkBytesLeft > 0 && !peer.pending && peer.isOpen) {
    send(socket, BULK_UNIT);
    peer.bulkBytesLeft -= BULK_UNIT.length;
    if (peer.bulkBytesLeft <= 0) send(socket, STREAM_END);
  }
}

/** Paced streams sit on a wheel: one timer serves them all, each slot every CHUNK_INTERVAL_MS. */
const wheel: Set<Socket<Peer>>[] = Array.from({ length: WHEEL_SLOTS }, () => new Set<Socket<Peer>>());
/** Fast streams: half as many slots, so that each comes round every FAST.intervalMs. */
const fastWheel: Set<Socket<Peer>>[] = Array.from({ length: WHEEL_SLOTS / 2 }, () => new Set<Socket<Peer>>());
let slot = 0;

function turnWheel(): void {
  slot = (slot + 1) % WHEEL_SLOTS;
  for (const due of [wheel[slot], fastWheel[slot % fastWheel.length]]) if (due) serve(due);
}

function serve(due: Set<Socket<Peer>>): void {
  for (const socket of due) {
    const peer = socket.data;
    if (!peer.isOpen) {
      due.delete(socket);
      continue;
    }
    peer.chunksLeft--;
    send(socket, ONE_CHUNK);
    if (peer.chunksLeft === 0) {
      due.delete(socket);
      send(socket, STREAM_END);
    }
  }
}

const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const GREETING = Buffer.from('{"type":"session.created","session":{"object":"realtime.session"}}');
const CLOSE_OPCODE = 0x88;

/** Opens a realtime socket that greets once and then idles: its frames are not read but for the goodbye. */
function openRealtime(socket: Socket<Peer>, head: string): void {
  const key = /sec-websocket-key: *(\S+)/i.exec(head)?.[1] ?? "";
  const accept = new Bun.CryptoHasher("sha1").update(key + WEBSOCKET_GUID).digest("base64");
  const protocol = /sec-websocket-protocol:/i.test(head) ? "Sec-WebSocket-Protocol: realtime\r\n" : "";
  socket.data.isRealtime = true;
  const answer = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${protocol}Sec-WebSocket-Accept: ${accept}\r\n\r\n`;
  send(socket, Buffer.concat([Buffer.from(answer), Buffer.from([0x81, GREETING.length]), GREETING]));
}

function respond(socket: Socket<Peer>, head: string, body: Buffer): void {
  if (/upgrade: *websocket/i.test(head)) return openRealtime(socket, head);
  if (head.startsWith("GET")) return send(socket, MODELS_ANSWER);
  if (head.includes("/embeddings")) return send(socket, EMBEDDING_ANSWER);
  if (head.includes("/responses ")) return send(socket, RESPONSES_ANSWER);
  if (head.includes("/v1/messages ")) return send(socket, MESSAGES_ANSWER);
  if (head.includes(":generateContent")) return send(socket, GEMINI_ANSWER);
  if (!body.includes('"bench-')) return send(socket, CHAT_ANSWER);
  if (body.includes(MARKS.fast)) {
    socket.data.chunksLeft = FAST.chunks - 1;
    fastWheel[slot % fastWheel.length]?.add(socket);
    return send(socket, STREAM_START);
  }
  if (body.includes(MARKS.paced)) {
    socket.data.chunksLeft = STREAM_CHUNKS - 1;
    wheel[slot]?.add(socket);
    return send(socket, STREAM_START);
  }
  if (body.includes(MARKS.bulk)) {
    socket.data.bulkBytesLeft = BULK_BYTES;
    send(socket, STREAM_START);
    return pumpBulk(socket);
  }
  send(socket, BURST_ANSWER);
}

/** Takes whole requests off the front of the bytes; returns what is left over. */
function takeRequests(socket: Socket<Peer>, bytes: Buffer): Buffer | undefined {
  let rest = bytes;
  while (rest.length > 0) {
    const headEnd = rest.indexOf(HEAD_END);
    if (headEnd < 0) return rest;
    const head = rest.toString("latin1", 0, headEnd);
    const bodyStart = headEnd + 4;
    let end: number;
    if (/transfer-encoding: *chunked/i.test(head)) {
      const last = rest.indexOf("0\r\n\r\n", bodyStart);
      if (last < 0) return rest;
      end = last + 5;
    } else {
      end = bodyStart + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (rest.length < end) return rest;
    }
    respond(socket, head, rest.subarray(bodyStart, end));
    rest = rest.subarray(end);
  }
  return undefined;
}

/** Serves on a free loopback port and returns it. */
export function serveMock(): { port: number; stop(): void } {
  const listener = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = {
          partial: undefined,
          pending: undefined,
          chunksLeft: 0,
          bulkBytesLeft: 0,
          isOpen: true,
          isRealtime: false,
        };
        socket.setNoDelay(true);
      },
      data(socket, bytes) {
        const peer = socket.data;
        if (peer.isRealtime) {
          if (bytes[0] === CLOSE_OPCODE) socket.end();
          return;
        }
        const left = takeRequests(socket, peer.partial ? Buffer.concat([peer.partial, bytes]) : bytes);
        // The bytes handed in may be reused by the runtime after this call.
        peer.partial = left && Buffer.from(left);
      },
      drain(socket) {
        const { pending } = socket.data;
        socket.data.pending = undefined;
        if (pending) send(socket, pending);
        pumpBulk(socket);
      },
      close(socket) {
        socket.data.isOpen = false;
        socket.data.bulkBytesLeft = 0;
      },
      error(socket) {
        socket.data.isOpen = false;
      },
    },
  });
  const timer = setInterval(turnWheel, TICK_MS);
  return {
    port: listener.port,
    stop() {
      clearInterval(timer);
      listener.stop(true);
    },
  };
}

if (import.meta.main) console.log(serveMock().port);
