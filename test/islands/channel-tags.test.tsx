// Tag mode, the tag editor, tags of a selection, and the models of a channel tested one by one.
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { groupByTag, isTagRow } from "../../islands/screens/channel/row.ts";
import { calls, channel, done, menu, openChannels, rowOf, ROWS, writes } from "./channel-fixture.ts";
import type { OpenOptions } from "./channel-fixture.ts";
import type { SentRequest, Island } from "./render.tsx";

beforeAll(async () => {
  // Parts that are loaded on demand: a slow first import must not decide a test.
  await Promise.all([
    import("../../islands/screens/channel/actions.ts"),
    import("../../islands/screens/channel/tag-dialog.tsx"),
    import("../../islands/screens/channel/tag-drawer.tsx"),
    import("../../islands/screens/channel/mapping-field.tsx"),
    import("../../islands/screens/channel/test-drawer.tsx"),
  ]);
});
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const TAGGED = ROWS.slice(0, 3);
const drawer = () => within(screen.getByRole("dialog"));

function openTags(options: OpenOptions = {}): Island {
  const island = openChannels({
    rows: TAGGED,
    page: { total: 2 },
    url: "/channel?tag_mode=true",
    ...options,
  });
  island.answer("GET /api/channel/search", ({ query }: SentRequest) => ({
    success: true,
    data: TAGGED.filter(({ tag }) => query["tag"] === undefined || tag === query["tag"]),
    total: 2,
  }));
  return island;
}

describe("tag mode", () => {
  test("heads tell the mean time, the summed use and how many are enabled", () => {
    openTags();
    const east = rowOf("2 channels");
    expect(east.textContent).toContain("1 of 2 enabled1 auto-disabled");
    expect(east.textContent).toContain("2.0 s");
    expect(east.textContent).toContain("$1.00");
    expect(east.textContent).toContain("Mixed");
    expect(screen.getByText("2 channels have no tag and are not listed here.")).toBeTruthy();
    expect(screen.getByText("1–2 of 2")).toBeTruthy();
  });

  test("a mean counts only what was tested; values in common are told", () => {
    const [head] = groupByTag(
      [channel(1, { tag: "a", response_time: 100 }), channel(2, { tag: "a", response_time: 0 })],
      new Set(),
    );
    expect(head).toMatchObject({ isTag: true, response_time: 100, priority: 0, weight: 0 });
    expect(groupByTag([channel(1, { tag: "a" })], new Set(["a"])).map(isTagRow)).toEqual([true]);
  });

  test("a head closes and opens its channels, and cannot be selected itself", async () => {
    const island = openTags();
    expect(rowOf("alpha")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: /^east/ }));
    expect(screen.queryByRole("row", { name: /alpha/ })).toBeNull();
    await island.user.click(screen.getByRole("button", { name: /^east/ }));
    expect(screen.queryByRole("checkbox", { name: "Select east" })).toBeNull();
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    expect(screen.getByRole("toolbar").textContent).toContain("3 selected");
  });

  test("a tag is switched with one call, and undo gives each channel its own status back", async () => {
    const island = openTags();
    island.answer("POST /api/channel/tag/enabled", { success: true, message: "" });
    await menu(island, "east", "Enable all");
    expect(calls(island)).toEqual([["POST", "/api/channel/tag/enabled", { tag: "east" }]]);
    await island.user.click(await screen.findByRole("button", { name: "Undo" }));
    await done();
    expect(calls(island).slice(1)).toEqual([["PUT", "/api/channel", { id: 2, status: 3 }]]);
  });

  test("under a filter the tag's other channels are counted and undone too", async () => {
    const other = channel(9, { tag: "east", priority: 2 });
    const island = openTags({ rows: TAGGED.slice(0, 1) });
    island.answer("GET /api/channel/search", ({ query }: SentRequest) => ({
      success: true,
      data: query["tag"] === "east" ? [...TAGGED.slice(0, 2), other] : TAGGED.slice(0, 1),
      total: 1,
    }));
    island.answer("POST /api/channel/tag/disabled", { success: true, message: "" });
    island.answer("PUT /api/channel/tag", { success: true, message: "" });
    await menu(island, "east", "Disable all");
    expect(screen.getByText("3 channels of east disabled")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await done();
    await island.user.click(within(rowOf("1 channel")).getByTitle("Edit Priority"));
    await island.user.type(screen.getByLabelText("Edit Priority"), "7{Enter}");
    await done();
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await done();
    const undone = calls(island).filter(([, path]) => path === "/api/channel");
    expect(undone.map(([, , body]) => body)).toEqual([
      { id: 1, status: 1 },
      { id: 2, status: 3 },
      { id: 9, status: 1 },
      { id: 1, priority: 5 },
      { id: 2, priority: 1 },
      { id: 9, priority: 2 },
    ]);
  });

  test("a priority at the head is the tag's; undo brings back what each had", async () => {
    const island = openTags();
    island.answer("PUT /api/channel/tag", { success: true, message: "" });
    await island.user.click(within(rowOf("2 channels")).getByTitle("Edit Priority"));
    await island.user.type(screen.getByLabelText("Edit Priority"), "7{Enter}");
    await done();
    expect(calls(island)).toEqual([["PUT", "/api/channel/tag", { tag: "east", priority: 7 }]]);
    await island.user.click(await screen.findByRole("button", { name: "Undo" }));
    await done();
    expect(
      calls(island)
        .slice(1)
        .map(([, , body]) => body),
    ).toEqual([
      { id: 1, priority: 5 },
      { id: 2, priority: 1 },
    ]);
  });
});

describe("the tag editor", () => {
  async function openEditor(language: "zh" | "en" = "en"): Promise<Island> {
    const island = openChannels({ url: "/channel?tag_edit=east", language });
    island.answer("GET /api/channel/search", ({ query }: SentRequest) => ({
      success: true,
      data: query["tag"] === "east" ? ROWS.slice(0, 2) : ROWS,
      total: 5,
    }));
    island.answer("PUT /api/channel/tag", { success: true, message: "" });
    await screen.findByRole("dialog");
    await done();
    return island;
  }
  const preview = () => within(drawer().getByRole("region", { name: "When you save" }));

  test("every field is kept until it is set, and nothing set is nothing changed", async () => {
    const island = await openEditor("zh");
    expect(drawer().getByRole<HTMLInputElement>("spinbutton", { name: "优先级" }).disabled).toBe(true);
    await island.user.click(drawer().getByRole("button", { name: "保存" }));
    await done();
    expect(screen.getByText("没有任何修改！")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("the preview says what follows before it happens, and only what is set is sent", async () => {
    const island = await openEditor();
    await island.user.click(drawer().getByRole("switch", { name: "Set Priority" }));
    await island.user.type(drawer().getByRole("spinbutton", { name: "Priority" }), "5");
    // One of the two has it already.
    expect(preview().getByText("Changes the priority of 1 channel to 5")).toBeTruthy();
    await island.user.click(drawer().getByRole("switch", { name: "Set New name" }));
    const name = drawer().getByRole("textbox", { name: "New name" });
    await island.user.clear(name);
    expect(preview().getByText("The tag east is removed: 2 channels lose it")).toBeTruthy();
    await island.user.type(name, "orient");
    expect(preview().getByText("The tag of 2 channels becomes orient")).toBeTruthy();
    await island.user.click(drawer().getByRole("button", { name: "Save" }));
    await done();
    expect(calls(island)).toEqual([
      ["PUT", "/api/channel/tag", { tag: "east", priority: 5, new_tag: "orient" }],
    ]);
  });

  test("back to keep takes the value back; a wrong number is refused at its field", async () => {
    const island = await openEditor();
    await island.user.click(drawer().getByRole("switch", { name: "Set Weight" }));
    const weight = drawer().getByRole<HTMLInputElement>("spinbutton", { name: "Weight" });
    await island.user.clear(weight);
    await island.user.type(weight, "-2");
    await island.user.click(drawer().getByRole("button", { name: "Save" }));
    await done();
    expect(drawer().getByText("Weight must be a whole number, 0 or higher")).toBeTruthy();
    await island.user.click(drawer().getByRole("switch", { name: "Set Weight" }));
    expect(weight.value).toBe("0");
    expect(weight.disabled).toBe(true);
    expect(writes(island)).toEqual([]);
  });

  test("a selection is edited the same way, each channel by its own call", async () => {
    const island = openChannels();
    await island.user.click(screen.getByRole("checkbox", { name: "Select alpha" }));
    await island.user.click(screen.getByRole("checkbox", { name: "Select bravo" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Edit" }));
    await screen.findByRole("dialog", { name: "Edit 2 channels" });
    await island.user.click(drawer().getByRole("switch", { name: "Set Groups" }));
    await island.user.type(drawer().getByRole("combobox", { name: "Groups" }), "vip{Enter}");
    await island.user.click(drawer().getByRole("button", { name: "Save" }));
    await done();
    expect(calls(island)).toEqual([
      ["PUT", "/api/channel", { id: 1, group: "default,vip" }],
      ["PUT", "/api/channel", { id: 2, group: "default,vip" }],
    ]);
  });
});

describe("the tag of a selection", () => {
  test("an empty one is refused in the specification's words; a given one is set, and undone each its own", async () => {
    const island = openChannels({ language: "zh" });
    island.answer("POST /api/channel/batch/tag", { success: true, data: 2 });
    const boxes = screen.getAllByRole("checkbox");
    await island.user.click(boxes[1]!);
    await island.user.click(boxes[3]!);
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "设置标签" }));
    const dialog = within(await screen.findByRole("dialog", { name: "为 2 个渠道设置标签" }));
    await island.user.keyboard("{Enter}");
    expect(dialog.getByRole("alert").textContent).toBe("标签不能为空！");
    await island.user.type(dialog.getByRole("combobox", { name: "标签" }), "north{Enter}");
    await done();
    expect(calls(island)).toEqual([["POST", "/api/channel/batch/tag", { ids: [1, 3], tag: "north" }]]);
    await island.user.click(await screen.findByRole("button", { name: "撤销" }));
    await done();
    expect(
      calls(island)
        .slice(1)
        .map(([, , body]) => body),
    ).toEqual([
      { id: 1, tag: "east" },
      { id: 3, tag: "west" },
    ]);
  });
});

describe("the models of a channel", () => {
  async function openTests(): Promise<Island> {
    const island = openChannels({ url: "/channel?test=4" });
    island.answer("GET /api/channel/test/4", ({ query }: SentRequest) =>
      query["model"] === "claude-b"
        ? { success: false, message: "model not found", code: "x", time: 0.2 }
        : { success: true, message: "", time: 1.5 },
    );
    await screen.findByRole("dialog", { name: "Test models: delta" });
    await done();
    return island;
  }
  const models = (island: Island) =>
    island.requests.filter(({ path }) => path === "/api/channel/test/4").map(({ query }) => query["model"]);

  test("all are tested in turn, each result beside its model, with a sum", async () => {
    const island = await openTests();
    await island.user.click(drawer().getByRole("button", { name: "Test all 3 in turn" }));
    await done();
    expect(models(island)).toEqual(["claude-a", "claude-b", "claude-c"]);
    expect(drawer().getByRole("row", { name: /claude-a/ }).textContent).toContain("1.5 s");
    expect(drawer().getByRole("row", { name: /claude-b/ }).textContent).toContain("Failedmodel not found");
    expect(drawer().getByText("Tests done: 2 passed, 1 failed").getAttribute("role")).toBe("status");
  });

  test("a search narrows the list, chosen ones are tested alone, one by its own button", async () => {
    const island = await openTests();
    await island.user.type(drawer().getByRole("searchbox", { name: "Search models" }), "-c");
    expect(drawer().getAllByRole("row")).toHaveLength(2);
    await island.user.clear(drawer().getByRole("searchbox"));
    await island.user.click(drawer().getByRole("checkbox", { name: "Select claude-c" }));
    await island.user.click(drawer().getByRole("button", { name: "Test 1 selected" }));
    await done();
    await island.user.click(drawer().getByRole("button", { name: "Test claude-a" }));
    await done();
    expect(models(island)).toEqual(["claude-c", "claude-a"]);
  });

  test("they follow each other and can be stopped between two", async () => {
    const island = await openTests();
    const { promise, resolve } = Promise.withResolvers<object>();
    island.answer("GET /api/channel/test/4", () => promise);
    await island.user.click(drawer().getByRole("button", { name: "Test all 3 in turn" }));
    await done();
    expect(models(island)).toEqual(["claude-a"]);
    expect(drawer().getByRole("row", { name: /claude-b/ }).textContent).toContain("Waiting");
    await island.user.click(drawer().getByRole("button", { name: "Stop" }));
    resolve({ success: true, message: "", time: 1 });
    await done();
    expect(models(island)).toEqual(["claude-a"]);
    expect(drawer().getByRole("row", { name: /claude-b/ }).textContent).toContain("–");
  });
});
