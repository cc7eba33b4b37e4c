// Tencent Hunyuan: requests signed over their exact bytes, fields with capital letters, answers wrapped in Response.
// Refuses several answers and sound by name; errors come with status 200 and are sorted by the family of their code.
import type { CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString } from "../../protocol/json.ts";
import { boundedCount } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  badAnswer,
  filledObject,
  chatResponse,
  errorResponse,
  eventsOf,
  eventWriter,
  refusedAs,
  keyParts,
  readJson,
  streamFailure,
  usageOf,
} from "../adapter-kit.ts";
import type { EventWriter } from "../adapter-kit.ts";
import { signTc3 } from "../tencent-signature.ts";
import { decodeChatRequest } from "./chat-request.ts";
import { tencentRequest } from "./tencent-request.ts";

const ACTION = "ChatCompletions";
const CONTENT_TYPE = "application/json";
const FINISH: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  sensitive: "content-filter",
  length: "length",
  tool_calls: "tool-calls",
};

/** Cached tokens are contained in the prompt's, thinking in the completion's. */
function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  const cached = boundedCount(asObject(wire?.["PromptTokensDetails"])?.["CachedTokens"]);
  const thought = boundedCount(asObject(wire?.["CompletionTokensDetails"])?.["ReasoningTokens"]);
  const found = usageOf(wire?.["PromptTokens"], wire?.["CompletionTokens"], wire);
  found.input.cacheRead = Math.min(cached, found.input.fresh);
  found.input.fresh -= found.input.cacheRead;
  found.output.thinking = Math.min(thought, found.output.text);
  found.output.text -= found.output.thinking;
  return found;
}

/** Families by their first words; longer ones come first. */
const FAMILIES: readonly [prefix: string, status: number][] = [
  ["FailedOperation.FreeResourcePackExhausted", 402],
  ["FailedOperation.ResourcePackExhausted", 402],
  ["FailedOperation.ServiceStopArrears", 402],
  ["FailedOperation.ServiceStop", 402],
  ["ResourceInsufficient", 402],
  ["FailedOperation.ServiceNotActivated", 403],
  ["FailedOperation.UserUnAuthError", 403],
  ["FailedOperation.EngineServerLimitExceeded", 429],
  ["FailedOperation.EngineRequestTimeout", 504],
  ["FailedOperation", 502],
  ["AuthFailure", 401],
  ["UnauthorizedOperation", 403],
  ["RequestLimitExceeded", 429],
  ["LimitExceeded", 429],
  ["ResourceUnavailable", 503],
  ["InternalError", 500],
];

/** The status that an error code means; what is none of the provider's troubles is the request's. */
function tencentStatus(code: string): number {
  return FAMILIES.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 400;
}

interface ReadState {
  /** What the open tool call goes by: its index, else its id; undefined = none is open. */
  at: number | string | undefined;
}

function spoken(
  call: AdapterCall,
  writer: EventWriter,
  message: Record<string, unknown> | undefined,
  state: ReadState,
): CanonicalEvent[] {
  const out = [
    ...writer.text(asString(message?.["ReasoningContent"]) ?? "", "thinking"),
    ...writer.text(asString(message?.["Content"]) ?? ""),
  ];
  for (const [position, value] of asList(message?.["ToolCalls"]).entries()) {
    const tool = asObject(value);
    const declared = asObject(tool?.["Function"]);
    // Pieces of a call belong together by its id; newer answers count the calls as well.
    const at = asNumber(tool?.["Index"]) ?? (asString(tool?.["Id"]) || position);
    const input = asString(declared?.["Arguments"]) ?? "";
    if (at === state.at) out.push(...writer.json(input));
    else {
      state.at = at;
      const id = asString(tool?.["Id"]) || call.newId("call_");
      out.push(...writer.call(id, asString(declared?.["Name"]) ?? "", input));
    }
  }
  return out;
}

async function* streamedEvents(call: AdapterCall, response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  const state: ReadState = { at: undefined };
  let last: unknown;
  let reason = "";
  for await (const { data } of eventsOf(response)) {
    if (data.trim() === "[DONE]") break;
    const wire = filledObject(data);
    if (!wire) continue;
    const inner = asObject(wire["Response"]) ?? wire;
    const error = asObject(inner?.["ErrorMsg"]) ?? asObject(inner?.["Error"]);
    const text = asString(error?.["Msg"] ?? error?.["Message"]) ?? "";
    if (error && (text !== "" || asString(error["Code"]))) {
      const code = asString(error["Code"]);
      const status = code === undefined ? 502 : tencentStatus(code);
      return yield* writer.fail(streamFailure(status, "tencent_error", text));
    }
    const choice = asObject(asList(inner?.["Choices"])[0]);
    yield* writer.start(asString(inner?.["Id"]));
    yield* spoken(call, writer, asObject(choice?.["Delta"]), state);
    reason = asString(choice?.["FinishReason"]) || reason;
    last = inner?.["Usage"] ?? last;
  }
  if (reason !== "") yield* writer.finish(FINISH[reason] ?? "other", reason, usage(last));
  writer.end();
}

function send(call: AdapterCall, body: string): Promise<Response> {
  const [, secretId = "", secretKey = ""] = keyParts(call.key, 3);
  const timestamp = Math.floor(call.nowMs() / 1000);
  const authorization = signTc3({
    secretId,
    secretKey,
    service: "hunyuan",
    host: new URL(call.url).host,
    action: ACTION,
    contentType: CONTENT_TYPE,
    body,
    timestamp,
  });
  const headers = {
    ...call.headers,
    "content-type": CONTENT_TYPE,
    authorization,
    "x-tc-action": ACTION,
    "x-tc-version": "2023-09-01",
    "x-tc-timestamp": String(timestamp),
  };
  return call.fetch(call.url, { method: "POST", headers, body, signal: call.signal });
}

export async function tencent(call: AdapterCall): Promise<Response> {
  const request = decodeChatRequest(call, { tools: true, images: true });
  const response = await send(call, JSON.stringify(tencentRequest(call, request)));
  const isStream = (response.headers.get("content-type") ?? "").includes("event-stream");
  if (response.status === 200 && isStream) return chatResponse(call, streamedEvents(call, response));
  const body = await readJson(response);
  const wire = asObject(body["Response"]);
  if (!wire && response.status === 200) throw badAnswer();
  if (!wire) return refusedAs(body, response);
  const error = asObject(wire["Error"]);
  if (error) {
    const code = asString(error["Code"]) ?? "";
    const status = response.status === 200 ? tencentStatus(code) : response.status;
    const type = status === 402 ? "insufficient_quota" : "tencent_error";
    const retryAfter = response.headers.get("retry-after");
    return errorResponse(status, asString(error["Message"]) ?? "", code, type, retryAfter);
  }
  const choice = asObject(asList(wire["Choices"])[0]);
  if (!choice) throw badAnswer();
  const reason = asString(choice?.["FinishReason"]) ?? "";
  const writer = eventWriter();
  return chatResponse(call, [
    ...writer.start(asString(wire["Id"])),
    ...spoken(call, writer, asObject(choice?.["Message"]), { at: undefined }),
    ...writer.finish(FINISH[reason] ?? "other", reason, usage(wire["Usage"])),
  ]);
}
