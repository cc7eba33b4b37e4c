// Coze agents (chat version 3): a chat is begun, watched until it is done, and its answer read; or streamed as events.
// Refuses tools, pictures and several answers by name.
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  errorResponse,
  eventsOf,
  eventWriter,
  post,
  readJson,
  textTurns,
  usageOf,
} from "../adapter-kit.ts";

const POLL_MS = 1000;

function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  return usageOf(wire?.["input_count"], wire?.["output_count"], wire);
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  for await (const { event, data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    switch (event) {
      case "conversation.message.delta":
        yield* writer.text(asString(wire?.["reasoning_content"]) ?? "", "thinking");
        yield* writer.text(asString(wire?.["content"]) ?? "");
        break;
      case "conversation.chat.completed":
        yield* writer.finish("stop", "completed", usage(wire?.["usage"]));
        return;
      case "conversation.chat.failed":
      case "error": {
        const last = asObject(wire?.["last_error"]) ?? wire;
        const message = asString(last?.["msg"]) ?? "the chat failed";
        return yield { type: "fail", failure: upstreamFailure({ status: 500, message, raw: data }) };
      }
      default:
    }
  }
}

async function pause(call: AdapterCall): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, POLL_MS);
    const stop = (): void => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    call.signal.addEventListener("abort", stop, { once: true });
  });
}

async function ask(
  call: AdapterCall,
  path: string,
  query: Record<string, string>,
): Promise<Record<string, unknown>> {
  const { "content-type": _type, ...headers } = call.headers;
  const url = `${call.url}${path}?${new URLSearchParams(query).toString()}`;
  return readJson(await call.fetch(url, { method: "GET", headers }));
}

/** 4100 and 4101: the token; 4013: too often; from 5000: the service itself. */
function statusOf(code: number): number {
  if (code === 4100 || code === 4101) return 401;
  if (code === 4013) return 429;
  return code >= 5000 ? 500 : 400;
}

/** Coze answers 200 with a code of its own; 0 is success. */
function refusal(body: Record<string, unknown>): Response | undefined {
  const { code } = body;
  if (code === 0 || code === undefined) return undefined;
  return errorResponse(statusOf(asNumber(code) ?? 0), asString(body["msg"]) ?? "", asNumber(code) ?? "coze_error");
}

async function whole(call: AdapterCall, begun: Record<string, unknown>): Promise<Response> {
  const refused = refusal(begun);
  if (refused) return refused;
  let chat = asObject(begun["data"]);
  const ids = {
    conversation_id: asString(chat?.["conversation_id"]) ?? "",
    chat_id: asString(chat?.["id"]) ?? "",
  };
  while (chat?.["status"] === "created" || chat?.["status"] === "in_progress") {
    await pause(call);
    const seen = await ask(call, "/retrieve", ids);
    const problem = refusal(seen);
    if (problem) return problem;
    chat = asObject(seen["data"]);
  }
  if (chat?.["status"] !== "completed") {
    const message = asString(asObject(chat?.["last_error"])?.["msg"]) ?? `chat ${String(chat?.["status"])}`;
    throw new Failure("upstream-down", "upstream_down", { internal: message, retryable: true });
  }
  const list = asList((await ask(call, "/message/list", ids))["data"]).map(asObject);
  const answer = list.find((message) => message?.["type"] === "answer");
  const writer = eventWriter();
  return chatResponse(call, [
    ...writer.start(ids.chat_id),
    ...writer.text(asString(answer?.["reasoning_content"]) ?? "", "thinking"),
    ...writer.text(asString(answer?.["content"]) ?? ""),
    ...writer.finish("stop", "completed", usage(chat?.["usage"])),
  ]);
}

export async function coze(call: AdapterCall): Promise<Response> {
  const request = conversation(call);
  const messages = textTurns(request)
    // An agent has its own instructions: what the caller says as system is said by the user.
    .map(({ role, text }) => ({
      role: role === "assistant" ? "assistant" : "user",
      type: role === "assistant" ? "answer" : "question",
      content: text,
      content_type: "text",
    }));
  const response = await post(call, call.url, {
    bot_id: call.channel.other.trim(),
    user_id: request.settings.endUser ?? call.newId("user_"),
    additional_messages: messages,
    stream: call.isStream,
    auto_save_history: true,
  });
  if (response.status !== 200) return response;
  const isStream = (response.headers.get("content-type") ?? "").includes("event-stream");
  if (call.isStream && isStream) return chatResponse(call, streamedEvents(response));
  return whole(call, await readJson(response));
}
