// The task log as users and administrators meet it: all states worded, filters in seconds, results that play, the whole record.
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { act, screen, within } from "@testing-library/react";
import TaskScreen from "../../islands/screens/task.tsx";
import { clipsOf, statusLabel } from "../../islands/screens/task/row.ts";
import type { TaskPageData } from "../../islands/screens/task/row.ts";
import { percentOf } from "../../islands/lib/task-screen.ts";
import { setQuery } from "../../islands/lib/url-state.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";
import type { TaskRow } from "../../islands/lib/wire.ts";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;

beforeEach(() => localStorage.clear());
afterEach(() => jest.useRealTimers());

const SONGS = [
  {
    id: "a",
    title: "Night rain",
    audio_url: "https://cdn.example/a.mp3",
    image_url: "https://cdn.example/a.jpg",
    metadata: { tags: "lofi", prompt: "rain on a roof" },
  },
  { id: "b", title: "Evil", audio_url: "javascript:alert(1)", video_url: "https://cdn.example/b.mp4" },
];

function task(id: number, part: Partial<TaskRow> = {}): TaskRow {
  return {
    created_at: 1,
    updated_at: 1,
    user_id: 1,
    id,
    platform: "suno",
    action: "MUSIC",
    task_id: `task-${id}`,
    channel_id: 36,
    status: "SUCCESS",
    progress: "100%",
    fail_reason: "",
    submit_time: NOW - 200,
    start_time: NOW - 190,
    finish_time: NOW - 100,
    quota: 50_000,
    data: SONGS,
    properties: { input: "rain" },
    ...part,
  };
}

const ROWS = [
  task(1),
  task(2, { status: "IN_PROGRESS", progress: "40%", finish_time: 0, data: "" }),
  task(3, { status: "", progress: "waiting", finish_time: 0, data: null, action: "LYRICS" }),
  task(4, { status: "FAILURE", fail_reason: "sensitive words", data: "" }),
];

function open(options: IslandOptions & { page?: Partial<TaskPageData> } = {}): Island {
  const { page, ...rest } = options;
  const data: TaskPageData = { rows: ROWS, total: 4, pageSize: 10, isAdmin: true, ...page };
  const island = renderScreen(TaskScreen, {
    data,
    url: "/task",
    user: { role: data.isAdmin ? 10 : 1 },
    ...rest,
  });
  for (const path of ["/api/task", "/api/task/self"]) {
    island.answer(`GET ${path}`, { success: true, data: { items: data.rows, total: data.total } });
  }
  return island;
}

const heads = () => screen.getAllByRole("columnheader").map((each) => each.textContent);
const rowOf = (text: RegExp) => screen.getByRole("row", { name: text });

describe("the list", () => {
  test("every state has a word, the empty one too, and raw progress stands as it is", () => {
    open();
    expect(rowOf(/task-1/).textContent).toContain("Done");
    expect(rowOf(/task-1/).textContent).toContain("1 m 40 s");
    expect(rowOf(/task-2/).textContent).toContain("40%");
    expect(rowOf(/task-3/).textContent).toContain("Submitting");
    expect(rowOf(/task-3/).textContent).toContain("waiting");
    expect(rowOf(/task-4/).textContent).toContain("sensitive words");
    const all = [
      "NOT_START",
      "SUBMITTED",
      "QUEUED",
      "IN_PROGRESS",
      "SUCCESS",
      "FAILURE",
      "UNKNOWN",
      "",
      "what",
    ];
    expect(all.map((status) => statusLabel(status)[1])).toEqual([
      "task.status.NOT_START",
      "task.status.SUBMITTED",
      "task.status.QUEUED",
      "task.status.IN_PROGRESS",
      "task.status.SUCCESS",
      "task.status.FAILURE",
      "task.status.UNKNOWN",
      "task.status.submitting",
      "task.status.UNKNOWN",
    ]);
    expect(["35%", "35", " 7.5 % ", "100%", "250%", "soon", ""].map(percentOf)).toEqual([
      35,
      35,
      7.5,
      100,
      100,
      undefined,
      undefined,
    ]);
  });

  test("channels are for administrators", () => {
    const first = open();
    expect(heads()).toContain("Channel");
    first.unmount();
    open({ page: { isAdmin: false } });
    expect(heads()).not.toContain("Channel");
    expect(screen.queryByText("36")).toBeNull();
  });
});

describe("filters", () => {
  test("times go out in seconds, from midnight on and without an end, beside every other filter", async () => {
    const island = open({ url: "/task?channel_id=36" });
    await island.user.click(screen.getByRole("button", { name: "Add filter" }));
    await island.user.click(screen.getByRole("menuitem", { name: "Status" }));
    await settle();
    await island.user.selectOptions(screen.getByRole("combobox", { name: "Status" }), "QUEUED");
    await island.user.type(screen.getByRole("searchbox", { name: "Task ID" }), "task-9{Enter}");
    await settle();
    const { path, query } = island.requests.at(-1)!;
    expect(path).toBe("/api/task/");
    expect(query).toMatchObject({ task_id: "task-9", status: "QUEUED", channel_id: "36", p: "0" });
    expect(query).not.toHaveProperty("end_timestamp");
    const midnight = new Date();
    midnight.setUTCHours(0, 0, 0, 0);
    expect(Number(query.start_timestamp)).toBe(midnight.getTime() / 1000);
  });

  test("users ask their own call without a channel; a typed range has its end", async () => {
    const island = open({
      page: { isAdmin: false },
      url: "/task?channel_id=36&start_timestamp=1760000000&end_timestamp=1760003600",
    });
    await island.user.click(screen.getByRole("button", { name: "Query" }));
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      path: "/api/task/self",
      query: { start_timestamp: "1760000000", end_timestamp: "1760003600" },
    });
    expect(island.requests.at(-1)?.query).not.toHaveProperty("channel_id");
  });

  test("what runs refreshes by itself", async () => {
    jest.useFakeTimers();
    const island = open();
    island.answer("GET /api/task", {
      success: true,
      data: [task(2, { progress: "90%", status: "IN_PROGRESS" })],
    });
    act(() => void jest.advanceTimersByTime(5000));
    for (let step = 0; step < 6; step++) await act(async () => undefined);
    expect(rowOf(/task-2/).textContent).toContain("90%");
    // Also where a question of somebody's own failed meanwhile.
    island.answer("GET /api/task", () => Response.json({ success: false, message: "no" }, { status: 500 }));
    act(() => setQuery({ task_id: "task-2" }));
    for (let step = 0; step < 6; step++) await act(async () => undefined);
    expect(screen.getByRole("alert")).toBeTruthy();
    island.answer("GET /api/task", {
      success: true,
      data: [task(2, { progress: "95%", status: "IN_PROGRESS" })],
    });
    act(() => void jest.advanceTimersByTime(5000));
    for (let step = 0; step < 6; step++) await act(async () => undefined);
    expect(rowOf(/task-2/).textContent).toContain("95%");
    expect(screen.queryByRole("alert")).toBeNull();
    // Page 1 as people see it; the call counts from 0.
    expect(island.requests.at(-1)?.query).toMatchObject({ p: "0" });
  });
});

describe("one task", () => {
  test("songs play in place, nothing plays by itself, and only web addresses are used", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "task-1" }));
    const dialog = await screen.findByRole("dialog", { name: "Music" });
    const song = within(dialog).getByRole("region", { name: "Night rain" });
    const audio = song.querySelector("audio");
    expect(audio?.getAttribute("src")).toBe("https://cdn.example/a.mp3");
    expect(audio?.hasAttribute("autoplay")).toBe(false);
    expect(song.textContent).toContain("rain on a roof");
    const other = within(dialog).getByRole("region", { name: "Evil" });
    expect(other.querySelector("audio")).toBeNull();
    expect(other.querySelector("video")?.getAttribute("src")).toBe("https://cdn.example/b.mp4");
    expect(clipsOf('{"text":"La la"}')).toMatchObject([{ text: "La la" }]);
    expect(clipsOf("no json")).toEqual([]);
  });

  test("a press on the id shows the whole record, and copies it", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "task-4" }));
    const dialog = await screen.findByRole("dialog", { name: "Music" });
    expect(within(dialog).getByRole("region", { name: "Failure reason" }).textContent).toContain(
      "sensitive words",
    );
    await island.user.click(within(dialog).getByRole("button", { name: "Copy" }));
    expect(JSON.parse(await navigator.clipboard.readText())).toMatchObject({
      task_id: "task-4",
      status: "FAILURE",
      properties: { input: "rain" },
    });
  });
});
