// API keys as their owner meets them: making, changing, using, switching, deleting, chat links, and every rule of the form.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { fireEvent, screen, within } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import { fillChatLink } from "../../islands/lib/chat-links.ts";
import TokenScreen from "../../islands/screens/token.tsx";
import { batchName, nameLimit, stateOf, wrongIpLine } from "../../islands/screens/token/row.ts";
import type { TokenPageData } from "../../islands/screens/token/row.ts";
import { SAMPLE_NAMES, sampleCode } from "../../islands/screens/token/samples.ts";
import { renderPart, renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";
import type { TokenRow } from "../../islands/lib/wire.ts";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const KEY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL";
let opened: string[] = [];

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  opened = [];
  interceptLeaving(
    (url) => opened.push(url),
    (url) => opened.push(url),
  );
});
afterEach(() => {
  jest.restoreAllMocks();
});

function token(id: number, part: Partial<TokenRow> = {}): TokenRow {
  return {
    user_id: 1,
    DeletedAt: null,
    id,
    name: `key ${id}`,
    key: `${KEY.slice(0, 46)}${String(id).padStart(2, "0")}`,
    status: 1,
    created_time: NOW - 86_400,
    accessed_time: NOW - 60,
    expired_time: -1,
    remain_quota: 500_000,
    used_quota: 500_000,
    unlimited_quota: false,
    model_limits_enabled: false,
    model_limits: "",
    allow_ips: "",
    group: "",
    auto_groups: "",
    budget_quota: 0,
    budget_period: "month",
    rpm_limit: 0,
    tpm_limit: 0,
    max_concurrency: 0,
    budget_used: 0,
    budget_resets_at: 0,
    max_quota: 0,
    previous_until: 0,
    ...part,
  };
}

const ROWS = [
  token(1, { name: "laptop" }),
  token(2, { name: "off", status: 2 }),
  token(3, { name: "over", expired_time: NOW - 1 }),
  token(4, { name: "empty", remain_quota: 0 }),
  token(5, {
    name: "narrow",
    unlimited_quota: true,
    model_limits_enabled: true,
    model_limits: "gpt-4o,o1,o3",
  }),
];

function open(options: IslandOptions & { rows?: TokenRow[]; page?: Partial<TokenPageData> } = {}): Island {
  const { rows = ROWS, page = {}, ...rest } = options;
  const data: TokenPageData = {
    rows,
    total: rows.length,
    pageSize: 10,
    groups: { default: { desc: "standard", ratio: 1 }, vip: { desc: "fast", ratio: 2.5 } },
    auto: [],
    models: ["gpt-4o", "gpt-4o-mini", "claude-sonnet-4"],
    ...page,
  };
  const island = renderScreen(TokenScreen, { data, url: "/token", ...rest });
  const list = { success: true, data: rows, total: rows.length };
  island.answer("GET /api/token", list);
  island.answer("GET /api/token/search", list);
  island.answer("PUT /api/token", { success: true, data: {} });
  for (const row of rows) island.answer(`DELETE /api/token/${row.id}`, { success: true });
  return island;
}

const rowOf = (name: string) => screen.getByRole("row", { name: new RegExp(name) });
const writes = (island: Island) => island.requests.filter(({ method }) => method !== "GET");

async function menu(island: Island, name: string, item: string) {
  await island.user.click(screen.getByRole("button", { name: `Actions for ${name}` }));
  await island.user.click(screen.getByRole("menuitem", { name: item }));
  await settle();
}

describe("a new secret", () => {
  test("is asked for with a time for the old one, and shown in full as a new key is", async () => {
    const island = open();
    const key = `${KEY.slice(0, 40)}FRESHKEY`;
    island.answer("POST /api/token/1/rotate", { success: true, data: { key, previous_until: NOW + 3600 } });
    await menu(island, "laptop", "New secret");
    // The drawer is a lazy part: its first opening fetches it.
    await island.user.selectOptions(await screen.findByLabelText("The old one works"), "For another hour");
    await island.user.click(screen.getByRole("button", { name: "Make a new secret" }));
    await settle();
    const [sent] = writes(island);
    expect([sent?.path, sent?.body]).toEqual(["/api/token/1/rotate", { grace_seconds: 3600 }]);
    expect(document.body.textContent).toContain(`sk-${key}`);
  });

  test("a refusal leaves the drawer open and the key as it was", async () => {
    const island = open();
    island.answer("POST /api/token/1/rotate", { success: false, message: "no such key" });
    await menu(island, "laptop", "New secret");
    await island.user.click(await screen.findByRole("button", { name: "Make a new secret" }));
    await settle();
    expect(screen.getByRole("button", { name: "Make a new secret" })).toBeTruthy();
    expect(document.body.textContent).not.toContain("sk-abcdef");
  });
});

describe("budget and limits", () => {
  const rows = [
    token(1, {
      name: "agent",
      budget_quota: 2_500_000,
      budget_period: "day",
      budget_used: 2_000_000,
      budget_resets_at: NOW + 3600,
      rpm_limit: 60,
    }),
    token(2, { name: "free" }),
  ];

  const editor = async (island: Island) => {
    await menu(island, "agent", "Edit");
    return screen.findByRole("dialog", { name: "Edit key: agent" });
  };

  test("a bar in the list says what is spent of which period, and the drawer when it opens anew", async () => {
    const island = open({ rows });
    const meter = within(rowOf("agent")).getByRole("meter", { name: "Budget of agent" });
    expect([meter.getAttribute("aria-valuenow"), meter.getAttribute("aria-valuetext")]).toEqual([
      "80",
      "$4.00 / $5.00",
    ]);
    expect(meter.closest("[title]")?.getAttribute("title")).toStartWith(
      "The budget opens anew on 2026-11-20",
    );
    expect(meter.closest("[data-tone]")?.getAttribute("data-tone")).toBe("attention");
    expect(rowOf("agent").textContent).toContain("$4.00 / $5.00 a day");
    expect(within(rowOf("free")).queryByRole("meter")).toBeNull();
    const dialog = await editor(island);
    expect(dialog.textContent).toContain("$4.00 of $5.00 is spent; it opens anew on 2026-11-20");
  });

  test("five dollars a day are typed as that, and an edit sends what was changed alone", async () => {
    const island = open({ rows });
    await editor(island);
    const budget = screen.getByRole("textbox", { name: "Budget" });
    await island.user.clear(budget);
    await island.user.type(budget, "7");
    await island.user.clear(screen.getByLabelText("Requests a minute"));
    await island.user.type(screen.getByLabelText("Tokens a minute"), "90000");
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island)[0]?.body).toEqual({
      id: 1,
      budget_quota: 3_500_000,
      rpm_limit: 0,
      tpm_limit: 90_000,
    });
  });

  test.each([
    ["Budget", "-1", "Enter an amount of at least 0"],
    ["Requests a minute", "1.5", "Enter a whole number of at least 0"],
    ["Calls at once", "1000001", "Enter a whole number of at least 0"],
  ])("%s of %s is refused at its field", async (label, text, sentence) => {
    const island = open({ rows });
    await editor(island);
    const field = screen.getByRole(label === "Budget" ? "textbox" : "spinbutton", { name: label });
    await island.user.clear(field);
    await island.user.type(field, text);
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(screen.getByText(sentence)).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });
});

describe("the list", () => {
  test("whole keys are never printed; they are copied with their prefix", async () => {
    const island = open();
    expect(document.body.textContent).not.toContain(KEY.slice(0, 20));
    expect(rowOf("laptop").textContent).toContain("sk-••••IJ01");
    await island.user.click(screen.getByRole("button", { name: "Copy key laptop" }));
    expect(await navigator.clipboard.readText()).toBe(`sk-${ROWS[0]?.key}`);
  });

  test("the state is what a call would find: time and quota that have run out count", () => {
    open();
    expect(rowOf("laptop").textContent).toContain("Enabled");
    expect(rowOf("off").textContent).toContain("Disabled");
    expect(rowOf("over").textContent).toContain("Expired");
    expect(rowOf("empty").textContent).toContain("Exhausted");
    expect(rowOf("narrow").textContent).toContain("Enabled: limited models");
    expect(rowOf("narrow").textContent).toContain("+1");
    expect(stateOf(token(1, { status: 4, unlimited_quota: true }), NOW * 1000)).toBe(4);
  });

  test("the warning stands there until it is closed", async () => {
    const island = open({ language: "zh" });
    const text = "令牌只允许自用，请勿直接将令牌分发给他人；每个令牌都可以设置自己的预算和限制。";
    expect(screen.getByText(text)).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "关闭" }));
    expect(screen.queryByText(text)).toBeNull();
  });

  test("views and searches go to the calls by the API's own names", async () => {
    const island = open();
    await island.user.click(screen.getByRole("link", { name: "Expired" }));
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      path: "/api/token",
      query: { p: "0", size: "10", status: "3" },
    });
    await island.user.type(screen.getByRole("searchbox", { name: "Search by name" }), "lap{Enter}");
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      path: "/api/token/search",
      query: { keyword: "lap", status: "3", p: "0", size: "10" },
    });
  });

  test("a key's usage is one step away", async () => {
    const island = open();
    await island.user.click(screen.getByRole("button", { name: "Actions for laptop" }));
    expect(screen.getByRole("menuitem", { name: "Usage log" }).getAttribute("href")).toBe(
      "/log?token_name=laptop&range=30d",
    );
  });
});

describe("making keys", () => {
  async function drawer(options: Parameters<typeof open>[0] = {}) {
    const island = open({ rows: [], ...options });
    let made = 100;
    island.answer("POST /api/token", ({ body }: { body: Partial<TokenRow> }) => ({
      success: true,
      data: token(++made, body),
    }));
    await island.user.keyboard("c");
    await screen.findByRole("dialog", { name: "New API key" });
    return island;
  }
  const field = (name: RegExp | string) => screen.getByLabelText<HTMLInputElement>(name);
  const create = (island: Island) => island.user.click(screen.getByRole("button", { name: "Create" }));

  test("the defaults of the specification are sent, and the new key is shown once, with code", async () => {
    const island = await drawer();
    await island.user.type(field(/^Name/), "laptop");
    await create(island);
    await settle();
    expect(writes(island)).toHaveLength(1);
    expect(writes(island)[0]?.body).toEqual({
      name: "laptop",
      remain_quota: 500_000,
      unlimited_quota: false,
      expired_time: -1,
      max_quota: 0,
      budget_quota: 0,
      budget_period: "day",
      rpm_limit: 0,
      tpm_limit: 0,
      max_concurrency: 0,
      model_limits_enabled: false,
      model_limits: "",
      allow_ips: "",
      group: "",
    });
    const shown = `sk-${KEY.slice(0, 46)}101`;
    expect(screen.getAllByText(new RegExp(shown)).length).toBe(2);
    expect(screen.getByText(/http:\/\/localhost\/v1\/chat\/completions/)).toBeTruthy();
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  test("a batch gives the further names six random characters, and all keys can be copied at once", async () => {
    const island = await drawer();
    await island.user.type(field(/^Name/), "team");
    await island.user.click(screen.getByRole("button", { name: "10" }));
    await create(island);
    await settle();
    const names = writes(island).map(({ body }) => (body as TokenRow).name);
    expect(names).toHaveLength(10);
    expect(names[0]).toBe("team");
    for (const name of names.slice(1)) expect(name).toMatch(/^team-[a-z0-9]{6}$/);
    expect(new Set(names).size).toBe(10);
    await island.user.click(screen.getByRole("button", { name: "Copy all" }));
    expect((await navigator.clipboard.readText()).split("\n")).toHaveLength(10);
    expect(batchName("x", 0)).toBe("x");
  });

  test("a batch that fails midway shows the keys that exist, so that nobody makes them twice", async () => {
    const island = await drawer();
    let made = 0;
    island.answer("POST /api/token", ({ body }: { body: Partial<TokenRow> }) =>
      ++made > 2
        ? { success: false, message: "Too many keys", code: "x" }
        : { success: true, data: token(made, body) },
    );
    await island.user.type(field(/^Name/), "team");
    await island.user.click(screen.getByRole("button", { name: "10" }));
    await create(island);
    await settle();
    expect(screen.getByText("2 keys created")).toBeTruthy();
    expect(screen.getByRole("alert").textContent).toContain("Too many keys");
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  test("every rule of the form is told at its field, and nothing is sent", async () => {
    const island = await drawer({ language: "en" });
    await create(island);
    expect(screen.getByText("Enter a name")).toBeTruthy();
    await island.user.type(field(/^Name/), "名".repeat(31));
    expect(screen.getByText("The name can have at most 30 characters")).toBeTruthy();
    await island.user.clear(field(/^Name/));
    await island.user.type(field(/^Name/), "fine");
    await island.user.clear(field(/^Quota/));
    await island.user.clear(field(/^How many/));
    await island.user.type(field(/^How many/), "101");
    await island.user.click(screen.getByText("Limits"));
    await island.user.type(field(/^Allowed addresses/), "10.0.0.1{Enter}nonsense");
    await create(island);
    await settle();
    expect(screen.getByText("This field is required")).toBeTruthy();
    expect(screen.getByText("From 1 to 100")).toBeTruthy();
    expect(screen.getByText("“nonsense” is neither an address nor a range")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("presets fill quota and expiry; a model is picked by its name, a group shows its ratio", async () => {
    const island = await drawer();
    await island.user.type(field(/^Name/), "x");
    await island.user.click(screen.getByRole("button", { name: "$10" }));
    expect(field(/^Quota/).value).toBe("5000000");
    expect(screen.getByText("= $10.00")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "One hour" }));
    const group = screen.getByLabelText<HTMLSelectElement>("Group");
    expect([...group.options].map((each) => each.textContent)).toEqual([
      "Your own group",
      "Automatic (auto)",
      "default · standard · 1×",
      "vip · fast · 2.5×",
    ]);
    await island.user.selectOptions(group, "vip");
    await island.user.click(screen.getByText("Limits"));
    await island.user.type(field(/^Cap per call/), "25000");
    expect(screen.getByText(/^= \$0\.05; calls end cleanly at it/)).toBeTruthy();
    await island.user.click(screen.getByRole("switch", { name: "Limit models" }));
    await island.user.click(screen.getByRole("button", { name: "gpt-4o" }));
    const before = Math.floor(Date.now() / 1000);
    await create(island);
    await settle();
    const body = writes(island)[0]?.body as TokenRow;
    expect(body).toMatchObject({
      remain_quota: 5_000_000,
      group: "vip",
      model_limits_enabled: true,
      model_limits: "gpt-4o",
      max_quota: 25_000,
    });
    expect(Math.abs(body.expired_time - before - 3600)).toBeLessThanOrEqual(60);
  });

  const select = () => screen.getByLabelText<HTMLSelectElement>("Group");
  const sent = (island: Island) => writes(island).at(-1)?.body as Partial<TokenRow>;

  test("an automatic key says what it does; its own order is pressed together and sent", async () => {
    const island = await drawer({ page: { auto: ["default", "vip"] } });
    await island.user.type(field(/^Name/), "x");
    expect(screen.queryByRole("group", { name: "Groups to try, in order" })).toBeNull();
    await island.user.selectOptions(select(), "auto");
    expect(screen.getByText(/^Each call takes the first group that has a channel/)).toBeTruthy();
    const order = within(screen.getByRole("group", { name: "Groups to try, in order" }));
    expect(order.getByRole("status").textContent).toBe("The site’s order: default 1× → vip 2.5×");
    await island.user.click(order.getByRole("button", { name: "vip 2.5×" }));
    await island.user.click(order.getByRole("button", { name: "default 1×" }));
    expect(order.getByRole("status").textContent).toBe("This key’s order: vip 2.5× → default 1×");
    await island.user.click(order.getByRole("button", { name: "1. vip 2.5×" }));
    await island.user.click(order.getByRole("button", { name: "vip 2.5×" }));
    await create(island);
    await settle();
    expect(sent(island)).toMatchObject({ group: "auto", auto_groups: "default,vip" });
  });

  test("where the site offers it first a new key is automatic, and the own group is a press away", async () => {
    const island = await drawer({ page: { auto: ["vip"] }, status: { default_use_auto_group: true } });
    expect(select().value).toBe("auto");
    await island.user.type(field(/^Name/), "x");
    await island.user.selectOptions(select(), "");
    await create(island);
    await settle();
    expect(sent(island).group).toBe("");
    expect(sent(island)).not.toHaveProperty("auto_groups");
  });

  test("with nothing to choose from there is no automatic choice", async () => {
    await drawer({ page: { groups: { default: { desc: "standard", ratio: 1 } } } });
    expect([...select().options].map(({ value }) => value)).toEqual(["", "default"]);
  });

  test("an automatic key stands in the list as one; a group that was closed stays in its order until it is taken out", async () => {
    const row = token(7, { name: "roaming", group: "auto", auto_groups: "gone,vip" });
    const island = open({ rows: [row], url: "/token?edit=7" });
    await screen.findByRole("dialog", { name: "Edit key: roaming" });
    expect(document.querySelector("table")?.textContent).toContain("Automatic (auto)");
    const order = within(screen.getByRole("group", { name: "Groups to try, in order" }));
    expect(order.getByRole("status").textContent).toBe("This key’s order: gone → vip 2.5×");
    await island.user.click(order.getByRole("button", { name: "1. gone" }));
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(sent(island)).toEqual({ id: 7, auto_groups: "vip" } as Partial<TokenRow>);
  });

  test("no more than ten groups are taken", async () => {
    const groups = Object.fromEntries(
      Array.from({ length: 11 }, (_, at) => [`g${at}`, { desc: "", ratio: 1 }]),
    );
    const island = await drawer({ page: { groups } });
    await island.user.selectOptions(select(), "auto");
    for (let at = 0; at < 10; at++)
      await island.user.click(screen.getByRole("button", { name: `g${at} 1×` }));
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "g10 1×" }).disabled).toBe(true);
  });

  test("the same call can be copied as curl before it is made", async () => {
    const island = await drawer();
    await island.user.type(field(/^Name/), "it's mine");
    await island.user.click(screen.getByRole("button", { name: "Copy as curl" }));
    const text = await navigator.clipboard.readText();
    expect(text).toContain("-X POST 'http://localhost/api/token/'");
    expect(text).toContain(String.raw`"name":"it'\''s mine"`);
    expect(writes(island)).toEqual([]);
  });

  test("a field that the server refuses under its own name stands at the form's field", async () => {
    const island = await drawer();
    island.answer("POST /api/token", {
      success: false,
      message: "The quota is out of range",
      code: "quota_out_of_range",
      field: "remain_quota",
    });
    await island.user.type(field(/^Name/), "x");
    await create(island);
    await settle();
    expect(screen.getByText("The quota is out of range").id).toBe(
      field(/^Quota/).getAttribute("aria-describedby") ?? "-",
    );
    expect(screen.getByRole("dialog")).toBeTruthy();
  });

  test("the Chinese texts of the specification stand word for word", async () => {
    const island = await drawerIn("zh");
    await island.user.click(screen.getByRole("button", { name: "新建" }));
    expect(screen.getByText("请输入名称")).toBeTruthy();
    expect(screen.getByText("非必要，不建议启用模型限制")).toBeTruthy();
  });

  async function drawerIn(language: "zh" | "en") {
    const island = open({ rows: [], language, url: "/token?new=1" });
    await screen.findByRole("dialog");
    return island;
  }

  test("a name's characters are counted down before the limit is met, Chinese ones like others", async () => {
    const island = await drawerIn("en");
    const name = screen.getByRole("textbox", { name: /^Name/ });
    await island.user.type(name, "键".repeat(20));
    expect(screen.queryByText(/characters? left/)).toBeNull();
    await island.user.type(name, "键".repeat(9));
    expect(screen.getByText("1 character left")).toBeTruthy();
    await island.user.type(name, "键键键");
    expect(screen.getByText("2 characters too many")).toBeTruthy();
    await island.user.tab();
    expect(screen.getByText("The name can have at most 30 characters")).toBeTruthy();
  });

  test("helpers: room for what tells a batch apart, addresses by line", () => {
    expect([nameLimit(1), nameLimit(2)]).toEqual([30, 23]);
    expect(wrongIpLine("10.0.0.1\n 2001:db8::/32 ,\n\n::1")).toBeUndefined();
    expect(wrongIpLine("10.0.0.1\nexample.org")).toBe("example.org");
  });
});

describe("changing keys", () => {
  test("a model with a blank in its name stays one model; a cap is told in the site's money", async () => {
    const island = open({
      url: "/token?edit=1",
      status: { quota_display_type: "CNY", usd_exchange_rate: 7 },
    });
    const dialog = within(await screen.findByRole("dialog", { name: "Edit key: laptop" }));
    await island.user.click(dialog.getByText("Limits"));
    await island.user.type(dialog.getByLabelText(/^Cap per call/), "500000");
    expect(dialog.getByText(/^= ¥7\.00; /)).toBeTruthy();
    await island.user.click(dialog.getByRole("switch", { name: "Limit models" }));
    const models = dialog.getByRole("textbox", { name: /^Models/ });
    fireEvent.change(models, { target: { value: "my model, gpt-4o\nother one" } });
    await island.user.click(dialog.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([
      { id: 1, max_quota: 500_000, model_limits_enabled: true, model_limits: "my model,gpt-4o,other one" },
    ]);
  });

  test("only what was changed is sent: calls have gone on spending", async () => {
    const island = open({ url: "/token?edit=1" });
    const dialog = await screen.findByRole("dialog", { name: "Edit key: laptop" });
    expect(within(dialog).queryByLabelText(/^How many/)).toBeNull();
    await island.user.type(within(dialog).getByLabelText(/^Name/), "!");
    await island.user.click(within(dialog).getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([{ id: 1, name: "laptop!" }]);
  });

  test("saving without a change says the specification's sentence", async () => {
    const island = open({ url: "/token?edit=1", language: "zh" });
    await screen.findByRole("dialog");
    await island.user.click(screen.getByRole("button", { name: "保存" }));
    expect(screen.getByText("你似乎并没有修改什么")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("disabling is a status-only call, shown at once, with Undo", async () => {
    const island = open();
    await menu(island, "laptop", "Disable");
    expect(writes(island)).toMatchObject([{ query: { status_only: "true" }, body: { id: 1, status: 2 } }]);
    expect(rowOf("laptop").textContent).toContain("Disabled");
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(writes(island).at(-1)).toMatchObject({
      query: { status_only: "true" },
      body: { id: 1, status: 1 },
    });
    expect(rowOf("laptop").textContent).toContain("Enabled");
  });

  test("a refusal puts the old state back and says why", async () => {
    const island = open();
    island.answer("PUT /api/token", {
      success: false,
      message: "令牌已过期，无法启用",
      code: "token_enable_expired",
    });
    await menu(island, "off", "Enable");
    expect(rowOf("off").textContent).toContain("Disabled");
    expect(screen.getByRole("alert").textContent).toContain("token_enable_expired");
  });

  test("several keys are switched at once, and Undo gives each its old state back", async () => {
    const island = open();
    await island.user.click(screen.getByRole("checkbox", { name: "Select laptop" }));
    await island.user.click(screen.getByRole("checkbox", { name: "Select off" }));
    await island.user.click(within(screen.getByRole("toolbar")).getByRole("button", { name: "Disable" }));
    await settle();
    expect(screen.getByText("2 keys disabled")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([
      { id: 1, status: 2 },
      { id: 2, status: 2 },
      { id: 1, status: 1 },
      { id: 2, status: 2 },
    ]);
  });

  test("deleting names the key, and nothing is deleted without a yes", async () => {
    const island = open();
    await menu(island, "laptop", "Delete");
    const question = screen.getByRole("dialog", { name: "Delete key laptop?" });
    await island.user.click(within(question).getByRole("button", { name: "Cancel" }));
    expect(writes(island)).toEqual([]);
    await menu(island, "laptop", "Delete");
    await island.user.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Delete" }));
    await settle();
    expect(writes(island).map(({ method, path }) => `${method} ${path}`)).toEqual(["DELETE /api/token/1"]);
  });

  test("an action for selected keys without a selection says so", async () => {
    const island = open({ language: "zh" });
    for (const name of ["复制所选密钥", "删除所选令牌"]) {
      await island.user.click(screen.getByRole("button", { name: "更多操作" }));
      await island.user.click(screen.getByRole("menuitem", { name }));
      expect(screen.getByText("请至少选择一个令牌！")).toBeTruthy();
    }
    expect(writes(island)).toEqual([]);
    await island.user.click(screen.getByRole("checkbox", { name: /laptop/ }));
    await island.user.click(screen.getByRole("button", { name: "更多操作" }));
    await island.user.click(screen.getByRole("menuitem", { name: "复制所选密钥" }));
    expect(await navigator.clipboard.readText()).toBe(`laptop sk-${ROWS[0]?.key}`);
  });
});

describe("using a key", () => {
  const CHATS: Record<string, string>[] = [
    { "Next chat": 'https://chat.example/#/?settings={"key":"{key}","url":"{address}"}' },
    { App: "ama://set?server={address}&key={key}" },
    { Evil: "javascript:alert('{key}')" },
  ];

  test("code is shown masked and copied whole, for the models that the key may call", async () => {
    const island = open({ status: { server_address: "https://gate.example/v1/" } });
    await menu(island, "narrow", "How to use");
    expect(screen.getByText("How to use the key narrow")).toBeTruthy();
    expect(document.body.textContent).not.toContain(KEY.slice(0, 20));
    await island.user.click(screen.getByRole("button", { name: "Python" }));
    const model = screen.getByLabelText<HTMLSelectElement>("Model");
    expect([...model.options].map((each) => each.value)).toEqual(["gpt-4o", "o1", "o3"]);
    await island.user.selectOptions(model, "o3");
    await island.user.click(screen.getByRole("button", { name: "Copy" }));
    const code = await navigator.clipboard.readText();
    expect(code).toContain(`api_key="sk-${ROWS[4]?.key}"`);
    expect(code).toContain('base_url="https://gate.example/v1"');
    expect(code).toContain('model="o3"');
  });

  test("clients get the address that each protocol wants", async () => {
    const island = open({ status: { server_address: "https://gate.example" } });
    await menu(island, "laptop", "How to use");
    await island.user.click(screen.getByRole("button", { name: "Clients" }));
    await island.user.click(screen.getByRole("button", { name: "Copy the base URL for Anthropic" }));
    expect(await navigator.clipboard.readText()).toBe("https://gate.example");
    expect(screen.getByText("https://gate.example/v1")).toBeTruthy();
    expect(screen.getByText("Ask your administrator to configure chat links")).toBeTruthy();
  });

  test("a chat link opens with key and address filled in; one that would run script is refused", async () => {
    const island = open({ status: { chats: CHATS, server_address: "https://gate.example/v1" } });
    await menu(island, "laptop", "Chat: Next chat");
    await menu(island, "laptop", "Chat: App");
    const key = `sk-${ROWS[0]?.key}`;
    expect(opened).toEqual([
      `https://chat.example/#/?settings={"key":"${key}","url":"https%3A%2F%2Fgate.example"}`,
      `ama://set?server=https%3A%2F%2Fgate.example&key=${key}`,
    ]);
    await menu(island, "laptop", "Chat: Evil");
    expect(opened).toHaveLength(2);
    expect(screen.getByRole("alert").textContent).toContain("The chat link is misconfigured");
  });

  test("without chat links the specification's sentence is shown", async () => {
    const island = open({ language: "zh" });
    await island.user.click(screen.getByRole("button", { name: "laptop 的操作" }));
    await island.user.click(screen.getByRole("menuitem", { name: "聊天" }));
    expect(screen.getByText("请联系管理员配置聊天链接")).toBeTruthy();
  });

  test("links that are none, or that could run here, are called broken", () => {
    renderPart(null);
    for (const template of [
      "",
      "/chat",
      "data:text/html,{key}",
      " JavaScript:alert(1)",
      "blob:x",
      "not a link",
    ]) {
      expect([template, fillChatLink(template, "k").target]).toEqual([template, "broken"]);
    }
    expect(fillChatLink("https://x.example/?k={key}&a={key}", "$&1").url).toBe(
      "https://x.example/?k=sk-$&1&a=sk-$&1",
    );
  });

  test("every sample names server, key and model; curl's runs in a shell as it stands", () => {
    for (const name of SAMPLE_NAMES) {
      const code = sampleCode(name, "https://gate.example", "sk-1", "gpt-4o");
      for (const part of ["https://gate.example", "sk-1", "gpt-4o"]) expect(code).toContain(part);
      expect(sampleCode(name, "https://g.example", "sk-1", `a"'\\\nb`)).toContain("ab");
    }
    const curl = sampleCode("curl", "https://gate.example", "sk-1", "gpt-4o");
    const ran = Bun.spawnSync(["sh", "-c", `curl() { for each in "$@"; do echo "$each"; done; }; ${curl}`]);
    expect(ran.stdout.toString().trim().split("\n").at(-1)).toBe(
      '{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}',
    );
  });
});

test("hostile names show as text", () => {
  const log = spyOn(console, "error").mockImplementation(() => undefined);
  const name = "<img src=x onerror=alert(1)>\u202Egnp.exe";
  open({ rows: [token(1, { name, group: "<b>x</b>" })] });
  expect(document.querySelector("img, b.evil")).toBeNull();
  expect(screen.getByText(name)).toBeTruthy();
  expect(log).not.toHaveBeenCalled();
});
