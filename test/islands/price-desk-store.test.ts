// The store of the price desk: what counts as a change, the way back step by step, and prices in dollars over maps of ratios.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import type { Desk } from "../../islands/ui/price-sheet/desk.ts";
import type { DeskPrices } from "../../src/shared/price-desk.ts";
import { PRICE_MAPS } from "../../src/shared/row-maps.ts";

type Texts = Record<string, string>;

const TEXTS: Texts = {
  ModelRatio: '{"gpt-4o":1.25,"plain":1,"third":0.7}',
  CompletionRatio: '{"plain":3,"third":1.3333333333333333}',
  CacheRatio: '{"plain":0.1}',
  ModelPrice: '{"song":0.1}',
  GroupRatio: '{"default":1}',
  AutoGroups: '["default"]',
  QuotaPerUnit: "500000",
};

function pricesOf(texts: Texts = TEXTS, revision = 1): DeskPrices {
  return { revision, texts, served: [], refused: {}, groups: [], makers: [], isAutoDefault: false };
}

function opened(texts: Texts = TEXTS): Desk {
  const desk = createDesk();
  desk.open(pricesOf(texts));
  return desk;
}

const changesOf = (desk: Desk) =>
  desk.changes.value
    .toSorted((a, b) => (`${a.key} ${a.name}` < `${b.key} ${b.name}` ? -1 : 1))
    .map(({ key, name, before, after }) => [key, name, before, after]);

test("a draft that is opened keeps whose its prices are", () => {
  const desk = opened();
  const change = { key: "ModelRatio", name: "plain", before: 1, after: 2, taken: "shipped@1#abc" };
  const draft = { id: 1, version: 1, title: "", note: "", announce: false, changes: [change] };
  desk.openDraft(draft, "opened");
  expect(desk.changes.value).toEqual([change]);
});

describe("changes", () => {
  test("are kept with what stood there; what is put back is none", () => {
    const desk = opened();
    desk.write([{ key: "ModelRatio", name: "plain", after: 2 }], "first");
    desk.write([{ key: "GroupRatio", name: "vip", after: 0.5 }], "second");
    expect(changesOf(desk)).toEqual([
      ["GroupRatio", "vip", null, 0.5],
      ["ModelRatio", "plain", 1, 2],
    ]);
    desk.write([{ key: "ModelRatio", name: "plain", after: 1 }], "back");
    desk.write([{ key: "GroupRatio", name: "vip", after: null }], "gone");
    expect(changesOf(desk)).toEqual([]);
  });

  test("that were applied meanwhile are none after a reload, the others stay with what stands there now", () => {
    const desk = opened();
    desk.write(
      [
        { key: "ModelRatio", name: "plain", after: 2 },
        { key: "ModelRatio", name: "gpt-4o", after: 5 },
      ],
      "both",
    );
    desk.open(pricesOf({ ...TEXTS, ModelRatio: '{"gpt-4o":3,"plain":2}' }, 2));
    expect(changesOf(desk).map(([, name, , after]) => [name, after])).toEqual([["gpt-4o", 5]]);
    expect(desk.prices.value?.revision).toBe(2);
    expect(desk.valueOf("ModelRatio", "third")).toBeNull();
  });

  test("an option that is one value has the empty name, whatever it looks like", () => {
    const desk = opened();
    expect([desk.valueOf("AutoGroups", ""), desk.valueOf("QuotaPerUnit", "")]).toEqual([
      '["default"]',
      "500000",
    ]);
  });

  test("names with the changes: new ones in, removed ones out", () => {
    const desk = opened();
    desk.write(
      [
        { key: "GroupRatio", name: "vip", after: 2 },
        { key: "GroupRatio", name: "default", after: null },
      ],
      "groups",
    );
    expect(desk.namesOf("GroupRatio")).toEqual(["vip"]);
  });

  test("a text that cannot be read holds nothing, and nothing breaks", () => {
    const desk = opened({ ...TEXTS, ModelRatio: "{broken", CacheRatio: "[1]" });
    expect([desk.valueOf("ModelRatio", "plain"), desk.valueOf("CacheRatio", "0")]).toEqual([null, null]);
  });
});

describe("the way back", () => {
  test("takes step after step back and does them again; a new step forgets what was undone", () => {
    const desk = opened();
    desk.write([{ key: "ModelRatio", name: "plain", after: 2 }], "two");
    desk.write([{ key: "ModelRatio", name: "plain", after: 3 }], "three");
    expect(desk.undoable.value).toBe("three");
    desk.undo();
    expect([desk.valueOf("ModelRatio", "plain"), desk.undoable.value, desk.redoable.value]).toEqual([
      2,
      "two",
      "three",
    ]);
    desk.undo();
    expect([desk.valueOf("ModelRatio", "plain"), desk.undoable.value]).toEqual([1, undefined]);
    desk.undo();
    desk.redo();
    desk.redo();
    desk.redo();
    expect([desk.valueOf("ModelRatio", "plain"), desk.redoable.value]).toEqual([3, undefined]);
    desk.undo();
    desk.write([{ key: "ModelRatio", name: "plain", after: 7 }], "seven");
    expect(desk.redoable.value).toBeUndefined();
    desk.discard("all");
    expect([changesOf(desk).length, desk.undoable.value]).toEqual([0, "all"]);
    desk.undo();
    expect(desk.valueOf("ModelRatio", "plain")).toBe(7);
  });
});

describe("rows in dollars", () => {
  test("are what the maps mean", () => {
    const desk = opened();
    expect(desk.rowOf("plain")).toEqual({ in: 2, out: 6, cache_read: 0.2 });
    expect(desk.rowOf("song")).toEqual({ call: 0.1 });
    // Nobody set its output: its name says so.
    expect(desk.rowOf("gpt-4o")).toEqual({ in: 2.5, out: 10 });
    expect(desk.rowOf("nobody")).toBeUndefined();
  });

  test("one price changes that entry alone; derived output stays derived", () => {
    const desk = opened();
    desk.writeRows(new Map([["gpt-4o", { in: 2.5, out: 10, cache_read: 1.25 }]]), "cache");
    expect(changesOf(desk)).toEqual([["CacheRatio", "gpt-4o", null, 0.5]]);
  });

  test("what nobody touched keeps the very number that is stored", () => {
    const desk = opened();
    const row = desk.rowOf("third");
    desk.writeRows(new Map([["third", { ...row, cache_read: 0.14 }]]), "cache");
    expect(changesOf(desk)).toEqual([["CacheRatio", "third", null, 0.1]]);
  });

  test("a new input price leaves other prices where they are", () => {
    const desk = opened();
    desk.writeRows(new Map([["gpt-4o", { in: 5, out: 10 }]]), "input");
    expect(desk.rowOf("gpt-4o")).toEqual({ in: 5, out: 10 });
    expect(changesOf(desk)).toEqual([
      ["CompletionRatio", "gpt-4o", null, 2],
      ["ModelRatio", "gpt-4o", 1.25, 2.5],
    ]);
  });

  test("free input keeps an output price; a price goes from every map at once", () => {
    const desk = opened();
    desk.writeRows(new Map([["plain", { in: 0, out: 6 }]]), "free");
    expect(desk.rowOf("plain")).toEqual({ in: 0, out: 6 });
    desk.writeRows(new Map([["plain", undefined]]), "gone");
    expect(desk.rowOf("plain")).toBeUndefined();
    expect(changesOf(desk).map(([key]) => key)).toEqual(["CacheRatio", "CompletionRatio", "ModelRatio"]);
    expect(desk.storedRowOf("plain")).toEqual({ in: 2, out: 6, cache_read: 0.2 });
  });

  test("a look ahead shows a row after edits that are not made", () => {
    const desk = opened();
    const edits = [{ key: "ModelRatio", name: "plain", after: 2 }];
    expect(desk.rowAfter("plain", edits)).toEqual({ in: 4, out: 12, cache_read: 0.4 });
    expect(desk.changes.value).toEqual([]);
  });

  test("any row comes back from the maps as it was written, and writing it again changes nothing", () => {
    const price = fc.integer({ min: 1, max: 100_000_000 }).map((units) => units / 10_000);
    const row = fc.record({ in: price, out: price }, { requiredKeys: ["in", "out"] });
    fc.assert(
      fc.property(row, fc.option(price, { nil: undefined }), (written, cached) => {
        const desk = opened();
        const whole = { ...written, ...(cached !== undefined && { cache_read: cached }) };
        desk.writeRows(new Map([["model", whole]]), "write");
        expect(desk.rowOf("model")).toEqual(whole);
        const texts = { ...TEXTS };
        for (const key of PRICE_MAPS)
          texts[key] = JSON.stringify(
            Object.fromEntries(desk.namesOf(key).map((name) => [name, desk.valueOf(key, name)])),
          );
        desk.open(pricesOf(texts));
        expect(desk.changes.value).toEqual([]);
        desk.writeRows(new Map([["model", whole]]), "again");
        expect(desk.changes.value).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
