// Prices by length and hour over the wire (tiers: service-tiers.test.ts): the worked examples of the reference, to the unit, on both
// databases, with rows that explain themselves.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { explainStored } from "../../../src/shared/cost.ts";
import { testClock } from "../../support/clock.ts";
import { gate, json } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { HI, startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

interface Reported {
  fresh?: number;
  cached?: number;
  audio?: number;
  text?: number;
  spoken?: number;
}

/** A whole answer that reports so much in OpenAI's words. */
function reports({ fresh = 0, cached = 0, audio = 0, text = 0, spoken = 0 }: Reported): Script {
  return json({
    id: "chatcmpl-up",
    object: "chat.completion",
    created: 1_750_000_000,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: {
      prompt_tokens: fresh + cached + audio,
      completion_tokens: text + spoken,
      total_tokens: fresh + cached + audio + text + spoken,
      prompt_tokens_details: { cached_tokens: cached, audio_tokens: audio },
      completion_tokens_details: { audio_tokens: spoken },
    },
  });
}

describe.each(DATABASE_KINDS)("price rules on %s", (database) => {
  let g: Gateway;
  // A Friday, half past three: DeepSeek's peak ends at four.
  const clock = testClock(Date.UTC(2026, 10, 20, 3, 30));
  beforeAll(async () => {
    g = await startGateway({
      database,
      clock,
      quota: 1_000_000_000,
      channel: {
        type: 1,
        models: "gpt-5.4,gpt-5,gemini-2.5-pro,deepseek-v4-pro,gpt-audio,mine,mistral-medium-9",
      },
    });
    await g.app.createChannel({ type: 14, models: "claude-sonnet-4-6", baseUrl: g.upstream.url });
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  async function charged(model: string, reported: Reported, fields: object = {}): Promise<LogLine> {
    g.upstream.always(reports(reported));
    const row = await g.charged(async () => {
      const response = await g.chat({ model, messages: HI, ...fields });
      expect(response.status).toBe(200);
      await response.text();
    });
    expect(explainStored(row.other)?.quota).toBe(row.quota);
    return row;
  }

  test("gemini-2.5-pro at 200,000 tokens, one above, and half of them cached", async () => {
    const model = "gemini-2.5-pro";
    expect((await charged(model, { fresh: 200_000, text: 1000 })).quota).toBe(130_000);
    expect((await charged(model, { fresh: 200_001, text: 1000 })).quota).toBe(257_501);
    const row = await charged(model, { fresh: 200_001, cached: 50_000, text: 1000 });
    expect(row.quota).toBe(263_751);
    expect(row.other["cost"]).toMatchObject({ rules: [{ over: 200_000 }], rates: { in: 2.5, out: 15 } });
  });

  test("the operator's completion ratio wins over the one that is built in", async () => {
    const { options } = g.app.deps;
    const before = options.text("CompletionRatio");
    const model = "mistral-medium-9";
    const reported = { fresh: 1000, text: 200 };
    await g.setOption("ModelRatio", JSON.stringify({ ...options.get("ModelRatio"), [model]: 1 }));
    // Built in: 3.
    expect((await charged(model, reported)).quota).toBe(1600);
    await g.setOption("CompletionRatio", JSON.stringify({ ...options.get("CompletionRatio"), [model]: 5 }));
    expect((await charged(model, reported)).quota).toBe(2000);
    await g.setOption("CompletionRatio", before);
  });

  test("gpt-5.4 above 272,000, also in a group of 0.9", async () => {
    const reported = { fresh: 272_001, text: 2000 };
    expect((await charged("gpt-5.4", reported)).quota).toBe(702_503);
    await g.setOption("GroupRatio", '{"default":0.9}');
    expect((await charged("gpt-5.4", reported)).quota).toBe(632_252);
    await g.setOption("GroupRatio", '{"default":1}');
  });

  test("Claude, native: writes to the cache of both lengths, cut", async () => {
    g.upstream.always(
      json({
        id: "msg_up",
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text: "hello" }],
        stop_reason: "end_turn",
        usage: {
          input_tokens: 100,
          cache_read_input_tokens: 1000,
          cache_creation_input_tokens: 500,
          cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 200 },
          output_tokens: 50,
        },
      }),
    );
    const row = await g.charged(async () => {
      const body = { model: "claude-sonnet-4-6", max_tokens: 100, messages: HI };
      await (await g.post("/v1/messages", body)).text();
    });
    expect(row.quota).toBe(1837);
  });

  test("gpt-audio: text and sound both ways", async () => {
    const reported = { fresh: 20, audio: 500, text: 30, spoken: 400 };
    expect((await charged("gpt-audio", reported)).quota).toBe(20_975);
  });

  test("the hour is that of the reservation, however late the answer comes", async () => {
    const reported = { fresh: 10_000, cached: 90_000, text: 2000 };
    expect((await charged("deepseek-v4-pro", reported)).quota).toBe(12_540);
    const door = gate();
    g.upstream.script({ ...reports(reported), before: door });
    const row = await g.charged(async () => {
      const response = g.chat({ model: "deepseek-v4-pro" });
      await g.upstream.request(1);
      clock.jump(45 * 60_000);
      door.open();
      await (await response).text();
    });
    expect(row.quota).toBe(12_540);
    const later = await charged("deepseek-v4-pro", reported);
    expect(later.quota).toBe(6270);
    expect(later.other["cost"]).toMatchObject({
      rules: [{ hours: ["00:00-01:00", "04:00-06:00", "10:00-24:00"] }],
    });
  });

  test("rules that change while a call runs do not reach it", async () => {
    await g.setOption("ModelRatio", JSON.stringify({ ...g.app.deps.options.get("ModelRatio"), mine: 1 }));
    const before = g.app.deps.options.get("PriceRules");
    const with_ = (input: number) =>
      JSON.stringify({ ...before, mine: { when: [{ over: 10, set: { in: input } }] } });
    await g.setOption("PriceRules", with_(4));
    const door = gate();
    g.upstream.script({ ...reports({ fresh: 1000 }), before: door });
    const row = await g.charged(async () => {
      const response = g.chat({ model: "mine" });
      await g.upstream.request(0);
      await g.setOption("PriceRules", with_(400));
      door.open();
      await (await response).text();
    });
    expect(row.quota).toBe(2000);
    await g.setOption("PriceRules", JSON.stringify(before));
  });

  test("a balance that pays the base but not the threshold's price is held to the latter near it", async () => {
    await g.setOption("ModelRatio", JSON.stringify({ ...g.app.deps.options.get("ModelRatio"), mine: 1 }));
    const before = g.app.deps.options.get("PriceRules");
    const rules = { mine: { when: [{ over: 1, set: { in: 2000, out: 2000 } }] } };
    await g.setOption("PriceRules", JSON.stringify({ ...before, ...rules }));
    const poor = await g.app.createUser({ quota: 5000 });
    const { key } = await g.app.createToken(poor.id);
    const response = await g.chat({ model: "mine", max_tokens: 100 }, { authorization: `Bearer ${key}` });
    expect([response.status, g.upstream.requests.length]).toEqual([403, 0]);
    await g.setOption("PriceRules", JSON.stringify(before));
  });
});
