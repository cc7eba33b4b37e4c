// A chat request as Bedrock's Converse takes it.
// Refuses by name what Converse has no words for; hints that it does not know (seed, penalties) are left out.
import type {
  CanonicalRequest,
  FilePart,
  ImagePart,
  JsonObject,
  Message,
  Part,
  Tool,
  ToolCallPart,
} from "../../protocol/canonical.ts";
import { defined } from "../../protocol/assemble.ts";
import { cannotCarry } from "../../protocol/carry.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import { effortOf } from "../../protocol/reasoning.ts";
import { mergeThinking, mergeTurns, splitSystem } from "../../protocol/turns.ts";
import type { AdapterCall } from "../adapter.ts";
import { decodeChatRequest } from "./chat-request.ts";

const IMAGE_FORMATS: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpeg",
  "image/jpg": "jpeg",
  "image/gif": "gif",
  "image/webp": "webp",
};
const DOCUMENT_FORMATS: Readonly<Record<string, string>> = {
  "application/pdf": "pdf",
  "text/csv": "csv",
  "application/msword": "doc",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
  "application/vnd.ms-excel": "xls",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
  "text/html": "html",
  "text/plain": "txt",
  "text/markdown": "md",
};
const CACHE_POINT = { cachePoint: { type: "default" } };

export function converseRequest(call: AdapterCall): JsonObject {
  const request = decodeChatRequest(call, { tools: true, images: true, files: true });
  const { system, turns } = splitSystem(request.messages);
  const { settings } = request;
  const body: JsonObject = { messages: encodeTurns(turns) };
  const systemBlocks = system.flatMap((message) => message.parts).flatMap(encodeSystem);
  if (systemBlocks.length > 0) body["system"] = systemBlocks;
  const inference = defined({
    maxTokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    topP: settings.topP,
    stopSequences: settings.stop?.length ? settings.stop : undefined,
  });
  if (Object.keys(inference).length > 0) body["inferenceConfig"] = inference;
  const toolConfig = encodeTools(request);
  if (toolConfig) body["toolConfig"] = toolConfig;
  const more = modelFields(call.model, request);
  if (more) body["additionalModelRequestFields"] = more;
  return body;
}

/** Settings that Converse leaves to the model's own words. */
function modelFields(model: string, request: CanonicalRequest): JsonObject | undefined {
  const fields: JsonObject = {};
  const { topK } = request.settings;
  const isNova = model.includes("nova");
  if (topK !== undefined) Object.assign(fields, isNova ? { inferenceConfig: { topK } } : { top_k: topK });
  const effort = effortOf(request.reasoning);
  if (effort !== undefined && model.includes("openai.gpt-oss")) fields["reasoning_effort"] = effort;
  if (effort !== undefined && model.includes("nova-2"))
    fields["reasoningConfig"] = { type: "enabled", maxReasoningEffort: effort };
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** OpenAI-shaped clients mark the end of a cacheable prefix with Anthropic's word for it. */
function isCached(part: Part): boolean {
  return part.cache !== undefined || asObject(part.extra?.["cache_control"]) !== undefined;
}

function encodeSystem(part: Part): JsonObject[] {
  if (part.type !== "text") throw cannotCarry(`system.${part.type}`);
  if (part.text.trim() === "") return [];
  return isCached(part) ? [{ text: part.text }, CACHE_POINT] : [{ text: part.text }];
}

/** Converse wants turns that alternate, with the results of tools at the head of the user's. */
function encodeTurns(turns: readonly Message[]): JsonObject[] {
  const merged = mergeTurns(
    turns.map((turn) => ({ ...turn, name: undefined })),
    (role) => (role === "assistant" ? "assistant" : "user"),
  );
  return merged.flatMap((turn) => {
    const parts = mergeThinking(turn.parts);
    const ordered = [
      ...parts.filter((part) => part.type === "tool-result"),
      ...parts.filter((part) => part.type !== "tool-result"),
    ];
    const content = ordered.flatMap((part) => {
      const block = encodePart(part);
      if (!block) return [];
      return isCached(part) ? [block, CACHE_POINT] : [block];
    });
    const role = turn.role === "assistant" ? "assistant" : "user";
    return content.length > 0 ? [{ role, content }] : [];
  });
}

function encodePart(part: Part): JsonObject | undefined {
  switch (part.type) {
    case "text":
      // Empty text blocks are refused.
      return part.text.trim() === "" ? undefined : { text: part.text };
    case "thinking": {
      const { signature } = part;
      if (signature?.dialect !== "anthropic") return undefined;
      return part.redacted
        ? { reasoningContent: { redactedContent: signature.value } }
        : { reasoningContent: { reasoningText: { text: part.text, signature: signature.value } } };
    }
    case "image":
      return { image: encodeImage(part) };
    case "file":
      return { document: encodeDocument(part) };
    case "tool-call":
      return { toolUse: { toolUseId: wireId(part.id), name: part.name, input: inputOf(part) } };
    case "tool-result": {
      const content = part.content.flatMap((inner) => encodePart(inner) ?? []);
      return {
        toolResult: {
          toolUseId: wireId(part.id),
          content: content.length > 0 ? content : [{ text: "(empty)" }],
          ...(part.isError ? { status: "error" } : {}),
        },
      };
    }
    case "audio":
    case "opaque":
      return undefined;
  }
}

function encodeImage(part: ImagePart): JsonObject {
  if (part.source.kind !== "base64") throw cannotCarry("image_url");
  const format = IMAGE_FORMATS[part.source.mime];
  if (format === undefined) throw cannotCarry(`image (${part.source.mime})`);
  return { format, source: { bytes: part.source.data } };
}

/** Names may hold letters, digits, single spaces, hyphens, and round and square brackets. */
function encodeDocument(part: FilePart): JsonObject {
  const { source } = part;
  if (source.kind === "url" || source.kind === "stored") throw cannotCarry("file");
  const mime = source.kind === "text" ? "text/plain" : source.mime;
  const format = DOCUMENT_FORMATS[mime];
  if (format === undefined) throw cannotCarry(`file (${mime})`);
  const bytes = source.kind === "text" ? Buffer.from(source.text).toString("base64") : source.data;
  const name = (part.name ?? "")
    .replace(/\.\w+$/, "")
    .replace(/[^A-Za-z0-9()[\]-]+/g, " ")
    .trim();
  return { format, name: name || "document", source: { bytes } };
}

/** The same change is made to call and result. */
function wireId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "call";
}

function inputOf(call: ToolCallPart): unknown {
  if (call.input.trim() === "") return {};
  return asObject(parseJson(call.input)) ?? { input: call.input };
}

function encodeTool(tool: Tool): JsonObject {
  if (tool.type !== "function") throw cannotCarry(`tools.${tool.name}`);
  const { name, description, schema } = tool;
  const json = schema ?? { type: "object", properties: {} };
  return { toolSpec: { name, ...defined({ description }), inputSchema: { json } } };
}

function encodeTools(request: CanonicalRequest): JsonObject | undefined {
  const choice = request.toolChoice;
  const isBarred = choice?.mode === "none";
  let offered = isBarred ? [] : (request.tools ?? []);
  if (choice?.mode === "allowed") offered = offered.filter((tool) => choice.names.includes(tool.name));
  if (choice?.mode === "hosted") throw cannotCarry("tool_choice");
  if (offered.length === 0) return toolsOfHistory(request);
  const config: JsonObject = { tools: offered.map(encodeTool) };
  if (choice?.mode === "tool") config["toolChoice"] = { tool: { name: choice.name } };
  else if (choice?.mode === "any" || (choice?.mode === "allowed" && choice.required))
    config["toolChoice"] = { any: {} };
  return config;
}

/** A history with tool calls is refused unless their tools are described, even when none may be called now. */
function toolsOfHistory(request: CanonicalRequest): JsonObject | undefined {
  const names = new Set<string>();
  for (const message of request.messages)
    for (const part of message.parts) if (part.type === "tool-call") names.add(part.name);
  if (names.size === 0) return undefined;
  const known = new Map((request.tools ?? []).map((tool) => [tool.name, tool]));
  return { tools: [...names].map((name) => encodeTool(known.get(name) ?? { type: "function", name })) };
}
