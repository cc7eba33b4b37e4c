// The drawing log as users and administrators meet it: columns, words for codes, filters in milliseconds, pictures, the notice.
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import DrawingScreen from "../../islands/screens/midjourney.tsx";
import { actionKey, codeLabel, statusLabel } from "../../islands/screens/midjourney/row.ts";
import type { DrawingPageData } from "../../islands/screens/midjourney/row.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";
import type { DrawingRow } from "../../islands/lib/wire.ts";

const NOW_MS = Date.UTC(2026, 10, 20, 12);

beforeEach(() => localStorage.clear());
afterEach(() => jest.useRealTimers());

function drawing(id: number, part: Partial<DrawingRow> = {}): DrawingRow {
  return {
    description: "",
    state: "",
    buttons: "",
    properties: "",
    id,
    code: 1,
    user_id: 9,
    action: "IMAGINE",
    mj_id: `1732000${id}`,
    prompt: `一只猫 ${id}`,
    prompt_en: `a cat ${id}`,
    submit_time: NOW_MS - 100_000,
    start_time: NOW_MS - 95_000,
    finish_time: NOW_MS - 70_000,
    image_url: `http://localhost/mj/image/1732000${id}`,
    status: "SUCCESS",
    progress: "100%",
    fail_reason: "",
    channel_id: 42,
    quota: 50_000,
    ...part,
  };
}

const ROWS = [
  drawing(1),
  drawing(2, {
    image_url: "",
    status: "IN_PROGRESS",
    progress: "35%",
    finish_time: 0,
    code: 22,
    action: "UPSCALE",
  }),
  drawing(3, {
    image_url: "",
    status: "FAILURE",
    progress: "60%",
    finish_time: NOW_MS,
    fail_reason: "Banned prompt detected: blood",
    action: "SOMETHING_NEW",
  }),
];

function open(options: IslandOptions & { page?: Partial<DrawingPageData> } = {}): Island {
  const { page, ...rest } = options;
  const data: DrawingPageData = { rows: ROWS, total: 3, pageSize: 10, isAdmin: true, ...page };
  const island = renderScreen(DrawingScreen, {
    data,
    url: "/midjourney",
    user: { role: data.isAdmin ? 100 : 1 },
    status: { mj_notify_enabled: true },
    ...rest,
  });
  for (const path of ["/api/mj", "/api/mj/self"])
    island.answer(`GET ${path}`, { success: true, data: data.rows });
  return island;
}

const heads = () => screen.getAllByRole("columnheader").map((each) => each.textContent);
const rowOf = (text: RegExp) => screen.getByRole("row", { name: text });

describe("columns", () => {
  test("administrators see channel, submit result and state; the words follow the codes", () => {
    const island = open();
    expect(island.requests).toEqual([]);
    expect(heads()).toEqual(expect.arrayContaining(["Channel", "Submit result", "Status"]));
    expect(rowOf(/17320001/).textContent).toContain("30.0 s");
    expect(rowOf(/17320001/).textContent).toContain("Imagine");
    expect(rowOf(/17320002/).textContent).toContain("Duplicate");
    expect(rowOf(/17320002/).textContent).toContain("35%");
    expect(rowOf(/17320003/).textContent).toContain("Unknown");
    expect(within(rowOf(/17320003/)).getByTitle("Over 60 seconds").textContent).toContain("1 m 40 s");
    expect(within(rowOf(/17320003/)).getByText("60%").parentElement?.dataset.tone).toBe("attention");
  });

  test("users see none of the three, and no filter by channel", () => {
    open({ page: { isAdmin: false } });
    expect(heads().join()).not.toMatch(/Channel|Submit result|Status/);
    expect(heads()).toContain("English prompt");
    expect(screen.queryByRole("button", { name: "Add filter" })).toBeNull();
    expect(screen.queryByText("42")).toBeNull();
  });

  test("every action, state and code of the specification has a word; others are unknown", () => {
    const actions =
      "IMAGINE UPSCALE VARIATION HIGH_VARIATION LOW_VARIATION PAN DESCRIBE BLEND UPLOAD SHORTEN REROLL INPAINT ZOOM CUSTOM_ZOOM MODAL SWAP_FACE";
    for (const action of actions.split(" ")) expect(actionKey(action)).toBe(`midjourney.action.${action}`);
    expect(actionKey("DANCE")).toBe("common.unknown");
    const tones = [
      "NOT_START",
      "SUBMITTED",
      "IN_PROGRESS",
      "SUCCESS",
      "FAILURE",
      "MODAL",
      "",
      "toString",
    ].map((status) => statusLabel(status)[0]);
    expect(tones).toEqual(["off", "attention", "running", "ok", "broken", "attention", "off", "off"]);
    expect([1, 21, 22, 0, 99].map((code) => codeLabel(code)[1])).toEqual([
      "midjourney.code.1",
      "midjourney.code.21",
      "midjourney.code.22",
      "midjourney.code.0",
      "common.unknown",
    ]);
  });

  test("channel and task ids are copied with one press", async () => {
    const island = open();
    await island.user.click(screen.getAllByRole("button", { name: "Copy 42" })[0]!);
    expect(await navigator.clipboard.readText()).toBe("42");
    await island.user.click(screen.getByRole("button", { name: "Copy 17320001" }));
    expect(await navigator.clipboard.readText()).toBe("17320001");
  });
});

describe("filters", () => {
  test("times go out in milliseconds, from 30 days back to an hour ahead, beside id and channel", async () => {
    const island = open({ url: "/midjourney?channel_id=42" });
    await island.user.type(screen.getByRole("searchbox", { name: "Task ID" }), "1732{Enter}");
    await settle();
    const { path, query } = island.requests.at(-1)!;
    expect(path).toBe("/api/mj/");
    expect(query).toMatchObject({ mj_id: "1732", channel_id: "42", p: "0", page_size: "10" });
    expect(Number(query.end_timestamp) - Number(query.start_timestamp)).toBe((30 * 86_400 + 3600) * 1000);
    expect(Math.abs(Number(query.end_timestamp) - Date.now() - 3_600_000)).toBeLessThan(5000);
  });

  test("users ask their own call, and the query button asks again", async () => {
    const island = open({ page: { isAdmin: false }, url: "/midjourney?channel_id=42" });
    await island.user.click(screen.getByRole("button", { name: "Query" }));
    await settle();
    expect(island.requests.at(-1)?.path).toBe("/api/mj/self");
    expect(island.requests.at(-1)?.query).not.toHaveProperty("channel_id");
  });

  test("an answer with its total is understood as well as bare rows, and a refusal is told", async () => {
    const island = open();
    island.answer("GET /api/mj", { success: true, data: { items: [drawing(8)], total: 71 } });
    await island.user.click(screen.getByRole("button", { name: "Query" }));
    await settle();
    expect(screen.getByText("1–1 of 71")).toBeTruthy();
    island.answer("GET /api/mj", { success: false, message: "not today", code: "x" });
    await island.user.click(screen.getByRole("button", { name: "Query" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("not today");
  });
});

describe("what runs", () => {
  const round = async () => {
    act(() => void jest.advanceTimersByTime(5000));
    for (let step = 0; step < 6; step++) await act(async () => undefined);
  };

  test("refreshes by itself until all has ended", async () => {
    jest.useFakeTimers();
    const island = open();
    const done = ROWS.map((row) => ({ ...row, status: "SUCCESS", progress: "100%" }));
    island.answer("GET /api/mj", { success: true, data: done });
    await round();
    expect(rowOf(/17320002/).textContent).toContain("100%");
    const asked = island.requests.length;
    await round();
    expect(island.requests.length).toBe(asked);
  });

  test("a page on which everything has ended asks nothing", async () => {
    jest.useFakeTimers();
    const island = open({ page: { rows: [ROWS[0]!] } });
    await round();
    expect(island.requests).toEqual([]);
  });
});

describe("details and pictures", () => {
  test("a fail reason opens in full; prompts can be copied", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Banned prompt detected: blood" }));
    const dialog = await screen.findByRole("dialog", { name: "Unknown" });
    expect(within(dialog).getByRole("region", { name: "Failure reason" }).textContent).toContain(
      "Banned prompt detected: blood",
    );
    expect(within(dialog).getByRole("region", { name: "English prompt" }).textContent).toContain("a cat 3");
    expect(location.search).toBe("?id=3");
  });

  test("a picture opens in a viewer under its own address, with the prompt in its place", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Show picture 17320001" }));
    const viewer = await screen.findByRole("dialog", { name: "Picture" });
    expect(location.search).toBe("?image=1");
    expect(within(viewer).getByRole("img", { name: "一只猫 1" }).getAttribute("src")).toBe(
      ROWS[0]?.image_url ?? "-",
    );
    fireEvent(viewer, new Event("cancel", { cancelable: true }));
    await settle();
    expect(location.search).toBe("");
  });

  test("the gallery shows pictures and how far the others are", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Gallery" }));
    expect(location.search).toBe("?view=gallery");
    expect(screen.getByRole("img", { name: "一只猫 1" })).toBeTruthy();
    expect(screen.getByText("35%")).toBeTruthy();
    expect(screen.getByText("Banned prompt detected: blood")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Show task 17320002" }));
    expect(await screen.findByRole("dialog", { name: "Upscale" })).toBeTruthy();
  });
});

describe("callbacks", () => {
  test("administrators are told while they are off; the owner switches them on here, with Undo", async () => {
    const island = open({ status: { mj_notify_enabled: false } });
    island.answer("PUT /api/option", { success: true });
    expect(screen.getByText(/Midjourney callbacks are off: some upstreams/)).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Accept callbacks" }));
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      method: "PUT",
      body: { key: "MjNotifyEnabled", value: "true" },
    });
    expect(screen.queryByText(/some upstreams/)).toBeNull();
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(island.requests.at(-1)?.body).toEqual({ key: "MjNotifyEnabled", value: "false" });
    expect(screen.getByText(/some upstreams/)).toBeTruthy();
  });

  test("other administrators read it without the switch, users not at all", () => {
    const first = open({ status: { mj_notify_enabled: false }, user: { role: 10 } });
    expect(screen.getByText(/some upstreams/)).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Accept callbacks" })).toBeNull();
    first.unmount();
    open({ status: { mj_notify_enabled: false }, page: { isAdmin: false } });
    expect(screen.queryByText(/some upstreams/)).toBeNull();
  });
});
