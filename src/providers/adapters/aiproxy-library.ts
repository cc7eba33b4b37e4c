// AI Proxy's knowledge base: one question to one library, answered with the documents it drew on.
// Refuses tools, pictures and formats; the conversation before the question has no place in its call.
import { collect } from "../../protocol/assemble.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Adapter } from "../adapter.ts";
import { errorAnswer, jsonLines, jsonOf, postJson, streamAnswer, wholeAnswer } from "./answers.ts";
import type { ByteDecoder } from "./answers.ts";
import { askedOf, textOf } from "./asked.ts";
import { createTextEvents } from "./text-events.ts";

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

function decode(): ByteDecoder<CanonicalEvent> {
  const events = createTextEvents();
  let documents: unknown;
  return jsonLines<CanonicalEvent>(
    (wire) => {
      if (wire["success"] === false)
        return events.fail(statusOf(wire["errCode"]), "aiproxy_error", asString(wire["message"]) ?? "");
      const text = events.text(asString(wire["content"]) ?? "");
      if (asList(wire["documents"]).length > 0) documents = wire["documents"];
      if (wire["finish"] !== true) return text;
      return [...text, ...events.text(sources(documents)), ...events.finish("stop", "finish", null)];
    },
    () => events.end(),
  );
}

export const aiproxyLibrary: Adapter = async (call) => {
  const libraryId = call.channel.other.trim();
  if (libraryId === "")
    throw new Failure("no-channel", "channel_other_missing", {
      params: { name: call.row.label.en },
      retryable: true,
    });
  const request = askedOf(call, {});
  const last = request.messages.at(-1);
  const query = last ? textOf(last) : "";
  const body = { model: call.model, query, libraryId, stream: call.isStream };
  const response = await postJson(call, call.url, body);
  if (response.status !== 200) return response;
  if ((response.headers.get("content-type") ?? "").includes("event-stream"))
    return streamAnswer(call, response, decode());
  const answer = await jsonOf(response);
  if (answer["success"] !== true) {
    const message = asString(answer["message"]) ?? "";
    return errorAnswer(statusOf(answer["errCode"]), { message, type: "aiproxy_error" });
  }
  const events = createTextEvents();
  const text = (asString(answer["answer"]) ?? "") + sources(answer["documents"]);
  return wholeAnswer(call, collect([...events.text(text), ...events.finish("stop", null, null)]));
};
