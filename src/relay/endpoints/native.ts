// The conversations of the other dialects: Anthropic Messages, OpenAI Responses, Gemini generateContent and embeddings.
// Refuses missing fields and wrong types by name; what an upstream cannot carry is refused later, when it is chosen.
import type { JsonObject } from "../../protocol/canonical.ts";
import {
  embeddedMedia,
  embeddedText,
  embeddingsBody,
  embedLosses,
  embedRequests,
  OWN_ANSWER,
} from "../../protocol/gemini/embed.ts";
import { asList, asObject } from "../../protocol/json.ts";
import { hasOutput, hasVectors } from "./answer-checks.ts";
import {
  checkNumbers,
  isObject,
  MAX_OUTPUT_LIMIT,
  refused,
  visitCacheMark,
  visitContent,
  visitInput,
} from "./endpoint.ts";
import type { Endpoint, Json, NumberRule, PromptVisitor } from "./endpoint.ts";

const SAMPLING: Readonly<Record<string, NumberRule>> = {
  temperature: { min: -1e6, max: 1e6 },
  top_p: { min: -1e6, max: 1e6 },
};

const limit = (min: number): NumberRule => ({ min, max: MAX_OUTPUT_LIMIT, whole: true });

function numberIn(body: Json | undefined, field: string): number {
  const value = body?.[field];
  return typeof value === "number" && value > 0 ? value : 0;
}

function requireList(endpoint: Pick<Endpoint, "refusalCode">, body: Json, field: string): void {
  const value = body[field];
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0))
    throw refused(endpoint, "field_required", field);
  if (!Array.isArray(value)) throw refused(endpoint, "invalid_field", field, "must be a list");
  if (!(value as unknown[]).every(isObject))
    throw refused(endpoint, "invalid_field", field, "every entry must be an object");
}

function requireSwitch(endpoint: Pick<Endpoint, "refusalCode">, body: Json, field: string): void {
  const value = body[field];
  if (value !== undefined && value !== null && typeof value !== "boolean")
    throw refused(endpoint, "invalid_field", field, "must be true or false");
}

const MESSAGES = { refusalCode: "invalid_claude_request" } as const;

/** Text, tool calls and tool results of Anthropic's content blocks. */
function visitBlocks(content: unknown, visitor: PromptVisitor): void {
  if (typeof content === "string") return visitor.text(content);
  for (const value of asList(content)) {
    const block = asObject(value);
    if (!block) continue;
    visitCacheMark(block, visitor);
    if (typeof block["text"] === "string") visitor.text(block["text"]);
    else if (block["type"] === "tool_use") visitor.tool(JSON.stringify([block["name"], block["input"]]));
    else if (block["type"] === "tool_result") visitBlocks(block["content"], visitor);
    else if (typeof block["thinking"] === "string") visitor.tool(block["thinking"]);
    else visitor.media();
  }
}

export const messages: Endpoint = {
  ...MESSAGES,
  name: "messages",
  dialect: "anthropic",
  canStream: true,
  isScreened: true,
  isConversation: true,
  check(body) {
    checkNumbers(MESSAGES, body, { ...SAMPLING, max_tokens: limit(0), top_k: { min: -1e9, max: 1e9 } });
    requireList(MESSAGES, body, "messages");
    requireSwitch(MESSAGES, body, "stream");
  },
  visitPrompt(body, visitor) {
    visitBlocks(body["system"], visitor);
    for (const message of asList(body["messages"])) visitBlocks(asObject(message)?.["content"], visitor);
    visitCacheMark(body, visitor);
    for (const tool of asList(body["tools"])) {
      visitor.tool(JSON.stringify(tool));
      if (isObject(tool)) visitCacheMark(tool, visitor);
    }
  },
  outputLimit: (body) => numberIn(body, "max_tokens"),
  readOnce: new Set(["max_tokens", "messages"]),
  frameTokens: (body) => 3 * asList(body["messages"]).length,
};

const RESPONSES = { refusalCode: "invalid_responses_request" } as const;

export const responses: Endpoint = {
  ...RESPONSES,
  name: "responses",
  dialect: "openai-responses",
  canStream: true,
  isScreened: true,
  isConversation: true,
  check(body) {
    checkNumbers(RESPONSES, body, { ...SAMPLING, max_output_tokens: limit(0) });
    const { input } = body;
    const hasOwnInput = body["prompt"] !== undefined || body["previous_response_id"] !== undefined;
    if (input === undefined || input === null || input === "") {
      if (!hasOwnInput) throw refused(RESPONSES, "field_required", "input");
    } else if (typeof input !== "string" && !Array.isArray(input))
      throw refused(RESPONSES, "invalid_field", "input", "must be a text or a list");
    requireSwitch(RESPONSES, body, "stream");
    requireSwitch(RESPONSES, body, "background");
    // It would be answered, and billed, behind our back.
    if (body["background"] === true) throw refused(RESPONSES, "unsupported_field", "background");
  },
  visitPrompt(body, visitor) {
    const { input, instructions } = body;
    if (typeof instructions === "string") visitor.text(instructions);
    if (typeof input === "string") visitor.text(input);
    else {
      for (const value of asList(input)) {
        const item = asObject(value);
        if (!item) continue;
        if (item["content"] !== undefined) visitContent(item["content"], visitor);
        else if (typeof item["output"] === "string") visitor.text(item["output"]);
        else if (Array.isArray(item["output"])) visitContent(item["output"], visitor);
        else if (item["type"] === "item_reference" || item["tools"] !== undefined)
          visitor.tool(String(item["id"]) + JSON.stringify(item["tools"] ?? ""));
        else visitor.tool(JSON.stringify([item["name"], item["arguments"] ?? item["input"]]));
      }
    }
    for (const tool of asList(body["tools"])) visitor.tool(JSON.stringify(tool));
  },
  outputLimit: (body) => numberIn(body, "max_output_tokens"),
  readOnce: new Set(["max_output_tokens", "background"]),
  frameTokens: (body) => 3 * (asList(body["input"]).length + 1),
};

/**
 * A long conversation made short by its provider: what comes back only that provider can read, so it is asked of
 * channels that speak the Responses API, and of no other.
 */
export const compact: Endpoint = {
  ...responses,
  path: "/v1/responses/compact",
  isPart: true,
  holds: hasOutput,
  canStream: false,
  isConversation: false,
};

const GEMINI = { refusalCode: "invalid_gemini_request" } as const;

const configOf = (body: Json): Json | undefined =>
  asObject(body["generationConfig"] ?? body["generation_config"]);

function visitGeminiParts(content: unknown, visitor: PromptVisitor): void {
  for (const value of asList(asObject(content)?.["parts"])) {
    const part = asObject(value);
    if (!part) continue;
    const call = part["functionCall"] ?? part["function_call"];
    const result = part["functionResponse"] ?? part["function_response"];
    if (typeof part["text"] === "string") visitor.text(part["text"]);
    else if (call !== undefined || result !== undefined) visitor.tool(JSON.stringify(call ?? result));
    else visitor.media();
  }
}

export const gemini: Endpoint = {
  ...GEMINI,
  name: "gemini",
  dialect: "gemini",
  canStream: true,
  isScreened: true,
  isConversation: true,
  check(body) {
    // One content alone is accepted by Google, too.
    if (!isObject(body["contents"])) requireList(GEMINI, body, "contents");
    const config = configOf(body);
    if (config)
      checkNumbers(GEMINI, config, {
        temperature: { min: -1e6, max: 1e6 },
        topP: { min: -1e6, max: 1e6 },
        maxOutputTokens: limit(0),
        candidateCount: { min: 1, max: 128, whole: true },
      });
  },
  visitPrompt(body, visitor) {
    visitGeminiParts(body["systemInstruction"] ?? body["system_instruction"], visitor);
    const { contents } = body;
    for (const content of Array.isArray(contents) ? (contents as unknown[]) : [contents])
      visitGeminiParts(content, visitor);
    for (const tool of asList(body["tools"])) visitor.tool(JSON.stringify(tool));
  },
  outputLimit: (body) => numberIn(configOf(body), "maxOutputTokens"),
  frameTokens: (body) => 3 * asList(body["contents"]).length,
};

function embedEndpoint(answer: (vectors: unknown[]) => JsonObject): Endpoint {
  return {
    ...GEMINI,
    name: "embeddings",
    dialect: "gemini",
    canStream: false,
    isScreened: false,
    isConversation: false,
    check(body) {
      if (body["requests"] !== undefined) requireList(GEMINI, body, "requests");
      const isEmpty = (request: Json): boolean =>
        embeddedText(request) === "" && embeddedMedia(request) === 0;
      if (embedRequests(body).every(isEmpty)) throw refused(GEMINI, "input_empty", "content");
    },
    visitPrompt(body, visitor) {
      const requests = embedRequests(body);
      visitInput(requests.map(embeddedText), visitor);
      for (const request of requests)
        for (let media = embeddedMedia(request); media > 0; media -= 1) visitor.media();
    },
    outputLimit: () => 0,
    answersTokens: false,
    holds: hasVectors,
    rewrite: embeddingsBody,
    losses: embedLosses,
    answer(json) {
      const wire = asObject(json);
      const vectors = asList(wire?.["data"]).map((value) => {
        const item = asObject(value);
        return { values: item?.["embedding"] ?? [], ...asObject(item?.[OWN_ANSWER]) };
      });
      return { ...answer(vectors), ...asObject(wire?.[OWN_ANSWER]) };
    },
  };
}

/** `:embedContent`, `:batchEmbedContents`: served by any upstream that has embeddings, by Google's as they were written. */
export const embedContent = embedEndpoint((vectors) => ({ embedding: vectors[0] ?? { values: [] } }));
export const batchEmbedContents = embedEndpoint((vectors) => ({ embeddings: vectors }));
