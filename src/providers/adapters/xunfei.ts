// iFlytek Spark: a signed WebSocket for keys of three parts, its OpenAI-shaped address for single passwords.
// Refuses tools, pictures and several answers by name on the socket.
import { createHmac } from "node:crypto";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  eventWriter,
  keyParts,
  post,
  textTurns,
  usageOf,
} from "../adapter-kit.ts";
import type { Turn } from "../adapter-kit.ts";

const SOCKET_BASE = "wss://spark-api.xf-yun.com";
const HTTP_BASE = "https://spark-api-open.xf-yun.com";
const DOMAINS: Readonly<Record<string, string>> = {
  "v1.1": "lite",
  "v2.1": "generalv2",
  "v3.1": "generalv3",
  "v3.5": "generalv3.5",
  "v4.0": "4.0Ultra",
};

/** The version stands behind the dash of the model's name, else in the channel's special field. */
export function sparkVersion(model: string, other: string): string {
  const parts = model.split("-");
  if (parts.length === 2 && parts[1]) return parts[1];
  return other.trim() || "v1.1";
}

/** The address with host, date and authorization in its query, as the provider's WebAPI documentation signs it. */
export function signSpark(address: string, apiSecret: string, apiKey: string, nowMs: number): string {
  const url = new URL(address);
  const date = new Date(nowMs).toUTCString();
  const base = `host: ${url.host}\ndate: ${date}\nGET ${url.pathname} HTTP/1.1`;
  const signature = createHmac("sha256", apiSecret).update(base).digest("base64");
  const header = `api_key="${apiKey}", algorithm="hmac-sha256", headers="host date request-line", signature="${signature}"`;
  url.searchParams.set("authorization", Buffer.from(header).toString("base64"));
  url.searchParams.set("date", date);
  url.searchParams.set("host", url.host);
  return url.href;
}

/** Messages of a socket as they come; ends when it closes, throws when it never opened or the call was aborted. */
async function* framesOf(url: string, body: unknown, signal: AbortSignal): AsyncGenerator<string> {
  const queue: string[] = [];
  let wake: () => void = () => {};
  let isOver = false;
  let problem: Error | undefined;
  const socket = new WebSocket(url);
  const end = (error?: Error): void => {
    isOver = true;
    problem ??= error;
    wake();
  };
  socket.onopen = () => socket.send(JSON.stringify(body));
  socket.onmessage = (event: MessageEvent) => {
    queue.push(String(event.data));
    wake();
  };
  socket.onerror = () =>
    end(new Failure("upstream-down", "do_request_failed", { retryable: true, internal: "socket" }));
  socket.onclose = () => end();
  const abort = (): void => end(new DOMException("aborted", "AbortError"));
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      const next = queue.shift();
      if (next !== undefined) yield next;
      else if (isOver) break;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
    if (problem) throw problem;
  } finally {
    signal.removeEventListener("abort", abort);
    socket.close();
  }
}

function usageFrom(wire: Record<string, unknown> | undefined): Usage {
  const raw = asObject(asObject(wire?.["usage"])?.["text"]);
  return usageOf(raw?.["prompt_tokens"], raw?.["completion_tokens"], raw);
}

/** 10013 and 10014: what was asked or said; 11200 to 11203: rights and quotas. */
function failureOf(code: number, message: string): Failure {
  const status = code === 10_013 || code === 10_014 ? 400 : code >= 11_200 && code <= 11_203 ? 429 : 500;
  const type = status === 400 ? "content_policy_violation" : "xunfei_error";
  return upstreamFailure({ status, message, type, code, raw: message });
}

async function* eventsFrom(frames: AsyncGenerator<string>): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  let isStarted = false;
  for await (const text of frames) {
    const wire = asObject(parseJson(text));
    const header = asObject(wire?.["header"]);
    const code = asNumber(header?.["code"]) ?? 0;
    if (code !== 0) {
      const failure = failureOf(code, asString(header?.["message"]) ?? "");
      if (!isStarted) throw failure;
      return yield { type: "fail", failure };
    }
    if (!isStarted) {
      isStarted = true;
      yield* writer.start(asString(header?.["sid"]));
    }
    const payload = asObject(wire?.["payload"]);
    for (const value of asList(asObject(payload?.["choices"])?.["text"])) {
      const piece = asObject(value);
      yield* writer.text(asString(piece?.["reasoning_content"]) ?? "", "thinking");
      yield* writer.text(asString(piece?.["content"]) ?? "");
    }
    if (header?.["status"] !== 2) continue;
    yield* writer.finish("stop", "2", payload?.["usage"] === undefined ? emptyUsage() : usageFrom(payload));
    return;
  }
}

function spoken(turns: readonly Turn[], knowsSystem: boolean): unknown[] {
  return turns.flatMap(({ role, text }) =>
    role === "system" && !knowsSystem
      ? [
          { role: "user", content: text },
          { role: "assistant", content: "Okay" },
        ]
      : [{ role, content: text }],
  );
}

async function overSocket(call: AdapterCall): Promise<Response> {
  const [appId = "", apiSecret = "", apiKey = ""] = keyParts(call.key, 3);
  const request = conversation(call);
  const { settings } = request;
  const version = sparkVersion(call.model, call.channel.other);
  const base = call.channel.baseUrl === "" ? SOCKET_BASE : call.channel.baseUrl.replace(/^http/, "ws");
  const url = signSpark(`${base}/${version}/chat`, apiSecret, apiKey, call.nowMs());
  const frames = framesOf(
    url,
    {
      header: { app_id: appId },
      parameter: {
        chat: {
          domain: DOMAINS[version] ?? `general${version}`,
          temperature: settings.temperature,
          top_k: settings.topK,
          max_tokens: settings.maxOutputTokens,
        },
      },
      payload: { message: { text: spoken(textTurns(request), version >= "v3.5") } },
    },
    call.signal,
  );
  const events = eventsFrom(frames);
  // The first frame decides whether this is an answer at all: an error before it is one of the attempt.
  const first = await events.next();
  if (first.done) throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  return chatResponse(
    call,
    (async function* () {
      yield first.value;
      yield* events;
    })(),
  );
}

export function xunfei(call: AdapterCall): Promise<Response> {
  if (call.key.includes("|")) return overSocket(call);
  const base = call.channel.baseUrl || HTTP_BASE;
  return post(call, `${base}/v1/chat/completions`, call.body, { authorization: `Bearer ${call.key.trim()}` });
}
