// Baidu ERNIE (Qianfan, first version): a token exchanged for the key pair, addresses by model, errors with status 200.
// Refuses tools, pictures and several answers by name.
import { createHash } from "node:crypto";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  createTokenCache,
  errorResponse,
  eventsOf,
  eventWriter,
  keyParts,
  post,
  readJson,
  textTurns,
  usageOf,
} from "../adapter-kit.ts";
import { embeddedTexts, embeddingsAnswer } from "./ollama.ts";

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

function accessToken(call: AdapterCall): Promise<string> {
  const [id = "", secret = ""] = keyParts(call.key, 2);
  const cacheKey = createHash("sha256").update(call.key).digest("hex");
  return tokens(cacheKey, call.nowMs(), async () => {
    const base = call.channel.baseUrl || call.row.baseUrl;
    const query = new URLSearchParams({
      grant_type: "client_credentials",
      client_id: id,
      client_secret: secret,
    });
    const response = await call.fetch(`${base}/oauth/2.0/token?${query.toString()}`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
    });
    const body = await readJson(response);
    const token = asString(body["access_token"]);
    if (token === undefined) {
      const internal = asString(body["error_description"]) ?? "no token";
      throw new Failure("upstream-auth", "upstream_auth", { retryable: true, internal });
    }
    return { token, expiresAtMs: call.nowMs() + (asNumber(body["expires_in"]) ?? 3600) * 1000 };
  });
}

async function address(call: AdapterCall): Promise<string> {
  const at = call.url.lastIndexOf("/");
  const suffix = SUFFIXES[call.model] ?? call.model.toLowerCase();
  return `${call.url.slice(0, at)}/${encodeURIComponent(suffix)}?access_token=${encodeURIComponent(await accessToken(call))}`;
}

/** 110 and 111: the token is not good; 17, 18 and 19: quotas and rates; 336xxx: the request. */
function statusOf(code: number): number {
  if (code === 110 || code === 111 || code === 6 || code === 13 || code === 14) return 401;
  if (code === 4 || (code >= 17 && code <= 19)) return 429;
  return code >= 336_000 && code < 337_000 ? 400 : 500;
}

function refusal(body: Record<string, unknown>): Response | undefined {
  const code = asNumber(body["error_code"]);
  if (code === undefined || code === 0) return undefined;
  return errorResponse(statusOf(code), asString(body["error_msg"]) ?? "", code, "baidu_error");
}

function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  const prompt = asNumber(wire?.["prompt_tokens"]) ?? 0;
  const completion =
    asNumber(wire?.["completion_tokens"]) ?? (asNumber(wire?.["total_tokens"]) ?? 0) - prompt;
  return usageOf(prompt, completion, wire);
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  for await (const { data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    if (!wire) continue;
    const code = asNumber(wire["error_code"]);
    if (code !== undefined && code !== 0) {
      const message = asString(wire["error_msg"]) ?? "";
      return yield {
        type: "fail",
        failure: upstreamFailure({ status: statusOf(code), message, code, raw: data }),
      };
    }
    yield* writer.text(asString(wire["result"]) ?? "");
    if (wire["is_end"] === true) {
      const isCut = wire["is_truncated"] === true;
      yield* writer.finish(isCut ? "length" : "stop", isCut ? "truncated" : "end", usage(wire["usage"]));
      return;
    }
  }
}

async function chat(call: AdapterCall): Promise<Response> {
  const request = conversation(call);
  const { settings } = request;
  const turns = textTurns(request);
  const system = turns.filter((turn) => turn.role === "system").map((turn) => turn.text);
  const response = await post(call, await address(call), {
    messages: turns
      .filter((turn) => turn.role !== "system")
      .map(({ role, text }) => ({ role, content: text })),
    ...(system.length > 0 ? { system: system.join("\n") } : {}),
    temperature: settings.temperature,
    top_p: settings.topP,
    penalty_score: settings.frequencyPenalty,
    stop: settings.stop,
    // The provider takes no limit below 2.
    max_output_tokens:
      settings.maxOutputTokens === undefined ? undefined : Math.max(2, settings.maxOutputTokens),
    user_id: settings.endUser,
    stream: call.isStream,
  });
  if (response.status !== 200) return response;
  const isStream = (response.headers.get("content-type") ?? "").includes("event-stream");
  if (call.isStream && isStream) return chatResponse(call, streamedEvents(response));
  const body = await readJson(response);
  const refused = refusal(body);
  if (refused) return refused;
  const writer = eventWriter();
  const isCut = body["is_truncated"] === true;
  return chatResponse(call, [
    ...writer.start(asString(body["id"])),
    ...writer.text(asString(body["result"]) ?? ""),
    ...writer.finish(isCut ? "length" : "stop", isCut ? "truncated" : "end", usage(body["usage"])),
  ]);
}

async function embeddings(call: AdapterCall): Promise<Response> {
  const response = await post(call, await address(call), { input: embeddedTexts(call.body["input"]) });
  if (response.status !== 200) return response;
  const body = await readJson(response);
  const refused = refusal(body);
  if (refused) return refused;
  const vectors = asList(body["data"]).map((item) => asObject(item)?.["embedding"] ?? []);
  return embeddingsAnswer(call.model, vectors, asNumber(asObject(body["usage"])?.["prompt_tokens"]));
}

export function baidu(call: AdapterCall): Promise<Response> {
  return call.operation === "embeddings" ? embeddings(call) : chat(call);
}
