// What adapters share: canonical events in, a response of the OpenAI dialect out; lines and events off a provider's body.
// Refuses buffering: streams are pulled, one piece per demand of the relay.
import { brokenStream, collect } from "../protocol/assemble.ts";
import { scrub } from "../protocol/classify.ts";
import type { JsonObject } from "../protocol/canonical.ts";
import type { CanonicalEvent, FinishReason } from "../protocol/events.ts";
import { asObject, parseJson } from "../protocol/json.ts";
import { openaiChat } from "../protocol/openai-chat/dialect.ts";
import { Failure } from "../shared/failures.ts";
import { boundedCount, emptyUsage } from "../shared/usage.ts";
import type { Usage } from "../shared/usage.ts";
import type { AdapterCall } from "./adapter.ts";

export type Events = AsyncIterable<CanonicalEvent> | Iterable<CanonicalEvent>;

export function jsonResponse(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}

/** An error in the shape that the relay classifies; for providers that say 200 and mean no, or say it their own way. */
export function errorResponse(
  status: number,
  message: string,
  code: string | number,
  type = "upstream_error",
  retryAfter?: string | null,
): Response {
  const response = jsonResponse({ error: { message, type, code } }, status);
  if (retryAfter) response.headers.set("retry-after", retryAfter);
  return response;
}

/** A refusal whose body has been read, with the time to wait that its headers name. */
export function refusedAs(body: unknown, { status, headers }: Response): Response {
  const response = jsonResponse(body, status);
  const retryAfter = headers.get("retry-after");
  if (retryAfter) response.headers.set("retry-after", retryAfter);
  return response;
}

/**
 * The failure of an error inside a stream, where its status can no longer be sent: it travels as the error's code, by
 * which the relay sorts it.
 */
export function streamFailure(status: number, type: string, message: string): Failure {
  return new Failure("upstream-down", "upstream_down", { type, wireCode: status, text: scrub(message) });
}

/** Text pieces as a pulled event stream. */
export function streamResponse(pieces: AsyncGenerator<string>): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await pieces.next();
          if (done) return controller.close();
          if (value === "") continue;
          controller.enqueue(encoder.encode(value));
          return;
        }
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Canonical events as the answer of a chat completion: streamed when the call asked for a stream, else whole. */
export async function chatResponse(call: AdapterCall, events: Events): Promise<Response> {
  const context = {
    newId: call.newId,
    nowSeconds: Math.floor(call.nowMs() / 1000),
    model: call.model,
    includeUsage: true,
  };
  if (call.isStream) {
    const encoder = openaiChat.encodeStream(context);
    return streamResponse(
      (async function* () {
        for await (const event of events) yield encoder.push(event);
      })(),
    );
  }
  const all: CanonicalEvent[] = [];
  for await (const event of events) all.push(event);
  return jsonResponse(openaiChat.encodeAnswer(collect(all), context));
}

/**
 * Builds the events of an answer: it starts with the first of them, blocks open when their kind begins and close when
 * another does. Says nothing after the end.
 */
export interface EventWriter {
  start(id?: string): CanonicalEvent[];
  text(delta: string, kind?: "text" | "thinking"): CanonicalEvent[];
  /** A whole call, or its head when `input` is absent and `json` follows. */
  call(callId: string, name: string, input?: string): CanonicalEvent[];
  json(delta: string): CanonicalEvent[];
  finish(reason: FinishReason, raw: string | null, usage: Usage): CanonicalEvent[];
  fail(failure: Failure): CanonicalEvent[];
  /** Call when the body has ended: throws a broken stream unless the answer was finished. */
  end(): void;
}

export function eventWriter(): EventWriter {
  let at = -1;
  let open: "text" | "thinking" | "tool-call" | undefined;
  let isStarted = false;
  let isOver = false;
  const start = (id?: string): CanonicalEvent[] => {
    if (isStarted) return [];
    isStarted = true;
    return [{ type: "start", ...(id === undefined ? {} : { id }) }];
  };
  const close = (): CanonicalEvent[] => {
    if (open === undefined) return start();
    open = undefined;
    return [{ type: "close", at }];
  };
  const begin = (kind: "text" | "thinking" | "tool-call", more: object = {}): CanonicalEvent[] => {
    const out: CanonicalEvent[] = [...close(), { type: "open", at: ++at, kind, ...more }];
    open = kind;
    return out;
  };
  return {
    start,
    text(delta, kind = "text") {
      if (delta === "" || isOver) return [];
      return [...(open === kind ? [] : begin(kind)), { type: "text", at, delta }];
    },
    call(callId, name, input) {
      if (isOver) return [];
      const out = begin("tool-call", { callId, name });
      if (input !== undefined && input !== "") out.push({ type: "json", at, delta: input });
      return out;
    },
    json: (delta) => (open === "tool-call" && delta !== "" && !isOver ? [{ type: "json", at, delta }] : []),
    finish(reason, raw, usage) {
      if (isOver) return [];
      isOver = true;
      return [...close(), { type: "usage", usage }, { type: "finish", reason, raw }];
    },
    fail(failure) {
      if (isOver) return [];
      isOver = true;
      return [{ type: "fail", failure }];
    },
    end() {
      if (!isOver) throw brokenStream("the body ended before the last event");
    },
  };
}

/** Usage as a provider reported it; `raw` undefined = it said nothing, and the relay counts by itself. */
export function usageOf(prompt: unknown, completion: unknown, raw: unknown): Usage {
  const usage = emptyUsage();
  if (raw === undefined || raw === null) return usage;
  usage.input.fresh = boundedCount(prompt);
  usage.output.text = boundedCount(completion);
  usage.raw = raw;
  return usage;
}

/** Lines of a body as they come, without their ends; CR LF and LF alike. */
export async function* linesOf(response: Response): AsyncGenerator<string> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      let end = rest.indexOf("\n");
      while (end !== -1) {
        yield rest.slice(0, end).replace(/\r$/, "");
        rest = rest.slice(end + 1);
        end = rest.indexOf("\n");
      }
      if (rest.length > MAX_LINE_CHARS) throw tooLong();
      if (done) break;
    }
    if (rest !== "") yield rest.replace(/\r$/, "");
  } finally {
    reader.cancel().catch(() => {});
  }
}

const MAX_LINE_CHARS = 10 * 1024 * 1024;

function tooLong(): Failure {
  return new Failure("broken-stream", "stream_line_too_long", { params: { limit: MAX_LINE_CHARS } });
}

/** Events of a `text/event-stream` body: name ("" = none), data, and any other field such as `meta`. */
export async function* eventsOf(
  response: Response,
): AsyncGenerator<{ event: string; data: string; fields: Readonly<Record<string, string>> }> {
  let fields: Record<string, string> = {};
  let data: string[] = [];
  const take = () => {
    const event = { event: fields["event"] ?? "", data: data.join("\n"), fields };
    fields = {};
    data = [];
    return event;
  };
  for await (const line of linesOf(response)) {
    if (line === "") {
      if (data.length > 0 || Object.keys(fields).length > 0) yield take();
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else fields[name] = value;
  }
  if (data.length > 0 || Object.keys(fields).length > 0) yield take();
}

/** A POST of JSON with the call's headers. */
export function post(
  call: AdapterCall,
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return call.fetch(url, {
    method: "POST",
    headers: { ...call.headers, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: call.signal,
  });
}

/** The parts of a key such as `id|secret|region`; throws channel_key_unusable (retryable) when there are fewer. */
export function keyParts(key: string, count: number): string[] {
  const parts = key.split("|").map((part) => part.trim());
  if (parts.length < count || parts.slice(0, count).some((part) => part === ""))
    throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  return parts;
}

export interface TokenCache {
  (key: string, nowMs: number, make: () => Promise<{ token: string; expiresAtMs: number }>): Promise<string>;
  /** Forgets a token that its provider no longer takes, unless it was replaced meanwhile. */
  forget: (key: string, token: string) => Promise<void>;
}

/** Values that are made again shortly before they expire; concurrent callers share one making. */
export function createTokenCache(): TokenCache {
  const MAX_ENTRIES = 1000;
  const EARLY_MS = 60_000;
  const entries = new Map<string, { token: Promise<string>; expiresAtMs: number }>();
  const get = (
    key: string,
    nowMs: number,
    make: () => Promise<{ token: string; expiresAtMs: number }>,
  ): Promise<string> => {
    const found = entries.get(key);
    if (found && found.expiresAtMs - EARLY_MS > nowMs) {
      return found.token.catch((error: unknown) => {
        // Made under another call's timers, whose client may simply have left: that is nobody else's end.
        if (error instanceof Failure) throw error;
        return get(key, nowMs, make);
      });
    }
    const entry = { token: Promise.resolve(""), expiresAtMs: Infinity };
    entry.token = make().then(
      ({ token, expiresAtMs }) => {
        entry.expiresAtMs = expiresAtMs;
        return token;
      },
      (error: unknown) => {
        if (entries.get(key) === entry) entries.delete(key);
        throw error;
      },
    );
    entries.delete(key);
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > MAX_ENTRIES && oldest !== undefined) entries.delete(oldest);
    return entry.token;
  };
  const forget = async (key: string, token: string): Promise<void> => {
    const found = entries.get(key);
    if (found && (await found.token.catch(() => "")) === token && entries.get(key) === found)
      entries.delete(key);
  };
  return Object.assign(get, { forget });
}

/** An upstream said 200 and nothing that is an answer: it is broken, and another may do. */
export function badAnswer(internal = "no answer in the body"): Failure {
  return new Failure("upstream-down", "upstream_bad_answer", { retryable: true, internal });
}

/** A JSON object with something in it, undefined for everything else: no answer is empty, and no frame of one. */
export function filledObject(text: string): JsonObject | undefined {
  const wire = asObject(parseJson(text));
  for (const _ in wire) return wire;
  return undefined;
}

/** A 200 answer as a JSON object. Throws `upstream_bad_answer` for anything else. */
export async function answerOf(response: Response): Promise<Record<string, unknown>> {
  const body = filledObject(await response.text());
  if (!body) throw badAnswer();
  return body;
}

/** A JSON body, whatever the status; text that is none becomes an object with the text as its message. */
export async function readJson(response: Response): Promise<Record<string, unknown>> {
  const text = await response.text();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  return { message: text.slice(0, 2000) };
}
