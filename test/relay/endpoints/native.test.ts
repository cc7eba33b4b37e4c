// Guarantees of the native dialects at the gateway: bytes that pass untouched, settings that change what they say they
// change, lists and counts in the caller's own form.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import type OpenAI from "openai";
import { answerOf, answerText, streamText } from "../../support/dialect-upstream.ts";
import { answer, gate, refuse, stream } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { replayLog } from "../../support/replayed.ts";
import { dataLines, HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const CLAUDE = "claude-sonnet-4-5";
const GEMINI = "gemini-2.5-flash";
const GPT = "gpt-4o-mini";
const EMBEDDING = "text-embedding-3-small";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 1_000_000_000, channel: { models: `${GPT},${EMBEDDING},o3` } });
  const models = (list: string[]) => list.join(",");
  await g.app.createChannel({
    type: 14,
    baseUrl: g.upstream.url,
    models: models([CLAUDE, `${CLAUDE}-thinking`, "claude-opus-4-7-thinking"]),
  });
  await g.app.createChannel({
    type: 24,
    baseUrl: g.upstream.url,
    setting: JSON.stringify({ allow_networks: ["127.0.0.1"] }),
    models: models([
      GEMINI,
      `${GEMINI}-thinking`,
      `${GEMINI}-nothinking`,
      "gemini-2.5-pro-thinking",
      "gemini-2.0-flash-exp",
    ]),
  });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

const lastRequest = () => g.upstream.requests.at(-1);
const SIMPLE = { max_tokens: 5000, messages: [{ role: "user", content: "hi" }] };

describe("passthrough", () => {
  test("an Anthropic body and answer pass byte for byte, with version and beta", async () => {
    g.upstream.always(answerOf("anthropic"));
    const body = `{"model":"${CLAUDE}", "max_tokens":12,"zero":0,"unknown":{"a":[false,null,""]},"messages":[{"role":"user","content":"hi"}]}`;
    const response = await g.post("/v1/messages", body, {
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "one,two",
    });
    expect(await response.text()).toBe(answerText("anthropic"));
    expect(lastRequest()?.body.toString()).toBe(body);
    expect(lastRequest()?.headers).toMatchObject({
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "one,two",
    });
    expect(lastRequest()?.headers["authorization"] ?? "").not.toContain(g.key);
  });

  test("an Anthropic stream passes byte for byte, its end after the call was recorded", async () => {
    g.upstream.always(answerOf("anthropic"));
    const response = await g.post("/v1/messages", { model: CLAUDE, stream: true, ...SIMPLE });
    expect(await response.text()).toBe(streamText("anthropic"));
    expect((await g.lastCharge())?.other).toMatchObject({ claude: true, end_reason: "completed" });
  });

  test("a Gemini stream passes byte for byte with alt=sse, and is one JSON array without", async () => {
    g.upstream.always(answerOf("gemini"));
    const body = { contents: [{ role: "user", parts: [{ text: "hi" }] }] };
    const path = `/v1beta/models/${GEMINI}:streamGenerateContent`;
    const events = await g.post(`${path}?alt=sse`, body);
    expect(events.headers.get("content-type")).toBe("text/event-stream");
    expect(await events.text()).toBe(streamText("gemini"));
    const array = await g.post(path, body);
    expect(array.headers.get("content-type")).toBe("application/json");
    expect(await array.json()).toEqual(dataLines(streamText("gemini").replaceAll("\r", "")));
    expect(lastRequest()?.url).toBe(`/v1beta/models/${GEMINI}:streamGenerateContent?alt=sse`);
    expect((await g.lastCharge())?.other["end_reason"]).toBe("completed");
  });

  test("a key in the query is enough for Gemini, and never travels on", async () => {
    g.upstream.always(answerOf("gemini"));
    const address = `${g.app.url}/v1beta/models/${GEMINI}:generateContent?key=${g.key}`;
    const body = JSON.stringify({ contents: [{ parts: [{ text: "hi" }] }] });
    const response = await fetch(address, {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    expect(await response.text()).toBe(answerText("gemini"));
    expect(lastRequest()?.url).not.toContain(g.key);
    expect(JSON.stringify(lastRequest()?.headers)).not.toContain(g.key);
  });

  test("the model of a Gemini call is the address's, whatever the body says", async () => {
    g.upstream.always(answerOf("gemini"));
    await g.post(`/v1beta/models/${GEMINI}:generateContent`, {
      model: CLAUDE,
      contents: [{ parts: [{ text: "hi" }] }],
    });
    expect(await g.lastCharge()).toMatchObject({ modelName: GEMINI });
  });
});

describe("Claude's settings", () => {
  test("a missing answer limit becomes the configured one", async () => {
    g.upstream.always(answerOf("anthropic"));
    await g.chat({ model: CLAUDE });
    expect(lastRequest()?.json()["max_tokens"]).toBe(8192);
    await g.setOption("claude.default_max_tokens", JSON.stringify({ default: 4096, [CLAUDE]: 1234 }));
    await g.post("/v1/messages", { model: CLAUDE, messages: HI });
    expect(lastRequest()?.json()["max_tokens"]).toBe(1234);
    await g.setOption("claude.default_max_tokens", '{"default":8192}');
  });

  test("the -thinking suffix asks for a share of the limit, from either dialect", async () => {
    g.upstream.always(answerOf("anthropic"));
    await g.post("/v1/messages", { model: `${CLAUDE}-thinking`, ...SIMPLE, top_p: 0.5, temperature: 0.2 });
    expect(lastRequest()?.json()).toMatchObject({
      model: CLAUDE,
      max_tokens: 5000,
      thinking: { type: "enabled", budget_tokens: 4000 },
      temperature: 1,
    });
    expect(lastRequest()?.json()).not.toHaveProperty("top_p");
    await g.chat({ model: `${CLAUDE}-thinking`, max_tokens: 100 });
    expect(lastRequest()?.json()).toMatchObject({
      model: CLAUDE,
      max_tokens: 1280,
      thinking: { type: "enabled", budget_tokens: 1024 },
    });
    // The price is the requested name's.
    expect(await g.lastCharge()).toMatchObject({ modelName: `${CLAUDE}-thinking` });
  });

  test("models that think by effort get no budget, and a client's own thinking stands", async () => {
    g.upstream.always(answerOf("anthropic"));
    await g.post("/v1/messages", { model: "claude-opus-4-7-thinking", ...SIMPLE });
    expect(lastRequest()?.json()).toMatchObject({
      model: "claude-opus-4-7",
      thinking: { type: "adaptive", display: "summarized" },
    });
    await g.post("/v1/messages", { model: `${CLAUDE}-thinking`, ...SIMPLE, thinking: { type: "disabled" } });
    expect(lastRequest()?.json()).toMatchObject({ model: CLAUDE, thinking: { type: "disabled" } });
  });

  test("where a tool is forced the name's wish is left out, and the log tells it", async () => {
    g.upstream.always(answerOf("anthropic"));
    const forced = { tools: [{ name: "f", input_schema: { type: "object" } }], tool_choice: { type: "any" } };
    await g.post("/v1/messages", { model: `${CLAUDE}-thinking`, ...SIMPLE, ...forced });
    expect(lastRequest()?.json()).toMatchObject({ model: CLAUDE, tool_choice: { type: "any" } });
    expect(lastRequest()?.json()).not.toHaveProperty("thinking");
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["reasoning"]);
  });

  test("configured headers go along", async () => {
    g.upstream.always(answerOf("anthropic"));
    await g.setOption(
      "claude.model_headers_settings",
      JSON.stringify({ [CLAUDE]: { "X-Extra": ["a", "b"] } }),
    );
    await g.chat({ model: CLAUDE });
    expect(lastRequest()?.headers["x-extra"]).toBe("a,b");
    await g.setOption("claude.model_headers_settings", "{}");
  });
});

describe("Gemini's settings", () => {
  test("clients of other dialects get the configured safety thresholds, Google's own clients keep theirs", async () => {
    g.upstream.always(answerOf("gemini"));
    await g.chat({ model: GEMINI });
    const settings = lastRequest()?.json()["safetySettings"] as { category: string; threshold: string }[];
    expect(settings).toHaveLength(5);
    expect(settings).toContainEqual({ category: "HARM_CATEGORY_CIVIC_INTEGRITY", threshold: "BLOCK_NONE" });
    expect(settings).toContainEqual({ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" });
    await g.post(`/v1beta/models/${GEMINI}:generateContent`, { contents: [{ parts: [{ text: "hi" }] }] });
    expect(lastRequest()?.json()).not.toHaveProperty("safetySettings");
  });

  test("the thinking suffixes work when they are switched on", async () => {
    g.upstream.always(answerOf("gemini"));
    await g.setOption("gemini.thinking_adapter_enabled", "true");
    const config = () => lastRequest()?.json()["generationConfig"];
    await g.chat({ model: `${GEMINI}-thinking`, max_tokens: 1000 });
    expect(lastRequest()?.url).toBe(`/v1beta/models/${GEMINI}:generateContent`);
    expect(config()).toMatchObject({ thinkingConfig: { thinkingBudget: 600, includeThoughts: true } });
    await g.chat({ model: `${GEMINI}-thinking` });
    expect(config()).toMatchObject({ thinkingConfig: { thinkingBudget: 24_576 } });
    await g.chat({ model: `${GEMINI}-nothinking` });
    expect(config()).toMatchObject({ thinkingConfig: { thinkingBudget: 0 } });
    await g.chat({ model: "gemini-2.5-pro-thinking" });
    expect(config()).toEqual({ thinkingConfig: { includeThoughts: true } });
    await g.setOption("gemini.thinking_adapter_enabled", "false");
  });

  test("image models are asked for pictures, and versions are the configured ones", async () => {
    g.upstream.always(answerOf("gemini"));
    await g.setOption("gemini.version_settings", JSON.stringify({ default: "v1beta", [GEMINI]: "v9" }));
    await g.chat({ model: "gemini-2.0-flash-exp" });
    expect(lastRequest()?.json()["generationConfig"]).toMatchObject({
      responseModalities: ["TEXT", "IMAGE"],
    });
    await g.chat({ model: GEMINI });
    expect(lastRequest()?.url).toBe(`/v9/models/${GEMINI}:generateContent`);
    await g.setOption("gemini.version_settings", '{"default":"v1beta"}');
  });
});

describe("media behind addresses", () => {
  const PNG = Buffer.from("89504e470d0a1a0a0000", "hex");
  const server = createServer((request, response) => {
    if (request.url === "/page") response.writeHead(200, { "content-type": "text/html" }).end("<html>");
    else response.end(PNG);
  });
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
  afterAll(() => server.close());
  const picture = (url: string) => [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
  const at = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;

  test("are fetched for an upstream that only takes them inline", async () => {
    g.upstream.always(answerOf("gemini"));
    expect((await g.chat({ model: GEMINI, messages: picture(at("/picture")) })).status).toBe(200);
    expect(JSON.stringify(lastRequest()?.json()["contents"])).toContain(
      JSON.stringify({ mimeType: "image/png", data: PNG.toString("base64") }).slice(1, -1),
    );
  });

  test("are fetched for such an upstream also when it speaks the client's own dialect", async () => {
    const model = "llava";
    await g.app.createChannel({
      type: 4,
      baseUrl: g.upstream.url,
      models: model,
      setting: JSON.stringify({ allow_networks: ["127.0.0.1"] }),
    });
    g.upstream.always(answer("hi"));
    const extra = { custom_field: { kept: true } };
    const asked = await g.chat({ model, messages: picture(at("/picture")), ...extra });
    expect(asked.status).toBe(200);
    expect(lastRequest()?.json()).toMatchObject({
      ...extra,
      messages: picture(`data:image/png;base64,${PNG.toString("base64")}`),
    });
  });

  test("are refused where they are a page, or stand in a network that nobody opened, before anything is asked or paid", async () => {
    const before = await g.balance();
    for (const url of [at("/page"), "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/x"]) {
      const response = await g.chat({ model: GEMINI, messages: picture(url) });
      expect(response.status).toBe(400);
      expect(await response.text()).not.toContain("169.254");
    }
    expect(g.upstream.requests).toHaveLength(0);
    expect(await g.balance()).toEqual(before);
  });
});

describe("what cannot carry over", () => {
  test("is refused by name when it changes the meaning", async () => {
    const response = await g.chat({ model: CLAUDE, n: 3 });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { param: string } }).error.param).toBe("n");
    expect(g.upstream.requests).toHaveLength(0);
  });

  test("is listed in the log when it only tunes the answer", async () => {
    g.upstream.always(answerOf("anthropic"));
    await g.chat({ model: CLAUDE, seed: 7, frequency_penalty: 0.5 });
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["frequency_penalty", "seed"]);
  });

  test("is listed, too, where a provider with a protocol of its own has no word for it, and lengths of vectors are refused", async () => {
    await g.app.createChannel({ type: 24, baseUrl: g.upstream.url, models: "imagen-4" });
    await g.app.createChannel({ type: 35, baseUrl: g.upstream.url, models: "embo-01" });
    await g.app.createChannel({ type: 34, baseUrl: g.upstream.url, models: "command-a" });
    const json = { "content-type": "application/json" };
    const pictures = { predictions: [{ bytesBase64Encoded: "aGk=", mimeType: "image/png" }] };
    g.upstream.always({ headers: json, steps: [JSON.stringify(pictures)] });
    await g.client.images.generate({ model: "imagen-4", prompt: "a square", quality: "hd", style: "vivid" });
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["quality", "style"]);

    g.upstream.always({ headers: json, steps: [JSON.stringify({ text: "hi", finish_reason: "COMPLETE" })] });
    await g.chat({ model: "command-a", seed: 7, logit_bias: { 1: 1 } });
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["logit_bias"]);
    await g.post("/v1/messages", { model: "command-a", ...SIMPLE, metadata: { user_id: "u" } });
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["user"]);

    g.upstream.reset();
    const refused = await g.post("/v1/embeddings", { model: "embo-01", input: "a", dimensions: 8 });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("dimensions")]);
    expect(g.upstream.requests).toEqual([]);
  });

  test("is asked of a channel that speaks the dialect when there is one", async () => {
    const model = "shared-model";
    await g.app.createChannel({ type: 14, baseUrl: g.upstream.url, models: model, priority: 10 });
    await g.app.createChannel({ type: 1, baseUrl: g.upstream.url, models: model, priority: 1 });
    const response = await g.chat({ model, n: 2 });
    expect(response.status).toBe(200);
    expect(g.upstream.requests.map((request) => request.url)).toEqual(["/v1/chat/completions"]);
    expect((await g.lastCharge())?.other["attempts"]).toHaveLength(1);
  });
});

describe("channel settings", () => {
  async function withSetting(setting: object, models: string, type = 1): Promise<void> {
    await g.app.createChannel({ type, baseUrl: g.upstream.url, models, setting: JSON.stringify(setting) });
  }
  const reasoning: Script = {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    steps: [
      'data: {"id":"1","choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}],"own_field":1}\n\n',
      'data: {"id":"1","choices":[{"index":0,"delta":{"content":"Yes."}}]}\n\n',
      'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
      "data: [DONE]\n\n",
    ],
  };
  const contents = (text: string): string =>
    dataLines(text)
      .map((line) => (line["choices"] as { delta?: { content?: string } }[])[0]?.delta?.content ?? "")
      .join("");

  test("thinking_to_content tells thinking as text between tags", async () => {
    await withSetting({ thinking_to_content: true }, "thinker");
    g.upstream.script(reasoning);
    const text = await (await g.chat({ model: "thinker", stream: true })).text();
    expect(contents(text)).toBe("<think>\nHm.\n</think>\nYes.");
    expect(text).not.toContain("reasoning_content");
  });

  test("force_format leaves only the standard fields", async () => {
    await withSetting({ force_format: true }, "formatted");
    g.upstream.script(reasoning);
    const text = await (await g.chat({ model: "formatted", stream: true })).text();
    expect(contents(text)).toBe("Yes.");
    expect(text).not.toContain("own_field");
  });

  test("global pass-through sends the client's own bytes, mapping or not", async () => {
    const body = `{"messages":[{"role":"user","content":"hi"}],  "model":"${GPT}"}`;
    await g.setOption("global.pass_through_request_enabled", "true");
    await g.post("/v1/chat/completions", body);
    expect(lastRequest()?.body.toString()).toBe(body);
    await g.setOption("global.pass_through_request_enabled", "false");
  });
});

describe("lists and counts", () => {
  const anthropic = () => new Anthropic({ apiKey: g.key, baseURL: g.app.url, maxRetries: 0 });
  const google = () => new GoogleGenAI({ apiKey: g.key, httpOptions: { baseUrl: g.app.url } });

  test("the model list answers in the caller's dialect", async () => {
    const claude = await anthropic().models.list({ limit: 2 });
    expect(claude.data).toHaveLength(2);
    expect(claude.has_more).toBe(true);
    const all: string[] = [];
    for await (const model of anthropic().models.list({ limit: 3 })) all.push(model.id);
    const openai: string[] = [];
    for await (const model of g.client.models.list()) openai.push(model.id);
    const gemini: string[] = [];
    for await (const model of await google().models.list({ config: { pageSize: 4 } }))
      gemini.push(model.name ?? "");
    expect(all).toEqual(openai);
    expect(gemini).toEqual(openai.map((id) => `models/${id}`));
    expect(all).toContain(CLAUDE);
    expect((await anthropic().models.retrieve(CLAUDE)).id).toBe(CLAUDE);
    expect((await google().models.get({ model: GEMINI })).name).toBe(`models/${GEMINI}`);
  });

  test("tokens are counted for nothing, in either dialect", async () => {
    const before = await g.balance();
    const count = await anthropic().messages.countTokens({
      model: CLAUDE,
      messages: [{ role: "user", content: "hello world" }],
    });
    expect(count.input_tokens).toBe(5);
    const gemini = await google().models.countTokens({ model: GEMINI, contents: "hello world" });
    expect(gemini.totalTokens).toBe(5);
    // Both can count, and neither knew its own address for it.
    expect(g.upstream.requests.map(({ url }) => url)).toEqual([
      "/v1/messages/count_tokens",
      `/v1beta/models/${GEMINI}:countTokens`,
    ]);
    expect(await g.balance()).toEqual(before);
  });

  test.each(["float", "base64"] as const)(
    "embeddings of a provider that states no usage answer OpenAI's clients with what is charged (%s)",
    async (encoding_format) => {
      const model = "gemini-embedding-001";
      await g.app.createChannel({ type: 24, baseUrl: g.upstream.url, models: model });
      g.upstream.always({
        headers: { "content-type": "application/json" },
        steps: [JSON.stringify({ embeddings: [{ values: [0.5, 1] }, { values: [1, 0.5] }] })],
      });
      const input = ["hello world", "tip tap toe"];
      let answer: OpenAI.CreateEmbeddingResponse | undefined;
      const charge = await g.charged(async () => {
        answer = await g.client.embeddings.create({ model, input, encoding_format });
      });
      expect(charge.promptTokens).toBeGreaterThan(4);
      expect(answer?.usage).toEqual({
        prompt_tokens: charge.promptTokens,
        total_tokens: charge.promptTokens,
      });
      const vectors = answer?.data.map(({ embedding }) => embedding);
      if (encoding_format === "float")
        expect(vectors).toEqual([
          [0.5, 1],
          [1, 0.5],
        ]);
    },
  );

  test("Google's embedding calls reach any upstream that has embeddings", async () => {
    const one = await google().models.embedContent({ model: EMBEDDING, contents: ["a", "b"] });
    expect(one.embeddings?.map((item) => item.values)).toEqual([
      [0.25, -0.5, 1],
      [0.25, -0.5, 1],
    ]);
    expect(lastRequest()?.json()).toMatchObject({ model: EMBEDDING, input: ["a", "b"] });
    const single = await g.post(`/v1beta/models/${EMBEDDING}:embedContent`, {
      content: { parts: [{ text: "a" }] },
    });
    expect(await single.json()).toEqual({ embedding: { values: [0.25, -0.5, 1] } });
    expect(await g.lastCharge()).toMatchObject({ modelName: EMBEDDING, promptTokens: 4 });
  });

  const part = (text: string) => ({ parts: [{ text }] });
  const batch = (model: string, requests: object[]) =>
    g.post(`/v1beta/models/${model}:batchEmbedContents`, { requests });

  test("Google's embedding requests reach Google as they were written, under the channel's name of the model, and so do its answers", async () => {
    const [model, atGoogle] = ["own-embedding", "gemini-embedding-001"];
    await g.app.createChannel({
      type: 24,
      baseUrl: g.upstream.url,
      models: model,
      modelMapping: JSON.stringify({ [model]: atGoogle }),
    });
    const usageMetadata = { promptTokenCount: 31 };
    g.upstream.always({
      headers: { "content-type": "application/json" },
      steps: [
        JSON.stringify({ embeddings: [{ values: [1], shape: [1] }, { values: [2, 3] }], usageMetadata }),
      ],
    });
    const config = { taskType: "RETRIEVAL_DOCUMENT", title: "Weirs", outputDimensionality: 3 };
    const answered = await google().models.embedContent({ model, contents: ["a", "b"], config });
    expect(answered.embeddings).toMatchObject([{ values: [1], shape: [1] }, { values: [2, 3] }]);
    expect(lastRequest()?.url).toBe(`/v1beta/models/${atGoogle}:batchEmbedContents`);
    const sent = { ...config, model: `models/${atGoogle}` };
    expect(lastRequest()?.json()).toEqual({
      requests: ["a", "b"].map((text) => ({ ...sent, content: { role: "user", ...part(text) } })),
    });
    expect(await g.lastCharge()).toMatchObject({ modelName: model, promptTokens: 31 });

    const media = { parts: [{ text: "a" }, { inlineData: { mimeType: "image/png", data: "aGk=" } }] };
    const requests = [
      { content: media, output_dimensionality: 1, own_field: { kept: true } },
      { content: part("b"), taskType: "RETRIEVAL_QUERY", outputDimensionality: 2 },
    ];
    expect(await (await batch(model, requests)).json()).toEqual({
      embeddings: [{ values: [1], shape: [1] }, { values: [2, 3] }],
      usageMetadata,
    });
    expect(lastRequest()?.json()).toEqual({
      requests: requests.map((request) => ({ ...request, model: sent.model })),
    });
    expect((await g.lastCharge())?.other).not.toHaveProperty("dropped");

    const one = {
      content: part("a"),
      task_type: "SEMANTIC_SIMILARITY",
      title: "T",
      output_dimensionality: 1,
    };
    g.upstream.always({
      headers: { "content-type": "application/json" },
      steps: [JSON.stringify({ embedding: { values: [4], shape: [1] }, usageMetadata })],
    });
    const single = await g.post(`/v1beta/models/${model}:embedContent`, one);
    expect(await single.json()).toEqual({ embedding: { values: [4], shape: [1] }, usageMetadata });
    expect(lastRequest()?.url).toBe(`/v1beta/models/${atGoogle}:embedContent`);
    expect(lastRequest()?.json()).toEqual({ ...one, model: sent.model });
  });

  test("of Google's embedding requests other providers are told what they know; the rest is listed, or refused by name", async () => {
    const content = part("a");
    const config = { taskType: "RETRIEVAL_QUERY", title: "Weirs", outputDimensionality: 3 };
    await google().models.embedContent({ model: EMBEDDING, contents: "a", config });
    expect(lastRequest()?.json()).toEqual({
      model: EMBEDDING,
      input: ["a"],
      encoding_format: "float",
      dimensions: 3,
    });
    expect((await g.lastCharge())?.other["dropped"]).toEqual(["taskType", "title"]);
    g.upstream.reset();
    const file = { parts: [{ text: "a" }, { file_data: { fileUri: "gs://a/b" } }] };
    const refusals: [object[], string][] = [
      [[{ content, outputDimensionality: 2 }, { content }], "outputDimensionality"],
      [[{ content }, { content: file }], "content.fileData"],
    ];
    const before = await g.balance();
    for (const [requests, name] of refusals) {
      const response = await batch(EMBEDDING, requests);
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(name)]);
    }
    expect(g.upstream.requests).toEqual([]);
    expect(await g.balance()).toEqual(before);
  });
});

describe("failures", () => {
  test("of the first checks come in the caller's dialect", async () => {
    const keyless = async (path: string, headers: Record<string, string>) => {
      const response = await fetch(g.app.url + path, { method: "POST", headers, body: "{}" });
      return [response.status, await response.json()];
    };
    const claude = await keyless("/v1/messages", {
      "x-api-key": "sk-wrong",
      "content-type": "application/json",
    });
    expect(claude).toMatchObject([401, { type: "error", error: { type: "authentication_error" } }]);
    const gemini = await keyless(`/v1beta/models/${GEMINI}:generateContent`, { "x-goog-api-key": "wrong" });
    expect(gemini).toMatchObject([401, { error: { code: 401, status: "UNAUTHENTICATED" } }]);
  });

  test("name the missing field, and an unknown action is told so", async () => {
    const messages = await g.post("/v1/messages", { model: CLAUDE, max_tokens: 5 });
    expect(await messages.json()).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
    const responses = await g.post("/v1/responses", { model: GPT });
    expect(await responses.json()).toMatchObject({
      error: { code: "invalid_responses_request", param: "input" },
    });
    expect((await g.post(`/v1beta/models/${GEMINI}:generateContent`, {})).status).toBe(400);
    expect((await g.post(`/v1beta/models/${GEMINI}:dance`, {})).status).toBe(404);
  });
});

describe("screening what the model says", () => {
  beforeAll(async () => {
    await g.setOption("CheckSensitiveOnCompletionEnabled", "true");
    await g.setOption("SensitiveWords", "forbidden\nverboten");
  });
  afterAll(() => g.setOption("CheckSensitiveOnCompletionEnabled", "false"));

  test("a stream stops at the word, cut over two pieces as it may be, and is paid", async () => {
    g.upstream.script(stream(["all good, ", "FORB", "idden ", "secret"], { usage: null }));
    const text = await (await g.chat({ stream: true })).text();
    expect(text).toContain("all good");
    expect(text).toContain("sensitive_words_detected");
    expect(text).not.toContain("idden");
    expect(text).not.toContain("[DONE]");
    const charge = await g.lastCharge();
    expect(charge?.other).toMatchObject({ end_reason: "error-in-stream", sensitive_output: true });
  });

  test("a whole answer is withheld, and paid", async () => {
    g.upstream.script(answer("this is verboten"));
    const response = await g.chat();
    expect(response.status).toBe(400);
    expect(await response.text()).not.toContain("verboten");
    expect((await g.lastCharge())?.other).toMatchObject({ sensitive_output: true });
  });

  test("without stop on hit it is only noted", async () => {
    await g.setOption("StopOnSensitiveEnabled", "false");
    g.upstream.script(answer("this is verboten"));
    const response = await g.chat();
    expect(response.status).toBe(200);
    expect((await g.lastCharge())?.other).toMatchObject({ sensitive_output: true });
    await g.setOption("StopOnSensitiveEnabled", "true");
  });

  test("prompts are screened in every dialect", async () => {
    const bodies: [string, object][] = [
      ["/v1/messages", { model: CLAUDE, max_tokens: 9, messages: [{ role: "user", content: "forbidden" }] }],
      [
        "/v1/responses",
        { model: GPT, input: [{ role: "user", content: [{ type: "input_text", text: "forbidden" }] }] },
      ],
      [`/v1beta/models/${GEMINI}:generateContent`, { contents: [{ parts: [{ text: "forbidden" }] }] }],
    ];
    for (const [path, body] of bodies) expect((await g.post(path, body)).status).toBe(400);
    expect(g.upstream.requests).toHaveLength(0);
  });
});

describe("an upstream that is slow to begin", () => {
  test("is left for the next channel when its first event does not come in time", async () => {
    const model = "slow-model";
    await g.app.createChannel({ type: 1, baseUrl: g.upstream.url, models: model, priority: 5 });
    await g.app.createChannel({ type: 1, baseUrl: g.upstream.url, models: model, priority: 1 });
    await g.setOption("RetryTimes", "1");
    await g.setOption("relay.first_byte_timeout_seconds", "1");
    g.upstream.script(
      { status: 200, headers: { "content-type": "text/event-stream" }, steps: [": waiting\n\n", gate()] },
      stream(["second"]),
    );
    const text = await (await g.chat({ model, stream: true })).text();
    expect(text).toContain("second");
    expect((await g.lastCharge())?.other["attempts"]).toMatchObject([
      { code: "upstream_timeout" },
      { code: "ok" },
    ]);
    await g.setOption("relay.first_byte_timeout_seconds", "300");
    await g.setOption("RetryTimes", "0");
  });

  test("refusals keep their own words in every dialect, without host or key", async () => {
    g.upstream.script(
      refuse(400, { error: { message: `bad thing at ${g.upstream.url}`, type: "invalid_request_error" } }),
    );
    const response = await g.post("/v1/messages", { model: CLAUDE, ...SIMPLE });
    const text = await response.text();
    expect(text).toContain("bad thing");
    expect(text).not.toContain(g.upstream.url);
    expect(MODEL).toBe(GPT);
  });

  test("a replay of the log at unchanged prices gives every charge, to the unit", async () => {
    const { replayed, differences } = await replayLog(g.app.deps);
    expect(replayed).toBeGreaterThan(10);
    expect(differences).toEqual([]);
  });
});
