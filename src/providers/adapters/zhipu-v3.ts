// Zhipu's third API version: a key that signs its own token, one prompt list, a stream that ends with a meta line.
// Refuses tools, pictures and several answers by name.
import { createHmac } from "node:crypto";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  badAnswer,
  chatResponse,
  errorResponse,
  eventsOf,
  eventWriter,
  post,
  readJson,
  streamFailure,
  usageOf,
} from "../adapter-kit.ts";
import { decodeChatRequest, textOf } from "./chat-request.ts";

const LIFE_MS = 24 * 3_600_000;
const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** HS256 with the provider's own header field; the key is `id.secret`. */
function signZhipu(key: string, nowMs: number): string {
  const [id, secret, ...rest] = key.trim().split(".");
  if (!id || !secret || rest.length > 0)
    throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  const text = `${base64url({ alg: "HS256", sign_type: "SIGN" })}.${base64url({ api_key: id, exp: nowMs + LIFE_MS, timestamp: nowMs })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  return usageOf(wire?.["prompt_tokens"], wire?.["completion_tokens"], wire);
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  for await (const { event, data, fields } of eventsOf(response)) {
    if (event === "error" || event === "interrupted")
      return yield* writer.fail(streamFailure(500, "zhipu_error", data));
    yield* writer.text(data);
    if (event !== "finish") continue;
    const meta = asObject(parseJson(fields["meta"] ?? ""));
    return yield* writer.finish("stop", "finish", usage(meta?.["usage"]));
  }
  writer.end();
}

/** Answers come as JSON texts inside the JSON: quotes around and escapes within. */
function unquoted(text: string): string {
  const inner: unknown = text.startsWith('"') ? parseJson(text) : undefined;
  return (typeof inner === "string" ? inner : text).trim();
}

/** The balance is used up. */
const UNPAID = 1113;
/** What was asked or was to be said is not allowed. */
const UNSAFE = 1301;

/** 1000 to 1004: the key; 1113: the balance; 1302 and 1305: too often; other four-digit codes: what was asked. */
function statusOf(code: number): number {
  if (code >= 1000 && code <= 1004) return 401;
  if (code === 1302 || code === 1305) return 429;
  if (code === UNPAID) return 402;
  return code >= 1000 ? 400 : 500;
}

export async function zhipuV3(call: AdapterCall): Promise<Response> {
  const request = decodeChatRequest(call, {});
  const { settings } = request;
  const prompt = request.messages.flatMap((message) => {
    const content = textOf(message);
    if (message.role !== "system" && message.role !== "developer") return [{ role: message.role, content }];
    // A system turn must be answered before the next one may come.
    return [
      { role: "system", content },
      { role: "user", content: "Okay" },
    ];
  });
  const { topP } = settings;
  const response = await post(
    call,
    call.url,
    {
      prompt,
      temperature: settings.temperature,
      top_p: topP === undefined ? undefined : Math.min(topP, 0.99),
      request_id: call.newId("req_"),
      incremental: call.isStream ? true : undefined,
    },
    { authorization: signZhipu(call.key, call.nowMs()) },
  );
  if (response.status !== 200) return response;
  const isStream = (response.headers.get("content-type") ?? "").includes("event-stream");
  if (call.isStream && isStream) return chatResponse(call, streamedEvents(response));
  const body = await readJson(response);
  if (body["success"] !== true) {
    const code = asNumber(body["code"]) ?? 0;
    const type =
      code === UNSAFE ? "content_policy_violation" : code === UNPAID ? "insufficient_quota" : "zhipu_error";
    return errorResponse(statusOf(code), asString(body["msg"]) ?? "", code, type);
  }
  const data = asObject(body["data"]);
  const choice = asObject(asList(data?.["choices"])[0]);
  if (!choice) throw badAnswer();
  const writer = eventWriter();
  return chatResponse(call, [
    ...writer.start(asString(data?.["task_id"])),
    ...writer.text(unquoted(asString(choice?.["content"]) ?? "")),
    ...writer.finish("stop", "stop", usage(data?.["usage"])),
  ]);
}
