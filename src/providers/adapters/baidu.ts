// Baidu ERNIE (Qianfan, first version): a token exchanged for the key pair, addresses by model, errors with status 200.
// Refuses pictures and several answers by name; a token that was revoked is exchanged once more, never twice.
import { createHash } from "node:crypto";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  badAnswer,
  filledObject,
  chatResponse,
  createTokenCache,
  errorResponse,
  eventsOf,
  eventWriter,
  keyParts,
  post,
  readJson,
  streamFailure,
  usageOf,
} from "../adapter-kit.ts";
import type { EventWriter } from "../adapter-kit.ts";
import { decodeChatRequest } from "./chat-request.ts";
import { baiduRequest } from "./baidu-request.ts";
import { embeddingsAnswer, embeddingTexts } from "./embeddings.ts";

const SUFFIXES: Readonly<Record<string, string>> = {
  "ERNIE-4.0": "completions_pro",
  "ERNIE-Bot-4": "completions_pro",
  "ERNIE-4.0-8K": "completions_pro",
  "ERNIE-Bot": "completions",
  "ERNIE-3.5-8K": "completions",
  "ERNIE-Bot-turbo": "eb-instant",
  "ERNIE-Lite-8K-0922": "eb-instant",
  "ERNIE-Speed": "ernie_speed",
  "ERNIE-Speed-8K": "ernie_speed",
  "ERNIE-Bot-8K": "ernie_bot_8k",
  "ERNIE-Lite-8K-0308": "ernie-lite-8k",
  "BLOOMZ-7B": "bloomz_7b1",
  "bge-large-zh": "bge_large_zh",
  "bge-large-en": "bge_large_en",
  "tao-8k": "tao_8k",
};

const tokens = createTokenCache();

/** The exchange was refused: a Failure for those who wait for it too, told with its status at the edge. */
class TokenRefused extends Failure {
  constructor(
    readonly answered: number,
    readonly words: string,
  ) {
    super("upstream-auth", "upstream_auth", { retryable: true, internal: words });
  }
}

async function exchange(call: AdapterCall, base: string): Promise<{ token: string; expiresAtMs: number }> {
  const [id = "", secret = ""] = keyParts(call.key, 2);
  const query = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: id,
    client_secret: secret,
  });
  const response = await call.fetch(`${base}/oauth/2.0/token?${query.toString()}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    signal: call.signal,
  });
  const body = await readJson(response);
  const token = asString(body["access_token"]);
  if (token !== undefined && response.status === 200)
    return { token, expiresAtMs: call.monotonicMs() + (asNumber(body["expires_in"]) ?? 3600) * 1000 };
  // An OAuth error is about the key whatever its status; a busy or broken server is not.
  const status = response.status === 429 || response.status >= 500 ? response.status : 401;
  const words = asString(body["error_description"]) ?? asString(body["error"]) ?? "no token";
  throw new TokenRefused(status, words);
}

/** The token of an address and a key; one exchange at a time, shared by all who wait. */
function tokenOf(call: AdapterCall): { key: string; get: () => Promise<string> } {
  const base = call.url.slice(0, call.url.indexOf("/rpc/2.0/"));
  const key = createHash("sha256").update(`${base}\n${call.key}`).digest("hex");
  return { key, get: () => tokens(key, call.monotonicMs(), () => exchange(call, base)) };
}

/** Auth: the token, the key or its rights. Quota: what was bought is used up. Rate: too often. The rest by family. */
function baiduStatus(code: number): number {
  switch (code) {
    case 13:
    case 14:
    case 15:
    case 110:
    case 111:
      return 401;
    case 6:
    case 336_004:
      return 403;
    case 17:
    case 19:
      return 402;
    case 4:
    case 18:
    case 336_501:
    case 336_502:
      return 429;
    case 336_100:
      return 503;
    case 336_000:
    case 336_200:
      return 500;
    case 3:
    case 100:
      return 400;
    default:
      return code >= 336_000 && code < 338_000 ? 400 : 500;
  }
}

interface Refused {
  code: number;
  message: string;
}

function refusalIn(body: Record<string, unknown> | undefined): Refused | undefined {
  const code = asNumber(body?.["error_code"]) ?? 0;
  return code === 0 ? undefined : { code, message: asString(body?.["error_msg"]) ?? "" };
}

const STALE_TOKEN: ReadonlySet<number> = new Set([110, 111]);

function isEventStream(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").includes("event-stream");
}

/** An answer that is worth reading, or the refusal in the form that the relay sorts. */
type Asked = { stream: Response } | { body: Record<string, unknown> } | { refused: Response };

async function ask(call: AdapterCall, body: unknown): Promise<Asked> {
  const at = call.url.lastIndexOf("/");
  const suffix = encodeURIComponent(SUFFIXES[call.model] ?? call.model.toLowerCase());
  const { key, get } = tokenOf(call);
  for (let isSecond = false; ; isSecond = true) {
    const token = await get();
    const address = `${call.url.slice(0, at)}/${suffix}?access_token=${encodeURIComponent(token)}`;
    const response = await post(call, address, body);
    if (response.status === 200 && isEventStream(response)) return { stream: response };
    const answer = await readJson(response);
    const refusal = refusalIn(answer);
    if (!refusal && response.status === 200) return { body: answer };
    const { code, message } = refusal ?? {
      code: response.status,
      message: asString(answer["message"]) ?? "",
    };
    if (STALE_TOKEN.has(code)) await tokens.forget(key, token);
    if (STALE_TOKEN.has(code) && !isSecond) continue;
    const status = refusal ? baiduStatus(code) : response.status;
    return {
      refused: errorResponse(status, message, code, "baidu_error", response.headers.get("retry-after")),
    };
  }
}

/** Older models tell the completion frame by frame, and only the total over all of them. */
function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  const prompt = asNumber(wire?.["prompt_tokens"]) ?? 0;
  const rest = (asNumber(wire?.["total_tokens"]) ?? 0) - prompt;
  return usageOf(prompt, rest > 0 ? rest : wire?.["completion_tokens"], wire);
}

/** Words and function call of one frame, or of a whole answer; `calls` counts what was opened before. */
function spoken(
  call: AdapterCall,
  writer: EventWriter,
  wire: Record<string, unknown>,
  state: { hasCall: boolean },
): CanonicalEvent[] {
  const out = [...writer.start(asString(wire["id"])), ...writer.text(asString(wire["result"]) ?? "")];
  const result = asObject(wire["function_call"]);
  if (!result) return out;
  const input = asString(result["arguments"]) ?? "";
  if (state.hasCall) return [...out, ...writer.json(input)];
  state.hasCall = true;
  // Thoughts say why the function is called.
  out.push(...writer.text(asString(result["thoughts"]) ?? "", "thinking"));
  out.push(...writer.call(call.newId("call_"), asString(result["name"]) ?? "", input));
  return out;
}

function ending(writer: EventWriter, wire: Record<string, unknown>, hasCall: boolean): CanonicalEvent[] {
  const isCut = wire["is_truncated"] === true || wire["finish_reason"] === "length";
  const isBlocked = wire["finish_reason"] === "content_filter" || (asNumber(wire["flag"]) ?? 0) > 0;
  const reason = hasCall ? "tool-calls" : isCut ? "length" : isBlocked ? "content-filter" : "stop";
  return writer.finish(reason, asString(wire["finish_reason"]) ?? reason, usage(wire["usage"]));
}

async function* streamedEvents(call: AdapterCall, response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  const state = { hasCall: false };
  for await (const { data } of eventsOf(response)) {
    const wire = filledObject(data);
    if (!wire) continue;
    const refused = refusalIn(wire);
    if (refused)
      return yield* writer.fail(streamFailure(baiduStatus(refused.code), "baidu_error", refused.message));
    yield* spoken(call, writer, wire, state);
    if (wire["is_end"] === true) return yield* ending(writer, wire, state.hasCall);
  }
  writer.end();
}

async function chat(call: AdapterCall): Promise<Response> {
  const result = await ask(call, baiduRequest(call, decodeChatRequest(call, { tools: true, formats: true })));
  if ("refused" in result) return result.refused;
  if ("stream" in result) return chatResponse(call, streamedEvents(call, result.stream));
  if (asString(result.body["result"]) === undefined && !asObject(result.body["function_call"]))
    throw badAnswer();
  const writer = eventWriter();
  const state = { hasCall: false };
  const events = spoken(call, writer, result.body, state);
  return chatResponse(call, [...events, ...ending(writer, result.body, state.hasCall)]);
}

async function embeddings(call: AdapterCall): Promise<Response> {
  const result = await ask(call, { input: embeddingTexts(call) });
  if ("refused" in result) return result.refused;
  if ("stream" in result) throw badAnswer();
  const { body } = result;
  const items = asList(body["data"]).map(asObject);
  const ordered = items.toSorted((a, b) => (asNumber(a?.["index"]) ?? 0) - (asNumber(b?.["index"]) ?? 0));
  const vectors = ordered.map((item) => item?.["embedding"] ?? []);
  return embeddingsAnswer(call, vectors, asNumber(asObject(body["usage"])?.["prompt_tokens"]));
}

export async function baidu(call: AdapterCall): Promise<Response> {
  try {
    return await (call.operation === "embeddings" ? embeddings(call) : chat(call));
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error;
    return errorResponse(error.answered, error.words, "invalid_client", "baidu_error");
  }
}
