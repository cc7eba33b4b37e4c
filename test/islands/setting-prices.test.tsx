// The price panels of the settings as views of the price desk: what its sheet changes is what the settings have typed, and the
// other way round; models without a price, the raw JSON, and the reset.
import { describe, expect, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import { useState } from "react";
import type { OptionRow } from "../../islands/screens/setting/editor-props.ts";
import PricesPanel from "../../islands/screens/setting/editors/prices.tsx";
import { optionDefinitions } from "../../src/core/options/definitions.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import type { DeskPrices } from "../../src/shared/price-desk.ts";
import { PRICE_MAPS } from "../../src/shared/row-maps.ts";
import { renderPart, settle } from "./render.tsx";

type Texts = Record<string, string>;

const START: Texts = {
  ...Object.fromEntries(PRICE_MAPS.map((key) => [key, "{}"])),
  ModelPrice: '{"mj_imagine":0.1}',
  ModelRatio: '{"gpt-4o":1.25,"o3":5}',
  CompletionRatio: '{"gpt-4o":4}',
  CacheRatio: '{"gpt-4o":0.5}',
};

/** What would be saved: only what was changed. */
let changed: Texts = {};
let refreshed = 0;
let type: (key: string, text: string) => void;
let discard: () => void;

interface HostProps {
  start: Texts;
  typed: Texts;
  isLong?: boolean;
}

function Host({ start, typed, isLong }: HostProps) {
  const [drafts, setDrafts] = useState(typed);
  // Only what the panel reads.
  const rows = PRICE_MAPS.map((key) => ({
    key,
    kind: "number_map",
    group: "prices",
    value: start[key] ?? "",
    default: key === "PriceRules" ? "{}" : '{"shipped":1}',
    secret: false,
    changed: true,
    ...(isLong ? { isLong } : {}),
  })) as OptionRow[];
  const onChange = (key: string, text: string) => {
    changed[key] = text;
    if (text === start[key]) delete changed[key];
    setDrafts((before) => ({ ...before, [key]: text }));
  };
  type = onChange;
  discard = () => {
    changed = {};
    setDrafts({});
  };
  return (
    <PricesPanel
      rows={rows}
      value={(key) => drafts[key] ?? start[key] ?? ""}
      onChange={onChange}
      failureOf={() => undefined}
      refresh={() => {
        refreshed += 1;
        return Promise.resolve();
      }}
    />
  );
}

async function open(start: Texts = START, more: { typed?: Texts; served?: string[]; isLong?: boolean } = {}) {
  changed = { ...more.typed };
  refreshed = 0;
  const prices: DeskPrices = {
    revision: 3,
    texts: { ...start, QuotaPerUnit: "500000" },
    served: (more.served ?? ["gpt-4o"]).map((name) => ({ name, vendor: "" })),
    refused: {},
    groups: [],
    makers: [],
    isAutoDefault: false,
  };
  const { isLong = false, typed = {} } = more;
  const rendered = renderPart(<Host start={start} typed={typed} isLong={isLong} />, {
    url: "/setting",
    answers: { "GET /api/price/desk": { success: true, data: prices } },
  });
  await settle();
  return rendered;
}

const saved = (key: string): unknown => JSON.parse(changed[key] ?? "null");
const grid = () => screen.getByRole("grid", { name: "Prices of models" });
const names = () =>
  within(grid())
    .getAllByRole("rowheader")
    .map((row) => row.querySelector(".mono")?.textContent);
const rowOf = (name: string) =>
  within(grid())
    .getAllByRole("row")
    .find((row) => row.querySelector(".mono")?.textContent === name);
const cells = (name: string) =>
  [...(rowOf(name)?.querySelectorAll('[role="gridcell"]') ?? [])].map((each) => each.textContent);
const isTaken = (key: OptionKey) => optionDefinitions[key].kind.parse(changed[key] ?? "");

function press(name: string, column: number): void {
  const found = rowOf(name)?.querySelector(`[data-column="${column}"]`);
  if (!found) throw new Error(`no cell ${name} ${column}`);
  fireEvent.mouseDown(found, { button: 0 });
  fireEvent.mouseUp(found);
  act(() => grid().focus());
}

const show = (name: string) => screen.getByRole("tab", { name });

describe("the sheet", () => {
  test("is the desk's: a new price is typed text of that map alone, and is no change any more when it is undone", async () => {
    const { user } = await open();
    expect(names()).toEqual(["gpt-4o", "mj_imagine", "o3"]);
    expect(cells("gpt-4o").slice(0, 4)).toEqual(["By tokens", "2.5", "10", "1.25"]);
    press("gpt-4o", 3);
    await user.keyboard("12{Enter}");
    await settle();
    expect(Object.keys(changed)).toEqual(["CompletionRatio"]);
    expect(saved("CompletionRatio")).toEqual({ "gpt-4o": 4.8 });
    expect(isTaken("CompletionRatio")).toEqual({ "gpt-4o": 4.8 });
    act(() => grid().focus());
    await user.keyboard("{Control>}z{/Control}");
    await settle();
    expect(changed).toEqual({});
    expect(cells("gpt-4o")[2]).toBe("10");
  });

  test("a ratio takes a model's own price of that kind out of its rules, which would win over it", async () => {
    const start = { ...START, PriceRules: '{"o3":{"in":9,"when":[{"over":10,"times":2}]}}' };
    const { user } = await open(start);
    await user.click(screen.getByRole("button", { name: "Ratios" }));
    press("o3", 2);
    await user.keyboard("4{Enter}");
    await settle();
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 1.25, o3: 4 });
    expect(saved("PriceRules")).toEqual({ o3: { when: [{ over: 10, times: 2 }] } });
    expect(() => isTaken("PriceRules")).not.toThrow();
  });

  test("what is typed as JSON stands in it, and what is discarded goes from it", async () => {
    await open(START, { typed: { ModelRatio: '{\n  "gpt-4o": 2,\n  "o3": 5\n}' } });
    expect(cells("gpt-4o")[1]).toBe("4before: 2.5");
    expect(saved("ModelRatio")).toEqual({ "gpt-4o": 2, o3: 5 });
    act(() => type("ModelRatio", '{"gpt-4o":3,"o3":5}'));
    await settle();
    expect(cells("gpt-4o")[1]).toBe("6before: 2.5");
    act(() => discard());
    await settle();
    expect([cells("gpt-4o")[1], changed]).toEqual(["2.5", {}]);
  });

  test("its questions are its own: the settings' address and search stay as they are", async () => {
    const { user } = await open();
    await user.type(screen.getByRole("searchbox", { name: "Search models" }), "o3");
    await user.click(screen.getByRole("link", { name: /^In use/ }));
    expect(location.pathname + location.search).toBe("/setting");
    expect(screen.getByText("No model matches.").tagName).toBe("P");
  });

  test("prices that cannot be had say so, and can be asked for again", async () => {
    const { user, answer } = renderPart(<Host start={START} typed={{}} />, {
      answers: { "GET /api/price/desk": Response.json({ success: false, message: "no" }, { status: 500 }) },
    });
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("no");
    const prices = { revision: 1, texts: START, served: [], refused: {}, groups: [], makers: [] };
    answer("GET /api/price/desk", { success: true, data: { ...prices, isAutoDefault: false } });
    await user.click(screen.getByRole("button", { name: "Retry" }));
    await settle();
    expect(names()).toEqual(["gpt-4o", "mj_imagine", "o3"]);
  });
});

describe("the maps as JSON", () => {
  test.each(["{", '{"a":"x"}', "[]"])("stand alone while one cannot be read: %s", async (ModelRatio) => {
    await open(START, { typed: { ModelRatio } });
    expect(screen.getByRole<HTMLButtonElement>("tab", { name: "Table of models" }).disabled).toBe(true);
    expect(screen.getByText(/One of the maps cannot be read/).tagName).toBe("P");
    expect(screen.queryByRole("grid")).toBeNull();
  });

  test("every map can be found by its key in every view, and waits while its text is fetched", async () => {
    const { user, container, unmount } = await open();
    const missing = () => PRICE_MAPS.filter((key) => container.querySelector(`[id="${key}"]`) === null);
    expect(missing()).toEqual([]);
    for (const view of ["Ratios as JSON", "Models without a price"]) {
      await user.click(show(view));
      await settle();
      expect(missing()).toEqual([]);
    }
    unmount();
    const waiting = await open(START, { isLong: true });
    expect(waiting.container.querySelectorAll(".skeleton")).toHaveLength(1);
  });

  test("the reset fills the defaults in for the plan that saving makes, and stores nothing by itself", async () => {
    const { user, requests } = await open();
    await user.click(show("Ratios as JSON"));
    const before = requests.length;
    await user.click(screen.getByRole("button", { name: "Reset model ratios" }));
    await settle();
    expect(requests).toHaveLength(before);
    expect(changed).toEqual(
      Object.fromEntries(
        PRICE_MAPS.filter((key) => key !== "PriceRules").map((key) => [key, '{"shipped":1}']),
      ),
    );
  });
});

describe("models without a price", () => {
  const row = { in: 2.5, out: 15 };
  const offer = { table: { date: "2026-11-23" }, items: [{ name: "gpt-5.4", row, guards: [] }] };

  test("are the enabled ones that nothing is set for; one that is priced stays where it is", async () => {
    const { user } = await open(
      { ...START, ModelRatio: '{"o3":5,"gpt-4-gizmo-*":1}' },
      { served: ["o3", "new-b", "new-a", "gpt-4-gizmo-g-1"] },
    );
    await user.click(show("Models without a price"));
    await settle();
    expect(names()).toEqual(["new-a", "new-b"]);
    press("new-b", 2);
    await user.keyboard("6{Enter}");
    await settle();
    expect(saved("ModelRatio")).toEqual({ o3: 5, "gpt-4-gizmo-*": 1, "new-b": 3 });
    expect(names()).toEqual(["new-a", "new-b"]);
  });

  test("get the table's in one click, while what is typed goes on waiting to be saved", async () => {
    const { user, answer, requests } = await open(START, { served: ["new-a", "gpt-5.4"] });
    answer("GET /api/price/missing", { success: true, data: offer });
    answer("POST /api/price/missing", {
      success: true,
      data: { revision: 7, set: ["gpt-5.4"], unknown: ["new-a"], guarded: [], kept: [] },
    });
    await user.click(show("Models without a price"));
    await settle();
    press("new-a", 2);
    await user.keyboard("6{Enter}");
    await settle();
    await user.click(await screen.findByRole("button", { name: "Use 1 table price" }));
    await settle();
    const sent = requests.filter(({ method }) => method === "POST");
    expect(sent).toMatchObject([{ body: { models: ["gpt-5.4"] } }]);
    // What is stored is read anew, not written a second time by the save bar.
    expect([refreshed, Object.keys(changed)]).toEqual([1, ["ModelRatio"]]);
  });
});
