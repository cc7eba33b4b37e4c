// The sheet over all models as administrators use it: views and search in the address, both units, what is refused in words,
// batches and imports with their preview, and the way back.
import { describe, expect, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import PriceDesk from "../../islands/screens/price-desk.tsx";
import Models from "../../islands/ui/price-sheet/models.tsx";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import type { Desk } from "../../islands/ui/price-sheet/desk.ts";
import type { DeskPageData, DeskPrices } from "../../src/shared/price-desk.ts";
import type { IslandOptions } from "./render.tsx";
import { renderPart, renderScreen, settle } from "./render.tsx";

const PRICES: DeskPrices = {
  revision: 3,
  texts: {
    ModelRatio: '{"gpt-4o":1.25,"o3":5,"plain":1}',
    CompletionRatio: '{"plain":3}',
    CacheRatio: '{"gpt-4o":0.5}',
    ModelPrice: '{"song":0.1}',
    PriceRules: '{"o3":{"when":[{"over":1000,"times":2}]},"song":{"unit":"second"}}',
    QuotaPerUnit: "500000",
  },
  served: [
    { name: "gpt-4o", vendor: "openai" },
    { name: "new-b", vendor: "new" },
    { name: "new-a", vendor: "new" },
    { name: "gpt-4-gizmo-g-1", vendor: "openai" },
  ],
  refused: { "new-b": 12, "gpt-4-gizmo-g-1": 1 },
  groups: [],
  makers: [{ zh: "开放", en: "OpenAI", models: ["gpt-4o", "o3", "gpt-4-gizmo-*"] }],
  isAutoDefault: false,
};

let desk: Desk;

function open(options: IslandOptions = {}) {
  desk = createDesk();
  desk.open(PRICES);
  return renderPart(<Models desk={desk} canApply reload={() => Promise.resolve()} />, {
    url: "/prices",
    ...options,
  });
}

const grid = () => screen.getByRole("grid", { name: "Prices of models" });
const names = () =>
  within(grid())
    .getAllByRole("rowheader")
    .map((row) => row.querySelector(".mono")?.textContent);
const rowOf = (name: string) =>
  within(grid())
    .getAllByRole("row")
    .find((row) => row.querySelector(".mono")?.textContent === name);
const texts = (name: string) =>
  [...(rowOf(name)?.querySelectorAll('[role="gridcell"]') ?? [])].map((cell) => cell.textContent);
const told = () => grid().nextElementSibling?.querySelector('[role="status"]')?.textContent;

function press(name: string, column: number): void {
  const cell = rowOf(name)?.querySelector(`[data-column="${column}"]`);
  if (!cell) throw new Error(`no cell ${name} ${column}`);
  fireEvent.mouseDown(cell, { button: 0 });
  fireEvent.mouseUp(cell);
  act(() => grid().focus());
}

const view = (name: RegExp) => screen.getByRole("link", { name });
const changes = () =>
  desk.changes.value.map(({ key, name, after }) => `${key} ${name} ${JSON.stringify(after)}`);

describe("what is shown", () => {
  test("every model that has a price or is in use, those in use first, with maker, rules and refused calls", () => {
    open();
    expect(names()).toEqual(["gpt-4-gizmo-*", "gpt-4o", "new-a", "new-b", "o3", "plain", "song"]);
    expect(texts("gpt-4o")).toEqual(["By tokens", "2.5", "10", "1.25", "", ""]);
    expect(texts("song")).toEqual(["Per call", "", "", "", "", "0.1 / second"]);
    expect(texts("new-b")[0]).toBe("No price12 refused");
    expect(texts("gpt-4-gizmo-*")[0]).toBe("No price1 refused");
    expect(rowOf("o3")?.textContent).toContain("1 rule");
    expect(rowOf("gpt-4o")?.textContent).toContain("OpenAI");
    // What the name says and nobody set is told apart.
    expect(rowOf("gpt-4o")?.querySelector('[data-column="3"]')?.hasAttribute("data-muted")).toBe(true);
    expect(rowOf("plain")?.querySelector('[data-column="3"]')?.hasAttribute("data-muted")).toBe(false);
  });

  test("views have counts and addresses; those without a price are a view", async () => {
    const { user } = open({ url: "/prices?view=unpriced" });
    expect(names()).toEqual(["gpt-4-gizmo-*", "new-a", "new-b"]);
    expect(view(/Without a price/).textContent).toContain("3");
    expect(view(/^All/).textContent).toContain("7");
    await user.click(view(/In use/));
    expect(location.search).toBe("?view=used");
    expect(names()).toEqual(["gpt-4-gizmo-*", "gpt-4o", "new-a", "new-b"]);
    await user.click(view(/Changed/));
    expect(screen.getByText("Nothing is changed yet.").tagName).toBe("P");
  });

  test.each([
    [true, "root"],
    [false, "an administrator"],
  ])("one click takes the table's prices (root: %p): at once, or as changes to draft", async (canApply) => {
    desk = createDesk();
    desk.open(PRICES);
    let reloads = 0;
    const reload = () => Promise.resolve(void (reloads += 1));
    const item = { name: "new-a", row: { in: 3, out: 6 }, guards: [] };
    const odd = { name: "new-b", row: { in: 3 }, guards: ["outlier"] };
    const { user, requests } = renderPart(<Models desk={desk} canApply={canApply} reload={reload} />, {
      url: "/prices?view=unpriced",
      answers: {
        "GET /api/price/missing": { success: true, data: { table: { date: "" }, items: [item, odd] } },
        "POST /api/price/missing": {
          success: true,
          data: { revision: 4, set: ["new-a"], unknown: [], guarded: ["new-b"], kept: [] },
        },
      },
    });
    await user.click(await screen.findByRole("button", { name: "Use 1 table price" }));
    await settle();
    const sent = requests.filter(({ method }) => method === "POST").length;
    expect([sent, reloads]).toEqual(canApply ? [1, 1] : [0, 0]);
    expect(changes()).toEqual(canApply ? [] : ["ModelRatio new-a 1.5", "CompletionRatio new-a 2"]);
    expect(desk.undoable.value).toBe(canApply ? undefined : "take 1 table price");
  });

  test("a model that gets its price stays in the view until the view is opened again", async () => {
    const { user } = open({ url: "/prices?view=unpriced" });
    press("new-a", 2);
    await user.keyboard("3{Enter}");
    expect(names()).toEqual(["gpt-4-gizmo-*", "new-a", "new-b"]);
    expect(view(/Without a price/).textContent).toContain("2");
    await user.click(view(/Changed/));
    expect(names()).toEqual(["new-a"]);
    await user.click(view(/Without a price/));
    expect(names()).toEqual(["gpt-4-gizmo-*", "new-b"]);
  });

  test("search, billing and order are in the address and come from it", async () => {
    const { user } = open({ url: "/prices?q=openai&sort=-in" });
    expect(names()).toEqual(["o3", "gpt-4o", "gpt-4-gizmo-*"]);
    await user.clear(screen.getByRole("searchbox"));
    await user.click(screen.getByRole("button", { name: "Model" }));
    expect(names()[0]).toBe("gpt-4-gizmo-*");
    await user.click(screen.getByRole("button", { name: "Model" }));
    expect(names()[0]).toBe("song");
    expect(location.search).toBe("?sort=-name");
    await user.selectOptions(screen.getByLabelText("Billing"), "call");
    expect(names()).toEqual(["song"]);
    await user.type(screen.getByRole("searchbox"), "nothing");
    expect(screen.getByText("No model matches.").tagName).toBe("P");
    await user.click(screen.getByRole("button", { name: "Clear filters" }));
    expect(names().length).toBe(7);
  });

  test("further columns are chosen, and are in the address", async () => {
    const { user } = open();
    await user.click(screen.getByRole("button", { name: "Columns" }));
    await settle();
    await user.click(screen.getByRole("menuitemcheckbox", { name: "Thinking" }));
    expect(location.search).toBe("?columns=thinking");
    expect(within(grid()).getByRole("columnheader", { name: /Thinking/ }).tagName).toBe("DIV");
  });
});

describe("changing", () => {
  test("a block of prices is one step; undo and redo say what they do", async () => {
    const { user } = open();
    press("new-a", 2);
    await user.paste("1\t4\n2\t8");
    expect([desk.rowOf("new-a"), desk.rowOf("new-b")]).toEqual([
      { in: 1, out: 4 },
      { in: 2, out: 8 },
    ]);
    await user.click(screen.getByRole("button", { name: "Undo: paste 4 cells" }));
    expect(desk.rowOf("new-b")).toBeUndefined();
    act(() => grid().focus());
    await user.keyboard("{Control>}{Shift>}z{/Shift}{/Control}");
    expect(desk.rowOf("new-b")).toEqual({ in: 2, out: 8 });
    await user.keyboard("{Control>}z{/Control}");
    expect(changes()).toEqual([]);
  });

  test("a changed cell shows what is in force; put back, it is no change", async () => {
    const { user } = open();
    press("plain", 3);
    await user.keyboard("9{Enter}");
    expect(texts("plain")[2]).toBe("9before: 6");
    expect(changes()).toEqual(["CompletionRatio plain 4.5"]);
    press("plain", 3);
    await user.keyboard("6{Enter}");
    expect([texts("plain")[2], changes()]).toEqual(["6", []]);
  });

  test("what cannot be is said in words: output alone, an emptied input, both kinds of billing", async () => {
    const { user } = open();
    press("new-a", 3);
    await user.keyboard("5{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("Enter the input price first");
    await user.keyboard("{Escape}");
    press("plain", 2);
    await user.keyboard("{Delete}");
    expect(told()).toContain("plain, Input: An input price is needed");
    press("plain", 2);
    await user.paste("1\t2\t\t\t0.5");
    expect(told()).toContain("plain, Per call: A model is billed by tokens or by the call, not both");
    expect(desk.rowOf("plain")).toEqual({ in: 1, out: 2 });
  });

  test("a price per call changes the billing, and billing by tokens finds the price again", async () => {
    const { user } = open();
    press("plain", 6);
    await user.keyboard("0.2{Enter}");
    expect(texts("plain")[0]).toBe("Per callbefore: By tokens");
    press("plain", 1);
    await user.keyboard("b{Enter}");
    expect(desk.rowOf("plain")).toEqual({ in: 2, out: 6 });
    expect(changes()).toEqual([]);
  });

  test("ratios are in step with dollars, and a ratio is a ratio: others stay", async () => {
    const { user } = open({ url: "/prices?unit=ratio" });
    expect(texts("plain").slice(1, 3)).toEqual(["1", "3"]);
    expect(texts("gpt-4o").slice(1, 4)).toEqual(["1.25", "4", "0.5"]);
    press("plain", 2);
    await user.keyboard("2{Enter}");
    expect(changes()).toEqual(["ModelRatio plain 2"]);
    await user.click(screen.getByRole("button", { name: "USD / 1M" }));
    expect(texts("plain").slice(1, 3)).toEqual(["4before: 2", "12before: 6"]);
  });

  test("a new name stands on top with the focus on its input price; one that is there is refused", async () => {
    const { user } = open();
    await user.click(screen.getByRole("button", { name: "More actions" }));
    await user.click(screen.getByRole("menuitem", { name: "Add model" }));
    const field = screen.getByLabelText("Name of a new model");
    expect(document.activeElement).toBe(field);
    await user.type(field, "song{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("This model is in the list already");
    await user.clear(field);
    await user.type(field, "constructor{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("A model cannot have this name");
    await user.clear(field);
    await user.type(field, "zz-new{Enter}");
    expect(names()[0]).toBe("zz-new");
    expect(document.activeElement).toBe(grid());
    await user.keyboard("4{Tab}8{Enter}");
    expect(desk.rowOf("zz-new")).toEqual({ in: 4, out: 8 });
  });

  test("a model's drawer has an address, tells its prices, and takes the price away", async () => {
    const { user } = open();
    press("plain", 0);
    await user.keyboard("{Enter}");
    expect(location.search).toBe("?model=plain");
    const drawer = screen.getByRole("dialog", { name: "plain" });
    expect(drawer.textContent).toContain("Output $/M6");
    await user.click(within(drawer).getByRole("button", { name: "Remove price" }));
    expect(desk.rowOf("plain")).toBeUndefined();
    expect(desk.undoable.value).toBe("remove the price of plain");
    expect(texts("plain")[0]).toBe("No pricebefore: By tokens");
  });
});

describe("rules", () => {
  test("are edited in the model's drawer, and kept as one step", async () => {
    const { user } = open({ url: "/prices?model=plain" });
    await settle();
    const drawer = screen.getByRole("dialog", { name: "plain" });
    await user.click(await within(drawer).findByRole("button", { name: "Service tier" }));
    const rule = within(within(drawer).getByRole("listitem", { name: "Rule 1" }));
    const factor = rule.getByLabelText("Factor");
    await user.clear(factor);
    await user.type(factor, "half");
    await user.click(within(drawer).getByRole("button", { name: "Keep these rules" }));
    // They are not whole: the drawer stays, and nothing is written.
    expect([location.search, changes()]).toEqual(["?model=plain", []]);
    await user.clear(factor);
    await user.type(factor, "0.5");
    await user.type(rule.getByLabelText("Service tier"), "flex");
    await user.click(within(drawer).getByRole("button", { name: "Keep these rules" }));
    expect(desk.rowOf("plain")?.when?.map(({ times }) => times)).toEqual([0.5]);
    expect(desk.undoable.value).toBe("rules of plain");
    expect(rowOf("plain")?.textContent).toContain("1 rule");
  });

  test("of a model that nobody touched are no change", async () => {
    const { user } = open({ url: "/prices?model=o3" });
    await screen.findByRole("listitem", { name: "Rule 1" });
    await user.click(screen.getByRole("button", { name: "Keep these rules" }));
    expect([changes(), location.search]).toEqual([[], ""]);
  });
});

describe("several models at once", () => {
  async function tick(user: ReturnType<typeof open>["user"], ...which: string[]) {
    for (const name of which) await user.click(screen.getByRole("checkbox", { name: `Select ${name}` }));
  }

  test("are set together as one step; the preview shows what applying does", async () => {
    const { user } = open();
    await tick(user, "plain", "song", "new-a");
    expect(screen.getByText("3 selected").tagName).toBe("P");
    await user.click(screen.getByRole("button", { name: "Set together" }));
    const drawer = screen.getByRole("dialog", { name: "Set 3 models together" });
    await user.selectOptions(within(drawer).getByLabelText("What to set"), "factor");
    await user.click(within(drawer).getByRole("button", { name: "Apply to 3 models" }));
    expect(within(drawer).getByRole("alert").textContent).toBe("Enter a value to fill in");
    await user.type(within(drawer).getByLabelText("Factor"), "1.5");
    const preview = within(drawer).getByRole("region", { name: "What changes" });
    expect(preview.textContent).toContain("2 prices change");
    expect(
      within(preview)
        .getAllByRole("listitem")
        .map((line) => line.textContent),
    ).toEqual(["plain$2 / $6$3 / $9", "song$0.1 per call$0.15 per call"]);
    await user.click(within(drawer).getByRole("button", { name: "Apply to 3 models" }));
    expect([desk.rowOf("plain"), desk.rowOf("song")]).toEqual([
      { in: 3, out: 9 },
      { call: 0.15, unit: "second" },
    ]);
    expect(desk.undoable.value).toBe("set 3 models");
  });

  test("what is missing is said in the specification's words", async () => {
    const { user } = open({ language: "zh" });
    await user.click(screen.getByRole("checkbox", { name: "选择 plain" }));
    await user.click(screen.getByRole("button", { name: "批量设置" }));
    await user.selectOptions(screen.getByLabelText("设置内容"), "both");
    await user.click(screen.getByRole("button", { name: "应用到 1 个模型" }));
    expect(screen.getByRole("alert").textContent).toBe("请输入模型倍率和补全倍率");
  });

  test("all that are shown can be ticked, and lose their price together", async () => {
    const { user } = open({ url: "/prices?billing=tokens" });
    await tick(user, "plain");
    await user.click(screen.getByRole("button", { name: "Selected models" }));
    await user.click(screen.getByRole("menuitem", { name: "Select all 3" }));
    await user.click(screen.getByRole("button", { name: "Selected models" }));
    await user.click(screen.getByRole("menuitem", { name: "Remove 3 prices" }));
    expect(["plain", "o3", "gpt-4o"].map((name) => desk.rowOf(name))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    act(() => desk.undo());
    expect(desk.rowOf("plain")).toEqual({ in: 2, out: 6 });
  });
});

describe("import", () => {
  test("has an address, shows what changes and what is left out, and is one step", async () => {
    const { user } = open({ url: "/prices?import=1" });
    const drawer = screen.getByRole("dialog", { name: "Import from text" });
    expect(within(drawer).getByRole("button", { name: "Take over 0 prices" }).hasAttribute("disabled")).toBe(
      true,
    );
    fireEvent.change(within(drawer).getByLabelText("Text"), {
      target: { value: "plain\t3\t6\nfresh\t$1\t2\nbad\tx\t1" },
    });
    expect(within(drawer).getByRole("alert").textContent).toBe("1 entry is left out:bad: not a price");
    expect(within(drawer).getByRole("region", { name: "What changes" }).textContent).toContain(
      "2 prices change",
    );
    await user.click(within(drawer).getByRole("button", { name: "Take over 2 prices" }));
    expect([desk.rowOf("plain"), desk.rowOf("fresh")]).toEqual([
      { in: 3, out: 6 },
      { in: 1, out: 2 },
    ]);
    expect(location.search).toBe("");
    expect(names()).toContain("fresh");
    expect(desk.undoable.value).toBe("import 2 prices");
  });

  test("numbers alone are asked for their map; a text that is nothing says so", () => {
    open({ url: "/prices?import=1" });
    const text = screen.getByLabelText("Text");
    fireEvent.change(text, { target: { value: '{"plain":4}' } });
    fireEvent.change(screen.getByLabelText("These numbers are"), { target: { value: "CompletionRatio" } });
    expect(screen.getByRole("region", { name: "What changes" }).textContent).toContain("$2 / $6$2 / $8");
    fireEvent.change(text, { target: { value: "{" } });
    expect(screen.getByRole("alert").textContent).toBe("This is neither JSON nor lines of prices.");
  });
});

describe("the page", () => {
  const DATA: DeskPageData = {
    section: "models",
    canApply: true,
    first: {
      rows: [
        { name: "gpt-4o", maker: "OpenAI", row: { in: 2.5, out: 10 }, isOutputDerived: true, rules: 0 },
        { name: "new-a", maker: "", row: undefined, isOutputDerived: true, rules: 0 },
      ],
      counts: { all: 2, unpriced: 1, used: 2 },
    },
  };

  test("shows the first rows until the sheet and its prices are there", async () => {
    let give: (answer: unknown) => void = () => undefined;
    const island = renderScreen(PriceDesk, { data: DATA, url: "/prices" });
    island.answer("GET /api/price/desk", () => new Promise((resolve) => (give = resolve)));
    const table = screen.getByRole("table", { name: "Prices of models" });
    expect(
      within(table)
        .getAllByRole("row")
        .map((row) => row.textContent),
    ).toEqual([
      "ModelBillingInput $/MOutput $/MCache read $/MCache write $/MPer call $",
      "gpt-4oOpenAIBy tokens2.510",
      "new-aNo price",
    ]);
    await settle();
    give({ success: true, data: PRICES });
    await settle();
    expect(names()).toHaveLength(7);
  });

  test("says so when the prices cannot be had", async () => {
    const island = renderScreen(PriceDesk, { data: DATA, url: "/prices" });
    island.answer("GET /api/price/desk", Response.json({ success: false, message: "no" }, { status: 500 }));
    await settle();
    expect(screen.getByRole("alert").textContent).not.toBe("");
    expect(screen.getByRole("table", { name: "Prices of models" }).textContent).toContain("gpt-4o");
  });
});

test("20,000 models: few rows are drawn, and a key, a paste and a batch are quick", async () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`model-${n}`, n / 100 + 1]));
  const { user } = open();
  act(() => desk.open({ ...PRICES, texts: { ...PRICES.texts, ModelRatio: JSON.stringify(many) } }));
  expect(names().length).toBeLessThan(50);
  const started = performance.now();
  press("model-0", 2);
  await user.keyboard("3{Enter}4{Enter}");
  await user.paste(Array.from({ length: 1000 }, (_, n) => `${n + 1}`).join("\n"));
  // A person notices a tenth of a second an act; the machine of the tests is shared.
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(desk.changes.value.length).toBeGreaterThan(1000);
});
