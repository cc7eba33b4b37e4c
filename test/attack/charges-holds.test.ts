// A1 from outside: what is delivered is charged, however long it gets, and no balance buys more than it holds.
// Refuses the product's own counting: words are counted at the client, bills at the mock provider, charges in the books.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { callPlan, DIALECTS, INPUT_PRICE, OUTPUT_PRICE, startSite } from "./site.ts";
import type { Outcome, Site } from "./site.ts";

/** The client's count of words and the product's count of tokens may differ by the edges of the text. */
const EDGE_TOKENS = 8;

const CLEAN_END: Readonly<Record<DialectName, readonly string[]>> = {
  "openai-chat": ['"finish_reason":"length"', "data: [DONE]"],
  "openai-responses": ['"type":"response.incomplete"', "max_output_tokens"],
  anthropic: ['"stop_reason":"max_tokens"', '"type":"message_stop"'],
  gemini: ['"finishReason":"MAX_TOKENS"'],
};

describe.each(DATABASE_KINDS)("holds on %s", (kind) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ kind });
  }, 60_000);
  afterAll(() => site.remove());

  test("4,068 streamed tokens without usage are charged as 4,068 tokens", async () => {
    const person = await site.person(10_000_000);
    const seen = await callPlan(
      site.server.url,
      await person.key(),
      { id: `long-${kind}`, words: 4068, per: 50, usage: "none" },
      { stream: true },
    );
    expect([seen.status, seen.words, seen.isWhole]).toEqual([200, 4068, true]);
    const row = await site.row(seen.requestId);
    expect(Math.abs(row.output - 4068)).toBeLessThanOrEqual(EDGE_TOKENS);
    expect(row.quota).toBe(row.input * INPUT_PRICE + row.output * OUTPUT_PRICE);
    expect(row.other).toMatchObject({ estimated: true });
    expect((await site.books.balance(person.id)).quota).toBe(10_000_000 - row.quota);
  });

  test("a long prompt that is left after 50 words pays for the prompt", async () => {
    const person = await site.person(10_000_000);
    let requestId = "";
    await callPlan(
      site.server.url,
      await person.key(),
      { id: `prompt-${kind}`, words: 50_000, per: 10, paceMs: 2, usage: "none" },
      {
        stream: true,
        before: "tip ".repeat(20_000),
        leaveAfterWords: 50,
        onHead: (id) => (requestId = id),
      },
    );
    const row = await site.row(requestId);
    expect(row.input).toBeGreaterThanOrEqual(19_900);
    expect(row.output).toBeGreaterThanOrEqual(50 - EDGE_TOKENS);
    expect(row.quota).toBe(row.input * INPUT_PRICE + row.output * OUTPUT_PRICE);
  });

  test.each(DIALECTS)(
    "%s: a stream that the balance cannot follow ends cleanly, and is paid",
    async (dialect) => {
      const balance = 6000;
      const person = await site.person(balance);
      const seen = await callPlan(
        site.server.url,
        await person.key(),
        { id: `poor-${dialect}-${kind}`, words: 6000, per: 10, paceMs: 1, usage: "none" },
        { stream: true, dialect },
      );
      expect([seen.status, seen.isWhole]).toEqual([200, true]);
      expect(CLEAN_END[dialect].filter((text) => !seen.text.includes(text))).toEqual([]);
      const row = await site.row(seen.requestId);
      // Nearly all that the balance buys was delivered, and nothing beyond it.
      expect(seen.words * OUTPUT_PRICE).toBeLessThanOrEqual(balance);
      expect(seen.words * OUTPUT_PRICE).toBeGreaterThan(balance * 0.8);
      expect(Math.abs(row.output - seen.words)).toBeLessThanOrEqual(EDGE_TOKENS);
      expect(row.other).toMatchObject({ stopped: "balance" });
      const left = await site.books.balance(person.id);
      expect(left.quota).toBe(balance - row.quota);
      expect(left.quota).toBeGreaterThanOrEqual(0);
    },
  );

  test("190 parallel calls spend no more than the balance", async () => {
    const balance = 100_000;
    const person = await site.person(balance);
    const key = await person.key();
    const calls: Promise<Outcome>[] = [];
    for (let number = 0; number < 190; number++) {
      const plan = { id: `parallel-${number}-${kind}`, words: 16_000, per: 400 };
      calls.push(callPlan(site.server.url, key, plan, { stream: number % 2 === 0 }));
    }
    const seen = await Promise.all(calls);
    const served = seen.filter(({ status }) => status === 200);
    expect(served.length).toBeGreaterThan(0);
    // 503: near zero each step is a transaction on one row, which a busy machine may not get through in time.
    const strange = seen.filter(({ status }) => ![200, 403, 429, 503].includes(status));
    expect(strange.map(({ status, text }) => [status, text.slice(0, 200)])).toEqual([]);
    for (const { requestId } of served) await site.row(requestId);
    const rows = (await site.books.log(2)).filter(({ userId }) => userId === person.id);
    const charged = rows.reduce((sum, { quota }) => sum + quota, 0);
    expect(charged).toBeLessThanOrEqual(balance);
    const { quota, used } = await site.books.balance(person.id);
    expect([quota, used]).toEqual([balance - charged, charged]);
    // What reached people was paid for, call by call.
    for (const { requestId, words } of served) {
      const row = rows.find((each) => each.requestId === requestId);
      expect(row?.quota ?? 0).toBeGreaterThanOrEqual((words - EDGE_TOKENS) * OUTPUT_PRICE);
    }
  }, 60_000);

  test("an agent that asks for 128,000 tokens on a small balance is served, with the limit that it can pay", async () => {
    const balance = 20_000;
    const person = await site.person(balance);
    const id = `agent-${kind}`;
    const seen = await callPlan(
      site.server.url,
      await person.key(),
      { id, words: 50_000 },
      { fields: { max_tokens: 128_000 } },
    );
    expect(seen.status).toBe(200);
    // A quarter of what is available, or 1,024 tokens when that is more.
    const [sent] = site.upstream.of(id);
    expect(sent?.limit).toBeGreaterThanOrEqual(1024);
    expect((sent?.limit ?? 0) * OUTPUT_PRICE).toBeLessThanOrEqual(balance / 4);
    const row = await site.row(seen.requestId);
    expect(row.quota).toBe(10 * INPUT_PRICE + (sent?.limit ?? 0) * OUTPUT_PRICE);
    expect(row.other).toMatchObject({ limited: "balance" });
  });

  test("far from the limit the bytes of a request are not touched", async () => {
    const person = await site.person(10_000_000);
    const body = `{"model":"mock-chat", "zero":0,"messages":[ {"role":"user","content":"@plan id=bytes-${kind}@"}]}`;
    const answer = await fetch(`${site.server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${await person.key()}`, "content-type": "application/json" },
      body,
    });
    expect(answer.status).toBe(200);
    expect(site.upstream.of(`bytes-${kind}`)[0]?.body).toBe(body);
  });

  test("what only open holds keep from being paid waits with 429; what nothing can pay is refused before the upstream", async () => {
    const person = await site.person(6000);
    const key = await person.key();
    const fields = { max_tokens: 1000 };
    const first = callPlan(
      site.server.url,
      key,
      { id: `held-${kind}`, words: 10, firstMs: 1500 },
      { fields },
    );
    await site.until(() => site.upstream.of(`held-${kind}`).length > 0);
    // A second hold of 4,000 units does not fit beside the first: it gets the rest, or has to wait, but is never lost.
    const burst = await Promise.all(
      [1, 2, 3].map((number) =>
        callPlan(
          site.server.url,
          key,
          { id: `burst-${number}-${kind}`, words: 10, firstMs: 500 },
          { fields },
        ),
      ),
    );
    expect(burst.map(({ status }) => status).filter((status) => ![200, 429].includes(status))).toEqual([]);
    const waiting = burst.filter(({ status }) => status === 429);
    expect(waiting.length).toBeGreaterThan(0);
    expect(waiting.every(({ text }) => text.includes("quota_held"))).toBe(true);
    expect((await first).status).toBe(200);
    const poor = await site.person(5);
    const refused = await callPlan(site.server.url, await poor.key(), { id: `nothing-${kind}` }, {});
    expect(refused.status).toBe(403);
    expect(site.upstream.of(`nothing-${kind}`)).toEqual([]);
  });

  test("the books agree after all that", async () => {
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0 });
  });
});
