// Writes a canonical request for the Responses API.
// Refuses by name what it has no words for (stop words, several answers, seeds are listed or refused).
import { defined } from "../assemble.ts";
import type { CanonicalRequest, EncodedRequest, JsonObject, Message, Part, Tool } from "../canonical.ts";
import { cannotCarry, carryExtras, drop, leaveOpaque } from "../carry.ts";
import { askedOf } from "../client-tools.ts";
import type { EncodeContext } from "../dialect.ts";
import { asObject, dataUrl } from "../json.ts";
import { nearestEffort, openaiTraits } from "../openai-models.ts";
import { effortOf } from "../reasoning.ts";
import { mergeThinking, splitSystem, systemText } from "../turns.ts";
import { searchFor } from "../web-search.ts";
import { HOSTED_TOOLS, LEAST_OUTPUT_TOKENS, unpackReasoning } from "./wire.ts";

const DIALECT = "openai-responses";

/** Throws `unsupported_field` for stop sequences, n, foreign hosted tools and the like. */
export function encodeRequest(given: CanonicalRequest, context: EncodeContext = {}): EncodedRequest {
  const home = given.dialect === DIALECT;
  const { request, dropped } = home ? { request: given, dropped: [] } : askedOf(given);
  const body: JsonObject = { model: context.model ?? request.model };
  writeInput(request, home, body, dropped);
  if (request.stream !== undefined) body["stream"] = request.stream;
  writeSettings(request, home, body, dropped);
  if (request.tools && (home || request.tools.length > 0))
    body["tools"] = request.tools.map((tool) => encodeTool(tool, home, dropped));
  writeToolChoice(request, body);
  writeReasoning(request, home, body, dropped);
  writeText(request, home, body);
  if (home) {
    for (const key of ["text", "reasoning"]) {
      const kept = request.extras[DIALECT]?.[key];
      if (kept !== undefined) body[key] = kept;
    }
  }
  carryExtras(request, DIALECT, body, dropped);
  return { body, dropped };
}

function writeInput(request: CanonicalRequest, home: boolean, body: JsonObject, dropped: string[]): void {
  if (home) {
    const top = request.messages.find((message) => message.topLevel);
    const first = top?.parts[0];
    if (first?.type === "text") body["instructions"] = first.text;
    const items = request.messages.filter((message) => message !== top);
    const only = items[0]?.parts[0];
    const spelled = request.spelling?.["input"];
    if (spelled === "string" && only?.type === "text") body["input"] = only.text;
    else if (spelled !== "none")
      body["input"] = items.flatMap((message) => encodeMessage(message, true, dropped));
    return;
  }
  // Leading system text becomes the instructions; what comes later keeps its place.
  const lead = request.messages.findIndex(
    (message) => message.role !== "system" && message.role !== "developer",
  );
  const cut = lead === -1 ? request.messages.length : lead;
  const { system } = splitSystem(request.messages.slice(0, cut));
  for (const part of system.flatMap((message) => message.parts)) {
    if (part.type !== "text") throw cannotCarry(`system.${part.type}`);
  }
  const text = systemText(system);
  if (text !== "") body["instructions"] = text;
  if (system.some((message) => message.parts.some((part) => part.cache))) drop(dropped, "cache_control");
  body["input"] = request.messages.slice(cut).flatMap((message) => encodeMessage(message, false, dropped));
}

/** A message is one item for its text and media, and one for each call, result and thinking block. */
function encodeMessage(message: Message, home: boolean, dropped: string[]): JsonObject[] {
  const out: JsonObject[] = [];
  let content: unknown[] = [];
  const flush = (): void => {
    if (content.length > 0) out.push({ role: message.role === "tool" ? "user" : message.role, content });
    content = [];
  };
  if (home) {
    const only = message.parts[0];
    const itemized = only && ["tool-call", "tool-result", "thinking"].includes(only.type);
    if (!itemized && !(only?.type === "opaque" && only.name.startsWith("input."))) {
      const wire: JsonObject = { role: message.role };
      wire["content"] =
        message.bare === "string" && only?.type === "text"
          ? only.text
          : message.parts.map((part) => encodePart(part, message.role, true, dropped));
      return [{ ...wire, ...message.extra }];
    }
  } else if (message.name !== undefined) drop(dropped, "messages.name");
  for (const part of home ? message.parts : mergeThinking(message.parts)) {
    const item = encodeItem(part, message, home, dropped);
    if (item === undefined) content.push(encodePart(part, message.role, home, dropped));
    else if (item !== null) {
      flush();
      out.push(item);
    }
  }
  flush();
  return out;
}

/** The item for a part that is one; null when it is left out, undefined when it belongs into a message. */
function encodeItem(
  part: Part,
  message: Message,
  home: boolean,
  dropped: string[],
): JsonObject | null | undefined {
  const more = home ? message.extra : undefined;
  switch (part.type) {
    case "tool-call":
      return part.custom
        ? { type: "custom_tool_call", call_id: part.id, name: part.name, input: part.input, ...more }
        : {
            type: "function_call",
            call_id: part.id,
            name: part.name,
            arguments: home ? part.input : part.input || "{}",
            ...more,
          };
    case "tool-result": {
      const first = part.content[0];
      const allText = part.content.every((inner) => inner.type === "text");
      const output =
        home && part.bare !== "string"
          ? part.content.map((inner) => encodePart(inner, "user", home, dropped))
          : allText && (part.bare === "string" || !home)
            ? part.content.map((inner) => (inner.type === "text" ? inner.text : "")).join(home ? "" : "\n")
            : part.content.map((inner) => encodePart(inner, "user", home, dropped));
      if (part.isError) drop(dropped, "is_error");
      if (part.cache || first?.cache) drop(dropped, "cache_control");
      const type = part.custom ? "custom_tool_call_output" : "function_call_output";
      return { type, call_id: part.id, output, ...more };
    }
    case "thinking": {
      if (home && part.signature?.dialect !== DIALECT && part.signature) {
        drop(dropped, "thinking");
        return null;
      }
      if (home && part.extra) return part.extra;
      if (part.signature?.dialect !== DIALECT) {
        if (part.text || part.redacted) drop(dropped, "thinking");
        return null;
      }
      const { id, encrypted } = unpackReasoning(part.signature.value);
      const summary = part.text === "" ? [] : [{ type: "summary_text", text: part.text }];
      return { type: "reasoning", ...(id ? { id } : {}), summary, encrypted_content: encrypted };
    }
    case "opaque":
      if (part.dialect === DIALECT)
        return part.name.startsWith("input.") ? (part.value as JsonObject) : undefined;
      leaveOpaque(part, dropped);
      return null;
    default:
      return undefined;
  }
}

function encodePart(part: Part, role: Message["role"], home: boolean, dropped: string[]): unknown {
  if (part.cache) drop(dropped, "cache_control");
  const more = home ? part.extra : undefined;
  switch (part.type) {
    case "text": {
      if (part.refusal) return { type: "refusal", refusal: part.text, ...more };
      const type = role === "assistant" ? "output_text" : "input_text";
      return { type, text: part.text, ...more };
    }
    case "image": {
      const { source, detail } = part;
      const wire: JsonObject = {
        type: "input_image",
        ...defined({ detail: detail ?? (home ? undefined : "auto") }),
      };
      if (source.kind === "stored") {
        if (!source.dialect.startsWith("openai")) throw cannotCarry("image.file_id");
        wire["file_id"] = source.id;
      } else wire["image_url"] = source.kind === "url" ? source.url : dataUrl(source.mime, source.data);
      return { ...wire, ...more };
    }
    case "audio":
      if (!home || part.source.kind !== "base64") throw cannotCarry("audio");
      return {
        type: "input_audio",
        input_audio: { data: part.source.data, format: part.source.mime.split("/")[1] },
        ...more,
      };
    case "file": {
      const { source, name } = part;
      if (source.kind === "text") return { type: "input_text", text: source.text };
      const wire: JsonObject = { type: "input_file", ...defined({ filename: name }) };
      if (source.kind === "url") wire["file_url"] = source.url;
      else if (source.kind === "stored") {
        if (!source.dialect.startsWith("openai")) throw cannotCarry("file_id");
        wire["file_id"] = source.id;
      } else {
        wire["file_data"] = dataUrl(source.mime, source.data);
        if (!home) wire["filename"] ??= source.mime === "application/pdf" ? "document.pdf" : "document";
      }
      return { ...wire, ...more };
    }
    case "opaque":
      if (part.dialect !== DIALECT) throw cannotCarry(part.name);
      return part.value;
    default:
      throw cannotCarry(`content.${part.type}`);
  }
}

function writeSettings(request: CanonicalRequest, home: boolean, body: JsonObject, dropped: string[]): void {
  const { settings } = request;
  Object.assign(
    body,
    defined({
      max_output_tokens: home ? settings.maxOutputTokens : takenLimit(settings.maxOutputTokens),
      temperature: settings.temperature,
      top_p: settings.topP,
      top_logprobs: settings.topLogprobs,
      parallel_tool_calls: settings.parallelToolCalls,
      metadata: settings.metadata,
      user: settings.endUser,
      service_tier: settings.serviceTier === "standard_only" ? "default" : settings.serviceTier,
    }),
  );
  if (home) return;
  if ((settings.n ?? 1) > 1) throw cannotCarry("n");
  if (settings.stop && settings.stop.length > 0) throw cannotCarry("stop");
  if (settings.modalities?.some((kind) => kind.toLowerCase() !== "text")) throw cannotCarry("modalities");
  if (settings.topK !== undefined) drop(dropped, "top_k");
  if (settings.frequencyPenalty) drop(dropped, "frequency_penalty");
  if (settings.presencePenalty) drop(dropped, "presence_penalty");
  if (settings.seed !== undefined) drop(dropped, "seed");
  if (settings.logprobs) include(body, "message.output_text.logprobs");
}

/** Clients of other protocols try a call out with a single token. */
function takenLimit(limit: number | undefined): number | undefined {
  return limit !== undefined && limit > 0 ? Math.max(limit, LEAST_OUTPUT_TOKENS) : limit;
}

function include(body: JsonObject, what: string): void {
  const list = Array.isArray(body["include"]) ? body["include"] : [];
  body["include"] = [...list, what];
}

/** A stateless client can only carry reasoning on when it gets it encrypted, so that is asked for. */
function writeReasoning(request: CanonicalRequest, home: boolean, body: JsonObject, dropped: string[]): void {
  const { reasoning } = request;
  if (!reasoning) return;
  const { summary } = reasoning;
  if (home) {
    body["reasoning"] = defined({ effort: reasoning.effort, summary });
    return;
  }
  const traits = openaiTraits(String(body["model"]));
  const isOff = reasoning.mode === "off" || reasoning.budgetTokens === 0;
  if (traits.efforts?.length === 0) {
    // A model that does not reason has nothing to switch off, and refuses to be asked.
    if (!isOff) drop(dropped, "reasoning");
    return;
  }
  if (isOff) {
    body["reasoning"] = { effort: nearestEffort("none", traits) };
    return;
  }
  const wanted = effortOf(reasoning);
  const effort = wanted === undefined ? undefined : nearestEffort(wanted, traits);
  const shown = summary !== undefined && summary !== "none" ? { summary: "auto" } : {};
  if (effort !== undefined || "summary" in shown) body["reasoning"] = { ...defined({ effort }), ...shown };
  else drop(dropped, "reasoning");
  if (effort !== "none") include(body, "reasoning.encrypted_content");
}

function writeText(request: CanonicalRequest, home: boolean, body: JsonObject): void {
  const text: JsonObject = {};
  const format = request.responseFormat;
  if (format?.type === "text") text["format"] = { type: "text" };
  else if (format?.type === "json") text["format"] = { type: "json_object" };
  else if (format) {
    const { name, schema, strict, description } = format;
    text["format"] = {
      type: "json_schema",
      ...defined({ name: name ?? (home ? undefined : "answer"), description, schema, strict }),
    };
  }
  if (request.settings.verbosity !== undefined) text["verbosity"] = request.settings.verbosity;
  if (Object.keys(text).length > 0) body["text"] = text;
}

function encodeTool(tool: Tool, home: boolean, dropped: string[]): JsonObject {
  if (tool.type === "hosted") {
    if (tool.dialect === DIALECT) return tool.value;
    const wire = HOSTED_TOOLS[tool.hosted];
    if (!wire) throw cannotCarry(`tools.${tool.name}`);
    return tool.hosted === "web-search" ? { ...wire, ...searchFor(DIALECT, tool, dropped) } : wire;
  }
  if (tool.type === "custom") {
    const { name, description, format } = tool;
    return {
      type: "custom",
      name,
      ...defined({ description, format: flatFormat(format) }),
      ...(home ? tool.extra : {}),
    };
  }
  if (tool.cache) drop(dropped, "cache_control");
  const { name, description, schema, strict } = tool;
  if (home)
    return { type: "function", name, ...defined({ description, parameters: schema, strict }), ...tool.extra };
  // Strictness is on by default here and off everywhere else.
  return {
    type: "function",
    name,
    ...defined({ description }),
    parameters: schema ?? { type: "object", properties: {} },
    strict: strict ?? false,
  };
}

/** Chat completions nests a grammar one level deeper. */
function flatFormat(format: unknown): unknown {
  const wire = asObject(format);
  const grammar = asObject(wire?.["grammar"]);
  return wire && grammar ? { type: "grammar", ...grammar } : format;
}

function writeToolChoice(request: CanonicalRequest, body: JsonObject): void {
  const choice = request.toolChoice;
  if (!choice) return;
  switch (choice.mode) {
    case "auto":
    case "none":
      body["tool_choice"] = choice.mode;
      break;
    case "any":
      body["tool_choice"] = "required";
      break;
    case "tool":
      body["tool_choice"] = { type: choice.custom ? "custom" : "function", name: choice.name };
      break;
    case "allowed":
      body["tool_choice"] = {
        type: "allowed_tools",
        mode: choice.required ? "required" : "auto",
        tools: choice.names.map((name) => ({ type: "function", name })),
      };
      break;
    case "hosted":
      if (choice.dialect !== DIALECT) throw cannotCarry("tool_choice");
      body["tool_choice"] = choice.value;
  }
}
