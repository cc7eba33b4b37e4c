// Guarantees for chunks that their server wraps in a list, as some do with Gemini's: what is metered is delivered.
import { describe, expect, test } from "bun:test";
import { DIALECTS } from "../../../src/protocol/dialects.ts";
import { SAYS_NOTHING } from "../../../src/protocol/life-cycle.ts";
import { createSseReader, unlisted } from "../../../src/relay/wire/framing.ts";
import { createArrayFraming, createConversion } from "../../../src/relay/wire/stream-convert.ts";
import type { StreamConversion } from "../../../src/relay/wire/stream-convert.ts";
import { createStreamRelay } from "../../../src/relay/wire/stream.ts";
import type { StreamOptions } from "../../../src/relay/wire/stream-state.ts";
import { openaiChat } from "../../../src/protocol/openai-chat/dialect.ts";
import { collect } from "../../../src/protocol/assemble.ts";
import { counter, decode } from "../../protocol/support.ts";

const encoder = new TextEncoder();
const { gemini } = DIALECTS;
const part = (text: string, more: object = {}) => ({
  candidates: [{ content: { parts: [{ text }] }, ...more }],
});
const USAGE = { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 } };
const FIRST = part("hello");
const LAST = { ...part(" world", { finishReason: "STOP" }), ...USAGE };
const listed = (...chunks: object[]): string => `data: ${JSON.stringify(chunks)}\r\n\r\n`;

interface Received {
  text: string;
  reason: string;
  chars: number;
}

/** What the client of such a stream gets, and how it ended. */
async function receive(chunks: string[], options: Pick<StreamOptions, "meter"> & Partial<StreamOptions>) {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });
  const relay = createStreamRelay(
    { reader: body.getReader(), abort: () => {} },
    {
      terminal: "end-of-body",
      hidesUsage: false,
      idleMs: 5000,
      pingMs: 0,
      readOn: { countedMs: 1, countedBytes: 1, begin: () => 1, end: () => {}, keepsReasoning: () => false },
      ...options,
    },
  );
  await relay.begin();
  const text = new Response(relay.body(new AbortController().signal)).text();
  const { reason } = await relay.ended;
  relay.finish(options.conversion ? options.conversion.tail(undefined) : relay.terminalFrames());
  const received: Received = { text: await text, reason, chars: options.meter.state.textChars };
  return received;
}

function dataOf(text: string): unknown[] {
  const reader = createSseReader();
  return [...reader.push(encoder.encode(text)), ...reader.end()].map(
    ({ data }) => JSON.parse(data) as unknown,
  );
}

const WAYS: [string, string[]][] = [
  ["one by one", [listed(FIRST), listed(LAST)]],
  ["several in one", [listed(FIRST, LAST)]],
];

describe.each(WAYS)("chunks in lists, %s", (_, chunks) => {
  test("go on as the chunks that they hold", async () => {
    const meter = gemini.meterStream();
    const { text, reason, chars } = await receive(chunks, { meter, dataOnly: true });
    expect([reason, chars]).toEqual(["completed", 11]);
    expect(dataOf(text)).toEqual([FIRST, LAST]);
    expect(meter.state.usage?.output.text).toBe(2);
  });

  test("become elements of the array that a client without events gets", async () => {
    const framing = createArrayFraming(gemini.meterStream(), {
      saysNothing: SAYS_NOTHING.gemini,
      failure: () => "{}",
      limit: () => "{}",
    });
    const { text, reason } = await receive(chunks, { meter: framing, conversion: framing });
    expect(reason).toBe("completed");
    expect(JSON.parse(text)).toEqual([FIRST, LAST]);
  });

  test("are converted for the client of another dialect", async () => {
    const conversion: StreamConversion = createConversion({
      decoder: gemini.decodeStream({ newId: counter() }),
      encoder: openaiChat.encodeStream({ newId: counter(), nowSeconds: 1 }),
      contentType: "text/event-stream",
    });
    const { text, reason } = await receive(chunks, { meter: conversion, conversion });
    expect(reason).toBe("completed");
    expect(collect(decode(openaiChat, text)).blocks).toMatchObject([{ kind: "text", text: "hello world" }]);
  });
});

test("an error in a list is heard in any dialect, and what is no list of objects stays as it is", async () => {
  const meter = openaiChat.meterStream();
  const failed = `data: [{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]\n\n`;
  const text = `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n`;
  const { reason } = await receive([text, failed], { meter, terminal: "done-line" });
  expect([reason, meter.state.failure?.kind]).toEqual(["error-in-stream", "upstream-limit"]);
  const others = ["[DONE]", "[1]", "[]", "[{", '[{"a":1},2]', '{"a":[{}]}'].map((data) => ({
    event: "",
    data,
  }));
  expect(unlisted(others)).toEqual(others);
});
