// What upstreams charge is frozen with each call: by the cost rows of its channel, in the row that administrators read and
// in the sums, to the unit, on both databases; unknown is never 0, and users never learn it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { answer, CUT, gate, json, refuse } from "../../support/fake-upstream.ts";
import { MODEL, startGateway, until } from "../support.ts";
import type { Gateway } from "../support.ts";
import { ask, longStream, wordsIn } from "./holds-support.ts";

const NANOS_PER_UNIT = 2000;

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let gateway: Gateway;
    let nowMs = Date.UTC(2026, 10, 20, 12, 0, 0);

    beforeAll(async () => {
      gateway = await startGateway({ database, clock: { nowMs: () => nowMs } });
      await gateway.setOption("ModelRatio", JSON.stringify({ [MODEL]: 1 }));
      await gateway.setOption("CompletionRatio", JSON.stringify({ [MODEL]: 4 }));
    });
    afterAll(async () => {
      expect((await audit(gateway.app.deps.db)).differences).toEqual([]);
      await gateway.close();
    });

    async function setCost(fields: Record<string, unknown> = {}): Promise<void> {
      const { deps } = gateway.app;
      await deps.db.orm.insert(deps.db.t.channelCosts).values({
        channelId: gateway.channelId,
        model: "*",
        validFrom: Math.floor(nowMs / 1000),
        createdAt: Math.floor(nowMs / 1000),
        ...fields,
      });
      await deps.costs.refresh([gateway.channelId]);
    }

    /** All sums of the channel so far. */
    async function sums() {
      const { deps } = gateway.app;
      await deps.ledger.flush();
      const { rollups } = deps.db.t;
      const [row] = await deps.db.orm
        .select({
          count: sql`sum(${rollups.count})`.mapWith(Number),
          quota: sql`sum(${rollups.quota})`.mapWith(Number),
          nanos: sql`sum(${rollups.costNanos})`.mapWith(Number),
          costCount: sql`sum(${rollups.costCount})`.mapWith(Number),
          costQuota: sql`sum(${rollups.costQuota})`.mapWith(Number),
          lost: sql`sum(${rollups.lostNanos})`.mapWith(Number),
        })
        .from(rollups);
      return row ?? { count: 0, quota: 0, nanos: 0, costCount: 0, costQuota: 0, lost: 0 };
    }

    const usage = (input: number, cached: number, output: number) => ({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
    });

    const adminInfo = (row: { other: Record<string, unknown> }) =>
      row.other["admin_info"] as Record<string, unknown>;

    test("without a cost row the cost is unknown, not 0; model and id of the upstream stand in the row", async () => {
      const script = answer("hi", { usage: usage(1000, 0, 100) });
      gateway.upstream.script({ ...script, headers: { ...script.headers, "x-request-id": "req_abc123" } });
      const row = await gateway.charged(() => gateway.chat());
      expect(row.quota).toBe(1400);
      expect(adminInfo(row)).toMatchObject({ upstream_model: MODEL, upstream_id: "req_abc123" });
      expect(adminInfo(row)).not.toHaveProperty("cost_nanos");
      expect(await sums()).toEqual({ count: 1, quota: 1400, nanos: 0, costCount: 0, costQuota: 0, lost: 0 });
    });

    test("a row in dollars times factor and upstream group ratio, cached input at its own price", async () => {
      nowMs += 1000;
      await setCost({
        price: JSON.stringify({ in: 1, cache_read: 0.1, out: 4 }),
        factor: 0.9,
        groupRatio: 1.5,
      });
      gateway.upstream.script(answer("hi", { usage: usage(1000, 400, 100) }));
      const row = await gateway.charged(() => gateway.chat());
      // (600 x 1 + 400 x 0.1 + 100 x 4) / 10^6 x 1.35 dollars.
      const nanos = 1040 * 1000 * 1.35;
      expect(adminInfo(row)["cost_nanos"]).toBe(nanos);
      expect(nanos / NANOS_PER_UNIT).toBe(702);
      const all = await sums();
      expect(all).toMatchObject({ count: 2, nanos, costCount: 1, costQuota: row.quota, lost: 0 });
      // The user's own view of the same row.
      const mine = await gateway.app.call<{ data: { items: { other: string }[] } }>(
        "GET",
        "/api/log/self?p=1&page_size=20",
        undefined,
        gateway.user,
      );
      expect(mine.body.data.items.length).toBe(2);
      expect(mine.text).not.toContain("cost_nanos");
      expect(mine.text).not.toContain("upstream_id");
    });

    test("a later row holds from its moment on; what was settled keeps its cost", async () => {
      const before = await sums();
      nowMs += 60_000;
      await setCost({ model: MODEL, price: JSON.stringify({ in: 2, out: 2 }), validFrom: nowMs / 1000 + 60 });
      gateway.upstream.script(answer("hi", { usage: usage(1000, 0, 0) }));
      const early = await gateway.charged(() => gateway.chat());
      expect(adminInfo(early)["cost_nanos"]).toBe(1_350_000);
      nowMs += 60_000;
      gateway.upstream.script(answer("hi", { usage: usage(1000, 0, 0) }));
      const late = await gateway.charged(() => gateway.chat());
      expect(adminInfo(late)["cost_nanos"]).toBe(2_000_000);
      expect((await sums()).nanos).toBe(before.nanos + 3_350_000);
    });

    test("a row without a price costs the shipped list's, times its factor", async () => {
      nowMs += 60_000;
      await setCost({ model: MODEL, price: "", factor: 0.5 });
      gateway.upstream.script(answer("hi", { usage: usage(1_000_000, 0, 0) }));
      const row = await gateway.charged(() => gateway.chat());
      // gpt-4o-mini: $0.15 a million.
      expect(adminInfo(row)["cost_nanos"]).toBe(75_000_000);
    });

    test("an attempt that failed with usage costs, earns nothing, and is no call", async () => {
      nowMs += 60_000;
      await setCost({ model: MODEL, price: JSON.stringify({ in: 1, out: 1 }) });
      const before = await sums();
      gateway.upstream.script(
        refuse(500, { error: { message: "broke while answering" }, usage: usage(5000, 0, 1000) }),
      );
      expect((await gateway.chat()).status).not.toBe(200);
      const after = await until(async () => {
        const now = await sums();
        return now.nanos > before.nanos ? now : undefined;
      });
      expect(after).toEqual({ ...before, nanos: before.nanos + 6_000_000, lost: before.lost + 6_000_000 });
    });

    test("so does an answer of status 200 that holds an error and a usage", async () => {
      const before = await sums();
      const error = { message: "broke while answering", type: "server_error", code: "overloaded" };
      gateway.upstream.script(json({ error, usage: usage(5000, 0, 1000) }));
      expect((await gateway.chat()).status).not.toBe(200);
      const after = await until(async () => {
        const now = await sums();
        return now.nanos > before.nanos ? now : undefined;
      });
      expect(after).toEqual({ ...before, nanos: before.nanos + 6_000_000, lost: before.lost + 6_000_000 });
    });

    describe("streams, as they came and converted", () => {
      const CLAUDE = "claude-3-5-haiku-latest";
      /** Nanos of a token at a dollar, and at four, a million. */
      const [IN, OUT] = [1000, 4000];
      beforeAll(async () => {
        nowMs += 60_000;
        await gateway.setOption("ModelRatio", JSON.stringify({ [MODEL]: 1, [CLAUDE]: 1 }));
        const channelId = await gateway.app.createChannel({
          type: 14,
          models: CLAUDE,
          baseUrl: gateway.upstream.url,
        });
        const price = JSON.stringify({ in: 1, out: 4 });
        await setCost({ channelId, price });
        await gateway.app.deps.costs.refresh([channelId]);
        await setCost({ model: MODEL, price });
      });

      test.each([
        ["openai-chat", MODEL, "openai-chat"],
        ["openai-chat", CLAUDE, "anthropic"],
        ["anthropic", MODEL, "openai-chat"],
        ["gemini", CLAUDE, "anthropic"],
        ["openai-responses", CLAUDE, "anthropic"],
      ] as const)(
        "%s of %s: by the usage that its upstream reported; cut off after 200, by what was charged",
        async (client, model, upstream) => {
          const call = () => ask(gateway, client, model, { key: gateway.key, stream: true });
          gateway.upstream.script(
            longStream(upstream, { words: 20, per: 5, usage: { input: 100, output: 20 } }),
          );
          const whole = await gateway.charged(async () => (await call()).text());
          expect(adminInfo(whole)["cost_nanos"]).toBe(100 * IN + 20 * OUT);

          const before = await sums();
          const { steps, ...head } = longStream(upstream, { words: 20, per: 5 });
          // All of its text has come, and nothing of its end.
          const ends = upstream === "anthropic" ? 3 : 2;
          const arrived = gate();
          gateway.upstream.script({ ...head, steps: [...steps.slice(0, -ends), arrived, CUT] });
          const cut = await gateway.charged(async () => {
            const response = await call();
            expect(response.status).toBe(200);
            let text = "";
            for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
              text += part;
              if (wordsIn(text) === 20) arrived.open();
            }
          });
          expect(cut.other).toMatchObject({ end_reason: "upstream-cut" });
          expect(cut.completionTokens).toBeGreaterThanOrEqual(20);
          if (upstream === "anthropic") expect(cut.promptTokens).toBe(11);
          const nanos = cut.promptTokens * IN + cut.completionTokens * OUT;
          expect(adminInfo(cut)["cost_nanos"]).toBe(nanos);
          const after = await sums();
          expect([after.nanos, after.costCount, after.lost]).toEqual([
            before.nanos + nanos,
            before.costCount + 1,
            before.lost,
          ]);
        },
      );
    });
  });
}
