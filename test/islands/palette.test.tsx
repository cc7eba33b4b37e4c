// What the palette finds from anywhere: rows of every area by name, id, pinyin and initials, for whoever may see them.
import { describe, expect, spyOn, test } from "bun:test";
import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { newRequestId } from "../../src/http/request-id.ts";
import { pinyinWords } from "../../islands/lib/pinyin.ts";
import { renderPart, settle } from "./render.tsx";
import type { Island, IslandOptions, SentRequest } from "./render.tsx";

const CHANNELS = [
  { id: 42, name: "上海渠道 A" },
  { id: 7, name: "azure east" },
];
const KEYS = [{ id: 3, name: "笔记本" }];
const USERS = [
  { id: 5, username: "bob", display_name: "鲍勃", role: 1 },
  { id: 1, username: "root", display_name: "root", role: 100 },
];
const REQUEST_ID = "202611201225_02123000001AbCdEfGh";
const named = <Row,>(rows: readonly Row[], { query }: SentRequest) =>
  rows.filter((row) => JSON.stringify(Object.values(row as object)).includes(query.keyword ?? ""));

async function open(options: IslandOptions = {}): Promise<Island & { box: HTMLElement }> {
  const island = renderPart(null, { user: { role: 10 }, ...options });
  island.answer("GET /api/channel/search", (sent: SentRequest) => ({
    success: true,
    data: named(CHANNELS, sent),
  }));
  island.answer("GET /api/token/search", (sent: SentRequest) => ({ success: true, data: named(KEYS, sent) }));
  island.answer("GET /api/user/search", (sent: SentRequest) => ({
    success: true,
    data: { items: named(USERS, sent), total: 2 },
  }));
  island.answer("GET /api/channel/models_enabled", { success: true, data: ["gpt-4o", "claude-opus"] });
  island.answer("GET /api/user/models", { success: true, data: ["gpt-4o"] });
  const row = { id: 900, created_at: 1_800_000_000, model_name: "gpt-4o", type: 2 };
  const log = ({ query }: SentRequest) => ({
    success: true,
    data: { items: query.request_id === REQUEST_ID ? [row] : [], total: 1 },
  });
  island.answer("GET /api/log", log);
  island.answer("GET /api/log/self", log);
  await island.user.keyboard("{Control>}k{/Control}");
  return { ...island, box: await screen.findByRole("combobox") };
}

const shown = () => screen.queryAllByRole("option").map((each) => each.textContent);

async function ask({ box }: { box: HTMLElement }, question: string, ...expected: string[]): Promise<void> {
  fireEvent.change(box, { target: { value: question } });
  await waitFor(() => {
    if (box.getAttribute("aria-busy") === "true") throw new Error("still searching");
    expect([question, shown()]).toEqual([question, expected]);
  });
}

/** Where pressing a line leads. */
async function leadsTo(text: string): Promise<string> {
  let to = "";
  const assign = spyOn(location, "assign").mockImplementation((url) => void (to = String(url)));
  const line = screen.getAllByRole("option").find((each) => each.textContent === text);
  act(() => line?.click());
  assign.mockRestore();
  return to;
}

describe("rows from anywhere", () => {
  test("channels, keys and users by name, pinyin, initials and id; each opens its own drawer", async () => {
    const island = await open();
    await ask(island, "上海", "上海渠道 AChannel 42");
    await ask(island, "shanghai", "上海渠道 AChannel 42");
    await ask(island, "shqd", "上海渠道 AChannel 42");
    await ask(island, "bjb", "笔记本API key");
    await ask(island, "baobo", "bob (鲍勃)User 5");
    await ask(island, "azure", "azure eastChannel 7");
    await ask(island, "channel 42", "上海渠道 AChannel 42");
    await ask(island, "qd 42", "上海渠道 AChannel 42");
    const many = [8, 7, 6, 5, 4, 3, 2].map((id) => ({ id, name: `line 2${id}` }));
    island.answer("GET /api/channel/search", { success: true, data: many });
    await ask(
      island,
      "channel 2",
      "line 22Channel 2",
      ...[8, 7, 6, 5].map((id) => `line 2${id}Channel ${id}`),
    );
    island.answer("GET /api/channel/search", { success: true, data: CHANNELS.slice(0, 1) });
    await ask(island, "channel 42", "上海渠道 AChannel 42");
    expect(await leadsTo("上海渠道 AChannel 42")).toBe("/channel?edit=42");
  });

  test("a key's list is narrowed to it; who may not be changed is shown in the list", async () => {
    const key = await open();
    await ask(key, "笔记", "笔记本API key");
    expect(await leadsTo("笔记本API key")).toBe(`/token?keyword=${encodeURIComponent("笔记本")}&edit=3`);
    key.unmount();
    const person = await open();
    await ask(person, "user root", "rootUser 1");
    expect(await leadsTo("rootUser 1")).toBe("/user?keyword=root");
  });

  test("the prices are a page to go to, by words of either language", async () => {
    const island = await open({ user: { role: 1 } });
    await ask(island, "jiage", "PricingGo");
    expect(await leadsTo("PricingGo")).toBe("/pricing");
  });

  test("models lead to their calls and prices, administrators also to their channels; the list is asked for once", async () => {
    const island = await open();
    await ask(
      island,
      "opus",
      "claude-opusModel: usage log",
      "claude-opusModel: channels",
      "claude-opusModel: price",
    );
    await ask(island, "gpt 4o", "gpt-4oModel: usage log", "gpt-4oModel: channels", "gpt-4oModel: price");
    expect(island.requests.filter(({ path }) => path === "/api/channel/models_enabled")).toHaveLength(1);
    expect(await leadsTo("gpt-4oModel: channels")).toBe("/channel?model=gpt-4o");
    island.unmount();
    await ask(await open({ user: { role: 1 } }), "gpt 4o", "gpt-4oModel: usage log", "gpt-4oModel: price");
    expect(await leadsTo("gpt-4oModel: price")).toBe("/pricing?model=gpt-4o");
  });

  test("a whole request id opens its log row, by the name that the role's list gives it", async () => {
    for (const [role, path, key] of [
      [10, "/api/log", "900"],
      [1, "/api/log/self", "1800000000-900"],
    ] as const) {
      const island = await open({ user: { role } });
      await ask(island, REQUEST_ID, `${REQUEST_ID}gpt-4o`);
      expect(
        island.requests.filter((sent) => sent.path.startsWith("/api/log")).map((sent) => sent.path),
      ).toEqual([path === "/api/log" ? expect.stringMatching(/^\/api\/log\/?$/) : path]);
      expect(await leadsTo(`${REQUEST_ID}gpt-4o`)).toBe(
        `/log?request_id=${REQUEST_ID}&start_timestamp=1799998200&end_timestamp=1800001800&id=${key}`,
      );
      island.unmount();
    }
    const island = await open();
    for (const id of Array.from({ length: 20 }, () => newRequestId())) {
      await ask(island, id);
      expect(island.requests.filter(({ query }) => query.request_id === id)).toHaveLength(1);
    }
    island.requests.length = 0;
    await ask(island, "20261120120000123000001");
    expect(island.requests.some((sent) => sent.path.startsWith("/api/log"))).toBe(false);
  });

  test("ordinary users ask for their own keys, models and calls only", async () => {
    const island = await open({ user: { role: 1 } });
    await ask(island, "gpt", "gpt-4oModel: usage log", "gpt-4oModel: price");
    await ask(island, "azure");
    await ask(island, "new", "New API keyDo");
    expect(new Set(island.requests.map(({ path }) => path))).toEqual(
      new Set(["/api/token/search", "/api/user/models"]),
    );
  });
});

describe("asking", () => {
  test("one round of calls once typing pauses; a single letter and a composing input method ask nothing", async () => {
    const island = await open();
    fireEvent.change(island.box, { target: { value: "q" } });
    expect(island.box.getAttribute("aria-busy")).toBe("false");
    fireEvent.compositionStart(island.box);
    fireEvent.change(island.box, { target: { value: "shang" } });
    expect(island.box.getAttribute("aria-busy")).toBe("false");
    expect(island.requests).toEqual([]);
    fireEvent.compositionEnd(island.box);
    for (const value of ["上", "上海", "上海渠"]) fireEvent.change(island.box, { target: { value } });
    await ask(island, "上海渠道", "上海渠道 AChannel 42");
    expect(island.requests.map(({ path, query }) => [path, query.keyword])).toEqual([
      ["/api/channel/search", "上海渠道"],
      ["/api/token/search", "上海渠道"],
      ["/api/user/search", "上海渠道"],
      ["/api/channel/models_enabled", undefined],
    ]);
  });

  test("an answer that was overtaken is not shown, whenever it comes", async () => {
    const island = await open();
    let release = () => undefined as void;
    island.answer("GET /api/channel/search", (sent: SentRequest) =>
      sent.query.keyword === "azure eas"
        ? new Promise((resolve) => {
            release = () => resolve({ success: true, data: [{ id: 9, name: "azure east of old" }] });
          })
        : { success: true, data: named(CHANNELS, sent) },
    );
    fireEvent.change(island.box, { target: { value: "azure eas" } });
    await waitFor(() => {
      expect(island.requests.some(({ query }) => query.keyword === "azure eas")).toBe(true);
    });
    await ask(island, "azure east", "azure eastChannel 7");
    release();
    await settle();
    expect(shown()).toEqual(["azure eastChannel 7"]);
    expect(island.box.getAttribute("aria-busy")).toBe("false");
  });

  test("what a question found goes with it, and an area that fails is told beside what the others found", async () => {
    const island = await open();
    await ask(island, "azure", "azure eastChannel 7");
    fireEvent.change(island.box, { target: { value: "azure west" } });
    expect(shown()).toEqual([]);
    expect(screen.getByText("Searching…").getAttribute("role")).toBe("status");
    island.answer("GET /api/user/search", Response.json({ success: false, message: "no" }, { status: 500 }));
    await ask(island, "azure", "azure eastChannel 7");
    await screen.findByText("Not everything could be searched. Type on to try again.");
    await island.user.keyboard("{ArrowDown}");
    expect(island.box.getAttribute("aria-activedescendant")).toBe(screen.getByRole("option").id);
  });
});

describe("what can be done from anywhere", () => {
  test("new things by role, and leaving; found in both languages and by pinyin", async () => {
    const island = await open({ language: "zh" });
    await ask(island, "xinjian", "新建令牌操作", "新建渠道操作", "新建用户操作", "新建兑换码操作");
    await ask(island, "new user", "新建用户操作");
    await ask(island, "log out", "退出登录操作");
    await ask(island, "tcdl", "退出登录操作");
    await ask(island, "xjqd", "新建渠道操作");
    expect(await leadsTo("新建渠道操作")).toBe("/channel?new=1");
  });
});

test("Han is read by the alphabet of Chinese: syllables, initials, ü as v and u; the rest stays", () => {
  expect(pinyinWords("渠道 A")).toBe("qudao a qd a");
  expect(pinyinWords("绿色通道")).toBe("lvsetongdao lusetongdao lstd");
  expect(pinyinWords("GPT-4o")).toBe("");
  const words =
    "数据看板 操练场 令牌 使用日志 兑换码 用户管理 钱包 个人设置 北京 深圳 测试 备用 公司 谷歌 智谱 女儿";
  expect(words.split(" ").map((word) => pinyinWords(word).split(" ").at(-1))).toEqual(
    "sjkb clc lp syrz dhm yhgl qb grsz bj sz cs by gs gg zp ne".split(" "),
  );
});
