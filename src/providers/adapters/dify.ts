// Dify applications: the conversation told as one query, the answer as messages or agent messages.
// Refuses tools, several answers and pictures behind addresses that it cannot be given, by name.
import { cannotCarry } from "../../protocol/carry.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import type { CanonicalRequest, ImagePart } from "../../protocol/canonical.ts";
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  eventsOf,
  eventWriter,
  post,
  readJson,
  textTurns,
  usageOf,
} from "../adapter-kit.ts";

const LABELS = { system: "SYSTEM", user: "USER", assistant: "ASSISTANT" } as const;

/** Dify keeps one query and its own memory: everything said so far is written out in front of it. */
function queryOf(request: CanonicalRequest): { query: string; images: ImagePart[] } {
  const images: ImagePart[] = [];
  const spoken = request.messages.map((message) => ({
    ...message,
    parts: message.parts.filter((part) => {
      if (part.type === "image") images.push(part);
      return part.type !== "image";
    }),
  }));
  const turns = textTurns({ ...request, messages: spoken });
  return { query: turns.map(({ role, text }) => `${LABELS[role]}: \n${text}\n`).join(""), images };
}

/** Pictures are uploaded first; those behind an address go by their address. */
async function fileOf(call: AdapterCall, image: ImagePart, user: string): Promise<unknown> {
  const { source } = image;
  if (source.kind === "url") return { type: "image", transfer_method: "remote_url", url: source.url };
  if (source.kind !== "base64") throw cannotCarry("image_url");
  const form = new FormData();
  const extension = source.mime.split("/")[1] ?? "png";
  form.set(
    "file",
    new Blob([Buffer.from(source.data, "base64")], { type: source.mime }),
    `picture.${extension}`,
  );
  form.set("user", user);
  const { "content-type": _type, accept: _accept, ...headers } = call.headers;
  const response = await call.fetch(call.url.replace(/\/chat-messages$/, "/files/upload"), {
    method: "POST",
    headers,
    body: form,
  });
  const id = asString((await readJson(response))["id"]);
  if (id === undefined) throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  return { type: "image", transfer_method: "local_file", upload_file_id: id };
}

function usage(metadata: unknown): Usage {
  const raw = asObject(asObject(metadata)?.["usage"]);
  return usageOf(raw?.["prompt_tokens"], raw?.["completion_tokens"], raw);
}

/** Some applications wrap their thoughts in a `<details>` element or `<think>` tags at the front of the answer. */
const THOUGHTS =
  /^\s*(?:<details[^>]*>\s*<summary>[^<]*<\/summary>([\s\S]*?)<\/details>|<think>([\s\S]*?)<\/think>)\s*/;

function* wholeEvents(body: Record<string, unknown>): Generator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start(asString(body["message_id"]));
  const answer = asString(body["answer"]) ?? "";
  const thoughts = THOUGHTS.exec(answer);
  if (thoughts) yield* writer.text((thoughts[1] ?? thoughts[2] ?? "").trim(), "thinking");
  yield* writer.text(thoughts ? answer.slice(thoughts[0].length) : answer);
  yield* writer.finish("stop", "message_end", usage(body["metadata"]));
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  for await (const { data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    switch (wire?.["event"]) {
      case "message":
      case "agent_message":
        yield* writer.text(asString(wire["answer"]) ?? "");
        break;
      case "agent_thought":
        yield* writer.text(asString(wire["thought"]) ?? "", "thinking");
        break;
      case "message_end":
        yield* writer.finish("stop", "message_end", usage(wire["metadata"]));
        return;
      case "error": {
        const message = asString(wire["message"]) ?? "";
        const status = typeof wire["status"] === "number" ? wire["status"] : 500;
        return yield {
          type: "fail",
          failure: upstreamFailure({ status, message, code: asString(wire["code"]) ?? null, raw: data }),
        };
      }
      default:
    }
  }
}

export async function dify(call: AdapterCall): Promise<Response> {
  const request = conversation(call);
  const user = request.settings.endUser ?? call.newId("user_");
  const { query, images } = queryOf(request);
  const files = await Promise.all(images.map((image) => fileOf(call, image, user)));
  const response = await post(call, call.url, {
    inputs: {},
    query,
    response_mode: call.isStream ? "streaming" : "blocking",
    user,
    auto_generate_name: false,
    files,
  });
  if (response.status !== 200) return response;
  return chatResponse(call, call.isStream ? streamedEvents(response) : wholeEvents(await readJson(response)));
}
