// A call is charged by the prices that stood when it began; nothing dearer than them is asked of an upstream, and no work
// is begun whose bill would come behind our back.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { explainStored } from "../../../src/shared/cost.ts";
import { gate, sse } from "../../support/fake-upstream.ts";
import { answerOf, UPSTREAMS } from "../../support/dialect-upstream.ts";
import { ask, longStream, completeAnswer } from "./holds-support.ts";
import { errorOf, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const CHAT = UPSTREAMS["openai-chat"].model;
const CLAUDE = UPSTREAMS.anthropic.model;
const GEMINI = UPSTREAMS.gemini.model;
const GPT = "gpt-4.1-nano";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 1_000_000_000, channel: { type: 1, models: `${GPT},priced` } });
  for (const [type, models] of [
    [43, CHAT],
    [14, CLAUDE],
    [24, GEMINI],
  ])
    await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
  await g.setOption("CompletionRatio", "{}");
  await setPrices(1);
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

async function setPrices(ratio: number): Promise<void> {
  const models = [CHAT, CLAUDE, GEMINI, GPT];
  await g.setOption("ModelRatio", JSON.stringify(Object.fromEntries(models.map((name) => [name, ratio]))));
}

const lastBody = () => g.upstream.requests.at(-1)?.json() ?? {};

describe("prices that change while a call runs", () => {
  /** Everything that a charge reads, made dearer. */
  async function raise(): Promise<void> {
    await setPrices(50);
    await g.setOption("QuotaPerUnit", "5000000");
    await g.setOption("GroupRatio", '{"default":7}');
    await g.setOption("ModelPrice", '{"priced":3}');
  }
  async function lower(): Promise<void> {
    await setPrices(1);
    await g.setOption("QuotaPerUnit", "500000");
    await g.setOption("GroupRatio", '{"default":1}');
    await g.setOption("ModelPrice", '{"priced":0.01}');
  }

  test.each([false, true])(
    "streamed %p: the charge is that of the reservation, and its row explains it",
    async (stream) => {
      await lower();
      const door = gate();
      g.upstream.script(
        stream
          ? longStream("openai-chat", {
              words: 200,
              per: 100,
              usage: { input: 4, output: 200 },
              between: door,
            })
          : { ...completeAnswer("openai-chat", 200)({ json: () => ({}) }), before: door },
      );
      const charge = await g.charged(async () => {
        const response = ask(g, "openai-chat", CHAT, { key: g.key, stream });
        await g.upstream.request(0);
        await raise();
        door.open();
        await (await response).text();
      });
      await lower();
      expect(charge.quota).toBe(4 + 200 * 4);
      expect(explainStored(charge.other)?.quota).toBe(charge.quota);
      expect(charge.other["cost"]).toMatchObject({ revision: expect.stringMatching(/^[0-9a-f]{12}$/) });
    },
  );

  test("a fixed price and the units of a dollar are frozen, too", async () => {
    await lower();
    const door = gate();
    g.upstream.script({ ...completeAnswer("openai-chat", 5)({ json: () => ({}) }), before: door });
    const charge = await g.charged(async () => {
      const response = g.chat({ model: "priced" });
      await g.upstream.request(0);
      await raise();
      door.open();
      await (await response).text();
    });
    await lower();
    expect(charge.quota).toBe(5000);
  });
});

describe("an operator's completion ratio", () => {
  test("wins over the rule of the model's family, in charges and lists alike", async () => {
    await g.setOption("CompletionRatio", JSON.stringify({ [CLAUDE]: 9 }));
    g.upstream.always(completeAnswer("anthropic", 10));
    const charge = await g.charged(async () =>
      (await ask(g, "anthropic", CLAUDE, { key: g.key, limit: 50 })).text(),
    );
    expect(charge.quota).toBe(4 + 90);
    const { body } = await g.app.call<{ data: { model_name: string; completion_ratio: number }[] }>(
      "GET",
      "/api/pricing",
    );
    expect(body.data.find((each) => each.model_name === CLAUDE)?.completion_ratio).toBe(9);
    await g.setOption("CompletionRatio", "{}");
  });
});

describe("service tiers", () => {
  const DIALECTS = [
    ["openai-chat", CHAT],
    ["openai-responses", GPT],
    ["anthropic", CLAUDE],
    ["gemini", GEMINI],
  ] as const;

  describe.each([false, true])("body passed through: %p", (isRaw) => {
    beforeAll(() => g.setOption("global.pass_through_request_enabled", String(isRaw)));
    afterAll(() => g.setOption("global.pass_through_request_enabled", "false"));

    test.each(DIALECTS)("%s: a dearer one is taken out, and the log tells it", async (dialect, model) => {
      g.upstream.always(answerOf(dialect));
      for (const tier of ["priority", "auto", "Priority "]) {
        const charge = await g.charged(async () => {
          const response = await ask(g, dialect, model, {
            key: g.key,
            limit: 50,
            fields: { service_tier: tier },
          });
          expect(response.status).toBe(200);
          await response.text();
        });
        expect(lastBody()["service_tier"]).toBe(dialect === "anthropic" ? "standard_only" : undefined);
        expect(charge.other["dropped"]).toEqual(["service_tier"]);
      }
    });

    test("the usual one passes, a cheaper one without a price does not; a second spelling does not smuggle one", async () => {
      g.upstream.always(answerOf("openai-chat"));
      await (await g.chat({ model: CHAT, max_tokens: 50, service_tier: "default" })).text();
      expect(lastBody()["service_tier"]).toBe("default");
      const charge = await g.charged(async () => {
        await (await g.chat({ model: CHAT, max_tokens: 50, service_tier: "flex" })).text();
      });
      expect(lastBody()).not.toHaveProperty("service_tier");
      expect(charge.other["dropped"]).toEqual(["service_tier"]);
      const body = `{"model":"${CHAT}","service_tier":"priority","messages":[{"role":"user","content":"hi"}],"service_tier":"default"}`;
      await (await g.post("/v1/chat/completions", body)).text();
      expect(g.upstream.requests.at(-1)?.body.toString()).not.toContain("service_tier");
    });

    test("Anthropic's fast mode and Gemini's other places are tiers as well", async () => {
      g.upstream.always(answerOf("anthropic"));
      await (await ask(g, "anthropic", CLAUDE, { key: g.key, limit: 50, fields: { speed: "fast" } })).text();
      expect(lastBody()).not.toHaveProperty("speed");
      g.upstream.always(answerOf("gemini"));
      const fields = { generationConfig: { serviceTier: "PRIORITY", topK: 1 }, serviceTier: "priority" };
      await (await ask(g, "gemini", GEMINI, { key: g.key, fields })).text();
      expect(lastBody()).toMatchObject({ generationConfig: { topK: 1 } });
      expect(JSON.stringify(lastBody())).not.toMatch(/tier/i);
    });
  });

  test.each([
    ["openai-chat", CLAUDE, "anthropic"],
    ["anthropic", CHAT, "openai-chat"],
    ["openai-responses", CHAT, "openai-chat"],
    ["openai-chat", GEMINI, "gemini"],
  ] as const)(
    "a %s client's dear tier does not reach %s in another dialect",
    async (client, model, upstream) => {
      g.upstream.always(answerOf(upstream));
      for (const tier of ["priority", "auto"]) {
        await (await ask(g, client, model, { key: g.key, limit: 50, fields: { service_tier: tier } })).text();
        expect([undefined, "standard_only"]).toContain(lastBody()["service_tier"] as string | undefined);
      }
    },
  );

  test("the tier that an answer names is kept for a replay", async () => {
    g.upstream.script({
      headers: { "content-type": "application/json" },
      steps: [
        JSON.stringify({
          choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
          service_tier: "default",
          usage: { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 },
        }),
      ],
    });
    const charge = await g.charged(async () => (await g.chat({ model: CHAT })).text());
    expect(charge.other["cost"]).toMatchObject({ tier: "default" });
    const usage = { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 };
    g.upstream.script({
      headers: { "content-type": "text/event-stream" },
      steps: [
        sse({ choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }] }),
        sse({ choices: [], service_tier: "flex", usage }),
        "data: [DONE]\n\n",
      ],
    });
    const streamed = await g.charged(async () => (await g.chat({ model: CHAT, stream: true })).text());
    expect(streamed.other["cost"]).toMatchObject({ tier: "flex" });
  });
});

describe("answers in the background", () => {
  test.each([false, true])(
    "are refused by name before anybody is asked (passed through: %p)",
    async (isRaw) => {
      await g.setOption("global.pass_through_request_enabled", String(isRaw));
      const before = await g.balance();
      for (const path of ["/v1/responses", "/v1/responses/compact"])
        for (const stream of [false, true]) {
          const response = await g.post(path, { model: GPT, input: "hi", background: true, stream });
          expect(response.status).toBe(400);
          expect(await errorOf(response)).toMatchObject({
            param: "background",
            message: expect.stringContaining("background"),
          });
        }
      const odd = await g.post("/v1/responses", { model: GPT, input: "hi", background: "yes" });
      expect(odd.status).toBe(400);
      expect(g.upstream.requests).toHaveLength(0);
      expect(await g.balance()).toEqual(before);
      await g.setOption("global.pass_through_request_enabled", "false");
    },
  );

  test("what asks for nothing in the background is served, and stored answers are nobody's route", async () => {
    g.upstream.always(answerOf("openai-responses"));
    expect((await g.post("/v1/responses", { model: GPT, input: "hi", background: false })).status).toBe(200);
    for (const [method, path] of [
      ["GET", "/v1/responses/resp_1"],
      ["POST", "/v1/responses/resp_1/cancel"],
      ["DELETE", "/v1/responses/resp_1"],
    ] as const) {
      const asked = g.upstream.requests.length;
      const response = await fetch(g.app.url + path, {
        method,
        headers: { authorization: `Bearer ${g.key}` },
      });
      expect([404, 405, 501]).toContain(response.status);
      expect(g.upstream.requests).toHaveLength(asked);
    }
  });
});
