// DashScope: embeddings, rerank and picture tasks in its native form; refusals that hide what they are about.
// The pause between two questions after a task is the test's own.
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createAli } from "../../../src/providers/adapters/ali.ts";
import { MAX_INLINE_BYTES } from "../../../src/providers/adapters/pictures.ts";
import { createAliFake, KEY } from "./fakes/ali.ts";
import { adapterCall, codeOf, failureOf, HI, perform, requestOf, serve, text, whole } from "./support.ts";
import type { CallOptions } from "./support.ts";

const fake = createAliFake();
const upstream = serve(fake.handler);
afterAll(() => upstream.stop());
const pauses: number[] = [];
const adapter = createAli((ms) => {
  pauses.push(ms);
  return Promise.resolve();
});
const OK = { task_status: "SUCCEEDED", results: [{ url: "{origin}/pictures/1.png" }] };
beforeEach(() => {
  pauses.length = 0;
  fake.states = [{ task_status: "RUNNING" }, OK];
  fake.pictureBytes = 13;
});

function ali(body: Record<string, unknown>, more: Partial<CallOptions> = {}): CallOptions {
  return { type: 17, key: KEY, model: "qwen-max", baseUrl: upstream.url, body, ...more };
}
const pictures = (body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}) =>
  ali({ prompt: "a square", ...body }, { operation: "image-generations", model: "wanx-v1", ...more });
const draw = (body: Record<string, unknown> = {}) => adapter(adapterCall(pictures(body)));
const sent = () => requestOf(upstream).json();

test("chat passes in OpenAI's form", async () => {
  expect(text(await whole(ali({ messages: HI, enable_search: true, top_p: 1 })))).toBe("Hello world");
  expect(sent()).toMatchObject({ messages: HI, enable_search: true, top_p: 0.999, enable_thinking: false });
});

test("a bill that was not paid is the channel's trouble, in both forms; other refusals stay what they are", async () => {
  const asked: [CallOptions, string][] = [
    [ali({ messages: [{ role: "user", content: "says 400 Arrearage" }] }), "upstream-quota"],
    [ali({ input: "says 400 Arrearage" }, { operation: "embeddings" }), "upstream-quota"],
    [pictures({ prompt: "says 400 Arrearage" }), "upstream-quota"],
    [ali({ query: "says 400 Arrearage", documents: ["a"] }, { operation: "rerank" }), "upstream-quota"],
    [ali({ messages: [{ role: "user", content: "says 429 Throttling.RateQuota" }] }), "upstream-limit"],
    [ali({ messages: [{ role: "user", content: "says 400 InvalidParameter" }] }), "upstream-request"],
    [ali({ input: "says 400 DataInspectionFailed" }, { operation: "embeddings" }), "upstream-refusal"],
    [ali({ messages: HI }, { key: "sk-other" }), "upstream-auth"],
  ];
  for (const [options, kind] of asked) {
    const refused = await perform(options);
    const { status } = refused;
    const failure = await failureOf(refused);
    expect([options.body, failure.kind as string]).toEqual([options.body, kind]);
    if (kind === "upstream-quota") expect(status).toBe(402);
  }
});

test("embeddings come back in order; token lists are refused by name", async () => {
  const options = ali(
    { input: ["a", "b"], dimensions: 64 },
    { operation: "embeddings", model: "text-embedding-v3" },
  );
  expect(await (await perform(options)).json()).toMatchObject({
    data: [{ embedding: [0, 0.5] }, { embedding: [1, 0.5] }],
    usage: { prompt_tokens: 4, total_tokens: 4 },
  });
  expect(sent()).toEqual({
    model: "text-embedding-v3",
    input: { texts: ["a", "b"] },
    parameters: { dimension: 64 },
  });
  expect(await codeOf(() => perform({ ...options, body: { input: [[1]] } }))).toBe("unsupported_field");
});

test("rerank is asked natively and answered in the common form", async () => {
  const body = { query: "q", documents: ["a", { text: "b" }], top_n: 2, return_documents: true };
  const answer = await perform(ali(body, { operation: "rerank", model: "gte-rerank-v2" }));
  expect(await answer.json()).toMatchObject({
    results: [
      { index: 0, relevance_score: 0.9, document: { text: "a" } },
      { index: 1, relevance_score: 0.8 },
    ],
    usage: { total_tokens: 79 },
  });
  expect(sent()).toEqual({
    model: "gte-rerank-v2",
    input: { query: "q", documents: ["a", "b"] },
    parameters: { top_n: 2, return_documents: true },
  });
});

describe("pictures", () => {
  test("are asked after until their task is done, and come as addresses", async () => {
    fake.states = [{ task_status: "PENDING" }, { task_status: "RUNNING" }, OK];
    const answer = (await (await draw({ size: "1024x768", seed: 3, negative_prompt: "blue" })).json()) as {
      data: unknown[];
    };
    expect(answer.data).toEqual([{ url: `${upstream.url}/pictures/1.png` }]);
    expect(pauses).toEqual([3000, 3000, 3000]);
    expect(requestOf(upstream, 3).json()).toEqual({
      model: "wanx-v1",
      input: { prompt: "a square", negative_prompt: "blue" },
      parameters: { n: 1, size: "1024*768", seed: 3 },
    });
  });

  test("are inlined where the client asked so, without the key, and up to a size", async () => {
    const answer = (await (await draw({ response_format: "b64_json" })).json()) as { data: object[] };
    expect(answer.data).toEqual([{ b64_json: Buffer.from("picture bytes").toString("base64") }]);
    fake.pictureBytes = MAX_INLINE_BYTES + 1;
    expect(await codeOf(() => draw({ response_format: "b64_json" }))).toBe("upstream_picture_lost");
  });

  test("a task that failed yields nothing, whatever stands in it", async () => {
    for (const [state, kind] of [
      [{ ...OK, task_status: "FAILED", code: "InternalError.Timeout" }, "upstream-timeout"],
      [{ ...OK, task_status: "FAILED", code: "Arrearage" }, "upstream-quota"],
      [{ ...OK, task_status: "FAILED", code: "DataInspectionFailed" }, "upstream-refusal"],
      [{ ...OK, task_status: "CANCELED" }, "upstream-down"],
      [{ ...OK, task_status: "UNKNOWN" }, "upstream-down"],
    ] as const) {
      fake.states = [state];
      expect([state, (await failureOf(await draw())).kind as string]).toEqual([state, kind]);
    }
  });

  test("those that came are delivered, for they are paid for; none is no answer", async () => {
    const broken = { code: "InternalError.Timeout", message: "no" };
    fake.states = [{ ...OK, results: [...OK.results, broken] }];
    const answer = (await (await draw({ n: 2 })).json()) as { data: object[] };
    expect(answer.data).toEqual([{ url: `${upstream.url}/pictures/1.png` }]);
    fake.states = [{ ...OK, results: [broken, broken] }];
    expect(await codeOf(() => draw({ n: 2 }))).toBe("upstream_bad_answer");
  });

  test("one that cannot be fetched is fetched again, and at last left out where another came", async () => {
    const inline = { n: 2, response_format: "b64_json" };
    const pixels = { b64_json: Buffer.from("picture bytes").toString("base64") };
    let failures = 2;
    const call = adapterCall(pictures(inline));
    const flaky = {
      ...call,
      fetch: (url: string, init: RequestInit): Promise<Response> => {
        if (!url.endsWith("/pictures/2.png") || failures-- <= 0) return call.fetch(url, init);
        return failures % 2 === 0
          ? Promise.reject(new TypeError("reset"))
          : Promise.resolve(new Response("", { status: 503 }));
      },
    };
    fake.states = [{ ...OK, results: [...OK.results, { url: "{origin}/pictures/2.png" }] }];
    expect(await (await adapter(flaky)).json()).toMatchObject({ data: [pixels, pixels] });
    failures = 3;
    expect(((await (await adapter(flaky)).json()) as { data: object[] }).data).toEqual([pixels]);
    fake.states = [{ ...OK, results: [{ url: "{origin}/pictures/2.png" }] }];
    failures = 3;
    expect(await codeOf(() => adapter(flaky))).toBe("upstream_picture_lost");
  });

  test("a call that is given up stops asking", async () => {
    fake.states = [{ task_status: "RUNNING" }];
    const controller = new AbortController();
    const leaving = createAli((_ms, signal) => {
      controller.abort();
      return Promise.reject(signal.reason as Error);
    });
    const before = upstream.requests.length;
    const call = adapterCall(pictures({}, { signal: controller.signal }));
    expect(((await leaving(call).catch((error: unknown) => error)) as Error).name).toBe("AbortError");
    expect(upstream.requests.length).toBe(before + 1);
  });
});
