// Cohere's chat (version 2 of its API): turns, tools, JSON forms and streams of named events.
// Refuses pictures and several answers by name.
import { cannotCarry } from "../../protocol/carry.ts";
import type { CanonicalEvent, FinishReason } from "../../protocol/events.ts";
import type { Message } from "../../protocol/canonical.ts";
import { asList, asObject, asString, parseJson } from "../../protocol/json.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import type { Usage } from "../../shared/usage.ts";
import type { AdapterCall } from "../adapter.ts";
import {
  chatResponse,
  conversation,
  eventsOf,
  eventWriter,
  post,
  readJson,
  usageOf,
} from "../adapter-kit.ts";

const FINISH: Readonly<Record<string, FinishReason>> = {
  COMPLETE: "stop",
  STOP_SEQUENCE: "stop-sequence",
  MAX_TOKENS: "length",
  TOOL_CALL: "tool-calls",
  ERROR_TOXIC: "content-filter",
};

function turn(message: Message): unknown[] {
  const results = message.parts.flatMap((part) =>
    part.type === "tool-result"
      ? [
          {
            role: "tool",
            tool_call_id: part.id,
            content: part.content.map((inner) => {
              if (inner.type !== "text") throw cannotCarry("messages.tool.content");
              return { type: "text", text: inner.text };
            }),
          },
        ]
      : [],
  );
  const calls = message.parts.flatMap((part) =>
    part.type === "tool-call"
      ? [{ id: part.id, type: "function", function: { name: part.name, arguments: part.input || "{}" } }]
      : [],
  );
  const texts = message.parts.flatMap((part) => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type === "image" || part.type === "audio" || part.type === "file") throw cannotCarry(part.type);
    return [];
  });
  const role = message.role === "developer" ? "system" : message.role === "tool" ? "user" : message.role;
  if (texts.length === 0 && calls.length === 0) return results;
  return [
    ...results,
    {
      role,
      ...(texts.length > 0 ? { content: texts } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ];
}

function cohereBody(call: AdapterCall): Record<string, unknown> {
  const request = conversation(call);
  const { settings, tools, toolChoice, responseFormat } = request;
  if ((settings.n ?? 1) > 1) throw cannotCarry("n");
  const body: Record<string, unknown> = {
    model: call.model,
    messages: request.messages.flatMap(turn),
    stream: call.isStream,
    max_tokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    p: settings.topP,
    k: settings.topK,
    seed: settings.seed,
    stop_sequences: settings.stop,
    frequency_penalty: settings.frequencyPenalty,
    presence_penalty: settings.presencePenalty,
  };
  if (tools && tools.length > 0) {
    body["tools"] = tools.map((tool) => {
      if (tool.type !== "function") throw cannotCarry("tools");
      const parameters = tool.schema ?? { type: "object", properties: {} };
      return { type: "function", function: { name: tool.name, description: tool.description, parameters } };
    });
    if (toolChoice?.mode === "any" || toolChoice?.mode === "tool") body["tool_choice"] = "REQUIRED";
    if (toolChoice?.mode === "none") body["tool_choice"] = "NONE";
  }
  if (responseFormat?.type === "json") body["response_format"] = { type: "json_object" };
  if (responseFormat?.type === "json-schema")
    body["response_format"] = { type: "json_object", json_schema: responseFormat.schema };
  return body;
}

function usage(raw: unknown): Usage {
  const wire = asObject(raw);
  const billed = asObject(wire?.["billed_units"]) ?? asObject(wire?.["tokens"]);
  return usageOf(billed?.["input_tokens"], billed?.["output_tokens"], billed && raw);
}

function* wholeEvents(body: Record<string, unknown>): Generator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start(asString(body["id"]));
  const message = asObject(body["message"]);
  yield* writer.text(asString(message?.["tool_plan"]) ?? "", "thinking");
  for (const value of asList(message?.["content"])) {
    const block = asObject(value);
    yield* writer.text(asString(block?.["thinking"]) ?? "", "thinking");
    yield* writer.text(asString(block?.["text"]) ?? "");
  }
  for (const value of asList(message?.["tool_calls"])) {
    const made = asObject(value);
    const inner = asObject(made?.["function"]);
    yield* writer.call(
      asString(made?.["id"]) ?? "",
      asString(inner?.["name"]) ?? "",
      asString(inner?.["arguments"]) ?? "",
    );
  }
  const reason = asString(body["finish_reason"]) ?? "";
  yield* writer.finish(FINISH[reason] ?? "other", reason, usage(body["usage"]));
}

async function* streamedEvents(response: Response): AsyncGenerator<CanonicalEvent> {
  const writer = eventWriter();
  yield* writer.start();
  for await (const { event, data } of eventsOf(response)) {
    const wire = asObject(parseJson(data));
    const delta = asObject(wire?.["delta"]);
    const message = asObject(delta?.["message"]);
    const content = asObject(message?.["content"]);
    const made = asObject(message?.["tool_calls"]);
    const inner = asObject(made?.["function"]);
    switch (asString(wire?.["type"]) ?? event) {
      case "content-start":
      case "content-delta":
        yield* writer.text(asString(content?.["thinking"]) ?? "", "thinking");
        yield* writer.text(asString(content?.["text"]) ?? "");
        break;
      case "tool-plan-delta":
        yield* writer.text(asString(message?.["tool_plan"]) ?? "", "thinking");
        break;
      case "tool-call-start":
        yield* writer.call(
          asString(made?.["id"]) ?? "",
          asString(inner?.["name"]) ?? "",
          asString(inner?.["arguments"]) ?? "",
        );
        break;
      case "tool-call-delta":
        yield* writer.json(asString(inner?.["arguments"]) ?? "");
        break;
      case "message-end": {
        const reason = asString(delta?.["finish_reason"]) ?? "";
        if (reason === "ERROR" || reason === "TIMEOUT") {
          const words = asString(delta?.["error"]) ?? reason;
          return yield { type: "fail", failure: upstreamFailure({ status: 500, message: words, raw: data }) };
        }
        yield* writer.finish(FINISH[reason] ?? "other", reason, usage(delta?.["usage"]));
        return;
      }
      default:
    }
  }
}

export async function cohere(call: AdapterCall): Promise<Response> {
  const response = await post(call, call.url, cohereBody(call));
  if (response.status !== 200) return response;
  return chatResponse(call, call.isStream ? streamedEvents(response) : wholeEvents(await readJson(response)));
}
