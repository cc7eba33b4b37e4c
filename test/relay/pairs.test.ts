// Guarantees that any client reaches any upstream: four SDKs against four providers' recorded answers, through the
// whole gateway, streaming and not, charged by what the provider reported.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { collect } from "../../src/protocol/assemble.ts";
import type { Answer } from "../../src/protocol/assemble.ts";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { DIALECTS } from "../../src/protocol/dialects.ts";
import { completionTokens, promptTokens } from "../../src/shared/usage.ts";
import { createSseReader } from "../../src/relay/framing.ts";
import {
  answerOf,
  answerText,
  halfOf,
  refusalOf,
  streamText,
  UPSTREAMS,
} from "../support/dialect-upstream.ts";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];

/** What a client sees of an answer, whatever SDK it uses. */
interface Seen {
  text: string;
  calls: [string, unknown][];
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
  const seen = (message: OpenAI.ChatCompletionMessage | undefined): Seen => ({
    text: message?.content ?? "",
    calls: (message?.tool_calls ?? []).map((call) =>
      call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : ["", ""],
    ),
  });
  return {
    whole: async (model) => seen((await client.chat.completions.create(ask(model))).choices[0]?.message),
    stream: async (model) =>
      seen((await client.chat.completions.stream(ask(model)).finalChatCompletion()).choices[0]?.message),
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
  return {
    async whole(model) {
      const answer = await client.models.generateContent(ask(model));
      return {
        text: answer.text ?? "",
        calls: (answer.functionCalls ?? []).map((call) => [call.name ?? "", call.args]),
      };
    },
    async stream(model) {
      const seen: Seen = { text: "", calls: [] };
      for await (const chunk of await client.models.generateContentStream(ask(model))) {
        seen.text += chunk.text ?? "";
        for (const call of chunk.functionCalls ?? []) seen.calls.push([call.name ?? "", call.args]);
      }
      return seen;
    },
  };
}

const CLIENTS: Readonly<Record<DialectName, (g: Gateway) => Client>> = {
  "openai-chat": chatClient,
  "openai-responses": responsesClient,
  anthropic: anthropicClient,
  gemini: geminiClient,
};

const ids = (prefix: string): string => `${prefix}1`;

function recorded(dialect: DialectName): { whole: Answer; streamed: Answer } {
  const decoder = DIALECTS[dialect].decodeStream({ newId: ids });
  const reader = createSseReader();
  const frames = [...reader.push(new TextEncoder().encode(streamText(dialect))), ...reader.end()];
  const events = frames.flatMap((frame) => decoder.push(frame));
  events.push(...decoder.end());
  const whole = DIALECTS[dialect].decodeAnswer(JSON.parse(answerText(dialect)), { newId: ids });
  return { whole, streamed: collect(events) };
}

function expected(answer: Answer): Seen {
  const of = (kind: string) => answer.blocks.filter((block) => block.kind === kind);
  return {
    text: of("text")
      .map((block) => block.text)
      .join(""),
    calls: of("tool-call").map((block) => [block.name ?? "", JSON.parse(block.text || "{}")]),
  };
}

for (const upstream of NAMES) {
  const { type, model } = UPSTREAMS[upstream];

  describe(`a ${upstream} upstream`, () => {
    let g: Gateway;
    beforeAll(async () => {
      g = await startGateway({ channel: { type, models: model } });
      await g.setOption("SelfUseModeEnabled", "true");
    });
    afterAll(() => g.close());

    for (const client of NAMES) {
      test(`answers ${client} clients, whole, and is paid by its own numbers`, async () => {
        g.upstream.reset();
        g.upstream.always(answerOf(upstream));
        const answer = recorded(upstream).whole;
        expect(await CLIENTS[client](g).whole(model)).toEqual(expected(answer));
        expect(await g.lastCharge()).toMatchObject({
          modelName: model,
          promptTokens: promptTokens(answer.usage),
          completionTokens: completionTokens(answer.usage),
          isStream: false,
          other: { client_dialect: client, upstream_dialect: upstream },
        });
      });

      test(`answers ${client} clients, streamed, and is paid by its own numbers`, async () => {
        g.upstream.reset();
        g.upstream.always(answerOf(upstream));
        const answer = recorded(upstream).streamed;
        expect(await CLIENTS[client](g).stream(model)).toEqual(expected(answer));
        const charge = await g.lastCharge();
        expect(charge).toMatchObject({
          promptTokens: promptTokens(answer.usage),
          completionTokens: completionTokens(answer.usage),
          isStream: true,
          other: { client_dialect: client, upstream_dialect: upstream, end_reason: "completed" },
        });
        expect(charge?.other["frt"]).toBeGreaterThan(0);
      });

      test(`a cut stream is an error for ${client} clients, and what came is paid`, async () => {
        g.upstream.reset();
        g.upstream.script(halfOf(upstream));
        const failure = await CLIENTS[client](g)
          .stream(model)
          .then(
            () => undefined,
            (error: unknown) => error,
          );
        expect(failure).toBeInstanceOf(Error);
        expect((await g.lastCharge())?.other["end_reason"]).toBe("upstream-cut");
      });

      test(`a refusal reaches ${client} clients as their SDK's own error, unpaid`, async () => {
        g.upstream.reset();
        g.upstream.script(refusalOf(upstream, 422));
        const before = await g.balance();
        const failure = await CLIENTS[client](g)
          .whole(model)
          .then(
            () => undefined,
            (error: unknown) => error,
          );
        expect(failure).toMatchObject({ status: 422 });
        expect(String((failure as Error).message)).toContain("upstream says 422");
        expect(await g.balance()).toEqual(before);
      });
    }
  });
}
