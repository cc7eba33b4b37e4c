// AWS Bedrock: Claude through InvokeModel in Anthropic's own dialect, every other model through Converse.
// Refuses keys of another form than AccessKey|SecretKey|Region, or key|Region for Bedrock's own API keys.
import { scrub } from "../../protocol/classify.ts";
import { brokenStream } from "../../protocol/assemble.ts";
import { errorEnvelope } from "../../protocol/anthropic/failure.ts";
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { answerOf, chatResponse, errorResponse, jsonResponse, streamResponse } from "../adapter-kit.ts";
import { signAws } from "../aws-signature.ts";
import { bedrockEvents, exceptionStatus, withoutArns } from "./bedrock-events.ts";
import type { BedrockException } from "./bedrock-events.ts";
import { bedrockModelId } from "./bedrock-models.ts";
import { streamedAnswer, completeAnswer } from "./converse-answer.ts";
import { converseRequest } from "./converse-request.ts";

const ANTHROPIC_VERSION = "bedrock-2023-05-31";
const EVENT_STREAM = "application/vnd.amazon.eventstream";
/** Fields of Anthropic's own service that mean nothing on Bedrock, which refuses what it does not know. */
const NOT_SENT: ReadonlySet<string> = new Set(["model", "stream", "service_tier", "inference_geo"]);

interface BedrockKey {
  region: string;
  accessKey: string;
  /** Empty for Bedrock's own API keys, which are sent as they are. */
  secretKey: string;
}

const VISIBLE = /^[\x21-\x7e]+$/;

export function parseBedrockKey(key: string): BedrockKey {
  const parts = key.trim().split("|");
  const [accessKey = "", second = "", third] = parts.map((part) => part.trim());
  const region = third ?? second;
  const secretKey = third === undefined ? "" : second;
  const isComplete = parts.length <= 3 && VISIBLE.test(accessKey) && /^[a-z]{2}[a-z0-9-]+$/.test(region);
  if (!isComplete || (third !== undefined && !VISIBLE.test(secretKey)))
    throw new Failure("upstream-auth", "channel_key_format", {
      params: { format: "AccessKey|SecretKey|Region" },
      retryable: true,
    });
  return { region, accessKey, secretKey };
}

function baseOf(call: AdapterCall, region: string): string {
  const own = call.channel.baseUrl.trim().replace(/\/+$/, "");
  if (own !== "") return own;
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

/** What the channel sends besides; Anthropic's version and betas stand in the body here. */
function ownHeaders({ headers }: AdapterCall): Record<string, string> {
  const { "anthropic-version": _version, "anthropic-beta": _betas, ...own } = headers;
  return own;
}

/** AWS wants its own names signed; others may be changed on the way, and would break the signature. */
function signedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const isSigned = (name: string): boolean =>
    name === "content-type" || name === "accept" || name.startsWith("x-amz");
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isSigned(name)));
}

async function send(call: AdapterCall, action: string, body: unknown): Promise<Response> {
  const key = parseBedrockKey(call.key);
  const id = encodeURIComponent(bedrockModelId(call.model, key.region));
  const url = new URL(`${baseOf(call, key.region)}/model/${id}/${action}`);
  const text = JSON.stringify(body);
  const accept = call.isStream ? EVENT_STREAM : "application/json";
  const headers: Record<string, string> = { ...ownHeaders(call), "content-type": "application/json", accept };
  if (key.secretKey === "") headers["authorization"] = `Bearer ${key.accessKey}`;
  else {
    const request = { method: "POST", url: url.href, headers: signedHeaders(headers), body: text };
    Object.assign(headers, signAws(request, { ...key, service: "bedrock" }, call.nowMs()));
  }
  const { signal } = call;
  return call.fetch(url.href, { method: "POST", headers, body: text, signal });
}

async function refusal(response: Response): Promise<Response> {
  const text = await response.text();
  const body = asObject(parseJson(text));
  const named = response.headers.get("x-amzn-errortype") ?? asString(body?.["__type"]) ?? "";
  const type = named.split(/[:#]/).findLast((part) => /^\w+$/.test(part.trim())) ?? "";
  const message = asString(body?.["message"]) ?? asString(body?.["Message"]) ?? text;
  const status = exceptionStatus(type) ?? response.status;
  const retryAfter = response.headers.get("retry-after");
  return errorResponse(status, withoutArns(message), type || status, type || undefined, retryAfter);
}

/** Anthropic's events as they stand inside the stream's messages. */
async function* claudeStream(upstream: Response): AsyncGenerator<string> {
  let isComplete = false;
  for await (const { type, payload, exception } of bedrockEvents(upstream)) {
    if (exception) {
      yield exceptionFrame(exception);
      return;
    }
    const bytes = asString(payload["bytes"]);
    if (type !== "chunk" || bytes === undefined) continue;
    const event = asObject(parseJson(Buffer.from(bytes, "base64").toString("utf8")));
    if (!event) continue;
    // The service's own figures ride on the last event; typed clients do not expect them.
    delete event["amazon-bedrock-invocationMetrics"];
    const name = asString(event["type"]) ?? "";
    isComplete ||= name === "message_stop" || name === "error";
    yield `event: ${name}\ndata: ${JSON.stringify(event)}\n\n`;
  }
  if (!isComplete) throw brokenStream("no message_stop");
}

/** An error event whose code is the status that could no longer be sent. */
function exceptionFrame({ status, message }: BedrockException): string {
  const kind = status === 429 ? "upstream-limit" : status === 400 ? "upstream-request" : "upstream-down";
  const envelope = errorEnvelope(new Failure(kind, "upstream_down"), scrub(message));
  const error = { ...asObject(envelope["error"]), code: status };
  return `event: error\ndata: ${JSON.stringify({ ...envelope, error })}\n\n`;
}

async function invokeClaude(call: AdapterCall): Promise<Response> {
  const body: Record<string, unknown> = { anthropic_version: ANTHROPIC_VERSION };
  const beta = call.headers["anthropic-beta"];
  if (beta) body["anthropic_beta"] = beta.split(",").map((name) => name.trim());
  for (const name in call.body) if (!NOT_SENT.has(name)) body[name] = call.body[name];
  const response = await send(call, call.isStream ? "invoke-with-response-stream" : "invoke", body);
  if (response.status !== 200) return refusal(response);
  return call.isStream ? streamResponse(claudeStream(response)) : jsonResponse(await answerOf(response));
}

async function converse(call: AdapterCall): Promise<Response> {
  const body = converseRequest(call);
  const response = await send(call, call.isStream ? "converse-stream" : "converse", body);
  if (response.status !== 200) return refusal(response);
  return chatResponse(
    call,
    call.isStream ? streamedAnswer(response, call) : completeAnswer(await answerOf(response), call),
  );
}

export const bedrock: Adapter = (call) =>
  call.route.dialect === "anthropic" ? invokeClaude(call) : converse(call);
