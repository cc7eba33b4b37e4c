// Writes a canonical request as Gemini generateContent; model and streaming go into the address, not the body.
// Refuses by name what this protocol has no words for, and media by address that nobody fetched.
import { defined } from "../assemble.ts";
import type {
  CanonicalRequest,
  EncodedRequest,
  FilePart,
  JsonObject,
  Message,
  Part,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
} from "../canonical.ts";
import { toolNames } from "../canonical.ts";
import { cannotCarry, carryExtras, drop, leaveOpaque } from "../carry.ts";
import { askedOf } from "../client-tools.ts";
import { asFunction } from "../custom-tools.ts";
import type { EncodeContext } from "../dialect.ts";
import { asObject, parseJson } from "../json.ts";
import { budgetOf } from "../reasoning.ts";
import { mergeThinking, mergeTurns, splitSystem, systemText } from "../turns.ts";
import { searchFor } from "../web-search.ts";
import { leastBudget } from "./thinking.ts";
import { MADE_ID } from "./wire.ts";

const DIALECT = "gemini";
/** The largest budget that every thinking model of the family accepts. */
const MAX_BUDGET = 24_576;
/** Google's documented word for calls that another model made, where signatures are required (since Gemini 3). */
const UNSIGNED_CALL = "skip_thought_signature_validator";

/** Since Gemini 3 a call without a proof is refused. */
function signsCalls(model: string): boolean {
  return /gemini-([3-9]|\d\d)/.test(model);
}

export function encodeRequest(given: CanonicalRequest, context: EncodeContext = {}): EncodedRequest {
  const home = given.dialect === DIALECT;
  const { request, dropped } = home ? { request: given, dropped: [] } : askedOf(given);
  const body: JsonObject = {};
  const model = context.model ?? request.model;
  if (home) writeOwn(request, model, body, dropped);
  else {
    writeContents(request, model, body, dropped);
    writeConfig(request, model, body, dropped);
    writeTools(request, body, dropped);
  }
  carryExtras(request, DIALECT, body, dropped);
  return { body, dropped };
}

function writeOwn(request: CanonicalRequest, model: string, body: JsonObject, dropped: string[]): void {
  const top = request.messages.find((message) => message.topLevel);
  const write = (message: Message, role?: string): JsonObject => {
    const { role: givenRole, ...extra } = message.extra ?? {};
    const name = message.extra && "role" in message.extra ? givenRole : role;
    return {
      ...(name === undefined || name === null ? {} : { role: name }),
      parts: message.parts.map((part) => ownPart(part, model, dropped)).filter((part) => part !== undefined),
      ...extra,
    };
  };
  if (top) body["systemInstruction"] = write(top);
  body["contents"] = request.messages
    .filter((message) => message !== top)
    .map((message) => write(message, message.role === "assistant" ? "model" : "user"));
}

/** A part of a Gemini request in its own form again; other providers' proofs are taken out. */
function ownPart(part: Part, model: string, dropped: string[]): unknown {
  if (part.type === "opaque") return part.value;
  const signature = "signature" in part ? part.signature : undefined;
  if (signature && signature.dialect !== DIALECT) {
    if (part.type === "thinking") {
      drop(dropped, "thinking");
      return undefined;
    }
    const stripped: Part = { ...part };
    delete (stripped as { signature?: unknown }).signature;
    const wire = ownPart(stripped, model, dropped) as JsonObject;
    return part.type === "tool-call" && signsCalls(model)
      ? { ...wire, thoughtSignature: UNSIGNED_CALL }
      : wire;
  }
  const signed = signature ? { thoughtSignature: signature.value } : {};
  switch (part.type) {
    case "text":
      return { text: part.text, ...signed, ...part.extra };
    case "thinking":
      return { text: part.text, thought: true, ...signed, ...part.extra };
    case "tool-call":
      return { functionCall: functionCall(part, part.id.startsWith(MADE_ID)), ...signed, ...part.extra };
    case "tool-result":
      return { ...part.extra };
    default:
      return { ...mediaPart(part), ...signed, ...part.extra };
  }
}

function functionCall(part: ToolCallPart, withoutId: boolean): JsonObject {
  const args = part.custom ? { input: part.input } : part.input.trim() === "" ? {} : parseJson(part.input);
  return {
    ...(withoutId ? {} : { id: part.id }),
    name: part.name,
    args: asObject(args) ?? { input: args === undefined ? part.input : args },
  };
}

function writeContents(request: CanonicalRequest, model: string, body: JsonObject, dropped: string[]): void {
  const { system, turns } = splitSystem(request.messages);
  for (const part of system.flatMap((message) => message.parts)) {
    if (part.type !== "text") throw cannotCarry(`system.${part.type}`);
    if (part.cache) drop(dropped, "cache_control");
  }
  const text = systemText(system);
  if (text !== "") body["systemInstruction"] = { parts: [{ text }] };
  if (turns.some((turn) => turn.name !== undefined)) drop(dropped, "messages.name");
  const names = toolNames(turns);
  const signCalls = signsCalls(model);
  const merged = mergeTurns(
    turns.map((turn) => ({ ...turn, name: undefined })),
    (role) => (role === "assistant" ? "model" : "user"),
  );
  const contents: JsonObject[] = [];
  for (const turn of merged) {
    const parts = encodeTurn(turn, names, signCalls, dropped);
    if (parts.length > 0) contents.push({ role: turn.role === "assistant" ? "model" : "user", parts });
  }
  body["contents"] = contents;
}

function encodeTurn(
  turn: Message,
  names: Map<string, string>,
  signCalls: boolean,
  dropped: string[],
): JsonObject[] {
  const out: JsonObject[] = [];
  /** A signature whose own part was empty: it belongs to the part behind it. */
  let pending: string | undefined;
  let firstCall = true;
  for (const part of mergeThinking(turn.parts)) {
    if (part.cache) drop(dropped, "cache_control");
    switch (part.type) {
      case "thinking": {
        const signature = ownSignature(part);
        if (signature === undefined) {
          if (part.text || part.redacted) drop(dropped, "thinking");
        } else if (part.text === "") pending = signature;
        else out.push({ text: part.text, thought: true, thoughtSignature: signature });
        break;
      }
      case "tool-call": {
        const wire: JsonObject = { functionCall: functionCall(part, true) };
        const own = part.signature?.dialect === DIALECT ? part.signature.value : pending;
        // Only the first of parallel calls is signed.
        const signature = own ?? (signCalls && firstCall ? UNSIGNED_CALL : undefined);
        if (signature !== undefined) wire["thoughtSignature"] = signature;
        pending = undefined;
        firstCall = false;
        out.push(wire);
        break;
      }
      case "tool-result":
        out.push(...encodeResult(part, names, dropped));
        break;
      case "text":
        // Empty parts are refused upstream.
        if (part.text === "" && pending === undefined) break;
        out.push({ text: part.text, ...defined({ thoughtSignature: pending }) });
        pending = undefined;
        break;
      case "opaque":
        leaveOpaque(part, dropped);
        break;
      default:
        if (part.type === "image" && part.detail !== undefined && part.detail !== "auto")
          drop(dropped, "image.detail");
        out.push(mediaPart(part));
    }
  }
  return out;
}

function ownSignature(part: ThinkingPart): string | undefined {
  return part.signature?.dialect === DIALECT ? part.signature.value : undefined;
}

function encodeResult(part: ToolResultPart, names: Map<string, string>, dropped: string[]): JsonObject[] {
  const texts: string[] = [];
  const media: JsonObject[] = [];
  for (const inner of part.content) {
    if (inner.cache) drop(dropped, "cache_control");
    if (inner.type === "text") texts.push(inner.text);
    else if (inner.type === "image" || inner.type === "audio" || inner.type === "file")
      media.push(mediaPart(inner));
    else throw cannotCarry(inner.type === "opaque" ? inner.name : `tool-result.${inner.type}`);
  }
  const text = texts.join("\n");
  const response = part.isError ? { error: text } : (asObject(parseJson(text)) ?? { output: text });
  const name = part.name ?? names.get(part.id) ?? part.id;
  return [{ functionResponse: { name, response } }, ...media];
}

function mediaPart(part: Extract<Part, { type: "image" | "audio" | "file" }>): JsonObject {
  const { source } = part;
  const displayName = part.type === "file" ? (part as FilePart).name : undefined;
  switch (source.kind) {
    case "text":
      return { text: source.text };
    case "base64":
      return { inlineData: { mimeType: source.mime, data: source.data, ...defined({ displayName }) } };
    case "stored":
      if (source.dialect !== DIALECT) throw cannotCarry("file_id");
      return { fileData: { fileUri: source.id, ...defined({ mimeType: source.mime, displayName }) } };
    case "url":
      if (source.mime === undefined) throw cannotCarry(`${part.type}.url`);
      return { fileData: { fileUri: source.url, ...defined({ mimeType: source.mime, displayName }) } };
  }
}

function writeConfig(request: CanonicalRequest, model: string, body: JsonObject, dropped: string[]): void {
  const { settings, responseFormat: format } = request;
  const config: JsonObject = defined({
    maxOutputTokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    topP: settings.topP,
    topK: settings.topK,
    frequencyPenalty: settings.frequencyPenalty,
    presencePenalty: settings.presencePenalty,
    seed: settings.seed,
    stopSequences: settings.stop,
    candidateCount: settings.n,
    responseLogprobs: settings.logprobs ?? (settings.topLogprobs ? true : undefined),
    logprobs: settings.topLogprobs,
    responseModalities: settings.modalities?.map((kind) => kind.toUpperCase()),
  });
  if (format?.type === "json") config["responseMimeType"] = "application/json";
  else if (format?.type === "json-schema") {
    config["responseMimeType"] = "application/json";
    if (format.schema !== undefined) config["responseJsonSchema"] = format.schema;
  } else if (format?.type === "text") config["responseMimeType"] = "text/plain";
  const thinking = encodeThinking(request, model, dropped);
  if (thinking) config["thinkingConfig"] = thinking;
  if (Object.keys(config).length > 0) body["generationConfig"] = config;
  if (settings.speech !== undefined) throw cannotCarry("audio");
  if (settings.parallelToolCalls === false) drop(dropped, "parallel_tool_calls");
  if (settings.endUser !== undefined) drop(dropped, "user");
  if (settings.metadata) drop(dropped, "metadata");
  if (settings.serviceTier !== undefined) drop(dropped, "service_tier");
  if (settings.verbosity !== undefined) drop(dropped, "verbosity");
}

/** The first models of the family refuse to be asked for thoughts. */
const NO_THOUGHTS = /gemini-(?:1|2\.0)(?!.*thinking)/;

function encodeThinking(request: CanonicalRequest, model: string, dropped: string[]): JsonObject | undefined {
  const { reasoning } = request;
  if (!reasoning) return undefined;
  const isOff = reasoning.mode === "off" || reasoning.effort === "none";
  if (NO_THOUGHTS.test(model)) {
    if (!isOff) drop(dropped, "reasoning");
    return undefined;
  }
  if (isOff) return { thinkingBudget: leastBudget(model) };
  const wire: JsonObject = {};
  const budget = budgetOf(reasoning);
  if (budget !== undefined) wire["thinkingBudget"] = Math.min(budget, MAX_BUDGET);
  else if (reasoning.mode === "adaptive") wire["thinkingBudget"] = -1;
  if (reasoning.summary !== undefined && reasoning.summary !== "none") wire["includeThoughts"] = true;
  if (Object.keys(wire).length > 0) return wire;
  drop(dropped, "reasoning");
  return undefined;
}

const HOSTED: Readonly<Record<string, string>> = {
  "web-search": "googleSearch",
  "code-execution": "codeExecution",
  "url-context": "urlContext",
};

function writeTools(request: CanonicalRequest, body: JsonObject, dropped: string[]): void {
  const declarations: JsonObject[] = [];
  const hosted: JsonObject[] = [];
  for (const given of request.tools ?? []) {
    if (given.type === "hosted") {
      const name = HOSTED[given.hosted];
      if (!name) throw cannotCarry(`tools.${given.name}`);
      hosted.push({ [name]: given.hosted === "web-search" ? searchFor(DIALECT, given, dropped) : {} });
      continue;
    }
    const tool = given.type === "custom" ? asFunction(given, dropped) : given;
    if (tool.cache) drop(dropped, "cache_control");
    if (tool.strict) drop(dropped, "tools.strict");
    const { name, description, schema } = tool;
    declarations.push({ name, ...defined({ description, parametersJsonSchema: schema }) });
  }
  const list = [...(declarations.length > 0 ? [{ functionDeclarations: declarations }] : []), ...hosted];
  if (list.length > 0) body["tools"] = list;
  const choice = request.toolChoice;
  if (!choice) return;
  const calling = (mode: string, allowedFunctionNames?: string[]): void => {
    body["toolConfig"] = { functionCallingConfig: { mode, ...defined({ allowedFunctionNames }) } };
  };
  switch (choice.mode) {
    case "auto":
      return calling(request.spelling?.["toolChoice"] === "validated" ? "VALIDATED" : "AUTO");
    case "none":
      return calling("NONE");
    case "any":
      return calling("ANY");
    case "tool":
      return calling("ANY", [choice.name]);
    case "allowed":
      // A list of names is only heard in mode ANY and VALIDATED; the latter leaves the choice to the model.
      return calling(choice.required ? "ANY" : "VALIDATED", choice.names);
    case "hosted":
      throw cannotCarry("tool_choice");
  }
}
