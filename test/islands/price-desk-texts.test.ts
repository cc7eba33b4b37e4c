// What cells and texts mean for prices: edits of one row in dollars and in ratios, batches, imports and exports.
import { describe, expect, test } from "bun:test";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import type { Desk } from "../../islands/ui/price-sheet/desk.ts";
import { batchEdits } from "../../islands/ui/price-sheet/models/batch-edits.ts";
import type { BatchMode } from "../../islands/ui/price-sheet/models/batch-edits.ts";
import { editedRow, ratioEdits, scaledRow } from "../../islands/ui/price-sheet/models/cells.ts";
import { modelsCsv, modelsJson } from "../../islands/ui/price-sheet/models/export.ts";
import { readImport } from "../../islands/ui/price-sheet/models/import-text.ts";
import type { PriceRow } from "../../src/shared/price-row.ts";

const WHEN = [{ over: 200_000, set: { in: 4, out: 12 } }];
const TEXTS: Record<string, string> = {
  ModelRatio: '{"plain":1,"free":0}',
  CompletionRatio: '{"plain":3}',
  ModelPrice: '{"song":0.1}',
  PriceRules: JSON.stringify({ plain: { when: WHEN }, free: { out: 8 }, song: { unit: "second" } }),
  QuotaPerUnit: "500000",
};

function opened(): Desk {
  const desk = createDesk();
  desk.open({
    revision: 1,
    texts: TEXTS,
    served: [],
    refused: {},
    groups: [],
    makers: [],
    isAutoDefault: false,
  });
  return desk;
}

const cells = (values: Record<string, number | string | null>) =>
  Object.entries(values).map(([columnId, value]) => ({ rowKey: "m", columnId, value }));

describe("cells in dollars", () => {
  const TOKENS: PriceRow = { in: 2, out: 6, cache_read: 0.2, when: WHEN };
  const CALL: PriceRow = { call: 0.1, unit: "second" };
  const KEPT = { when: WHEN };
  test.each<
    [string, PriceRow | undefined, Record<string, number | string | null>, PriceRow | undefined, string[]]
  >([
    ["a new price", undefined, { in: 1, out: 3 }, { in: 1, out: 3 }, []],
    ["one of several", TOKENS, { out: 8 }, { ...TOKENS, out: 8 }, []],
    ["a kind that goes", TOKENS, { cache_read: null }, { in: 2, out: 6, ...KEPT }, []],
    ["output without input", undefined, { out: 3 }, undefined, ["out inputFirst"]],
    ["input that goes", TOKENS, { in: null }, TOKENS, ["in inputNeeded"]],
    ["a free input", TOKENS, { in: 0 }, { ...TOKENS, in: 0 }, []],
    ["a price per call", TOKENS, { call: 0.2 }, { call: 0.2, ...KEPT }, []],
    [
      "a block that clears tokens and sets the call",
      TOKENS,
      { in: null, out: null, call: 0.2 },
      { call: 0.2, ...KEPT },
      [],
    ],
    ["both at once", TOKENS, { in: 3, call: 0.2 }, { ...TOKENS, in: 3 }, ["call both"]],
    ["tokens of a model billed by the call", CALL, { in: 3, out: 4 }, { in: 3, out: 4 }, []],
    ["output of a model billed by the call", CALL, { out: 4 }, undefined, ["out inputFirst"]],
    ["a call's price that goes", CALL, { call: null }, undefined, ["call callNeeded"]],
    ["another call's price", CALL, { call: 0.3 }, { call: 0.3, unit: "second" }, []],
    ["billing without a price for it", TOKENS, { billing: "call" }, undefined, ["billing typeCall"]],
    ["billing by tokens without one", CALL, { billing: "tokens" }, undefined, ["billing typeInput"]],
    ["billing as it is", TOKENS, { billing: "tokens" }, TOKENS, []],
    [
      "billing against the prices beside it",
      TOKENS,
      { billing: "call", in: 3 },
      { ...TOKENS, in: 3 },
      ["billing both"],
    ],
  ])("%s", (_, row, values, after, refused) => {
    const answer = editedRow({ row, stored: undefined, cells: cells(values) });
    expect(answer.refused.map(({ columnId, reason }) => `${columnId} ${reason}`)).toEqual(refused);
    expect(answer.row).toEqual(after);
  });

  test("billing the other way and back finds what is in force", () => {
    const back = editedRow({ row: CALL, stored: TOKENS, cells: cells({ billing: "tokens" }) });
    expect(back).toEqual({ row: TOKENS, refused: [] });
    const forth = editedRow({ row: TOKENS, stored: CALL, cells: cells({ billing: "call" }) });
    expect(forth).toEqual({ row: { ...CALL, when: WHEN }, refused: [] });
  });

  test("a factor takes prices of rules along, tools and factors of rules not", () => {
    const row: PriceRow = {
      in: 1,
      out: 3,
      tools: { web_search: 10 },
      when: [
        { over: 10, set: { in: 2 } },
        { tier: "priority", times: 2 },
      ],
    };
    expect(scaledRow(row, 1.1)).toEqual({
      in: 1.1,
      out: 3.3,
      tools: { web_search: 10 },
      when: [
        { over: 10, set: { in: 2.2 } },
        { tier: "priority", times: 2 },
      ],
    });
  });
});

describe("cells as ratios", () => {
  const { valueOf, storedValueOf } = opened();
  const edits = (model: string, values: Record<string, number | string | null>) => {
    const answer = ratioEdits({ model, valueOf, storedValueOf, cells: cells(values) });
    return [
      answer.edits.map(({ key, after }) => `${key}=${JSON.stringify(after)}`).join(" "),
      answer.refused.map(({ columnId, reason }) => `${columnId} ${reason}`).join(),
    ];
  };
  test.each<[string, Record<string, number | string | null>, string, string]>([
    ["plain", { in: 2 }, "ModelRatio=2", ""],
    ["plain", { out: 4, cache_read: 0.5 }, "CompletionRatio=4 CacheRatio=0.5", ""],
    ["plain", { out: null }, "CompletionRatio=null", ""],
    ["plain", { in: null }, "", "in inputNeeded"],
    ["plain", { call: 0.2 }, "ModelPrice=0.2", ""],
    ["plain", { billing: "call" }, "", "billing typeCall"],
    ["nobody", { out: 4 }, "", "out inputFirst"],
    ["nobody", { in: 1, out: 4 }, "ModelRatio=1 CompletionRatio=4", ""],
    ["free", { out: 4 }, "", "out freeInput"],
    // The price in dollars would win over the ratio.
    ["free", { in: 1, out: 4 }, "ModelRatio=1 CompletionRatio=4 PriceRules=null", ""],
    ["song", { in: 1 }, "ModelRatio=1 ModelPrice=null", ""],
    ["song", { call: null }, "", "call callNeeded"],
    ["song", { billing: "tokens" }, "", "billing typeInput"],
  ])("%s %j", (model, values, written, refused) => {
    expect(edits(model, values)).toEqual([written, refused]);
  });
});

describe("batches", () => {
  const rowsAfter = (mode: BatchMode, values: number[]) => {
    const desk = opened();
    desk.write(batchEdits(desk, ["plain", "song", "new"], mode, values), "batch");
    return Object.fromEntries(["plain", "song", "new"].map((name) => [name, desk.rowOf(name)]));
  };
  test("prices in dollars make every model billed by tokens, other prices stay", () => {
    expect(rowsAfter("tokens", [5, 7])).toEqual({
      plain: { in: 5, out: 7, when: WHEN },
      song: { in: 5, out: 7 },
      new: { in: 5, out: 7 },
    });
  });
  test("a factor leaves models without a price alone", () => {
    expect(rowsAfter("factor", [2])).toEqual({
      plain: { in: 4, out: 12, when: [{ over: 200_000, set: { in: 8, out: 24 } }] },
      song: { call: 0.2, unit: "second" },
      new: undefined,
    });
  });
  test("both ratios, the ratio, the completion ratio and the price per call", () => {
    expect(rowsAfter("both", [2, 5]).song).toMatchObject({ in: 4, out: 20 });
    expect(rowsAfter("ratio", [2]).plain).toMatchObject({ in: 4, out: 12 });
    expect(rowsAfter("completion", [5])).toMatchObject({
      plain: { in: 2, out: 10 },
      song: { call: 0.1 },
      new: undefined,
    });
    expect(rowsAfter("call", [0.5])).toEqual({
      plain: { call: 0.5, when: WHEN },
      song: { call: 0.5, unit: "second" },
      new: { call: 0.5 },
    });
  });
});

describe("imports", () => {
  const read = (text: string) => {
    const desk = opened();
    const { edits, problems, isSingle, isUnknown } = readImport(desk, text, "ModelRatio");
    desk.write(edits, "import");
    return { desk, isSingle, isUnknown, problems: problems.map(({ place, reason }) => `${place} ${reason}`) };
  };

  test("the maps as JSON, as the old panels had them; bad entries are named, the others stand", () => {
    const { desk, problems } = read(
      '{"ModelRatio":{"plain":2,"bad":-1,"__proto__":1,"text":"1"},"CompletionRatio":{"plain":4},"PriceRules":{"plain":{"nonsense":1}},"Other":{"x":1}}',
    );
    expect(desk.rowOf("plain")).toEqual({ in: 4, out: 16, when: WHEN });
    expect(problems).toEqual(["bad number", "__proto__ name", "text number", "plain row"]);
  });

  test("one map of plain numbers asks which one it is", () => {
    const { desk, isSingle } = read('{"plain":2}');
    expect([isSingle, desk.valueOf("ModelRatio", "plain")]).toEqual([true, 2]);
  });

  test("rows in dollars as JSON, as exported configuration has them", () => {
    const { desk, problems } = read(
      '{"prices":{"new":{"in":1,"out":2,"when":[{"over":5,"times":2}]},"half":{"out":2}}}',
    );
    expect(desk.rowOf("new")).toEqual({ in: 1, out: 2, when: [{ over: 5, times: 2 }] });
    expect(problems).toEqual(["half row"]);
  });

  test("lines of a spreadsheet, with and without a head; what is empty stays", () => {
    const plain = read("plain\t$3\t\nnew\t1\t2\t0,5\nbad\tx\t1");
    expect(plain.desk.rowOf("plain")).toEqual({ in: 3, out: 6, when: WHEN });
    expect(plain.desk.rowOf("new")).toEqual({ in: 1, out: 2, cache_read: 0.5 });
    expect(plain.problems).toEqual(["bad number"]);
    const headed = read("Output\tModel\tNotes\tInput\n9\tnew\tnice\t3\n\t\t\t\n1\t\t\t1");
    expect(headed.desk.rowOf("new")).toEqual({ in: 3, out: 9 });
    expect(headed.problems).toEqual(["4 line"]);
    expect(read("模型\t每次\nplain\t0.3").desk.rowOf("plain")).toEqual({ call: 0.3, when: WHEN });
  });

  test("a text that is nothing is told as such; an empty one is nothing", () => {
    expect(read("{broken").isUnknown).toBe(true);
    expect(read("[1,2]").isUnknown).toBe(true);
    expect(read("hello").isUnknown).toBe(true);
    expect(read("  ").isUnknown).toBe(false);
  });

  test("what is exported is read back without a change", () => {
    const desk = opened();
    const names = ["plain", "song", "free"];
    for (const text of [modelsCsv({ desk, names }), modelsJson(desk)]) {
      const { edits, problems } = readImport(desk, text, "ModelRatio");
      expect(problems).toEqual([]);
      desk.write(edits, "again");
      expect(desk.changes.value).toEqual([]);
    }
  });
});
