// The price snapshot follows the options.
import { expect, test } from "bun:test";
import type { OptionKey } from "../../src/core/option-definitions.ts";
import { createPriceBook } from "../../src/core/price-book.ts";

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
  expect([book.groupRatio("vip"), book.groupRatio("other"), book.groupRatio("constructor")]).toEqual([
    0.5, 1, 1,
  ]);
});

test("names that clients invent do not grow the cache without bound", () => {
  const { book } = bookOf({ ModelRatio: { m: 1 } });
  for (let i = 0; i < 20_000; i++) book.pricing(`invented-${i}`);
  expect(book.pricing("m")?.modelRatio).toBe(1);
});
