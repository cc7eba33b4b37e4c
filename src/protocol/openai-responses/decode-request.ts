// Reads a Responses request into the canonical form: every input item becomes a message of its own.
// Refuses bodies without model or input; unknown fields and items are kept, not judged.
import { defined } from "../assemble.ts";
import type {
  CanonicalRequest,
  JsonObject,
  Message,
  Part,
  Role,
  Tool,
  ToolResultPart,
} from "../canonical.ts";
import { invalidField, readFields } from "../carry.ts";
import type { FieldReader } from "../carry.ts";
import type { DecodeContext } from "../dialect.ts";
import { asBoolean, asList, asObject, asString, asText, parseDataUrl, rest } from "../json.ts";
import { openProof } from "../signatures.ts";
import { putBack } from "./references.ts";
import { HOSTED_ITEM, hostedKind, MUST_CARRY, packReasoning, REQUEST_FIELDS } from "./wire.ts";

const DIALECT = "openai-responses";

/** Throws a client failure when model or input are missing. */
export function decodeRequest(body: unknown, context: DecodeContext = {}): CanonicalRequest {
  const wire = asObject(body);
  if (!wire) throw invalidField("body");
  const model = context.model ?? asString(wire["model"]);
  if (!model) throw invalidField("model");
  const fields = readFields(wire, REQUEST_FIELDS, MUST_CARRY);
  const request: CanonicalRequest = {
    dialect: DIALECT,
    model,
    messages: [],
    settings: {},
    extras: {},
    // `background: false` asks for nothing; only work in the background must be carried.
    mustCarry: fields.mustCarry.filter((key) => wire[key] !== false),
    spelling: {},
  };
  const instructions = fields.string("instructions");
  if (instructions !== undefined) {
    request.messages.push({
      role: "system",
      topLevel: true,
      bare: "string",
      parts: [{ type: "text", text: instructions }],
    });
  }
  const { input } = wire;
  if (typeof input === "string") {
    request.messages.push({ role: "user", bare: "string", parts: [{ type: "text", text: input }] });
    request.spelling = { input: "string" };
  } else if (Array.isArray(input)) {
    const unread: string[] = [];
    const items = context.openItems ? putBack(input, context.openItems, unread) : input;
    if (unread.length > 0) request.unread = unread;
    items.forEach((item, index) => request.messages.push(decodeItem(item, index)));
  } else if (request.mustCarry.length === 0) throw invalidField("input");
  else request.spelling = { input: "none" };

  request.settings = defined({
    maxOutputTokens: fields.number("max_output_tokens"),
    temperature: fields.number("temperature"),
    topP: fields.number("top_p"),
    topLogprobs: fields.number("top_logprobs"),
    parallelToolCalls: fields.boolean("parallel_tool_calls"),
    metadata: fields.object("metadata"),
    endUser: fields.string("user"),
    serviceTier: fields.string("service_tier"),
  });
  const stream = context.stream ?? fields.boolean("stream");
  if (stream !== undefined) request.stream = stream;
  readReasoning(fields, request);
  readText(fields, request);
  const tools = fields.list("tools");
  if (tools) request.tools = tools.map((tool, index) => decodeTool(tool, index));
  readToolChoice(wire, fields, request);
  const extras = fields.extras();
  if (Object.keys(extras).length > 0) request.extras[DIALECT] = extras;
  return request;
}

/** An empty reasoning object and keys beyond effort and summary stay in the extras for the way home. */
function readReasoning(fields: FieldReader, request: CanonicalRequest): void {
  const wire = fields.object("reasoning");
  if (!wire) return;
  const effort = asString(wire["effort"]);
  const summary = asString(wire["summary"]);
  if (effort !== undefined || summary !== undefined) request.reasoning = defined({ effort, summary });
  if (Object.keys(wire).length !== Object.keys(request.reasoning ?? {}).length || !request.reasoning) {
    fields.leave("reasoning");
  }
}

function readText(fields: FieldReader, request: CanonicalRequest): void {
  const wire = fields.object("text");
  if (!wire) return;
  const verbosity = asString(wire["verbosity"]);
  if (verbosity !== undefined) request.settings.verbosity = verbosity;
  const format = asObject(wire["format"]);
  if (format?.["type"] === "text") request.responseFormat = { type: "text" };
  else if (format?.["type"] === "json_object") request.responseFormat = { type: "json" };
  else if (format?.["type"] === "json_schema") {
    request.responseFormat = {
      type: "json-schema",
      ...defined({
        name: asString(format["name"]),
        schema: format["schema"],
        strict: asBoolean(format["strict"]),
        description: asString(format["description"]),
      }),
    };
  } else if (format) {
    fields.leave("text");
    request.mustCarry.push("text");
  }
  const known = ["format", "verbosity"];
  const odd =
    rest(wire, known) ??
    (format && rest(format, ["type", "name", "schema", "strict", "description"])) ??
    (wire["verbosity"] === null || format?.["strict"] === null || (!format && verbosity === undefined));
  if (odd) fields.leave("text");
}

function decodeItem(value: unknown, index: number): Message {
  const wire = asObject(value);
  if (!wire) throw invalidField(`input[${index}]`);
  const type = asString(wire["type"]) ?? (wire["role"] === undefined ? "" : "message");
  const single = (role: Role, part: Part, ...known: string[]): Message => {
    const extra = rest(wire, ["type", ...known]);
    return { role, parts: [part], ...defined({ extra }) };
  };
  switch (type) {
    case "message":
      return decodeMessage(wire, index);
    case "function_call":
    case "custom_tool_call": {
      const custom = type === "custom_tool_call";
      const field = custom ? "input" : "arguments";
      const part: Part = {
        type: "tool-call",
        id: asString(wire["call_id"]) ?? "",
        name: asString(wire["name"]) ?? "",
        input: asText(wire[field] ?? ""),
        ...(custom ? { custom } : {}),
      };
      return single("assistant", part, "call_id", "name", field);
    }
    case "function_call_output":
    case "custom_tool_call_output": {
      const { output } = wire;
      const part: ToolResultPart = {
        type: "tool-result",
        id: asString(wire["call_id"]) ?? "",
        content:
          typeof output === "string" ? [{ type: "text", text: output }] : asList(output).map(decodePart),
        ...(type === "custom_tool_call_output" ? { custom: true } : {}),
      };
      if (typeof output === "string") part.bare = "string";
      return single("tool", part, "call_id", "output");
    }
    case "reasoning":
      return decodeReasoning(wire);
    default: {
      const isReference = type === "" && wire["id"] !== undefined;
      const name = `input.${type || (isReference ? "item_reference" : "item")}`;
      const part: Part = { type: "opaque", dialect: DIALECT, name, value };
      if (HOSTED_ITEM.test(type) || isUnknownReasoning(wire)) part.droppable = true;
      return { role: "assistant", parts: [part] };
    }
  }
}

/** A reference to reasoning that we did not give out: another provider does without. */
function isUnknownReasoning(wire: JsonObject): boolean {
  const id =
    wire["type"] === "item_reference" || wire["type"] === undefined ? asString(wire["id"]) : undefined;
  return id?.startsWith("rs_") === true;
}

function decodeMessage(wire: JsonObject, index: number): Message {
  const role = asString(wire["role"]);
  if (role !== "user" && role !== "assistant" && role !== "system" && role !== "developer") {
    throw invalidField(`input[${index}].role`);
  }
  const { content } = wire;
  // `type` is optional on messages: where it was written it comes back with the extra fields.
  const extra = rest(wire, ["role", "content"]);
  const message: Message = { role, parts: [], ...defined({ extra }) };
  if (typeof content === "string") {
    message.bare = "string";
    message.parts.push({ type: "text", text: content });
  } else if (Array.isArray(content)) message.parts.push(...content.map(decodePart));
  else throw invalidField(`input[${index}].content`);
  return message;
}

/** Encrypted reasoning keeps its item id; the wire item itself stays in `extra` for the way home. */
function decodeReasoning(wire: JsonObject): Message {
  const encrypted = asString(wire["encrypted_content"]);
  const pieces = [...asList(wire["summary"]), ...asList(wire["content"])];
  const text = pieces.map((piece) => asString(asObject(piece)?.["text"]) ?? "").join("\n\n");
  const part: Part = { type: "thinking", text, extra: wire };
  if (encrypted) {
    const { signature, redacted } = openProof(encrypted, DIALECT);
    // Its own encrypted content is only valid under its id.
    const own = signature.dialect === DIALECT;
    const value = own ? packReasoning(asString(wire["id"]) ?? "", signature.value) : signature.value;
    part.signature = { dialect: signature.dialect, value };
    if (redacted) part.redacted = true;
  }
  return { role: "assistant", parts: [part] };
}

function decodePart(value: unknown): Part {
  const wire = asObject(value);
  const type = asString(wire?.["type"]) ?? "";
  const opaque: Part = { type: "opaque", dialect: DIALECT, name: `content.${type || "part"}`, value };
  if (!wire) return opaque;
  const more = (...known: string[]): { extra?: JsonObject } =>
    defined({ extra: rest(wire, ["type", ...known]) });
  switch (type) {
    case "input_text":
    case "output_text":
    case "text": {
      const text = asString(wire["text"]);
      if (text === undefined) return opaque;
      // Which of the names was used depends on the role; the odd one out is kept.
      const extra = rest(wire, ["text"]);
      return { type: "text", text, ...defined({ extra }) };
    }
    case "refusal": {
      const text = asString(wire["refusal"]);
      return text === undefined ? opaque : { type: "text", text, refusal: true, ...more("refusal") };
    }
    case "input_image": {
      const url = asString(wire["image_url"]);
      const id = asString(wire["file_id"]);
      const media = url === undefined ? undefined : parseDataUrl(url);
      const detail = asString(wire["detail"]);
      if (media) {
        return {
          type: "image",
          source: { kind: "base64", ...media },
          ...defined({ detail }),
          ...more("image_url", "detail"),
        };
      }
      if (url !== undefined) {
        return {
          type: "image",
          source: { kind: "url", url },
          ...defined({ detail }),
          ...more("image_url", "detail"),
        };
      }
      if (id === undefined) return opaque;
      const source = { kind: "stored" as const, id, dialect: "openai-chat" as const };
      return { type: "image", source, ...defined({ detail }), ...more("file_id", "detail") };
    }
    case "input_file": {
      const data = asString(wire["file_data"]);
      const media = data === undefined ? undefined : parseDataUrl(data);
      const url = asString(wire["file_url"]);
      const id = asString(wire["file_id"]);
      const name = asString(wire["filename"]);
      const naming = defined({ name });
      if (media)
        return {
          type: "file",
          source: { kind: "base64", ...media },
          ...naming,
          ...more("file_data", "filename"),
        };
      if (url !== undefined)
        return { type: "file", source: { kind: "url", url }, ...naming, ...more("file_url", "filename") };
      if (id === undefined) return opaque;
      return {
        type: "file",
        source: { kind: "stored", id, dialect: "openai-chat" },
        ...naming,
        ...more("file_id", "filename"),
      };
    }
    case "input_audio": {
      const audio = asObject(wire["input_audio"]);
      const data = asString(audio?.["data"]);
      if (data === undefined) return opaque;
      const mime = `audio/${asString(audio?.["format"]) ?? "wav"}`;
      return { type: "audio", source: { kind: "base64", mime, data }, ...more("input_audio") };
    }
    default:
      return opaque;
  }
}

/** A declared tool; what is neither function nor free text stays as it is written. */
export function decodeTool(value: unknown, index: number): Tool {
  const wire = asObject(value);
  if (!wire) throw invalidField(`tools[${index}]`);
  const type = asString(wire["type"]) ?? "function";
  const name = asString(wire["name"]);
  if (type === "function" && name !== undefined) {
    return {
      type: "function",
      name,
      ...defined({
        description: asString(wire["description"]),
        schema: wire["parameters"],
        strict: asBoolean(wire["strict"]),
        extra: rest(wire, [
          "type",
          "name",
          ...(typeof wire["description"] === "string" ? ["description"] : []),
          "parameters",
          ...(typeof wire["strict"] === "boolean" ? ["strict"] : []),
        ]),
      }),
    };
  }
  if (type === "custom" && name !== undefined) {
    const extra = rest(wire, ["type", "name", "description", "format"]);
    return {
      type: "custom",
      name,
      ...defined({ description: asString(wire["description"]), format: wire["format"], extra }),
    };
  }
  return { type: "hosted", hosted: hostedKind(type), name: type, dialect: DIALECT, value: wire };
}

function readToolChoice(wire: JsonObject, fields: FieldReader, request: CanonicalRequest): void {
  const choice = wire["tool_choice"];
  if (choice === undefined) return;
  if (choice === "auto" || choice === "none") request.toolChoice = { mode: choice };
  else if (choice === "required") request.toolChoice = { mode: "any" };
  else if (choice === null) fields.leave("tool_choice");
  else {
    const object = asObject(choice);
    if (!object) throw invalidField("tool_choice");
    const name = asString(object["name"]);
    const type = object["type"];
    if (type === "function" && name !== undefined) request.toolChoice = { mode: "tool", name };
    else if (type === "custom" && name !== undefined) {
      request.toolChoice = { mode: "tool", name, custom: true };
    } else if (type === "allowed_tools" && asList(object["tools"]).every(isFunction)) {
      const names = asList(object["tools"]).map((tool) => asString(asObject(tool)?.["name"]) ?? "");
      request.toolChoice = { mode: "allowed", names, required: object["mode"] === "required" };
    } else request.toolChoice = { mode: "hosted", dialect: DIALECT, value: object };
  }
}

function isFunction(value: unknown): boolean {
  const tool = asObject(value);
  return tool?.["type"] === "function" && typeof tool["name"] === "string";
}
