// A chat request in the words of Tencent Hunyuan (ChatCompletions, 2023-09-01): the same ideas as elsewhere, with
// capital letters and schemas as text. Refuses by name several forced tools and what the provider has no words for.
import { defined } from "../../protocol/assemble.ts";
import type { CanonicalRequest, JsonObject, Message, Part } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { asText, dataUrl } from "../../protocol/json.ts";
import { mergeTurns, splitSystem } from "../../protocol/turns.ts";
import type { AdapterCall } from "../adapter.ts";
import { textOf } from "./chat-request.ts";

function encodePart(part: Part): JsonObject[] {
  if (part.type === "text") return [{ Type: "text", Text: part.text }];
  if (part.type !== "image") return [];
  const { source } = part;
  if (source.kind === "stored") throw cannotCarry("file_id");
  const Url = source.kind === "url" ? source.url : dataUrl(source.mime, source.data);
  return [{ Type: "image_url", ImageUrl: { Url } }];
}

function encodeMessage(message: Message): JsonObject[] {
  const results = message.parts.filter((part) => part.type === "tool-result");
  if (results.length > 0) {
    return results.map((part) => ({
      Role: "tool",
      ToolCallId: part.id,
      Content: textOf({ role: "tool", parts: part.content }),
    }));
  }
  const Role = message.role === "developer" ? "system" : message.role;
  if (message.parts.some((part) => part.type === "image"))
    return [{ Role, Contents: message.parts.flatMap(encodePart) }];
  const calls = message.parts.filter((part) => part.type === "tool-call");
  const written = { Role, Content: textOf(message) };
  if (calls.length === 0) return [written];
  const ToolCalls = calls.map(({ id, name, input }, Index) => ({
    Id: id,
    Type: "function",
    Function: { Name: name, Arguments: input || "{}" },
    Index,
  }));
  return [{ ...written, ToolCalls }];
}

/** System text stands in front, and roles take turns; only results of tools may follow each other. */
function encodeMessages(messages: readonly Message[]): JsonObject[] {
  const { system, turns } = splitSystem(messages.map((message) => ({ ...message, name: undefined })));
  const merged = [
    ...mergeTurns(system, () => "system"),
    ...mergeTurns(turns, (role) => (role === "tool" ? null : role)),
  ];
  return merged.flatMap(encodeMessage);
}

function encodeTools(request: CanonicalRequest): JsonObject {
  const { tools = [], toolChoice: choice } = request;
  if (tools.length === 0) return {};
  if (choice?.mode === "hosted") throw cannotCarry("tool_choice");
  const only = choice?.mode === "allowed" ? choice.names : undefined;
  const Tools = tools.flatMap((tool) => {
    if (tool.type !== "function" || only?.includes(tool.name) === false) return [];
    const { name: Name, description } = tool;
    const Parameters = asText(tool.schema ?? { type: "object", properties: {} });
    return [{ Type: "function", Function: { Name, Parameters, ...defined({ Description: description }) } }];
  });
  if (choice?.mode === "none") return { Tools, ToolChoice: "none" };
  const isForced = choice?.mode === "any" || (choice?.mode === "allowed" && choice.required);
  if (choice?.mode !== "tool" && !isForced) return { Tools };
  const CustomTool =
    choice?.mode === "tool" ? Tools.find((tool) => tool.Function.Name === choice.name) : Tools[0];
  // One certain tool can be forced, some tool or other cannot.
  if (!CustomTool || (isForced && Tools.length > 1)) throw cannotCarry("tool_choice");
  return { Tools, ToolChoice: "custom", CustomTool };
}

/** The limit on the answer has no field here. */
export function tencentRequest(call: AdapterCall, request: CanonicalRequest): JsonObject {
  const { settings, reasoning } = request;
  const isOff = reasoning?.mode === "off" || reasoning?.effort === "none";
  return {
    Model: call.model,
    Messages: encodeMessages(request.messages),
    Stream: call.isStream,
    ...defined({
      Temperature: settings.temperature,
      TopP: settings.topP,
      Stop: settings.stop,
      Seed: settings.seed,
      EnableThinking: reasoning ? !isOff : undefined,
    }),
    ...encodeTools(request),
  };
}
