// AI Proxy's knowledge base: one question to one library, the answer with the documents it stands on.
// Refuses tools, pictures and several answers by name.
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import { emptyUsage } from "../../shared/usage.ts";
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
} from "../adapter-kit.ts";

/** The documents as a numbered list of links behind the answer. */
function sources(documents: unknown): string {
  const list = asList(documents).map(asObject);
  if (list.length === 0) return "";
  const lines = list.map(
    (item, index) => `${index + 1}. [${asString(item?.["title"]) ?? ""}](${asString(item?.["url"]) ?? ""})`,
  );
  return `\n\n${lines.join("\n")}`;
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  let documents: unknown;
  for await (const { data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    if (!wire) continue;
    if (asList(wire["documents"]).length > 0) documents = wire["documents"];
    yield* writer.text(asString(wire["content"]) ?? "");
    if (wire["finish"] !== true) continue;
    yield* writer.text(sources(documents));
    // The provider reports no tokens: the relay counts.
    yield* writer.finish("stop", "finish", emptyUsage());
    return;
  }
}

export async function aiproxyLibrary(call: AdapterCall): Promise<Response> {
  const turns = textTurns(conversation(call));
  const response = await post(call, call.url, {
    model: call.model,
    query: turns.at(-1)?.text ?? "",
    libraryId: call.channel.other.trim(),
    stream: call.isStream,
  });
  if (response.status !== 200) return response;
  if (call.isStream) return chatResponse(call, streamedEvents(response));
  const body = await readJson(response);
  const code = body["errCode"];
  if (body["success"] === false || (typeof code === "number" && code !== 0))
    return errorResponse(
      400,
      asString(body["message"]) ?? "",
      typeof code === "number" ? code : "aiproxy_error",
    );
  const writer = eventWriter();
  return chatResponse(call, [
    ...writer.start(),
    ...writer.text((asString(body["answer"]) ?? "") + sources(body["documents"])),
    ...writer.finish("stop", "finish", emptyUsage()),
  ]);
}
