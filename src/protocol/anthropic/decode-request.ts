// Reads an Anthropic Messages request into the canonical form.
// Refuses bodies without a model or a list of messages; unknown fields and blocks are kept, not judged.
import { defined } from "../assemble.ts";
import type {
  CanonicalRequest,
  JsonObject,
  Message,
  Part,
  Reasoning,
  Tool,
  ToolResultPart,
} from "../canonical.ts";
import { invalidField, readFields } from "../carry.ts";
import type { FieldReader } from "../carry.ts";
import type { DecodeContext } from "../dialect.ts";
import { asBoolean, asList, asNumber, asObject, asString, rest } from "../json.ts";
import { openProof } from "../signatures.ts";
import { hostedKind, MUST_CARRY, REQUEST_FIELDS } from "./wire.ts";

const DIALECT = "anthropic";

/** Throws a client failure when model or messages are missing or a message is no object. */
export function decodeRequest(body: unknown, context: DecodeContext = {}): CanonicalRequest {
  const wire = asObject(body);
  if (!wire) throw invalidField("body");
  const model = context.model ?? asString(wire["model"]);
  if (!model) throw invalidField("model");
  if (!Array.isArray(wire["messages"])) throw invalidField("messages");

  const fields = readFields(wire, REQUEST_FIELDS, MUST_CARRY);
  const request: CanonicalRequest = {
    dialect: DIALECT,
    model,
    messages: [],
    settings: {},
    extras: {},
    mustCarry: fields.mustCarry,
  };
  const system = wire["system"];
  if (typeof system === "string" || Array.isArray(system)) {
    request.messages.push({ ...decodeContent("system", system), topLevel: true });
  } else if (system !== undefined && system !== null) throw invalidField("system");
  else if (system === null) fields.leave("system");
  wire["messages"].forEach((message, index) => request.messages.push(decodeMessage(message, index)));

  readSettings(fields, request);
  readReasoning(fields, request);
  const tools = fields.list("tools");
  if (tools) request.tools = tools.map((tool, index) => decodeTool(tool, index));
  readToolChoice(fields, request);
  const stream = context.stream ?? fields.boolean("stream");
  if (stream !== undefined) request.stream = stream;
  const extras = fields.extras();
  if (Object.keys(extras).length > 0) request.extras[DIALECT] = extras;
  return request;
}

function readSettings(fields: FieldReader, request: CanonicalRequest): void {
  const stop = fields.list("stop_sequences");
  if (stop && !stop.every((item) => typeof item === "string")) throw invalidField("stop_sequences");
  const metadata = fields.object("metadata");
  const endUser = asString(metadata?.["user_id"]);
  if (metadata && (endUser === undefined || Object.keys(metadata).length > 1)) fields.leave("metadata");
  request.settings = defined({
    maxOutputTokens: fields.number("max_tokens"),
    temperature: fields.number("temperature"),
    topP: fields.number("top_p"),
    topK: fields.number("top_k"),
    stop: stop as string[] | undefined,
    serviceTier: fields.string("service_tier"),
    endUser,
  });
}

/** `thinking` says whether and how long, `output_config` how hard and in which form. */
function readReasoning(fields: FieldReader, request: CanonicalRequest): void {
  const thinking = fields.object("thinking");
  const config = fields.object("output_config");
  const reasoning: Reasoning = {};
  if (thinking) {
    const type = asString(thinking["type"]);
    const extra = rest(thinking, ["type", "budget_tokens"]);
    if (type === "enabled") reasoning.mode = "on";
    else if (type === "adaptive") reasoning.mode = "adaptive";
    else if (type === "disabled") reasoning.mode = "off";
    else fields.leave("thinking");
    const budget = asNumber(thinking["budget_tokens"]);
    if (budget !== undefined) reasoning.budgetTokens = budget;
    if (extra) reasoning.extra = extra;
    if (reasoning.mode === "on" || reasoning.mode === "adaptive") {
      reasoning.summary = thinking["display"] === "omitted" ? "none" : "auto";
    }
  }
  if (config) {
    const effort = asString(config["effort"]);
    if (effort !== undefined) reasoning.effort = effort;
    const format = asObject(config["format"]);
    if (format && format["type"] === "json_schema") {
      request.responseFormat = { type: "json-schema", schema: format["schema"] };
    }
    // The whole stays for the way home, where it wins over what is rebuilt from the two fields.
    if (
      Object.keys(config).length === 0 ||
      rest(config, ["effort", "format"]) ||
      config["format"] === null ||
      config["effort"] === null
    ) {
      fields.leave("output_config");
    } else if (format && (format["type"] !== "json_schema" || rest(format, ["type", "schema"]))) {
      fields.leave("output_config");
    }
  }
  if (Object.keys(reasoning).length > 0) request.reasoning = reasoning;
}

function decodeTool(value: unknown, index: number): Tool {
  const wire = asObject(value);
  if (!wire) throw invalidField(`tools[${index}]`);
  const type = asString(wire["type"]);
  const name = asString(wire["name"]) ?? "";
  if (type !== undefined && type !== "custom") {
    return { type: "hosted", hosted: hostedKind(type), name: type, dialect: DIALECT, value: wire };
  }
  const known = ["name", "description", "input_schema", "strict", "cache_control"];
  return {
    type: "function",
    name,
    ...defined({
      description: asString(wire["description"]),
      schema: wire["input_schema"],
      strict: asBoolean(wire["strict"]),
      cache: asObject(wire["cache_control"]),
      extra: rest(wire, known),
    }),
  };
}

function readToolChoice(fields: FieldReader, request: CanonicalRequest): void {
  const wire = fields.object("tool_choice");
  if (!wire) return;
  const type = asString(wire["type"]);
  const name = asString(wire["name"]);
  if (type === "auto" || type === "any" || type === "none") request.toolChoice = { mode: type };
  else if (type === "tool" && name !== undefined) request.toolChoice = { mode: "tool", name };
  else request.toolChoice = { mode: "hosted", dialect: DIALECT, value: wire };
  const disabled = asBoolean(wire["disable_parallel_tool_use"]);
  if (disabled !== undefined) request.settings.parallelToolCalls = !disabled;
}

function decodeMessage(value: unknown, index: number): Message {
  const wire = asObject(value);
  const role = wire?.["role"];
  if (!wire || (role !== "user" && role !== "assistant" && role !== "system")) {
    throw invalidField(`messages[${index}].role`);
  }
  const content = wire["content"];
  if (typeof content !== "string" && !Array.isArray(content))
    throw invalidField(`messages[${index}].content`);
  const message = decodeContent(role, content);
  const extra = rest(wire, ["role", "content"]);
  if (extra) message.extra = extra;
  return message;
}

function decodeContent(role: Message["role"], content: string | unknown[]): Message {
  return typeof content === "string"
    ? { role, parts: [{ type: "text", text: content }], bare: "string" }
    : { role, parts: content.map(decodeBlock) };
}

/** Blocks of hosted tools in the history: a record that other providers can do without. */
const RECORD = /^server_tool_use$|_tool_result$|^container_upload$/;

function decodeBlock(value: unknown): Part {
  const wire = asObject(value);
  const type = asString(wire?.["type"]) ?? "block";
  const opaque: Part = { type: "opaque", dialect: DIALECT, name: type, value };
  if (!wire) return opaque;
  const more = (known: readonly string[]): { extra?: JsonObject; cache?: JsonObject } =>
    defined({
      extra: rest(wire, ["type", ...known, ...(asObject(wire["cache_control"]) ? ["cache_control"] : [])]),
      cache: asObject(wire["cache_control"]),
    });
  switch (type) {
    case "text": {
      const text = asString(wire["text"]);
      return text === undefined ? opaque : { type: "text", text, ...more(["text"]) };
    }
    case "image":
    case "document":
      return decodeMedia(wire, type, more(["source", ...(type === "document" ? ["title"] : [])])) ?? opaque;
    case "thinking": {
      const signature = asString(wire["signature"]);
      const part: Part = { type: "thinking", text: asString(wire["thinking"]) ?? "" };
      if (signature) {
        const proof = openProof(signature, DIALECT);
        part.signature = proof.signature;
        if (proof.redacted) part.redacted = true;
      }
      return { ...part, ...more(["thinking", "signature"]) };
    }
    case "redacted_thinking": {
      const data = asString(wire["data"]);
      if (data === undefined) return opaque;
      const { signature } = openProof(data, DIALECT);
      return { type: "thinking", text: "", redacted: true, signature, ...more(["data"]) };
    }
    case "tool_use":
      return {
        type: "tool-call",
        id: asString(wire["id"]) ?? "",
        name: asString(wire["name"]) ?? "",
        input: JSON.stringify(wire["input"] ?? {}),
        ...more(["id", "name", "input"]),
      };
    case "tool_result": {
      const content = wire["content"];
      const part: ToolResultPart = {
        type: "tool-result",
        id: asString(wire["tool_use_id"]) ?? "",
        content:
          typeof content === "string" ? [{ type: "text", text: content }] : asList(content).map(decodeBlock),
        ...defined({ isError: asBoolean(wire["is_error"]) }),
        ...more(["tool_use_id", "content", "is_error"]),
      };
      if (typeof content === "string") part.bare = "string";
      else if (content === undefined) part.bare = "none";
      return part;
    }
    default:
      return RECORD.test(type) ? { ...opaque, droppable: true } : opaque;
  }
}

function decodeMedia(wire: JsonObject, type: "image" | "document", more: object): Part | undefined {
  const source = asObject(wire["source"]);
  const mime = asString(source?.["media_type"]);
  const name = asString(wire["title"]);
  const naming = type === "document" ? defined({ name }) : {};
  if (wire["title"] === null && type === "document") return undefined;
  const kind = type === "image" ? ("image" as const) : ("file" as const);
  const data = asString(source?.["data"]);
  const url = asString(source?.["url"]);
  const id = asString(source?.["file_id"]);
  switch (source?.["type"]) {
    case "base64":
      if (data === undefined || mime === undefined) return undefined;
      return { type: kind, source: { kind: "base64", mime, data }, ...naming, ...more };
    case "url":
      if (url === undefined) return undefined;
      return { type: kind, source: { kind: "url", url }, ...naming, ...more };
    case "file":
      if (id === undefined) return undefined;
      return { type: kind, source: { kind: "stored", id, dialect: DIALECT }, ...naming, ...more };
    case "text":
      if (data === undefined || kind === "image") return undefined;
      return { type: "file", source: { kind: "text", text: data }, ...naming, ...more };
    default:
      return undefined;
  }
}
