// A conversation as a Dify app takes it: one query that tells all turns, pictures and files beside it.
// Refuses files of a provider's own store.
import type { CanonicalRequest, FilePart, ImagePart, JsonObject, Message } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { asObject, asString } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";
import { answerOf } from "../adapter-kit.ts";
import { endUserOf, textOf } from "./chat-request.ts";
import type { DifyMode } from "./dify.ts";

const SPEAKERS: Readonly<Record<Message["role"], string>> = {
  system: "SYSTEM",
  developer: "SYSTEM",
  user: "USER",
  tool: "USER",
  assistant: "ASSISTANT",
};

/** All turns in one text, each under the name of its speaker. */
function difyQuery(request: CanonicalRequest): string {
  return request.messages.map((message) => `${SPEAKERS[message.role]}: \n${textOf(message)}\n`).join("");
}

async function upload(
  call: AdapterCall,
  base: string,
  user: string,
  part: ImagePart | FilePart,
): Promise<JsonObject> {
  const { source } = part;
  const type = part.type === "image" ? "image" : "document";
  if (source.kind === "stored") throw cannotCarry("file_id");
  if (source.kind === "url") return { type, transfer_method: "remote_url", url: source.url };
  const mime = source.kind === "text" ? "text/plain" : source.mime;
  const bytes = source.kind === "text" ? Buffer.from(source.text) : Buffer.from(source.data, "base64");
  const form = new FormData();
  const extension = mime.split("/")[1]?.replace(/[^a-z0-9]/g, "") || "bin";
  const name = part.type === "file" ? part.name : undefined;
  form.set("file", new File([bytes], name ?? `upload.${extension}`, { type: mime }));
  form.set("user", user);
  // The boundary is written by fetch.
  const { "content-type": _type, ...headers } = call.headers;
  const response = await call.fetch(`${base}/v1/files/upload`, {
    method: "POST",
    headers: { ...headers, accept: "application/json" },
    body: form,
    signal: call.signal,
  });
  if (response.status !== 200 && response.status !== 201) {
    await response.body?.cancel();
    throw new Failure("upstream-down", "upstream_down", { retryable: true, internal: "file upload failed" });
  }
  const id = asString((await answerOf(response))["id"]);
  return { type, transfer_method: "local_file", upload_file_id: id };
}

/**
 * The body by kind of app. `inputs` of the client's body (or of the channel's override) reach the app's variables; apps
 * without a query field find the text under `query` there.
 */
export async function difyRequest(
  call: AdapterCall,
  request: CanonicalRequest,
  base: string,
): Promise<(mode: DifyMode, isStreamed: boolean) => JsonObject> {
  const user = endUserOf(call, request);
  const files: JsonObject[] = [];
  for (const part of request.messages.flatMap((message) => message.parts)) {
    if (part.type === "image" || part.type === "file") files.push(await upload(call, base, user, part));
  }
  const query = difyQuery(request);
  const inputs = asObject(call.body["inputs"]) ?? {};
  return (mode, isStreamed) => ({
    inputs: mode === "chat" ? inputs : { query, ...inputs },
    ...(mode === "chat" ? { query, auto_generate_name: false } : {}),
    response_mode: isStreamed ? "streaming" : "blocking",
    user,
    ...(files.length > 0 ? { files } : {}),
  });
}
