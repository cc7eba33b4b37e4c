// What a log tells to have been left out is what an adapter left out: every member of a request either changes what leaves
// for the provider, or is named.
import { expect, test } from "bun:test";
import { routeFor } from "../../src/providers/address.ts";
import { lostFields } from "../../src/providers/carried-fields.ts";
import { providerOf } from "../../src/providers/catalog.ts";
import type { Operation } from "../../src/providers/define.ts";
import { Failure } from "../../src/shared/failures.ts";
import { KEY as BAIDU } from "./adapters/fakes/baidu.ts";
import { KEY as BEDROCK } from "./adapters/fakes/bedrock.ts";
import { serviceAccount } from "./adapters/fakes/vertex.ts";
import { HI, perform } from "./adapters/support.ts";
import type { CallOptions } from "./adapters/support.ts";

type Json = Record<string, unknown>;

/** Members of requests with values that say something. */
const MEMBERS: Json = {
  aspect_ratio: "16:9",
  background: "opaque",
  batch_size: 4,
  dimensions: 8,
  frequency_penalty: 1.5,
  image_size: "512x512",
  input_type: "query",
  inference_geo: "us",
  inputs: { topic: "weirs" },
  instructions: "calm",
  language: "fr",
  logit_bias: { 1: 1 },
  max_chunks_per_doc: 2,
  max_completion_tokens: 60,
  max_images: 4,
  max_tokens: 50,
  metadata: { a: "b" },
  moderation: "low",
  negative_prompt: "no fish",
  num_images: 4,
  num_outputs: 4,
  number_of_images: 4,
  output_format: "webp",
  parallel_tool_calls: false,
  presence_penalty: 0.5,
  quality: "hd",
  reasoning_effort: "high",
  return_documents: true,
  seed: 7,
  sequential_image_generation: "auto",
  service_tier: "flex",
  size: "1024x1792",
  speed: 1.5,
  stop: ["x"],
  style: "vivid",
  temperature: 0.5,
  title: "T",
  top_k: 5,
  top_n: 1,
  top_p: 0.5,
  type: "query",
  user: "someone",
  verbosity: "low",
  voice: "v",
};

const chat = { messages: HI };
const texts = { input: ["a"] };
const picture = { prompt: "a square" };
const sound = { name: "file", filename: "a.wav", type: "audio/wav", bytes: new Uint8Array(4) };
const google = serviceAccount("https://token.test");

const ROWS: [type: number, Operation, model: string, body: Json, more?: Partial<CallOptions>][] = [
  [4, "embeddings", "m", texts],
  [15, "chat", "ERNIE-4.0-8K", chat, { key: BAIDU }],
  [15, "embeddings", "Embedding-V1", texts, { key: BAIDU }],
  [16, "chat", "glm-3", chat, { key: "id.secret" }],
  [17, "embeddings", "m", texts],
  [17, "rerank", "m", { query: "q", documents: ["a"] }],
  [17, "image-generations", "m", picture],
  [21, "chat", "m", chat, { channel: { other: "1" } }],
  [23, "chat", "hunyuan-pro", chat, { key: "1|id|secret" }],
  [24, "embeddings", "gemini-embedding-001", texts],
  [24, "image-generations", "imagen-3", picture],
  [33, "chat", "openai.gpt-oss-120b-1:0", chat, { key: BEDROCK }],
  [33, "chat", "amazon.nova-pro-v1:0", chat, { key: BEDROCK }],
  [33, "messages", "claude-sonnet-4-5", chat, { key: BEDROCK }],
  [34, "chat", "command-a", chat],
  [34, "embeddings", "embed-v4.0", texts],
  [35, "embeddings", "embo-01", texts],
  [35, "speech", "speech-02", { input: "hi" }],
  [35, "image-generations", "image-01", picture],
  [37, "chat", "m", chat],
  [39, "completions", "m", { prompt: "hi" }, { channel: { other: "account" } }],
  [
    39,
    "transcriptions",
    "@cf/openai/whisper",
    {},
    { channel: { other: "account" }, more: { files: [sound] } },
  ],
  [
    39,
    "translations",
    "@cf/openai/whisper-large-v3-turbo",
    {},
    { channel: { other: "account" }, more: { files: [sound] } },
  ],
  [40, "image-generations", "m", picture],
  [40, "image-generations", "m", { ...picture, size: "256x256" }],
  [41, "embeddings", "gemini-embedding-001", texts, { key: google, channel: { other: "us-central1" } }],
  [41, "image-generations", "imagen-3", picture, { key: google, channel: { other: "us-central1" } }],
  [49, "chat", "m", chat, { channel: { other: "bot" } }],
  [56, "image-generations", "a/b", picture],
];

/** What leaves for the provider, tokens aside; "refused" where the adapter names what it cannot carry. */
async function sentFor(options: CallOptions): Promise<string> {
  const sent: unknown[] = [];
  const fetch = (url: string, init: RequestInit): Promise<Response> => {
    if (new URL(url).pathname.endsWith("/token"))
      return Promise.resolve(Response.json({ access_token: "t", expires_in: 3600 }));
    sent.push(init.body);
    return Promise.resolve(Response.json({ error: { message: "no" } }, { status: 400 }));
  };
  try {
    await perform({ ...options, more: { ...options.more, fetch } });
  } catch (error) {
    if (error instanceof Failure && error.code === "unsupported_field") return "refused";
    throw error;
  }
  expect(sent.length).toBeGreaterThan(0);
  return JSON.stringify(sent);
}

test.each(ROWS)(
  "type %d, %s: what does not reach the provider is named",
  async (type, operation, model, body, more) => {
    const row = providerOf(type);
    const found = row && routeFor(row, operation, model);
    if (!found) throw new Error("no route");
    const call = { type, operation, model, key: "k", baseUrl: "https://upstream.test", ...more };
    const plain = await sentFor({ ...call, body });
    const named: string[] = [];
    const missing: string[] = [];
    for (const name in MEMBERS) {
      const asked = { ...body, [name]: MEMBERS[name] };
      const sent = await sentFor({ ...call, body: asked });
      if (sent === plain) missing.push(name);
      try {
        named.push(...lostFields(found, { model, ...asked }, call));
      } catch (error) {
        expect(error).toMatchObject({ code: "unsupported_field", params: { field: name } });
        named.push(name);
      }
    }
    expect(named).toEqual(missing);
  },
);
