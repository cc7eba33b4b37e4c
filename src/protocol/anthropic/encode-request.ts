// Writes a canonical request as Anthropic Messages.
// Refuses by name what this protocol has no words for; unsigned thinking is never sent.
import { defined } from "../assemble.ts";
import type {
  CanonicalRequest,
  EncodedRequest,
  JsonObject,
  Message,
  Part,
  Tool,
  ToolCallPart,
} from "../canonical.ts";
import { cannotCarry, carryExtras, drop, leaveOpaque } from "../carry.ts";
import { askedOf } from "../client-tools.ts";
import { asFunction } from "../custom-tools.ts";
import type { EncodeContext } from "../dialect.ts";
import { asObject, parseJson } from "../json.ts";
import { budgetOf, effortOf } from "../reasoning.ts";
import { mergeThinking, mergeTurns, splitSystem, systemText } from "../turns.ts";
import { searchFor } from "../web-search.ts";
import { modelTraits } from "./models.ts";
import { closedSchema } from "./schema.ts";
import { dropSampling, mayThink, openTurnLacksThinking, SHOWN_ADAPTIVE } from "./thinking.ts";
import { HOSTED_TOOLS } from "./wire.ts";

const DIALECT = "anthropic";
const MIN_BUDGET = 1024;
const DEFAULT_MAX_TOKENS = 8192;
/** What stands for a user's turn of nothing to read. */
const BLANK_TURN = ".";

/** Throws `unsupported_field` for audio, several answers, free-text tools and the like. */
export function encodeRequest(given: CanonicalRequest, context: EncodeContext = {}): EncodedRequest {
  const home = given.dialect === DIALECT;
  const { request, dropped } = home ? { request: given, dropped: [] } : askedOf(given);
  const body: JsonObject = { model: context.model ?? request.model };
  writeMessages(request, home, body, dropped);
  if (request.stream !== undefined) body["stream"] = request.stream;
  writeSettings(request, home, body, dropped);
  const tools = allowedTools(request);
  if (tools && (home || tools.length > 0))
    body["tools"] = tools.map((tool) => encodeTool(tool, home, dropped));
  writeToolChoice(request, home, body);
  if (home) writeOwnReasoning(request, body);
  else writeReasoning(request, context, body, dropped);
  const format = request.responseFormat;
  if (format?.type === "json-schema") {
    const schema = home
      ? format.schema
      : closedSchema(format.schema, () => drop(dropped, "response_format.additionalProperties"));
    body["output_config"] = { ...asObject(body["output_config"]), format: { type: "json_schema", schema } };
    if (!home && format.strict === false) drop(dropped, "response_format.strict");
  } else if (format?.type === "json") drop(dropped, "response_format");
  if (home) restoreOwn(request, body);
  if (home && dropped.includes("thinking") && body["thinking"] && openTurnLacksThinking(body["messages"])) {
    delete body["thinking"];
    drop(dropped, "reasoning");
  }
  carryExtras(request, DIALECT, body, dropped);
  body["max_tokens"] ??= context.defaultMaxOutputTokens ?? DEFAULT_MAX_TOKENS;
  return { body, dropped };
}

/** Objects that were kept whole win over what was rebuilt from their known fields. */
function restoreOwn(request: CanonicalRequest, body: JsonObject): void {
  for (const key of ["output_config", "metadata", "thinking"]) {
    const kept = request.extras[DIALECT]?.[key];
    if (kept !== undefined) body[key] = kept;
  }
}

function writeSettings(request: CanonicalRequest, home: boolean, body: JsonObject, dropped: string[]): void {
  const { settings } = request;
  if ((settings.n ?? 1) > 1) throw cannotCarry("n");
  if (settings.modalities?.some((kind) => kind.toLowerCase() !== "text")) throw cannotCarry("modalities");
  let { temperature } = settings;
  if (!home && temperature !== undefined && temperature > 1) {
    temperature = 1;
    drop(dropped, "temperature");
  }
  const tier = settings.serviceTier;
  // `auto` is the usual tier elsewhere, and here the only word for the dear one.
  const tiers: Record<string, string> = { auto: "standard_only", default: "standard_only", priority: "auto" };
  if (!home && tier !== undefined && !tiers[tier]) drop(dropped, "service_tier");
  Object.assign(
    body,
    defined({
      max_tokens: settings.maxOutputTokens,
      temperature,
      top_p: settings.topP,
      top_k: settings.topK,
      stop_sequences: home ? settings.stop : settings.stop?.filter((word) => word.trim() !== ""),
      metadata: settings.endUser === undefined ? undefined : { user_id: settings.endUser },
      service_tier: tier === undefined || home ? tier : tiers[tier],
    }),
  );
  if (home) return;
  if (settings.frequencyPenalty) drop(dropped, "frequency_penalty");
  if (settings.presencePenalty) drop(dropped, "presence_penalty");
  if (settings.seed !== undefined) drop(dropped, "seed");
  if (settings.logprobs) drop(dropped, "logprobs");
  if (settings.topLogprobs) drop(dropped, "top_logprobs");
  if (settings.metadata) drop(dropped, "metadata");
  if (settings.verbosity !== undefined) drop(dropped, "verbosity");
}

function writeOwnReasoning(request: CanonicalRequest, body: JsonObject): void {
  const { reasoning } = request;
  if (!reasoning) return;
  const { mode, budgetTokens, effort, extra } = reasoning;
  const type = mode === "on" ? "enabled" : mode === "off" ? "disabled" : mode;
  if (type) body["thinking"] = { type, ...defined({ budget_tokens: budgetTokens }), ...extra };
  if (effort !== undefined) body["output_config"] = { effort };
}

/** Thinking needs room: its budget lies between 1024 and the answer limit, of which it leaves a fifth for the answer. */
function writeReasoning(
  request: CanonicalRequest,
  context: EncodeContext,
  body: JsonObject,
  dropped: string[],
): void {
  const { reasoning } = request;
  if (!reasoning) return;
  const traits = modelTraits(String(body["model"]));
  const isOff = reasoning.mode === "off" || reasoning.effort === "none" || reasoning.budgetTokens === 0;
  if (!traits.thinks) {
    if (!isOff) drop(dropped, "reasoning");
    return;
  }
  if (isOff) {
    body["thinking"] = { type: "disabled" };
    return;
  }
  const effort = effortOf(reasoning);
  const style = context.thinkingStyle ?? traits.style;
  const isRefused = !mayThink(body, style);
  if (style === "effort") {
    if (effort !== undefined) body["output_config"] = { effort: effort === "minimal" ? "low" : effort };
    if (isRefused) {
      drop(dropped, "reasoning");
      return;
    }
    body["thinking"] = reasoning.summary === "none" ? { type: "adaptive" } : SHOWN_ADAPTIVE;
    dropSampling(body, dropped, 1);
    return;
  }
  const wanted = budgetOf(reasoning);
  if (wanted === undefined || wanted < 0) return;
  if (isRefused) {
    drop(dropped, "reasoning");
    return;
  }
  const budget = Math.max(MIN_BUDGET, wanted);
  const limit = request.settings.maxOutputTokens;
  if (limit === undefined) {
    body["thinking"] = { type: "enabled", budget_tokens: budget };
    body["max_tokens"] = budget + (context.defaultMaxOutputTokens ?? DEFAULT_MAX_TOKENS);
  } else if (limit <= MIN_BUDGET) {
    drop(dropped, "reasoning");
    return;
  } else {
    const room = Math.max(MIN_BUDGET, Math.floor(limit * 0.8));
    body["thinking"] = { type: "enabled", budget_tokens: Math.min(budget, room) };
  }
  dropSampling(body, dropped, 0.95);
}

function writeMessages(request: CanonicalRequest, home: boolean, body: JsonObject, dropped: string[]): void {
  if (home) {
    const top = request.messages.find((message) => message.topLevel);
    if (top) body["system"] = encodeContent(top, true, dropped);
    body["messages"] = request.messages
      .filter((message) => !message.topLevel)
      .map((message) => ({
        role: message.role,
        content: encodeContent(message, true, dropped),
        ...message.extra,
      }));
    return;
  }
  const { system, turns } = splitSystem(request.messages);
  if (system.length > 0) {
    for (const part of system.flatMap((message) => message.parts)) {
      if (part.type !== "text") throw cannotCarry(`system.${part.type}`);
    }
    const text = systemText(system);
    if (text.trim() !== "") body["system"] = text;
  }
  const merged = mergeTurns(
    turns.map((turn) => ({ ...turn, name: undefined })),
    (role) => (role === "assistant" ? "assistant" : "user"),
  );
  if (turns.some((turn) => turn.name !== undefined)) drop(dropped, "messages.name");
  const list: JsonObject[] = [];
  for (const turn of merged) {
    // Results must come first in their message.
    const parts = [
      ...turn.parts.filter((part) => part.type === "tool-result"),
      ...turn.parts.filter((part) => part.type !== "tool-result"),
    ];
    const content = encodeContent({ ...turn, parts, bare: undefined }, false, dropped);
    const role = turn.role === "assistant" ? "assistant" : "user";
    if (Array.isArray(content) && content.length > 0) list.push({ role, content });
    else if (role === "user" && turn.parts.some((part) => part.type === "text")) {
      // Without this turn the request would be another: an empty one, or the beginning of an answer to go on with.
      list.push({ role, content: [{ type: "text", text: BLANK_TURN }] });
      drop(dropped, "messages.content");
    }
  }
  body["messages"] = list;
}

function encodeContent(message: Message, home: boolean, dropped: string[]): unknown {
  const first = message.parts[0];
  if (message.bare === "string" && first?.type === "text") return first.text;
  const parts = home ? message.parts : mergeThinking(message.parts);
  return parts.map((part) => encodeBlock(part, home, dropped)).filter((block) => block !== undefined);
}

function encodeBlock(part: Part, home: boolean, dropped: string[]): unknown {
  const more = { ...(home ? part.extra : undefined), ...(part.cache ? { cache_control: part.cache } : {}) };
  switch (part.type) {
    case "text":
      // Text blocks without a visible sign are refused upstream; other dialects allow them.
      return part.text.trim() === "" && !home ? undefined : { type: "text", text: part.text, ...more };
    case "thinking": {
      const { signature } = part;
      if (signature?.dialect !== DIALECT) {
        if (part.text || !signature) drop(dropped, "thinking");
        return undefined;
      }
      return part.redacted
        ? { type: "redacted_thinking", data: signature.value, ...more }
        : { type: "thinking", thinking: part.text, signature: signature.value, ...more };
    }
    case "tool-call":
      return {
        type: "tool_use",
        id: wireId(part.id, home),
        name: part.name,
        input: inputObject(part),
        ...more,
      };
    case "tool-result": {
      const wire: JsonObject = { type: "tool_result", tool_use_id: wireId(part.id, home) };
      const first = part.content[0];
      if (part.bare === "string" && first?.type === "text")
        wire["content"] = home || first.text.trim() !== "" ? first.text : "";
      else if (part.bare !== "none") {
        wire["content"] = part.content
          .map((inner) => encodeBlock(inner, home, dropped))
          .filter((block) => block !== undefined);
      }
      if (part.isError !== undefined) wire["is_error"] = part.isError;
      return { ...wire, ...more };
    }
    case "image":
      if (part.detail !== undefined && part.detail !== "auto") drop(dropped, "image.detail");
      return { type: "image", source: encodeSource(part.source, "image"), ...more };
    case "file":
      return {
        type: "document",
        source: encodeSource(part.source, "document"),
        ...defined({ title: part.name }),
        ...more,
      };
    case "audio":
      throw cannotCarry("audio");
    case "opaque":
      if (part.dialect === DIALECT) return part.value;
      leaveOpaque(part, dropped);
      return undefined;
  }
}

/** Anthropic allows letters, digits, _ and - in call ids; the same change is made to call and result. */
function wireId(id: string, home: boolean): string {
  return home ? id : id.replace(/[^a-zA-Z0-9_-]/g, "_") || "call";
}

/** Arguments must be an object: free text and broken JSON travel as its only field. */
function inputObject(call: ToolCallPart): unknown {
  if (call.custom) return { input: call.input };
  if (call.input.trim() === "") return {};
  const value = parseJson(call.input);
  return asObject(value) ?? { input: value === undefined ? call.input : value };
}

type Source = Extract<Part, { type: "image" | "file" }>["source"];

function encodeSource(source: Source, type: "image" | "document"): JsonObject {
  switch (source.kind) {
    case "text":
      return { type: "text", media_type: "text/plain", data: source.text };
    case "url":
      return { type: "url", url: source.url };
    case "stored":
      if (source.dialect !== DIALECT) throw cannotCarry("file_id");
      return { type: "file", file_id: source.id };
    case "base64":
      if (type === "document" && source.mime.startsWith("text/")) {
        return {
          type: "text",
          media_type: "text/plain",
          data: Buffer.from(source.data, "base64").toString(),
        };
      }
      if (type === "document" && source.mime !== "application/pdf")
        throw cannotCarry(`file (${source.mime})`);
      return { type: "base64", media_type: source.mime, data: source.data };
  }
}

/** The tools to offer: a choice limited to some names is a shorter list here. */
function allowedTools(request: CanonicalRequest): Tool[] | undefined {
  const choice = request.toolChoice;
  if (choice?.mode !== "allowed") return request.tools;
  return request.tools?.filter((tool) => tool.type === "hosted" || choice.names.includes(tool.name));
}

function encodeTool(given: Tool, home: boolean, dropped: string[]): JsonObject {
  if (given.type === "hosted") {
    if (given.dialect === DIALECT) return given.value;
    const wire = HOSTED_TOOLS[given.hosted];
    if (!wire) throw cannotCarry(`tools.${given.name}`);
    return given.hosted === "web-search" ? { ...wire, ...searchFor(DIALECT, given, dropped) } : wire;
  }
  const tool = given.type === "custom" ? asFunction(given, dropped) : given;
  const { name, description, schema, strict, cache } = tool;
  return {
    ...(home ? tool.extra : {}),
    name,
    ...defined({
      description,
      // The schema is required here; a function without parameters takes none.
      input_schema: schema ?? (home ? undefined : { type: "object", properties: {} }),
      strict,
      cache_control: cache,
    }),
  };
}

function writeToolChoice(request: CanonicalRequest, home: boolean, body: JsonObject): void {
  const choice = request.toolChoice;
  const parallel = request.settings.parallelToolCalls;
  const disable = parallel === undefined ? {} : { disable_parallel_tool_use: !parallel };
  if (!choice) {
    // Parallel calls are on by default: only switching them off needs saying.
    if (parallel === false && request.tools?.length) body["tool_choice"] = { type: "auto", ...disable };
    return;
  }
  if (choice.mode === "hosted") {
    if (choice.dialect !== DIALECT) throw cannotCarry("tool_choice");
    body["tool_choice"] = choice.value;
    return;
  }
  if (!home && !request.tools?.length) return;
  if (choice.mode === "tool") body["tool_choice"] = { type: "tool", name: choice.name, ...disable };
  else if (choice.mode === "none") body["tool_choice"] = { type: "none", ...(home ? disable : {}) };
  else if (choice.mode === "allowed") {
    body["tool_choice"] = { type: choice.required ? "any" : "auto", ...disable };
  } else body["tool_choice"] = { type: choice.mode, ...disable };
}
