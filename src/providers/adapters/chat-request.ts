// A chat request in canonical form, held against what a provider can do.
// Refuses by name whatever the provider has no words for; only hints about sampling may be left out.
import type { CanonicalRequest, Message, Part } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { openaiChat } from "../../protocol/openai-chat/dialect.ts";
import type { AdapterCall } from "../adapter.ts";

/** What a provider takes besides text; absent means no. */
export interface Abilities {
  tools?: boolean;
  images?: boolean;
  files?: boolean;
  /** response_format beyond text. */
  formats?: boolean;
}

function checkPart(part: Part, can: Abilities): void {
  switch (part.type) {
    case "image":
      if (!can.images) throw cannotCarry("image_url");
      return;
    case "audio":
      throw cannotCarry("input_audio");
    case "file":
      if (!can.files) throw cannotCarry("file");
      if (part.source.kind === "stored") throw cannotCarry("file_id");
      return;
    case "tool-call":
      if (!can.tools || part.custom) throw cannotCarry("tool_calls");
      return;
    case "tool-result":
      if (!can.tools) throw cannotCarry("messages.role=tool");
      for (const inner of part.content) checkPart(inner, can);
      return;
    case "opaque":
      if (!part.droppable) throw cannotCarry(part.name);
      return;
    case "text":
    case "thinking":
  }
}

/** Decodes the body of a chat call. Throws `unsupported_field` with the name of what the provider cannot do. */
export function decodeChatRequest(call: AdapterCall, can: Abilities): CanonicalRequest {
  const request = openaiChat.decodeRequest(call.body, { model: call.model, stream: call.isStream });
  const { settings, tools, responseFormat } = request;
  if ((settings.n ?? 1) > 1) throw cannotCarry("n");
  if (settings.logprobs) throw cannotCarry("logprobs");
  if (settings.modalities?.some((kind) => kind !== "text")) throw cannotCarry("modalities");
  if (responseFormat && responseFormat.type !== "text" && !can.formats) throw cannotCarry("response_format");
  for (const tool of tools ?? []) {
    if (!can.tools) throw cannotCarry("tools");
    if (tool.type !== "function") throw cannotCarry(`tools.${tool.name}`);
  }
  for (const name of request.mustCarry) throw cannotCarry(name);
  for (const message of request.messages) for (const part of message.parts) checkPart(part, can);
  return request;
}

/** The text of a message, its parts one below the other. */
export function textOf(message: Message): string {
  return message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The user's name for abuse reports, else one that is the request's own. */
export function endUserOf(call: AdapterCall, request: CanonicalRequest): string {
  return request.settings.endUser || call.newId("user-");
}
