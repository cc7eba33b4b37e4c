// A2 and A3 from outside: calls that are cut, left early or left for good are charged for what the provider bills.
// Refuses guesses where the provider has told: reported usage is charged to the unit.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { callPlan, DIALECTS, INPUT_PRICE, OUTPUT_PRICE, startSite } from "./site.ts";
import type { Site } from "./site.ts";
import type { BookRow } from "../support/books.ts";

const EDGE_TOKENS = 8;
const BALANCE = 10_000_000;

describe.each(DATABASE_KINDS)("ends of calls on %s", (kind) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ kind });
  });
  afterAll(() => site.remove());

  /** The only charge of a person whose call nobody stayed to hear about. */
  const onlyRow = (userId: number, limitMs: number): Promise<BookRow> =>
    site.until(async () => {
      if (kind === "sqlite") await site.root.send("GET", "/api/log/?p=1&page_size=1");
      return (await site.books.log(2)).find((row) => row.userId === userId);
    }, limitMs);

  test.each(DIALECTS)(
    "%s: a stream that its upstream cuts is charged for what was delivered",
    async (dialect) => {
      for (const usage of ["end", "each"] as const) {
        const person = await site.person(BALANCE);
        const id = `cut-${usage}-${dialect}-${kind}`;
        let requestId = "";
        const seen = await callPlan(
          site.server.url,
          await person.key(),
          { id, words: 600, cut: 300, input: 1000, usage },
          { stream: true, dialect, onHead: (head) => (requestId = head) },
        );
        expect(seen.status).toBe(200);
        const row = await site.row(requestId);
        const [given] = site.upstream.of(id);
        expect(given?.given).toBe(300);
        // Between what the client has in hand and what the provider gave; what was told on the way is no final figure.
        expect(row.output).toBeGreaterThanOrEqual(seen.words - EDGE_TOKENS);
        expect(row.output).toBeGreaterThanOrEqual(250);
        expect(row.output).toBeLessThanOrEqual(300 + EDGE_TOKENS);
        const isInputTold = dialect === "anthropic" || (usage === "each" && dialect !== "openai-responses");
        if (isInputTold) expect(row.input).toBe(1000);
        expect(row.quota).toBe(row.input * INPUT_PRICE + row.output * OUTPUT_PRICE);
        expect(row.other).toMatchObject({ estimated: true });
      }
    },
  );

  test.each(DIALECTS)(
    "%s: a stream that its client leaves is charged for what was delivered",
    async (dialect) => {
      const person = await site.person(BALANCE);
      const id = `left-${dialect}-${kind}`;
      let requestId = "";
      const seen = await callPlan(
        site.server.url,
        await person.key(),
        { id, words: 100_000, per: 10, paceMs: 5, input: 1000 },
        {
          stream: true,
          dialect,
          fields: dialect === "anthropic" ? { max_tokens: 100_000 } : {},
          leaveAfterWords: 200,
          onHead: (head) => (requestId = head),
        },
      );
      expect(seen.words).toBeGreaterThanOrEqual(200);
      const row = await site.row(requestId);
      expect(row.output).toBeGreaterThanOrEqual(seen.words - EDGE_TOKENS);
      await site.until(() => site.upstream.of(id)[0]?.isLeft);
      expect(row.output).toBeLessThanOrEqual((site.upstream.of(id)[0]?.given ?? 0) + EDGE_TOKENS);
      if (dialect === "anthropic") expect(row.input).toBe(1000);
      expect(row.quota).toBe(row.input * INPUT_PRICE + row.output * OUTPUT_PRICE);
    },
  );

  for (const dialect of DIALECTS) {
    for (const stream of [false, true]) {
      test.concurrent(
        `${dialect}: ${stream ? "a stream left before its first word" : "an unstreamed call that is left"} is charged what the upstream reports`,
        async () => {
          const person = await site.person(BALANCE);
          const id = `abandoned-${dialect}-${stream}-${kind}`;
          const seen = await callPlan(
            site.server.url,
            await person.key(),
            { id, words: 500, input: 77, firstMs: 3000 },
            { dialect, stream, leaveOnce: site.until(() => site.upstream.of(id)[0]) },
          );
          expect(seen.isBroken).toBe(true);
          const row = await onlyRow(person.id, 15_000);
          expect([row.input, row.output, row.quota]).toEqual([
            77,
            500,
            77 * INPUT_PRICE + 500 * OUTPUT_PRICE,
          ]);
          expect(row.other["estimated"]).toBeUndefined();
          expect(site.upstream.of(id)[0]).toMatchObject({ isWhole: true, isLeft: false });
          expect((await site.books.balance(person.id)).quota).toBe(BALANCE - row.quota);
        },
        30_000,
      );
    }
  }

  test.concurrent("what an upstream refuses after the client left is free", async () => {
    const person = await site.person(BALANCE);
    const key = await person.key();
    await callPlan(
      site.server.url,
      key,
      { id: `refused-${kind}`, status: 400, firstMs: 2500 },
      { leaveOnce: site.until(() => site.upstream.of(`refused-${kind}`)[0]) },
    );
    await site.until(() => site.upstream.of(`refused-${kind}`)[0]?.isClosed);
    const after = await callPlan(site.server.url, key, { id: `after-${kind}`, words: 3 });
    const row = await site.row(after.requestId);
    expect((await site.books.balance(person.id)).quota).toBe(BALANCE - row.quota);
  });

  test("what never answers is read for the operator's time, then its prompt is charged as an estimate", async () => {
    await site.set("relay.abandoned_read_seconds", "1");
    const person = await site.person(BALANCE);
    await callPlan(
      site.server.url,
      await person.key(),
      { id: `never-${kind}`, words: 5, firstMs: 20_000 },
      { leaveOnce: site.until(() => site.upstream.of(`never-${kind}`)[0]), before: "tip ".repeat(500) },
    );
    const row = await onlyRow(person.id, 10_000);
    expect(row.input).toBeGreaterThanOrEqual(500);
    expect([row.output, row.quota]).toEqual([0, row.input * INPUT_PRICE]);
    expect(row.other).toMatchObject({ estimated: true });
  }, 30_000);

  test("the books agree after all that", async () => {
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0 });
  });
});
