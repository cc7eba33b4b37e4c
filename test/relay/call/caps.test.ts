// The hard cap of a call, over the wire in all four dialects: never charged above it whatever comes, ended cleanly at it, and
// refused before an upstream is asked where it pays no answer.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { audit } from "../../../src/core/ledger/audit.ts";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { chat as chatEndpoint } from "../../../src/relay/endpoints/text.ts";
import { countPrompt } from "../../../src/relay/meter/meter.ts";
import { createTokenCounter } from "../../../src/relay/meter/token-count.ts";
import { answer, refuse } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { HI } from "../support.ts";
import type { Gateway } from "../support.ts";
import {
  ask,
  CLEAN_END,
  completeAnswer,
  DIALECTS,
  IN,
  INPUT_TOKENS,
  lastBody,
  limitOf,
  longStream,
  MODELS,
  OUT,
  person,
  startPriced,
  wordsIn,
} from "./holds-support.ts";

const EXAMPLE = "gpt-5.4";
const CAP = 5000;
const CAPPED = { "x-max-quota": String(CAP) };

/** The refusal by the cap, as each dialect's clients know it. */
const REFUSAL: Readonly<Record<DialectName, object>> = {
  "openai-chat": { error: { type: "insufficient_quota", code: "max_cost_exceeded" } },
  "openai-responses": { error: { type: "insufficient_quota", code: "max_cost_exceeded" } },
  anthropic: { type: "error", error: { type: "billing_error" } },
  gemini: { error: { code: 402, status: "FAILED_PRECONDITION" } },
};

async function gateway(database: "sqlite" | "postgres"): Promise<Gateway> {
  const g = await startPriced(database, [EXAMPLE, "vectors", "picture", "voice", "ear"], {
    [EXAMPLE]: [1.25, 6],
  });
  await g.setOption("ModelPrice", JSON.stringify({ picture: 0.04, voice: 0.01 }));
  await g.setOption("PriceRules", "{}");
  return g;
}

// The encoder has a thread of its own, which a busy machine starts slowly.
setDefaultTimeout(30_000);

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  beforeAll(async () => {
    g = await gateway(database);
  }, 60_000);
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  describe.each(DIALECTS)("%s", (dialect) => {
    const model = MODELS[dialect];

    test("without a limit, or with a larger one, the limit that the cap pays is sent; the answer tells what it cost", async () => {
      const { id, key } = await person(g, 6000);
      g.upstream.always(completeAnswer(dialect, 50_000));
      for (const limit of [undefined, 100_000]) {
        // The whole cap is held of a balance that is hardly more: no quarter.
        const user = limit === undefined ? key : (await person(g, 6000)).key;
        let cost: string | null = null;
        const charge = await g.charged(async () => {
          const named = limit === undefined ? {} : { limit };
          const response = await ask(g, dialect, model, { key: user, headers: CAPPED, ...named });
          expect(response.status).toBe(200);
          cost = response.headers.get("x-weir-cost");
          await response.text();
        });
        const sent = limitOf(dialect, lastBody(g)) ?? 0;
        expect(sent * OUT).toBeGreaterThan(
          limit === undefined && dialect !== "anthropic" ? CAP * 0.75 : CAP * 0.98,
        );
        expect(sent * OUT).toBeLessThan(CAP);
        expect(charge.quota).toBe(INPUT_TOKENS * IN + sent * OUT);
        expect(charge.other).toMatchObject({ max_quota: CAP, limited: "max_cost" });
        expect(charge.other).not.toHaveProperty("over_cap");
        expect(Number(cost)).toBeCloseTo(charge.quota / 500_000, 9);
      }
      expect((await g.balance(id)).quota).toBeGreaterThanOrEqual(1000);
    });

    test("a limit that the cap pays stays as it is, and nothing is said of it", async () => {
      const { key } = await person(g);
      g.upstream.always(completeAnswer(dialect, 20));
      const charge = await g.charged(async () =>
        (await ask(g, dialect, model, { key, limit: 1000, headers: CAPPED, fields: { zero: 0 } })).text(),
      );
      expect(limitOf(dialect, lastBody(g))).toBe(1000);
      expect(charge.other["max_quota"]).toBe(CAP);
      expect(charge.other).not.toHaveProperty("limited");
    });

    test("an endless stream that ignores its limit ends cleanly at the cap; the rest is the operator's loss", async () => {
      const { id, key } = await person(g);
      g.upstream.script(longStream(dialect, { words: 6000, per: 10 }));
      let text = "";
      const charge = await g.charged(async () => {
        const response = await ask(g, dialect, model, { key, stream: true, headers: CAPPED });
        expect(response.status).toBe(200);
        text = await response.text();
      });
      expect(CLEAN_END[dialect].filter((part) => !text.includes(part))).toEqual([]);
      expect(text).not.toContain('"error":{');
      const words = wordsIn(text);
      expect(words * OUT).toBeGreaterThan(CAP * 0.9);
      expect(charge.quota).toBeLessThanOrEqual(CAP);
      expect(charge.quota).toBe(charge.promptTokens * IN + charge.completionTokens * OUT);
      expect(Math.abs(charge.completionTokens - words)).toBeLessThanOrEqual(1);
      expect(charge.other).toMatchObject({ stopped: "max_cost", end_reason: "max-cost", max_quota: CAP });
      expect(Number(charge.other["over_cap"])).toBeGreaterThan(0);
      expect((await g.balance(id)).quota).toBe(10_000_000 - charge.quota);
      await g.upstream.requests[0]?.closed;
    });

    test.each([false, true])(
      "usage reported above the cap is charged up to it (streamed: %p)",
      async (stream) => {
        const { id, key } = await person(g);
        const usage = { input: 100, output: 9000 };
        g.upstream.script(
          stream
            ? longStream(dialect, { words: 20, per: 10, usage })
            : completeAnswer(dialect, 9000)({ json: () => ({}) }),
        );
        const charge = await g.charged(async () =>
          (await ask(g, dialect, model, { key, stream, headers: CAPPED })).text(),
        );
        const full = (stream ? usage.input : INPUT_TOKENS) * IN + 9000 * OUT;
        expect(charge.quota).toBe(CAP);
        expect(charge.other["over_cap"]).toBe(full - CAP);
        expect((await g.balance(id)).quota).toBe(10_000_000 - CAP);
      },
    );

    test("a cap below the input is refused in the dialect's own words, with both numbers, and nobody is asked", async () => {
      const { id, key } = await person(g);
      for (const [name, value] of [
        ["x-max-quota", "2"],
        ["x-max-cost", "0.000004"],
        ["x-max-quota", "0"],
      ] as const) {
        const response = await ask(g, dialect, model, { key, headers: { [name]: value } });
        expect(response.status).toBe(402);
        expect(response.headers.get("x-weir-error-code")).toBe("max_cost_exceeded");
        const body = (await response.json()) as { error: { message: string } };
        expect(body).toMatchObject(REFUSAL[dialect]);
        expect(body.error.message).toMatch(/\$0\.000\d+.*\$0\.00000/);
      }
      expect(g.upstream.requests).toHaveLength(0);
      expect((await g.balance(id)).quota).toBe(10_000_000);
    });
  });

  test.each([
    ["x-max-cost", "five"],
    ["x-max-cost", "0.0000001"],
    ["x-max-cost", "-1"],
    ["x-max-cost", "1e3"],
    ["x-max-cost", "0.1, 0.2"],
    ["x-max-cost", ""],
    ["x-max-quota", "1.5"],
    ["x-max-quota", "9007199254740993"],
    ["x-max-quota", "+5"],
  ])("%s: %p is refused by name", async (header, value) => {
    const { key } = await person(g);
    const response = await ask(g, "openai-chat", MODELS["openai-chat"], {
      key,
      headers: { [header]: value },
    });
    expect(response.status).toBe(400);
    expect(response.headers.get("x-weir-error-code")).toBe("max_cost_invalid");
    expect(g.upstream.requests).toHaveLength(0);
  });

  test("of a key's cap and those of the headers the lowest counts", async () => {
    const { key } = await person(g, 10_000_000, { maxQuota: 4000 });
    g.upstream.always(completeAnswer("openai-chat", 50_000));
    const capOf = async (headers: Record<string, string>) =>
      (
        await g.charged(async () =>
          (await ask(g, "openai-chat", MODELS["openai-chat"], { key, headers, limit: 9000 })).text(),
        )
      ).other["max_quota"];
    expect(await capOf({})).toBe(4000);
    expect(await capOf({ "x-max-quota": "3000" })).toBe(3000);
    expect(await capOf({ "x-max-quota": "9000" })).toBe(4000);
    expect(await capOf({ "x-max-quota": "3000", "x-max-cost": "0.005" })).toBe(2500);
  });

  test("money.md's example: gpt-5.4, 1,000 tokens in, 25,000 units: 3,166 tokens out are sent, 24,995 units are charged", async () => {
    const { key } = await person(g);
    const counter = createTokenCounter();
    const bodyOf = (words: number) => ({
      model: EXAMPLE,
      messages: [{ role: "user" as const, content: "tip ".repeat(words).trim() }],
    });
    const count = (words: number) =>
      countPrompt(counter, { endpoint: chatEndpoint, body: bodyOf(words), model: EXAMPLE });
    let words = 1000;
    for (let look = 0; look < 3; look++) words -= (await count(words)) - 1000;
    expect(await count(words)).toBe(1000);
    counter.close();
    g.upstream.script(
      answer("done", { usage: { prompt_tokens: 1000, completion_tokens: 3166, total_tokens: 4166 } }),
    );
    const charge = await g.charged(async () =>
      (
        await g.post("/v1/chat/completions", bodyOf(words), {
          authorization: `Bearer ${key}`,
          "x-max-cost": "0.05",
        })
      ).text(),
    );
    expect(lastBody(g)["max_completion_tokens"]).toBe(3166);
    expect(charge.quota).toBe(24_995);
  });

  test("ten answers share the cap, and so do hosted tools and thoughts", async () => {
    const { key } = await person(g);
    const headers = { authorization: `Bearer ${key}`, ...CAPPED };
    g.upstream.always(
      answer("hello", { usage: { prompt_tokens: 4, completion_tokens: 9, total_tokens: 13 } }),
    );
    const chat = (fields: object) =>
      g.post("/v1/chat/completions", { model: MODELS["openai-chat"], messages: HI, ...fields }, headers);
    await (await chat({ n: 10 })).text();
    const each = limitOf("openai-chat", lastBody(g)) ?? 0;
    expect(each * 10 * OUT).toBeLessThanOrEqual(CAP);
    expect((each + 1) * 10 * OUT).toBeGreaterThan(CAP - 100);
    // Ten searches at 10 dollars a thousand are 50,000 units.
    const searching = await g.post(
      "/v1/responses",
      { model: EXAMPLE, input: "hi", tools: [{ type: "web_search" }] },
      headers,
    );
    expect(searching.status).toBe(402);
    g.upstream.reset();
    g.upstream.always(completeAnswer("anthropic", 10));
    const think = (budget: number) =>
      g.post(
        "/v1/messages",
        {
          model: MODELS.anthropic,
          messages: HI,
          max_tokens: 60_000,
          thinking: { type: "enabled", budget_tokens: budget },
        },
        headers,
      );
    expect((await think(1300)).status).toBe(402);
    expect(g.upstream.requests).toHaveLength(0);
    expect((await think(1100)).status).toBe(200);
    expect(Number(lastBody(g)["max_tokens"])).toBeGreaterThan(1100);
    expect(Number(lastBody(g)["max_tokens"]) * OUT).toBeLessThan(CAP);
  });

  test("vectors and pictures: what has no length to limit is refused above the cap, and served below it", async () => {
    const { key } = await person(g);
    const post = (path: string, body: object, cap: number) =>
      g.post(path, body, { authorization: `Bearer ${key}`, "x-max-quota": String(cap) });
    const vectors = { model: "vectors", input: "tip ".repeat(100) };
    expect((await post("/v1/embeddings", vectors, 50)).status).toBe(402);
    const pictures = { model: "picture", prompt: "a pear", n: 2 };
    expect((await post("/v1/images/generations", pictures, 39_999)).status).toBe(402);
    expect(g.upstream.requests).toHaveLength(0);
    g.upstream.always({
      headers: { "content-type": "application/json" },
      steps: [JSON.stringify({ created: 1, data: [{ url: "https://a/1" }, { url: "https://a/2" }] })],
    });
    let cost: string | null = null;
    const charge = await g.charged(async () => {
      const response = await post("/v1/images/generations", pictures, 40_000);
      cost = response.headers.get("x-weir-cost");
      await response.text();
    });
    expect(charge.quota).toBe(40_000);
    expect(cost as string | null).toBe("0.08");
  });

  test.each([
    ["openai-chat", "anthropic"],
    ["anthropic", "openai-chat"],
    ["gemini", "openai-chat"],
    ["openai-responses", "openai-chat"],
  ] as const)(
    "a stream of %s clients told by %s upstreams ends as cleanly at the cap",
    async (client, upstream) => {
      const { key } = await person(g);
      g.upstream.script(longStream(upstream, { words: 6000, per: 10 }));
      let text = "";
      const charge = await g.charged(async () => {
        text = await (await ask(g, client, MODELS[upstream], { key, stream: true, headers: CAPPED })).text();
      });
      expect(CLEAN_END[client].filter((part) => !text.includes(part))).toEqual([]);
      expect(charge.other["stopped"]).toBe("max_cost");
      expect(charge.quota).toBeLessThanOrEqual(CAP);
      expect(charge.quota).toBeGreaterThan(CAP * 0.9);
    },
  );

  test("a body that is passed through as it is: no limit can be sent, so only a stream, which can be cut, is served", async () => {
    const { key } = await person(g);
    await g.setOption("global.pass_through_request_enabled", "true");
    try {
      const model = MODELS["openai-chat"];
      expect((await ask(g, "openai-chat", model, { key, headers: CAPPED })).status).toBe(402);
      expect(g.upstream.requests).toHaveLength(0);
      g.upstream.script(longStream("openai-chat", { words: 6000, per: 10 }));
      const charge = await g.charged(async () =>
        (await ask(g, "openai-chat", model, { key, stream: true, headers: CAPPED })).text(),
      );
      expect(limitOf("openai-chat", lastBody(g))).toBeUndefined();
      expect(charge.quota).toBeLessThanOrEqual(CAP);
      expect(charge.other).toMatchObject({ stopped: "max_cost" });
    } finally {
      await g.setOption("global.pass_through_request_enabled", "false");
    }
  });

  test("a cap that the client's own limit stays below needs nothing: the bytes go on as they came", async () => {
    const { key } = await person(g);
    g.upstream.always(completeAnswer("openai-chat", 5));
    const body = `{ "max_tokens" : 20,"model":"${MODELS["openai-chat"]}",  "messages":[{"role":"user","content":"h\\u0069"}] }`;
    const headers = { ...CAPPED, authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answered = await fetch(`${g.app.url}/v1/chat/completions`, { method: "POST", headers, body });
    await answered.arrayBuffer();
    expect([answered.status, g.upstream.requests.at(-1)?.body.toString()]).toEqual([200, body]);
  });

  test("where nothing is charged no limit is sent, whatever the cap", async () => {
    const { key } = await person(g);
    await g.setOption("GroupRatio", '{"default":0}');
    try {
      g.upstream.always(completeAnswer("openai-chat", 20));
      const charge = await g.charged(async () =>
        (await ask(g, "openai-chat", MODELS["openai-chat"], { key, headers: { "x-max-quota": "0" } })).text(),
      );
      expect(limitOf("openai-chat", lastBody(g))).toBeUndefined();
      expect(charge.quota).toBe(0);
    } finally {
      await g.setOption("GroupRatio", '{"default":1}');
    }
  });

  test("retries share one cap, and a call that is not charged costs nothing", async () => {
    const { id, key } = await person(g);
    await g.app.createChannel({ type: 43, models: MODELS["openai-chat"], baseUrl: g.upstream.url });
    await g.setOption("RetryTimes", "2");
    g.upstream.script(refuse(500), completeAnswer("openai-chat", 50_000)({ json: () => ({}) }));
    const charge = await g.charged(async () =>
      (await ask(g, "openai-chat", MODELS["openai-chat"], { key, headers: CAPPED })).text(),
    );
    expect(charge.quota).toBe(CAP);
    expect((await g.balance(id)).quota).toBe(10_000_000 - CAP);
    g.upstream.always(refuse(400));
    expect((await ask(g, "openai-chat", MODELS["openai-chat"], { key, headers: CAPPED })).status).toBe(400);
    expect((await g.balance(id)).quota).toBe(10_000_000 - CAP);
  });

  test("whatever usage is reported, the charge is never above the cap", async () => {
    const { key } = await person(g, 1_000_000_000);
    let seed = 20;
    // Any generator will do: what matters is that a failure comes again.
    const next = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
    const big = () => Math.floor(10 ** (next() * 9));
    for (let round = 0; round < 40; round++) {
      const cap = 50 + Math.floor(next() * 30_000);
      const usage = { input: big(), output: big() };
      const stream = next() < 0.5;
      const dialect = DIALECTS[round % DIALECTS.length] as DialectName;
      const body = completeAnswer(dialect, 3)({ json: () => ({}) });
      const told = JSON.stringify(body.steps).replaceAll(`":${INPUT_TOKENS}`, `":${usage.input}`);
      g.upstream.script(
        stream
          ? longStream(dialect, { words: 30, per: 10, usage })
          : {
              ...body,
              steps: JSON.parse(
                told.replaceAll(
                  /([oO]utput_tokens|completion_tokens|candidatesTokenCount)(\\?)":3/g,
                  `$1$2":${usage.output}`,
                ),
              ) as string[],
            },
      );
      const charge = await g.charged(async () => {
        const headers = { "x-max-quota": String(cap) };
        const response = await ask(g, dialect, MODELS[dialect], { key, stream, headers });
        expect(response.status).toBe(200);
        await response.text();
      });
      expect(charge.quota).toBeLessThanOrEqual(cap);
    }
    const { differences } = await audit(g.app.deps.db);
    expect(differences).toEqual([]);
  });

  test("the real SDKs read the end at the cap as an answer that reached its limit", async () => {
    const { key } = await person(g);
    const client = new OpenAI({
      apiKey: key,
      baseURL: `${g.app.url}/v1`,
      maxRetries: 0,
      defaultHeaders: CAPPED,
    });
    g.upstream.script(longStream("openai-chat", { words: 6000, per: 10 }));
    const chat = await client.chat.completions
      .stream({ model: MODELS["openai-chat"], messages: HI, stream_options: { include_usage: true } })
      .finalChatCompletion()
      .catch((error: unknown) => error);
    // Its helper raises what it calls a length error, by the finish reason; nothing else may be wrong.
    if (chat instanceof Error) expect(chat.constructor.name).toBe("LengthFinishReasonError");
    else expect((chat as OpenAI.ChatCompletion).choices[0]?.finish_reason).toBe("length");
    g.upstream.script(longStream("openai-responses", { words: 6000, per: 10 }));
    let last: OpenAI.Responses.ResponseStreamEvent | undefined;
    for await (const event of await client.responses.create({
      model: MODELS["openai-responses"],
      input: "hi",
      stream: true,
    }))
      last = event;
    expect(last).toMatchObject({
      type: "response.incomplete",
      response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    });
    g.upstream.script(longStream("anthropic", { words: 6000, per: 10 }));
    const claude = new Anthropic({ apiKey: key, baseURL: g.app.url, maxRetries: 0, defaultHeaders: CAPPED });
    const message = await claude.messages
      .stream({ model: MODELS.anthropic, max_tokens: 60_000, messages: HI })
      .finalMessage();
    expect(message.stop_reason).toBe("max_tokens");
    expect(message.usage.output_tokens * OUT).toBeLessThanOrEqual(CAP);
    g.upstream.script(longStream("gemini", { words: 6000, per: 10 }));
    const google = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: g.app.url, headers: CAPPED } });
    let reason: string | undefined;
    for await (const chunk of await google.models.generateContentStream({
      model: MODELS.gemini,
      contents: "hi",
    }))
      reason = chunk.candidates?.[0]?.finishReason ?? reason;
    expect(reason).toBe("MAX_TOKENS");
  });
});
