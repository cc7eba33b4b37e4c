// A4 and A7 to A10 from outside: frozen prices, tiers, background answers, poor keys, and balances near zero.
// Refuses to look inside: prices are read off the charges.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { promptOf } from "../support/mock-upstream.ts";
import { callPlan, INPUT_PRICE, MODELS, startSite } from "./site.ts";
import type { Site } from "./site.ts";

/** A family whose ratio the product knows, and gives way when an operator says otherwise. */
const LOCKED = "gpt-4o-2024-05-13";
/** Input and output cost the same. */
const FLAT = "flat-price";
describe.each(DATABASE_KINDS)("prices on %s", (kind) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ kind });
    const models = [...Object.values(MODELS), LOCKED, FLAT];
    const each = (ratio: number) => Object.fromEntries(models.map((model) => [model, ratio]));
    await site.channel({ models: `${LOCKED},${FLAT}` });
    await site.set("ModelRatio", JSON.stringify(each(INPUT_PRICE)));
    await site.set("CompletionRatio", JSON.stringify({ ...each(4), [LOCKED]: 7, [FLAT]: 1 }));
  });
  afterAll(() => site.remove());

  const post = async (path: string, key: string, body: unknown) => {
    const answer = await fetch(site.server.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };

  test("A4: background answers are refused by name, before any upstream", async () => {
    const person = await site.person(1_000_000);
    const { status, text } = await post("/v1/responses", await person.key(), {
      model: MODELS["openai-responses"],
      input: promptOf({ id: `background-${kind}` }),
      background: true,
    });
    expect(status).toBe(400);
    expect(text).toContain("background");
    expect(site.upstream.of(`background-${kind}`)).toEqual([]);
  });

  test("A8: priority is taken out and told, and an operator's completion ratio wins over a locked family", async () => {
    const person = await site.person(10_000_000);
    const key = await person.key();
    const id = `tier-${kind}`;
    const seen = await callPlan(site.server.url, key, { id }, { fields: { service_tier: "priority" } });
    expect(seen.status).toBe(200);
    const sent = JSON.parse(site.upstream.of(id)[0]?.body ?? "{}") as { service_tier?: string };
    expect(sent.service_tier === undefined || sent.service_tier === "default").toBe(true);
    expect(JSON.stringify((await site.row(seen.requestId)).other["dropped"] ?? [])).toContain("service_tier");
    const locked = await post("/v1/chat/completions", key, {
      model: LOCKED,
      messages: [{ role: "user", content: promptOf({ id: `locked-${kind}`, words: 100 }) }],
    });
    expect(locked.status).toBe(200);
    const row = await site.row(locked.headers.get("X-Oneapi-Request-Id") ?? "");
    expect(row.quota).toBe(10 + 100 * 7);
  });

  test("A7: a call is charged at the price that it began with", async () => {
    const person = await site.person(10_000_000);
    await site.channel({ models: "fixed-price" });
    await site.set("ModelPrice", JSON.stringify({ "fixed-price": 0.01 }));
    const key = await person.key();
    const id = `frozen-${kind}`;
    const running = post("/v1/chat/completions", key, {
      model: "fixed-price",
      messages: [{ role: "user", content: promptOf({ id, firstMs: 600 }) }],
    });
    await site.until(() => site.upstream.of(id).length > 0);
    await site.set("QuotaPerUnit", "5000000");
    await site.set("ModelPrice", JSON.stringify({ "fixed-price": 0.05 }));
    const answer = await running;
    await site.set("QuotaPerUnit", "500000");
    expect(answer.status).toBe(200);
    expect((await site.row(answer.headers.get("X-Oneapi-Request-Id") ?? "")).quota).toBe(5000);
  });

  test("A9: a poor key writes ten error rows a minute at most, then one with a count", async () => {
    const person = await site.person(30_000);
    const key = await person.key();
    const errors = async () => (await site.books.log(5)).filter(({ userId }) => userId === person.id);
    for (let round = 0; round < 10; round++) {
      const seen = await Promise.all(
        Array.from({ length: 20 }, () => callPlan(site.server.url, key, { id: "poor", status: 400 })),
      );
      expect(seen.filter(({ status }) => ![400, 403, 429].includes(status))).toEqual([]);
    }
    await site.until(async () => {
      if (kind === "sqlite") await site.root.send("GET", "/api/log/?p=1&page_size=1");
      return (await errors()).length > 0;
    });
    await site.server.stop();
    const written = await errors();
    await site.server.restart();
    const byReason = Map.groupBy(written, ({ other }) => String(other["error_code"]));
    for (const [reason, rows] of byReason) expect([reason, rows.length <= 11]).toEqual([reason, true]);
    expect(byReason.size).toBeLessThanOrEqual(3);
  });

  test("A10: a balance that pays for one call after another serves all of them", async () => {
    const person = await site.person(1800);
    const key = await person.key();
    const refused: number[] = [];
    // Each call holds more than half of what is left and gives nearly all of it back.
    for (let number = 0; number < 24; number++) {
      const { status } = await post("/v1/chat/completions", key, {
        model: FLAT,
        max_tokens: 1024,
        messages: [{ role: "user", content: promptOf({ id: `near-${number}-${kind}`, words: 5 }) }],
      });
      if (status !== 200) refused.push(status);
    }
    expect(refused).toEqual([]);
  });

  test("the books agree after all that", async () => {
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0 });
  });
});
