// The adapters of one or two calls: Cloudflare's models, Ollama's and Gemini's embeddings, Imagen, AI Proxy's library.
// Each against its fake on loopback, errors included.
import { afterAll, expect, test } from "bun:test";
import type { AdapterFile } from "../../../src/providers/adapter.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import * as aiproxy from "./fakes/aiproxy-library.ts";
import * as gemini from "./fakes/gemini.ts";
import * as cloudflare from "./fakes/cloudflare.ts";
import * as ollama from "./fakes/ollama.ts";
import {
  codeOf,
  failureOf,
  HI,
  perform,
  serve,
  streamed,
  text,
  WEATHER_TOOL,
  whole,
  requestOf,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const upstreams = {
  4: serve(ollama.handler),
  21: serve(aiproxy.handler),
  24: serve(gemini.handler),
  39: serve(cloudflare.handler),
};
afterAll(() => {
  for (const upstream of Object.values(upstreams)) upstream.stop();
});

type Json = Record<string, unknown>;

function options(type: keyof typeof upstreams, body: Json, more: Partial<CallOptions>): CallOptions {
  const keys = { 4: ollama.KEY, 21: aiproxy.KEY, 24: gemini.KEY, 39: cloudflare.KEY };
  return { type, key: keys[type], model: "m", baseUrl: upstreams[type].url, body, ...more };
}

const json = async (call: CallOptions): Promise<Json> => (await (await perform(call)).json()) as Json;

const completion = (body: Json, more: Partial<CallOptions> = {}) =>
  options(39, body, {
    operation: "completions",
    model: "@cf/meta/llama-3.1-8b-instruct",
    channel: { other: cloudflare.ACCOUNT },
    ...more,
  });

test("Cloudflare completes a prompt, whole and streamed, with its usage", async () => {
  const body = await json(completion({ prompt: ["Say hi"], max_tokens: 9, temperature: 0.1 }));
  expect(body).toMatchObject({
    object: "text_completion",
    choices: [{ index: 0, text: "Hello world", finish_reason: "stop" }],
    usage: { prompt_tokens: 11, completion_tokens: 7 },
  });
  expect(requestOf(upstreams[39]).path).toBe(
    "/client/v4/accounts/acc-1/ai/run/@cf/meta/llama-3.1-8b-instruct",
  );
  expect(requestOf(upstreams[39]).json()).toEqual({
    prompt: "Say hi",
    stream: false,
    max_tokens: 9,
    temperature: 0.1,
  });
  const wire = await (await perform(completion({ prompt: "Say hi" }, { isStream: true }))).text();
  const lines = wire.split("\n\n").filter((line) => line.startsWith("data: {"));
  const chunks = lines.map(
    (line) => JSON.parse(line.slice(6)) as { choices: { text: string }[]; usage?: Json },
  );
  expect(chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.text)).join("")).toBe("Hello world");
  expect(chunks.at(-1)?.usage?.["prompt_tokens"]).toBe(11);
  expect(wire).toEndWith("data: [DONE]\n\n");
});

test("Cloudflare's completion refuses by name what it has no field for, and a cut stream breaks", async () => {
  for (const body of [
    { prompt: ["a", "b"] },
    { prompt: "a", n: 2 },
    { prompt: "a", suffix: "b" },
    { prompt: "a", echo: true },
  ])
    expect(await codeOf(() => perform(completion(body)))).toBe("unsupported_field");
  const cut = await perform(completion({ prompt: "cut" }, { isStream: true }));
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
  const failure = await failureOf(await perform(completion({ prompt: "refuse" })));
  expect([failure.kind, failure.text]).toEqual(["context-length", "The input is too long"]);
});

test("Cloudflare hears recordings: as bytes, or inside of JSON where the model wants it", async () => {
  const file: AdapterFile = {
    name: "file",
    filename: "a.mp3",
    type: "audio/mpeg",
    bytes: new Uint8Array(42),
  };
  const listen = (
    model: string,
    body: Json = {},
    operation: "transcriptions" | "translations" = "transcriptions",
  ) => completion(body, { model, operation, more: { files: [file] } });
  expect(await json(listen("@cf/openai/whisper"))).toEqual({ text: "heard 42 bytes" });
  expect(requestOf(upstreams[39]).headers.get("content-type")).toBe("application/octet-stream");
  const turbo = "@cf/openai/whisper-large-v3-turbo";
  expect(await json(listen(turbo))).toEqual({ text: "transcribed" });
  expect(await json(listen(turbo, { language: "fr" }, "translations"))).toEqual({ text: "translated" });
  expect(requestOf(upstreams[39]).json()).toEqual({
    audio: Buffer.from(new Uint8Array(42)).toString("base64"),
    task: "translate",
    language: "fr",
  });
  expect(await (await perform(listen(turbo, { response_format: "vtt" }))).text()).toBe("WEBVTT");
  expect(await codeOf(() => perform(listen(turbo, { response_format: "srt" })))).toBe("unsupported_field");
  expect(await codeOf(() => perform(completion({}, { operation: "transcriptions" })))).toBe("field_required");
});

const embeddings = (type: 4 | 24, input: unknown, more: Json = {}) =>
  options(
    type,
    { input, ...more },
    { operation: "embeddings", model: type === 4 ? "nomic-embed-text" : "text-embedding-004" },
  );

test("Ollama embeds every text as a vector of its own, and says what it read", async () => {
  expect(await json(embeddings(4, ["a", "bcd"], { dimensions: 2 }))).toEqual({
    object: "list",
    data: [
      { object: "embedding", index: 0, embedding: [1, 0.25] },
      { object: "embedding", index: 1, embedding: [3, 0.25] },
    ],
    model: "nomic-embed-text",
    usage: { prompt_tokens: 8, total_tokens: 8 },
  });
  expect(requestOf(upstreams[4]).json()).toEqual({
    model: "nomic-embed-text",
    input: ["a", "bcd"],
    dimensions: 2,
  });
  expect(await codeOf(() => perform(embeddings(4, [[1, 2]])))).toBe("unsupported_field");
  const absent = await perform({ ...embeddings(4, "a"), model: "absent" });
  expect((await failureOf(absent)).kind).toBe("upstream-request");
});

test("Gemini embeds one text by itself and several in a batch, each as its own vector", async () => {
  expect(await json(embeddings(24, "abc"))).toMatchObject({ data: [{ index: 0, embedding: [3, 4] }] });
  expect(requestOf(upstreams[24]).path).toBe("/v1beta/models/text-embedding-004:embedContent");
  const many = await json(embeddings(24, ["a", "bcd"], { dimensions: 3 }));
  expect(many["data"]).toEqual([
    { object: "embedding", index: 0, embedding: [1, 2, 3] },
    { object: "embedding", index: 1, embedding: [3, 4, 5] },
  ]);
  const sent = requestOf(upstreams[24]);
  expect(sent.path).toBe("/v1beta/models/text-embedding-004:batchEmbedContents");
  expect((sent.json()["requests"] as Json[])[0]).toEqual({
    model: "models/text-embedding-004",
    content: { parts: [{ text: "a" }] },
    outputDimensionality: 3,
  });
  // Of a Google client's own request goes what the channel's rules took away.
  const own = { content: { parts: [{ text: "abc" }] }, outputDimensionality: 3 };
  for (const dimensions of [undefined, 3]) {
    const call = embeddings(24, "abc", dimensions === undefined ? {} : { dimensions });
    await perform({ ...call, more: { own } });
    expect(requestOf(upstreams[24]).json()["outputDimensionality"]).toBe(dimensions);
  }
  expect((await failureOf(await perform(embeddings(24, "refuse")))).kind).toBe("upstream-limit");
  expect(await codeOf(() => perform(embeddings(24, [1, 2])))).toBe("unsupported_field");
});

test("Imagen draws: sizes become shapes, each picture counts, what was filtered is refused", async () => {
  const draw = (body: Json) =>
    options(24, body, { operation: "image-generations", model: "imagen-3.0-generate-002" });
  expect(await json(draw({ prompt: "a cat", n: 2, size: "1792x1024" }))).toEqual({
    created: 1_700_000_000,
    data: [{ b64_json: "aW1n" }, { b64_json: "aW1n" }],
    usage: { prompt_tokens: 516, completion_tokens: 0, total_tokens: 516 },
  });
  expect(requestOf(upstreams[24]).json()).toEqual({
    instances: [{ prompt: "a cat" }],
    parameters: { sampleCount: 2, aspectRatio: "16:9", personGeneration: "allow_adult" },
  });
  const byAddress = await json(draw({ prompt: "a cat", response_format: "url" }));
  expect(byAddress["data"]).toEqual([{ url: "data:image/png;base64,aW1n" }]);
  expect(await codeOf(() => perform(draw({ prompt: "a cat", size: "17x4" })))).toBe("unsupported_field");
  const filtered = await failureOf(await perform(draw({ prompt: "filtered" })));
  expect(filtered.kind).toBe("upstream-refusal");
});

const library = (body: Json, more: Partial<CallOptions> = {}) =>
  options(21, { messages: HI, ...body }, { channel: { other: aiproxy.LIBRARY }, ...more });

test("AI Proxy's library answers with its sources, whole and streamed", async () => {
  const expected =
    "Hello world\n\n1. [Guide](https://docs.example/guide)\n2. [FAQ](https://docs.example/faq)\n";
  const messages = [...HI, { role: "assistant", content: "x" }, { role: "user", content: "and?" }];
  for (const answer of [await whole(library({ messages })), await streamed(library({ messages }))])
    expect([text(answer), answer.reason]).toEqual([expected, "stop"]);
  expect(requestOf(upstreams[21]).json()).toEqual({
    model: "m",
    query: "and?",
    libraryId: "123456",
    stream: true,
  });
});

test("AI Proxy's refusals under status 200 are errors, and a cut stream breaks", async () => {
  expect((await failureOf(await perform(library({}, { key: "wrong" })))).kind).toBe("upstream-auth");
  expect((await perform(library({}, { channel: { other: "9" } }))).status).toBe(404);
  expect(await codeOf(() => perform(library({}, { channel: {} })))).toBe("channel_other_missing");
  expect(await codeOf(() => perform(library({ tools: [WEATHER_TOOL] })))).toBe("unsupported_field");
  const cut = await perform({ ...library({ messages: [{ role: "user", content: "cut" }] }), isStream: true });
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
  const wrong = await perform({ ...library({}, { key: "wrong" }), isStream: true });
  expect(((await failureOf(wrong)) as Failure).kind).toBe("upstream-auth");
});
