// Cohere: plain talk through v1 with the whole history, tools and pictures through v2, embeddings in batches.
// Holds both versions to the same usage, errors and ends.
import { afterAll, expect, test } from "bun:test";
import type { Failure } from "../../../src/shared/failures.ts";
import { handler, KEY } from "./fakes/cohere.ts";
import {
  codeOf,
  failureOf,
  HI,
  perform,
  PNG,
  serve,
  streamed,
  text,
  TOOL_TURNS,
  WEATHER_TOOL,
  whole,
  requestOf,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const upstream = serve(handler);
afterAll(() => upstream.stop());

function cohere(body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}): CallOptions {
  const all = { messages: HI, ...body };
  return { type: 34, key: KEY, model: "command-r-plus", baseUrl: upstream.url, body: all, ...more };
}

const last = () => requestOf(upstream);
const ask = (content: string) => cohere({ messages: [{ role: "user", content }] });

test("plain conversations go through v1 with all turns in their order", async () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "one" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
  ];
  for (const answer of [await whole(cohere({ messages })), await streamed(cohere({ messages }))]) {
    expect([text(answer), answer.reason]).toEqual(["Hello world", "stop"]);
    expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
  }
  expect([last().path, last().json()]).toEqual([
    "/v1/chat",
    {
      model: "command-r-plus",
      message: "three",
      chat_history: [
        { role: "SYSTEM", message: "Be brief." },
        { role: "USER", message: "one" },
        { role: "CHATBOT", message: "two" },
      ],
      stream: true,
    },
  ]);
});

test("sampling travels under Cohere's names", async () => {
  await whole(cohere({ max_tokens: 9, temperature: 0.3, top_p: 0.9, top_k: 4, seed: 1, stop: "END" }));
  expect(last().json()).toMatchObject({
    max_tokens: 9,
    temperature: 0.3,
    p: 0.9,
    k: 4,
    seed: 1,
    stop_sequences: ["END"],
  });
});

test("tools go through v2: offered, called with a plan, answered", async () => {
  const tools = [WEATHER_TOOL];
  for (const answer of [
    await whole(cohere({ tools, tool_choice: "required" })),
    await streamed(cohere({ tools })),
  ]) {
    expect(answer.reason).toBe("tool-calls");
    expect(text(answer, "thinking")).toBe("I will look.");
    expect(answer.blocks.at(-1)).toMatchObject({
      kind: "tool-call",
      callId: "get_weather_1",
      name: "get_weather",
      text: '{"city":"Paris"}',
    });
    expect(answer.usage.input.fresh).toBe(11);
  }
  expect([requestOf(upstream, 1).path, requestOf(upstream, 1).json()["tool_choice"]]).toEqual([
    "/v2/chat",
    "REQUIRED",
  ]);
  const answer = await streamed(cohere({ messages: TOOL_TURNS, tools }));
  expect(text(answer)).toBe("Hello world");
  expect((last().json()["messages"] as unknown[]).slice(1)).toEqual([
    {
      role: "assistant",
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "18 degrees" },
  ]);
});

test("one certain tool is forced by offering it alone", async () => {
  const other = { type: "function", function: { name: "other" } };
  const tool_choice = { type: "function", function: { name: "get_weather" } };
  await whole(cohere({ tools: [other, WEATHER_TOOL], tool_choice }));
  const sent = last().json();
  expect(sent["tool_choice"]).toBe("REQUIRED");
  expect((sent["tools"] as { function: { name: string } }[]).map((tool) => tool.function.name)).toEqual([
    "get_weather",
  ]);
});

test("pictures and formats go through v2", async () => {
  const url = `data:image/png;base64,${PNG}`;
  const content = [
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url } },
  ];
  const schema = { type: "object" };
  const response_format = { type: "json_schema", json_schema: { name: "x", schema } };
  await whole(cohere({ messages: [{ role: "user", content }], response_format }));
  expect(last().path).toBe("/v2/chat");
  expect(last().json()).toMatchObject({
    messages: [{ role: "user", content }],
    response_format: { type: "json_object", json_schema: schema },
  });
});

test("what neither version takes is refused by name", async () => {
  for (const body of [
    { n: 2 },
    { functions: [{ name: "f" }] },
    { messages: [{ role: "user", content: [{ type: "file", file: { file_id: "f" } }] }] },
  ])
    expect(await codeOf(() => perform(cohere(body)))).toBe("unsupported_field");
});

test("errors keep their kind; streams that fail or break off never end cleanly", async () => {
  const refused = await failureOf(await perform(ask("refuse")));
  expect([refused.kind, refused.text]).toEqual(["upstream-request", "too many tokens: size limit exceeded"]);
  expect((await failureOf(await perform({ ...ask("hi"), key: "wrong" }))).kind).toBe("upstream-auth");
  const failed = (await streamed(ask("exception")).catch((error: unknown) => error)) as Failure;
  expect(failed.kind).toBe("upstream-down");
  const cut = await perform({ ...ask("cut"), isStream: true });
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
});

test("a v1 stream may be cut anywhere", async () => {
  const bytes = new Uint8Array(
    await (
      await fetch(`${upstream.url}/v1/chat`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEY}` },
        body: JSON.stringify({ message: "日本", stream: true }),
      })
    ).arrayBuffer(),
  );
  for (let at = 1; at < bytes.length; at++) {
    const fetch = (): Promise<Response> =>
      Promise.resolve(
        new Response(
          new ReadableStream({
            start(controller) {
              controller.enqueue(bytes.slice(0, at));
              controller.enqueue(bytes.slice(at));
              controller.close();
            },
          }),
        ),
      );
    expect([at, text(await streamed(cohere({}, { more: { fetch } })))]).toEqual([at, "Hello world"]);
  }
});

test("embeddings are made in batches, in order, and counted together", async () => {
  const input = Array.from({ length: 100 }, (_, index) => "x".repeat(index + 1));
  const before = upstream.requests.length;
  const response = await perform(
    cohere({ input, messages: undefined, dimensions: 2 }, { operation: "embeddings", model: "embed-v4.0" }),
  );
  const body = (await response.json()) as { data: { index: number; embedding: number[] }[]; usage: object };
  expect(body.data.map((item) => [item.index, item.embedding[0]])).toEqual(
    input.map((_, index) => [index, index + 1]),
  );
  expect(body.usage).toEqual({ prompt_tokens: 100, total_tokens: 100 });
  expect(upstream.requests.length).toBe(before + 2);
  expect(last().json()).toMatchObject({
    input_type: "search_document",
    embedding_types: ["float"],
    output_dimension: 2,
  });
});
