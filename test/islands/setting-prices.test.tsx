// The price panels over the texts of their options: dollars and ratios in step, thousands of models, batches, the reset.
import { describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { useState } from "react";
import type { OptionRow } from "../../islands/screens/setting/editor-props.ts";
import {
  batchProblem,
  cellsAfter,
  changedTexts,
  isPriced,
  PRICE_KEYS,
  readTables,
} from "../../islands/screens/setting/editors/price-tables.ts";
import PricesPanel from "../../islands/screens/setting/editors/prices.tsx";
import { optionDefinitions } from "../../src/core/options/definitions.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { renderPart, settle } from "./render.tsx";

type Texts = Record<string, string>;

const START: Texts = {
  ModelPrice: '{"mj_imagine":0.1}',
  ModelRatio: '{"gpt-4o":1.25,"o3":5}',
  CompletionRatio: '{"gpt-4o":4}',
  CacheRatio: '{"gpt-4o":0.5}',
  CreateCacheRatio: "{}",
  ImageRatio: "{}",
};

/** What would be saved: only what was changed. */
let changed: Texts = {};
let refreshed = 0;

function Host({ start, isLong }: { start: Texts; isLong?: boolean }) {
  const [values, setValues] = useState(start);
  // Only what the panel reads.
  const rows = PRICE_KEYS.map((key) => ({
    key,
    kind: "number_map",
    group: "prices",
    value: start[key] ?? "",
    default: '{"shipped":1}',
    secret: false,
    changed: true,
    ...(isLong ? { isLong } : {}),
  })) as OptionRow[];
  return (
    <PricesPanel
      rows={rows}
      value={(key) => values[key] ?? ""}
      onChange={(key, text) => {
        changed[key] = text;
        setValues((before) => ({ ...before, [key]: text }));
      }}
      failureOf={() => undefined}
      refresh={() => {
        refreshed += 1;
        return Promise.resolve();
      }}
    />
  );
}

const open = (start: Texts = START) => {
  changed = {};
  return renderPart(<Host start={start} />);
};
const saved = (key: string): unknown => JSON.parse(changed[key] ?? "null");
const cell = (name: string) => screen.getByLabelText<HTMLInputElement>(name);
const isTaken = (key: OptionKey) => optionDefinitions[key].kind.parse(changed[key] ?? "");
const models = () =>
  within(screen.getByRole("list", { name: "Prices of models" }))
    .getAllByRole("listitem")
    .map((row) => row.querySelector(".mono")?.textContent);

async function type(user: ReturnType<typeof open>["user"], name: string, text: string): Promise<void> {
  await user.clear(cell(name));
  if (text !== "") await user.type(cell(name), text);
}

describe("in dollars", () => {
  test("prices are what the ratios mean, and a new one changes that model in that map alone", async () => {
    const { user } = open();
    expect(cell("Input / 1M of gpt-4o").value).toBe("2.5");
    expect(cell("Output / 1M of gpt-4o").value).toBe("10");
    expect(cell("Cache read / 1M of gpt-4o").value).toBe("1.25");
    expect(cell("Per call of mj_imagine").value).toBe("0.1");
    await type(user, "Output / 1M of gpt-4o", "20");
    expect(changed).toEqual({ CompletionRatio: '{"gpt-4o":8}' });
    expect(isTaken("CompletionRatio")).toEqual({ "gpt-4o": 8 });
  });

  test("a new input price leaves the other prices where they are, however it is typed", async () => {
    const { user } = open();
    // On the way there the field is empty, then 0, then 0.5.
    await type(user, "Input / 1M of gpt-4o", "0.5");
    expect(cell("Output / 1M of gpt-4o").value).toBe("10");
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 0.25, o3: 5 });
    expect(saved("CompletionRatio")).toEqual({ "gpt-4o": 20 });
    expect(saved("CacheRatio")).toEqual({ "gpt-4o": 2.5 });
    await user.tab();
    expect(cell("Output / 1M of gpt-4o").value).toBe("10");
  });

  test("what nobody touched keeps the very number that is stored", () => {
    const before = { ModelRatio: 0.7, CompletionRatio: 4 / 3 };
    const edit = { before, typed: { input: "1.4" }, unit: "dollars", perRatio: 2 } as const;
    expect(cellsAfter(edit)).toMatchObject({ ModelRatio: 0.7, CompletionRatio: 4 / 3 });
  });

  test("an output price beside a free input is refused, here and by the server", async () => {
    const { user } = open();
    await type(user, "Input / 1M of gpt-4o", "0");
    await type(user, "Output / 1M of gpt-4o", "8");
    expect(screen.getByRole("alert").textContent).toContain("Output can only be priced if input is");
    expect(() => isTaken("CompletionRatio")).toThrow("option_bad_ratio");
  });

  test("what is no number is told, stays, and is refused by the server by its model", async () => {
    const { user } = open();
    await type(user, "Input / 1M of o3", "ten");
    expect(screen.getByRole("alert").textContent).toBe("Enter a number");
    await user.tab();
    expect(cell("Input / 1M of o3").value).toBe("ten");
    expect(() => isTaken("ModelRatio")).toThrow("option_bad_ratio");
  });

  test("an emptied input price is no price: the row says what that means", async () => {
    const { user } = open();
    await type(user, "Input / 1M of o3", "");
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 1.25 });
    expect(screen.getByText(/calls are refused/).tagName).toBe("P");
  });

  test("billing by call is not free until somebody says so", async () => {
    const { user } = open();
    await user.selectOptions(screen.getByLabelText("Billing of o3"), "call");
    expect(() => isTaken("ModelPrice")).toThrow("option_bad_ratio");
    await user.type(cell("Per call of o3"), "0.02");
    expect(saved("ModelPrice")).toEqual({ mj_imagine: 0.1, o3: 0.02 });
    await user.selectOptions(screen.getByLabelText("Billing of o3"), "tokens");
    expect(saved("ModelPrice")).toEqual({ mj_imagine: 0.1 });
    // The ratio was kept meanwhile.
    expect(cell("Input / 1M of o3").value).toBe("10");
  });
});

describe("the table", () => {
  test("shows ratios too, in step with the dollars", async () => {
    const { user } = open();
    await user.click(screen.getByRole("button", { name: "Ratios" }));
    expect(cell("Model ratio of gpt-4o").value).toBe("1.25");
    await type(user, "Model ratio of gpt-4o", "2");
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 2, o3: 5 });
    // A ratio is a ratio: the completion's follows nothing.
    expect(changed["CompletionRatio"]).toBeUndefined();
    await user.click(screen.getByRole("button", { name: "USD / 1M" }));
    expect(cell("Input / 1M of gpt-4o").value).toBe("4");
    expect(cell("Output / 1M of gpt-4o").value).toBe("16");
  });

  test("a new model begins at the top; a name that is there is refused", async () => {
    const { user } = open();
    await user.type(cell("Name of a new model"), "gpt-4o{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("This model is in the list already");
    await type(user, "Name of a new model", "zz-new");
    await user.keyboard("{Enter}");
    expect(models()).toEqual(["zz-new", "gpt-4o", "mj_imagine", "o3"]);
    expect(changed).toEqual({});
    await user.type(cell("Input / 1M of zz-new"), "4");
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 1.25, o3: 5, "zz-new": 2 });
    expect(models()[0]).toBe("zz-new");
  });

  test("a model is taken out of every map, and that can be taken back after other changes", async () => {
    const { user } = open();
    await user.click(screen.getByRole("button", { name: "Remove gpt-4o" }));
    expect(saved("ModelRatio")).toEqual({ o3: 5 });
    expect([saved("CompletionRatio"), saved("CacheRatio")]).toEqual([{}, {}]);
    await type(user, "Input / 1M of o3", "2");
    await user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(saved("ModelRatio")).toEqual({ o3: 1, "gpt-4o": 1.25 });
    expect([saved("CompletionRatio"), saved("CacheRatio")]).toEqual([{ "gpt-4o": 4 }, { "gpt-4o": 0.5 }]);
  });

  test("20,000 models: a page is drawn, and search, a key pressed and a batch are quick", async () => {
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`model-${n}`, n / 100]));
    const { user } = open({
      ...START,
      ModelRatio: JSON.stringify(many),
      CompletionRatio: JSON.stringify(many),
    });
    expect(models()).toHaveLength(20);
    expect(screen.getByText(/of 20,001/).textContent).toContain("1");
    await user.type(screen.getByRole("searchbox"), "model-19999");
    expect(models()).toEqual(["model-19999"]);
    const started = performance.now();
    await type(user, "Input / 1M of model-19999", "3");
    // Two keys over maps of 20,000 names; a person notices a tenth of a second, the machine of the tests is shared.
    expect(performance.now() - started).toBeLessThan(2_000);
    expect((saved("ModelRatio") as Record<string, number>)["model-19999"]).toBe(1.5);
    await user.clear(screen.getByRole("searchbox"));
    await user.click(screen.getByLabelText("Select this page"));
    await user.click(screen.getByRole("button", { name: "Select all 20001" }));
    await user.click(screen.getByRole("button", { name: "Set together" }));
    await user.selectOptions(screen.getByLabelText("What to set"), "completion");
    await user.type(cell("Completion ratio"), "3{Enter}");
    const ratios = Object.values(saved("CompletionRatio") as Record<string, number>);
    expect([ratios.length, ratios.every((ratio) => ratio === 3)]).toEqual([20_001, true]);
  });

  test("maps that cannot be read leave the JSON alone, which says so", () => {
    open({ ...START, ModelRatio: "{broken" });
    expect(screen.getByRole("tab", { name: "Table of models" }).hasAttribute("disabled")).toBe(true);
    expect(screen.getByText(/mend it to use the tables/).tagName).toBe("P");
    expect(screen.getByLabelText<HTMLTextAreaElement>("Model ratio as JSON text").value).toBe("{broken");
  });

  test("every map can be found by its key in every view, and waits while its text is fetched", async () => {
    const { user, container } = open();
    const anchors = () =>
      PRICE_KEYS.filter(
        (key) => container.querySelector(`[data-option="${key}"] :is(input, textarea)`) === null,
      );
    expect(anchors()).toEqual([]);
    await user.click(screen.getByRole("tab", { name: "Ratios as JSON" }));
    expect(anchors()).toEqual([]);
    changed = {};
    const waiting = renderPart(<Host start={START} isLong />);
    expect(waiting.container.querySelectorAll("input, textarea")).toHaveLength(0);
  });

  test("names that every object has are models like others", () => {
    const tables = readTables(() => '{"constructor": 1, "__proto__": 2}');
    if (!tables) throw new Error("no tables");
    expect([isPriced(tables, "constructor"), isPriced(tables, "toString")]).toEqual([true, false]);
    const texts = changedTexts(tables, new Map([["__proto__", { ModelRatio: 3 }]]));
    expect(texts).toEqual({ ModelRatio: '{"constructor":1,"__proto__":3}' });
  });
});

describe("batches", () => {
  test.each([
    ["both", "1", "2", 0, "editor.price.batchNone"],
    ["both", "1", "", 2, "editor.price.batchBoth"],
    ["both", "", "2", 2, "editor.price.batchBoth"],
    ["ratio", " ", "", 2, "editor.price.batchFill"],
    ["price", "x", "", 2, "editor.price.batchNumber"],
    ["completion", "-1", "", 2, "editor.price.batchNumber"],
    ["both", "1", "2", 1, undefined],
    ["price", "0", "x", 1, undefined],
  ] as const)("%s with %j and %j for %d models: %p", (mode, first, second, count, problem) => {
    expect(batchProblem(mode, first, second, count)).toBe(problem);
  });

  test("say what is missing in the specification's words, then set all that is selected", async () => {
    changed = {};
    const { user } = renderPart(<Host start={START} />, { language: "zh" });
    await user.click(screen.getByRole("button", { name: "批量设置" }));
    await user.click(screen.getByRole("button", { name: "应用到 0 个模型" }));
    expect(screen.getByRole("alert").textContent).toBe("请先选择需要批量设置的模型");
    await user.click(screen.getByLabelText("选择 o3"));
    await user.click(screen.getByLabelText("选择 mj_imagine"));
    await user.click(screen.getByRole("button", { name: "应用到 2 个模型" }));
    expect(screen.getByRole("alert").textContent).toBe("请输入模型倍率和补全倍率");
    await user.type(screen.getByLabelText("模型倍率"), "3");
    await user.type(screen.getByLabelText("补全倍率"), "5{Enter}");
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 1.25, o3: 3, mj_imagine: 3 });
    expect(saved("CompletionRatio")).toEqual({ "gpt-4o": 4, o3: 5, mj_imagine: 5 });
    // Billed by tokens from now on: a price by call would come before the ratios.
    expect(saved("ModelPrice")).toEqual({});
  });
});

describe("models without a price", () => {
  const enabled = [
    "o3",
    "new-b",
    "new-a",
    "gpt-4-gizmo-g-1",
    ...Array.from({ length: 12 }, (_, n) => `x-${n}`),
  ];

  test("are the enabled ones that nothing is set for, ten a page; one that is priced stays where it is", async () => {
    const { user, answer } = open({ ...START, ModelRatio: '{"o3":5,"gpt-4-gizmo-*":1}' });
    answer("GET /api/channel/models_enabled", { success: true, data: enabled });
    await user.click(screen.getByRole("tab", { name: "Models without a price" }));
    await settle();
    expect(models()).toHaveLength(10);
    expect(models().slice(0, 3)).toEqual(["new-a", "new-b", "x-0"]);
    expect(screen.getByText(/14 enabled models have no price/).tagName).toBe("P");
    await user.type(cell("Input / 1M of new-b"), "6");
    expect(saved("ModelRatio")).toEqual({ o3: 5, "gpt-4-gizmo-*": 1, "new-b": 3 });
    expect(models()).toContain("new-b");
    await user.click(screen.getByRole("button", { name: "Look again" }));
    await settle();
    expect(models()).not.toContain("new-b");
  });

  test("a list that cannot be had says so and can be asked for again", async () => {
    const { user, answer } = open();
    answer(
      "GET /api/channel/models_enabled",
      Response.json({ success: false, message: "no" }, { status: 500 }),
    );
    await user.click(screen.getByRole("tab", { name: "Models without a price" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("The enabled models could not be fetched");
    answer("GET /api/channel/models_enabled", { success: true, data: ["o3"] });
    await user.click(screen.getByRole("button", { name: "Retry" }));
    await settle();
    expect(screen.getByText("Every enabled model has a price.").tagName).toBe("P");
  });
});

test("models without a price get the table's in one click, also while something typed waits to be saved", async () => {
  const { user, answer, requests } = open();
  const row = { in: 2.5, out: 15 };
  answer("GET /api/channel/models_enabled", { success: true, data: ["new-a", "gpt-5.4"] });
  answer("GET /api/price/missing", {
    success: true,
    data: { table: { date: "2026-11-23" }, items: [{ name: "gpt-5.4", row, guards: [] }] },
  });
  answer("POST /api/price/missing", {
    success: true,
    data: { revision: 7, set: ["gpt-5.4"], unknown: ["new-a"], guarded: [], kept: [] },
  });
  await user.click(screen.getByRole("tab", { name: "Models without a price" }));
  const use = await screen.findByRole<HTMLButtonElement>("button", { name: "Use 1 table price" });
  await user.click(use);
  await settle();
  expect(requests.at(-1)).toMatchObject({ method: "POST", body: { models: ["gpt-5.4", "new-a"] } });
  // The stored maps are read anew, not written a second time by the save bar.
  expect([refreshed, changed]).toEqual([1, {}]);
  await user.type(cell("Input / 1M of new-a"), "6");
  expect(use.disabled).toBe(false);
});

test("the reset fills the defaults in for the plan that saving makes, and stores nothing by itself", async () => {
  const { user, requests } = open();
  await user.click(screen.getByRole("tab", { name: "Ratios as JSON" }));
  await user.click(screen.getByRole("button", { name: "Reset model ratios" }));
  await settle();
  expect(requests).toEqual([]);
  expect(changed).toEqual(Object.fromEntries(PRICE_KEYS.map((key) => [key, '{"shipped":1}'])));
});
