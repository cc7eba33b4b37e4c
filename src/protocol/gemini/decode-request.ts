// Reads a Gemini generateContent request into the canonical form; model and streaming come from the address.
// Refuses bodies without contents; unknown fields and parts are kept, not judged.
import { defined } from "../assemble.ts";
import type {
  CanonicalRequest,
  HostedKind,
  JsonObject,
  MediaSource,
  Message,
  Part,
  Reasoning,
  Signature,
  Tool,
} from "../canonical.ts";
import { invalidField, readFields } from "../carry.ts";
import type { FieldReader } from "../carry.ts";
import type { DecodeContext } from "../dialect.ts";
import { asBoolean, asList, asNumber, asObject, asString, rest } from "../json.ts";
import { openProof } from "../signatures.ts";
import { camel, MADE_ID, MUST_CARRY, REQUEST_FIELDS, toJsonSchema } from "./wire.ts";

const DIALECT = "gemini";
/** Fields of generationConfig with a canonical place. */
const CONFIG_FIELDS: ReadonlySet<string> = new Set([
  "maxOutputTokens",
  "temperature",
  "topP",
  "topK",
  "frequencyPenalty",
  "presencePenalty",
  "seed",
  "stopSequences",
  "candidateCount",
  "responseLogprobs",
  "logprobs",
  "responseModalities",
  "responseMimeType",
  "responseSchema",
  "responseJsonSchema",
  "thinkingConfig",
]);

/** Throws a client failure when contents are missing; `context.model` is the model of the address. */
export function decodeRequest(body: unknown, context: DecodeContext = {}): CanonicalRequest {
  const raw = asObject(body);
  if (!raw) throw invalidField("body");
  const wire = camel(raw);
  const model = context.model ?? asString(wire["model"])?.replace(/^models\//, "");
  if (!model) throw invalidField("model");
  const contents = wire["contents"];
  if (!Array.isArray(contents) && !asObject(contents)) throw invalidField("contents");

  const fields = readFields(wire, REQUEST_FIELDS, MUST_CARRY);
  const request: CanonicalRequest = {
    dialect: DIALECT,
    model,
    messages: [],
    settings: {},
    extras: {},
    mustCarry: fields.mustCarry,
    ownForms: ["generationConfig", "tools", "toolConfig"],
  };
  const ids = callIds();
  const system = asObject(wire["systemInstruction"]);
  if (system) {
    const message = decodeContent(system, 0, ids);
    const role = system["role"] ?? null;
    request.messages.push({ ...message, role: "system", topLevel: true, extra: { ...message.extra, role } });
  }
  if (typeof wire["systemInstruction"] === "string") {
    const text = wire["systemInstruction"];
    request.messages.push({ role: "system", topLevel: true, parts: [{ type: "text", text }] });
  }
  const list = Array.isArray(contents) ? contents : [contents];
  list.forEach((content, index) => {
    const object = asObject(content);
    if (!object) throw invalidField(`contents[${index}]`);
    request.messages.push(decodeContent(camel(object), index, ids));
  });
  readConfig(fields, request);
  readTools(fields, request);
  if (context.stream !== undefined) request.stream = context.stream;
  const extras = fields.extras();
  if (Object.keys(extras).length > 0) request.extras[DIALECT] = extras;
  return request;
}

/**
 * Ids for calls and results that carry none: by position, so that they are the same every time the conversation is
 * sent; a result belongs to the oldest call of its name that has no result yet.
 */
interface CallIds {
  forCall: (id: string | undefined, name: string, place: string) => string;
  forResult: (id: string | undefined, name: string, place: string) => string;
}

function callIds(): CallIds {
  const open: { id: string; name: string }[] = [];
  return {
    forCall(id, name, place) {
      const known = id || `${MADE_ID}${place}`;
      open.push({ id: known, name });
      return known;
    },
    forResult(id, name, place) {
      const at = open.findIndex((call) => (id ? call.id === id : call.name === name));
      const call = at === -1 ? undefined : open.splice(at, 1)[0];
      return id || call?.id || `${MADE_ID}${place}`;
    },
  };
}

function decodeContent(wire: JsonObject, index: number, ids: CallIds): Message {
  const extra = rest(wire, ["role", "parts"]);
  const role = asString(wire["role"]);
  const single = asObject(wire["parts"]);
  const parts = (single ? [single] : asList(wire["parts"])).map((part, at) =>
    decodePart(part, `${index}_${at}`, ids),
  );
  const message: Message = { role: role === "model" ? "assistant" : "user", parts, ...defined({ extra }) };
  // The role may be left out, and functions once answered under their own.
  if (role !== "user" && role !== "model")
    message.extra = { ...extra, ...defined({ role: wire["role"] ?? null }) };
  return message;
}

function decodePart(value: unknown, place: string, ids: CallIds): Part {
  const raw = asObject(value);
  if (!raw) return { type: "opaque", dialect: DIALECT, name: "part", value };
  const wire = camel(raw);
  const signed = asString(wire["thoughtSignature"]);
  const opened = signed ? openProof(signed, DIALECT) : undefined;
  const signature = opened?.signature;
  const more = (...known: string[]): { extra?: JsonObject } =>
    defined({ extra: rest(wire, ["thoughtSignature", ...known]) });
  const text = asString(wire["text"]);
  if (text !== undefined) {
    if (wire["thought"] === true) {
      const proof = defined({ signature, redacted: opened?.redacted || undefined });
      return { type: "thinking", text, ...proof, ...more("text", "thought") };
    }
    return { type: "text", text, ...defined({ signature }), ...more("text") };
  }
  const call = asObject(wire["functionCall"]);
  if (call) {
    const name = asString(call["name"]) ?? "";
    const id = ids.forCall(asString(call["id"]), name, place);
    const input = JSON.stringify(call["args"] ?? {});
    // What stands beside id, name and args is kept, as is whether the arguments were left out.
    const odd = rest(call, ["id", "name", "args"]) ?? (call["args"] === undefined ? {} : undefined);
    const extra = odd ? { ...more("functionCall").extra, functionCall: call } : more("functionCall").extra;
    return { type: "tool-call", id, name, input, ...defined({ signature, extra }) };
  }
  const result = asObject(wire["functionResponse"]);
  if (result) {
    const name = asString(result["name"]) ?? "";
    const id = ids.forResult(asString(result["id"]), name, place);
    const { response } = result;
    const content = [
      resultText(response),
      ...asList(result["parts"]).map((part) => decodePart(part, place, ids)),
    ];
    const isError = asObject(response)?.["error"] !== undefined ? true : undefined;
    const extra = { ...more("functionResponse").extra, functionResponse: result };
    return { type: "tool-result", id, name, content, value: response, extra, ...defined({ isError }) };
  }
  return (
    decodeMedia(wire, more, signature) ?? {
      type: "opaque",
      dialect: DIALECT,
      name: Object.keys(wire)[0] ?? "part",
      value,
      // What a hosted tool did is only a record.
      ...(wire["executableCode"] || wire["codeExecutionResult"] || wire["toolCall"] || wire["toolResponse"]
        ? { droppable: true }
        : {}),
    }
  );
}

/** The one text field of the usual wrappings, or the response as JSON. */
function resultText(response: unknown): Part {
  const object = asObject(response);
  const keys = Object.keys(object ?? {});
  const only = keys.length === 1 && ["output", "result", "error", "content"].includes(keys[0] ?? "");
  const inner = only && keys[0] !== undefined ? object?.[keys[0]] : response;
  return { type: "text", text: typeof inner === "string" ? inner : (JSON.stringify(inner) ?? "") };
}

function decodeMedia(
  wire: JsonObject,
  more: (...known: string[]) => { extra?: JsonObject },
  signature: Signature | undefined,
): Part | undefined {
  const inline = asObject(wire["inlineData"]);
  const file = asObject(wire["fileData"]);
  const found = inline ?? file;
  if (!found) return undefined;
  const blob = camel(found);
  const mime = asString(blob["mimeType"]);
  const name = asString(blob["displayName"]);
  const data = asString(blob["data"]);
  const uri = asString(blob["fileUri"]);
  let source: MediaSource;
  if (inline && data !== undefined)
    source = { kind: "base64", mime: mime ?? "application/octet-stream", data };
  else if (uri === undefined) return undefined;
  else if (ownAddress(uri)) source = { kind: "stored", id: uri, dialect: DIALECT, ...defined({ mime }) };
  else source = { kind: "url", url: uri, ...defined({ mime }) };
  const others = more(inline ? "inlineData" : "fileData");
  if (mime?.startsWith("image/")) return { type: "image", source, ...defined({ signature }), ...others };
  if (mime?.startsWith("audio/")) return { type: "audio", source, ...others };
  return { type: "file", source, ...defined({ name }), ...others };
}

/** Stored files, buckets and videos that only Google can read. */
function ownAddress(uri: string): boolean {
  return /^gs:|^https:\/\/(generativelanguage\.googleapis\.com|(www\.)?youtube\.com|youtu\.be)\//.test(uri);
}

function readConfig(fields: FieldReader, request: CanonicalRequest): void {
  const given = fields.object("generationConfig");
  if (!given) return;
  const config = camel(given);
  const inner = readFields(config, CONFIG_FIELDS);
  request.settings = defined({
    maxOutputTokens: inner.number("maxOutputTokens"),
    temperature: inner.number("temperature"),
    topP: inner.number("topP"),
    topK: inner.number("topK"),
    frequencyPenalty: inner.number("frequencyPenalty"),
    presencePenalty: inner.number("presencePenalty"),
    seed: inner.number("seed"),
    stop: inner.list("stopSequences") as string[] | undefined,
    n: inner.number("candidateCount"),
    logprobs: inner.boolean("responseLogprobs"),
    topLogprobs: inner.number("logprobs"),
    modalities: inner.list("responseModalities") as string[] | undefined,
  });
  const mime = inner.string("responseMimeType");
  const schema = config["responseJsonSchema"] ?? toJsonSchema(config["responseSchema"]);
  if (schema !== undefined) request.responseFormat = { type: "json-schema", schema };
  else if (mime === "application/json") request.responseFormat = { type: "json" };
  else if (mime === "text/plain") request.responseFormat = { type: "text" };
  const thinking = inner.object("thinkingConfig");
  if (thinking) request.reasoning = decodeThinking(camel(thinking));
  // The whole stays for the way home; elsewhere only what has no canonical place counts as dropped.
  fields.extras()["generationConfig"] = config;
  request.alsoLost = Object.keys(inner.extras()).map((key) => `generationConfig.${key}`);
}

function decodeThinking(wire: JsonObject): Reasoning {
  const reasoning: Reasoning = {};
  const budget = asNumber(wire["thinkingBudget"]);
  if (budget === 0) reasoning.mode = "off";
  else if (budget === -1) reasoning.mode = "adaptive";
  else if (budget !== undefined) reasoning.budgetTokens = budget;
  const level = asString(wire["thinkingLevel"]);
  if (level) reasoning.effort = level.toLowerCase();
  const isShown = asBoolean(wire["includeThoughts"]);
  if (isShown !== undefined) reasoning.summary = isShown ? "auto" : "none";
  return reasoning;
}

const HOSTED: Readonly<Record<string, HostedKind>> = {
  googleSearch: "web-search",
  googleSearchRetrieval: "web-search",
  codeExecution: "code-execution",
  urlContext: "url-context",
  fileSearch: "file-search",
};

/** One wire tool may hold many functions and several hosted tools; the wire list stays for the way home. */
function readTools(fields: FieldReader, request: CanonicalRequest): void {
  const list = fields.list("tools");
  if (list) {
    request.tools = list.flatMap((value) => decodeTool(camel(asObject(value) ?? {})));
    fields.leave("tools");
  }
  const config = fields.object("toolConfig");
  if (!config) return;
  fields.leave("toolConfig");
  const calling = asObject(camel(config)["functionCallingConfig"]);
  if (!calling) return;
  const wire = camel(calling);
  const names = asList(wire["allowedFunctionNames"]).filter((name) => typeof name === "string");
  const mode = asString(wire["mode"]);
  const only = names[0];
  if (mode === "ANY" && names.length === 1 && only !== undefined)
    request.toolChoice = { mode: "tool", name: only };
  else if (names.length > 0) request.toolChoice = { mode: "allowed", names, required: mode === "ANY" };
  else if (mode === "ANY") request.toolChoice = { mode: "any" };
  else if (mode === "NONE") request.toolChoice = { mode: "none" };
  else if (mode === "AUTO" || mode === "VALIDATED") request.toolChoice = { mode: "auto" };
}

function decodeTool(wire: JsonObject): Tool[] {
  const tools: Tool[] = [];
  for (const key in wire) {
    if (key === "functionDeclarations") {
      for (const value of asList(wire[key])) {
        const item = camel(asObject(value) ?? {});
        tools.push({
          type: "function",
          name: asString(item["name"]) ?? "",
          ...defined({
            description: asString(item["description"]),
            schema: item["parametersJsonSchema"] ?? toJsonSchema(item["parameters"]),
            extra: rest(item, ["name", "description", "parameters", "parametersJsonSchema"]),
          }),
        });
      }
    } else {
      const value = asObject(wire[key]) ?? {};
      tools.push({ type: "hosted", hosted: HOSTED[key] ?? "other", name: key, dialect: DIALECT, value });
    }
  }
  return tools;
}
