// Tencent Hunyuan: requests signed over their exact bytes, fields with capital letters, answers wrapped in Response.
// Refuses tools, pictures and several answers by name.
import type { CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  errorResponse,
  eventsOf,
  eventWriter,
  keyParts,
  readJson,
  textTurns,
  usageOf,
} from "../adapter-kit.ts";
import { signTc3 } from "../tencent-signature.ts";

const ACTION = "ChatCompletions";
const CONTENT_TYPE = "application/json";
const FINISH: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  sensitive: "content-filter",
  length: "length",
};

function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  return usageOf(wire?.["PromptTokens"], wire?.["CompletionTokens"], wire);
}

function statusOf(code: string): number {
  if (code.startsWith("AuthFailure") || code.startsWith("UnauthorizedOperation")) return 401;
  if (code.startsWith("RequestLimitExceeded") || code.startsWith("LimitExceeded")) return 429;
  return code.startsWith("InternalError") ? 500 : 400;
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  let last: unknown;
  let reason = "";
  for await (const { data } of eventsOf(response)) {
    if (data.trim() === "[DONE]") break;
    const wire = asObject(parseJson(data));
    const error = asObject(wire?.["ErrorMsg"] ?? asObject(wire?.["Response"])?.["Error"]);
    if (error) {
      const message = asString(error["Msg"] ?? error["Message"]) ?? "";
      return yield { type: "fail", failure: upstreamFailure({ status: 500, message, raw: data }) };
    }
    const choice = asObject(asList(wire?.["Choices"])[0]);
    const delta = asObject(choice?.["Delta"]);
    yield* writer.text(asString(delta?.["ReasoningContent"]) ?? "", "thinking");
    yield* writer.text(asString(delta?.["Content"]) ?? "");
    reason = asString(choice?.["FinishReason"]) || reason;
    last = wire?.["Usage"] ?? last;
  }
  if (reason !== "") yield* writer.finish(FINISH[reason] ?? "other", reason, usage(last));
}

export async function tencent(call: AdapterCall): Promise<Response> {
  const [, secretId = "", secretKey = ""] = keyParts(call.key, 3);
  const request = conversation(call);
  const { settings } = request;
  const body = JSON.stringify({
    Model: call.model,
    Messages: textTurns(request).map(({ role, text }) => ({ Role: role, Content: text })),
    Stream: call.isStream,
    Temperature: settings.temperature,
    TopP: settings.topP,
    Stop: settings.stop,
    Seed: settings.seed,
  });
  const timestamp = Math.floor(call.nowMs() / 1000);
  const { host } = new URL(call.url);
  const response = await call.fetch(call.url, {
    method: "POST",
    headers: {
      "content-type": CONTENT_TYPE,
      authorization: signTc3({
        secretId,
        secretKey,
        service: "hunyuan",
        host,
        action: ACTION,
        contentType: CONTENT_TYPE,
        body,
        timestamp,
      }),
      "x-tc-action": ACTION,
      "x-tc-version": "2023-09-01",
      "x-tc-timestamp": String(timestamp),
    },
    body,
  });
  if (response.status !== 200) return response;
  const isStream = (response.headers.get("content-type") ?? "").includes("event-stream");
  if (call.isStream && isStream) return chatResponse(call, streamedEvents(response));
  const wire = asObject((await readJson(response))["Response"]);
  const error = asObject(wire?.["Error"]);
  if (error) {
    const code = asString(error["Code"]) ?? "";
    return errorResponse(statusOf(code), asString(error["Message"]) ?? "", code, "tencent_error");
  }
  const choice = asObject(asList(wire?.["Choices"])[0]);
  const message = asObject(choice?.["Message"]);
  const reason = asString(choice?.["FinishReason"]) ?? "";
  const writer = eventWriter();
  return chatResponse(call, [
    ...writer.start(asString(wire?.["Id"])),
    ...writer.text(asString(message?.["ReasoningContent"]) ?? "", "thinking"),
    ...writer.text(asString(message?.["Content"]) ?? ""),
    ...writer.finish(FINISH[reason] ?? "other", reason, usage(wire?.["Usage"])),
  ]);
}
