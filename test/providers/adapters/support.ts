// What the adapter tests share: a provider on loopback, a call as the relay would make it, and readers of answers.
// Refuses to reach anything but loopback.
import { expect } from "bun:test";
import { openaiChat } from "../../../src/protocol/openai-chat/dialect.ts";
import type { Answer } from "../../../src/protocol/assemble.ts";
import { collect } from "../../../src/protocol/assemble.ts";
import { DIALECTS } from "../../../src/protocol/dialects.ts";
import type { AdapterCall } from "../../../src/providers/adapter.ts";
import { ADAPTERS } from "../../../src/providers/adapters.ts";
import { providerOf } from "../../../src/providers/catalog.ts";
import type { Operation, UpstreamChannel } from "../../../src/providers/define.ts";
import { buildUpstreamRequest } from "../../../src/providers/request.ts";
import { decode } from "../../protocol/support.ts";

export type Handler = (request: Request) => Response | Promise<Response>;

export interface Recorded {
  method: string;
  path: string;
  headers: Headers;
  text: string;
  json: () => Record<string, unknown>;
}

export interface Upstream {
  url: string;
  requests: Recorded[];
  stop: () => void;
}

/** A provider on loopback that remembers what it was asked. */
export function serve(handler: Handler): Upstream {
  const requests: Recorded[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const copy = request.clone();
      const text = await copy.text();
      const { pathname, search } = new URL(request.url);
      requests.push({
        method: request.method,
        path: pathname + search,
        headers: request.headers,
        text,
        json: () => JSON.parse(text) as Record<string, unknown>,
      });
      return handler(request);
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, requests, stop: () => void server.stop(true) };
}

/** A request that must have been made: the last one, or so many before it. */
export function requestOf(upstream: Upstream, back = 0): Recorded {
  const found = upstream.requests.at(-1 - back);
  if (!found) throw new Error("nothing was asked");
  return found;
}

export interface CallOptions {
  type: number;
  key: string;
  model: string;
  body: Record<string, unknown>;
  baseUrl: string;
  operation?: Operation;
  channel?: Partial<UpstreamChannel>;
  isStream?: boolean;
  nowMs?: number;
  signal?: AbortSignal;
  more?: Partial<AdapterCall>;
}

/** The call as the relay makes it: address and headers come from the row. */
export function adapterCall(options: CallOptions): AdapterCall {
  const { type, key, model, baseUrl, operation = "chat", isStream = false } = options;
  const row = providerOf(type);
  if (!row) throw new Error(`no row ${type}`);
  const channel = { baseUrl, other: "", organization: "", createdTime: 0, ...options.channel };
  const body = { model, ...options.body, ...(isStream ? { stream: true } : {}) };
  const built = buildUpstreamRequest(row, channel, {
    operation,
    model,
    key,
    isStream,
    body,
    contentType: "application/json",
    accept: isStream ? "text/event-stream" : "application/json",
  });
  let next = 1;
  return {
    operation: built.operation,
    row,
    route: built.route,
    channel,
    key,
    model: built.model,
    isStream,
    body: built.body ?? body,
    url: built.url,
    headers: built.headers,
    signal: options.signal ?? new AbortController().signal,
    fetch: (url, init) => fetch(url, init),
    nowMs: () => options.nowMs ?? 1_700_000_000_000,
    monotonicMs: () => options.nowMs ?? 1_700_000_000_000,
    newId: (prefix) => `${prefix}${next++}`,
    ...options.more,
  };
}

export async function perform(options: CallOptions): Promise<Response> {
  const call = adapterCall(options);
  const adapter = ADAPTERS[call.route.adapter ?? ""];
  if (!adapter) throw new Error(`no adapter ${call.route.adapter}`);
  return adapter(call);
}

/** A whole answer in canonical form, read by the dialect that the route names. */
export async function whole(options: CallOptions): Promise<Answer> {
  const response = await perform(options);
  expect([response.status, response.headers.get("content-type")?.split(";")[0]]).toEqual([
    200,
    "application/json",
  ]);
  const { dialect } = adapterCall(options).route;
  return DIALECTS[dialect].decodeAnswer(await response.json(), { newId: (prefix) => `${prefix}x` });
}

/** A stream collected into an answer, its events held against the invariants. */
export async function streamed(options: CallOptions): Promise<Answer> {
  const response = await perform({ ...options, isStream: true });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  const { dialect } = adapterCall(options).route;
  return collect(decode(DIALECTS[dialect], await response.text()));
}

export function text(answer: Answer, kind = "text"): string {
  return answer.blocks
    .filter((block) => block.kind === kind)
    .map((block) => block.text)
    .join("");
}

/** The failure that the relay would make of an error answer. */
export async function failureOf(response: Response) {
  return openaiChat.decodeFailure(
    response.status,
    await response.json(),
    response.headers.get("retry-after"),
  );
}

export const HI = [{ role: "user", content: "hi" }];

export const WEATHER_TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Tells the weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

/** A conversation in which a tool was called and answered. */
export const TOOL_TURNS = [
  { role: "user", content: "Weather in Paris?" },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
    ],
  },
  { role: "tool", tool_call_id: "call_1", content: "18 degrees" },
];

/** The smallest PNG there is. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Code of the Failure that an action throws; "" when it throws none. */
export async function codeOf(action: () => Promise<unknown>): Promise<string> {
  try {
    await action();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return "";
}
