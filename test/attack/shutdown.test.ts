// B5 from outside: a polite stop that streams outlast settles each for what it delivered, says so, and exits with 0.
// Refuses to wait half a minute: the operator's DRAIN_SECONDS is two.
import { expect, test } from "bun:test";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { callPlan, DIALECTS, INPUT_PRICE, OUTPUT_PRICE, startSite } from "./site.ts";

const EDGE_TOKENS = 8;
const DRAIN_SECONDS = 2;
const STOP_LIMIT_MS = 10_000;

test.concurrent.each(DATABASE_KINDS)(
  "on %s every open stream is settled for what it delivered, told in its dialect, and the exit is clean",
  async (kind) => {
    const site = await startSite({ kind, env: { DRAIN_SECONDS: String(DRAIN_SECONDS) } });
    const person = await site.person(100_000_000);
    const key = await person.key();
    const ids = new Map<string, string>();
    const open = DIALECTS.map((dialect) =>
      callPlan(
        site.server.url,
        key,
        { id: `endless-${dialect}`, words: 100_000, per: 5, paceMs: 20 },
        {
          stream: true,
          dialect,
          fields: dialect === "anthropic" ? { max_tokens: 100_000 } : {},
          onHead: (id) => ids.set(dialect, id),
        },
      ),
    );
    const brief = callPlan(site.server.url, key, { id: "brief", words: 7, firstMs: 1200 });
    const leaver = await site.person(1_000_000);
    const leaverKey = await leaver.key();
    const asked = site.until(() => site.upstream.of("left")[0]);
    await callPlan(site.server.url, leaverKey, { id: "left", firstMs: 60_000 }, { leaveOnce: asked });
    await site.until(() =>
      DIALECTS.every((dialect) => (site.upstream.of(`endless-${dialect}`)[0]?.given ?? 0) > 20),
    );
    const beganMs = performance.now();
    await site.server.stop();
    const tookMs = performance.now() - beganMs;
    expect(await site.server.exited()).toBe(0);
    expect(tookMs).toBeLessThan(STOP_LIMIT_MS);
    // What ends within the drain ends as ever.
    expect(await brief).toMatchObject({ status: 200, words: 7 });
    const rows = await site.books.log(2);
    for (const [index, dialect] of DIALECTS.entries()) {
      const seen = await open[index];
      const row = rows.find(({ requestId }) => requestId === ids.get(dialect));
      expect([dialect, row !== undefined]).toEqual([dialect, true]);
      // From the signal on it went on for the drain's time.
      expect(seen?.words).toBeGreaterThan(100);
      expect(row?.output).toBeGreaterThanOrEqual((seen?.words ?? 0) - EDGE_TOKENS);
      expect(row?.output).toBeLessThanOrEqual(
        (site.upstream.of(`endless-${dialect}`)[0]?.given ?? 0) + EDGE_TOKENS,
      );
      expect(row?.quota).toBe((row?.input ?? 0) * INPUT_PRICE + (row?.output ?? 0) * OUTPUT_PRICE);
      expect([dialect, /error|response\.failed/.test(seen?.text ?? "")]).toEqual([dialect, true]);
    }
    const abandoned = rows.find(({ userId }) => userId === leaver.id);
    expect(abandoned?.input).toBeGreaterThan(0);
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.remove();
  },
  60_000,
);
