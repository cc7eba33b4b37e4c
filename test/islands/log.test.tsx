// The usage log as users and administrators meet it: filters, figures, histogram, live tail, detail, user panel, export.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import LogScreen from "../../islands/screens/log.tsx";
import type { LogOther, LogPageData } from "../../islands/screens/log/row.ts";
import { rowKeyOf } from "../../islands/lib/log-key.ts";
import { stepsOf } from "../../islands/screens/log/steps.ts";
import { setQuery } from "../../islands/lib/url-state.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions, SentRequest } from "./render.tsx";
import type { LogRow } from "../../islands/lib/wire.ts";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;

beforeEach(() => localStorage.clear());
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

const OTHER: LogOther = {
  frt: 500,
  client_dialect: "openai-chat",
  upstream_dialect: "anthropic",
  is_model_mapped: true,
  upstream_model_name: "claude-sonnet-4",
  cache_tokens: 200,
  dropped: ["logprobs", "seed"],
  end_reason: "completed",
  admin_info: { use_channel: ["12", "7"] },
  attempts: [
    { channel: 12, ms: 310, code: "upstream_limited", status: 429 },
    { channel: 7, ms: 150, code: "ok" },
  ],
  cost: { fresh: 800, cacheRead: 200, output: 300, modelRatio: 1.25, completionRatio: 4, cacheRatio: 0.5 },
};

function row(id: number, part: Partial<LogRow> = {}, other: LogOther = OTHER): LogRow {
  return {
    use_time: 2,
    token_id: 1,
    id,
    created_at: NOW - id * 60,
    type: 2,
    user_id: 9,
    username: "bob",
    token_name: "laptop",
    group: "vip",
    model_name: "gpt-4o",
    channel: 7,
    channel_name: "Azure east",
    is_stream: true,
    use_time_ms: 4200,
    prompt_tokens: 1000,
    completion_tokens: 300,
    quota: 2625,
    content: "模型倍率 1.25",
    request_id: `req-${id}`,
    ...part,
    other: JSON.stringify(other),
  };
}

const ERROR_ROW = row(
  2,
  { type: 5, quota: 0, content: "上游服务返回了错误", prompt_tokens: 0 },
  {
    error_code: "upstream_unavailable",
    error_type: "upstream_error",
    status_code: 503,
    admin_info: { use_channel: ["7"], internal: "connect ECONNREFUSED" },
  },
);
const TOP_UP = row(3, { type: 1, model_name: "", token_name: "", channel: 0, content: "通过兑换码充值" }, {});

const HISTOGRAM = {
  from: NOW - 3 * 3600,
  step: 3600,
  buckets: [
    { at: NOW - 3 * 3600, count: 4, errors: 0 },
    { at: NOW - 2 * 3600, count: 10, errors: 2 },
    { at: NOW - 3600, count: 0, errors: 0 },
  ],
  isCut: false,
};

function pageData(part: Partial<LogPageData> = {}): LogPageData {
  return {
    rows: [row(1), ERROR_ROW, TOP_UP],
    total: 3,
    pageSize: 10,
    stat: { quota: 5_000_000, rpm: 12, tpm: 3456 },
    histogram: HISTOGRAM,
    isAdmin: true,
    ...part,
  };
}

function open(options: IslandOptions & { page?: Partial<LogPageData> } = {}): Island {
  const { page, ...rest } = options;
  const data = pageData(page);
  const island = renderScreen(LogScreen, {
    data,
    url: "/log",
    user: { role: data.isAdmin ? 10 : 1 },
    ...rest,
  });
  const list = { success: true, data: { items: data.rows, total: data.total } };
  for (const prefix of ["/api/log", "/api/log/self"]) {
    island.answer(`GET ${prefix}`, list);
    island.answer(`GET ${prefix}/stat`, { success: true, data: data.stat });
    island.answer(`GET ${prefix}/histogram`, { success: true, data: data.histogram });
  }
  return island;
}

const heads = () => screen.getAllByRole("columnheader").map((each) => each.textContent);
const tableRows = () => within(screen.getByRole("table", { name: "Usage log" })).getAllByRole("row");
const listCalls = (island: Island) =>
  island.requests.filter(
    ({ path }) => path === "/api/log" || path === "/api/log/" || path === "/api/log/self",
  );

describe("where a session stays", () => {
  const bound = (part: object): LogOther => ({
    ...OTHER,
    admin_info: {
      use_channel: ["7"],
      multi_key_index: 2,
      channel_affinity: {
        rule_name: "session-header",
        key_source: "session-id",
        key_fp: "0a1b2c3d",
        state: "kept",
        ...part,
      },
    },
  });

  test("a star in the row; rule, key, and why it went elsewhere in the detail", async () => {
    const rows = [
      row(1, {}, bound({})),
      row(2, {}, bound({ state: "switched", reason: "resting", from_channel: 4 })),
    ];
    const { user } = open({ page: { rows, total: 2 } });
    expect(screen.getAllByRole("img", { name: "Served where its session is bound" })).toHaveLength(1);
    await user.click(tableRows()[2] ?? document.body);
    const part = await screen.findByRole("region", { name: "Session affinity" });
    expect(part.textContent).toContain("Elsewhere than its session was bound (channel 4)");
    expect(part.textContent).toContain("It was resting.");
    expect(part.textContent).toContain("session-header session-id");
    expect(part.textContent).toContain("0a1b2c3d");
    expect(within(part).getByText("3")).toBeTruthy();
  });
});

describe("what is shown", () => {
  test("the first paint needs no call: figures, histogram and rows come with the page", () => {
    const island = open();
    expect(island.requests).toEqual([]);
    expect(screen.getByText("$10.00")).toBeTruthy();
    expect(screen.getByText("3,456")).toBeTruthy();
    expect(screen.getByText("16 entries, 2 of them errors")).toBeTruthy();
    const first = screen.getByRole("row", { name: /laptop.*gpt-4o.*\$0\.0052/ });
    expect(first.textContent).toContain("→ claude-sonnet-4");
    expect(first.textContent).toContain("12 → 7");
    expect(first.textContent).toContain("cached 200");
    expect(screen.getByRole("row", { name: /Top-up.*通过兑换码充值/ })).toBeTruthy();
  });

  test("users see neither users nor channels, and cannot filter by them", async () => {
    const island = open({ page: { isAdmin: false } });
    expect(heads().join()).not.toMatch(/User|Channel|Retries/);
    await island.user.click(screen.getByRole("button", { name: "Add filter" }));
    expect(screen.getAllByRole("menuitem").map((each) => each.textContent)).toEqual([
      "API key",
      "Group",
      "Request ID",
    ]);
  });

  test("folded ids of users may repeat; the rows stay apart", () => {
    const twin = { ...row(1), created_at: NOW - 999 };
    expect(rowKeyOf(row(1), false)).not.toBe(rowKeyOf(twin, false));
    const log = spyOn(console, "error").mockImplementation(() => undefined);
    open({ page: { isAdmin: false, rows: [row(1), twin] } });
    expect(log).not.toHaveBeenCalled();
    expect(tableRows()).toHaveLength(3);
  });

  test("columns are remembered under the specification's key", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Columns" }));
    await island.user.click(await screen.findByRole("menuitemcheckbox", { name: "Group" }));
    expect(JSON.parse(localStorage.getItem("logs-table-columns") ?? "{}")).toMatchObject({ group: false });
    expect(heads()).not.toContain("Group");
  });
});

describe("filters", () => {
  test("every filter goes to the call by its own name, and to figures and histogram as well", async () => {
    const island = open({ url: "/log?channel=7&username=bob" });
    await island.user.click(screen.getByRole("link", { name: "Errors" }));
    await settle();
    await island.user.type(screen.getByRole("searchbox", { name: "Search models" }), "gpt%{Enter}");
    await settle();
    expect(location.search).toBe("?channel=7&username=bob&type=5&model_name=gpt%25");
    const last = listCalls(island).at(-1);
    expect(last?.query).toMatchObject({
      type: "5",
      model_name: "gpt%",
      username: "bob",
      channel: "7",
      p: "1",
      page_size: "10",
    });
    for (const path of ["/api/log/stat", "/api/log/histogram"]) {
      expect(island.requests.findLast((call) => call.path === path)?.query).toMatchObject({
        type: "5",
        channel: "7",
      });
    }
    const [from, to] = [Number(last?.query.start_timestamp), Number(last?.query.end_timestamp)];
    expect(to - from).toBe(7 * 86_400 + 60);
  });

  test("users ask their own calls, without the administrators' filters", async () => {
    const island = open({ page: { isAdmin: false }, url: "/log?username=bob&channel=7" });
    await island.user.click(screen.getByRole("link", { name: "Top-up" }));
    await settle();
    expect(island.requests.map(({ path }) => path).toSorted()).toEqual([
      "/api/log/self",
      "/api/log/self/histogram",
      "/api/log/self/stat",
    ]);
    for (const { query } of island.requests) {
      expect(query).not.toHaveProperty("username");
      expect(query).not.toHaveProperty("channel");
    }
  });

  test("a row's menu narrows the list to what the row has; users are not offered users and channels", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Actions for gpt-4o 1" }));
    expect(screen.getAllByRole("menuitem").map((each) => each.textContent)).toEqual([
      "Only gpt-4o",
      "Only laptop",
      "Only bob",
      "Only Channel 7",
      "Copy request ID",
    ]);
    await island.user.click(screen.getByRole("menuitem", { name: "Only Channel 7" }));
    await settle();
    expect(location.search).toBe("?channel=7");
    island.unmount();
    const own = open({ page: { isAdmin: false } });
    await own.user.click(screen.getByRole("button", { name: "Actions for gpt-4o 1" }));
    expect(screen.getAllByRole("menuitem")).toHaveLength(3);
    await own.user.click(screen.getByRole("menuitem", { name: "Copy request ID" }));
    expect(await navigator.clipboard.readText()).toBe("req-1");
  });

  test("turning a page asks for rows only; failing figures do not take the rows away", async () => {
    const island = open({ page: { total: 30 } });
    await island.user.keyboard("]");
    await settle();
    expect(island.requests.map(({ path, query }) => `${path.replace(/\/$/, "")} ${query.p}`)).toEqual([
      "/api/log 2",
    ]);
    island.answer("GET /api/log/stat", { success: false, message: "no figures", code: "x" });
    await island.user.click(screen.getByRole("link", { name: "Usage" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("no figures");
    expect(screen.getByRole("row", { name: /laptop.*gpt-4o.*\$0\.0052/ })).toBeTruthy();
  });

  test("a failed list keeps its rows and offers another try", async () => {
    const island = open();
    island.answer("GET /api/log", { success: false, message: "too many wildcards", code: "wildcards_many" });
    await island.user.click(screen.getByRole("link", { name: "Usage" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("too many wildcards");
    expect(screen.getByRole("row", { name: /gpt-4o.*\$0\.0052/ })).toBeTruthy();
    expect(screen.getByRole("button", { name: "Retry" })).toBeTruthy();
  });
});

describe("histogram", () => {
  test("one entry is told as one", () => {
    open({
      page: { histogram: { ...HISTOGRAM, buckets: [{ at: NOW - 3600, count: 1, errors: 0 }] } },
    });
    expect(screen.getByText("1 entry, 0 of them errors")).toBeTruthy();
  });

  const slider = () => screen.getByRole("slider", { name: /Entries over time/ });

  test("arrows move a speaking cursor, Shift widens it, Enter zooms into it, and there is a way back", async () => {
    const island = open();
    slider().focus();
    await island.user.keyboard("{Home}{ArrowRight}");
    expect(slider().getAttribute("aria-valuetext")).toBe(
      "11-20 10:00 – 11-20 11:00: 12 entries, 2 of them errors",
    );
    await island.user.keyboard("{Shift>}{ArrowRight}{/Shift}");
    expect(slider().getAttribute("aria-valuetext")).toBe(
      "11-20 10:00 – 11-20 12:00: 12 entries, 2 of them errors",
    );
    await island.user.keyboard("{Enter}");
    await settle();
    expect(location.search).toBe(`?start_timestamp=${NOW - 7200}&end_timestamp=${NOW}`);
    await island.user.click(screen.getByRole("button", { name: "Reset range" }));
    expect(location.search).toBe("");
  });

  test("dragging chooses a range", async () => {
    open();
    const plot = slider();
    plot.getBoundingClientRect = () => ({ left: 0, width: 300, top: 0, height: 56 }) as DOMRect;
    fireEvent.pointerDown(plot, { clientX: 10, button: 0, pointerId: 1 });
    fireEvent.pointerMove(plot, { clientX: 150, pointerId: 1 });
    fireEvent.pointerUp(plot, { clientX: 150, pointerId: 1 });
    await settle();
    expect(location.search).toBe(`?start_timestamp=${NOW - 3 * 3600}&end_timestamp=${NOW - 3600}`);
  });

  test("the same numbers stand in a table", () => {
    open();
    const table = screen.getByText("Show as table").closest("details");
    expect([...(table?.querySelectorAll("tbody tr") ?? [])].map((each) => each.textContent)).toEqual([
      "2026-11-20 09:0040",
      "2026-11-20 10:00122",
    ]);
  });
});

describe("live", () => {
  const poll = async () => {
    act(() => void jest.advanceTimersByTime(5000));
    for (let round = 0; round < 8; round++) await act(async () => undefined);
  };

  test("new rows appear above a line, without a click, and stop with the switch", async () => {
    jest.useFakeTimers();
    const island = open();
    fireEvent.click(screen.getByRole("button", { name: "Live" }));
    island.answer("GET /api/log", {
      success: true,
      data: { items: [row(50, { token_name: "fresh one" }), row(1), ERROR_ROW, TOP_UP], total: 4 },
    });
    await poll();
    const rows = tableRows().map((each) => each.textContent ?? "");
    expect(rows[1]).toContain("fresh one");
    expect(rows[2]).toBe("New above this line");
    expect(screen.getByText("1–4 of 4")).toBeTruthy();
    const before = island.requests.length;
    fireEvent.click(screen.getByRole("button", { name: "Stop live" }));
    await poll();
    expect(island.requests.length).toBe(before);
    expect(screen.queryByText("New above this line")).toBeNull();
  });

  test("ends where another page is turned to: what is new belongs on the first", async () => {
    jest.useFakeTimers();
    const island = open();
    fireEvent.click(screen.getByRole("button", { name: "Live" }));
    island.answer("GET /api/log", ({ query }: SentRequest) => ({
      success: true,
      data: { items: [query["p"] === "2" ? row(1, { token_name: "old one" }) : row(50)], total: 40 },
    }));
    act(() => setQuery({ p: 2 }));
    await poll();
    expect(screen.getByText("old one")).toBeTruthy();
    expect(screen.getByRole("button", { name: "Live" }).getAttribute("aria-pressed")).toBe("false");
    const before = island.requests.length;
    await poll();
    expect(island.requests.length).toBe(before);
    expect(screen.getByText("old one")).toBeTruthy();
  });

  test("while somebody reads a row, new ones wait for a click", async () => {
    jest.useFakeTimers();
    const island = open({ url: "/log?id=1" });
    fireEvent.click(screen.getByRole("button", { name: "Live", hidden: true }));
    island.answer("GET /api/log", {
      success: true,
      data: { items: [row(50, { token_name: "fresh one" }), row(1), ERROR_ROW, TOP_UP], total: 4 },
    });
    await poll();
    expect(screen.queryByText("fresh one")).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "Show 1 new entry", hidden: true }));
    expect(screen.getByText("fresh one")).toBeTruthy();
  });

  test("a failing poll says so and ends live", async () => {
    jest.useFakeTimers();
    const island = open();
    fireEvent.click(screen.getByRole("button", { name: "Live" }));
    island.answer("GET /api/log", { success: false, message: "gone", code: "x" });
    await poll();
    expect(screen.getByRole("alert").textContent).toContain("gone");
    expect(screen.getByRole("button", { name: "Live" }).getAttribute("aria-pressed")).toBe("false");
  });
});

describe("detail", () => {
  test("a click opens it under an address of its own; j and k walk, Enter widens, Escape leads back", async () => {
    const island = open();
    await island.user.click(screen.getByRole("row", { name: /gpt-4o.*\$0\.0052/ }));
    const dialog = await screen.findByRole("dialog", { name: "gpt-4o" });
    expect(location.search).toBe("?id=1");
    fireEvent.keyDown(dialog, { key: "j" });
    await settle();
    expect(location.search).toBe("?id=2");
    expect(screen.getByRole("region", { name: "Error" })).toBeTruthy();
    fireEvent.keyDown(screen.getByRole("dialog"), { key: "Enter" });
    expect(screen.getByRole("button", { name: "Narrow" })).toBeTruthy();
    fireEvent.keyDown(screen.getByRole("dialog"), { key: "k" });
    await settle();
    expect(location.search).toBe("?id=1");
    fireEvent(screen.getByRole("dialog"), new Event("cancel", { cancelable: true }));
    await settle();
    expect(location.search).toBe("");
  });

  test("the cost is an ordered sum that gives exactly what was charged", async () => {
    open({ url: "/log?id=1" });
    const sum = await screen.findByRole("region", { name: "How the cost came about" });
    // 800 × 1.25 + 200 × 0.625 + 300 × 5 = 2625
    expect(within(sum).getByRole("row", { name: /^Input 800/ }).textContent).toContain("$2.50 / 1M");
    expect(within(sum).getByRole("row", { name: /^Cached input 200/ })).toBeTruthy();
    expect(within(sum).getByRole("row", { name: /^Output 300/ }).textContent).toContain("$10.00 / 1M");
    expect(within(sum).getByRole("row", { name: /^Total/ }).textContent).toContain("$0.00525");
  });

  test("a ratio of the user's group and an automatic choice of the group are told", async () => {
    open({ url: "/log?id=1", page: { rows: [row(1, {}, { ...OTHER, user_group_ratio: 0.8, auto: true })] } });
    const sum = await screen.findByRole("region", { name: "How the cost came about" });
    expect(sum.textContent).toContain("The user’s group pays 0.8× in this group");
    expect(within(screen.getByRole("dialog")).getByText("chosen automatically")).toBeTruthy();
  });

  test("which rules acted and why stands below the sum, and a tier that was not given; broken rows show none", async () => {
    const cost = {
      ...(OTHER["cost"] as object),
      rules: [{ over: 900 }, { tier: ["flex", "batch"] }],
      asked: { tier: "flex" },
    };
    const island = open({ url: "/log?id=1", page: { rows: [row(1, {}, { ...OTHER, cost })] } });
    const texts = async () => {
      const sum = await screen.findByRole("region", { name: "How the cost came about" });
      return within(sum)
        .queryAllByRole("listitem")
        .map(({ textContent }) => textContent);
    };
    expect(await texts()).toEqual([
      "Rule: input 1,000 is over 900, long-context prices for the whole call",
      "Rule: service tier flex was asked for, prices of that tier",
    ]);
    island.unmount();
    const other = { ...OTHER, cost: { ...cost, rules: [], tier: "default" } };
    const next = open({ url: "/log?id=1", page: { rows: [row(1, {}, other)] } });
    expect(await texts()).toEqual(["Service tier flex was asked for, default was served"]);
    next.unmount();
    const broken = { ...OTHER, cost: { ...cost, rules: [{ hours: 7 }, null], asked: "x" } };
    open({ url: "/log?id=1", page: { rows: [row(1, {}, broken)] } });
    expect(await texts()).toEqual([]);
  });

  test.each([
    ["en", "Next entry", false],
    ["zh", "下一条", true],
  ] as const)(
    "in %s the log's Chinese words about a price stand beside its sum only where they can be read",
    async (lang, next, isShown) => {
      open({ url: "/log?id=1", language: lang });
      await screen.findByRole("button", { name: next });
      expect(within(screen.getByRole("dialog")).queryByText("模型倍率 1.25") !== null).toBe(isShown);
    },
  );

  test("a call that ended at its cap says so: the cap, the limit that was sent, and what the site bore", async () => {
    const capped = {
      ...OTHER,
      limited: "max_cost",
      end_reason: "max-cost",
      max_quota: 25_000,
      over_cap: 5000,
    };
    open({ url: "/log?id=1", page: { rows: [row(1, {}, capped)] } });
    const changes = await screen.findByRole("region", { name: "Changed on the way" });
    for (const text of [
      "Cost cap$0.05",
      "lowered to what the cost cap pays",
      "Above the cap, borne by the site$0.01",
      "The cost cap was reached",
    ])
      expect(changes.textContent).toContain(text);
  });

  test("administrators see attempts, conversion and dropped fields; the raw record is folded", async () => {
    open({ url: "/log?id=1" });
    const timeline = await screen.findByRole("region", { name: "Timeline" });
    expect([...timeline.querySelectorAll("li")].map((each) => each.textContent)).toEqual([
      "Queue and checks40 ms",
      "No. 1 · channel 12429 upstream_limited310 ms",
      "No. 2 · channel 7Waiting for the answer150 ms",
      "Streaming3.7 s",
    ]);
    const changes = screen.getByRole("region", { name: "Changed on the way" });
    expect(changes.textContent).toContain("OpenAI Chat → Anthropic Messages");
    expect(changes.textContent).toContain("gpt-4o → claude-sonnet-4");
    expect(changes.textContent).toContain("logprobs, seed");
    expect(screen.getByText("Raw record").closest("details")?.open).toBe(false);
  });

  test("an error has its code, status and what to do about it", async () => {
    open({ url: "/log?id=2" });
    const part = await screen.findByRole("region", { name: "Error" });
    for (const text of ["上游服务返回了错误", "upstream_unavailable", "503", "connect ECONNREFUSED"]) {
      expect(part.textContent).toContain(text);
    }
    expect(part.textContent).toContain("trying again later may help");
  });

  test("the call can be copied as curl, with a placeholder where the key belongs", async () => {
    const island = open({ url: "/log?id=1" });
    await screen.findByRole("dialog");
    await island.user.click(screen.getByRole("button", { name: "Copy as curl" }));
    const text = await navigator.clipboard.readText();
    expect(text).toContain("/v1/chat/completions");
    expect(text).toContain("<API key>");
    expect(text).toContain('"stream":true');
  });

  test("steps: rows without attempts show first token and rest, plain answers one bar", () => {
    const kinds = (other: LogOther, isStream = true) =>
      stepsOf({ use_time_ms: 1000, is_stream: isStream, type: 2 }, other).map((step) => [
        step.kind,
        step.startMs,
        step.ms,
      ]);
    expect(kinds({ frt: 300 })).toEqual([
      ["firstToken", 0, 300],
      ["rest", 300, 700],
    ]);
    expect(kinds({ frt: -1000 }, false)).toEqual([["whole", 0, 1000]]);
    expect(kinds({ attempts: [{ channel: 1, ms: 400, code: "x" }] }, false)).toEqual([["attempt", 0, 400]]);
    expect(kinds({ attempts: [{ channel: 1, ms: 900, code: "ok" }] }, false)).toEqual([
      ["answer", 0, 900],
      ["rest", 900, 100],
    ]);
  });

  test("steps: what a failed call was doing when it ended has failed with it, and nothing of it is green", () => {
    const failed = (other: LogOther) =>
      stepsOf({ use_time_ms: 1000, is_stream: true, type: 5 }, other).map((step) => [
        step.kind,
        step.isFailed,
      ]);
    expect(failed({})).toEqual([["whole", true]]);
    expect(failed({ frt: 300 })).toEqual([
      ["firstToken", false],
      ["rest", true],
    ]);
    expect(failed({ attempts: [{ channel: 1, ms: 400, code: "ok" }] })).toEqual([
      ["answer", false],
      ["stream", true],
    ]);
  });
});

describe("user panel", () => {
  test("a click on a user shows balance, use and calls, and leads to the user's log", async () => {
    const island = open();
    island.answer("GET /api/user/9", {
      success: true,
      data: {
        id: 9,
        username: "bob",
        role: 1,
        status: 1,
        group: "vip",
        quota: 1_000_000,
        used_quota: 500_000,
        request_count: 1234,
      },
    });
    await island.user.click(screen.getAllByRole("button", { name: /bob/ })[0]!);
    const panel = await screen.findByRole("dialog", { name: "User bob" });
    await settle();
    for (const text of ["$2.00", "$1.00", "1,234", "vip", "Enabled"])
      expect(panel.textContent).toContain(text);
    expect(within(panel).getByRole("link", { name: "Show the account" }).getAttribute("href")).toBe(
      "/user?keyword=bob&edit=9",
    );
    await island.user.click(within(panel).getByRole("button", { name: "Show this user's log" }));
    expect(location.search).toBe("?username=bob");
  });

  test("what the server does not show to this rank stands as its message", async () => {
    const island = open({ url: "/log" });
    island.answer("GET /api/user/9", {
      success: false,
      message: "no right to read this user",
      code: "user_rank_read",
    });
    await island.user.click(screen.getAllByRole("button", { name: /bob/ })[0]!);
    await screen.findByRole("dialog", { name: "User bob" });
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("no right to read this user");
  });
});

test.each([
  ["users", false, "/api/log/self/export"],
  ["administrators", true, "/api/log/export"],
] as const)("for %s the CSV is the server's stream of the filter", async (_, isAdmin, path) => {
  spyOn(URL, "createObjectURL").mockImplementation(() => "blob:x");
  const click = spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
  const island = open({ page: { isAdmin }, url: "/log?model_name=gpt-4o&type=2" });
  const headers = { "content-disposition": 'attachment; filename="log-2026-11-20.csv"' };
  island.answer(`GET ${path}`, new Response("id", { headers }));
  await island.user.click(screen.getByRole("button", { name: "More actions" }));
  await island.user.click(screen.getByRole("menuitem", { name: "Export CSV" }));
  await settle();
  await screen.findByText("The log has been exported");
  expect(click.mock.contexts[0]).toMatchObject({ download: "log-2026-11-20.csv" });
  const asked = island.requests.find((request) => request.path === path)?.query;
  expect(asked).toMatchObject({ model_name: "gpt-4o", type: "2" });
  expect(Number(asked?.["start_timestamp"])).toBeGreaterThan(0);
  expect(Number(asked?.["end_timestamp"])).toBeLessThanOrEqual(Math.floor(Date.now() / 1000));
  click.mockRestore();
});

test("the audit trail of the range comes as one file of the server's", async () => {
  spyOn(URL, "createObjectURL").mockImplementation(() => "blob:x");
  const click = spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
  const island = open({ url: "/log?username=bob&range=30d&type=2" });
  const headers = { "content-disposition": 'attachment; filename="log-2026-11-20.csv"' };
  island.answer("GET /api/log/export", new Response("id", { headers }));
  await island.user.click(screen.getByRole("button", { name: "More actions" }));
  await island.user.click(screen.getByRole("menuitem", { name: "Export audit trail" }));
  await settle();
  expect(click.mock.contexts[0]).toMatchObject({ download: "log-2026-11-20.csv" });
  const asked = island.requests.find(({ path }) => path === "/api/log/export")?.query;
  expect(asked).toMatchObject({ type: "3,4,7", username: "bob" });
  expect(asked?.["start_timestamp"]).toMatch(/^\d+$/);
  click.mockRestore();
});

test("the list's call can be copied as curl", async () => {
  const island = open({ url: "/log?username=bob" });
  await island.user.click(screen.getByRole("button", { name: "More actions" }));
  await island.user.click(screen.getByRole("menuitem", { name: "Copy as curl" }));
  const text = await navigator.clipboard.readText();
  expect(text).toContain("/api/log/?type=0&username=bob&start_timestamp=");
  expect(text).not.toContain("session");
});

test("in Chinese every word is Chinese", () => {
  open({ language: "zh" });
  expect(heads().join()).not.toMatch(/[A-Za-z]{3}/);
});

describe("clearing", () => {
  const openClearing = async (island: Island) => {
    await settle();
    await island.user.click(screen.getByRole("button", { name: "More actions" }));
    await island.user.click(screen.getByRole("menuitem", { name: "Clear old entries", hidden: true }));
    // Its script may still be on its way.
    const drawer = await screen.findByRole("dialog", { name: "Clear old entries" });
    await settle();
    return drawer;
  };
  const counted = () => {
    const day = screen.getByLabelText("Delete entries before");
    return document.getElementById(day.getAttribute("aria-describedby") ?? "")?.textContent;
  };

  test("counts first, takes the number typed, deletes what was counted and reads the list anew", async () => {
    const island = open();
    island.answer("GET /api/log/clear_count", { success: true, data: 1234 });
    island.answer("DELETE /api/log", { success: true, data: 1234 });
    const drawer = await openClearing(island);
    // 90 days before the page's day.
    expect(within(drawer).getByLabelText<HTMLInputElement>("Delete entries before").value).toBe("2026-08-22");
    expect(counted()).toBe("1,234 rows before 2026-08-22 will be deleted.");
    await island.user.click(within(drawer).getByRole("button", { name: "Delete 1234 entries" }));
    const question = screen.getByRole("dialog", { name: "Delete 1234 log entries?" });
    const sure = within(question).getByRole("button", { name: "Delete 1234 entries" });
    expect(sure.hasAttribute("disabled")).toBe(true);
    await island.user.type(within(question).getByRole("textbox"), "1234");
    const lists = listCalls(island).length;
    await island.user.click(sure);
    await settle();
    const asked = island.requests.filter(({ query }) => query["target_timestamp"] !== undefined);
    const cut = String(Date.UTC(2026, 7, 22) / 1000);
    expect(asked.map(({ method, query }) => [method, query["target_timestamp"]])).toEqual([
      ["GET", cut],
      ["DELETE", cut],
    ]);
    expect(screen.queryByRole("dialog", { name: "Clear old entries" })).toBeNull();
    expect(listCalls(island).length).toBeGreaterThan(lists);
  });

  test("nothing old: nothing to press; a count that fails says so and can be tried again", async () => {
    const island = open();
    island.answer(
      "GET /api/log/clear_count",
      Response.json({ success: false, message: "no" }, { status: 500 }),
    );
    const drawer = await openClearing(island);
    expect(within(drawer).getByRole("alert").textContent).toContain("no");
    const button = () => within(drawer).getByRole("button", { name: /^(Clear old|Delete)/ });
    expect(button().hasAttribute("disabled")).toBe(true);
    island.answer("GET /api/log/clear_count", { success: true, data: 0 });
    await island.user.click(within(drawer).getByRole("button", { name: "Retry" }));
    await settle();
    expect(counted()).toContain("no entries before");
    expect(button().hasAttribute("disabled")).toBe(true);
  });

  test("a second clearing meanwhile is refused in words", async () => {
    const island = open();
    island.answer("GET /api/log/clear_count", { success: true, data: 2 });
    island.answer("DELETE /api/log", {
      success: false,
      message: "already running",
      code: "log_clear_running",
    });
    const drawer = await openClearing(island);
    await island.user.click(within(drawer).getByRole("button", { name: "Delete 2 entries" }));
    await island.user.type(screen.getByRole("textbox", { name: /2/ }), "2{Enter}");
    await settle();
    expect(within(drawer).getByRole("alert").textContent).toBe("already running");
  });

  test("users have no such thing", async () => {
    const { user } = open({ page: { isAdmin: false } });
    await settle();
    await user.click(screen.getByRole("button", { name: "More actions" }));
    expect(screen.queryByRole("menuitem", { name: "Clear old entries", hidden: true })).toBeNull();
  });
});
