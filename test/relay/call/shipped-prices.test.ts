// A fresh site sells models of today at the shipped table's price, without anybody having priced anything.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { explainStored } from "../../../src/shared/cost.ts";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";
import { ask, completeAnswer } from "./holds-support.ts";

const IN = 4;
const OUT = 10;

describe.each(DATABASE_KINDS)("a fresh site on %s", (database) => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway({ database, quota: 1_000_000_000, channel: { type: 1, models: "gpt-5.4,gpt-5" } });
    for (const [type, models] of [
      [14, "claude-opus-5-5,claude-sonnet-4-5"],
      [24, "gemini-2.5-pro,gemini-3.5-flash"],
    ])
      await g.app.createChannel({ type, models, baseUrl: g.upstream.url });
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  test.each<[DialectName, string, number, number]>([
    ["openai-chat", "gpt-5.4", 2.5, 15],
    ["openai-chat", "gpt-5", 1.25, 10],
    ["anthropic", "claude-opus-5-5", 4, 20],
    ["anthropic", "claude-sonnet-4-5", 3, 15],
    ["gemini", "gemini-2.5-pro", 1.25, 10],
    ["gemini", "gemini-3.5-flash", 1.5, 9],
  ])("%s: %s costs $%p in and $%p out per million tokens", async (dialect, model, input, output) => {
    g.upstream.always(completeAnswer(dialect, OUT));
    const charge = await g.charged(async () => {
      const response = await ask(g, dialect, model, { key: g.key });
      expect(response.status).toBe(200);
      await response.text();
    });
    const units = (IN * input + OUT * output) / 2;
    expect(charge.quota).toBe(dialect === "anthropic" ? Math.floor(units) : Math.round(units));
    expect(explainStored(charge.other)?.quota).toBe(charge.quota);
  });

  test("the longest answer of the table is what a call without a limit is limited to, no more", async () => {
    const poor = await g.app.createUser({ quota: 8000 });
    const { key } = await g.app.createToken(poor.id);
    g.upstream.always(completeAnswer("openai-chat", OUT));
    await (await ask(g, "openai-chat", "gpt-5.4", { key })).text();
    const sent = g.upstream.requests.at(-1)?.json() ?? {};
    const limit = Number(sent["max_completion_tokens"] ?? sent["max_tokens"]);
    // 8,000 units pay 1,066 tokens at 7.5; unknown models were sent no more than 4,096.
    expect(limit).toBeGreaterThan(1000);
    expect(limit).toBeLessThan(1067);
    const rich = await g.app.createUser({ quota: 400_000_000 });
    const { key: other } = await g.app.createToken(rich.id);
    await (await ask(g, "openai-chat", "gpt-5.4", { key: other })).text();
    const free = g.upstream.requests.at(-1)?.json() ?? {};
    expect([free["max_completion_tokens"], free["max_tokens"]]).toEqual([undefined, undefined]);
  });

  test("ratios of sound and of cache writes for an hour are read from their maps", async () => {
    await g.setOption("CreateCache1hRatio", JSON.stringify({ "claude-sonnet-4-5": 3 }));
    const price = g.app.deps.prices.callPrice("claude-sonnet-4-5", "default", "default");
    expect(price?.ratios.cacheWrite1hRatio).toBe(3);
    await g.setOption("AudioRatio", JSON.stringify({ "gpt-5": 7 }));
    await g.setOption("AudioCompletionRatio", JSON.stringify({ "gpt-5": 4 }));
    expect(g.app.deps.prices.callPrice("gpt-5", "default", "default")?.ratios).toMatchObject({
      audioRatio: 7,
      audioCompletionRatio: 4,
    });
  });
});
