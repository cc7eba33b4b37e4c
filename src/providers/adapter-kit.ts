// What adapters share: canonical events in, a response of the OpenAI dialect out; lines and events off a provider's body.
// Refuses buffering: streams are pulled, one piece per demand of the relay.
import { collect } from "../protocol/assemble.ts";
import type { CanonicalRequest, Part } from "../protocol/canonical.ts";
import { cannotCarry } from "../protocol/carry.ts";
import type { CanonicalEvent, FinishReason } from "../protocol/events.ts";
import { openaiChat } from "../protocol/openai-chat/dialect.ts";
import { Failure } from "../shared/failures.ts";
import { boundedCount, emptyUsage } from "../shared/usage.ts";
import type { Usage } from "../shared/usage.ts";
import type { AdapterCall } from "./adapter.ts";

export type Events = AsyncIterable<CanonicalEvent> | Iterable<CanonicalEvent>;

export function jsonResponse(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}

/** An error in the shape that the relay classifies; for providers that say 200 and mean no. */
export function errorResponse(
  status: number,
  message: string,
  code: string | number,
  type = "upstream_error",
): Response {
  return jsonResponse({ error: { message, type, code } }, status);
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

/** Builds the events of an answer: blocks open when their kind begins and close when another does. */
export interface EventWriter {
  start(id?: string): CanonicalEvent[];
  text(delta: string, kind?: "text" | "thinking"): CanonicalEvent[];
  /** A whole call, or its head when `input` is absent and `json` follows. */
  call(callId: string, name: string, input?: string): CanonicalEvent[];
  json(delta: string): CanonicalEvent[];
  finish(reason: FinishReason, raw: string | null, usage: Usage): CanonicalEvent[];
}

export function eventWriter(): EventWriter {
  let at = -1;
  let open: "text" | "thinking" | "tool-call" | undefined;
  const close = (): CanonicalEvent[] => {
    if (open === undefined) return [];
    open = undefined;
    return [{ type: "close", at }];
  };
  return {
    start: (id) => [{ type: "start", ...(id === undefined ? {} : { id }) }],
    text(delta, kind = "text") {
      if (delta === "") return [];
      const out: CanonicalEvent[] = [];
      if (open !== kind) {
        out.push(...close(), { type: "open", at: ++at, kind });
        open = kind;
      }
      out.push({ type: "text", at, delta });
      return out;
    },
    call(callId, name, input) {
      const out: CanonicalEvent[] = [...close(), { type: "open", at: ++at, kind: "tool-call", callId, name }];
      open = "tool-call";
      if (input !== undefined && input !== "") out.push({ type: "json", at, delta: input });
      return out;
    },
    json: (delta) => (open === "tool-call" && delta !== "" ? [{ type: "json", at, delta }] : []),
    finish: (reason, raw, usage) => [...close(), { type: "usage", usage }, { type: "finish", reason, raw }],
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

export interface Turn {
  role: "system" | "user" | "assistant";
  text: string;
}

function textOf(parts: readonly Part[]): string {
  return parts
    .map((part) => {
      if (part.type === "text") return part.text;
      if (part.type === "thinking") return "";
      throw cannotCarry(part.type === "image" ? "image_url" : part.type);
    })
    .join("");
}

/** A conversation of nothing but text. Refuses by name what such a provider has no words for. */
export function textTurns(request: CanonicalRequest): Turn[] {
  if (request.tools && request.tools.length > 0) throw cannotCarry("tools");
  if ((request.settings.n ?? 1) > 1) throw cannotCarry("n");
  if (request.responseFormat && request.responseFormat.type !== "text") throw cannotCarry("response_format");
  return request.messages.map((message) => {
    if (message.role === "tool") throw cannotCarry("messages.tool");
    const role = message.role === "developer" ? "system" : message.role;
    return { role, text: textOf(message.parts) };
  });
}

/** The chat body that the relay hands over, in canonical form. */
export function conversation(call: AdapterCall): CanonicalRequest {
  return openaiChat.decodeRequest(call.body);
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
  });
}

/** The parts of a key such as `id|secret|region`; throws channel_key_unusable (retryable) when there are fewer. */
export function keyParts(key: string, count: number): string[] {
  const parts = key.split("|").map((part) => part.trim());
  if (parts.length < count || parts.slice(0, count).some((part) => part === ""))
    throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  return parts;
}

/** A value that is made again shortly before it expires; concurrent callers share one making. */
export function createTokenCache(): (
  key: string,
  nowMs: number,
  make: () => Promise<{ token: string; expiresAtMs: number }>,
) => Promise<string> {
  const MAX_ENTRIES = 1000;
  const EARLY_MS = 60_000;
  const entries = new Map<string, { token: Promise<string>; expiresAtMs: number }>();
  return (key, nowMs, make) => {
    const found = entries.get(key);
    if (found && found.expiresAtMs - EARLY_MS > nowMs) return found.token;
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
