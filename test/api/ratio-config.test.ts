// The ratios that other instances read: closed by default, and read back they are the prices in force.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readSource } from "../../src/core/prices/sources/read.ts";
import { everyKind, PRICE_MAPS, putRow, rowOf } from "../../src/shared/row-maps.ts";
import type { PriceMaps } from "../../src/shared/row-maps.ts";
import { isSameRow } from "../../src/shared/price-row.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

describe.each(DATABASE_KINDS)("ratios for others on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  test("are told to nobody until the operator says so", async () => {
    const answer = await app.call<{ success: boolean; code: string }>("GET", "/api/ratio_config");
    expect([answer.status, answer.body.success, answer.body.code]).toEqual([
      403,
      false,
      "ratio_config_hidden",
    ]);
  });

  test.each([500_000, 1_000_000])(
    "read back by another instance they are the prices in force, at %p units a dollar",
    async (units) => {
      const { options } = app.deps;
      await options.set("ExposeRatioEnabled", "true");
      await options.set("QuotaPerUnit", String(units));
      const { status, text } = await app.call("GET", "/api/ratio_config");
      expect(status).toBe(200);
      const { rows, dropped } = readSource("ratio_config", text, 0);
      expect(dropped).toEqual([]);
      const maps = Object.fromEntries(PRICE_MAPS.map((key) => [key, options.get(key)])) as PriceMaps;
      for (const name of ["gpt-5", "claude-opus-5-5", "dall-e-3", "gpt-audio"])
        expect([name, rows.get(name)]).toEqual([name, withoutRules(rowOf(maps, name, units))]);
      // What is dearer above a threshold is told with it, every kind written out.
      const ours = rowOf(maps, "gemini-2.5-pro", units) ?? {};
      const theirs = rows.get("gemini-2.5-pro") ?? {};
      const { thinking: _, ...base } = everyKind(ours, "gemini-2.5-pro");
      expect(isSameRow({ ...theirs, when: undefined }, base)).toBe(true);
      expect(theirs.when?.[0]).toMatchObject({ over: 200_000, set: { in: 2.5, out: 15, cache_read: 0.25 } });
    },
  );

  test("no price is told lower than it is: what ratios cannot say is an expression, a price of seconds or pages is left out", async () => {
    const { options } = app.deps;
    await options.set("ExposeRatioEnabled", "true");
    await options.set("QuotaPerUnit", "500000");
    const maps = Object.fromEntries(
      PRICE_MAPS.map((key) => [key, structuredClone(options.get(key))]),
    ) as PriceMaps;
    putRow(maps, "drawn", { in: 0.3, out: 2.5, image_out: 30 }, 500_000);
    putRow(maps, "free-in", { in: 0, out: 2, when: [{ tier: "flex", times: 0.5 }] }, 500_000);
    putRow(maps, "thought", { in: 1, out: 2, thinking: 8 }, 500_000);
    putRow(maps, "by-second", { call: 0.1, unit: "second" }, 500_000);
    putRow(maps, "by-picture", { call: 0.04, unit: "image" }, 500_000);
    for (const key of PRICE_MAPS) await options.set(key, JSON.stringify(maps[key]));
    const { text } = await app.call("GET", "/api/ratio_config");
    const { rows, dropped } = readSource("ratio_config", text, 0);
    expect(dropped).toEqual([]);
    expect(rows.get("drawn")).toMatchObject({ in: 0.3, out: 2.5, image_out: 30 });
    expect(rows.get("free-in")).toMatchObject({ in: 0, out: 2 });
    expect(rows.get("thought")).toMatchObject({ in: 1, out: 8 });
    expect(rows.get("by-picture")).toEqual({ call: 0.04 });
    expect(rows.has("by-second")).toBe(false);
  });

  function withoutRules(row: ReturnType<typeof rowOf>) {
    const { when: _, tools: __, unit: ___, ...rest } = row ?? {};
    return rest;
  }
});
