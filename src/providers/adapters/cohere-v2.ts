// Cohere's chat v2: messages, tools and pictures nearly in OpenAI's form, with events of its own.
// Refuses choices of tools that it has no word for.
import { defined } from "../../protocol/assemble.ts";
import type { CanonicalRequest, JsonObject, Message, Part, Tool } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asObject, asString, asText, dataUrl, parseJson } from "../../protocol/json.ts";
import { budgetOf } from "../../protocol/reasoning.ts";
import type { AdapterCall } from "../adapter.ts";
import { eventsOf, eventWriter, streamFailure } from "../adapter-kit.ts";
import type { EventWriter } from "../adapter-kit.ts";
import { textOf } from "./chat-request.ts";
import { cohereFinish, cohereSettings, cohereUsage } from "./cohere-v1.ts";

function encodePart(part: Part): JsonObject[] {
  if (part.type === "text") return [{ type: "text", text: part.text }];
  if (part.type !== "image") return [];
  const { source } = part;
  if (source.kind === "stored") throw cannotCarry("file_id");
  const url = source.kind === "url" ? source.url : dataUrl(source.mime, source.data);
  return [{ type: "image_url", image_url: { url, ...defined({ detail: part.detail }) } }];
}

function encodeMessage(message: Message): JsonObject[] {
  const results = message.parts.filter((part) => part.type === "tool-result");
  if (results.length > 0) {
    return results.map((part) => ({
      role: "tool",
      tool_call_id: part.id,
      content: textOf({ role: "tool", parts: part.content }),
    }));
  }
  const role = message.role === "developer" ? "system" : message.role;
  const calls = message.parts.filter((part) => part.type === "tool-call");
  const hasImage = message.parts.some((part) => part.type === "image");
  const content = hasImage ? message.parts.flatMap(encodePart) : textOf(message);
  if (calls.length === 0) return [{ role, content }];
  return [
    {
      role,
      ...(content === "" ? {} : { content }),
      tool_calls: calls.map(({ id, name, input }) => ({
        id,
        type: "function",
        function: { name, arguments: input || "{}" },
      })),
    },
  ];
}

function encodeTool(tool: Tool): JsonObject {
  if (tool.type !== "function") throw cannotCarry(`tools.${tool.name}`);
  const parameters = tool.schema ?? { type: "object", properties: {} };
  const { name, description } = tool;
  return { type: "function", function: { name, ...defined({ description }), parameters } };
}

/** Cohere forces some tool or none; one certain tool is forced by offering it alone. */
function encodeTools(request: CanonicalRequest): JsonObject {
  const { tools = [], toolChoice: choice } = request;
  if (tools.length === 0) return {};
  const only =
    choice?.mode === "tool" ? [choice.name] : choice?.mode === "allowed" ? choice.names : undefined;
  if (choice?.mode === "hosted") throw cannotCarry("tool_choice");
  const offered = only ? tools.filter((tool) => only.includes(tool.name)) : tools;
  const isForced =
    choice?.mode === "any" || choice?.mode === "tool" || (choice?.mode === "allowed" && choice.required);
  const word = isForced ? "REQUIRED" : choice?.mode === "none" ? "NONE" : undefined;
  return { tools: offered.map(encodeTool), ...defined({ tool_choice: word }) };
}

function encodeFormat(request: CanonicalRequest): JsonObject {
  const format = request.responseFormat;
  if (!format || format.type === "text") return {};
  const schema = format.type === "json-schema" ? { json_schema: format.schema } : {};
  return { response_format: { type: "json_object", ...schema } };
}

function encodeThinking({ reasoning }: CanonicalRequest): JsonObject {
  if (!reasoning) return {};
  if (reasoning.mode === "off" || reasoning.effort === "none") return { thinking: { type: "disabled" } };
  return { thinking: { type: "enabled", ...defined({ token_budget: budgetOf(reasoning) }) } };
}

export function requestV2(request: CanonicalRequest, call: AdapterCall): JsonObject {
  return {
    model: call.model,
    messages: request.messages.flatMap(encodeMessage),
    stream: call.isStream,
    ...cohereSettings(request),
    ...encodeTools(request),
    ...encodeFormat(request),
    ...encodeThinking(request),
  };
}

function head(tool: JsonObject | undefined, call: AdapterCall): [callId: string, name: string] {
  const name = asString(asObject(tool?.["function"])?.["name"]) ?? "";
  return [asString(tool?.["id"]) || call.newId("call_"), name];
}

function readEvent(writer: EventWriter, wire: JsonObject, call: AdapterCall): CanonicalEvent[] {
  const delta = asObject(wire["delta"]);
  const message = asObject(delta?.["message"]);
  const tool = asObject(message?.["tool_calls"]);
  const json = asString(asObject(tool?.["function"])?.["arguments"]) ?? "";
  switch (wire["type"]) {
    case "content-start":
    case "content-delta": {
      const content = asObject(message?.["content"]);
      return [
        ...writer.text(asString(content?.["thinking"]) ?? "", "thinking"),
        ...writer.text(asString(content?.["text"]) ?? ""),
      ];
    }
    case "tool-plan-delta":
      return writer.text(asString(message?.["tool_plan"]) ?? "", "thinking");
    case "tool-call-start":
      return writer.call(...head(tool, call), json);
    case "tool-call-delta":
      return writer.json(json);
    case "message-end": {
      const raw = asString(delta?.["finish_reason"]);
      const error = asString(delta?.["error"]);
      if (raw === "TIMEOUT") return writer.fail(streamFailure(504, "timeout", error ?? raw));
      if (error !== undefined || raw === "ERROR")
        return writer.fail(streamFailure(502, "error", error ?? "ERROR"));
      return writer.finish(cohereFinish(raw), raw ?? null, cohereUsage(delta?.["usage"]));
    }
    default:
      return [];
  }
}

export async function* streamedV2(response: Response, call: AdapterCall): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  for await (const { event, data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    if (wire) yield* readEvent(writer, { type: event, ...wire }, call);
  }
  writer.end();
}

export function wholeV2(body: JsonObject, call: AdapterCall): CanonicalEvent[] {
  const writer = eventWriter();
  const message = asObject(body["message"]);
  const out = [
    ...writer.start(asString(body["id"])),
    ...writer.text(asString(message?.["tool_plan"]) ?? "", "thinking"),
  ];
  for (const value of asList(message?.["content"])) {
    const part = asObject(value);
    out.push(...writer.text(asString(part?.["thinking"]) ?? "", "thinking"));
    out.push(...writer.text(asString(part?.["text"]) ?? ""));
  }
  for (const value of asList(message?.["tool_calls"])) {
    const tool = asObject(value);
    const input = asObject(tool?.["function"])?.["arguments"] ?? "{}";
    out.push(...writer.call(...head(tool, call), asText(input)));
  }
  const raw = asString(body["finish_reason"]);
  out.push(...writer.finish(cohereFinish(raw), raw ?? null, cohereUsage(body["usage"])));
  return out;
}
