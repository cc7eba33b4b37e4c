// Users as administrators meet them: what the rank allows, balances changed in plain sight, what is known of an account.
import { beforeEach, describe, expect, test } from "bun:test";
import { fireEvent, screen, within } from "@testing-library/react";
import UserScreen from "../../islands/screens/user.tsx";
import { actionsFor } from "../../islands/screens/user/row.ts";
import { balanceAfter, quotaProblem } from "../../islands/screens/user/values.ts";
import type { UserPageData } from "../../islands/screens/user/row.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";
import type { UserRow } from "../../islands/lib/wire.ts";

function person(id: number, part: Partial<UserRow> = {}): UserRow {
  return {
    password: "",
    original_password: "",
    verification_code: "",
    access_token: null,
    aff_code: "",
    aff_quota: 0,
    setting: "",
    limits: null,
    id,
    username: `user${id}`,
    display_name: `User ${id}`,
    role: 1,
    status: 1,
    email: "",
    group: "default",
    quota: 5_000_000,
    used_quota: 250_000,
    request_count: 12,
    inviter_id: 0,
    aff_count: 0,
    aff_history_quota: 0,
    github_id: "",
    oidc_id: "",
    wechat_id: "",
    telegram_id: "",
    linux_do_id: "",
    DeletedAt: null,
    remark: "",
    flagged: false,
    last_seen_at: 0,
    created_at: 0,
    ...part,
  };
}

const ROWS = [
  person(1, { username: "boss", role: 100 }),
  person(2, { username: "helper", role: 10 }),
  person(3, { username: "bob", email: "bob@mail.example", inviter_id: 2 }),
  person(4, { username: "banned", status: 2 }),
  person(5, { username: "locked", status: 3 }),
  person(6, { username: "gone", DeletedAt: "2026-11-01T00:00:00.000Z" }),
  person(7, {
    username: "odd",
    role: 5,
    limits: { budget_quota: 500_000, budget_period: "week", rpm_limit: 5, tpm_limit: 9 },
  }),
];
const ROOT = { id: 1, role: 100 };
const ADMIN = { id: 9, role: 10 };

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

function open(options: IslandOptions = {}): Island {
  const data: UserPageData = {
    rows: ROWS,
    total: ROWS.length,
    pageSize: 10,
    groups: ["default", "vip"],
    lowQuota: 1000,
  };
  const island = renderScreen(UserScreen, { data, url: "/user", user: ROOT, ...options });
  island.answer("GET /api/user/search", { success: true, data: { items: ROWS, total: ROWS.length } });
  island.answer("GET /api/log/histogram", {
    success: true,
    data: { from: 0, step: 86_400, buckets: [{ at: 1_763_596_800, count: 7, errors: 2 }], isCut: false },
  });
  island.answer("GET /api/user/3/keys", {
    success: true,
    data: [
      {
        id: 1,
        name: "laptop",
        status: 1,
        accessed_time: 0,
        expired_time: -1,
        unlimited_quota: false,
        remain_quota: 0,
        used_quota: 500_000,
      },
    ],
  });
  island.answer("GET /api/user/3/limits", {
    success: true,
    data: {
      budget_quota: 2_500_000,
      budget_period: "day",
      rpm_limit: 60,
      tpm_limit: 0,
      max_concurrency: 0,
      budget_used: 2_250_000,
      budget_resets_at: 1_795_000_000,
    },
  });
  island.answer("GET /api/user/ceiling", { success: true, data: { ceiling: 5_000_000, left: 2_000_000 } });
  island.answer("PUT /api/user", { success: true });
  island.answer("POST /api/user", { success: true, data: { id: 20 } });
  island.answer("POST /api/user/manage", { success: true, data: { role: 1, status: 1 } });
  return island;
}

const rowOf = (name: string) => screen.getByRole("row", { name: new RegExp(`^(Select )?${name}`) });
const writes = (island: Island) => island.requests.filter(({ method }) => method !== "GET");

async function menuOf(island: Island, name: string): Promise<string[]> {
  await island.user.click(screen.getByRole("button", { name: `Actions for ${name}` }));
  const menu = screen.getByRole("menu", { name: `Actions for ${name}` });
  return within(menu)
    .getAllByRole("menuitem")
    .map((item) => item.textContent ?? "");
}

async function choose(island: Island, item: string) {
  await island.user.click(screen.getByRole("menuitem", { name: item }));
  await settle();
}

describe("own limits", () => {
  test("what is in force stands beside the fields, and only what is typed is sent", async () => {
    const island = open();
    await menuOf(island, "bob");
    await choose(island, "Edit");
    await screen.findByRole("dialog", { name: "Edit user: bob" });
    const part = screen.getByText("Own budget and limits").closest("details") as HTMLElement;
    await island.user.click(screen.getByText("Own budget and limits"));
    const meter = within(part).getByRole("meter", { name: "Budget of the day" });
    expect([meter.getAttribute("aria-valuenow"), meter.getAttribute("aria-valuetext")]).toEqual([
      "90",
      "$4.50 / $5.00",
    ]);
    await island.user.type(within(part).getByRole("textbox", { name: "Budget" }), "2.5");
    await island.user.selectOptions(within(part).getByLabelText("Period"), "a week");
    await island.user.type(within(part).getByLabelText("Calls at once"), "0");
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([
      { id: 3, limits: { budget_quota: 1_250_000, budget_period: "week", max_concurrency: 0 } },
    ]);
  });

  test("a field that is emptied follows the group again; the others are not sent", async () => {
    const island = open();
    island.answer("GET /api/user/7/limits", { success: true, data: null });
    await menuOf(island, "odd");
    await choose(island, "Edit");
    const drawer = await screen.findByRole("dialog", { name: "Edit user: odd" });
    await island.user.clear(within(drawer).getByLabelText("Requests a minute"));
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([{ id: 7, limits: { rpm_limit: null } }]);
  });

  test("what is no amount is refused at its field, and nothing is sent", async () => {
    const island = open();
    await menuOf(island, "bob");
    await choose(island, "Edit");
    await screen.findByRole("dialog", { name: "Edit user: bob" });
    await island.user.click(screen.getByText("Own budget and limits"));
    await island.user.type(screen.getByRole("textbox", { name: "Budget" }), "much");
    await island.user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(screen.getByText("Enter an amount of at least 0")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });
});

describe("the list", () => {
  test("states and ranks are words; what is none is unknown", () => {
    open();
    expect(rowOf("bob").textContent).toContain("Active");
    expect(rowOf("bob").textContent).toContain("bob@mail.example");
    expect(rowOf("banned").textContent).toContain("Disabled");
    expect(rowOf("locked").textContent).toContain("Locked");
    expect(rowOf("boss").textContent).toContain("Super administrator");
    expect(rowOf("helper").textContent).toContain("Administrator");
    expect(rowOf("odd").textContent).toContain("Unknown");
    expect(within(rowOf("bob")).getByRole("link", { name: "#2" })).toBeTruthy();
  });

  test("a deleted account is struck through, worded, and has no actions", async () => {
    const island = open();
    const row = rowOf("gone");
    expect(row.textContent).toContain("Deleted");
    expect(within(row).getByText("gone").className).toContain("line-through");
    expect(screen.queryByRole("button", { name: "Actions for gone" })).toBeNull();
    island.answer("GET /api/user/6/keys", { success: true, data: [] });
    await island.user.click(within(row).getByRole("link"));
    const drawer = await screen.findByRole("dialog", { name: "gone" });
    await settle();
    expect(within(drawer).queryByRole("textbox")).toBeNull();
    expect(within(drawer).getByText("This user has no API keys")).toBeTruthy();
  });

  test("root is offered everything but touching itself", async () => {
    const island = open();
    expect(await menuOf(island, "bob")).toEqual([
      "Edit",
      "Change balance",
      "Plans",
      "Usage log",
      "Copy user ID",
      "Disable",
      "Promote",
      "Delete",
    ]);
    await island.user.keyboard("{Escape}");
    expect(await menuOf(island, "helper")).toContain("Demote");
    await island.user.keyboard("{Escape}");
    const own = await menuOf(island, "boss");
    for (const action of ["Disable", "Promote", "Demote", "Delete"]) expect(own).not.toContain(action);
  });

  test("an administrator finds no action on equals and betters, and no promotion anywhere", async () => {
    const island = open({ user: ADMIN });
    for (const name of ["boss", "helper"]) {
      expect(await menuOf(island, name)).toEqual(["Usage log", "Copy user ID"]);
      await island.user.keyboard("{Escape}");
      expect(within(rowOf(name)).queryByRole("link", { name: new RegExp(`^${name}`) })).toBeNull();
    }
    expect(await menuOf(island, "bob")).not.toContain("Promote");
  });

  test("who cannot be enabled is not offered it", () => {
    const row = ROWS[4] as UserRow;
    expect(actionsFor(ROOT, row)).toEqual(["promote", "delete"]);
    expect(actionsFor(ROOT, ROWS[3] as UserRow)).toContain("enable");
  });

  test("search and group go to the call by the API's own names", async () => {
    const island = open({ url: "/user?group=vip" });
    await island.user.type(screen.getByRole("searchbox"), "bo{Enter}");
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      path: "/api/user/search",
      query: { keyword: "bo", group: "vip", p: "1", page_size: "10" },
    });
  });
});

describe("actions", () => {
  test("disabling names the consequence, and its undo enables", async () => {
    const island = open();
    await menuOf(island, "bob");
    await choose(island, "Disable");
    const dialog = await screen.findByRole("dialog", { name: "Disable bob?" });
    expect(dialog.textContent).toContain("Sessions and keys stop working at once");
    await island.user.click(within(dialog).getByRole("button", { name: "Disable bob" }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ id: 3, action: "disable" });
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ id: 3, action: "enable" });
  });

  test("deleting needs the name typed and says what is lost with it", async () => {
    const island = open();
    await menuOf(island, "bob");
    await choose(island, "Delete");
    const dialog = await screen.findByRole("dialog", { name: "Delete bob?" });
    expect(dialog.textContent).toContain("$10.00 is lost");
    const button = within(dialog).getByRole("button", { name: "Delete bob" });
    expect((button as HTMLButtonElement).disabled).toBe(true);
    await island.user.type(within(dialog).getByRole("textbox"), "bob");
    await island.user.click(button);
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ id: 3, action: "delete" });
  });
});

describe("the balance", () => {
  test("before and after stand there; adding sends a difference", async () => {
    const island = open({ url: "/user?quota=3" });
    const drawer = await screen.findByRole("dialog", { name: "Balance of bob" });
    const amount = within(drawer).getByRole("textbox", { name: "Amount" });
    expect(document.activeElement?.getAttribute("name")).toBe("amount");
    await island.user.type(amount, "2.50");
    expect(drawer.textContent).toContain("Now$10.00");
    expect(drawer.textContent).toContain("After$12.50");
    expect(drawer.textContent).toContain("Left to change today$4.00");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(within(drawer).getByText("Say why")).toBeTruthy();
    expect(writes(island)).toEqual([]);
    await island.user.type(within(drawer).getByRole("textbox", { name: "Reason" }), "bank transfer");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({
      id: 3,
      quota_change: 1_250_000,
      quota_reason: "bank transfer",
    });
  });

  test("taking, by keyboard; below zero is refused", async () => {
    const island = open({ url: "/user?quota=3" });
    const drawer = await screen.findByRole("dialog", { name: "Balance of bob" });
    await island.user.click(within(drawer).getByRole("radio", { name: "Take" }));
    const amount = within(drawer).getByRole("textbox", { name: "Amount" });
    await island.user.type(amount, "11");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(within(drawer).getByText("The balance would fall below zero")).toBeTruthy();
    expect(writes(island)).toEqual([]);
    await island.user.clear(amount);
    await island.user.type(amount, "10");
    await island.user.type(within(drawer).getByRole("textbox", { name: "Reason" }), "refund");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ id: 3, quota_change: -5_000_000, quota_reason: "refund" });
  });

  test.each([
    [1000, "add", 5, 1005, undefined],
    [1000, "take", 1000, 0, undefined],
    [1000, "take", 1001, -1, "user.belowZero"],
    [-50, "add", 20, -30, undefined],
    [1000, "add", 0, 1000, "user.badAmount"],
    [1000, "add", Number.NaN, 1000, "user.badAmount"],
  ] as const)("%p %s %p makes %p", (before, mode, amount, after, problem) => {
    expect(balanceAfter(before, { mode, amount })).toBe(after);
    expect(quotaProblem(before, { mode, amount })).toBe(problem);
  });
});

describe("the drawer", () => {
  test("only what was changed is sent; the balance is left alone", async () => {
    const island = open({ url: "/user?edit=3" });
    const drawer = await screen.findByRole("dialog", { name: "Edit user: bob" });
    await island.user.selectOptions(within(drawer).getByRole("combobox", { name: "Group" }), "vip");
    await island.user.click(within(drawer).getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ id: 3, group: "vip" });
  });

  test("recent use, keys and the ways on to their records", async () => {
    open({ url: "/user?edit=3" });
    const drawer = await screen.findByRole("dialog", { name: "Edit user: bob" });
    await settle();
    expect(drawer.textContent).toContain("Last 30 days: 7 entries, 2 errors");
    expect(within(drawer).getByRole("link", { name: "Usage log" }).getAttribute("href")).toBe(
      "/log?username=bob&range=30d",
    );
    expect(within(drawer).getByRole("link", { name: "laptop" }).getAttribute("href")).toBe(
      "/log?username=bob&token_name=laptop&range=30d",
    );
    expect(drawer.textContent).toContain("Exhausted");
    expect(drawer.textContent).toContain("$1.00 used");
  });

  test.each([
    ["Username", "", "Username and password must not be empty"],
    ["Username", "x".repeat(13), "The username can have at most 12 characters"],
    ["Password", "short", "A password must have 8 to 64 characters"],
    ["Password", "x".repeat(65), "A password must have 8 to 64 characters"],
  ])("a new account: %s %p is refused at its field", async (field, text, problem) => {
    const island = open({ url: "/user?new=1" });
    const drawer = await screen.findByRole("dialog", { name: "New user" });
    const fill = async (name: string, value: string) => {
      const input = within(drawer).getByLabelText(new RegExp(`^${name}`));
      await island.user.clear(input);
      if (value !== "") await island.user.type(input, value);
      return input;
    };
    await fill("Username", "carol");
    await fill("Password", "longenough");
    const wrong = await fill(field, text);
    await island.user.click(within(drawer).getByRole("button", { name: "Create" }));
    await settle();
    expect(wrong.getAttribute("aria-invalid")).toBe("true");
    expect(within(drawer).getAllByText(problem).length).toBeGreaterThan(0);
    expect(writes(island)).toEqual([]);
  });

  test("a new account is made with its name as display name, by keyboard alone", async () => {
    const island = open();
    await island.user.keyboard("c");
    await screen.findByRole("dialog", { name: "New user" });
    await island.user.keyboard("carol{Tab}{Tab}longenough{Control>}{Enter}{/Control}");
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({
      username: "carol",
      password: "longenough",
      display_name: "carol",
    });
  });
});

describe("many at once", () => {
  const RUN = {
    id: 9,
    action: "credit",
    amount: 1_250_000,
    reason: "outage",
    username: "boss",
    total: 2,
    created_at: 1_763_596_800,
  };

  test("chosen accounts: the sheet says the sum, the run its refusals, and both stay in the address", async () => {
    const island = open();
    const states = [
      { ...RUN, done: 1, failed: 0, finished: false, failures: [] },
      {
        ...RUN,
        done: 1,
        failed: 1,
        finished: true,
        failures: [{ user_id: 4, username: "banned", code: "user_rank_update" }],
      },
    ];
    island.answer("POST /api/user/bulk", { success: true, data: { id: 9 } });
    island.answer("GET /api/user/bulk/9", () => ({ success: true, data: states.shift() ?? states[0] }));
    await island.user.click(screen.getByRole("checkbox", { name: "Select bob" }));
    await island.user.click(screen.getByRole("checkbox", { name: "Select banned" }));
    await island.user.click(screen.getByRole("button", { name: "Change balances" }));
    const sheet = await screen.findByRole("dialog", { name: "Change balances" });
    expect(sheet.textContent).toContain("bob, banned");
    await island.user.type(within(sheet).getByRole("textbox", { name: /^Amount/ }), "2.5");
    expect(sheet.textContent).toContain("2 accounts get $2.50 each: $5.00 in all.");
    await island.user.click(within(sheet).getByRole("button", { name: "Change 2 balances" }));
    await settle();
    expect(within(sheet).getByText("Say why")).toBeTruthy();
    expect(writes(island)).toEqual([]);
    await island.user.type(within(sheet).getByRole("textbox", { name: /^Reason/ }), "outage");
    await island.user.click(within(sheet).getByRole("button", { name: "Change 2 balances" }));
    const run = await screen.findByRole("dialog", { name: "Change balances: +$2.50" });
    expect(writes(island).at(-1)?.body).toEqual({
      action: "credit",
      amount: 1_250_000,
      reason: "outage",
      ids: [3, 4],
    });
    expect(location.search).toBe("?run=9");
    await within(run).findByText("1 of 2 done, 1 refused", undefined, { timeout: 3000 });
    expect(run.textContent).toContain("banned");
    expect(run.textContent).toContain("You cannot change users whose role is yours or higher");
    // What was chosen is done with.
    expect(screen.queryByRole("toolbar", { name: "Actions for the selection" })).toBeNull();
  });

  test("all that match are named by the filter and their number, never loaded", async () => {
    const data = { rows: [ROWS[2], ROWS[3]], total: 4812, pageSize: 10, groups: ["vip"], lowQuota: 1000 };
    const island = open({ data, url: "/user?group=vip&unseen=90" });
    island.answer("POST /api/user/bulk", { success: true, data: { id: 9 } });
    island.answer("GET /api/user/bulk/9", {
      success: true,
      data: { ...RUN, done: 0, failed: 0, finished: true, failures: [] },
    });
    await island.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await island.user.click(screen.getByRole("button", { name: /4,812 that match/ }));
    await island.user.click(screen.getByRole("button", { name: "Move to group" }));
    const sheet = await screen.findByRole("dialog", { name: "Move to group" });
    await island.user.selectOptions(within(sheet).getByRole("combobox", { name: /^Group/ }), "vip");
    await island.user.click(within(sheet).getByRole("button", { name: "Move 4,812 accounts" }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({
      action: "group",
      group: "vip",
      reason: "",
      filter: { group: "vip", unseen: "90" },
      count: 4812,
    });
    expect(island.requests.some(({ query }) => query["page_size"] === "100")).toBe(false);
  });

  test("nobody chooses an account that the rank forbids, nor their own", () => {
    open({ user: ADMIN });
    for (const name of ["boss", "helper", "gone"])
      expect(screen.queryByRole("checkbox", { name: `Select ${name}` })).toBeNull();
    expect(screen.getByRole("checkbox", { name: "Select bob" })).toBeTruthy();
  });

  test("amounts are typed as people think of them, and asked for in the API's units", async () => {
    const island = open({ url: "/user?quota_max=500000" });
    expect(screen.getByText("$1.00")).toBeTruthy();
    await island.user.click(screen.getByRole("button", { name: /Balance at most: \$1\.00/ }));
    const input = screen.getByRole("textbox", { name: "Balance at most" });
    await island.user.clear(input);
    await island.user.type(input, "2.5{Enter}");
    await settle();
    expect(island.requests.at(-1)?.query).toMatchObject({ quota_max: "1250000" });
  });

  test("the remark and the hold are saved by their own call, and stand in the row", async () => {
    const rows = [person(3, { username: "bob", remark: "pays by invoice", flagged: true })];
    const island = open({ data: { rows, total: 1, pageSize: 10, groups: ["default"], lowQuota: 0 } });
    expect(rowOf("bob").textContent).toContain("On hold");
    expect(rowOf("bob").textContent).toContain("pays by invoice");
    island.answer("PUT /api/user/3/notes", { success: true });
    await island.user.click(within(rowOf("bob")).getByRole("link", { name: /^bob/ }));
    const drawer = await screen.findByRole("dialog", { name: "Edit user: bob" });
    await island.user.click(within(drawer).getByRole("switch", { name: "On hold" }));
    await island.user.click(within(drawer).getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island)).toMatchObject([{ path: "/api/user/3/notes", body: { flagged: false } }]);
  });

  test("notes that are refused leave the balance alone; saving again changes it once", async () => {
    const island = open({ url: "/user?edit=3" });
    const drawer = await screen.findByRole("dialog", { name: "Edit user: bob" });
    const box = (name: RegExp | string) => within(drawer).getByRole("textbox", { name });
    const save = async () => {
      await island.user.click(within(drawer).getByRole("button", { name: "Save" }));
      await settle();
    };
    await island.user.type(box("Amount"), "10");
    await island.user.type(box(/^Reason/), "paid");
    fireEvent.change(box(/^Remark/), { target: { value: "x".repeat(501) } });
    await save();
    expect(within(drawer).getByText("The remark can have at most 500 characters")).toBeTruthy();
    expect(writes(island)).toEqual([]);
    fireEvent.change(box(/^Remark/), { target: { value: "invoice" } });
    const refusal = { success: false, message: "no", code: "invalid_field" };
    island.answer("PUT /api/user/3/notes", () => Response.json(refusal, { status: 400 }));
    await save();
    expect(writes(island).map(({ path }) => path)).toEqual(["/api/user/3/notes"]);
    island.answer("PUT /api/user/3/notes", { success: true });
    await save();
    expect(writes(island).map(({ body }) => body)).toEqual([
      { remark: "invoice" },
      { remark: "invoice" },
      { id: 3, quota_change: 5_000_000, quota_reason: "paid" },
    ]);
    expect(screen.queryByRole("dialog", { name: "Edit user: bob" })).toBeNull();
  });

  test("giving no plan is refused at its field, and nothing is done", async () => {
    const island = open({ url: "/user?plans=3" });
    island.answer("GET /api/plan/user/3", { success: true, data: { items: [], left: 0 } });
    island.answer("GET /api/plan", { success: true, data: [] });
    await screen.findByRole("dialog", { name: /bob/ });
    await settle();
    const drawer = within(screen.getByRole("dialog", { name: /bob/ }));
    await island.user.type(drawer.getByRole("textbox", { name: /^Reason/ }), "gift");
    await island.user.click(drawer.getByRole("button", { name: "Give plan" }));
    await settle();
    expect(screen.getByRole("dialog", { name: /bob/ })).toBeTruthy();
    expect(drawer.getByRole("combobox").getAttribute("aria-invalid")).toBe("true");
    expect(writes(island)).toEqual([]);
  });

  test("root alone takes an account off hold: others see it, and set it on others", async () => {
    const rows = [person(3, { username: "bob", flagged: true }), person(4, { username: "eve" })];
    const data = { rows, total: 2, pageSize: 10, groups: ["default"], lowQuota: 0 };
    const island = open({ user: ADMIN, data });
    for (const [name, isDisabled] of [
      ["bob", true],
      ["eve", false],
    ] as const) {
      await island.user.click(within(rowOf(name)).getByRole("link", { name: new RegExp(`^${name}`) }));
      const drawer = await screen.findByRole("dialog", { name: `Edit user: ${name}` });
      const hold = within(drawer).getByRole<HTMLInputElement>("switch", { name: "On hold" });
      expect(hold.disabled).toBe(isDisabled);
      await island.user.click(within(drawer).getByRole("button", { name: "Cancel" }));
      await settle();
    }
  });

  test("a file is looked at first; a wrong line is named and nothing begins", async () => {
    const island = open({ url: "/user?import=1" });
    const report = {
      create: 1,
      change: 2,
      unchanged: 0,
      added: 2_500_000,
      taken: 0,
      plan: "p1",
      earlier: null,
    };
    const wrong = [{ line: 3, code: "group_unknown", params: { group: "gold" } }];
    const answers = [
      { ...report, problems: wrong, problem_count: 1 },
      { ...report, problems: [], problem_count: 0 },
    ];
    island.answer("POST /api/user/import", ({ body }: { body: { plan?: string } }) => ({
      success: true,
      data: body.plan === undefined ? { report: answers.shift() } : { id: 9 },
    }));
    island.answer("GET /api/user/bulk/9", {
      success: true,
      data: { ...RUN, action: "import", done: 3, failed: 0, finished: true, failures: [] },
    });
    const drawer = await screen.findByRole("dialog", { name: "Import accounts" });
    const choose = (text: string) =>
      island.user.upload(
        within(drawer).getByLabelText("File"),
        new File([text], "a.csv", { type: "text/csv" }),
      );
    await choose("username\nwrong");
    expect(await within(drawer).findByText("1 line has a problem")).toBeTruthy();
    expect(drawer.textContent).toContain("Line 3There is no group named gold");
    await island.user.click(within(drawer).getByRole("button", { name: "Import 3 accounts" }));
    await settle();
    await choose("username\nright");
    expect(await within(drawer).findByText("This is what the file does")).toBeTruthy();
    expect(drawer.textContent).toContain("Added to balances$5.00");
    await island.user.type(within(drawer).getByRole("textbox", { name: /^Reason/ }), "course");
    await island.user.click(within(drawer).getByRole("button", { name: "Import 3 accounts" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([
      { csv: "username\nwrong" },
      { csv: "username\nright" },
      { csv: "username\nright", plan: "p1", reason: "course" },
    ]);
    expect(location.search).toBe("?run=9");
  });
});
