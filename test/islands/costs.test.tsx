// What a site earns and what its upstreams charge, as administrators read it and root writes it: the margin panel of the dashboard,
// and the costs of the price desk with bills and drift. An unknown cost is never shown as none.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import MarginPanel from "../../islands/screens/detail/margin.tsx";
import CostsSection from "../../islands/screens/price-desk/costs.tsx";
import type { SectionProps } from "../../islands/ui/price-sheet/section-props.ts";
import type { BillResult, CostLine, DriftReport, Margins } from "../../islands/lib/wire.ts";
import { renderPart, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const HOUR = 3600;
const FROM = Date.UTC(2026, 10, 20, 10) / 1000;
const TO = FROM + 2 * HOUR;
/** Units of a dollar. */
const DOLLAR = 500_000;

type Row = Margins["rows"][number];

const row = (part: Partial<Row>): Row => ({
  id: "1",
  name: "one",
  calls: 10,
  known_calls: 10,
  revenue: DOLLAR,
  known_revenue: DOLLAR,
  cost: DOLLAR / 4,
  lost: 0,
  margin: (DOLLAR * 3) / 4,
  ...part,
});

function margins(part: Partial<Margins> = {}): Margins {
  return {
    from: FROM,
    to: TO,
    step: "hour",
    by: "channel",
    at: [FROM, FROM + HOUR],
    bars: {
      known_revenue: [DOLLAR, DOLLAR],
      unknown_revenue: [0, DOLLAR / 2],
      cost: [DOLLAR / 4, DOLLAR / 4],
      margin: [(DOLLAR * 3) / 4, (DOLLAR * 3) / 4],
    },
    total: {
      calls: 23,
      known_calls: 20,
      revenue: DOLLAR * 2.5,
      known_revenue: DOLLAR * 2,
      cost: DOLLAR / 2,
      lost: DOLLAR / 10,
      margin: DOLLAR * 1.5,
    },
    rows: [
      row({ id: "2", name: "dear", cost: DOLLAR * 2, margin: -DOLLAR }),
      row({}),
      row({ id: "3", name: "", known_calls: 0, known_revenue: 0, cost: 0, margin: 0 }),
    ],
    others: 0,
    ...part,
  };
}

/** What is out of sight is not asked for: here everything is in sight. */
const observer = globalThis.IntersectionObserver;
beforeAll(() => void Reflect.deleteProperty(globalThis, "IntersectionObserver"));
afterAll(() => {
  globalThis.IntersectionObserver = observer;
});

function openMargins(answer: unknown, canWrite = true): Island {
  return renderPart(
    <MarginPanel from={FROM} to={TO} step="hour" canWrite={canWrite} onRange={() => undefined} />,
    { answers: { "GET /api/data/margin": answer } },
  );
}

const cells = (table: HTMLElement) =>
  within(table)
    .getAllByRole("row")
    .slice(1)
    .map((each) => [...each.querySelectorAll("th, td")].map((cell) => cell.textContent));

describe("the margin panel", () => {
  test("says the margin, and what it leaves out; a loss stands out, an unknown cost is none of both", async () => {
    const island = openMargins({ success: true, data: margins() });
    const chart = await screen.findByRole("figure", { name: "Margin" });
    expect(within(chart).getByText("Margin $1.50 (75%): revenue $2.00, cost $0.50")).toBeTruthy();
    expect(
      screen.getByText("The cost of 3 calls (revenue $0.50) is not known; they are in no margin."),
    ).toBeTruthy();
    expect(screen.getByText(/^Nobody paid for \$0\.10 of the cost/)).toBeTruthy();
    expect(cells(screen.getByRole("table"))).toEqual([
      ["dearBelow cost", "$1.00", "$2.00", "−$1.00 -100%"],
      ["one", "$1.00", "$0.25", "$0.75 75%"],
      ["Deleted channel 3", "$1.00", "Unknown", "–"],
    ]);
    expect(island.requests.map(({ query }) => query)).toEqual([
      {
        start_timestamp: String(FROM),
        end_timestamp: String(TO - 1),
        granularity: "hour",
        by: "channel",
        time_zone: "UTC",
      },
    ]);
  });

  test("splits by model, group and day; days without calls are left out", async () => {
    const island = openMargins((sent: { query: Record<string, string> }) => ({
      success: true,
      data: margins({
        by: sent.query["by"] as Margins["by"],
        rows:
          sent.query["by"] === "day"
            ? [row({ id: String(FROM), name: "" }), row({ id: String(TO), name: "", calls: 0, cost: 0 })]
            : [row({ name: "gpt-4o" })],
      }),
    }));
    await screen.findByRole("table");
    for (const [name, first] of [
      ["Model", "gpt-4o"],
      ["Group", "gpt-4o"],
      ["Day", expect.stringContaining("20")],
    ] as const) {
      const button = screen.getByRole("button", { name });
      await island.user.click(button);
      await settle();
      expect(screen.getByRole("button", { name }).getAttribute("aria-pressed")).toBe("true");
      expect(cells(screen.getByRole("table"))).toEqual([[first, "$1.00", "$0.25", "$0.75 75%"]]);
    }
    expect(island.requests.map(({ query }) => query["by"])).toEqual(["channel", "model", "group", "day"]);
  });

  test("a loss is a loss, without a percentage that could be read as a gain", async () => {
    const total = { ...margins().total, cost: DOLLAR * 3, margin: -DOLLAR };
    openMargins({ success: true, data: margins({ total }) });
    expect(await screen.findAllByText("Loss $1.00: revenue $2.00, cost $3.00")).not.toHaveLength(0);
  });

  test.each([true, false])("without any cost there is no margin to show (root: %p)", async (canWrite) => {
    const nothing = { ...margins().total, known_calls: 0, cost: 0, margin: 0 };
    openMargins({ success: true, data: margins({ total: nothing }) }, canWrite);
    expect(await screen.findByText(/No costs are known yet/)).toBeTruthy();
    const link = screen.queryByRole("link", { name: "Enter what upstreams charge" });
    expect(link?.getAttribute("href")).toBe(canWrite ? "/prices?section=costs" : undefined);
  });

  test("a failure is told and can be tried again", async () => {
    const island = openMargins({ success: false, message: "too many bars" });
    expect(await screen.findByText("too many bars")).toBeTruthy();
    island.answer("GET /api/data/margin", { success: true, data: margins() });
    await island.user.click(screen.getByRole("button", { name: "Retry" }));
    expect(await screen.findByRole("table")).toBeTruthy();
  });
});

const line = (part: Partial<CostLine>): CostLine =>
  ({
    id: 1,
    channel_id: 4,
    model: "gpt-4o",
    row: { in: 2.5, out: 10 },
    factor: 1,
    group_ratio: 1,
    source: "manual",
    note: "",
    valid_from: FROM - 30 * 86_400,
    created_at: FROM - 30 * 86_400,
    in_force: true,
    ...part,
  }) as CostLine;

const figures = {
  billed_tokens: 1000,
  billed_calls: 2,
  reckoned_tokens: 900,
  reckoned_calls: 2,
  unknown_calls: 0,
};
const DRIFT: DriftReport = {
  channel_id: 4,
  source: "openai-costs",
  from: FROM - 86_400,
  to: TO,
  total: {
    ...figures,
    billed: 3_000_000_000,
    reckoned: 2_000_000_000,
    drift: 1_000_000_000,
    token_drift: 250_000_000,
    price_drift: 750_000_000,
    is_within: false,
  },
  models: [
    {
      ...figures,
      model: "gpt-4o",
      billed: 3_000_000_000,
      reckoned: 2_000_000_000,
      drift: 1_000_000_000,
      token_drift: 250_000_000,
      price_drift: 750_000_000,
      is_within: false,
      offer: { model: "gpt-4o", row: { in: 3, out: 12 }, factor: 1, group_ratio: 1 },
    },
  ],
  days: [
    {
      ...figures,
      day: FROM - (FROM % 86_400),
      model: "gpt-4o",
      billed: 3_000_000_000,
      reckoned: null,
      drift: null,
      token_drift: null,
      price_drift: null,
      is_within: true,
    },
  ],
  others: 0,
  matched_by_id: 1,
  unmatched_ids: 1,
};

function openCosts(part: { canApply?: boolean; rows?: CostLine[] } & IslandOptions = {}): Island {
  const { canApply = true, rows = [line({})], ...options } = part;
  const props = { canApply } as SectionProps;
  return renderPart(<CostsSection {...props} />, {
    url: "/prices?section=costs",
    answers: {
      "GET /api/channel": {
        success: true,
        data: [
          { id: 4, name: "east" },
          { id: 5, name: "west" },
        ],
      },
      "GET /api/cost": { success: true, data: rows },
      "GET /api/cost/import": { success: true, data: [] },
      "GET /api/cost/drift": { success: true, data: DRIFT },
    },
    ...options,
  });
}
/** Of the section under that heading. */
function tableOf(heading: string): HTMLElement {
  const table = document.querySelector<HTMLElement>(`[aria-labelledby=${heading}] table`);
  if (!table) throw new Error(`no table below ${heading}`);
  return table;
}
const writes = ({ requests }: Island) => requests.filter(({ method }) => method !== "GET");

describe("costs on the price desk", () => {
  test("rows are said in words; those that came before are folded away", async () => {
    const island = openCosts({
      rows: [
        line({}),
        line({ id: 2, model: "*", row: null, factor: 0.8, group_ratio: 0.5, source: "pricing" }),
        line({ id: 3, model: "picture", row: { call: 0.04 } }),
        line({ id: 4, in_force: false, row: { in: 5, out: 15 } }),
      ],
    });
    await screen.findAllByRole("table");
    const shown = () => cells(tableOf("cost-rows")).map(([model, price, , source]) => [model, price, source]);
    expect(shown()).toEqual([
      ["gpt-4o", "In $2.50 · Out $10.00 a million", "Typed"],
      ["All models", "List price × 0.4", "Prices of the upstream instance"],
      ["picture", "$0.04 a call", "Typed"],
    ]);
    await island.user.click(screen.getByRole("button", { name: "Show 1 earlier row" }));
    expect(shown()).toHaveLength(4);
  });

  test("a row is typed in dollars or as the list times a factor; what is no number is refused before it is sent", async () => {
    const island = openCosts();
    island.answer("POST /api/cost", { success: true, data: { count: 1 } });
    await screen.findAllByRole("table");
    await island.user.click(screen.getByRole("button", { name: "Add" }));
    await island.user.type(screen.getByRole("textbox", { name: "In" }), "2,5");
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    expect(screen.getByRole("alert").textContent).toContain("numbers from 0 up");
    expect(writes(island)).toEqual([]);
    await island.user.selectOptions(screen.getByLabelText("Charged by"), "List price × factor");
    await island.user.clear(screen.getByRole("textbox", { name: "Factor" }));
    await island.user.type(screen.getByRole("textbox", { name: "Factor" }), "0.85");
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).map(({ path, body }) => [path, body])).toEqual([
      ["/api/cost", { channel_id: 4, rows: [{ model: "*", row: null, factor: 0.85, group_ratio: 1 }] }],
    ]);
  });

  test("drift tells tokens from prices; the offered row is taken as a cost, and days stand one by one", async () => {
    const island = openCosts();
    island.answer("POST /api/cost", { success: true, data: { count: 1 } });
    expect(await screen.findByText("Billed $3.00, reckoned $2.00, apart by $1.00.")).toBeTruthy();
    expect(screen.getByText(/1 calls were matched by request ID; 1 IDs belong to no call/)).toBeTruthy();
    const drift = () => cells(tableOf("cost-drift"));
    expect(drift()).toEqual([
      ["gpt-4o", "$3.00", "$2.00", "$1.00", "$0.25", "$0.75", "In $3.00 · Out $12.00 a millionUse"],
    ]);
    await island.user.click(screen.getByRole("button", { name: "Use" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([
      {
        channel_id: 4,
        source: "bill",
        rows: [{ model: "gpt-4o", row: { in: 3, out: 12 }, factor: 1, group_ratio: 1 }],
      },
    ]);
    await island.user.click(screen.getByRole("checkbox", { name: "By day" }));
    expect(drift()[0]?.slice(1)).toEqual(["$3.00", "?", "?", "?", "?"]);
    await island.user.click(screen.getByRole("button", { name: "7 days" }));
    await settle();
    const [first, last] = island.requests.filter(({ path }) => path.endsWith("/drift")).slice(-2);
    expect(Number(last?.query["start_timestamp"]) - Number(first?.query["start_timestamp"])).toBe(
      23 * 86_400,
    );
  });

  test("a bill is read from its provider's address or from a text; what is unreadable in it is told line by line", async () => {
    const island = openCosts();
    const result: BillResult = {
      added: 2,
      known: 1,
      replaced: 0,
      refused: [{ line: 3, problem: "amount" }],
      refused_count: 1,
      amount_nanos: 1_500_000_000,
    } as BillResult;
    island.answer("POST /api/cost/import", { success: true, data: result });
    await screen.findAllByRole("table");
    await island.user.click(screen.getByRole("button", { name: "Import a bill" }));
    const form = screen.getByLabelText("Kind of bill").closest(".rounded-box") as HTMLElement;
    await island.user.selectOptions(screen.getByLabelText("Kind of bill"), "OpenRouter activity");
    expect(
      (within(form).getByLabelText("Address", { selector: "[type=url]" }) as HTMLInputElement).value,
    ).toBe("https://openrouter.ai/api/v1/activity");
    await island.user.type(within(form).getByLabelText("The provider's admin key"), "secret");
    await island.user.click(within(form).getByRole("button", { name: "Import a bill" }));
    expect(await within(form).findByText(/2 new, 1 known, 0 replaced, 1 unreadable/)).toBeTruthy();
    expect(within(form).getByText("Line 3: no amount.")).toBeTruthy();
    await island.user.click(within(form).getByLabelText("File or paste"));
    await island.user.type(within(form).getByRole("textbox", { name: "Content" }), "text");
    await island.user.click(within(form).getByRole("button", { name: "Import a bill" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([
      {
        channel_id: 4,
        source: "openrouter",
        url: "https://openrouter.ai/api/v1/activity",
        key: "secret",
      },
      { channel_id: 4, source: "openrouter", text: "text" },
    ]);
  });

  test("administrators below root read all of it and write nothing; the address names the channel", async () => {
    const island = openCosts({ canApply: false, url: "/prices?section=costs&channel=5" });
    expect(await screen.findByText(/^Billed \$3/)).toBeTruthy();
    expect((screen.getByLabelText("Channel") as HTMLSelectElement).value).toBe("5");
    expect(
      island.requests
        .filter(({ path }) => path.startsWith("/api/cost"))
        .map(({ query }) => query["channel_id"]),
    ).toEqual(["5", "5", "5"]);
    for (const name of ["Add", "Fill", "Import a bill", "Use"])
      expect(screen.queryByRole("button", { name })).toBeNull();
  });
});
