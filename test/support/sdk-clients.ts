// The real SDKs as clients of the gateway: each asks the same question with the same tool, whole and streamed.
// Refuses SDK-specific views: what they saw is told as text, tool calls and the sums of usage.
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { GoogleGenAI } from "@google/genai";
import type { GenerateContentResponse } from "@google/genai";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";
import type { LanguageModel } from "ai";
import OpenAI from "openai";
import type { DialectName } from "../../src/protocol/canonical.ts";
import type { Gateway } from "../relay/support.ts";

/** What a client sees of an answer, whatever SDK it uses. */
export interface Seen {
  text: string;
  calls: [string, unknown][];
  /** Tokens in, with all that came from a cache, and out, with all thinking. */
  usage: [number, number];
}

interface Client {
  whole(model: string): Promise<Seen>;
  stream(model: string): Promise<Seen>;
}

const QUESTION = "What is the weather?";
const SCHEMA = { type: "object", properties: { city: { type: "string" } } } as const;

function chatClient(g: Gateway): Client {
  const { client } = g;
  const ask = (model: string) => ({
    model,
    messages: [{ role: "user" as const, content: QUESTION }],
    tools: [{ type: "function" as const, function: { name: "weather", parameters: SCHEMA } }],
  });
  const seen = ({ choices, usage }: OpenAI.ChatCompletion): Seen => {
    const message = choices[0]?.message;
    return {
      text: message?.content ?? "",
      calls: (message?.tool_calls ?? []).map((call) =>
        call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : ["", ""],
      ),
      usage: [usage?.prompt_tokens ?? 0, usage?.completion_tokens ?? 0],
    };
  };
  const stream_options = { include_usage: true };
  return {
    whole: async (model) => seen(await client.chat.completions.create(ask(model))),
    stream: async (model) =>
      seen(await client.chat.completions.stream({ ...ask(model), stream_options }).finalChatCompletion()),
  };
}

function responsesClient(g: Gateway): Client {
  const { client } = g;
  const ask = (model: string) => ({
    model,
    input: QUESTION,
    tools: [{ type: "function" as const, name: "weather", parameters: SCHEMA, strict: false }],
  });
  const seen = (response: OpenAI.Responses.Response): Seen => {
    // The SDK hands out a failed response without raising.
    if (response.status !== "completed") throw new Error(`${response.status}: ${response.error?.message}`);
    return {
      text: response.output_text,
      calls: response.output.flatMap((item): [string, unknown][] =>
        item.type === "function_call" ? [[item.name, JSON.parse(item.arguments)]] : [],
      ),
      usage: [response.usage?.input_tokens ?? 0, response.usage?.output_tokens ?? 0],
    };
  };
  return {
    whole: async (model) => seen(await client.responses.create(ask(model))),
    stream: async (model) => seen(await client.responses.stream(ask(model)).finalResponse()),
  };
}

function anthropicClient(g: Gateway): Client {
  const client = new Anthropic({ apiKey: g.key, baseURL: g.app.url, maxRetries: 0 });
  const ask = (model: string) => ({
    model,
    max_tokens: 5000,
    messages: [{ role: "user" as const, content: QUESTION }],
    tools: [{ name: "weather", input_schema: SCHEMA }],
  });
  const seen = (message: Anthropic.Message): Seen => ({
    text: message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    calls: message.content.flatMap((block): [string, unknown][] =>
      block.type === "tool_use" ? [[block.name, block.input]] : [],
    ),
    usage: [
      message.usage.input_tokens +
        (message.usage.cache_read_input_tokens ?? 0) +
        (message.usage.cache_creation_input_tokens ?? 0),
      message.usage.output_tokens,
    ],
  });
  return {
    whole: async (model) => seen(await client.messages.create(ask(model))),
    stream: async (model) => seen(await client.messages.stream(ask(model)).finalMessage()),
  };
}

function geminiClient(g: Gateway): Client {
  const client = new GoogleGenAI({ apiKey: g.key, httpOptions: { baseUrl: g.app.url } });
  const ask = (model: string) => ({
    model,
    contents: QUESTION,
    config: { tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: SCHEMA }] }] },
  });
  const usageOf = ({ usageMetadata: usage }: GenerateContentResponse): Seen["usage"] => [
    (usage?.promptTokenCount ?? 0) + (usage?.toolUsePromptTokenCount ?? 0),
    (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
  ];
  return {
    async whole(model) {
      const answer = await client.models.generateContent(ask(model));
      return {
        text: answer.text ?? "",
        calls: (answer.functionCalls ?? []).map((call) => [call.name ?? "", call.args]),
        usage: usageOf(answer),
      };
    },
    async stream(model) {
      const seen: Seen = { text: "", calls: [], usage: [0, 0] };
      for await (const chunk of await client.models.generateContentStream(ask(model))) {
        seen.text += chunk.text ?? "";
        for (const call of chunk.functionCalls ?? []) seen.calls.push([call.name ?? "", call.args]);
        if (chunk.usageMetadata) seen.usage = usageOf(chunk);
      }
      return seen;
    },
  };
}

/** Vercel's AI SDK over one of its providers; it checks what it reads against schemas of its own. */
function aiClient(model: (name: string) => LanguageModel): Client {
  const ask = (name: string) => ({
    model: model(name),
    prompt: QUESTION,
    maxRetries: 0,
    tools: { weather: tool({ description: "weather", inputSchema: jsonSchema<{ city?: string }>(SCHEMA) }) },
  });
  type Calls = readonly { toolName: string; input: unknown; providerExecuted?: boolean | undefined }[];
  type Usage = { inputTokens?: number | undefined; outputTokens?: number | undefined };
  const seen = (text: string, calls: Calls, usage: Usage): Seen => ({
    text,
    usage: [usage.inputTokens ?? 0, usage.outputTokens ?? 0],
    // A hosted tool is the provider's own doing.
    calls: calls.flatMap((call) => (call.providerExecuted === true ? [] : [[call.toolName, call.input]])),
  });
  return {
    async whole(name) {
      const answer = await generateText(ask(name));
      return seen(answer.text, answer.toolCalls, answer.usage);
    },
    async stream(name) {
      let failure: unknown;
      const answer = streamText({ ...ask(name), onError: ({ error }) => void (failure = error) });
      let text = "";
      for await (const delta of answer.textStream) text += delta;
      if (failure !== undefined) throw failure;
      return seen(text, await answer.toolCalls, await answer.usage);
    },
  };
}

function langchainClient(g: Gateway): Client {
  const chat = (model: string) =>
    new ChatOpenAI({
      model,
      apiKey: g.key,
      maxRetries: 0,
      useResponsesApi: false,
      configuration: { baseURL: `${g.app.url}/v1` },
    }).bindTools([{ type: "function", function: { name: "weather", parameters: SCHEMA } }]);
  type Told = Awaited<ReturnType<ReturnType<typeof chat>["invoke"]>>;
  const usageOf = (message: Told | undefined): Seen["usage"] => [
    message?.usage_metadata?.input_tokens ?? 0,
    message?.usage_metadata?.output_tokens ?? 0,
  ];
  return {
    async whole(model) {
      const message = await chat(model).invoke(QUESTION);
      const calls = (message.tool_calls ?? []).map((call): [string, unknown] => [call.name, call.args]);
      return { text: message.text, calls, usage: usageOf(message) };
    },
    async stream(model) {
      const parts = await chat(model).stream(QUESTION);
      let whole: Told | undefined;
      for await (const part of parts) whole = whole ? (whole as typeof part).concat(part) : part;
      return {
        text: whole?.text ?? "",
        calls: (whole?.tool_calls ?? []).map((call) => [call.name, call.args]),
        usage: usageOf(whole),
      };
    },
  };
}

export interface SdkClient {
  name: string;
  /** Absent: the SDK chooses by the model's name. */
  dialect?: DialectName;
  make: (g: Gateway) => Client;
}

export const SDK_CLIENTS: readonly SdkClient[] = [
  { name: "openai chat", dialect: "openai-chat", make: chatClient },
  { name: "openai responses", dialect: "openai-responses", make: responsesClient },
  { name: "anthropic", dialect: "anthropic", make: anthropicClient },
  { name: "genai", dialect: "gemini", make: geminiClient },
  {
    name: "ai with openai",
    dialect: "openai-responses",
    make: (g) => aiClient(createOpenAI({ apiKey: g.key, baseURL: `${g.app.url}/v1` })),
  },
  {
    name: "ai with openai chat",
    dialect: "openai-chat",
    make: (g) => aiClient(createOpenAI({ apiKey: g.key, baseURL: `${g.app.url}/v1` }).chat),
  },
  {
    name: "ai with anthropic",
    dialect: "anthropic",
    make: (g) => aiClient(createAnthropic({ apiKey: g.key, baseURL: `${g.app.url}/v1` })),
  },
  {
    name: "ai with google",
    dialect: "gemini",
    make: (g) => aiClient(createGoogleGenerativeAI({ apiKey: g.key, baseURL: `${g.app.url}/v1beta` })),
  },
  { name: "langchain", make: langchainClient },
];
