// Coze agents (bots): chat v3, streamed, or created and asked after until it is complete.
// Refuses tools and formats, which the agent decides for itself; its sampling is the agent's own as well.
import { collect } from "../../protocol/assemble.ts";
import type { Answer } from "../../protocol/assemble.ts";
import type { CanonicalRequest, ImagePart, JsonObject, Message, Part } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { splitSystem } from "../../protocol/turns.ts";
import { Failure } from "../../shared/failures.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Adapter, AdapterCall } from "../adapter.ts";
import { errorAnswer, jsonOf, postJson, sseDecoder, streamAnswer, wholeAnswer } from "./answers.ts";
import type { ByteDecoder } from "./answers.ts";
import { askedOf, endUserOf, textOf } from "./asked.ts";
import { createTextEvents } from "./text-events.ts";

const POLL_MS = 1000;
const UNDER_WAY: ReadonlySet<string> = new Set(["created", "in_progress"]);

/** Resolves after the time, rejects when the signal fires. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

const realWait: Wait = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });

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
      return code >= 4000 && code < 5000 ? 400 : 502;
  }
}

interface CozeError {
  status: number;
  code: string;
  message: string;
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
  if (response.status !== 200) {
    const body = asObject(parseJson(await response.text()));
    const error = body && errorOf(body);
    throw new Refused({
      status: response.status,
      code: error?.code ?? "coze_error",
      message: error?.message ?? "",
    });
  }
  const body = await jsonOf(response);
  const error = errorOf(body);
  if (error) throw new Refused(error);
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

function usageOf(raw: unknown): Usage | null {
  const wire = asObject(raw);
  if (!wire) return null;
  const usage = emptyUsage();
  usage.raw = raw;
  usage.input.fresh = boundedCount(wire["input_count"]);
  usage.output.text = boundedCount(wire["output_count"]);
  return usage;
}

function decodeStream(): ByteDecoder<CanonicalEvent> {
  const events = createTextEvents();
  return sseDecoder<CanonicalEvent>(
    (frame) => {
      const wire = asObject(parseJson(frame.data));
      const lastError = asObject(wire?.["last_error"]);
      switch (frame.event) {
        case "conversation.message.delta": {
          const type = asString(wire?.["type"]) ?? "answer";
          if (type !== "answer") return [];
          return [
            ...events.thinking(asString(wire?.["reasoning_content"]) ?? ""),
            ...events.text(asString(wire?.["content"]) ?? ""),
          ];
        }
        case "conversation.chat.completed":
          return events.finish("stop", "completed", usageOf(wire?.["usage"]));
        case "conversation.chat.failed":
        case "conversation.chat.requires_action":
        case "conversation.chat.canceled":
        case "error": {
          const code = asNumber(lastError?.["code"]) ?? asNumber(wire?.["code"]) ?? 5000;
          const name = frame.event.split(".").at(-1) ?? "error";
          const message = asString(lastError?.["msg"]) ?? asString(wire?.["msg"]) ?? name;
          return events.fail(statusOf(code), name, message);
        }
        default:
          return [];
      }
    },
    () => events.end(),
  );
}

/** Asks after a chat until it is complete, then for its answer. */
async function fetchAnswer(
  call: AdapterCall,
  base: string,
  created: JsonObject,
  wait: Wait,
): Promise<Answer> {
  const ids = { conversation_id: String(created["conversation_id"]), chat_id: String(created["id"]) };
  const query = new URLSearchParams(ids).toString();
  const get = async (path: string): Promise<JsonObject> =>
    read(await call.fetch(`${base}${path}?${query}`, { headers: call.headers, signal: call.signal }));
  let chat = created;
  for (let isFirst = true; ; isFirst = false) {
    chat = asObject((await get("/v3/chat/retrieve"))["data"]) ?? chat;
    if (!UNDER_WAY.has(asString(chat["status"]) ?? "")) break;
    await wait(isFirst ? POLL_MS / 4 : POLL_MS, call.signal);
  }
  const status = asString(chat["status"]) ?? "";
  if (status !== "completed") {
    const error = asObject(chat["last_error"]);
    const code = asNumber(error?.["code"]) || 5000;
    throw new Refused({ status: statusOf(code), code: status, message: asString(error?.["msg"]) ?? status });
  }
  const events = createTextEvents(asString(chat["id"]));
  const out: CanonicalEvent[] = [];
  for (const value of asList((await get("/v3/chat/message/list"))["data"])) {
    const message = asObject(value);
    if (message?.["type"] !== "answer") continue;
    out.push(...events.thinking(asString(message["reasoning_content"]) ?? ""));
    out.push(...events.text(asString(message["content"]) ?? ""));
  }
  out.push(...events.finish("stop", status, usageOf(chat["usage"])));
  return collect(out);
}

async function perform(call: AdapterCall, wait: Wait): Promise<Response> {
  const botId = call.channel.other.trim();
  if (botId === "")
    throw new Failure("no-channel", "channel_other_missing", {
      params: { name: call.row.label.en },
      retryable: true,
    });
  const request = askedOf(call, { images: true });
  const base = call.url.replace(/\/v3\/chat$/, "");
  const messages: JsonObject[] = [];
  for (const message of withSystem(request)) messages.push(await encodeMessage(call, base, message));
  const response = await postJson(call, call.url, {
    bot_id: botId,
    user_id: endUserOf(call, request),
    additional_messages: messages,
    stream: call.isStream,
  });
  const isStream = (response.headers.get("content-type") ?? "").includes("text/event-stream");
  if (response.status === 200 && isStream) return streamAnswer(call, response, decodeStream());
  const created = asObject((await read(response))["data"]) ?? {};
  return wholeAnswer(call, await fetchAnswer(call, base, created, wait));
}

/** `wait` is the pause between two questions after a chat; tests pass their own. */
export function createCoze(wait: Wait): Adapter {
  return async (call) => {
    try {
      return await perform(call, wait);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { status, code, message } = error.error;
      return errorAnswer(status, { message, type: code, code });
    }
  };
}

export const coze: Adapter = createCoze(realWait);
