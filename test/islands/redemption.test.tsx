// Redemption codes as administrators meet them: typed in currency, made in batches, taken along, switched, deleted.
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { fireEvent, screen, within } from "@testing-library/react";
import RedemptionScreen from "../../islands/screens/redemption.tsx";
import { quotaOf } from "../../islands/ui/money-field.tsx";
import type { RedemptionPageData } from "../../islands/screens/redemption/row.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions, SentRequest } from "./render.tsx";
import type { CodeRow } from "../../islands/lib/wire.ts";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const KEY = "0123456789abcdef0123456789ab";

function code(id: number, part: Partial<CodeRow> = {}): CodeRow {
  return {
    user_id: 1,
    count: 0,
    DeletedAt: null,
    id,
    key: `${KEY}${String(id).padStart(4, "0")}`,
    status: 1,
    name: `code ${id}`,
    quota: 500_000,
    created_time: NOW - 3600,
    redeemed_time: 0,
    expired_time: 0,
    used_user_id: 0,
    used_username: "",
    ...part,
  };
}

const ROWS = [
  code(1, { name: "open" }),
  code(2, { name: "off", status: 2 }),
  code(3, { name: "spent", status: 3, used_user_id: 9, used_username: "bob", redeemed_time: NOW - 60 }),
];

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});
afterEach(() => jest.restoreAllMocks());

function open(options: IslandOptions & { rows?: CodeRow[] } = {}): Island {
  const { rows = ROWS, ...rest } = options;
  const data: RedemptionPageData = { rows, total: rows.length, pageSize: 10 };
  const island = renderScreen(RedemptionScreen, { data, url: "/redemption", ...rest });
  island.answer("GET /api/redemption/search", { success: true, data: { items: rows, total: rows.length } });
  island.answer("POST /api/redemption/batch", (call: { body: { ids: number[] } }) => ({
    success: true,
    data: call.body.ids.length,
  }));
  return island;
}

const rowOf = (name: string) => screen.getByRole("row", { name: new RegExp(name) });
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

/** What a download would hold. */
function catchDownloads(): { name: string; text: () => Promise<string> }[] {
  const caught: { name: string; text: () => Promise<string> }[] = [];
  let latest: Blob | undefined;
  jest.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    latest = blob as Blob;
    return "blob:x";
  });
  jest.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function click(
    this: HTMLAnchorElement,
  ) {
    const blob = latest;
    caught.push({ name: this.download, text: () => blob?.text() ?? Promise.resolve("") });
  });
  return caught;
}

describe("the list", () => {
  test("codes are masked and copied whole", async () => {
    const island = open();
    expect(document.body.textContent).not.toContain(KEY);
    expect(rowOf("open").textContent).toContain("••••0001");
    await island.user.click(screen.getByRole("button", { name: "Copy the code open" }));
    expect(await navigator.clipboard.readText()).toBe(ROWS[0]?.key ?? "");
  });

  test("a row says what became of its code, and by whom, with a link", () => {
    open();
    expect(rowOf("open").textContent).toContain("Unused");
    expect(rowOf("off").textContent).toContain("Disabled");
    expect(rowOf("spent").textContent).toContain("Used");
    expect(within(rowOf("spent")).getByRole("link", { name: "bob" }).getAttribute("href")).toBe(
      "/user?keyword=9&edit=9",
    );
  });

  test("used codes are neither edited nor switched; disabled ones are only enabled", async () => {
    const island = open();
    expect(await menuOf(island, "open")).toEqual(["Copy code", "Edit", "Disable", "Delete"]);
    await island.user.keyboard("{Escape}");
    expect(await menuOf(island, "off")).toEqual(["Copy code", "Enable", "Delete"]);
    await island.user.keyboard("{Escape}");
    expect(await menuOf(island, "spent")).toEqual(["Copy code", "Delete"]);
  });

  test("views are questions of the call", async () => {
    const island = open();
    await island.user.click(screen.getByRole("link", { name: "Used" }));
    await settle();
    expect(island.requests.at(-1)).toMatchObject({
      path: "/api/redemption/search",
      query: { status: "3", p: "1", page_size: "10" },
    });
  });

  test("opening a used code tells its story and offers no form", async () => {
    const island = open();
    await island.user.click(within(rowOf("spent")).getByRole("link", { name: "spent" }));
    await settle();
    const drawer = await screen.findByRole("dialog", { name: "spent" });
    expect(within(drawer).queryByRole("textbox")).toBeNull();
    expect(drawer.textContent).toContain("A used code can neither be edited nor enabled.");
    expect(within(drawer).getByRole("link", { name: "See this user's credits" }).getAttribute("href")).toBe(
      "/log?username=bob&type=1",
    );
  });

  test("past the end the last page is gone to, and Back does not come here again", async () => {
    const before = history.length;
    const island = open({ url: "/redemption?p=9", data: { rows: [], total: 31, pageSize: 10 } });
    island.answer("GET /api/redemption/search", ({ query }: SentRequest) => ({
      success: true,
      data: { items: query["p"] === "4" ? ROWS : [], total: 31 },
    }));
    await settle();
    expect(location.search).toBe("?p=4");
    expect(history.length).toBe(before);
    expect(screen.queryAllByRole("row").length).toBeGreaterThan(2);
  });

  test("a code of another page opens by its address", async () => {
    const island = open({ url: "/redemption?edit=77" });
    island.answer("GET /api/redemption/77", { success: true, data: code(77, { name: "far" }) });
    expect(await screen.findByRole("dialog", { name: "Edit code: far" })).toBeTruthy();
  });
});

describe("making codes", () => {
  test("the value is typed in dollars, quota stands below; an empty name becomes the value", async () => {
    const island = open();
    island.answer("POST /api/redemption", { success: true, data: ["aaaa", "bbbb", "cccc"] });
    await island.user.keyboard("c");
    const drawer = await screen.findByRole("dialog", { name: "New codes" });
    const value = within(drawer).getByRole("textbox", { name: /^Value/ });
    expect((value as HTMLInputElement).value).toBe("0.2");
    expect(drawer.textContent).toContain("= 100,000 quota units");
    await island.user.clear(value);
    await island.user.type(value, "2.5");
    expect(drawer.textContent).toContain("= 1,250,000 quota units");
    const count = within(drawer).getByRole("spinbutton", { name: /^How many/ });
    await island.user.clear(count);
    await island.user.type(count, "3");
    expect(drawer.textContent).toContain("$7.50 in all");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(writes(island)[0]?.body).toEqual({ name: "$2.50", quota: 1_250_000, count: 3, expired_time: 0 });

    const downloads = catchDownloads();
    await screen.findByText("3 codes created, worth $2.50 each");
    expect(document.activeElement?.textContent).toBe("3 codes created, worth $2.50 each");
    await island.user.click(screen.getByRole("button", { name: "Copy all" }));
    expect(await navigator.clipboard.readText()).toBe("aaaa\nbbbb\ncccc");
    await island.user.click(screen.getByRole("button", { name: "Download CSV" }));
    expect(downloads[0]?.name).toBe("_2.50.csv");
    expect(await downloads[0]?.text()).toBe(
      "Code,Name,Value (USD),Value in quota\r\naaaa,$2.50,2.5,1250000\r\nbbbb,$2.50,2.5,1250000\r\ncccc,$2.50,2.5,1250000\r\n",
    );
  });

  test.each([
    ["value", "0", "Enter a value greater than 0"],
    ["value", "lots", "Enter a value greater than 0"],
    ["count", "0", "From 1 to 100 codes at once"],
    ["count", "101", "From 1 to 100 codes at once"],
    ["name", "x".repeat(21), "The name can have at most 20 characters"],
  ])("%s %p is refused at its field", async (field, text, problem) => {
    const island = open({ url: "/redemption?new=1" });
    const drawer = await screen.findByRole("dialog", { name: "New codes" });
    const input =
      field === "count"
        ? within(drawer).getByRole("spinbutton")
        : within(drawer).getByRole("textbox", { name: field === "value" ? /^Value/ : /^Name/ });
    await island.user.clear(input);
    await island.user.type(input, text);
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(within(drawer).getByText(problem)).toBeTruthy();
    expect(input.getAttribute("aria-invalid")).toBe("true");
    expect(writes(island)).toEqual([]);
  });

  test("an end that has passed, or was typed in part, makes no code", async () => {
    const island = open();
    await island.user.keyboard("c");
    const drawer = await screen.findByRole("dialog", { name: "New codes" });
    const end = within(drawer).getByLabelText(/^Valid until/);
    const save = () => island.user.keyboard("{Control>}{Enter}{/Control}");
    fireEvent.change(end, { target: { value: "2020-01-01T00:00" } });
    await save();
    await settle();
    expect([writes(island), end.getAttribute("aria-invalid")]).toEqual([[], "true"]);
    // What a browser says of a date whose year is missing: no value, and that something is wrong with it.
    Object.defineProperty(end, "validity", { value: { badInput: true }, configurable: true });
    fireEvent.change(end, { target: { value: "" } });
    await save();
    await settle();
    expect([writes(island), end.getAttribute("aria-invalid")]).toEqual([[], "true"]);
    Object.defineProperty(end, "validity", { value: { badInput: false }, configurable: true });
    fireEvent.change(end, { target: { value: "2099-01-01T00:00" } });
    island.answer("POST /api/redemption", { success: true, data: ["aaaa"] });
    await save();
    await settle();
    expect(writes(island).map(({ body }) => body)).toMatchObject([
      { expired_time: Date.parse("2099-01-01T00:00") / 1000 },
    ]);
  });

  test("a site that shows quota has it typed in quota", async () => {
    const island = open({ url: "/redemption?new=1", status: { display_in_currency: false } });
    const drawer = await screen.findByRole("dialog", { name: "New codes" });
    const value = within(drawer).getByRole("textbox", { name: /^Value/ });
    expect((value as HTMLInputElement).value).toBe("100000");
    expect(drawer.textContent).toContain("= $0.2");
    await island.user.click(within(drawer).getByRole("button", { name: "5,000,000" }));
    expect((value as HTMLInputElement).value).toBe("5000000");
  });

  test("a comma is a point where it can be nothing else; what can be read in two ways makes no code", async () => {
    const island = open({ url: "/redemption?new=1" });
    island.answer("POST /api/redemption", { success: true, data: ["aaaa"] });
    const drawer = await screen.findByRole("dialog", { name: "New codes" });
    const value = within(drawer).getByRole("textbox", { name: /^Value/ });
    await island.user.clear(value);
    await island.user.type(value, "1,234");
    expect(drawer.textContent).toContain("Write it without the comma: “1,234” can be read in two ways");
    await island.user.click(within(drawer).getByRole("button", { name: "Create" }));
    await settle();
    expect(writes(island)).toEqual([]);
    await island.user.clear(value);
    await island.user.type(value, "12,50");
    expect(drawer.textContent).toContain("= 6,250,000 quota units");
    await island.user.click(within(drawer).getByRole("button", { name: "Create" }));
    await settle();
    expect(writes(island)[0]?.body).toMatchObject({ name: "$12.50", quota: 6_250_000 });
  });

  test.each([
    ["0,5", {}, 250_000],
    ["$1,234.50", {}, 617_250_000],
    ["1,234,567", {}, 617_283_500_000],
    ["1 000", {}, 500_000_000],
    ["0.1234567890123456789", {}, 61_728],
    ["-2,5", {}, -1_250_000],
    ["1,234", {}, undefined],
    ["1,2,3", {}, undefined],
    ["1,234", { display_in_currency: false }, 1234],
    ["12,50", { display_in_currency: false }, 13],
  ])("%p typed on a site of %p is %p", (text, status, units) => {
    open({ status });
    expect(quotaOf(text)).toBe(units as number);
  });

  test("an unused code keeps its count to itself when it is changed", async () => {
    const island = open({ url: "/redemption?edit=1" });
    island.answer("PUT /api/redemption", { success: true, data: {} });
    const drawer = await screen.findByRole("dialog", { name: "Edit code: open" });
    expect(within(drawer).queryByRole("spinbutton")).toBeNull();
    await island.user.click(within(drawer).getByRole("button", { name: "$10" }));
    await island.user.click(within(drawer).getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island)[0]?.body).toEqual({ id: 1, name: "open", quota: 5_000_000 });
  });
});

describe("many at once", () => {
  test("disabling a selection passes over used codes, in one call, and is undone", async () => {
    const island = open();
    await island.user.click(screen.getByRole("checkbox", { name: /page/i }));
    await island.user.click(screen.getByRole("button", { name: "Disable" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([{ ids: [1], action: "disable" }]);
    expect(rowOf("open").textContent).toContain("Disabled");
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ ids: [1], action: "enable" });
    expect(rowOf("open").textContent).toContain("Unused");
  });

  test("a refusal puts the old state back", async () => {
    const island = open();
    island.answer("POST /api/redemption/batch", { success: false, message: "no", code: "x" });
    await menuOf(island, "open");
    await choose(island, "Disable");
    expect(rowOf("open").textContent).toContain("Unused");
    expect(screen.getByRole("alert").textContent).toContain("no");
  });

  test("deleting says how many unused ones stop working", async () => {
    const island = open();
    await island.user.click(screen.getByRole("checkbox", { name: /page/i }));
    await island.user.click(screen.getByRole("button", { name: "Delete" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete 3 codes?" });
    expect(dialog.textContent).toContain("1 unused code stops working at once");
    await island.user.click(within(dialog).getByRole("button", { name: "Delete 3 codes" }));
    await settle();
    expect(writes(island).map(({ body }) => body)).toEqual([{ ids: [1, 2, 3], action: "delete" }]);
  });

  test("without a selection the header's actions say what is missing, in the specification's words", async () => {
    const island = open({ language: "zh" });
    await island.user.click(screen.getByRole("button", { name: "更多操作" }));
    await choose(island, "删除所选兑换码");
    expect(screen.getByText("请至少选择一个兑换码！")).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("the filter's codes leave as CSV, every page of them", async () => {
    const island = open();
    const downloads = catchDownloads();
    await island.user.click(screen.getByRole("button", { name: "More actions" }));
    await choose(island, "Export CSV");
    await settle();
    const text = (await downloads[0]?.text()) ?? "";
    expect(downloads[0]?.name).toBe("codes.csv");
    expect(text.split("\r\n")).toHaveLength(5);
    expect(text).toContain(`${ROWS[2]?.key},spent,Used,1,500000,`);
    expect(text).toContain(",bob,");
  });
});
