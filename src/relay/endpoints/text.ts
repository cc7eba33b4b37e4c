// The text endpoints of the OpenAI dialect: chat completions, legacy completions, embeddings.
// Refuses missing fields and wrong types by name, with the codes that clients of each endpoint know.
import { asList } from "../../protocol/json.ts";
import { hasVectors } from "./answer-checks.ts";
import {
  checkCommon,
  checkNumbers,
  isObject,
  largestLimit,
  refused,
  visitCacheMark,
  visitContent,
  visitInput,
} from "./endpoint.ts";
import type { Endpoint, Json } from "./endpoint.ts";

/** Role and frame of a chat message, and the answer's priming. */
const TOKENS_PER_MESSAGE = 3;

const TEXT = { refusalCode: "invalid_text_request", dialect: "openai-chat" } as const;

export const chat: Endpoint = {
  ...TEXT,
  name: "chat",
  path: "/v1/chat/completions",
  canStream: true,
  isScreened: true,
  isConversation: true,
  outputLimit: largestLimit,
  readOnce: new Set(["n", "max_tokens", "max_completion_tokens", "messages"]),
  frameTokens: (body) => TOKENS_PER_MESSAGE * (asList(body["messages"]).length + 1),
  check(body) {
    checkCommon(TEXT, body);
    const { messages } = body;
    if (messages === undefined || messages === null || (Array.isArray(messages) && messages.length === 0))
      throw refused(TEXT, "field_required", "messages");
    if (!Array.isArray(messages)) throw refused(TEXT, "invalid_field", "messages", "must be a list");
    if (!(messages as unknown[]).every(isObject))
      throw refused(TEXT, "invalid_field", "messages", "every message must be an object");
  },
  visitPrompt(body, visitor) {
    for (const message of body["messages"] as Json[]) {
      visitContent(message["content"], visitor);
      if (Array.isArray(message["tool_calls"])) visitor.tool(JSON.stringify(message["tool_calls"]));
    }
    visitCacheMark(body, visitor);
    if (!Array.isArray(body["tools"])) return;
    visitor.tool(JSON.stringify(body["tools"]));
    for (const tool of body["tools"] as unknown[]) if (isObject(tool)) visitCacheMark(tool, visitor);
  },
};

export const completions: Endpoint = {
  ...TEXT,
  name: "completions",
  path: "/v1/completions",
  canStream: true,
  isScreened: true,
  isConversation: false,
  outputLimit: largestLimit,
  readOnce: new Set(["n", "best_of", "max_tokens", "max_completion_tokens", "prompt"]),
  check(body) {
    checkCommon(TEXT, body);
    const { prompt } = body;
    if (
      prompt === undefined ||
      prompt === null ||
      prompt === "" ||
      (Array.isArray(prompt) && prompt.length === 0)
    )
      throw refused(TEXT, "field_required", "prompt");
    if (typeof prompt !== "string" && !Array.isArray(prompt))
      throw refused(TEXT, "invalid_field", "prompt", "must be a text or a list");
  },
  visitPrompt: (body, visitor) => visitInput(body["prompt"], visitor),
};

const EMBEDDINGS = { refusalCode: "invalid_embedding_request" } as const;

export const embeddings: Endpoint = {
  ...EMBEDDINGS,
  name: "embeddings",
  path: "/v1/embeddings",
  answersTokens: false,
  holds: hasVectors,
  dialect: "openai-chat",
  canStream: false,
  isScreened: false,
  isConversation: false,
  outputLimit: largestLimit,
  readOnce: new Set(["input"]),
  check(body) {
    checkNumbers(EMBEDDINGS, body);
    const { input } = body;
    if (input === undefined || input === null || input === "" || (Array.isArray(input) && input.length === 0))
      throw refused(EMBEDDINGS, "input_empty", "input");
    if (typeof input !== "string" && !Array.isArray(input))
      throw refused(EMBEDDINGS, "invalid_field", "input", "must be a text or a list");
    const format = body["encoding_format"];
    if (format !== undefined && format !== null && format !== "float" && format !== "base64")
      throw refused(EMBEDDINGS, "invalid_field", "encoding_format", "must be float or base64");
  },
  visitPrompt: (body, visitor) => visitInput(body["input"], visitor),
};
