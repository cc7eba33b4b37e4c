// Coze agents (bots): chat v3, streamed, or created and asked after until it is complete.
// Refuses tools and formats, which the agent decides for itself; its sampling is the agent's own as well.
import type { CanonicalRequest, ImagePart, JsonObject, Message, Part } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { splitSystem } from "../../protocol/turns.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import {
  answerOf,
  chatResponse,
  errorResponse,
  eventsOf,
  eventWriter,
  post,
  streamFailure,
  usageOf,
} from "../adapter-kit.ts";
import { askAfter, realWait } from "../wait.ts";
import type { Wait } from "../wait.ts";
import { decodeChatRequest, endUserOf, textOf } from "./chat-request.ts";

const POLL_MS = 1000;
/** What stands for an error that has no code. */
const SERVICE_ERROR = 5000;
const UNDER_WAY: ReadonlySet<string> = new Set(["created", "in_progress"]);

/** Coze says errors with status 200; its codes as statuses. */
function statusOf(code: number): number {
  if (code >= 400 && code < 600) return code;
  switch (code) {
    case 4100:
    case 700012006:
      return 401;
    case 4101:
    case 4104:
      return 403;
    case 4200:
      return 404;
    case 4008:
    case 4009:
    case 4013:
    case 4014:
    case 4020:
      return 429;
    case 4011:
    case 4028:
      return 402;
    default:
      return code >= 4000 && code < 5000 ? 400 : 500;
  }
}

interface CozeError {
  status: number;
  code: string;
  message: string;
  retryAfter?: string | null;
}

/** The error of an answer, if it is one. */
function errorOf(body: JsonObject): CozeError | undefined {
  const code = asNumber(body["code"]) ?? 0;
  if (code === 0) return undefined;
  return { status: statusOf(code), code: `coze_${code}`, message: asString(body["msg"]) ?? "" };
}

/** Thrown inside, answered at the edge. */
class Refused extends Error {
  constructor(readonly error: CozeError) {
    super(error.code);
  }
}

async function read(response: Response): Promise<JsonObject> {
  const retryAfter = response.headers.get("retry-after");
  if (response.status !== 200) {
    const body = asObject(parseJson(await response.text()));
    const error = body && errorOf(body);
    throw new Refused({
      status: response.status,
      code: error?.code ?? "coze_error",
      message: error?.message ?? "",
      retryAfter,
    });
  }
  const body = await answerOf(response);
  const error = errorOf(body);
  if (error) throw new Refused({ ...error, retryAfter });
  return body;
}

async function imageItem(call: AdapterCall, base: string, { source }: ImagePart): Promise<JsonObject> {
  if (source.kind === "stored") throw cannotCarry("file_id");
  if (source.kind === "url") return { type: "image", file_url: source.url };
  const form = new FormData();
  const extension = source.mime.split("/")[1]?.replace(/[^a-z0-9]/g, "") || "png";
  const { mime: type } = source;
  form.set("file", new File([Buffer.from(source.data, "base64")], `image.${extension}`, { type }));
  const { "content-type": _type, ...headers } = call.headers;
  const { signal } = call;
  const init = { method: "POST", headers: { ...headers, accept: "application/json" }, body: form, signal };
  const body = await read(await call.fetch(`${base}/v1/files/upload`, init));
  return { type: "image", file_id: asString(asObject(body["data"])?.["id"]) };
}

async function encodeMessage(call: AdapterCall, base: string, message: Message): Promise<JsonObject> {
  if (message.role === "assistant")
    return { role: "assistant", type: "answer", content: textOf(message), content_type: "text" };
  const images = message.parts.filter((part: Part) => part.type === "image");
  if (images.length === 0) return { role: "user", content: textOf(message), content_type: "text" };
  const items: JsonObject[] = [];
  for (const part of message.parts) {
    if (part.type === "text") items.push({ type: "text", text: part.text });
    else if (part.type === "image") items.push(await imageItem(call, base, part));
  }
  return { role: "user", content: JSON.stringify(items), content_type: "object_string" };
}

/** The agent has a system prompt of its own and takes no other: what the client says there opens its first turn. */
function withSystem(request: CanonicalRequest): Message[] {
  const { system, turns } = splitSystem(request.messages);
  const text = system.map(textOf).filter(Boolean).join("\n\n");
  if (text === "") return turns;
  const at = turns.findIndex((turn) => turn.role === "user");
  const first = turns[at];
  if (!first) return [{ role: "user", parts: [{ type: "text", text }] }, ...turns];
  return turns.with(at, { ...first, parts: [{ type: "text", text }, ...first.parts] });
}

function usageIn(chat: JsonObject | undefined): Usage {
  const wire = asObject(chat?.["usage"]);
  return usageOf(wire?.["input_count"], wire?.["output_count"], wire);
}

/** Events that end a chat without an answer. */
const ENDINGS: ReadonlySet<string> = new Set([
  "conversation.chat.failed",
  "conversation.chat.requires_action",
  "conversation.chat.canceled",
  "error",
]);

async function* streamedAnswer(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  for await (const { event, data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    if (event === "conversation.message.delta") {
      // Tool calls and other small talk of the agent come under types of their own.
      if ((asString(wire?.["type"]) ?? "answer") !== "answer") continue;
      yield* writer.text(asString(wire?.["reasoning_content"]) ?? "", "thinking");
      yield* writer.text(asString(wire?.["content"]) ?? "");
    } else if (event === "conversation.chat.completed") {
      yield* writer.finish("stop", "completed", usageIn(wire));
    } else if (ENDINGS.has(event)) {
      const error = asObject(wire?.["last_error"]) ?? wire;
      const name = event.split(".").at(-1) ?? event;
      const status = statusOf(asNumber(error?.["code"]) ?? SERVICE_ERROR);
      yield* writer.fail(streamFailure(status, name, asString(error?.["msg"]) ?? name));
    }
  }
  writer.end();
}

/** Asks after a chat until it is complete, then for its answer. */
async function fetchAnswer(
  call: AdapterCall,
  base: string,
  created: JsonObject,
  wait: Wait,
): Promise<CanonicalEvent[]> {
  const ids = { conversation_id: String(created["conversation_id"]), chat_id: String(created["id"]) };
  const query = new URLSearchParams(ids).toString();
  const get = async (path: string, pauseMs?: number): Promise<JsonObject> => {
    const told = await askAfter(call, {
      url: `${base}${path}?${query}`,
      headers: call.headers,
      wait,
      ...(pauseMs === undefined ? {} : { pauseMs }),
      statusIn: (body) => errorOf(body)?.status ?? 200,
    });
    return "body" in told ? told.body : read(told.refused);
  };
  let chat = created;
  for (let pauseMs = POLL_MS / 4; UNDER_WAY.has(asString(chat["status"]) ?? ""); pauseMs = POLL_MS)
    chat = asObject((await get("/v3/chat/retrieve", pauseMs))["data"]) ?? {};
  const status = asString(chat["status"]) ?? "";
  if (status !== "completed") {
    const error = asObject(chat["last_error"]);
    const code = asNumber(error?.["code"]) || SERVICE_ERROR;
    throw new Refused({ status: statusOf(code), code: status, message: asString(error?.["msg"]) ?? status });
  }
  const writer = eventWriter();
  const out = writer.start(ids.chat_id);
  for (const value of asList((await get("/v3/chat/message/list"))["data"])) {
    const message = asObject(value);
    if (message?.["type"] !== "answer") continue;
    out.push(...writer.text(asString(message["reasoning_content"]) ?? "", "thinking"));
    out.push(...writer.text(asString(message["content"]) ?? ""));
  }
  out.push(...writer.finish("stop", status, usageIn(chat)));
  return out;
}

async function perform(call: AdapterCall, wait: Wait): Promise<Response> {
  const botId = call.channel.other.trim();
  if (botId === "")
    throw new Failure("no-channel", "channel_other_missing", {
      params: { name: call.row.label.en },
      retryable: true,
    });
  const request = decodeChatRequest(call, { images: true });
  const base = call.url.replace(/\/v3\/chat$/, "");
  const messages: JsonObject[] = [];
  for (const message of withSystem(request)) messages.push(await encodeMessage(call, base, message));
  const response = await post(call, call.url, {
    bot_id: botId,
    user_id: endUserOf(call, request),
    additional_messages: messages,
    stream: call.isStream,
  });
  const isStream = (response.headers.get("content-type") ?? "").includes("text/event-stream");
  if (response.status === 200 && isStream) return chatResponse(call, streamedAnswer(response));
  const created = asObject((await read(response))["data"]) ?? {};
  return chatResponse(call, await fetchAnswer(call, base, created, wait));
}

/** `wait` is the pause between two questions after a chat; tests pass their own. */
export function createCoze(wait: Wait): Adapter {
  return async (call) => {
    try {
      return await perform(call, wait);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { status, code, message, retryAfter } = error.error;
      return errorResponse(status, message, code, code, retryAfter);
    }
  };
}

export const coze: Adapter = createCoze(realWait);
