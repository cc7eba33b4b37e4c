// Reads a chat completions request into the canonical form.
// Refuses bodies without a model or a list of messages; unknown fields and parts are kept, not judged.
import type {
  CanonicalRequest,
  HostedKind,
  JsonObject,
  Message,
  Part,
  Role,
  Settings,
  Tool,
  ToolChoice,
} from "../canonical.ts";
import { invalidField, readFields } from "../carry.ts";
import type { FieldReader } from "../carry.ts";
import type { DecodeContext } from "../dialect.ts";
import { defined } from "../assemble.ts";
import { asBoolean, asList, asObject, asString, asText, parseDataUrl, rest } from "../json.ts";
import { openProof } from "../signatures.ts";
import { MUST_CARRY, REQUEST_FIELDS } from "./wire.ts";

const DIALECT = "openai-chat";
const MESSAGE_FIELDS: readonly string[] = ["role", "content", "name", "tool_calls", "tool_call_id"];
const ROLES: ReadonlySet<string> = new Set(["system", "developer", "user", "assistant", "tool"]);

/** Throws a client failure when model or messages are missing or a message is no object. */
export function decodeRequest(body: unknown, context: DecodeContext = {}): CanonicalRequest {
  const wire = asObject(body);
  if (!wire) throw invalidField("body");
  const model = context.model ?? asString(wire["model"]);
  if (!model) throw invalidField("model");
  const messages = wire["messages"];
  if (!Array.isArray(messages)) throw invalidField("messages");

  const fields = readFields(wire, REQUEST_FIELDS, MUST_CARRY);
  const request: CanonicalRequest = {
    dialect: DIALECT,
    model,
    messages: messages.map((message, index) => decodeMessage(message, index)),
    settings: {},
    extras: {},
    mustCarry: fields.mustCarry,
    spelling: {},
  };
  readSettings(fields, wire, request);
  const stream = context.stream ?? fields.boolean("stream");
  if (stream !== undefined) request.stream = stream;
  const options = fields.object("stream_options");
  if (options) {
    const include = asBoolean(options["include_usage"]);
    if (include !== undefined) request.streamUsage = include;
    if (rest(options, ["include_usage"]) || include === undefined) fields.leave("stream_options");
  }
  readTools(fields, request);
  readFormat(fields, request);
  const effort = fields.string("reasoning_effort");
  if (effort !== undefined) request.reasoning = { effort };
  const extras = fields.extras();
  if (Object.keys(extras).length > 0) request.extras[DIALECT] = extras;
  return request;
}

function readSettings(fields: FieldReader, wire: JsonObject, request: CanonicalRequest): void {
  const spelling = (request.spelling ??= {});
  const maxNew = fields.number("max_completion_tokens");
  const maxOld = fields.number("max_tokens");
  if (maxNew !== undefined && maxOld !== undefined) fields.leave("max_tokens");
  if (maxNew !== undefined || maxOld !== undefined) {
    spelling["maxOutputTokens"] = maxNew === undefined ? "max_tokens" : "max_completion_tokens";
  }
  let stop: string[] | undefined;
  if (typeof wire["stop"] === "string") {
    stop = [wire["stop"]];
    spelling["stop"] = "string";
  } else {
    const list = fields.list("stop");
    if (list?.every((item) => typeof item === "string")) stop = list;
    else if (list) throw invalidField("stop");
  }
  const modalities = fields.list("modalities")?.filter((item) => typeof item === "string");
  const settings: Settings = {
    maxOutputTokens: maxNew ?? maxOld,
    temperature: fields.number("temperature"),
    topP: fields.number("top_p"),
    topK: fields.number("top_k"),
    frequencyPenalty: fields.number("frequency_penalty"),
    presencePenalty: fields.number("presence_penalty"),
    seed: fields.number("seed"),
    stop,
    n: fields.number("n"),
    logprobs: fields.boolean("logprobs"),
    topLogprobs: fields.number("top_logprobs"),
    parallelToolCalls: fields.boolean("parallel_tool_calls"),
    endUser: fields.string("user"),
    metadata: fields.object("metadata"),
    serviceTier: fields.string("service_tier"),
    verbosity: fields.string("verbosity"),
    modalities,
    speech: fields.object("audio"),
  };
  request.settings = defined(settings);
}

function decodeMessage(value: unknown, index: number): Message {
  const wire = asObject(value);
  const role = asString(wire?.["role"]);
  if (!wire || role === undefined) throw invalidField(`messages[${index}]`);
  if (!ROLES.has(role)) {
    // The legacy "function" role and whatever comes next: only chat completions understands it.
    const name = `messages[${index}].role=${role}`;
    return { role: "tool", parts: [{ type: "opaque", dialect: DIALECT, name, value }] };
  }
  const message: Message = { role: role as Role, parts: [] };
  const known = MESSAGE_FIELDS.slice();
  const content = wire["content"];
  if (content === null) message.bare = "null";
  if (typeof content === "string") message.bare = "string";
  const parts: Part[] =
    typeof content === "string"
      ? [{ type: "text", text: content }]
      : asList(content).map((part) => decodePart(part));
  const name = asString(wire["name"]);
  if (name !== undefined) message.name = name;

  if (role === "tool") {
    const id = asString(wire["tool_call_id"]) ?? "";
    message.parts.push({ type: "tool-result", id, content: parts });
  } else {
    if (role === "assistant") message.parts.push(...decodeThinking(wire));
    message.parts.push(...parts);
    const refusal = asString(wire["refusal"]);
    if (refusal) {
      message.parts.push({ type: "text", text: refusal, refusal: true });
      known.push("refusal");
    }
    for (const call of asList(wire["tool_calls"])) message.parts.push(decodeCall(call));
    // Legacy calls and references to spoken answers stay in the message; elsewhere they must be refused.
    for (const field of ["function_call", "audio"]) {
      if (!asObject(wire[field])) continue;
      known.push(field);
      message.parts.push({ type: "opaque", dialect: DIALECT, name: field, value: wire[field] });
    }
  }
  const extra = rest(wire, known);
  if (extra) message.extra = extra;
  return message;
}

/** Thinking that the client echoes. The wire fields also stay in `extra` for the way back to chat completions. */
function decodeThinking(wire: JsonObject): Part[] {
  const parts: Part[] = [];
  for (const detail of asList(wire["reasoning_details"])) {
    const item = asObject(detail);
    const signature = asString(item?.["signature"]);
    const data = asString(item?.["data"]);
    const text = asString(item?.["text"]) ?? asString(item?.["summary"]) ?? "";
    if (data) {
      parts.push({
        type: "thinking",
        text: "",
        redacted: true,
        signature: openProof(data, DIALECT).signature,
      });
    } else if (signature) {
      parts.push({ type: "thinking", text, signature: openProof(signature, DIALECT).signature });
    } else if (text) parts.push({ type: "thinking", text });
  }
  const plain = asString(wire["reasoning_content"]) ?? asString(wire["reasoning"]);
  // Streamed answers give the proof without the text, which stands in the other field.
  const bare = parts.every((part) => part.type !== "thinking" || part.text === "");
  if (!plain || !bare) return parts;
  const first = parts.find((part) => part.type === "thinking" && !part.redacted);
  if (first?.type === "thinking") first.text = plain;
  else parts.unshift({ type: "thinking", text: plain });
  return parts;
}

function decodeCall(value: unknown): Part {
  const wire = asObject(value) ?? {};
  const custom = asObject(wire["custom"]);
  const call = custom ?? asObject(wire["function"]) ?? {};
  const part: Part = {
    type: "tool-call",
    id: asString(wire["id"]) ?? "",
    name: asString(call["name"]) ?? "",
    input: asText(call[custom ? "input" : "arguments"] ?? ""),
  };
  if (custom) part.custom = true;
  const extra = rest(wire, ["id", "type", "function", "custom"]);
  if (extra) part.extra = extra;
  const signed = asString(asObject(asObject(wire["extra_content"])?.["google"])?.["thought_signature"]);
  if (signed) part.signature = openProof(signed, DIALECT).signature;
  return part;
}

function decodePart(value: unknown): Part {
  const wire = asObject(value);
  const type = asString(wire?.["type"]) ?? "";
  const opaque: Part = { type: "opaque", dialect: DIALECT, name: `content.${type || "part"}`, value };
  if (!wire) return opaque;
  const with_ = <T extends Part>(part: T, ...known: string[]): T => {
    const extra = rest(wire, ["type", ...known]);
    return extra ? { ...part, extra } : part;
  };
  switch (type) {
    case "text": {
      const text = asString(wire["text"]);
      return text === undefined ? opaque : with_({ type: "text", text }, "text");
    }
    case "refusal": {
      const text = asString(wire["refusal"]);
      return text === undefined ? opaque : with_({ type: "text", text, refusal: true }, "refusal");
    }
    case "image_url": {
      const image = asObject(wire["image_url"]);
      const url = asString(image?.["url"]);
      if (!image || url === undefined) return opaque;
      const media = parseDataUrl(url);
      const detail = asString(image["detail"]);
      const part: Part = {
        type: "image",
        source: media ? { kind: "base64", ...media } : { kind: "url", url },
        ...defined({ detail }),
      };
      return rest(image, ["url", "detail"]) ? opaque : with_(part, "image_url");
    }
    case "input_audio": {
      const audio = asObject(wire["input_audio"]);
      const data = asString(audio?.["data"]);
      if (data === undefined) return opaque;
      const mime = `audio/${asString(audio?.["format"]) ?? "wav"}`;
      return with_({ type: "audio", source: { kind: "base64", mime, data } }, "input_audio");
    }
    case "file": {
      const file = asObject(wire["file"]);
      const id = asString(file?.["file_id"]);
      const url = asString(file?.["file_data"]);
      const media = url === undefined ? undefined : parseDataUrl(url);
      const name = asString(file?.["filename"]);
      if (id !== undefined) {
        return with_(
          { type: "file", source: { kind: "stored", id, dialect: DIALECT }, ...defined({ name }) },
          "file",
        );
      }
      return media
        ? with_({ type: "file", source: { kind: "base64", ...media }, ...defined({ name }) }, "file")
        : opaque;
    }
    default:
      return opaque;
  }
}

const HOSTED: Readonly<Record<string, HostedKind>> = {
  web_search: "web-search",
  web_search_preview: "web-search",
  code_interpreter: "code-execution",
};

function readTools(fields: FieldReader, request: CanonicalRequest): void {
  const list = fields.list("tools");
  if (list) request.tools = list.map((tool, index) => decodeTool(tool, index));
  const search = fields.object("web_search_options");
  if (search) {
    (request.tools ??= []).push({
      type: "hosted",
      hosted: "web-search",
      name: "web_search_options",
      dialect: DIALECT,
      value: search,
    });
  }
  const choice = decodeToolChoice(fields, request);
  if (choice) request.toolChoice = choice;
}

function decodeTool(value: unknown, index: number): Tool {
  const wire = asObject(value);
  if (!wire) throw invalidField(`tools[${index}]`);
  const type = asString(wire["type"]) ?? "function";
  const inner = asObject(wire[type]);
  const name = asString(inner?.["name"]);
  if (type === "function" && inner && name !== undefined) {
    const extra = rest(wire, ["type", "function"]);
    const more = rest(inner, ["name", "description", "parameters", "strict"]);
    return {
      type: "function",
      name,
      ...defined({
        description: asString(inner["description"]),
        schema: inner["parameters"],
        strict: asBoolean(inner["strict"]),
        extra: extra || more ? { ...extra, ...(more ? { function: more } : {}) } : undefined,
      }),
    };
  }
  if (type === "custom" && inner && name !== undefined) {
    const extra = rest(wire, ["type", "custom"]);
    return {
      type: "custom",
      name,
      ...defined({ description: asString(inner["description"]), format: inner["format"], extra }),
    };
  }
  return { type: "hosted", hosted: HOSTED[type] ?? "other", name: type, dialect: DIALECT, value: wire };
}

function decodeToolChoice(fields: FieldReader, request: CanonicalRequest): ToolChoice | undefined {
  const probe = fields.string("tool_choice");
  if (probe !== undefined) {
    if (probe === "auto" || probe === "none") return { mode: probe };
    if (probe === "required" || probe === "any") {
      (request.spelling ??= {})["toolChoice"] = probe;
      return { mode: "any" };
    }
    // Copilot CLI 1.0 says it to Gemini's models: free to choose, and calls keep to their schemas.
    if (probe === "validated") {
      (request.spelling ??= {})["toolChoice"] = probe;
      return { mode: "auto" };
    }
    throw invalidField("tool_choice");
  }
  const extras = fields.extras();
  const wire = asObject(extras["tool_choice"]);
  if (!wire) return undefined;
  delete extras["tool_choice"];
  request.mustCarry = request.mustCarry.filter((key) => key !== "tool_choice");
  const type = asString(wire["type"]);
  const name = asString(asObject(wire[type ?? "function"])?.["name"]);
  if (type === "function" && name !== undefined) return { mode: "tool", name };
  if (type === "custom" && name !== undefined) return { mode: "tool", name, custom: true };
  const allowed = asObject(wire["allowed_tools"]);
  const names = asList(allowed?.["tools"]).map((tool) =>
    asString(asObject(asObject(tool)?.["function"])?.["name"]),
  );
  if (type === "allowed_tools" && names.length > 0 && names.every((item) => item !== undefined)) {
    return { mode: "allowed", names, required: allowed?.["mode"] === "required" };
  }
  return { mode: "hosted", dialect: DIALECT, value: wire };
}

function readFormat(fields: FieldReader, request: CanonicalRequest): void {
  const wire = fields.object("response_format");
  if (!wire) return;
  const schema = asObject(wire["json_schema"]);
  if (wire["type"] === "text") request.responseFormat = { type: "text" };
  else if (wire["type"] === "json_object") request.responseFormat = { type: "json" };
  else if (wire["type"] === "json_schema" && schema) {
    request.responseFormat = {
      type: "json-schema",
      ...defined({
        name: asString(schema["name"]),
        schema: schema["schema"],
        strict: asBoolean(schema["strict"]),
        description: asString(schema["description"]),
      }),
    };
  } else {
    fields.leave("response_format");
    request.mustCarry.push("response_format");
  }
}
