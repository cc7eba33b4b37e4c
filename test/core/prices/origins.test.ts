// What a fresh site begins with, what a release may add to one that runs, and that neither ever changes a price in force.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq, inArray, like } from "drizzle-orm";
import type { OptionKey } from "../../../src/core/options/definitions.ts";
import { originRows, settleOrigins, shippedRows } from "../../../src/core/prices/origins.ts";
import { mergePrices } from "../../../src/core/prices/merge.ts";
import { pricedNames, rowOf, PRICE_MAPS } from "../../../src/shared/row-maps.ts";
import type { PriceMaps } from "../../../src/shared/row-maps.ts";
import { shippedPrices, shippedVersion } from "../../../src/core/prices/shipped.ts";
import { isSameRow } from "../../../src/shared/price-row.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

const QPU = 500_000;
const SEEN = "internal:shipped_prices";

describe.each(DATABASE_KINDS)("prices of a site on %s", (database) => {
  // One site for all: each test but the first puts it where it begins.
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  const mapsOf = ({ deps }: TestApp) =>
    Object.fromEntries(PRICE_MAPS.map((key) => [key, deps.options.get(key)])) as PriceMaps;
  const inForce = () => {
    const maps = mapsOf(app);
    return new Map(pricedNames(maps).map((name) => [name, rowOf(maps, name, QPU) ?? {}]));
  };

  /** As if the database came from a site that has never seen this table: options as given, nothing else. */
  async function before(texts: Partial<Record<OptionKey, string>>, seen?: string): Promise<void> {
    const { db } = app.deps;
    const { options, priceOrigins } = db.t;
    await db.orm.delete(options).where(inArray(options.key, [...PRICE_MAPS, "PriceAddNew", "QuotaPerUnit"]));
    await db.orm.delete(options).where(like(options.key, SEEN));
    if (seen === undefined) await db.orm.delete(priceOrigins);
    else await db.orm.insert(options).values({ key: SEEN, value: seen });
    for (const [key, value] of Object.entries(texts))
      await db.orm
        .insert(options)
        .values({ key, value })
        .onConflictDoUpdate({ target: options.key, set: { value } });
    await app.deps.options.reload();
  }
  const start = () => settleOrigins(app.deps);
  const baseRows = async () =>
    new Map([...(await originRows(app.deps))].map(([name, { row }]) => [name, row]));

  test("a fresh site has the whole table in force, and the reference's rows where the table is silent", async () => {
    const ours = inForce();
    for (const [name, row] of shippedRows(QPU))
      expect([name, isSameRow(ours.get(name), row)]).toEqual([name, true]);
    expect(ours.get("hunyuan")).toEqual({ in: 14.286, out: 14.286 });
    expect(ours.get("mj_imagine")).toEqual({ call: 0.1 });
    const origins = await originRows(app.deps);
    expect([...origins.keys()].toSorted()).toEqual([...ours.keys()].toSorted());
    for (const [name, { row }] of origins)
      expect([name, isSameRow(row, ours.get(name))]).toEqual([name, true]);
    const { options } = app.deps.db.t;
    const [seen] = await app.deps.db.orm.select().from(options).where(eq(options.key, SEEN));
    expect(seen?.value).toBe(shippedVersion());
  });

  test("a second start, and one of another node at the same moment, write nothing", async () => {
    await before({});
    await start();
    await app.deps.options.set("ModelRatio", '{"gpt-5.4": 9}');
    await Promise.all([start(), start()]);
    expect(app.deps.options.get("ModelRatio")).toEqual({ "gpt-5.4": 9 });
  });

  test("two nodes that start first on one database write the table once", async () => {
    await before({});
    await Promise.all([start(), start(), start()]);
    expect((await originRows(app.deps)).size).toBe(inForce().size);
  });

  test("a site with prices of its own keeps every one of them, and gets the models that it lacks", async () => {
    await before({
      ModelRatio: '{"gpt-5.4": 9, "gpt-4o": 1.25, "mine": 1}',
      CompletionRatio: '{"gpt-5.4": 2, "gpt-4o": 9}',
      ModelPrice: '{"gpt-5": 0.5}',
    });
    await start();
    const ours = inForce();
    expect(ours.get("gpt-5.4")).toEqual({ in: 18, out: 36 });
    expect(ours.get("gpt-5")).toEqual({ call: 0.5 });
    expect(ours.get("mine")).toEqual({ in: 2, out: 2 });
    expect(ours.get("claude-opus-5-5")).toMatchObject({ in: 4, out: 20 });
    // The family's rule charged 4 whatever its table said: that is what goes on.
    expect(ours.get("gpt-4o")).toMatchObject({ in: 2.5, out: 10 });
    const lines = mergePrices({
      base: await baseRows(),
      ours,
      theirs: shippedRows(QPU),
      isServed: () => true,
    });
    expect(lines.find(({ name }) => name === "gpt-5.4")?.case).toBe("newer");
    expect(lines.filter(({ case: kind }) => kind === "new")).toEqual([]);
  });

  test("a later table adds only names that the site has never had, and proposes the rest", async () => {
    const { db } = app.deps;
    await before({});
    await start();
    // Of three models that the next table has: one was never there, one was taken away, one was made the operator's own.
    await app.deps.options.set("ModelRatio", '{"claude-opus-5-5": 50}');
    await db.orm.delete(db.t.priceOrigins).where(eq(db.t.priceOrigins.name, "gpt-5.4"));
    const maps = mapsOf(app);
    await before(
      Object.fromEntries(PRICE_MAPS.map((key) => [key, JSON.stringify(maps[key])])),
      "0.1.0+older",
    );
    await Promise.all([start(), start()]);
    const ours = inForce();
    expect(ours.get("gpt-5.4")).toMatchObject({ in: 2.5, out: 15 });
    expect(ours.has("gpt-5")).toBe(false);
    expect(ours.get("claude-opus-5-5")?.in).toBe(100);
    const lines = mergePrices({
      base: await baseRows(),
      ours,
      theirs: shippedRows(QPU),
      isServed: () => true,
    });
    const caseOf = (wanted: string) => lines.find(({ name }) => name === wanted)?.case;
    expect([caseOf("gpt-5"), caseOf("claude-opus-5-5"), caseOf("gpt-5.4")]).toEqual([
      "removed",
      "own",
      undefined,
    ]);
  });

  test("with PriceAddNew off a release adds nothing", async () => {
    await before({ ModelRatio: '{"mine": 1}', ModelPrice: "{}", PriceAddNew: "false" });
    await start();
    expect([...inForce().keys()]).toEqual(["mine"]);
    await before({ ModelRatio: '{"mine": 1}', ModelPrice: "{}", PriceAddNew: "false" }, "0.1.0+older");
    await start();
    expect([...inForce().keys()]).toEqual(["mine"]);
  });

  test("units per dollar of an imported site: new models are added at their price in dollars", async () => {
    await before({ ModelRatio: '{"mine": 1}', QuotaPerUnit: "1000000" });
    await start();
    expect(app.deps.options.get("ModelRatio")["gpt-5.4"]).toBe(2.5);
    expect(shippedPrices().rows.get("gpt-5.4")?.in).toBe(2.5);
  });
});
