// Cohere's chat v2: messages, tools and pictures nearly in OpenAI's form, with events of its own.
// Refuses choices of tools that it has no word for.
import type { Answer } from "../../protocol/assemble.ts";
import { collect, defined } from "../../protocol/assemble.ts";
import type { CanonicalRequest, JsonObject, Message, Part, Tool } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { asList, asNumber, asObject, asString, asText, dataUrl, parseJson } from "../../protocol/json.ts";
import { budgetOf } from "../../protocol/reasoning.ts";
import type { AdapterCall } from "../adapter.ts";
import { sseDecoder } from "./answers.ts";
import type { ByteDecoder } from "./answers.ts";
import { textOf } from "./asked.ts";
import { cohereFinish, cohereSettings, cohereUsage } from "./cohere-v1.ts";
import { createTextEvents } from "./text-events.ts";
import type { TextEvents } from "./text-events.ts";

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

function readEvent(events: TextEvents, wire: JsonObject, call: AdapterCall): CanonicalEvent[] {
  const delta = asObject(wire["delta"]);
  const message = asObject(delta?.["message"]);
  const tool = asObject(message?.["tool_calls"]);
  const inner = asObject(tool?.["function"]);
  const key = `call:${asNumber(wire["index"]) ?? 0}`;
  switch (wire["type"]) {
    case "content-start":
    case "content-delta": {
      const content = asObject(message?.["content"]);
      return [
        ...events.thinking(asString(content?.["thinking"]) ?? ""),
        ...events.text(asString(content?.["text"]) ?? ""),
      ];
    }
    case "tool-plan-delta":
      return events.thinking(asString(message?.["tool_plan"]) ?? "");
    case "tool-call-start": {
      const callId = asString(tool?.["id"]) || call.newId("call_");
      const spec = { key, kind: "tool-call" as const, callId, name: asString(inner?.["name"]) ?? "" };
      const begun = asString(inner?.["arguments"]);
      return events.call(spec, begun ? { type: "json", delta: begun } : undefined);
    }
    case "tool-call-delta": {
      const json = asString(inner?.["arguments"]);
      return json ? events.call({ key, kind: "tool-call" }, { type: "json", delta: json }) : [];
    }
    case "tool-call-end":
      return events.complete(key);
    case "message-end": {
      const raw = asString(delta?.["finish_reason"]);
      const error = asString(delta?.["error"]);
      if (error !== undefined || raw === "ERROR") return events.fail(502, "error", error ?? "ERROR");
      if (raw === "TIMEOUT") return events.fail(504, "timeout", "TIMEOUT");
      return events.finish(cohereFinish(raw), raw ?? null, cohereUsage(delta?.["usage"]));
    }
    default:
      return [];
  }
}

export function decodeV2(call: AdapterCall): ByteDecoder<CanonicalEvent> {
  const events = createTextEvents();
  return sseDecoder<CanonicalEvent>(
    (frame) => {
      const wire = asObject(parseJson(frame.data));
      return wire ? readEvent(events, { type: frame.event, ...wire }, call) : [];
    },
    () => events.end(),
  );
}

export function answerV2(body: JsonObject, call: AdapterCall): Answer {
  const events = createTextEvents(asString(body["id"]));
  const message = asObject(body["message"]);
  const out: CanonicalEvent[] = [...events.thinking(asString(message?.["tool_plan"]) ?? "")];
  for (const value of asList(message?.["content"])) {
    const part = asObject(value);
    out.push(...events.thinking(asString(part?.["thinking"]) ?? ""));
    out.push(...events.text(asString(part?.["text"]) ?? ""));
  }
  asList(message?.["tool_calls"]).forEach((value, index) => {
    const tool = asObject(value);
    const inner = asObject(tool?.["function"]);
    const key = `call:${index}`;
    const callId = asString(tool?.["id"]) || call.newId("call_");
    const spec = { key, kind: "tool-call" as const, callId, name: asString(inner?.["name"]) ?? "" };
    out.push(...events.call(spec, { type: "json", delta: asText(inner?.["arguments"] ?? "{}") }));
    out.push(...events.complete(key));
  });
  const raw = asString(body["finish_reason"]);
  out.push(...events.finish(cohereFinish(raw), raw ?? null, cohereUsage(body["usage"])));
  return collect(out);
}
