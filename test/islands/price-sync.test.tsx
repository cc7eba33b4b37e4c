// The price desk's comparison with a source: what is asked, what is ticked, and what of it becomes changes of the desk.
import { describe, expect, test } from "bun:test";
import { act, screen, within } from "@testing-library/react";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import type { Desk } from "../../islands/ui/price-sheet/desk.ts";
import SyncSection from "../../islands/screens/price-desk/sync.tsx";
import { hasText } from "../../islands/lib/i18n.ts";
import type { DeskPrices } from "../../src/shared/price-desk.ts";
import type { PriceRow } from "../../src/shared/price-row.ts";
import { DROP_REASONS, SYNC_CASES, SYNC_GUARDS, SYNC_SOURCES } from "../../src/shared/price-sync.ts";
import type { SyncRow } from "../../src/shared/price-sync.ts";
import { MAX_PLAN_BYTES, MAX_PLAN_CHANGES } from "../../src/shared/price-desk.ts";
import { renderPart, settle } from "./render.tsx";

const PRICES: DeskPrices = {
  revision: 3,
  texts: {
    ModelRatio: '{"gpt-4o":1.25,"mine":1,"old":2}',
    CompletionRatio: '{"gpt-4o":4,"mine":4,"old":1}',
    QuotaPerUnit: "500000",
  },
  served: [],
  refused: {},
  groups: [],
  makers: [],
  isAutoDefault: false,
};

const row = (name: string, theirs: PriceRow | null, more: Partial<SyncRow> = {}): SyncRow => ({
  name,
  case: "new",
  guards: [],
  ticked: false,
  served: false,
  ours: null,
  theirs,
  base: null,
  origin: "",
  taken: theirs === null ? "" : `litellm:file@1#${name}`,
  ...more,
});

const ROWS: SyncRow[] = [
  row("fresh", { in: 1, out: 4, cache_read: 0.1 }, { ticked: true, served: true }),
  row(
    "gpt-4o",
    { in: 2, out: 8 },
    { case: "newer", ticked: true, ours: { in: 2.5, out: 10 }, origin: "shipped" },
  ),
  row("mine", { in: 3, out: 12 }, { case: "own", ours: { in: 2, out: 8 }, base: { in: 2.5, out: 8 } }),
  row("old", null, { case: "gone", ours: { in: 4, out: 4 } }),
  row("wild", { in: 90, out: 90 }, { guards: ["outlier"], served: true }),
];

const answerOf = (rows: SyncRow[], more: object = {}) => ({
  success: true,
  message: "",
  data: {
    source: "litellm:file",
    version: "1",
    revision: 3,
    total: 10,
    same: 5,
    rows,
    dropped: [{ name: "odd", reason: "unit", detail: "characters" }],
    dropped_count: 1,
    ...more,
  },
});

async function open({ canApply = true, language = "en" as "en" | "zh", kept = [] as object[] } = {}) {
  const desk = createDesk();
  desk.open(PRICES);
  const island = renderPart(
    <SyncSection desk={desk} canApply={canApply} reload={() => Promise.resolve()} />,
    { language },
  );
  island.answer("GET /api/price/sync", { success: true, message: "", data: kept });
  await settle();
  return { desk, ...island };
}

async function compared(rows: SyncRow[] = ROWS) {
  const opened = await open();
  opened.answer("POST /api/price/sync", answerOf(rows));
  await opened.user.click(screen.getByRole("button", { name: "Compare" }));
  await settle();
  return opened;
}

const names = () =>
  screen.getAllByRole("rowheader").flatMap((cell) =>
    within(cell)
      .queryAllByRole("button")
      .map((each) => each.textContent),
  );
const box = (name: string) =>
  screen.getByRole<HTMLInputElement>("checkbox", { name: `Take the price of ${name}` });
const filter = (name: RegExp) =>
  within(screen.getByRole("group", { name: "Which prices are shown" })).getByRole("button", { name });
const changesOf = ({ changes }: Desk) =>
  changes.value.map(({ key, name, after, taken }) => [key, name, after, taken]);

describe("the question", () => {
  test("the shipped table needs no address", async () => {
    const { user, requests, answer } = await open();
    answer("POST /api/price/sync", answerOf([]));
    expect(screen.queryByLabelText("Address")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Compare" }));
    await settle();
    expect(requests.at(-1)?.body).toEqual({ source: "shipped" });
    expect(screen.getByText("Nothing to take")).toBeDefined();
  });

  test("a public list brings its usual address, which gives way to another's, but not what was typed", async () => {
    const { user } = await open();
    const source = screen.getByLabelText("Source");
    await user.selectOptions(source, "openrouter");
    expect(screen.getByLabelText<HTMLInputElement>("Address").value).toContain("openrouter.ai");
    await user.selectOptions(source, "models.dev");
    expect(screen.getByLabelText<HTMLInputElement>("Address").value).toBe("https://models.dev/api.json");
    await user.clear(screen.getByLabelText("Address"));
    await user.type(screen.getByLabelText("Address"), "https://own.example/list.json");
    await user.selectOptions(source, "litellm");
    expect(screen.getByLabelText<HTMLInputElement>("Address").value).toBe("https://own.example/list.json");
  });

  test("address and prefixes go as they were typed", async () => {
    const { user, requests, answer } = await open();
    answer("POST /api/price/sync", answerOf([]));
    await user.selectOptions(screen.getByLabelText("Source"), "instance");
    await user.type(screen.getByLabelText("Address"), " https://other.example ");
    await user.type(screen.getByLabelText("Drop these name prefixes"), "openai/, x-ai/{enter}");
    await settle();
    expect(requests.at(-1)?.body).toEqual({
      source: "instance",
      url: "https://other.example",
      strip: ["openai/", "x-ai/"],
    });
  });

  test("an administrator has no address, and sends a file", async () => {
    const { user, requests, answer } = await open({ canApply: false });
    answer("POST /api/price/sync", answerOf([]));
    await user.selectOptions(screen.getByLabelText("Source"), "detect");
    expect(screen.queryByLabelText("Address")).toBeNull();
    expect(screen.queryByRole("radio")).toBeNull();
    await user.upload(
      document.querySelector<HTMLInputElement>("input[type=file]") as HTMLInputElement,
      new File(['{"data":{}}'], "prices.json", { type: "application/json" }),
    );
    expect(screen.getByText("prices.json")).toBeDefined();
    await user.click(screen.getByRole("button", { name: "Compare" }));
    await settle();
    expect(requests.at(-1)?.body).toEqual({ source: "detect", text: '{"data":{}}' });
    await user.click(screen.getByRole("button", { name: "Remove" }));
    expect(screen.getByLabelText<HTMLTextAreaElement>("List of prices").value).toBe("");
  });

  test("what the server refuses is said, and what was found before stays", async () => {
    const { user, answer } = await compared();
    answer("POST /api/price/sync", { success: false, code: "price_source_html", message: "A web page came" });
    await user.click(screen.getByRole("button", { name: "Compare" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toBe("A web page came");
    expect(names()).toHaveLength(5);
  });
});

describe("kept sources", () => {
  const LISTS = { name: "lists", source: "litellm", url: "", strip: ["openai/"], auto: true, limit: 5 };

  test("one is chosen by its name, asked by it, and taken off the list", async () => {
    const { user, answer, requests } = await open({ kept: [LISTS] });
    answer("POST /api/price/sync", answerOf([]));
    answer("PUT /api/option", { success: true, message: "" });
    await user.selectOptions(screen.getByLabelText("Source"), "lists");
    expect(screen.getByText("taken every day, up to 5 %")).toBeDefined();
    expect(screen.queryByLabelText("Address")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Compare" }));
    await settle();
    expect(requests.at(-1)?.body).toEqual({ source: "detect", kept: "lists" });
    await user.click(screen.getByRole("button", { name: "Stop keeping it" }));
    await settle();
    expect(requests.at(-1)?.body).toEqual({ key: "PriceSources", value: "[]" });
    expect(screen.queryByRole("option", { name: "lists" })).toBeNull();
  });

  test("what was compared with is kept beside the others, off unless somebody switches it on", async () => {
    const { user, answer, requests } = await open({ kept: [LISTS] });
    answer("POST /api/price/sync", answerOf(ROWS));
    answer("PUT /api/option", { success: true, message: "" });
    await user.selectOptions(screen.getByLabelText("Source"), "models.dev");
    await user.click(screen.getByRole("button", { name: "Compare" }));
    await settle();
    await user.click(screen.getByText("Keep this source"));
    await user.type(screen.getByLabelText("Name"), " daily ");
    expect(screen.getByRole<HTMLInputElement>("switch").checked).toBe(false);
    await user.click(screen.getByRole("switch"));
    await user.click(screen.getByRole("button", { name: "Keep" }));
    await settle();
    const sent = requests.at(-1)?.body as { value: string } | undefined;
    expect(JSON.parse(sent?.value ?? "")).toEqual([
      LISTS,
      {
        name: "daily",
        source: "models.dev",
        url: "https://models.dev/api.json",
        strip: [],
        auto: true,
        limit: 10,
      },
    ]);
    expect(screen.getByText("taken every day, up to 10 %")).toBeDefined();
  });

  test("an administrator is not offered them", async () => {
    const { requests } = await open({ canApply: false });
    expect(requests).toEqual([]);
  });
});

describe("the sheet", () => {
  test("ticks are those of the server, filters count and show", async () => {
    const { user } = await compared();
    expect(ROWS.map(({ name }) => [name, box(name).checked])).toEqual([
      ["fresh", true],
      ["gpt-4o", true],
      ["mine", false],
      ["old", false],
      ["wild", false],
    ]);
    expect(box("old").disabled).toBe(true);
    for (const [label, shown] of [
      [/^New\s*2$/, ["fresh", "wild"]],
      [/^Newer\s*1$/, ["gpt-4o"]],
      [/^Your own\s*1$/, ["mine"]],
      [/^Both changed\s*1$/, ["mine"]],
      [/^Look twice\s*1$/, ["wild"]],
      [/^Not there\s*1$/, ["old"]],
      [/^Ticked\s*2$/, ["fresh", "gpt-4o"]],
    ] as const) {
      await user.click(filter(label));
      expect(names()).toEqual([...shown]);
    }
    await user.click(filter(/^All\s*5$/));
    await user.click(screen.getByRole("checkbox", { name: "Only models that a channel serves" }));
    expect(names()).toEqual(["fresh", "wild"]);
    await user.type(screen.getByRole("searchbox"), "WIL");
    expect(names()).toEqual(["wild"]);
  });

  test("the three columns: yours, theirs with the change, and what it will be", async () => {
    const { user } = await compared();
    const cells = (name: string) =>
      within(box(name).closest("tr") as HTMLElement)
        .getAllByRole("cell")
        .slice(1)
        .map((cell) => cell.textContent);
    expect(cells("gpt-4o")).toEqual(["Yours$2.5 / $10", "Theirs$2 / $8−20 %", "Then$2 / $8"]);
    expect(cells("mine")).toEqual(["Yours$2 / $8", "Theirs$3 / $12+50 %", "Then$2 / $8"]);
    await user.click(box("mine"));
    expect(cells("mine").at(-1)).toBe("Then$3 / $12");
    await user.click(screen.getByRole("button", { name: "mine" }));
    const kinds = screen.getAllByRole("table").at(-1) as HTMLElement;
    expect(
      within(kinds)
        .getAllByRole("row")
        .map((each) => each.textContent),
    ).toEqual(["Per 1M tokensTaken beforeYoursTheirs", "Input$2.5$2$3+50 %", "Output$8$8$12+50 %"]);
  });

  test("all that a filter shows is ticked and unticked at once, pages and all", async () => {
    const many = Array.from({ length: 20_000 }, (_, at) => row(`model-${at}`, { in: 1 + at, out: 2 }));
    const { user } = await compared(many);
    // Fifty rows are drawn, whatever there is.
    expect(names()).toHaveLength(50);
    await user.click(screen.getByRole("button", { name: "Tick all 20000 without a warning" }));
    expect(screen.getByRole("button", { name: "Take 20000 prices" })).toBeDefined();
    await user.type(screen.getByRole("searchbox"), "model-1999");
    expect(names()).toHaveLength(11);
    await user.click(screen.getByRole("button", { name: "Untick them" }));
    expect(screen.getByRole("button", { name: "Take 19989 prices" })).toBeDefined();
  }, 30_000);

  test("what has a warning, and the operator's own unasked, is never ticked with all others", async () => {
    const { user } = await compared();
    await user.click(screen.getByRole("button", { name: "Untick them" }));
    await user.click(screen.getByRole("button", { name: "Tick all 2 without a warning" }));
    expect(ROWS.filter(({ name }) => box(name).checked).map(({ name }) => name)).toEqual(["fresh", "gpt-4o"]);
    await user.click(filter(/^Your own/));
    await user.click(screen.getByRole("button", { name: "Tick the 1 without a warning" }));
    expect(box("mine").checked).toBe(true);
    await user.click(filter(/^Look twice/));
    await user.click(screen.getByRole("button", { name: "Tick all 0 without a warning" }));
    expect(box("wild").checked).toBe(false);
  });

  test("the arrows go from tick to tick, space ticks", async () => {
    const { user } = await compared();
    box("fresh").focus();
    await user.keyboard("{ArrowDown}{ArrowDown} ");
    expect(document.activeElement).toBe(box("mine"));
    expect(box("mine").checked).toBe(true);
    await user.keyboard("{ArrowUp}");
    expect(document.activeElement).toBe(box("gpt-4o"));
  });

  test("what could not be read is listed with its reason", async () => {
    await compared();
    expect(screen.getByText("1 entry could not be read")).toBeDefined();
    expect(screen.getByText("odd").closest("li")?.textContent).toBe(
      "odd priced by something that calls are not counted in (characters)",
    );
  });
});

describe("taking", () => {
  test("ticked prices become changes of the desk that say whose they are, as one step", async () => {
    const { user, desk } = await compared();
    await user.click(screen.getByRole("button", { name: "Take 2 prices" }));
    expect(changesOf(desk).toSorted()).toEqual([
      ["CacheRatio", "fresh", 0.1, "litellm:file@1#fresh"],
      ["CompletionRatio", "fresh", 4, "litellm:file@1#fresh"],
      ["ModelRatio", "fresh", 0.5, "litellm:file@1#fresh"],
      ["ModelRatio", "gpt-4o", 1, "litellm:file@1#gpt-4o"],
    ]);
    expect(desk.undoable.value).toBe("2 prices from litellm:file");
    // Shown, and said to those who do not see it.
    expect(screen.getAllByText(/2 prices are among the changes/)).toHaveLength(2);
    // They are not offered twice.
    expect([box("fresh").disabled, box("gpt-4o").disabled]).toEqual([true, true]);
    // The button that was pressed keeps the focus, and does nothing more.
    const again = screen.getByRole("button", { name: "Take 0 prices" });
    expect([document.activeElement, again.getAttribute("aria-disabled")]).toEqual([again, "true"]);
    await user.click(again);
    expect(changesOf(desk)).toHaveLength(4);
    act(() => desk.undo());
    await settle();
    expect([changesOf(desk), box("fresh").disabled]).toEqual([[], false]);
  });

  test("of twenty thousand as many are taken as one plan holds; the rest is told, and stays ticked for the next", async () => {
    const many = Array.from({ length: 20_000 }, (_, at) =>
      row(`model-${at}`, { in: 1, out: 9, cache_read: 0.1 }, { ticked: true }),
    );
    const { user, desk } = await compared(many);
    await user.click(screen.getByRole("button", { name: /^Take 20,?000 prices$/ }));
    const changes = desk.changes.value;
    const taken = new Set(changes.map(({ name }) => name)).size;
    expect([taken > 10_000, taken < 20_000]).toEqual([true, true]);
    expect(changes.length).toBeLessThanOrEqual(MAX_PLAN_CHANGES);
    expect(JSON.stringify(changes).length).toBeLessThanOrEqual(MAX_PLAN_BYTES);
    expect(screen.getByText(/did not fit into one plan/).textContent).toContain(String(20_000 - taken));
    // Those that are left are ticked still: the same button takes them after this plan.
    expect(
      screen.getByRole("button", { name: /^Take [\d,]+ prices$/ }).textContent?.replaceAll(",", ""),
    ).toBe(`Take ${20_000 - taken} prices`);
  }, 60_000);

  test("the way to the plan stands beside it", async () => {
    const { user } = await compared();
    await user.click(screen.getByRole("button", { name: "Take 2 prices" }));
    await user.click(screen.getByRole("button", { name: "Go to the plan" }));
    expect(new URL(location.href).searchParams.get("section")).toBe("plan");
  });

  test("an edit by hand takes the mark away from what it changes", () => {
    const desk = createDesk();
    desk.open(PRICES);
    desk.writeRows(new Map([["a", { in: 2, out: 8 }]]), "", new Map([["a", "mark"]]));
    desk.write([{ key: "CompletionRatio", name: "a", after: 5 }], "");
    expect(changesOf(desk).toSorted()).toEqual([
      ["CompletionRatio", "a", 5, undefined],
      ["ModelRatio", "a", 1, "mark"],
    ]);
  });

  test("the comparison is still there after another section was open", async () => {
    const { desk, rerender } = await compared();
    rerender(<SyncSection key="again" desk={desk} canApply reload={() => Promise.resolve()} />);
    await settle();
    expect(names()).toHaveLength(5);
  });
});

test.each(["en", "zh"] as const)("nothing is without a text in %s", async (language) => {
  await open({ language });
  const keys = [
    ...SYNC_CASES.map((each) => `case.${each}`),
    ...SYNC_GUARDS.map((each) => `guard.${each}`),
    ...DROP_REASONS.map((each) => `reason.${each}`),
    ...SYNC_SOURCES.flatMap((each) => [`from.${each.replace(".", "-")}`, `about.${each.replace(".", "-")}`]),
  ];
  expect(keys.filter((key) => !hasText(`sync.${key}`))).toEqual([]);
});
