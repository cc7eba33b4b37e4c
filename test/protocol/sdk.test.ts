// Guarantees that the providers' own SDKs read what the encoders write, from whatever upstream it came.
// Uses the SDKs over a fetch that answers with encoded text; nothing goes over a network.
import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { collect } from "../../src/protocol/assemble.ts";
import { anthropic } from "../../src/protocol/anthropic/dialect.ts";
import { gemini } from "../../src/protocol/gemini/dialect.ts";
import { openaiChat } from "../../src/protocol/openai-chat/dialect.ts";
import { openaiResponses } from "../../src/protocol/openai-responses/dialect.ts";
import { Failure } from "../../src/shared/failures.ts";
import type { CanonicalEvent } from "../../src/protocol/events.ts";
import { ALL_DIALECTS, counter, decode, encode, fixture } from "./support.ts";

const RICH = {
  "openai-chat": "tools-interleaved",
  anthropic: "thinking-tools",
  "openai-responses": "full",
  gemini: "thoughts-tools",
} as const;

function answering(body: string, type = "text/event-stream"): typeof fetch {
  const reply = async (): Promise<Response> => new Response(body, { headers: { "content-type": type } });
  return reply as unknown as typeof fetch;
}

const textIn = (events: CanonicalEvent[]): string =>
  collect(events)
    .blocks.map((block) => (block.kind === "text" ? block.text : ""))
    .join("");
const callsIn = (events: CanonicalEvent[]): [string | undefined, unknown][] =>
  collect(events)
    .blocks.filter((block) => block.kind === "tool-call")
    .map((block) => [block.name, JSON.parse(block.text || "{}")]);

/** What a promise was rejected with. */
const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

const BROKEN: CanonicalEvent[] = [
  { type: "start" },
  { type: "open", at: 0, kind: "text" },
  { type: "text", at: 0, delta: "par" },
  { type: "fail", failure: new Failure("broken-stream", "broken_stream") },
];

for (const upstream of ALL_DIALECTS) {
  const events = (): CanonicalEvent[] =>
    decode(upstream, fixture(`${upstream.name}/${RICH[upstream.name]}.sse`));

  describe(`from a ${upstream.name} upstream`, () => {
    test("the openai SDK gathers the chat stream", async () => {
      const client = new OpenAI({
        apiKey: "k",
        maxRetries: 0,
        fetch: answering(encode(openaiChat, events())),
      });
      const stream = client.chat.completions.stream({ model: "m", messages: [] });
      const final = await stream.finalChatCompletion();
      const message = final.choices[0]?.message;
      expect(message?.content ?? "").toBe(textIn(events()));
      const calls = message?.tool_calls ?? [];
      expect(
        calls.map((call) =>
          call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : [],
        ),
      ).toEqual(callsIn(events()));
      expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
      expect(final.choices[0]?.finish_reason).toBe("tool_calls");
      expect(final.usage?.total_tokens).toBeGreaterThan(0);
    });

    test("the openai SDK follows the whole life cycle of the Responses stream", async () => {
      const client = new OpenAI({
        apiKey: "k",
        maxRetries: 0,
        fetch: answering(encode(openaiResponses, events())),
      });
      const stream = client.responses.stream({ model: "m", input: "q" });
      const seen: string[] = [];
      const numbers: number[] = [];
      for await (const event of stream) {
        seen.push(event.type);
        if ("sequence_number" in event) numbers.push(event.sequence_number as number);
      }
      const final = await stream.finalResponse();
      expect(seen[0]).toBe("response.created");
      expect(seen.at(-1)).toBe("response.completed");
      expect(numbers).toEqual(numbers.map((_, index) => index));
      const added = seen.filter((type) => type === "response.output_item.added").length;
      expect(added).toBe(seen.filter((type) => type === "response.output_item.done").length);
      expect(added).toBe(final.output.length);
      expect(final.output_text).toBe(textIn(events()));
      const calls = final.output.filter((item) => item.type === "function_call");
      expect(calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual(
        callsIn(events()) as never,
      );
      expect(final.usage?.output_tokens).toBeGreaterThan(0);
    });

    test("the anthropic SDK gathers the message stream", async () => {
      const client = new Anthropic({
        apiKey: "k",
        maxRetries: 0,
        fetch: answering(encode(anthropic, events())),
      });
      const stream = client.messages.stream({ model: "m", max_tokens: 9, messages: [] });
      const message = await stream.finalMessage();
      const texts = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
      expect(texts.join("")).toBe(textIn(events()));
      const calls = message.content.filter((block) => block.type === "tool_use");
      expect(calls.map((call) => [call.name, call.input])).toEqual(callsIn(events()));
      expect(message.stop_reason).toBe("tool_use");
      expect(message.usage.input_tokens + (message.usage.cache_read_input_tokens ?? 0)).toBeGreaterThan(0);
    });

    test("the genai SDK reads the chunks", async () => {
      const text = encode(gemini, events());
      const client = new GoogleGenAI({ apiKey: "k" });
      const before = globalThis.fetch;
      globalThis.fetch = answering(text);
      try {
        const stream = await client.models.generateContentStream({ model: "m", contents: "q" });
        let shown = "";
        const calls: unknown[] = [];
        let reason: string | undefined;
        let total = 0;
        for await (const part of stream) {
          for (const item of part.candidates?.[0]?.content?.parts ?? []) {
            if (item.text !== undefined && !item.thought) shown += item.text;
            if (item.functionCall) calls.push([item.functionCall.name, item.functionCall.args]);
          }
          reason = part.candidates?.[0]?.finishReason ?? reason;
          total = part.usageMetadata?.totalTokenCount ?? total;
        }
        expect(shown).toBe(textIn(events()));
        expect(calls).toEqual(callsIn(events()));
        expect(reason).toBe("STOP");
        expect(total).toBeGreaterThan(0);
      } finally {
        globalThis.fetch = before;
      }
    });

    test("whole answers are read by the SDKs", async () => {
      const answer = collect(events());
      const context = { newId: counter(), nowSeconds: 1 };
      const json = (dialect: (typeof ALL_DIALECTS)[number]): typeof fetch =>
        answering(JSON.stringify(dialect.encodeAnswer(answer, context)), "application/json");
      const chat = await new OpenAI({ apiKey: "k", fetch: json(openaiChat) }).chat.completions.create({
        model: "m",
        messages: [],
      });
      expect(chat.choices[0]?.message.content ?? "").toBe(textIn(events()));
      const response = await new OpenAI({ apiKey: "k", fetch: json(openaiResponses) }).responses.create({
        model: "m",
        input: "q",
      });
      expect(response.output_text).toBe(textIn(events()));
      const message = await new Anthropic({ apiKey: "k", fetch: json(anthropic) }).messages.create({
        model: "m",
        max_tokens: 1,
        messages: [],
      });
      expect(message.content.filter((block) => block.type === "tool_use")).toHaveLength(
        callsIn(events()).length,
      );
    });
  });
}

describe("a broken upstream", () => {
  test("raises in the openai SDK, for chat and for Responses", async () => {
    const chat = new OpenAI({ apiKey: "k", maxRetries: 0, fetch: answering(encode(openaiChat, BROKEN)) });
    expect(
      await caught(chat.chat.completions.stream({ model: "m", messages: [] }).finalChatCompletion()),
    ).toBeInstanceOf(Error);
    const responses = new OpenAI({
      apiKey: "k",
      maxRetries: 0,
      fetch: answering(encode(openaiResponses, BROKEN)),
    });
    const final = await responses.responses
      .stream({ model: "m", input: "q" })
      .finalResponse()
      .catch((error: unknown) => error);
    expect(final instanceof Error || (final as { status?: string }).status === "failed").toBe(true);
  });
  test("raises in the anthropic SDK", async () => {
    const client = new Anthropic({ apiKey: "k", maxRetries: 0, fetch: answering(encode(anthropic, BROKEN)) });
    expect(
      await caught(client.messages.stream({ model: "m", max_tokens: 1, messages: [] }).finalMessage()),
    ).toBeInstanceOf(Error);
  });
  test("raises in the genai SDK", async () => {
    const before = globalThis.fetch;
    globalThis.fetch = answering(encode(gemini, BROKEN));
    const read = async (): Promise<void> => {
      const stream = await new GoogleGenAI({ apiKey: "k" }).models.generateContentStream({
        model: "m",
        contents: "q",
      });
      for await (const part of stream) void part;
    };
    try {
      expect(await caught(read())).toBeInstanceOf(Error);
    } finally {
      globalThis.fetch = before;
    }
  });
});
