// The official client against a real server: what passes, what is changed on the way, and what is left alone.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { answer, refuse, stream } from "../support/fake-upstream.ts";
import { dataLines, errorOf, HI, MODEL, startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway();
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

describe("the official client", () => {
  test("gets a whole answer, and the call is charged to the unit", async () => {
    const before = await g.balance();
    const completion = await g.client.chat.completions.create({ model: MODEL, messages: HI });
    expect(completion.choices[0]?.message.content).toBe("Hello there!");
    expect(completion.usage?.total_tokens).toBe(12);
    const charge = await g.lastCharge();
    // (9 + 3 x 4) x 0.075, rounded half away from zero.
    expect(charge).toMatchObject({ quota: 2, promptTokens: 9, completionTokens: 3, isStream: false });
    const after = await g.balance();
    expect([before.quota - after.quota, after.used - before.used, after.requests - before.requests]).toEqual([
      2, 2, 1,
    ]);
  });

  test("streams, and does not see the usage frame that only the gateway asked for", async () => {
    const chunks = [];
    const completion = await g.client.chat.completions.create({ model: MODEL, messages: HI, stream: true });
    for await (const chunk of completion) chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe("Hello there!");
    expect(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage)).toBe(true);
    expect(g.upstream.requests[0]?.json()["stream_options"]).toEqual({ include_usage: true });
    expect(await g.lastCharge()).toMatchObject({
      quota: 2,
      isStream: true,
      other: { end_reason: "completed" },
    });
  });

  test("sees the usage frame when it asks for it", async () => {
    const completion = await g.client.chat.completions.create({
      model: MODEL,
      messages: HI,
      stream: true,
      stream_options: { include_usage: true },
    });
    let usage: unknown;
    for await (const chunk of completion) usage = chunk.usage ?? usage;
    expect(usage).toEqual({ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 });
  });

  test("gets a usage frame of ours when the upstream kept silent, with the numbers it is charged for", async () => {
    g.upstream.script(stream(["four", " words", " of", " text"], { usage: null }));
    const completion = await g.client.chat.completions.create({
      model: MODEL,
      messages: HI,
      stream: true,
      max_tokens: 100,
      stream_options: { include_usage: true },
    });
    let usage: { prompt_tokens: number; completion_tokens: number } | null | undefined;
    for await (const chunk of completion) usage = chunk.usage ?? usage;
    const charge = await g.lastCharge();
    expect(charge?.other["estimated"]).toBe(true);
    expect(usage?.completion_tokens).toBe(charge?.completionTokens as number);
    expect(usage?.completion_tokens).toBeGreaterThan(0);
  });

  test("gets embeddings in the form it decodes, also from an upstream that ignores the format", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "text-embedding-3-small" });
    const result = await g.client.embeddings.create({ model: "text-embedding-3-small", input: ["a", "b"] });
    expect(result.data.map((item) => item.embedding)).toEqual([
      [0.25, -0.5, 1],
      [0.25, -0.5, 1],
    ]);
    expect(g.upstream.requests[0]?.json()["encoding_format"]).toBe("base64");
    const floats = await g.post("/v1/engines/text-embedding-3-small/embeddings", { input: "a" });
    expect(((await floats.json()) as { data: { embedding: number[] }[] }).data[0]?.embedding).toEqual([
      0.25, -0.5, 1,
    ]);
    expect(g.upstream.requests[1]?.json()["model"]).toBe("text-embedding-3-small");
  });

  test("gets legacy completions, whole and streamed", async () => {
    const whole = await g.client.completions.create({ model: MODEL, prompt: "hi" });
    expect(whole.choices[0]?.text).toBe("Hello there!");
    expect(await g.lastCharge()).toMatchObject({ promptTokens: 9, completionTokens: 3 });
  });

  test("lists models and finds one whose name has slashes", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "meta/llama/3" });
    const names = [];
    for await (const model of g.client.models.list()) names.push(model.id);
    expect(names).toContain(MODEL);
    expect(names).toContain("meta/llama/3");
    expect((await g.client.models.retrieve("meta/llama/3")).id).toBe("meta/llama/3");
    const unknown = await fetch(`${g.app.url}/v1/models/nope`, {
      headers: { authorization: `Bearer ${g.key}` },
    });
    expect(unknown.status).toBe(404);
    expect((await errorOf(unknown)).code).toBe("model_not_found");
  });
});

describe("the bytes", () => {
  test("an answer arrives byte for byte, with our request id and without the provider's identity", async () => {
    const body = '{ "id":"x","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}, "extra":1e2}';
    g.upstream.script({
      headers: {
        "content-type": "application/json",
        "openai-organization": "acme",
        server: "x",
        "x-request-id": "up",
      },
      steps: [body],
    });
    const response = await g.chat();
    expect(await response.text()).toBe(body);
    expect(response.headers.get("x-oneapi-request-id")).toMatch(/^\d\w{30,}$/);
    expect(response.headers.get("x-request-id")).toBe("up");
    expect(response.headers.get("openai-organization")).toBeNull();
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("a request that needs no change is sent as it came: unknown fields, zeros, large numbers, spaces", async () => {
    const body = `{ "model":"${MODEL}", "temperature":0,"seed":9007199254740993,\n"vendor":{"x":[null,0]},"messages":[{"role":"user","content":"\\u4f60"}] }`;
    await g.post("/v1/chat/completions", body);
    expect(g.upstream.requests[0]?.body.toString()).toBe(body);
  });

  test("client headers stay here but for the few that mean something upstream; keys never pass", async () => {
    await g.chat(
      {},
      { cookie: "a=b", "openai-beta": "assistants=v2", "x-stainless-lang": "js", session_id: "s1" },
    );
    const headers = g.upstream.requests[0]?.headers ?? {};
    expect(headers["openai-beta"]).toBe("assistants=v2");
    // As the user's own, and as nobody else's (passed-headers.test.ts).
    expect(headers["session_id"]).toMatch(/^[0-9a-f]{64}$/);
    expect([headers["cookie"], headers["x-stainless-lang"], headers["x-forwarded-for"]]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(headers["authorization"]).toBe("Bearer upstream-key");
  });

  test("a body of ten megabytes passes untouched", async () => {
    const content = "x".repeat(10 * 1024 * 1024);
    const response = await g.chat({ messages: [{ role: "user", content }] });
    expect(response.status).toBe(200);
    expect(g.upstream.requests[0]?.body.length).toBeGreaterThan(10 * 1024 * 1024);
  });

  test("browsers of any origin may call, with any header", async () => {
    const preflight = await fetch(`${g.app.url}/v1/chat/completions`, {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,x-stainless-lang",
      },
    });
    expect([preflight.status, preflight.headers.get("access-control-allow-headers")]).toEqual([
      204,
      "authorization,x-stainless-lang",
    ]);
    const response = await g.chat({}, { origin: "https://app.example" });
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
  });
});

describe("what a channel changes", () => {
  test("the mapped name goes upstream; price, limits and log keep the requested one", async () => {
    await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: "gpt-4o",
      modelMapping: '{"gpt-4o":"step","step":"final-model"}',
    });
    expect((await g.chat({ model: "gpt-4o" })).status).toBe(200);
    expect(g.upstream.requests[0]?.json()["model"]).toBe("final-model");
    expect(await g.lastCharge()).toMatchObject({
      modelName: "gpt-4o",
      other: { is_model_mapped: true, upstream_model_name: "final-model", model_ratio: 1.25 },
    });
  });

  test("a mapping that runs in a circle is refused before any upstream call", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "o1", modelMapping: '{"o1":"a","a":"o1"}' });
    const before = await g.balance();
    const response = await g.chat({ model: "o1" });
    expect(response.status).toBe(500);
    expect(await errorOf(response)).toMatchObject({ code: "model_mapped_error" });
    expect(g.upstream.requests).toHaveLength(0);
    expect(await g.balance()).toEqual(before);
  });

  test("overridden parameters replace the client's, whatever they are", async () => {
    await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: "gpt-4",
      paramOverride: '{"temperature":0,"stop":null,"extra":{"a":1}}',
    });
    await g.chat({ model: "gpt-4", temperature: 1, stop: ["x"], top_p: 0.5 });
    expect(g.upstream.requests[0]?.json()).toMatchObject({
      temperature: 0,
      stop: null,
      extra: { a: 1 },
      top_p: 0.5,
    });
  });

  test("a mapped status is the one the client sees", async () => {
    await g.app.createChannel({
      baseUrl: g.upstream.url,
      models: "gpt-4-turbo",
      statusCodeMapping: '{"404":"500"}',
    });
    g.upstream.script(refuse(404));
    const response = await g.chat({ model: "gpt-4-turbo" });
    expect(response.status).toBe(500);
    expect(await errorOf(response)).toMatchObject({ type: "fake_error", code: "fake_404" });
  });

  test("several keys of one channel take turns", async () => {
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "o3-mini", key: "k1\nk2" });
    await g.chat({ model: "o3-mini" });
    await g.chat({ model: "o3-mini" });
    const used = g.upstream.requests.map((request) => request.headers["authorization"]);
    expect(new Set(used)).toEqual(new Set(["Bearer k1", "Bearer k2"]));
  });

  test("an upstream that answers a stream request with a whole answer is streamed to the client", async () => {
    g.upstream.script(answer("all at once"));
    const response = await g.chat({ stream: true });
    const text = await response.text();
    const content = dataLines(text)
      .map((chunk) => (chunk["choices"] as { delta: { content?: string } }[])[0]?.delta.content ?? "")
      .join("");
    expect([response.headers.get("content-type"), content, text.endsWith("data: [DONE]\n\n")]).toEqual([
      "text/event-stream",
      "all at once",
      true,
    ]);
  });
});
