// The dashboard as users and administrators meet it: first figures from the page, split, range, scope, drill-down.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { act, cleanup, fireEvent, screen, within } from "@testing-library/react";
import { renderToString } from "react-dom/server";
import { interceptLeaving } from "../../islands/lib/leave.ts";
// Loaded on demand: a slow first import must not decide a test.
import "../../islands/screens/detail/first-steps.tsx";
import CachePanel from "../../islands/screens/detail/cache.tsx";
import DetailScreen from "../../islands/screens/detail.tsx";
import { usageQueryOf, fits } from "../../islands/screens/detail/usage-query.ts";
import { forgetColours } from "../../islands/screens/detail/data.ts";
import type { DetailPageData } from "../../islands/screens/detail/data.ts";
import { t } from "../../islands/lib/i18n.ts";
import { tableOf } from "../../islands/screens/detail/export.ts";
import { renderPart, renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";
import type { UsageSummary } from "../../islands/lib/wire.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
const NOW_MS = Date.UTC(2026, 10, 20, 12);
const NEXT_HOUR = NOW_MS / 1000 + HOUR;

beforeEach(() => {
  forgetColours();
  spyOn(Date, "now").mockReturnValue(NOW_MS);
});
afterEach(() => jest.restoreAllMocks());

/** Three hours of use; quota in units of 1/500,000 dollar. */
function use(part: Partial<UsageSummary> = {}): UsageSummary {
  const from = NEXT_HOUR - 3 * HOUR;
  return {
    from,
    to: NEXT_HOUR,
    step: "hour",
    by: "model",
    figure: "quota",
    at: [from, from + HOUR, from + 2 * HOUR],
    lines: { quota: [500_000, 1_000_000, 750_000], count: [4, 10, 6], tokens: [4000, 12_000, 6000] },
    series: [
      { id: "gpt-4o", name: "gpt-4o", values: [400_000, 900_000, 500_000] },
      { id: "claude", name: "claude", values: [100_000, 50_000, 200_000] },
    ],
    otherSize: 3,
    errors: [0, 2, 0],
    ms: [4000, 30_000, 6000],
    previous: { quota: 3_000_000, count: 10, tokens: 0 },
    elapsed: 2 * HOUR,
    unpriced: [],
    ...part,
  };
}

function open(options: IslandOptions & { page?: Partial<DetailPageData> } = {}): Island {
  const { page, ...rest } = options;
  const data: DetailPageData = {
    isAdmin: false,
    isRoot: false,
    use: use(),
    used: 1_000_000,
    first: undefined,
    everyMinutes: 5,
    ...page,
  };
  const island = renderScreen(DetailScreen, {
    data,
    url: "/detail",
    user: { role: data.isAdmin ? 10 : 1, quota: 27_000_000 },
    ...rest,
  });
  island.answer("GET /api/data/summary", { success: true, data: data.use });
  island.answer("GET /api/data/self/summary", { success: true, data: data.use });
  return island;
}

const chart = (name: string) => screen.getByRole("figure", { name });
const tiles = () =>
  [...document.querySelectorAll(".tile")].map((tile) =>
    [...tile.querySelectorAll("dt, .tile-value, .tile-note")].map((each) => each.textContent),
  );
const hrefs = (name: RegExp) =>
  new URL((screen.getByRole("link", { name }) as HTMLAnchorElement).href).searchParams.toString();

describe("the first paint", () => {
  test("needs no call: figures, comparison, chart, shares, failures and speed come with the page", () => {
    const island = open();
    expect(tiles()).toEqual([
      // 4.5 dollars in two hours: 54 a day.
      ["Balance", "$54.00", "Lasts about 1 day at this rate"],
      ["Spend", "$4.50", "25% less than before"],
      ["Requests", "20", "100% more than before"],
      ["Tokens", "22k", "New"],
      ["Average RPM / TPM", "0.167 / 183", "Per minute in this period"],
    ]);
    expect(
      within(chart("Spend over time")).getByText("$4.50 spent in the last 24 hours, 25% less than before"),
    ).toBeTruthy();
    const shares = within(screen.getByRole("list", { name: "Models by share" })).getAllByRole("button");
    expect(shares.map((each) => each.textContent)).toEqual([
      "gpt-4o$3.6080%",
      "claude$0.7016%",
      "Other (3)$0.204%",
    ]);
    expect(within(chart("Failed requests")).getByText("2 failed requests, 9% of all")).toBeTruthy();
    expect(within(chart("Average response time")).getByText("2.0 s average response time")).toBeTruthy();
    expect(island.requests).toEqual([]);
  });

  test("is whole without script, in both languages", () => {
    open({ language: "zh" });
    const html = renderToString(<DetailScreen />);
    expect(html).toContain("最近 24 小时花费 $4.50，较上期减少 25%");
    expect(html).toContain("2 次请求失败，占 9%");
    expect(html).toMatch(/class="chart-series" data-slot="1" d="M5 300V/);
  });

  test("the summary for readers names the figure, the change and the leader", () => {
    open();
    const slider = screen.getByRole("slider", { name: /^Spend over time/ });
    expect(slider.getAttribute("aria-valuetext")).toBe(
      "$4.50 spent in the last 24 hours, 25% less than before. Most of it: gpt-4o, 80%.",
    );
  });

  test("raw quota is shown where the site shows no money", () => {
    open({ status: { display_in_currency: false } });
    expect(tiles()[1]?.[1]).toBe("2.25M");
    // In full on the hover, as everywhere that a number is shortened.
    expect(screen.getByText("2.25M").title).toContain("2,250,000");
    expect(screen.getByText("22k").title).toBe("22,000");
    const sentence = within(chart("Spend over time")).getByText(/^2\.25M/);
    expect(sentence.title).toBe("2,250,000");
  });
});

describe("drilling down", () => {
  test("Enter on a bar opens the log of that hour; the cursor is shared by all charts", async () => {
    const left: string[] = [];
    interceptLeaving(
      (url) => left.push(url),
      () => {},
    );
    const { user } = open();
    act(() => screen.getByRole("slider", { name: /^Spend over time/ }).focus());
    await user.keyboard("{End}{ArrowLeft}");
    const spoken = (name: RegExp) => screen.getByRole("slider", { name }).getAttribute("aria-valuetext");
    expect(spoken(/^Spend over time/)).toBe(
      "11-20 11:00 – 12:00: $2.00, gpt-4o $1.80, claude $0.10, Other (3) $0.10",
    );
    expect(spoken(/^Failed requests/)).toBe("11-20 11:00 – 12:00: 2");
    expect(spoken(/^Average response time/)).toBe("11-20 11:00 – 12:00: 3.0 s");
    await user.keyboard("{Enter}");
    const from = NEXT_HOUR - 2 * HOUR;
    expect(left).toEqual([`/log?type=2&start_timestamp=${from}&end_timestamp=${from + HOUR - 1}`]);
    expect(hrefs(/^Usage log of 11-20 11:00/)).toBe(
      `type=2&start_timestamp=${from}&end_timestamp=${from + HOUR - 1}`,
    );
    expect(hrefs(/^Failed requests in the log/)).toContain("type=5&start_timestamp=" + from);
  });

  test("a share leads to the log of its model; with one series alone the chart does so too", () => {
    open();
    const range = `start_timestamp=${NEXT_HOUR - 3 * HOUR}&end_timestamp=${NEXT_HOUR - 1}`;
    expect(hrefs(/^Usage log of claude/)).toBe(`type=2&${range}&model_name=claude`);
    fireEvent.click(screen.getByRole("button", { name: /^claude/ }), { altKey: true });
    expect(hrefs(/^Open in the usage log/)).toBe(`type=2&${range}&model_name=claude`);
    expect(within(chart("Spend over time")).getByText("$0.70 spent in the last 24 hours")).toBeTruthy();
    // Once more brings everybody back.
    fireEvent.click(screen.getByRole("button", { name: /^claude/ }), { altKey: true });
    expect(screen.getAllByRole("button", { pressed: true }).length).toBe(4);
  });

  test("switching a series off keeps every colour where it is", async () => {
    const { user } = open();
    const slots = () =>
      [...chart("Spend over time").querySelectorAll(".chart-series")].map((each) =>
        each.getAttribute("data-slot"),
      );
    expect(slots()).toEqual(["0", "2", "1"]);
    await user.click(screen.getByRole("button", { name: /^gpt-4o/ }));
    expect(slots()).toEqual(["0", "2"]);
  });

  test("a dragged stretch becomes the range of the address", async () => {
    const island = open();
    const plot = screen.getByRole("slider", { name: /^Spend over time/ });
    plot.getBoundingClientRect = () => ({ left: 0, width: 300, top: 0, height: 300 }) as DOMRect;
    fireEvent.pointerDown(plot, { button: 0, clientX: 20, pointerId: 1 });
    fireEvent.pointerMove(plot, { clientX: 150, pointerId: 1 });
    fireEvent.pointerUp(plot, { clientX: 150, pointerId: 1 });
    await settle();
    const from = NEXT_HOUR - 3 * HOUR;
    expect(location.search).toBe(`?start_timestamp=${from}&end_timestamp=${from + 2 * HOUR}`);
    expect(island.requests[0]?.query).toMatchObject({
      start_timestamp: String(from),
      end_timestamp: String(from + 2 * HOUR - 1),
      granularity: "hour",
    });
  });
});

describe("the question in the address", () => {
  test("figure, split, range and step are asked of the server and stand in the address", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Requests" }));
    await settle();
    await island.user.click(screen.getByRole("link", { name: "API keys" }));
    await settle();
    await island.user.selectOptions(screen.getByRole("combobox", { name: "Time range" }), "7d");
    await settle();
    expect(location.search).toBe("?show=count&by=key&range=7d");
    expect(island.requests.map(({ path }) => path)).toEqual(Array(3).fill("/api/data/self/summary"));
    expect(island.requests[2]?.query).toEqual({
      start_timestamp: String(Date.UTC(2026, 10, 14) / 1000),
      end_timestamp: String(Date.UTC(2026, 10, 21) / 1000 - 1),
      granularity: "day",
      figure: "count",
      by: "key",
      time_zone: "UTC",
    });
  });

  test("a step that would make too many bars is not offered, and does not outlive its range", async () => {
    const { user } = open({ url: "/detail?granularity=hour" });
    const step = () => screen.getByRole("combobox", { name: "Granularity" }) as HTMLSelectElement;
    expect(step().value).toBe("hour");
    await user.selectOptions(screen.getByRole("combobox", { name: "Time range" }), "30d");
    await settle();
    expect(location.search).toBe("?range=30d");
    expect([...step().options].map((each) => [each.text, each.disabled])).toEqual([
      ["Automatic (Day)", false],
      ["Hour", true],
      ["Day", false],
      ["Week", false],
    ]);
  });

  test("a refused question says why, keeps what is shown, and can be asked again", async () => {
    const island = open();
    island.answer("GET /api/data/self/summary", {
      success: false,
      code: "data_range_long",
      message: "The time range may not exceed one month",
    });
    fireEvent.keyDown(document.body, { key: "r" });
    await settle();
    expect(
      within(screen.getByRole("alert")).getByText("The time range may not exceed one month"),
    ).toBeTruthy();
    expect(tiles()[1]?.[1]).toBe("$4.50");
    island.answer("GET /api/data/self/summary", { success: true, data: use({ previous: use().previous }) });
    await island.user.click(screen.getByRole("button", { name: "Retry" }));
    await settle();
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("the site's default granularity brings its range along", () => {
    for (const [step, preset, days] of [
      ["hour", "24h", 1],
      ["day", "7d", 7],
      ["week", "30d", 30],
    ] as const) {
      const asked = usageQueryOf({}, NOW_MS, "UTC", { data_export_default_time: step }, false);
      expect([asked.step, asked.range.preset, asked.range.to - asked.range.from]).toEqual([
        step,
        preset,
        days * DAY,
      ]);
    }
    // A chosen range decides the step by itself.
    expect(
      usageQueryOf({ range: "24h" }, NOW_MS, "UTC", { data_export_default_time: "week" }, false).step,
    ).toBe("hour");
  });

  test("ranges are whole bars of the visitor's calendar, never more than users may ask for", () => {
    const clock = (seconds: number) =>
      new Date(seconds * 1000).toLocaleString("sv-SE", { timeZone: "America/New_York" });
    const november = Date.UTC(2025, 10, 20, 3);
    const { range } = usageQueryOf({ range: "7d" }, november, "America/New_York", {}, false);
    expect([clock(range.from), clock(range.to)]).toEqual(["2025-11-13 00:00:00", "2025-11-20 00:00:00"]);
    const month = usageQueryOf({ range: "30d" }, november, "America/New_York", {}, false).range;
    expect(month.to - month.from).toBe(30 * DAY);
    expect(fits("hour", { from: 0, to: 120 * HOUR })).toBe(true);
    expect(fits("hour", { from: 0, to: 121 * HOUR })).toBe(false);
  });
});

describe("while the page is looked at", () => {
  const later = async (minutes: number) => {
    act(() => void jest.advanceTimersByTime(minutes * 60_000));
    for (let round = 0; round < 8; round++) await act(async () => undefined);
  };
  afterEach(() => jest.useRealTimers());

  test("relative ranges are asked again after the operator's interval, fixed ones are not", async () => {
    jest.useFakeTimers({ now: NOW_MS });
    const island = open({ page: { everyMinutes: 3 } });
    await later(2.9);
    expect(island.requests.length).toBe(0);
    await later(0.2);
    expect(island.requests.map(({ path }) => path)).toEqual(["/api/data/self/summary"]);
    island.unmount();
    const fixed = open({ url: `/detail?start_timestamp=${NEXT_HOUR - 3 * HOUR}&end_timestamp=${NEXT_HOUR}` });
    await later(60);
    expect(fixed.requests.length).toBe(0);
  });

  test("nothing is asked while nobody looks", async () => {
    jest.useFakeTimers({ now: NOW_MS });
    const island = open({ page: { everyMinutes: 1 } });
    Object.defineProperty(document, "hidden", { configurable: true, value: true });
    await later(10);
    expect(island.requests.length).toBe(0);
    Reflect.deleteProperty(document, "hidden");
    await later(1);
    expect(island.requests.length).toBe(1);
  });
});

describe("whose use", () => {
  test("users have no choice, and see neither users nor channels", () => {
    open({ url: "/detail?by=user&username=bob" });
    expect(screen.queryByRole("combobox", { name: "Whose usage" })).toBeNull();
    expect(screen.getAllByRole("link", { current: "page" }).map((each) => each.textContent)).toEqual([
      "Models",
    ]);
    expect(within(screen.getByRole("navigation", { name: "Split by" })).getAllByRole("link").length).toBe(2);
  });

  test("administrators see everybody, themselves or one user by name", async () => {
    const island = open({ page: { isAdmin: true } });
    expect(tiles()[0]).toEqual(["Your balance", "$54.00", "Used in total $2.00"]);
    const ask = async (name: string) => {
      const field = screen.getByRole("searchbox", { name: "Username" });
      await island.user.clear(field);
      await island.user.type(field, `${name}{Enter}`);
      await settle();
    };
    await ask("bob");
    expect(location.search).toBe("?username=bob");
    expect(island.requests.at(-1)).toMatchObject({ path: "/api/data/summary", query: { username: "bob" } });
    expect(hrefs(/^Open in the usage log/)).toContain("username=bob");
    await island.user.selectOptions(screen.getByRole("combobox", { name: "Whose usage" }), "me");
    await settle();
    expect(location.search).toBe("?scope=me");
    expect(island.requests.at(-1)?.path).toBe("/api/data/self/summary");
    expect(hrefs(/^Open in the usage log/)).toContain("username=ada");
    await island.user.selectOptions(screen.getByRole("combobox", { name: "Whose usage" }), "all");
    await settle();
    expect(island.requests.at(-1)?.query.username).toBeUndefined();
  });

  test("names that are gone are told by their number, and are no way to the log", () => {
    const series = [
      { id: "9", name: "bob", values: [1, 1, 1] },
      { id: "12", name: "", values: [2, 0, 0] },
    ];
    open({ page: { isAdmin: true, use: use({ by: "user", series, otherSize: 0 }) }, url: "/detail?by=user" });
    const list = screen.getByRole("list", { name: "Users by share" });
    expect(within(list).getByText("Deleted user 12")).toBeTruthy();
    expect(
      within(list)
        .getAllByRole("link")
        .map((each) => each.getAttribute("aria-label")),
    ).toEqual(["Usage log of bob"]);
  });
});

describe("what others made up", () => {
  const evil = [
    { id: "<script>alert(1)</script>", name: "<script>alert(1)</script>", values: [400_000, 0, 0] },
    { id: "=HYPERLINK(1)", name: "=HYPERLINK(1)", values: [0, 300_000, 0] },
    { id: "\u202Etxt.exe", name: "\u202Etxt.exe", values: [0, 0, 1] },
    { id: "x".repeat(5000), name: "x".repeat(5000), values: [1, 1, 1] },
  ];

  test("names of models are text wherever they stand, and find their own calls in the log", async () => {
    const { user } = open({ page: { use: use({ series: evil }) } });
    expect(document.querySelector("script")).toBeNull();
    await user.click(within(chart("Spend over time")).getByText("Show as table"));
    expect(screen.getByRole("columnheader", { name: "<script>alert(1)</script>" })).toBeTruthy();
    const link = screen.getByRole("link", { name: "Usage log of <script>alert(1)</script>" });
    expect(new URL((link as HTMLAnchorElement).href).searchParams.get("model_name")).toBe(
      "<script>alert(1)</script>",
    );
  });

  test("the exported table adds up to the figures, and its heads are no formulas", () => {
    open();
    const shown = use({ series: evil });
    const { name, text } = tableOf(t, shown, 500_000, "UTC");
    const [heads = "", ...rows] = text.replace("\uFEFF", "").trimEnd().split("\r\n");
    expect(name).toBe(`usage-by-model-${shown.from}-${shown.to}.csv`);
    expect(heads.split(",").slice(0, 5)).toEqual([
      "Time (UTC)",
      "Total · Spend (USD)",
      "<script>alert(1)</script>",
      "'=HYPERLINK(1)",
      "\u202Etxt.exe",
    ]);
    const cells = rows.map((row) => row.split(",").slice(1).map(Number));
    expect(cells.map(([total]) => total)).toEqual([1, 2, 1.5]);
    for (const [total = 0, ...parts] of cells) {
      const sum = parts.slice(0, -1).reduce((all, part) => all + part, 0);
      expect(sum).toBeCloseTo(total, 9);
    }
    expect(cells.map((row) => row.at(-1))).toEqual([0, 2, 0]);
  });
});

describe("without figures", () => {
  const nothing = use({
    lines: { quota: [0, 0, 0], count: [0, 0, 0], tokens: [0, 0, 0] },
    series: [],
    otherSize: 0,
    errors: [0, 0, 0],
    ms: [0, 0, 0],
    previous: { quota: 0, count: 0, tokens: 0 },
  });

  test("an installation without any use shows the steps to the first call, done ones ticked", async () => {
    open({
      page: { isAdmin: true, use: nothing, first: { channel: true, unpriced: [], key: false, call: false } },
    });
    const steps = within(await screen.findByRole("region", { name: "A few steps to your first figures" }));
    expect(steps.getAllByRole("listitem").map((each) => each.dataset["done"] === "true")).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(steps.queryByRole("link", { name: "Add channel" })).toBeNull();
    expect(steps.getByRole("link", { name: "Create key" }).getAttribute("href")).toBe("/token?new=1");
    expect(steps.getByText(/curl http:\/\/localhost\/v1\/chat\/completions/)).toBeTruthy();
    expect(screen.queryByRole("slider")).toBeNull();
  });

  test("the steps tick themselves while somebody looks, and the figures come on request", async () => {
    jest.useFakeTimers({ now: NOW_MS });
    const island = open({
      page: { isAdmin: true, use: nothing, first: { channel: true, unpriced: [], key: true, call: false } },
    });
    const done = (call: boolean) => ({ channel: true, unpriced: [], key: true, call });
    island.answer("GET /api/data/self/first_steps", { success: true, data: done(false) });
    const pass = async () => {
      act(() => void jest.advanceTimersByTime(4000));
      for (let round = 0; round < 8; round++) await act(async () => undefined);
    };
    const asked = () => island.requests.filter(({ path }) => path.endsWith("/first_steps")).length;
    await pass();
    expect([asked(), screen.queryByText("The first call has come in.")]).toEqual([1, null]);
    island.answer("GET /api/data/self/first_steps", { success: true, data: done(true) });
    await pass();
    expect(screen.getByText("The first call has come in.")).toBeTruthy();
    await pass();
    expect(asked()).toBe(2);
    island.answer("GET /api/data/summary", { success: true, data: use() });
    act(() => screen.getByRole("button", { name: "Show the figures" }).click());
    for (let round = 0; round < 8; round++) await act(async () => undefined);
    jest.useRealTimers();
    expect(screen.queryByText("A few steps to your first figures")).toBeNull();
    expect(chart("Spend over time")).toBeTruthy();
  });

  test("models without a price are named; only who may set prices gets the button", () => {
    const first = { channel: true, unpriced: ["house-model"], key: true, call: false };
    const button = () => screen.queryByRole("button", { name: "Set prices" });
    open({ page: { isAdmin: true, use: nothing, first } });
    expect(screen.getByText(/1 model has no price.*house-model/)).toBeTruthy();
    expect(button()).toBeNull();
    cleanup();
    open({ page: { isAdmin: true, use: nothing, first }, user: { role: 100 } });
    expect(button()).toBeTruthy();
  });

  test("users are not asked to connect providers", () => {
    open({ page: { use: nothing, first: { key: true, call: false } } });
    expect(screen.queryByText("Connect a provider")).toBeNull();
    expect(screen.getAllByRole("listitem").length).toBe(2);
  });

  test("a quiet range keeps its charts and says that nothing happened", () => {
    open({ page: { use: nothing } });
    expect(within(chart("Spend over time")).getByText("No requests in this period")).toBeTruthy();
    expect(within(chart("Failed requests")).getByText("No failed requests")).toBeTruthy();
    expect(tiles()[0]?.[2]).toBe("Used in total $2.00");
  });

  test("what the server refuses with the page is asked again, and its reason is shown instead of zeros", async () => {
    const island = renderScreen(DetailScreen, {
      data: {
        isAdmin: false,
        isRoot: false,
        use: undefined,
        used: 0,
        first: undefined,
        everyMinutes: 5,
      } satisfies DetailPageData,
      url: "/detail?start_timestamp=1000&end_timestamp=9000000",
    });
    island.answer("GET /api/data/self/summary", {
      success: false,
      code: "data_range_long",
      message: "too long",
    });
    await settle();
    expect(within(screen.getByRole("alert")).getByText("too long")).toBeTruthy();
    expect(tiles()).toEqual([]);
  });
});

describe("prompt caches", () => {
  const sums = { calls: 4, input: 1000, read: 600, saved: 540_000 };
  const rates = (by: string, rows: object[]) => ({
    success: true,
    data: { from: 0, to: 1, by, total: sums, rows, others: 0 },
  });
  // Nothing here scrolls: where nothing observes the panel asks at once.
  const observer = Reflect.getOwnPropertyDescriptor(globalThis, "IntersectionObserver");
  beforeEach(() => void Reflect.deleteProperty(globalThis, "IntersectionObserver"));
  afterEach(() => void (observer && Object.defineProperty(globalThis, "IntersectionObserver", observer)));

  test("administrators read hit rate and money saved by channel, and by what else they ask for", async () => {
    const island = renderPart(<CachePanel from={NEXT_HOUR - DAY} to={NEXT_HOUR} />);
    island.answer("GET /api/data/cache", rates("channel", [{ id: "7", name: "Azure", ...sums }]));
    const panel = within(await screen.findByRole("region", { name: "Prompt caches" }));
    expect(panel.getByText(/^60% of the prompts came from a cache; without it .* \$1\.08 more/)).toBeTruthy();
    expect(panel.getByRole("row", { name: /Azure.*1,000.*60%.*\$1\.08/ })).toBeTruthy();
    const loss = { ...sums, saved: -500_000, kept: 3, switched: 1 };
    island.answer("GET /api/data/cache", rates("rule", [{ id: "prefix", name: "prefix", ...loss }]));
    await island.user.click(panel.getByRole("button", { name: "Rule" }));
    expect(await panel.findByRole("row", { name: /prefix.*3.*1.*1,000.*60%.*−\$1\.00/ })).toBeTruthy();
    expect(island.requests.filter(({ path }) => path === "/api/data/cache").length).toBe(2);
  });
});
