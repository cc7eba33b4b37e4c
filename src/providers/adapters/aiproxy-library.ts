// AI Proxy's knowledge base: one question to one library, answered with the documents it drew on.
// Refuses tools, pictures and formats; the conversation before the question has no place in its call.
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Adapter } from "../adapter.ts";
import {
  answerOf,
  chatResponse,
  errorResponse,
  eventWriter,
  linesOf,
  post,
  streamFailure,
} from "../adapter-kit.ts";
import { decodeChatRequest, textOf } from "./chat-request.ts";

/** The documents as a numbered list of links below the answer. */
function sources(documents: unknown): string {
  const lines = asList(documents).flatMap((value, index) => {
    const document = asObject(value);
    const url = asString(document?.["url"]) ?? "";
    const title = (asString(document?.["title"]) || url).replace(/[[\]]/g, "");
    return title === "" ? [] : [`${index + 1}. [${title}](${url})`];
  });
  return lines.length === 0 ? "" : `\n\n${lines.join("\n")}\n`;
}

function statusOf(code: unknown): number {
  const status = asNumber(code) ?? 0;
  return status >= 400 && status < 600 ? status : 502;
}

/** The stream is lines of JSON, each behind `data:`. */
async function* streamedAnswer(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  let documents: unknown;
  for await (const line of linesOf(response)) {
    const wire = asObject(parseJson(line.replace(/^data:/, "")));
    if (!wire) continue;
    if (wire["success"] === false) {
      const message = asString(wire["message"]) ?? "";
      yield* writer.fail(streamFailure(statusOf(wire["errCode"]), "aiproxy_error", message));
    }
    yield* writer.text(asString(wire["content"]) ?? "");
    if (asList(wire["documents"]).length > 0) documents = wire["documents"];
    if (wire["finish"] !== true) continue;
    yield* writer.text(sources(documents));
    yield* writer.finish("stop", "finish", emptyUsage());
  }
  writer.end();
}

export const aiproxyLibrary: Adapter = async (call) => {
  const libraryId = call.channel.other.trim();
  if (libraryId === "")
    throw new Failure("no-channel", "channel_other_missing", {
      params: { name: call.row.label.en },
      retryable: true,
    });
  const request = decodeChatRequest(call, {});
  const last = request.messages.at(-1);
  const query = last ? textOf(last) : "";
  const body = { model: call.model, query, libraryId, stream: call.isStream };
  const response = await post(call, call.url, body);
  if (response.status !== 200) return response;
  if ((response.headers.get("content-type") ?? "").includes("event-stream"))
    return chatResponse(call, streamedAnswer(response));
  const answer = await answerOf(response);
  if (answer["success"] !== true) {
    const message = asString(answer["message"]) ?? "";
    return errorResponse(statusOf(answer["errCode"]), message, "aiproxy_error", "aiproxy_error");
  }
  const writer = eventWriter();
  const text = (asString(answer["answer"]) ?? "") + sources(answer["documents"]);
  return chatResponse(call, [...writer.text(text), ...writer.finish("stop", null, emptyUsage())]);
};
