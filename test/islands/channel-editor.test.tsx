// The channel editor: types and what they rewrite, keys, models fetched and compared, settings without JSON, saving with a test.
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { act, screen, within } from "@testing-library/react";
import {
  bodyOf,
  changedBody,
  isProxy,
  NEW_CHANNEL,
  valuesOf,
  wrongNetworks,
} from "../../islands/screens/channel/values.ts";
import { setQuery } from "../../islands/lib/url-state.ts";
import { calls, channel, done, openChannels, ROWS, rowOf, writes } from "./channel-fixture.ts";
import type { OpenOptions } from "./channel-fixture.ts";
import enFailure from "../../locales/en/failure.json";
import zhFailure from "../../locales/zh/failure.json";
import type { SentRequest, Island } from "./render.tsx";

beforeAll(async () => {
  // Parts that are loaded on demand: a slow first import must not decide a test.
  await import("../../islands/screens/channel/drawer.tsx");
  await import("../../islands/screens/channel/routing-part.tsx");
  await import("../../islands/screens/channel/rewrite-part.tsx");
  await import("../../islands/screens/channel/actions.ts");
});
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

async function openEditor(options: OpenOptions = {}): Promise<Island> {
  const island = openChannels({ url: "/channel?new=1", ...options });
  island.answer("POST /api/channel", { success: true, data: [9] });
  await screen.findByRole("dialog");
  await done();
  return island;
}

const drawer = () => within(screen.getByRole("dialog"));
const field = (name: string | RegExp) => drawer().getByRole<HTMLInputElement>("textbox", { name });
const press = (island: Island, name: string | RegExp) =>
  island.user.click(drawer().getByRole("button", { name }));
const tokens = (name: RegExp) =>
  within(drawer().getByRole("list", { name }))
    .getAllByRole("listitem")
    .map((item) => item.textContent);

async function pickType(island: Island, question: string) {
  const box = drawer().getByRole("combobox", { name: "Type" });
  await island.user.click(box);
  await island.user.type(box, question);
  await island.user.keyboard("{Enter}");
  await done();
}

describe("what is refused", () => {
  test("a new channel needs name, key and a model, in the specification's words", async () => {
    const island = await openEditor({ language: "zh" });
    await island.user.click(drawer().getByRole("button", { name: "新建" }));
    await done();
    expect(drawer().getAllByText("请填写渠道名称和渠道密钥！")).toHaveLength(2);
    expect(drawer().getByText("请至少选择一个模型！")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("fetching models of a new channel needs a key; a failed fetch says so with the reason", async () => {
    const island = await openEditor({ language: "zh" });
    await press(island, "获取模型列表");
    expect(drawer().getByText("请填写密钥")).toBeTruthy();
    island.answer("POST /api/channel/fetch_models", {
      success: false,
      message: "status code: 401",
      code: "x",
    });
    await island.user.type(field(/^密钥/), "sk-1");
    await press(island, "获取模型列表");
    await done();
    expect(drawer().getByRole("alert").textContent).toBe("获取模型列表失败: status code: 401");
  });

  test("a model that is there already is refused and the text stays", async () => {
    const island = await openEditor({ language: "zh", url: "/channel?edit=1" });
    const input = drawer().getByRole("combobox", { name: /^模型（2）/ });
    await island.user.type(input, "gpt-9,gpt-4o{Enter}");
    expect(drawer().getByText("某些模型已存在！")).toBeTruthy();
    expect((input as HTMLInputElement).value).toBe("gpt-4o");
    expect(tokens(/^模型/)).toEqual(["gpt-4o", "gpt-4o-mini", "gpt-9"]);
  });

  test("a mapping that is no JSON opens its part and is named", async () => {
    const rows = [channel(1, { name: "alpha", model_mapping: "{broken" })];
    const island = await openEditor({ language: "zh", rows, url: "/channel?edit=1" });
    await island.user.type(field(/^名称/), "x");
    await press(island, "保存");
    await done();
    expect(drawer().getByText("模型映射必须是合法的 JSON 格式！")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("proxies and networks are checked where they are typed", () => {
    expect(["", "socks5://h:1", "http://h", "socks5h://u:p@h:1"].map(isProxy)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(["h:1", "ftp://h", "socks5//h"].map(isProxy)).toEqual([false, false, false]);
    expect(wrongNetworks("10.0.0.0/8\n192.168.1.4, fd00::/8\nlocalhost")).toEqual(["localhost"]);
  });

  test("a field that the server refuses carries the server's words", async () => {
    const island = await openEditor({ url: "/channel?edit=1" });
    island.answer("PUT /api/channel", {
      success: false,
      message: "not an address",
      code: "option_not_url",
      field: "base_url",
    });
    await island.user.type(field("Base URL"), "nonsense");
    await press(island, "Save");
    await done();
    const box = field("Base URL");
    expect(box.getAttribute("aria-invalid")).toBe("true");
    expect(document.getElementById(box.getAttribute("aria-describedby") ?? "")?.textContent).toBe(
      "not an address",
    );
  });

  test.each(["zh", "en"] as const)(
    "an address that needs the key again says so at the key (%s)",
    async (to) => {
      const island = await openEditor({ language: to, url: "/channel?edit=1" });
      const message = { zh: zhFailure, en: enFailure }[to].channel_key_again;
      const refused = { success: false, message, code: "channel_key_again", field: "key" };
      island.answer("PUT /api/channel", refused);
      await island.user.type(field({ zh: "API 地址", en: "Base URL" }[to]), "https://other.example");
      await press(island, { zh: "保存", en: "Save" }[to]);
      await done();
      const box = field({ zh: /^密钥/, en: /^Key/ }[to]);
      expect(box.getAttribute("aria-invalid")).toBe("true");
      expect(document.getElementById(box.getAttribute("aria-describedby") ?? "")?.textContent).toBe(message);
    },
  );
});

describe("the provider", () => {
  test("the list is searched, has groups, and picking a type rewrites labels, hints and models", async () => {
    const island = await openEditor();
    const box = drawer().getByRole("combobox", { name: "Type" });
    await island.user.click(box);
    const list = within(drawer().getByRole("listbox"));
    expect(list.getAllByRole("group").map((group) => group.getAttribute("aria-label"))).toEqual([
      "OpenAI-compatible",
      "Native protocol",
      "Tasks",
    ]);
    await island.user.type(box, "anthropic");
    expect(list.getAllByRole("option").map((option) => option.textContent)).toEqual(["Anthropic Claude"]);
    await island.user.keyboard("{Enter}");
    await done();
    expect(tokens(/^Models/)).toEqual(["claude-a"]);
    await pickType(island, "spark");
    expect(field("Model version").value).toBe("v2.1");
    expect(drawer().getByText(/APPID\|APISecret\|APIKey/)).toBeTruthy();
    await pickType(island, "azure");
    expect(field(/^Resource endpoint/).required).toBe(true);
    expect(field(/^Default API version/).value).toBe("");
  });

  test("Escape closes the list and nothing else; a type is not changed by typing alone", async () => {
    const island = await openEditor();
    const box = drawer().getByRole<HTMLInputElement>("combobox", { name: "Type" });
    await island.user.click(box);
    await island.user.type(box, "gemini{Escape}");
    expect(drawer().queryByRole("listbox")).toBeNull();
    expect(box.value).toBe("OpenAI");
    await island.user.keyboard("{ArrowDown}{ArrowDown}{Enter}");
    expect(box.value).not.toBe("OpenAI");
  });
});

describe("connection", () => {
  test("several keys make several channels, and the count is said before", async () => {
    const island = await openEditor();
    island.answer("POST /api/channel", { success: true, data: [9, 10] });
    await island.user.type(field(/^Name/), "two");
    await island.user.type(field(/^Key/), "sk-1\n\nsk-2");
    expect(drawer().getByText(/One key per line: creates 2 channels/)).toBeTruthy();
    await press(island, /^Add related models/);
    await press(island, "Create");
    await done();
    expect(calls(island)).toEqual([
      [
        "POST",
        "/api/channel",
        {
          ...bodyOf({ ...NEW_CHANNEL, name: "two", key: "sk-1\n\nsk-2", models: "gpt-4o,gpt-4o-mini,gpt-5" }),
        },
      ],
    ]);
    expect(screen.getByText("2 channels created")).toBeTruthy();
  });

  test("several keys may also make one channel whose keys take turns", async () => {
    const island = await openEditor();
    await island.user.type(field(/^Name/), "one");
    expect(drawer().queryByRole("switch", { name: "One channel for all keys" })).toBeNull();
    await island.user.type(field(/^Key/), "sk-1\nsk-2");
    await island.user.click(drawer().getByRole("switch", { name: "One channel for all keys" }));
    expect(drawer().getByText(/2 keys will take turns/)).toBeTruthy();
    await press(island, /^Add related models/);
    await press(island, "Create");
    await done();
    const [first, ...rest] = calls(island);
    const body = { name: "one", key: "sk-1\nsk-2", mode: "multi_to_single" };
    expect(first).toMatchObject(["POST", "/api/channel", body]);
    expect(rest).toEqual([]);
  });

  test("slashes at the end are trimmed; /v1 is warned of in place and asked about when saving", async () => {
    const island = await openEditor({ url: "/channel?edit=1" });
    await island.user.type(field("Base URL"), "https://api.example.com/v1//");
    await island.user.tab();
    expect(field("Base URL").value).toBe("https://api.example.com/v1");
    expect(
      drawer()
        .getByText(/\/v1\/v1/)
        .getAttribute("role"),
    ).toBe("status");
    await press(island, "Save");
    await done();
    const question = within(screen.getByRole("dialog", { name: "The base URL ends in /v1. Save anyway?" }));
    expect(writes(island)).toEqual([]);
    await island.user.click(question.getByRole("button", { name: "Save anyway" }));
    await done();
    expect(calls(island)).toEqual([
      ["PUT", "/api/channel", { id: 1, base_url: "https://api.example.com/v1" }],
    ]);
  });
});

describe("models", () => {
  test("what the upstream offers is compared before it is applied: new ones ticked, gone ones kept", async () => {
    const island = await openEditor({ url: "/channel?edit=1" });
    island.answer("GET /api/channel/fetch_models/1", {
      success: true,
      data: ["gpt-4o", "gpt-5", "gpt-5-mini"],
    });
    await press(island, "Fetch from upstream");
    await done();
    const panel = within(drawer().getByRole("region", { name: /^2 new/ }));
    expect(panel.getByRole("status").textContent).toBe("2 new, 1 gone (1 unchanged)");
    expect(panel.getByRole<HTMLInputElement>("checkbox", { name: "gpt-4o-mini" }).checked).toBe(false);
    await island.user.click(panel.getByRole("checkbox", { name: "gpt-5-mini" }));
    await island.user.click(panel.getByRole("checkbox", { name: "gpt-4o-mini" }));
    await island.user.click(panel.getByRole("button", { name: "Apply: add 1, remove 1" }));
    expect(tokens(/^Models/)).toEqual(["gpt-4o", "gpt-5"]);
    // Nothing is saved by applying.
    expect(writes(island)).toEqual([]);
  });

  test("typed credentials are asked as they stand", async () => {
    const island = await openEditor();
    island.answer("POST /api/channel/fetch_models", { success: true, data: ["m"] });
    await island.user.type(field("Base URL"), "https://up.example.com/");
    await island.user.type(field(/^Key/), "sk-typed");
    await press(island, "Fetch from upstream");
    await done();
    expect(island.requests.find(({ path }) => path.includes("fetch_models"))?.body).toEqual({
      base_url: "https://up.example.com",
      type: 1,
      key: "sk-typed",
    });
  });

  test("related, all, copied, cleared; pasted as a list; taken away by keyboard", async () => {
    const island = await openEditor();
    await pickType(island, "spark");
    // A type without models of its own: those that begin with gpt- or text-.
    await press(island, "Add related models (3)");
    expect(tokens(/^Models/)).toEqual(["gpt-4o", "gpt-5", "text-embedding-3"]);
    await press(island, "Add all models (4)");
    expect(tokens(/^Models/)).toHaveLength(4);
    await press(island, "Copy all models");
    expect(await navigator.clipboard.readText()).toBe("gpt-4o,gpt-5,text-embedding-3,claude-a");
    await press(island, "Clear all models");
    await island.user.click(drawer().getByRole("combobox", { name: /^Models/ }));
    await island.user.paste("a, b\nc,a");
    expect(tokens(/^Models/)).toEqual(["a", "b", "c"]);
    drawer().getByRole("button", { name: "Remove a" }).focus();
    await island.user.keyboard("{ArrowRight}{Delete}");
    await done();
    expect(tokens(/^Models/)).toEqual(["a", "c"]);
    await island.user.click(drawer().getByRole("combobox", { name: /^Models/ }));
    await island.user.keyboard("{Backspace}");
    await done();
    expect(tokens(/^Models/)).toEqual(["a"]);
  });
});

describe("saving", () => {
  test("only what was changed is sent, a dot marks it, and the key is kept", async () => {
    const island = await openEditor({ url: "/channel?edit=4" });
    await island.user.clear(field(/^Name/));
    await island.user.type(field(/^Name/), "renamed");
    expect(drawer().getByRole("button", { name: "Revert Name" })).toBeTruthy();
    await press(island, "Save");
    await done();
    expect(calls(island)).toEqual([["PUT", "/api/channel", { id: 4, name: "renamed" }]]);
  });

  test("what somebody else set meanwhile in the same text stays set", async () => {
    const island = await openEditor({ url: "/channel?edit=4" });
    const meanwhile = {
      setting: '{"proxy":"http://p:1"}',
      settings: '{"allow_speed":true}',
      models: "claude-b,claude-c,claude-new",
    };
    await island.user.click(drawer().getByText("Rewrite and settings"));
    await island.user.type(field("System prompt"), "be short");
    await island.user.type(drawer().getByRole("combobox", { name: /^Models/ }), "claude-mine{Enter}");
    island.answer("GET /api/channel/4", { success: true, data: { ...ROWS[3], ...meanwhile } });
    await press(island, "Save");
    await done();
    expect(calls(island)).toEqual([
      [
        "PUT",
        "/api/channel",
        {
          id: 4,
          setting: '{"proxy":"http://p:1","system_prompt":"be short"}',
          models: "claude-b,claude-c,claude-mine,claude-new",
        },
      ],
    ]);
  });

  test("nothing changed: the specification's sentence", async () => {
    const island = await openEditor({ url: "/channel?edit=1", language: "zh" });
    await press(island, "保存");
    expect(screen.getByText("你似乎并没有修改什么")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("what is typed stays where the channel leaves the filter, or the page, that the list shows", async () => {
    const island = await openEditor({ url: "/channel?edit=4" });
    await island.user.type(field(/^Name/), " typed");
    const row = Promise.withResolvers<unknown>();
    island.answer("GET /api/channel/4", () => row.promise);
    island.answer("GET /api/channel/search", { success: true, data: ROWS.slice(0, 1), total: 1 });
    act(() => setQuery({ status: "disabled" }));
    await done();
    expect(rowOf("alpha")).toBeTruthy();
    expect(field(/^Name/).value).toBe("delta typed");
    row.resolve({ success: true, data: ROWS[3] });
    await done();
    expect(field(/^Name/).value).toBe("delta typed");
  });

  test("save and test saves first, then tests what was saved", async () => {
    const island = await openEditor({ url: "/channel?edit=1" });
    island.answer("GET /api/channel/1", { success: true, data: channel(1, { name: "alpha" }) });
    island.answer("GET /api/channel/test/1", { success: false, message: "still broken", code: "x" });
    await island.user.type(drawer().getByRole("combobox", { name: "Test model" }), "gpt-4o");
    await press(island, "Save and test");
    await done();
    const order = island.requests.map(({ method, path }) => `${method} ${path}`);
    expect(order.indexOf("PUT /api/channel/")).toBeLessThan(order.indexOf("GET /api/channel/test/1"));
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(rowOf("alpha").textContent).toContain("still broken");
  });

  test("a draft of a new channel survives leaving, without its key", async () => {
    const island = await openEditor();
    await island.user.type(field(/^Name/), "draft");
    await island.user.type(field(/^Key/), "sk-secret");
    window.dispatchEvent(new Event("pagehide"));
    expect(sessionStorage.getItem("draft channel")).toBe('{"name":"draft"}');
  });
});

describe("copied as a command", () => {
  test("neither the key nor a proxy's password is in it", async () => {
    const island = await openEditor();
    await island.user.type(field(/^Name/), "n");
    await island.user.type(field(/^Key/), "sk-secret");
    await island.user.click(drawer().getByText("Rewrite and settings"));
    await island.user.type(field("Proxy"), "http://me:hun@ter 2@proxy:1");
    await press(island, "Copy as curl");
    const text = await navigator.clipboard.readText();
    expect(text).toContain('"name":"n"');
    expect(text).toContain('"key":"<key>"');
    expect(text).not.toContain("sk-secret");
    expect(text).toContain("http://<user>:<password>@proxy:1");
    expect(text).not.toMatch(/hun|ter 2/);
  });
});

describe("settings without JSON", () => {
  test("each has its field, keys without one are kept, and the text that goes out is the same", () => {
    const setting = JSON.stringify({
      force_format: true,
      proxy: "socks5://h:1",
      allow_networks: ["10.0.0.0/8"],
      allow_service_tier: true,
      colour: "blue",
    });
    const row = channel(1, { setting, status_code_mapping: '{"400":500}' });
    const values = valuesOf(row);
    expect(values).toMatchObject({
      forceFormat: true,
      thinkingToContent: false,
      proxy: "socks5://h:1",
      allowNetworks: "10.0.0.0/8",
      allowServiceTier: true,
      otherSettings: '{\n  "colour": "blue"\n}',
      statusCodeMapping: '{\n  "400": "500"\n}',
    });
    expect(changedBody(values, values)).toEqual({});
    const { setting: sent } = changedBody(values, { ...values, proxy: "", thinkingToContent: true });
    expect(JSON.parse(sent ?? "")).toEqual({
      colour: "blue",
      force_format: true,
      thinking_to_content: true,
      allow_networks: ["10.0.0.0/8"],
      allow_service_tier: true,
    });
  });

  test("what Responses clients get is chosen, and finding it out is nothing to store", async () => {
    const island = await openEditor({ url: "/channel?edit=1" });
    await island.user.click(drawer().getByText("Rewrite and settings"));
    await island.user.selectOptions(
      drawer().getByRole("combobox", { name: "Responses API" }),
      "Use chat completions",
    );
    await press(island, "Save");
    await done();
    const sent = (writes(island)[0] as SentRequest).body as { setting: string };
    expect(JSON.parse(sent.setting)).toEqual({ responses: "convert" });
    const stored = valuesOf(channel(1, { setting: sent.setting }));
    expect(stored).toMatchObject({ responses: "convert", otherSettings: "" });
    expect(changedBody(stored, { ...stored, responses: "" })).toEqual({ setting: "" });
  });

  test("a field of the type that was emptied is sent as a blank: empty means not given to the server", () => {
    const values = valuesOf(channel(1, { type: 3, other: "2024-06-01" }));
    expect(changedBody(values, { ...values, other: " " })).toEqual({ other: " " });
    expect(changedBody(values, { ...values, other: "2025-01-01" })).toEqual({ other: "2025-01-01" });
    expect(bodyOf({ ...values, other: "" }).other).toBe("");
  });

  test("the longest prompt is typed, refused as less than nothing, and taken away by emptying it", async () => {
    const values = valuesOf(channel(1, { max_input_tokens: 8000 }));
    expect(values.maxInputTokens).toBe(8000);
    expect(changedBody(values, { ...values, maxInputTokens: undefined })).toEqual({ max_input_tokens: 0 });
    const island = await openEditor({ url: "/channel?edit=4" });
    const longest = () => drawer().getByRole("spinbutton", { name: /^Longest prompt/ });
    await island.user.type(longest(), "-5");
    await press(island, "Save");
    expect(drawer().queryByText(/must be a whole number of tokens/)).not.toBeNull();
    await island.user.clear(longest());
    await island.user.type(longest(), "32000");
    await press(island, "Save");
    await done();
    expect(calls(island)).toEqual([["PUT", "/api/channel", { id: 4, max_input_tokens: 32_000 }]]);
  });

  test("a mapping is typed in two columns", async () => {
    const island = await openEditor({ url: "/channel?edit=1" });
    await island.user.click(drawer().getByText("Rewrite and settings"));
    const group = within(drawer().getByRole("group", { name: "Model mapping" }));
    await island.user.click(group.getByRole("button", { name: "Add row" }));
    await island.user.type(group.getByLabelText("Requested model, row 1"), "gpt-4o");
    await island.user.type(group.getByLabelText("Upstream model, row 1"), "gpt-4o-2024-11-20");
    await press(island, "Save");
    await done();
    const sent = (writes(island)[0] as SentRequest).body as { model_mapping: string };
    expect(JSON.parse(sent.model_mapping)).toEqual({ "gpt-4o": "gpt-4o-2024-11-20" });
  });
});

describe("request rules", () => {
  const rulesOf = (island: Island): unknown => {
    const sent = writes(island).at(-1)?.body as { param_override?: string } | undefined;
    return sent?.param_override === undefined ? undefined : JSON.parse(sent.param_override);
  };
  const group = (name: string) => within(drawer().getByRole("group", { name }));
  const rules = () => group("Request rules");

  test("are sentences: one is added with a condition, moved before another, changed, removed; what is unknown stays", async () => {
    const stored = {
      temperature: 0,
      operations: [
        { mode: "delete", path: "user", logic: "OR", note: "kept" },
        {
          mode: "delete_header",
          path: "anthropic-beta",
          logic: "AND",
          conditions: [{ path: "model", mode: "prefix", value: "claude-" }],
        },
      ],
    };
    const rows = [channel(1, { name: "alpha", param_override: JSON.stringify(stored) })];
    const island = await openEditor({ url: "/channel?edit=1", rows });
    island.answer("PUT /api/channel", { success: true, data: { id: 1 } });
    const words = () =>
      rules()
        .getAllByRole("listitem")
        .map((item) => item.textContent);
    expect(words()).toEqual([
      "Set temperature to 0",
      "Remove user",
      "Remove header anthropic-beta, if model starts with claude-",
    ]);
    await island.user.click(rules().getByRole("button", { name: "Add a rule" }));
    const form = () => within(rules().getByRole("group", { name: "Rule" }));
    // A half rule stays where it is.
    await island.user.click(form().getByRole("button", { name: "Apply rule" }));
    expect(form().getByRole("alert").textContent).toContain("path");
    await island.user.type(form().getByRole("combobox", { name: "Field" }), "n");
    await island.user.type(form().getByRole("textbox", { name: "Value" }), "4");
    await island.user.click(form().getByRole("button", { name: "Add a condition" }));
    const condition = within(form().getByRole("group", { name: "Condition" }));
    await island.user.type(condition.getByRole("textbox", { name: "Value" }), "gpt-4o");
    await island.user.click(form().getByRole("button", { name: "Apply rule" }));
    expect(words().at(-1)).toBe("Set n to 4, if model is gpt-4o");
    await island.user.click(rules().getByRole("button", { name: /^Move up: Set n/ }));
    await island.user.click(rules().getByRole("button", { name: /^Remove: Set temperature/ }));
    await press(island, "Save");
    await done();
    expect(rulesOf(island)).toEqual({
      operations: [
        stored.operations[0],
        {
          mode: "set",
          path: "n",
          value: 4,
          logic: "AND",
          conditions: [{ path: "model", mode: "full", value: "gpt-4o" }],
        },
        stored.operations[1],
      ],
    });
  });

  test("a try sends the form as it stands and shows both sides; a refusal is told", async () => {
    const island = await openEditor({
      url: "/channel?edit=1",
      rows: [channel(1, { name: "alpha", param_override: '{"n":4}' })],
    });
    await press(island, "Try the rules…");
    const part = () => group("Try the rules");
    const sent = {
      url: "https://up.example/v1/chat/completions",
      headers: { authorization: "Bearer <key>" },
      body: '{"n":4}',
      model: "m",
      dialect: "openai-chat",
      is_converted: false,
      rules: ["set n"],
      dropped: ["safety_identifier"],
      system_prompt_tokens: 3,
      is_repriced: true,
    };
    island.answer("POST /api/channel/try_rules", { success: true, data: { sent, refused: null } });
    await island.user.type(part().getByRole("textbox", { name: "Client headers" }), "x-team: red");
    await island.user.click(part().getByRole("button", { name: "Try" }));
    await done();
    expect(writes(island).at(-1)).toMatchObject({
      body: {
        id: 1,
        param_override: '{"n":4}',
        request: { path: "/v1/chat/completions", headers: { "x-team": "red" } },
      },
    });
    expect(part().getByRole("region", { name: "What would be sent" }).textContent).toContain("Bearer <key>");
    for (const text of [
      "set n",
      "safety_identifier",
      "about 3 tokens",
      "Reserved and charged by what is sent",
    ])
      expect(part().getByText(text)).toBeTruthy();
    const refused = { status: 451, code: "x", message: "not here" };
    island.answer("POST /api/channel/try_rules", { success: true, data: { sent: null, refused } });
    await island.user.click(part().getByRole("button", { name: "Try" }));
    await done();
    expect(part().getByText("Refused with 451: not here")).toBeTruthy();
  });

  test("gates stand in `settings`, above those of `setting`; what the editor does not know stays", () => {
    const row = channel(1, {
      setting: '{"allow_speed":true,"system_prompt":"a","mine":1}',
      settings: '{"disable_store":true,"allow_speed":false,"azure_responses_version":"v1"}',
    });
    const values = valuesOf(row);
    expect(values).toMatchObject({
      allowSpeed: false,
      disableStore: true,
      systemPrompt: "a",
      passThrough: false,
    });
    const body = bodyOf({ ...values, passThrough: true, claudeBetaQuery: true });
    expect(JSON.parse(body.settings)).toEqual({
      azure_responses_version: "v1",
      disable_store: true,
      claude_beta_query: true,
    });
    expect(JSON.parse(body.setting)).toMatchObject({
      mine: 1,
      system_prompt: "a",
      pass_through_body_enabled: true,
    });
  });
});
