// The price snapshot follows the options.
import { expect, test } from "bun:test";
import type { OptionKey } from "../../../src/core/options/definitions.ts";
import { createPriceBook } from "../../../src/core/prices/price-book.ts";
import { costOf } from "../../../src/core/prices/prices.ts";
import { explainStored } from "../../../src/shared/cost.ts";
import { usage } from "./support.ts";

function bookOf(values: Record<string, unknown>) {
  const listeners: ((key: OptionKey) => void)[] = [];
  const book = createPriceBook({
    get: (key) => (values[key] ?? (key === "QuotaPerUnit" ? 500_000 : {})) as never,
    onChange: (listener) => void listeners.push(listener),
  });
  return {
    book,
    set(key: OptionKey, value: unknown) {
      values[key] = value;
      for (const listener of listeners) listener(key);
    },
  };
}

test("a changed ratio is in force with the next look, and other options do not rebuild anything", () => {
  const { book, set } = bookOf({ ModelRatio: { m: 1 }, GroupRatio: { vip: 0.5 } });
  expect(book.pricing("m")?.modelRatio).toBe(1);
  const tables = book.tables();
  set("Notice", "hello");
  expect(book.tables()).toBe(tables);
  set("ModelRatio", { m: 3 });
  expect(book.pricing("m")?.modelRatio).toBe(3);
});

test("a model without price stays without one until it gets one", () => {
  const { book, set } = bookOf({ ModelRatio: {} });
  expect(book.pricing("new")).toBeUndefined();
  set("ModelPrice", { new: 0.02 });
  expect(book.pricing("new")?.callPrice).toBe(0.02);
});

test("groups without a ratio cost 1, and names of Object's own are no groups", () => {
  const { book } = bookOf({ GroupRatio: { vip: 0.5 } });
  const ratios = ["vip", "other", "constructor"].map((group) => book.groupRatio(group, "default"));
  expect(ratios).toEqual([0.5, 1, 1]);
});

test("names that clients invent do not grow the cache without bound", () => {
  const { book } = bookOf({ ModelRatio: { m: 1 } });
  for (let i = 0; i < 20_000; i++) book.pricing(`invented-${i}`);
  expect(book.pricing("m")?.modelRatio).toBe(1);
});

test("a frozen price keeps everything that a charge is made of, whatever is changed afterwards", () => {
  const { book, set } = bookOf({ ModelRatio: { "gpt-4o": 1 }, GroupRatio: { vip: 0.5 } });
  const before = book.callPrice("gpt-4o", "vip", "vip");
  if (!before) throw new Error("no price");
  expect(before).toMatchObject({ groupRatio: 0.5, quotaPerUnit: 500_000 });
  expect(before.tools).toEqual({ webSearch: { low: 30, medium: 35, high: 50 }, fileSearch: 2.5 });
  const charge = () => costOf(before, usage({ fresh: 100 }, {}, { webSearch: 2 })).quota;
  const quota = charge();
  set("QuotaPerUnit", 1000);
  set("ModelRatio", { "gpt-4o": 7 });
  set("GroupRatio", { vip: 3 });
  expect(charge()).toBe(quota);
  expect(book.callPrice("gpt-4o", "vip", "vip")).toMatchObject({ groupRatio: 3, quotaPerUnit: 1000 });
});

test("a revision names the tables: equal texts on two nodes are one revision, every change makes another", () => {
  const one = bookOf({ ModelRatio: { a: 1, b: 2 } });
  const other = bookOf({ ModelRatio: { b: 2, a: 1 } });
  const revisionOf = ({ book }: ReturnType<typeof bookOf>) =>
    book.callPrice("a", "default", "default")?.revision;
  const first = revisionOf(one);
  expect(first).toMatch(/^[0-9a-f]{12}$/);
  expect(revisionOf(other)).toBe(first);
  one.set("ModelRatio", { a: 1, b: 3 });
  expect(revisionOf(one)).not.toBe(first);
  one.set("ModelRatio", { a: 1, b: 2 });
  expect(revisionOf(one)).toBe(first);
});

test("a charge stores what a replay needs: rates by their ratios, units per dollar, size, tier and revision", () => {
  const { book } = bookOf({ ModelRatio: { m: 2 }, QuotaPerUnit: 1000 });
  const price = book.callPrice("m", "default", "default");
  if (!price) throw new Error("no price");
  const charge = costOf(price, usage({ fresh: 10 }, { text: 5 }, { webSearch: 1 }), {
    searchSize: "high",
    servedTier: "default",
  });
  expect(charge.other["cost"]).toMatchObject({
    fresh: 10,
    output: 5,
    modelRatio: 2,
    quotaPerUnit: 1000,
    webSearchPrice: 30,
    search_size: "high",
    tier: "default",
    revision: price.revision,
  });
  expect(explainStored(charge.other)?.quota).toBe(charge.quota);
});
