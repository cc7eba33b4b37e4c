// A provider of the OpenAI dialect on loopback that does exactly what a test tells it, also the rude things.
// Refuses timers: slow answers wait for gates that the test opens, so nothing here depends on speed.

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A door that a script waits at until the test opens it; once open it stays open. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** An end without manners: the socket closes, or nothing more ever comes. */
export interface RudeEnd {
  readonly end: "cut" | "hang";
}
export const CUT: RudeEnd = { end: "cut" };
export const HANG: RudeEnd = { end: "hang" };

/** One step of a body: bytes to send (each its own write), a gate to wait at, a bulk of repeated units, a rude end. */
export type Step =
  string | Uint8Array | Gate | RudeEnd | { readonly bulkBytes: number; readonly unit: string };

export interface Script {
  status?: number;
  headers?: Record<string, string>;
  /** Waited for before the status line leaves; "never" holds the request until the client goes away. */
  before?: Gate | "never";
  /** Sent in order; the body ends cleanly after the last step unless that is CUT or HANG. */
  steps: readonly Step[];
}

export interface RecordedRequest {
  method: string;
  /** Path with query. */
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** The body as JSON; throws when it is none. */
  json(): Record<string, unknown>;
  /** Whether the client left before the answer was complete. */
  aborted: boolean;
  /** Settles when the exchange is over, either way. */
  closed: Promise<void>;
  /** How many body bytes of the answer were accepted by the socket so far. */
  bytesSent: number;
}

export interface FakeUpstream {
  /** http://127.0.0.1:port, what a channel's base_url takes. */
  url: string;
  /** Every request in order of arrival. */
  requests: RecordedRequest[];
  /** Queues scripts: each answers one inference request (POST); afterwards the polite default answers again. */
  script(...scripts: Script[]): void;
  /** Replaces the polite default; undefined brings it back. */
  always(script: Script | ((request: RecordedRequest) => Script) | undefined): void;
  /** The request with that index, as soon as it has arrived in full. */
  request(index: number): Promise<RecordedRequest>;
  /** Forgets requests and scripts. */
  reset(): void;
  stop(): void;
}

interface WireUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
}

export interface AnswerOptions {
  /** Left out: `DEFAULT_USAGE`; null: the answer carries none. Numbers go out as they are, however absurd. */
  usage?: WireUsage | Record<string, unknown> | null;
  model?: string;
  finishReason?: string;
}

const DEFAULT_USAGE: WireUsage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };

const JSON_HEADERS = { "content-type": "application/json" };
const STREAM_HEADERS = { "content-type": "text/event-stream", "cache-control": "no-cache" };
const CREATED = 1_750_000_000;

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Script {
  return { status, headers: { ...JSON_HEADERS, ...headers }, steps: [JSON.stringify(value)] };
}

/** A server-sent event with a JSON payload. */
export function sse(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

export const DONE = "data: [DONE]\n\n";

function chunk(delta: object, finishReason: string | null, model: string): object {
  return {
    id: "chatcmpl-fake",
    object: "chat.completion.chunk",
    created: CREATED,
    model,
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  };
}

/** A whole chat completion. */
export function answer(text: string, options: AnswerOptions = {}): Script {
  const usage = options.usage === undefined ? DEFAULT_USAGE : options.usage;
  return json({
    id: "chatcmpl-fake",
    object: "chat.completion",
    created: CREATED,
    model: options.model ?? "fake-model",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text },
        finish_reason: options.finishReason ?? "stop",
      },
    ],
    ...(usage === null ? {} : { usage }),
  });
}

/**
 * A streamed chat completion: a string is one content chunk, any other step happens in its place. `usage: null` leaves
 * the usage frame out.
 */
export function stream(pieces: readonly Step[], options: AnswerOptions = {}): Script {
  const model = options.model ?? "fake-model";
  const usage = options.usage === undefined ? DEFAULT_USAGE : options.usage;
  const steps: Step[] = [sse(chunk({ role: "assistant", content: "" }, null, model))];
  for (const piece of pieces) {
    steps.push(typeof piece === "string" ? sse(chunk({ content: piece }, null, model)) : piece);
  }
  const last = pieces.at(-1);
  if (last !== CUT && last !== HANG) {
    steps.push(sse(chunk({}, options.finishReason ?? "stop", model)));
    if (usage !== null) steps.push(sse({ ...chunk({}, null, model), choices: [], usage }));
    steps.push(DONE);
  }
  return { status: 200, headers: STREAM_HEADERS, steps };
}

/** An error status with an OpenAI-shaped error object, or with the body given. */
export function refuse(status: number, body?: unknown, headers: Record<string, string> = {}): Script {
  if (typeof body === "string")
    return { status, headers: { "content-type": "text/plain", ...headers }, steps: [body] };
  const error = {
    message: `upstream says ${status}`,
    type: "fake_error",
    param: null,
    code: `fake_${status}`,
  };
  return json(body ?? { error }, status, headers);
}

/** 429 with Retry-After in seconds. */
export function refuseUntil(retryAfterSeconds: number): Script {
  return refuse(429, undefined, { "retry-after": String(retryAfterSeconds) });
}

/** Status 200 whose body is an error object: some providers do that. */
export function okWithError(message = "the model is overloaded"): Script {
  return json({ error: { message, type: "server_error", param: null, code: "overloaded" } });
}

/** Takes the request and never answers. */
export function hangBeforeHeaders(): Script {
  return { before: "never", steps: [] };
}

/** Sends the headers of a stream and then nothing. */
export function hangAfterHeaders(): Script {
  return { status: 200, headers: STREAM_HEADERS, steps: [HANG] };
}

/** A stream with these pieces of text whose socket closes without the terminal event. */
export function cutStream(pieces: readonly string[]): Script {
  return stream([...pieces, CUT]);
}

/** A stream that ends cleanly as HTTP, but without finish reason, usage and [DONE]. */
export function truncatedStream(pieces: readonly string[]): Script {
  const whole = cutStream(pieces);
  return { ...whole, steps: whole.steps.slice(0, -1) };
}

/** A stream with good text and, between it, lines that are no JSON or no event. */
export function malformedStream(before: string, after: string, options: AnswerOptions = {}): Script {
  const garbage = [
    'data: {"id":"chatcmpl-fake","choices":[{"ind\n\n',
    "data: not json\n\n",
    "nonsense without a colon\n\n",
  ];
  const raw = garbage.map((text) => new TextEncoder().encode(text));
  return stream([before, ...raw, after], options);
}

/** A stream of one text whose first multi-byte character is cut in two by the two writes that carry it. */
export function splitCharacterStream(text: string, between: Gate, options: AnswerOptions = {}): Script {
  const event = new TextEncoder().encode(sse(chunk({ content: text }, null, options.model ?? "fake-model")));
  const lead = event.findIndex((byte) => byte >= 0xc0);
  if (lead < 0) throw new Error("the text has no multi-byte character to split");
  // Behind a whole event: a gateway answers its client with the first one.
  const first = sse(chunk({ content: "- " }, null, options.model ?? "fake-model"));
  return stream([first, event.slice(0, lead + 1), between, event.slice(lead + 1)], options);
}

/** A stream of about `bytes` bytes, produced only as fast as it is read (400 MB without 400 MB of memory). */
export function bulkStream(bytes: number, options: AnswerOptions = {}): Script {
  const unit = sse(chunk({ content: "x".repeat(1024) }, null, options.model ?? "fake-model"));
  return stream([{ bulkBytes: bytes, unit }], options);
}

/** The polite default: chat, completions, embeddings, the model list; 404 for anything else. */
function polite(request: RecordedRequest): Script {
  const path = request.url.split("?")[0] ?? "";
  if (path.endsWith("/models")) {
    const data = ["fake-model", "fake-embedding"].map((id) => ({
      id,
      object: "model",
      created: CREATED,
      owned_by: "fake",
    }));
    return json({ object: "list", data });
  }
  if (path.endsWith("/embeddings")) {
    const { input, model } = request.json();
    const inputs = Array.isArray(input) ? input : [input];
    const data = inputs.map((_, index) => ({ object: "embedding", index, embedding: [0.25, -0.5, 1] }));
    return json({
      object: "list",
      data,
      model,
      usage: { prompt_tokens: 4 * inputs.length, total_tokens: 4 * inputs.length },
    });
  }
  if (path.endsWith("/chat/completions")) {
    const { model, stream: streamed, stream_options } = request.json();
    const name = typeof model === "string" ? model : "fake-model";
    if (streamed !== true) return answer("Hello there!", { model: name });
    const wantsUsage = (stream_options as { include_usage?: unknown } | undefined)?.include_usage === true;
    return stream(["Hello", " there", "!"], wantsUsage ? { model: name } : { model: name, usage: null });
  }
  if (path.endsWith("/completions")) {
    const { model } = request.json();
    const choices = [{ index: 0, text: "Hello there!", finish_reason: "stop" }];
    return json({
      id: "cmpl-fake",
      object: "text_completion",
      created: CREATED,
      model,
      choices,
      usage: DEFAULT_USAGE,
    });
  }
  return refuse(404, { error: { message: `no such path: ${path}`, type: "invalid_request_error" } });
}

/** Writes and waits while the socket is full; false when the client is gone. */
function write(
  response: ServerResponse,
  data: string | Uint8Array,
  recorded: RecordedRequest,
): Promise<boolean> {
  if (response.destroyed || response.closed) return Promise.resolve(false);
  const size = typeof data === "string" ? Buffer.byteLength(data) : data.byteLength;
  if (response.write(data)) {
    recorded.bytesSent += size;
    return Promise.resolve(true);
  }
  return new Promise((resolve) => {
    const done = (ok: boolean) => () => {
      response.off("drain", drained);
      response.off("close", closed);
      if (ok) recorded.bytesSent += size;
      resolve(ok);
    };
    const drained = done(true);
    const closed = done(false);
    response.once("drain", drained);
    response.once("close", closed);
  });
}

async function play(script: Script, response: ServerResponse, recorded: RecordedRequest): Promise<void> {
  if (script.before === "never") return;
  if (script.before) await Promise.race([script.before.opened, recorded.closed]);
  if (response.closed) return;
  response.writeHead(script.status ?? 200, script.headers);
  const only = script.steps[0];
  if (script.steps.length === 1 && typeof only === "string") {
    recorded.bytesSent = Buffer.byteLength(only);
    response.end(only);
    return;
  }
  response.flushHeaders();
  for (const step of script.steps) {
    if (response.closed) return;
    if (typeof step === "string" || step instanceof Uint8Array) {
      if (!(await write(response, step, recorded))) return;
      // One write per turn of the loop: pieces leave as chunks of their own.
      await new Promise((resolve) => setImmediate(resolve));
    } else if ("end" in step) {
      if (step.end === "cut") response.destroy();
      return;
    } else if ("opened" in step) {
      await Promise.race([step.opened, recorded.closed]);
    } else {
      const batch = step.unit.repeat(Math.max(1, Math.floor(65_536 / step.unit.length)));
      for (let left = step.bulkBytes; left > 0; left -= batch.length) {
        if (!(await write(response, batch, recorded))) return;
      }
    }
  }
  response.end();
}

function record(request: IncomingMessage, body: Buffer, response: ServerResponse): RecordedRequest {
  const { promise, resolve } = Promise.withResolvers<void>();
  const recorded: RecordedRequest = {
    method: request.method ?? "",
    url: request.url ?? "",
    headers: request.headers,
    body,
    json: () => JSON.parse(body.toString("utf8")) as Record<string, unknown>,
    aborted: false,
    closed: promise,
    bytesSent: 0,
  };
  response.once("close", () => {
    recorded.aborted = !response.writableFinished;
    resolve();
  });
  return recorded;
}

/** Starts the provider on a free loopback port. Stop it in `afterAll`. */
export async function startFakeUpstream(): Promise<FakeUpstream> {
  const requests: RecordedRequest[] = [];
  const waiting: { index: number; resolve(request: RecordedRequest): void }[] = [];
  let queue: Script[] = [];
  let standing: Script | ((request: RecordedRequest) => Script) | undefined;

  function scriptFor(request: RecordedRequest): Script {
    const queued = request.method === "POST" ? queue.shift() : undefined;
    if (queued) return queued;
    if (standing) return typeof standing === "function" ? standing(request) : standing;
    try {
      return polite(request);
    } catch {
      return refuse(400, { error: { message: "the body is not JSON", type: "invalid_request_error" } });
    }
  }

  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const recorded = record(request, Buffer.concat(parts), response);
      requests.push(recorded);
      for (const waiter of waiting.splice(0)) {
        const arrived = requests[waiter.index];
        if (arrived) waiter.resolve(arrived);
        else waiting.push(waiter);
      }
      play(scriptFor(recorded), response, recorded).catch((error: unknown) => {
        console.error("fake upstream:", error);
        response.destroy();
      });
    });
  });
  // Hanging is part of the job: no limits of its own.
  server.keepAliveTimeout = 0;
  server.headersTimeout = 0;
  server.requestTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    script: (...scripts) => void queue.push(...scripts),
    always: (script) => void (standing = script),
    request(index) {
      const arrived = requests[index];
      if (arrived) return Promise.resolve(arrived);
      return new Promise((resolve) => waiting.push({ index, resolve }));
    },
    reset() {
      requests.length = 0;
      queue = [];
      standing = undefined;
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
