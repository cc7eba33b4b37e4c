// iFlytek Spark: a signed WebSocket for keys of three parts, its OpenAI-shaped address for single passwords.
// Refuses tools on the socket by name (its documentation has calls, but no words for their results), and pictures.
import type { JsonObject } from "../../protocol/canonical.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { defined } from "../../protocol/assemble.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  badAnswer,
  chatResponse,
  errorResponse,
  eventWriter,
  jsonResponse,
  refusedAs,
  keyParts,
  post,
  readJson,
  streamFailure,
  usageOf,
} from "../adapter-kit.ts";
import { checkedStream, reportedErrorResponse } from "../openai-stream.ts";
import type { ReportedError } from "../openai-stream.ts";
import { decodeChatRequest, textOf } from "./chat-request.ts";
import { framesOf, HandshakeRefused, signSpark, sparkTarget } from "./spark-socket.ts";

const SOCKET_BASE = "wss://spark-api.xf-yun.com";
const HTTP_BASE = "https://spark-api-open.xf-yun.com";

/** What the provider's list of error codes means as a status; engine troubles are the rest. */
function sparkStatus(code: number): number {
  switch (code) {
    // Formats, fields, values, and too many tokens.
    case 10003:
    case 10004:
    case 10005:
    case 10163:
    case 10907:
    // What was asked, what was to be said, where the conversation leads.
    case 10013:
    case 10014:
    case 10019:
      return 400;
    // Black list, no rights for the model, wrong key.
    case 10015:
    case 10016:
    case 11200:
    case 10313:
      return 403;
    // The day's amount is used up.
    case 11201:
      return 402;
    // Too many at once or a second, one after the other only.
    case 10006:
    case 10007:
    case 11202:
    case 11203:
      return 429;
    case 10008:
    case 10110:
      return 503;
    default:
      return 500;
  }
}

const POLICY_CODES: ReadonlySet<number> = new Set([10013, 10014, 10019]);

function reportedError(code: number, message: string): ReportedError {
  const type = POLICY_CODES.has(code) ? "content_policy_violation" : "xunfei_error";
  return { status: sparkStatus(code), message, code, type };
}

/** The error of a frame's header, or of a chunk at the HTTP address. */
function errorIn(wire: JsonObject | undefined): ReportedError | undefined {
  const code = Number(wire?.["code"] ?? 0);
  if (code === 0) return undefined;
  return reportedError(Number.isFinite(code) ? code : -1, asString(wire?.["message"]) ?? "");
}

/** Thrown inside, answered at the edge. */
class Refused extends Error {
  constructor(readonly error: ReportedError) {
    super(String(error.code));
  }
}

async function* eventsFrom(frames: AsyncGenerator<string>): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  let isStarted = false;
  for await (const text of frames) {
    const wire = asObject(parseJson(text));
    const header = asObject(wire?.["header"]);
    const error = errorIn(header);
    if (error && !isStarted) throw new Refused(error);
    if (error) return yield* writer.fail(streamFailure(error.status, error.type, error.message));
    isStarted = true;
    yield* writer.start(asString(header?.["sid"]));
    const payload = asObject(wire?.["payload"]);
    for (const value of asList(asObject(payload?.["choices"])?.["text"])) {
      const piece = asObject(value);
      yield* writer.text(asString(piece?.["reasoning_content"]) ?? "", "thinking");
      yield* writer.text(asString(piece?.["content"]) ?? "");
    }
    if (asNumber(header?.["status"]) !== 2) continue;
    const raw = asObject(asObject(payload?.["usage"])?.["text"]);
    return yield* writer.finish(
      "stop",
      "2",
      usageOf(raw?.["prompt_tokens"], raw?.["completion_tokens"], raw),
    );
  }
  writer.end();
}

/** Only the larger models know a system turn; the others are told in a turn of their own that they answer. */
const KNOWS_SYSTEM: ReadonlySet<string> = new Set(["generalv3.5", "max-32k", "4.0Ultra", "x1"]);

function requestOf(call: AdapterCall, appId: string, domain: string): JsonObject {
  const request = decodeChatRequest(call, {});
  const { settings } = request;
  const text = request.messages.flatMap((message) => {
    const content = textOf(message);
    const isSystem = message.role === "system" || message.role === "developer";
    if (!isSystem) return [{ role: message.role, content }];
    if (KNOWS_SYSTEM.has(domain)) return [{ role: "system", content }];
    return [
      { role: "user", content },
      { role: "assistant", content: "Okay" },
    ];
  });
  return {
    header: { app_id: appId, ...defined({ uid: settings.endUser?.slice(0, 32) }) },
    parameter: {
      chat: {
        domain,
        ...defined({
          temperature: settings.temperature,
          top_k: settings.topK,
          max_tokens: settings.maxOutputTokens,
        }),
      },
    },
    payload: { message: { text } },
  };
}

/** What a handshake carries: nothing of how a body is framed. */
function headersOf({ headers }: AdapterCall): Record<string, string> {
  const { "content-type": _type, accept: _accept, "accept-encoding": _encoding, ...own } = headers;
  return own;
}

async function overSocket(call: AdapterCall): Promise<Response> {
  const [appId = "", apiSecret = "", apiKey = ""] = keyParts(call.key, 3);
  const { path, domain } = sparkTarget(call.model, call.channel.other);
  const base = call.channel.baseUrl.trim().replace(/\/+$/, "").replace(/^http/, "ws") || SOCKET_BASE;
  const url = signSpark(`${base}${path}`, apiSecret, apiKey, call.nowMs());
  const body = requestOf(call, appId, domain);
  await call.reach?.(url);
  const frames = framesOf(url, body, call.signal, { proxy: call.proxy ?? "", headers: headersOf(call) });
  const events = eventsFrom(frames);
  // The first frame decides whether this is an answer at all: an error before it is one of the attempt.
  const first = await events.next();
  if (first.done) throw badAnswer();
  return chatResponse(
    call,
    (async function* () {
      try {
        yield first.value;
        yield* events;
      } finally {
        await frames.return(undefined);
      }
    })(),
  );
}

async function overHttp(call: AdapterCall): Promise<Response> {
  const base = call.channel.baseUrl.trim().replace(/\/+$/, "").replace(/^ws/, "http") || HTTP_BASE;
  const isNamed = /^SparkDesk/i.test(call.model);
  const model = isNamed ? sparkTarget(call.model, call.channel.other).domain : call.model;
  const authorization = `Bearer ${call.key.trim()}`;
  // The reasoning models stand at a version of their own.
  const path = model.startsWith("x1") ? "/v2/chat/completions" : "/v1/chat/completions";
  const response = await post(call, base + path, { ...call.body, model }, { authorization });
  if (response.status !== 200) {
    const body = await readJson(response);
    // Codes are told beside or inside of `error`, and the status alone does not say whose trouble it is.
    const error = errorIn(asObject(body["error"]) ?? body);
    const isKnown = error !== undefined && response.status !== 401 && Number(error.code) >= 10_000;
    return isKnown ? reportedErrorResponse(error, response) : refusedAs(body, response);
  }
  if ((response.headers.get("content-type") ?? "").includes("event-stream"))
    return checkedStream(response, { error: errorIn });
  const body = await readJson(response);
  const error = errorIn(body);
  return error ? reportedErrorResponse(error, response) : jsonResponse(body);
}

export async function xunfei(call: AdapterCall): Promise<Response> {
  if (!call.key.includes("|")) return overHttp(call);
  try {
    return await overSocket(call);
  } catch (error) {
    if (error instanceof Refused) return reportedErrorResponse(error.error);
    // A wrong signature, key or clock is answered before there is a socket.
    if (error instanceof HandshakeRefused)
      return errorResponse(error.status, `the handshake was refused (${error.status})`, error.status);
    throw error;
  }
}
