// A chat request in the words of Baidu's first Qianfan API: one function at a time, turns that alternate.
// Refuses by name several forced tools, schemas for answers, and what the provider has no words for.
import { defined } from "../../protocol/assemble.ts";
import type { CanonicalRequest, JsonObject, Message, ToolResultPart } from "../../protocol/canonical.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { splitSystem, systemText } from "../../protocol/turns.ts";
import type { AdapterCall } from "../adapter.ts";
import { textOf } from "./chat-request.ts";

function resultsById(messages: readonly Message[]): Map<string, ToolResultPart> {
  const found = new Map<string, ToolResultPart>();
  for (const message of messages)
    for (const part of message.parts) if (part.type === "tool-result") found.set(part.id, part);
  return found;
}

/** A model's turn: one function call each, answered before the next one may stand there. */
function encodeAssistant(message: Message, results: ReadonlyMap<string, ToolResultPart>): JsonObject[] {
  const calls = message.parts.filter((part) => part.type === "tool-call");
  if (calls.length === 0) return [{ role: "assistant", content: textOf(message) }];
  return calls.flatMap((call, index) => {
    const written = {
      role: "assistant",
      content: index === 0 ? textOf(message) : "",
      function_call: { name: call.name, arguments: call.input || "{}" },
    };
    const result = results.get(call.id);
    if (!result) return [written];
    return [
      written,
      { role: "function", name: call.name, content: textOf({ role: "tool", parts: result.content }) },
    ];
  });
}

/** Roles take turns here: what one side says in several messages becomes one. */
function alternate(messages: readonly JsonObject[]): JsonObject[] {
  const out: JsonObject[] = [];
  for (const message of messages) {
    const last = out.at(-1);
    const isPlain = (each: JsonObject): boolean => each["function_call"] === undefined;
    if (last && last["role"] === message["role"] && message["role"] !== "function" && isPlain(last))
      out[out.length - 1] = {
        ...last,
        ...message,
        content: [last["content"], message["content"]].filter((text) => text !== "").join("\n"),
      };
    else out.push(message);
  }
  return out;
}

function encodeTools(request: CanonicalRequest): JsonObject {
  const { tools = [], toolChoice: choice } = request;
  if (tools.length === 0 || choice?.mode === "none") return {};
  if (choice?.mode === "hosted") throw cannotCarry("tool_choice");
  const offered =
    choice?.mode === "allowed" ? tools.filter((tool) => choice.names.includes(tool.name)) : tools;
  const functions = offered.flatMap((tool) =>
    tool.type === "function"
      ? [
          {
            name: tool.name,
            // Both are required by the provider.
            description: tool.description ?? tool.name,
            parameters: tool.schema ?? { type: "object", properties: {} },
          },
        ]
      : [],
  );
  const isForced = choice?.mode === "any" || (choice?.mode === "allowed" && choice.required);
  // Some tool or other cannot be forced, only a certain one.
  if (isForced && functions.length !== 1) throw cannotCarry("tool_choice");
  const name = choice?.mode === "tool" ? choice.name : isForced ? functions[0]?.name : undefined;
  return { functions, ...defined({ tool_choice: name && { type: "function", function: { name } } }) };
}

const bounded = (value: number | undefined, min: number, max: number): number | undefined =>
  value === undefined ? undefined : Math.min(max, Math.max(min, value));

/** Ranges are the provider's: temperature in (0, 1], penalty in [1, 2], no limit below 2. */
export function baiduRequest(call: AdapterCall, request: CanonicalRequest): JsonObject {
  const { settings, responseFormat: format } = request;
  if (format?.type === "json-schema") throw cannotCarry("response_format");
  const { system, turns } = splitSystem(request.messages);
  const results = resultsById(turns);
  const messages = turns.flatMap((message) => {
    if (message.role === "assistant") return encodeAssistant(message, results);
    // Results stand behind their calls.
    return message.role === "tool" ? [] : [{ role: "user", content: textOf(message) }];
  });
  const penalty = settings.frequencyPenalty;
  return {
    messages: alternate(messages),
    stream: call.isStream,
    ...defined({
      system: systemText(system) || undefined,
      temperature: bounded(settings.temperature, 0.01, 1),
      top_p: bounded(settings.topP, 0, 1),
      penalty_score: penalty === undefined || penalty <= 0 ? undefined : bounded(penalty, 1, 2),
      stop: settings.stop,
      max_output_tokens: bounded(settings.maxOutputTokens, 2, Infinity),
      user_id: settings.endUser,
      response_format: format?.type === "json" ? "json_object" : undefined,
    }),
    ...encodeTools(request),
  };
}
