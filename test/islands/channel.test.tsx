// Channels as an operator meets them: what a row tells, views, quick edits, status with undo, tests, balances, deletions.
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { screen, waitFor, within } from "@testing-library/react";
import { isKeyLike, namesOf, reasonOf, RESPONSE_MS, typeName } from "../../islands/screens/channel/row.ts";
import {
  calls,
  channel,
  done,
  menu,
  openChannels,
  pageMenu,
  rowOf,
  ROWS,
  writes,
} from "./channel-fixture.ts";
import type { SentRequest } from "./render.tsx";

beforeAll(async () => {
  // Parts that are loaded on demand: a slow first import must not decide a test.
  await import("../../islands/screens/channel/actions.ts");
  await import("../../islands/screens/channel/tag-dialog.tsx");
});
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

describe("a row", () => {
  test("says why and when a channel was switched off by itself, without hovering", () => {
    openChannels();
    expect(rowOf("bravo").textContent).toContain("Auto-disabled11-20 11:00 · invalid key");
    expect(rowOf("charlie").textContent).toContain("Disabled");
    expect(rowOf("echo").textContent).toContain("2 of 3 keys");
    expect(reasonOf(channel(1, { other_info: "no json" }))).toBeUndefined();
  });

  test("shows models, type, balance with its age, and that an empty balance is used up", () => {
    openChannels();
    expect(rowOf("delta").textContent).toMatch(/claude-aclaude-b.*\+1/);
    expect(within(rowOf("delta")).getByText("Anthropic Claude")).toBeTruthy();
    expect(rowOf("delta").textContent).toContain("$12.501 min ago");
    expect(rowOf("charlie").textContent).toContain("-$1.00 · used up");
    expect(rowOf("alpha").textContent).toContain("Not checked");
    expect(rowOf("echo").textContent).toContain("Not tested");
  });

  test("colours a response time at one, three and five seconds, the limit itself still the better colour", () => {
    const tones = [1000, 1001, 3000, 3001, 5000, 5001];
    const rows = tones.map((ms, index) => channel(index + 1, { name: `row-${ms}`, response_time: ms }));
    openChannels({ rows });
    const toneOf = (ms: number) =>
      rowOf(`row-${ms} `).querySelector(".latency")?.getAttribute("data-tone") ?? "";
    expect(tones.map(toneOf)).toEqual(["ok", "running", "running", "attention", "attention", "broken"]);
    expect(RESPONSE_MS).toHaveLength(3);
  });

  test("names a type in the page's language, and a foreign one by its number", () => {
    const types = { "18": ["讯飞星火认知", "iFlytek Spark"], "1": "OpenAI" };
    expect(typeName(types, 18, "zh")).toBe("讯飞星火认知");
    expect(typeName(types, 18, "en")).toBe("iFlytek Spark");
    expect(typeName(types, 999, "en")).toBe("#999");
    expect(namesOf(" a, b，a\nc d ")).toEqual(["a", "b", "c d"]);
  });
});

describe("views and filters", () => {
  test("each view carries its count, stands in the address, and asks with the call's own names", async () => {
    const island = openChannels();
    const views = within(screen.getByRole("navigation", { name: "Channel views" }));
    expect(views.getAllByRole("link").map((link) => link.textContent)).toEqual([
      "All5",
      "Enabled3",
      "Auto-disabled1",
      "Disabled1",
      "Never tested3",
      "By tag2",
    ]);
    await island.user.click(views.getByRole("link", { name: /Auto-disabled/ }));
    await done();
    expect(location.search).toBe("?status=3");
    expect(island.requests.at(-1)).toMatchObject({
      path: "/api/channel/search",
      query: { status: "3", untested: "", tag_mode: "", p: "0", page_size: "10" },
    });
    await island.user.click(views.getByRole("link", { name: /Never tested/ }));
    await done();
    expect(location.search).toBe("?untested=true");
  });

  test("order by id and tag mode are remembered for the next visit, for the server too", async () => {
    const island = openChannels();
    // Checkable entries leave their menu open.
    await island.user.click(screen.getByRole("button", { name: "Display" }));
    const pick = async (item: string) => {
      await island.user.click(screen.getByRole("menuitemcheckbox", { name: item }));
      await done();
    };
    await pick("Sort by ID");
    expect(localStorage.getItem("id-sort")).toBe("true");
    expect(document.cookie).toContain("id-sort=true");
    expect(island.requests.at(-1)?.query["sort"]).toBe("-id");
    await pick("Tag mode");
    expect(localStorage.getItem("enable-tag-mode")).toBe("true");
    expect(location.search).toContain("tag_mode=true");
    await pick("Batch mode (always show checkboxes)");
    expect(localStorage.getItem("enable-batch-delete")).toBe("true");
  });

  test("a searched key finds its channel and never stands in the address", async () => {
    const key = "sk-0123456789abcdef0123456789abcdef";
    const island = openChannels();
    const found: Record<string, unknown[]> = { [key]: [ROWS[3]] };
    island.answer("GET /api/channel/search", ({ query }: SentRequest) => ({
      success: true,
      data: found[query["keyword"] ?? ""] ?? [],
      total: 1,
    }));
    const box = screen.getByRole("searchbox");
    await island.user.type(box, `${key}{Enter}`);
    await done();
    expect(screen.getByText("The key belongs to delta")).toBeTruthy();
    expect(location.search).toBe("?keyword=4");
    await island.user.clear(box);
    await island.user.type(box, `${key}x{Enter}`);
    await done();
    expect(screen.getByText("No channel has this key")).toBeTruthy();
    expect(location.href).not.toContain("sk-");
    expect(["alpha", "api.example.com", "a-channel-name", key].map(isKeyLike)).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });

  test("what is remembered is written into a bare address", async () => {
    openChannels({ page: { remembered: { tag_mode: "true" } } });
    await done();
    expect(location.search).toBe("?tag_mode=true");
    expect(screen.getByRole("button", { name: /east/, expanded: true })).toBeTruthy();
  });

  test("an address of a channel that is gone says so and is cleaned", async () => {
    const island = openChannels({ url: "/channel?edit=99" });
    island.answer(
      "GET /api/channel/99",
      Response.json({ success: false, message: "no", code: "record_missing" }),
    );
    expect(await screen.findByText("Channel not found. Refresh the page and try again.")).toBeTruthy();
    await waitFor(() => expect(location.search).toBe(""));
  });
});

describe("quick edits", () => {
  async function edit(name: string, column: string, text: string) {
    const island = openChannels();
    await island.user.click(within(rowOf(name)).getByTitle(`Edit ${column}`));
    const field = screen.getByLabelText(`Edit ${column}`);
    await island.user.clear(field);
    await island.user.type(field, `${text}{Enter}`);
    await done();
    return island;
  }

  test("a priority is saved alone, and undo brings the old one back", async () => {
    const island = await edit("alpha", "Priority", "9");
    expect(calls(island)).toEqual([["PUT", "/api/channel", { id: 1, priority: 9 }]]);
    await island.user.click(await screen.findByRole("button", { name: "Undo" }));
    await done();
    expect(calls(island).at(-1)).toEqual(["PUT", "/api/channel", { id: 1, priority: 5 }]);
  });

  test("priorities go down to -999 and weights to 0; less is refused at the cell", async () => {
    const first = await edit("alpha", "Priority", "-1000");
    expect(writes(first)).toEqual([]);
    expect(rowOf("alpha").textContent).toContain("-999 or higher");
    first.unmount();
    expect(writes(await edit("alpha", "Weight", "-1"))).toEqual([]);
    expect(screen.getByText("Weight must be a whole number, 0 or higher")).toBeTruthy();
  });

  test("an empty value changes nothing", async () => {
    const first = await edit("alpha", "Priority", " ");
    expect(writes(first)).toEqual([]);
    first.unmount();
    expect(writes(await edit("alpha", "Groups", " "))).toEqual([]);
  });

  test("a refused value rolls back and its reason stands at the cell", async () => {
    const island = openChannels();
    island.answer("PUT /api/channel", { success: false, message: "too many groups", code: "x" });
    await island.user.click(within(rowOf("alpha")).getByTitle("Edit Groups"));
    await island.user.type(screen.getByLabelText("Edit Groups"), ",vip{Enter}");
    await done();
    expect(within(rowOf("alpha")).getByRole("alert").textContent).toBe("too many groups");
    expect(rowOf("alpha").textContent).not.toContain("vip");
  });
});

describe("status", () => {
  test("enabling a failed channel can be undone: it is auto-disabled again", async () => {
    const island = openChannels();
    await menu(island, "bravo", "Enable");
    expect(calls(island)).toEqual([["PUT", "/api/channel", { id: 2, status: 1 }]]);
    await island.user.click(await screen.findByRole("button", { name: "Undo" }));
    await done();
    expect(calls(island).at(-1)).toEqual(["PUT", "/api/channel", { id: 2, status: 3 }]);
  });

  test("a selection is switched at once; those that are already so are left alone; undo gives each its own", async () => {
    const island = openChannels();
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    const bar = within(screen.getByRole("toolbar"));
    await island.user.click(bar.getByRole("button", { name: "Disable" }));
    await done();
    expect(calls(island).map(([, , body]) => body)).toEqual([1, 2, 4, 5].map((id) => ({ id, status: 2 })));
    expect(screen.getByText("4 channels disabled")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await done();
    expect(
      calls(island)
        .slice(4)
        .map(([, , body]) => body),
    ).toEqual([
      { id: 1, status: 1 },
      { id: 2, status: 3 },
      { id: 4, status: 1 },
      { id: 5, status: 1 },
    ]);
  });

  test("the status is changed in its cell too; what is disabled already is not disabled again", async () => {
    const island = openChannels();
    const pick = async (name: string, status: string) => {
      await island.user.click(within(rowOf(name)).getByTitle("Edit Status"));
      await island.user.selectOptions(screen.getByLabelText("Edit Status"), status);
      await island.user.keyboard("{Enter}");
      await done();
    };
    await pick("bravo", "Disabled");
    expect(writes(island)).toEqual([]);
    await pick("bravo", "Enabled");
    expect(calls(island)).toEqual([["PUT", "/api/channel", { id: 2, status: 1 }]]);
  });

  test("a refusal in the middle puts the shown status right again", async () => {
    const island = openChannels();
    island.answer("PUT /api/channel", { success: false, message: "not now", code: "x" });
    await menu(island, "alpha", "Disable");
    expect(rowOf("alpha").textContent).toContain("Enabled");
    expect((await screen.findByRole("alert")).textContent).toContain("not now");
  });
});

describe("tests", () => {
  test("a test runs in the row: first that it runs, then its time, then the list is read again", async () => {
    const island = openChannels();
    const { promise, resolve } = Promise.withResolvers<object>();
    island.answer("GET /api/channel/test/1", () => promise);
    await menu(island, "alpha", /^Test$/);
    expect(rowOf("alpha").textContent).toContain("Testing");
    resolve({ success: true, message: "", time: 0.42 });
    await done();
    expect(screen.getByText("alpha answered in 0.42 s")).toBeTruthy();
    expect(island.requests.some(({ path }) => path === "/api/channel/search")).toBe(true);
  });

  test("what the provider said stands in the row", async () => {
    const island = openChannels();
    island.answer("GET /api/channel/test/2", {
      success: false,
      message: "401: invalid key",
      code: "y",
      time: 0.1,
    });
    await menu(island, "bravo", /^Test$/);
    expect(rowOf("bravo").textContent).toContain("Failed · 3.0 s401: invalid key");
  });

  test("a selection is tested with a sum at the end", async () => {
    const island = openChannels();
    for (const id of [1, 2, 3, 4, 5])
      island.answer(`GET /api/channel/test/${id}`, { success: id !== 2, message: "no", code: "z", time: 1 });
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Test" }));
    await done();
    expect(screen.getByText("Tests done: 4 passed, 1 failed")).toBeTruthy();
  });

  test("of a selection what cannot be tested is left out, counted apart, and said with its reason", async () => {
    const island = openChannels();
    for (const id of [1, 2, 3, 4, 5])
      island.answer(`GET /api/channel/test/${id}`, {
        success: id > 3,
        message: id === 3 ? "no" : "no test for this type",
        code: id === 3 ? "z" : "channel_untested",
        time: 1,
      });
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Test" }));
    await done();
    expect(screen.getByText("Tests done: 2 passed, 1 failed")).toBeTruthy();
    expect(screen.getByText("2 skipped")).toBeTruthy();
    expect(screen.getByText("Skipped alpha: no test for this type")).toBeTruthy();
    expect(rowOf("alpha").textContent).toContain("Skippedno test for this type");
    expect(rowOf("charlie").textContent).toContain("Failed");
  });

  test.each([
    ["en", "More actions", "Test all channels", "2 skipped", "Skipped mj: no test"],
    ["zh", "更多操作", "测试所有渠道", "跳过 2 个", "已跳过 mj：no test"],
  ] as const)(
    "in %s a run over all says what it left out and why",
    async (language, more, all, count, reason) => {
      const island = openChannels({ language });
      island.answer("GET /api/channel/test", { success: true, message: "" });
      island.answer("GET /api/channel/test_progress", {
        success: true,
        data: {
          isRunning: false,
          isCancelled: false,
          done: 3,
          total: 3,
          failed: 0,
          skipped: 2,
          skips: ["mj", "suno"].map((name, id) => ({
            id,
            name,
            code: "channel_untested",
            message: "no test",
          })),
          elapsedMs: 1,
        },
      });
      await island.user.click(screen.getByRole("button", { name: more }));
      await island.user.click(await screen.findByRole("menuitem", { name: all }));
      expect((await screen.findByText(count)).textContent).toBe(count);
      expect(screen.getByText(reason).textContent).toBe(reason);
    },
  );

  test("testing all shows how far it is until it is through", async () => {
    const island = openChannels();
    const steps = [
      { isRunning: true, done: 2, total: 5, failed: 1, skipped: 0, skips: [] },
      { isRunning: false, done: 5, total: 5, failed: 1, skipped: 0, skips: [] },
    ];
    island.answer("GET /api/channel/test", { success: true, message: "" });
    island.answer("GET /api/channel/test_progress", () => ({
      success: true,
      data: steps.length > 1 ? steps.shift() : steps[0],
    }));
    await pageMenu(island, "Test all channels");
    expect(screen.getByText("Testing: 2 of 5, 1 failed")).toBeTruthy();
    expect(screen.getByRole("progressbar", { name: "Test all channels" })).toBeTruthy();
    await screen.findByText("Tests done: 4 passed, 1 failed");
    expect(screen.queryByRole("progressbar")).toBeNull();
  });

  test("a run tells how long it still takes, can be stopped, and its result stays until it is closed", async () => {
    const island = openChannels();
    let isCancelled = false;
    island.answer("GET /api/channel/test", { success: true, message: "" });
    island.answer("POST /api/channel/test_cancel", () => {
      isCancelled = true;
      return { success: true, message: "" };
    });
    island.answer("GET /api/channel/test_progress", () => ({
      success: true,
      data: {
        isRunning: !isCancelled,
        isCancelled,
        done: 2,
        total: 5,
        failed: 1,
        skipped: 0,
        skips: [],
        elapsedMs: 20_000,
      },
    }));
    await pageMenu(island, "Test all channels");
    expect(screen.getByText("about 30 s left")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Stop" }));
    await screen.findByText("Tests done: 1 passed, 1 failed");
    expect(screen.getByText("cancelled, 3 not reached")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Close" }));
    expect(screen.queryByText("Tests done: 1 passed, 1 failed")).toBeNull();
  });

  test("a selection's test begins no further channel once it is stopped", async () => {
    const island = openChannels();
    const asked: number[] = [];
    let answerAll = () => undefined as void;
    const held = new Promise<void>((resolve) => (answerAll = resolve));
    for (const id of [1, 2, 3, 4, 5])
      island.answer(`GET /api/channel/test/${id}`, async () => {
        asked.push(id);
        await held;
        return { success: true, message: "", time: 1 };
      });
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Test" }));
    await island.user.click(await screen.findByRole("button", { name: "Stop" }));
    answerAll();
    await screen.findByText("cancelled, 2 not reached");
    expect(asked.length).toBe(3);
  });

  test("a run that this tab began is followed again after a reload", async () => {
    sessionStorage.setItem("channel test run", "1");
    const island = openChannels();
    island.answer("GET /api/channel/test_progress", {
      success: true,
      data: { isRunning: false, done: 5, total: 5, failed: 2, skipped: 0, skips: [] },
    });
    await done();
    expect(screen.getByText("Tests done: 3 passed, 2 failed")).toBeTruthy();
    expect(sessionStorage.getItem("channel test run")).toBeNull();
  });

  test("a run that is under way is joined, not doubled", async () => {
    const island = openChannels();
    island.answer("GET /api/channel/test", {
      success: false,
      message: "a test is running",
      code: "channel_test_running",
    });
    island.answer("GET /api/channel/test_progress", {
      success: true,
      data: { isRunning: false, done: 5, total: 5, failed: 0, skipped: 0, skips: [] },
    });
    await pageMenu(island, "Test all channels");
    expect(screen.getByText("a test is running")).toBeTruthy();
    expect(screen.getByText("Tests done: 5 passed, 0 failed")).toBeTruthy();
  });
});

describe("balances, copies, repairs", () => {
  test("a balance is read again by pressing it, and what a type cannot do is said", async () => {
    const island = openChannels();
    island.answer("GET /api/channel/update_balance/4", { success: true, message: "", balance: 7.25 });
    await island.user.click(within(rowOf("delta")).getByTitle("Update balance"));
    await done();
    expect(screen.getByText("Balance of delta: $7.25")).toBeTruthy();
    island.answer("GET /api/channel/update_balance/1", {
      success: false,
      message: "not implemented",
      code: "b",
    });
    await menu(island, "alpha", "Update balance");
    expect((await screen.findByRole("alert")).textContent).toContain("not implemented");
  });

  test("all balances are updated with a word at the start and at the end", async () => {
    const island = openChannels({ language: "zh" });
    island.answer("GET /api/channel/update_balance", { success: true, message: "" });
    island.answer("GET /api/channel/balance_progress", {
      success: true,
      data: {
        isRunning: false,
        isCancelled: false,
        done: 4,
        total: 4,
        failed: 0,
        skipped: 0,
        skips: [],
        elapsedMs: 900,
      },
    });
    await island.user.click(screen.getByRole("button", { name: "更多操作" }));
    await island.user.click(screen.getByRole("menuitem", { name: "更新所有已启用渠道余额" }));
    await done();
    expect(screen.getByText("已更新完毕所有已启用渠道余额！")).toBeTruthy();
  });

  test("a copy is made on the server and opened; a failed one says the specification's words", async () => {
    const island = openChannels({ language: "zh" });
    island.answer("POST /api/channel/copy/1", { success: true, data: { id: 5 } });
    const copy = async () => {
      await island.user.click(within(rowOf("alpha")).getByRole("button", { name: /更多|操作|alpha/ }));
      await island.user.click(screen.getByRole("menuitem", { name: "复制渠道" }));
      await done();
    };
    await copy();
    expect(screen.getByText("渠道复制成功")).toBeTruthy();
    expect(location.search).toBe("?edit=5");
    island.unmount();
    const other = openChannels({ language: "zh" });
    other.answer("POST /api/channel/copy/1", { success: false, message: "满了", code: "x" });
    await other.user.click(within(rowOf("alpha")).getByRole("button", { name: /更多|操作|alpha/ }));
    await other.user.click(screen.getByRole("menuitem", { name: "复制渠道" }));
    await done();
    expect(screen.getByText("渠道复制失败: 满了")).toBeTruthy();
  });

  test("repairing tells how many entries were wrong", async () => {
    const island = openChannels();
    island.answer("POST /api/channel/fix", { success: true, data: 3 });
    await pageMenu(island, "Repair abilities");
    expect(screen.getByText("Abilities are consistent; 3 entries were fixed")).toBeTruthy();
  });
});

describe("deleting", () => {
  test("one channel is named, many are counted, and those in use are told", async () => {
    const island = openChannels();
    island.answer("POST /api/channel/batch", ({ body }: SentRequest) => ({
      success: true,
      data: (body as { ids: number[] }).ids.length,
    }));
    await menu(island, "charlie", "Delete");
    const first = within(await screen.findByRole("dialog", { name: "Delete channel charlie?" }));
    await island.user.click(first.getByRole("button", { name: "Cancel" }));
    expect(writes(island)).toEqual([]);
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Delete" }));
    const many = within(await screen.findByRole("dialog", { name: "Delete 5 channels?" }));
    expect(many.getByText(/3 of them are enabled/)).toBeTruthy();
    await island.user.click(many.getByRole("button", { name: "Delete 5 channels" }));
    await done();
    expect(calls(island)).toEqual([["POST", "/api/channel/batch", { ids: [1, 2, 3, 4, 5] }]]);
    expect(screen.getByText("5 channels deleted")).toBeTruthy();
  });

  test("deleting what is disabled counts anew, names both kinds, and asks", async () => {
    const island = openChannels();
    const fresh = { total: 9, enabled: 3, disabled: 4, auto_disabled: 2, untested: 0, tags: [] };
    island.answer("GET /api/channel/summary", { success: true, data: fresh });
    island.answer("DELETE /api/channel/disabled", { success: true, data: 6 });
    await pageMenu(island, "Delete disabled channels (2)");
    const dialog = within(await screen.findByRole("dialog", { name: "Delete all 6 disabled channels?" }));
    expect(dialog.getByText(/4 disabled by hand, 2 disabled automatically/)).toBeTruthy();
    await island.user.click(dialog.getByRole("button", { name: "Delete 6 channels" }));
    await done();
    expect(calls(island)).toEqual([["DELETE", "/api/channel/disabled", undefined]]);
    expect(screen.getByText("6 channels deleted")).toBeTruthy();
  });

  test("more than twenty have to be typed", async () => {
    const rows = Array.from({ length: 21 }, (_, index) => channel(index + 1, { status: 2 }));
    const island = openChannels({ rows, page: { pageSize: 50 } });
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Delete" }));
    const dialog = within(await screen.findByRole("dialog"));
    const button = dialog.getByRole<HTMLButtonElement>("button", { name: "Delete 21 channels" });
    expect(button.disabled).toBe(true);
    await island.user.type(dialog.getByRole("textbox"), "21");
    expect(button.disabled).toBe(false);
  });
});

describe("selecting", () => {
  test("the whole cell around a checkbox selects: a finger beside the small box opens nothing", async () => {
    const island = openChannels();
    const box = screen.getByRole<HTMLInputElement>("checkbox", { name: "Select alpha" });
    await island.user.click(box.closest("td")!);
    expect(box.checked).toBe(true);
    await island.user.click(box.closest("td")!);
    expect(box.checked).toBe(false);
    expect(location.search).toBe("");
  });
});

describe("by keyboard", () => {
  test("c opens a new channel, j walks the rows, x selects, o opens the editor", async () => {
    const island = openChannels();
    await island.user.keyboard("jjx");
    expect(screen.getByRole("toolbar").textContent).toContain("1 selected");
    await island.user.keyboard("o");
    expect(await screen.findByRole("dialog", { name: "Edit channel: bravo" })).toBeTruthy();
    await island.user.keyboard("{Escape}");
    expect(ROWS[1]?.name).toBe("bravo");
  });

  test("the palette's actions for a selection say when there is none", async () => {
    const island = openChannels({ language: "zh" });
    for (const [command, text] of [
      ["设置标签", "请先选择要设置标签的渠道！"],
      ["删除所选渠道", "请先选择要删除的通道！"],
    ] as const) {
      await island.user.keyboard("{Control>}k{/Control}");
      const box = await screen.findByRole("combobox", { name: "搜索或跳转" });
      await island.user.type(box, command);
      await island.user.keyboard("{Enter}");
      await done();
      expect(screen.getByText(text)).toBeTruthy();
    }
    expect(writes(island)).toEqual([]);
  });
});
