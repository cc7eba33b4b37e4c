// Writes a canonical request as chat completions.
// Refuses by name what this protocol has no words for; leaves out nothing in silence and adds nothing of its own.
import type {
  CanonicalRequest,
  EncodedRequest,
  FilePart,
  JsonObject,
  Message,
  Part,
  Reasoning,
  Signature,
  Tool,
  ToolCallPart,
  ToolResultPart,
} from "../canonical.ts";
import { defined } from "../assemble.ts";
import { cannotCarry, carryExtras, drop, leaveOpaque } from "../carry.ts";
import { askedOf } from "../client-tools.ts";
import { asArguments, asFunction, takesCustomTools } from "../custom-tools.ts";
import type { EncodeContext } from "../dialect.ts";
import { asObject, dataUrl } from "../json.ts";
import { nearestEffort, openaiTraits } from "../openai-models.ts";
import type { OpenaiTraits } from "../openai-models.ts";
import { effortOf } from "../reasoning.ts";
import { mergeTurns, resultsFirst } from "../turns.ts";
import { searchFor } from "../web-search.ts";

const DIALECT = "openai-chat";

/** Throws `unsupported_field` for hosted tools, stored pictures and the like that chat completions cannot say. */
export function encodeRequest(given: CanonicalRequest, context: EncodeContext = {}): EncodedRequest {
  const home = given.dialect === DIALECT;
  const { request, dropped } = home ? { request: given, dropped: [] } : askedOf(given);
  const body: JsonObject = { model: context.model ?? request.model };
  const isOpenai = takesCustomTools(DIALECT, String(body["model"]));
  const source = home || isOpenai ? request : withoutCustom(request, dropped);
  const messages = home ? source.messages : chatTurns(source.messages, isOpenai);
  body["messages"] = messages.flatMap((message) => encodeMessage(message, home, context, dropped));
  if (request.stream !== undefined) body["stream"] = request.stream;
  if (request.streamUsage !== undefined) {
    const left = home ? (request.extras[DIALECT]?.["stream_options"] as JsonObject | undefined) : undefined;
    body["stream_options"] = { ...left, include_usage: request.streamUsage };
  }
  writeSettings(request, context, body, dropped);
  writeTools(source, body, dropped);
  writeFormat(request, body);
  if (home) {
    if (request.reasoning?.effort !== undefined) body["reasoning_effort"] = request.reasoning.effort;
  } else {
    const traits = openaiTraits(String(body["model"]));
    writeReasoning(request.reasoning, traits, body, dropped);
  }
  carryExtras(request, DIALECT, body, dropped);
  return { body, dropped };
}

/**
 * Calls of one turn belong into one message, and their results directly behind it; the Responses API spreads both over
 * items. Only OpenAI's own models know developers, and the templates of many others take one system message, at the
 * beginning.
 */
function chatTurns(messages: readonly Message[], isOpenai: boolean): Message[] {
  const turns = resultsFirst(mergeTurns(messages, (role) => (role === "assistant" ? role : null)));
  if (isOpenai) return turns;
  const known = turns.map((message) =>
    message.role === "developer" ? { ...message, role: "system" as const } : message,
  );
  return mergeTurns(known, (role) => (role === "system" ? role : null));
}

/** The same request with functions in place of free-text tools, in its history too. */
function withoutCustom(request: CanonicalRequest, dropped: string[]): CanonicalRequest {
  if (!request.tools?.some((tool) => tool.type === "custom")) return request;
  const { toolChoice: choice } = request;
  return {
    ...request,
    tools: request.tools.map((tool) => (tool.type === "custom" ? asFunction(tool, dropped) : tool)),
    ...(choice?.mode === "tool" ? { toolChoice: { mode: "tool", name: choice.name } } : {}),
    messages: request.messages.map((message) => ({
      ...message,
      parts: message.parts.map((part) =>
        part.type === "tool-call" && part.custom
          ? { ...part, custom: false, input: asArguments(part.input) }
          : part,
      ),
    })),
  };
}

function writeReasoning(
  reasoning: Reasoning | undefined,
  traits: OpenaiTraits,
  body: JsonObject,
  dropped: string[],
): void {
  if (!reasoning) return;
  const isOff = reasoning.mode === "off" || reasoning.budgetTokens === 0;
  // A model that does not reason has nothing to switch off.
  if (isOff && (traits.efforts === undefined || traits.efforts.length === 0)) {
    if (traits.efforts === undefined) drop(dropped, "reasoning");
    return;
  }
  const wanted = isOff ? "none" : effortOf(reasoning);
  const effort = wanted === undefined ? undefined : nearestEffort(wanted, traits);
  if (effort === undefined) drop(dropped, "reasoning");
  else body["reasoning_effort"] = effort;
}

function writeSettings(
  request: CanonicalRequest,
  context: EncodeContext,
  body: JsonObject,
  dropped: string[],
): void {
  const { settings, spelling } = request;
  const home = request.dialect === DIALECT;
  const spelt = home ? spelling?.["maxOutputTokens"] : undefined;
  if (settings.maxOutputTokens !== undefined) {
    body[context.maxTokensField ?? spelt ?? "max_tokens"] = settings.maxOutputTokens;
  }
  const stop = settings.stop;
  Object.assign(
    body,
    defined({
      temperature: settings.temperature,
      top_p: settings.topP,
      frequency_penalty: settings.frequencyPenalty,
      presence_penalty: settings.presencePenalty,
      seed: settings.seed,
      stop: home && spelling?.["stop"] === "string" ? stop?.[0] : stop,
      n: settings.n,
      logprobs: settings.logprobs,
      top_logprobs: settings.topLogprobs,
      parallel_tool_calls: settings.parallelToolCalls,
      user: settings.endUser,
      metadata: settings.metadata,
      service_tier: settings.serviceTier === "standard_only" ? "default" : settings.serviceTier,
      verbosity: settings.verbosity,
      modalities: settings.modalities,
      audio: settings.speech,
    }),
  );
  if (settings.topK !== undefined) {
    if (home) body["top_k"] = settings.topK;
    else drop(dropped, "top_k");
  }
}

function encodeMessage(
  message: Message,
  home: boolean,
  context: EncodeContext,
  dropped: string[],
): JsonObject[] {
  const only = message.parts[0];
  if (only?.type === "opaque" && only.dialect === DIALECT && only.name.startsWith("messages[")) {
    return [only.value as JsonObject];
  }
  const out: JsonObject[] = [];
  const parts: Part[] = [];
  for (const part of message.parts) {
    if (part.type !== "tool-result") {
      parts.push(part);
      continue;
    }
    // Results must follow the calls directly; what only a user message can hold comes after them.
    const { wire, media } = encodeResult(part, message, home, dropped);
    out.push(wire);
    parts.push(...media);
  }
  if (message.role === "tool" && parts.length === 0) return out;
  if (message.role !== "tool" && out.length > 0 && parts.length === 0) return out;
  const role = message.role === "tool" ? "user" : message.role;
  if (role !== "assistant") out.push(encodePlain(message, role, parts, home, dropped));
  else {
    const wire = encodeAssistant(message, parts, home, context, dropped);
    // Nothing is left of a turn that was only a hosted tool's record.
    if (home || wire["content"] !== null || "tool_calls" in wire || "refusal" in wire) out.push(wire);
  }
  return out;
}

function encodePlain(
  message: Message,
  role: string,
  parts: Part[],
  home: boolean,
  dropped: string[],
): JsonObject {
  const wire: JsonObject = { role };
  if (message.bare === "null") wire["content"] = null;
  else wire["content"] = encodeContent(message, parts, home, dropped);
  if (message.name !== undefined) wire["name"] = message.name;
  if (home) Object.assign(wire, message.extra);
  return wire;
}

/** A string where the client wrote one, or where a foreign message is nothing but text; a list of parts otherwise. */
function encodeContent(message: Message, parts: Part[], home: boolean, dropped: string[]): unknown {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const allText = texts.length === parts.length;
  const system = message.role === "system" || message.role === "developer";
  if (home ? message.bare === "string" : allText && (texts.length === 1 || system)) return texts.join("\n\n");
  return parts.map((part) => encodePart(part, home, dropped));
}

function encodeAssistant(
  message: Message,
  parts: Part[],
  home: boolean,
  context: EncodeContext,
  dropped: string[],
): JsonObject {
  const wire: JsonObject = { role: "assistant" };
  const calls = parts.filter((part): part is ToolCallPart => part.type === "tool-call");
  const thinking = parts.filter((part) => part.type === "thinking");
  const shown = parts.filter((part) => !["tool-call", "thinking", "opaque"].includes(part.type));
  for (const part of parts) {
    if (part.type !== "opaque") continue;
    if (part.dialect !== DIALECT) leaveOpaque(part, dropped);
    else if (part.name.startsWith("content.")) shown.push(part);
    else wire[part.name] = part.value;
  }
  // The refusal field of a chat message and a refusal part differ only in the wire; parts came in a list.
  const refusals = shown.filter((part) => part.type === "text" && part.refusal);
  const refusalField = refusals.length > 0 && !(home && message.bare === undefined);
  const content = refusalField ? shown.filter((part) => !refusals.includes(part)) : shown;
  if (content.length > 0 || (home && message.bare === undefined && parts.length === 0)) {
    wire["content"] = encodeContent({ ...message, role: "assistant" }, content, home, dropped);
  } else if (!home || message.bare === "null") wire["content"] = null;
  if (refusalField)
    wire["refusal"] = refusals.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (!home && thinking.length > 0) {
    const text = thinking.map((part) => (part.type === "thinking" ? part.text : "")).join("");
    if (context.echoReasoning && text) wire["reasoning_content"] = text;
    else drop(dropped, "thinking");
  }
  if (calls.length > 0) wire["tool_calls"] = calls.map((call) => encodeCall(call, home));
  if (message.name !== undefined) wire["name"] = message.name;
  if (home) Object.assign(wire, message.extra);
  // Other providers' proofs mean nothing to this upstream.
  if (home && thinking.some((part) => part.type === "thinking" && isForeign(part.signature))) {
    delete wire["reasoning_details"];
    drop(dropped, "thinking");
  }
  return wire;
}

function isForeign(signature: Signature | undefined): boolean {
  return signature !== undefined && signature.dialect !== DIALECT;
}

function encodeCall(call: ToolCallPart, home: boolean): JsonObject {
  const wire: JsonObject = call.custom
    ? { id: call.id, type: "custom", custom: { name: call.name, input: call.input } }
    : { id: call.id, type: "function", function: { name: call.name, arguments: call.input || "{}" } };
  if (home && !call.custom) wire["function"] = { name: call.name, arguments: call.input };
  if (home) Object.assign(wire, call.extra);
  if (home && isForeign(call.signature)) delete wire["extra_content"];
  if (!home && call.signature?.dialect === DIALECT) {
    wire["extra_content"] = { google: { thought_signature: call.signature.value } };
  }
  return wire;
}

function encodeResult(
  part: ToolResultPart,
  message: Message,
  home: boolean,
  dropped: string[],
): { wire: JsonObject; media: Part[] } {
  const wire: JsonObject = { role: "tool", tool_call_id: part.id };
  if (home) {
    if (message.bare === "null") wire["content"] = null;
    else wire["content"] = encodeContent(message, part.content, true, dropped);
    if (message.name !== undefined) wire["name"] = message.name;
    return { wire: Object.assign(wire, message.extra), media: [] };
  }
  const media: Part[] = [];
  const texts: string[] = [];
  for (const inner of part.content) {
    if (inner.type === "text") texts.push(inner.text);
    else if (inner.type === "image" || inner.type === "file" || inner.type === "audio") media.push(inner);
    else throw cannotCarry(inner.type === "opaque" ? inner.name : `tool-result.${inner.type}`);
  }
  wire["content"] = texts.join("\n");
  if (part.isError) drop(dropped, "is_error");
  return { wire, media };
}

function encodePart(part: Part, home: boolean, dropped: string[]): unknown {
  if (part.cache) drop(dropped, "cache_control");
  const more = home ? part.extra : undefined;
  switch (part.type) {
    case "text":
      return part.refusal
        ? { type: "refusal", refusal: part.text, ...more }
        : { type: "text", text: part.text, ...more };
    case "image": {
      const { source } = part;
      if (source.kind === "stored") throw cannotCarry("image.file_id");
      const url = source.kind === "url" ? source.url : dataUrl(source.mime, source.data);
      return { type: "image_url", image_url: { url, ...defined({ detail: part.detail }) }, ...more };
    }
    case "audio": {
      if (part.source.kind !== "base64") throw cannotCarry("audio.url");
      return {
        type: "input_audio",
        input_audio: { data: part.source.data, format: audioFormat(part.source.mime) },
        ...more,
      };
    }
    case "file":
      return { ...encodeFile(part), ...more };
    case "opaque":
      if (part.dialect !== DIALECT) throw cannotCarry(part.name);
      return part.value;
    default:
      throw cannotCarry(`content.${part.type}`);
  }
}

/** The short format word of a sound type: audio/mpeg is mp3, the rest is its subtype. */
function audioFormat(mime: string): string {
  const subtype = mime.split("/")[1] ?? "wav";
  if (subtype === "mpeg") return "mp3";
  return subtype === "x-wav" || subtype === "wave" ? "wav" : subtype;
}

function encodeFile(part: FilePart): JsonObject {
  const { source, name } = part;
  if (source.kind === "text") return { type: "text", text: source.text };
  if (source.kind === "url") throw cannotCarry("document.url");
  if (source.kind === "stored") {
    if (!source.dialect.startsWith("openai")) throw cannotCarry("file_id");
    return { type: "file", file: { file_id: source.id, ...defined({ filename: name }) } };
  }
  const filename = name ?? (source.mime === "application/pdf" ? "document.pdf" : "document");
  return { type: "file", file: { filename, file_data: dataUrl(source.mime, source.data) } };
}

function writeTools(request: CanonicalRequest, body: JsonObject, dropped: string[]): void {
  if (request.tools) {
    const list: JsonObject[] = [];
    for (const tool of request.tools) {
      if (
        tool.type === "hosted" &&
        tool.hosted === "web-search" &&
        !(tool.dialect === DIALECT && tool.name !== "web_search_options")
      ) {
        body["web_search_options"] =
          tool.dialect === DIALECT ? tool.value : searchFor(DIALECT, tool, dropped);
      } else list.push(encodeTool(tool, request.dialect === DIALECT, dropped));
    }
    // A list that held nothing but the search switch was no list on the wire; many servers refuse an empty one.
    const isEmpty = request.tools.length === 0 && request.dialect === DIALECT;
    if (list.length > 0 || isEmpty) body["tools"] = list;
  }
  const choice = request.toolChoice;
  if (request.dialect !== DIALECT && (request.tools ?? []).length === 0) {
    if (choice && choice.mode !== "auto" && choice.mode !== "none") drop(dropped, "tool_choice");
    delete body["parallel_tool_calls"];
    return;
  }
  if (!choice) return;
  switch (choice.mode) {
    case "auto":
    case "none":
      body["tool_choice"] = choice.mode;
      break;
    case "any":
      body["tool_choice"] = (request.dialect === DIALECT && request.spelling?.["toolChoice"]) || "required";
      break;
    case "tool":
      body["tool_choice"] = choice.custom
        ? { type: "custom", custom: { name: choice.name } }
        : { type: "function", function: { name: choice.name } };
      break;
    case "allowed":
      body["tool_choice"] = {
        type: "allowed_tools",
        allowed_tools: {
          mode: choice.required ? "required" : "auto",
          tools: choice.names.map((name) => ({ type: "function", function: { name } })),
        },
      };
      break;
    case "hosted":
      if (choice.dialect !== DIALECT) throw cannotCarry("tool_choice");
      body["tool_choice"] = choice.value;
  }
}

function encodeTool(tool: Tool, home: boolean, dropped: string[]): JsonObject {
  if (tool.type === "hosted") {
    if (tool.dialect !== DIALECT) throw cannotCarry(`tools.${tool.name}`);
    return tool.value;
  }
  if (tool.type === "custom") {
    const { name, description, format } = tool;
    return {
      type: "custom",
      custom: { name, ...defined({ description, format: home ? format : nestedFormat(format) }) },
      ...(home ? tool.extra : {}),
    };
  }
  if (tool.cache) drop(dropped, "cache_control");
  const { name, description, schema, strict } = tool;
  const inner = home ? (tool.extra?.["function"] as JsonObject | undefined) : undefined;
  return {
    ...(home ? tool.extra : {}),
    type: "function",
    function: { name, ...defined({ description, parameters: schema, strict }), ...inner },
  };
}

/** The Responses API writes a grammar one level flatter. */
function nestedFormat(format: unknown): unknown {
  const wire = asObject(format);
  if (wire?.["type"] !== "grammar" || "grammar" in wire) return format;
  const { type, ...grammar } = wire;
  return { type, grammar };
}

function writeFormat(request: CanonicalRequest, body: JsonObject): void {
  const format = request.responseFormat;
  if (!format) return;
  if (format.type === "text") body["response_format"] = { type: "text" };
  else if (format.type === "json") body["response_format"] = { type: "json_object" };
  else {
    const { name, schema, strict, description } = format;
    const home = request.dialect === DIALECT;
    body["response_format"] = {
      type: "json_schema",
      // The protocol requires a name; other dialects have none to give.
      json_schema: {
        ...defined({ name: name ?? (home ? undefined : "answer"), description, schema, strict }),
      },
    };
  }
}
