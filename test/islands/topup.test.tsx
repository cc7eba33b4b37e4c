// The wallet as its owner meets it: codes redeemed one by one and many at once, rewards moved, the history beside it.
import { beforeEach, describe, expect, test } from "bun:test";
import { act, screen, within } from "@testing-library/react";
import { language, setLanguage } from "../../islands/lib/i18n.ts";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import Wallet from "../../islands/screens/topup.tsx";
import { codesOf } from "../../islands/screens/topup/redeem-panel.tsx";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const ROWS = [
  {
    id: 2,
    created_at: NOW - 60,
    content: "通过兑换码充值 ＄1.000000 额度，兑换码ID 31",
    quota: 500_000,
    other: '{"redemption_id":31}',
  },
  { id: 1, created_at: NOW - 120, content: "a gift", quota: 0, other: "" },
];

const CLOSED = {
  open: false,
  unit: "dollars",
  min_topup: 0,
  max_topup: 10_000,
  amounts: [],
  discounts: [],
  methods: [],
} as const;

let opened: string[] = [];

beforeEach(() => {
  localStorage.clear();
  opened = [];
  interceptLeaving(
    () => undefined,
    (url) => opened.push(url),
  );
});

function open(options: IslandOptions & { reward?: number } = {}): Island {
  const { reward = 0, ...rest } = options;
  const island = renderScreen(Wallet, {
    url: "/topup",
    data: {
      rows: ROWS,
      total: 2,
      pageSize: 10,
      used: 250_000,
      requests: 1234,
      invitation: { code: "aB3x", count: 2, quota: reward, history: 2_000_000 },
      offers: CLOSED,
      orders: { rows: [], total: 0 },
      order: null,
      plans: { items: [], on_sale: [], left: 0, balance: 0 },
    },
    ...rest,
  });
  island.answer("GET /api/log/self", { success: true, data: { items: ROWS, total: 2 } });
  return island;
}

const field = () => screen.getByRole("textbox", { name: "Codes" });
const writes = (island: Island) => island.requests.filter(({ method }) => method !== "GET");
const line = (key: string, quota: number, message = "") => ({ key, quota, success: quota > 0, message });

describe("redeeming", () => {
  test.each([
    ["a b\nc", ["a", "b", "c"]],
    ["a, b; a，c、d", ["a", "b", "c", "d"]],
    ["  \n ", []],
  ])("%p holds %p", (text, codes) => expect(codesOf(text)).toEqual(codes));

  test("each code gets a line; what failed stays in the field; the balance grows by what was paid", async () => {
    const island = open();
    island.answer("POST /api/user/topup/batch", {
      success: true,
      data: [line("aaaa1111", 500_000), line("bbbb2222", 0, "no such code"), line("cccc3333", 250_000)],
    });
    expect(screen.getByTestId("balance").textContent).toBe("$10.00");
    await island.user.type(field(), "aaaa1111{Enter}bbbb2222 cccc3333");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(writes(island)[0]?.body).toEqual({ keys: ["aaaa1111", "bbbb2222", "cccc3333"] });
    const lines = within(screen.getByRole("list", { name: "Results" })).getAllByRole("listitem");
    expect(lines.map((each) => each.textContent)).toEqual([
      "••••1111Redeemed $1.00",
      "••••2222no such code",
      "••••3333Redeemed $0.50",
    ]);
    expect(screen.getByText("2 of 3 codes redeemed")).toBeTruthy();
    expect((field() as HTMLTextAreaElement).value).toBe("bbbb2222");
    expect(screen.getByTestId("balance").textContent).toBe("$11.50");
    // The history is asked for again.
    expect(island.requests.at(-1)).toMatchObject({ path: "/api/log/self", query: { type: "1" } });
  });

  test("codes that are typed while others are redeemed stay in the field", async () => {
    const island = open();
    const answer = Promise.withResolvers<unknown>();
    island.answer("POST /api/user/topup/batch", () => answer.promise);
    await island.user.type(field(), "aaaa1111 bbbb2222");
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await island.user.type(field(), " dddd4444");
    answer.resolve({ success: true, data: [line("aaaa1111", 500_000), line("bbbb2222", 0, "no such code")] });
    await settle();
    expect((field() as HTMLTextAreaElement).value).toBe("bbbb2222\ndddd4444");
  });

  test("nothing and too many are refused before the server, in the specification's words", async () => {
    const island = open({ language: "zh" });
    await island.user.click(screen.getByRole("button", { name: "兑换余额" }));
    expect(screen.getByRole("alert").textContent).toBe("请输入兑换码！");
    const box = screen.getByRole("textbox", { name: "兑换码" });
    expect(document.activeElement?.tagName).toBe("TEXTAREA");
    await island.user.click(box);
    await island.user.paste(Array.from({ length: 101 }, (_, index) => `code${index}`).join("\n"));
    await island.user.click(screen.getByRole("button", { name: "兑换余额" }));
    expect(screen.getByRole("alert").textContent).toContain("一次最多兑换 100 个兑换码");
    expect(writes(island)).toEqual([]);
  });

  test("a limit says how long to wait and keeps what was typed", async () => {
    const island = open();
    island.answer(
      "POST /api/user/topup/batch",
      () =>
        new Response(JSON.stringify({ success: false, message: "", code: "too_many_attempts" }), {
          status: 429,
          headers: { "retry-after": "61" },
        }),
    );
    await island.user.type(field(), "guess");
    await island.user.click(screen.getByRole("button", { name: "Redeem" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("61");
    expect((field() as HTMLTextAreaElement).value).toBe("guess");
    expect(screen.getByTestId("balance").textContent).toBe("$10.00");
  });

  test("the way to buy codes is the operator's link", async () => {
    const island = open({ status: { top_up_link: "https://shop.example/" } });
    await island.user.click(screen.getByRole("button", { name: "Buy a code" }));
    expect(opened).toEqual(["https://shop.example/"]);
  });

  test("without a link that is said, in the specification's words", async () => {
    const island = open({ language: "zh", status: { top_up_link: "" } });
    await island.user.click(screen.getByRole("button", { name: "获取兑换码" }));
    expect(screen.getByText("超级管理员未设置充值链接！")).toBeTruthy();
    expect(opened).toEqual([]);
  });
});

describe("the history", () => {
  test("is told in the reader's language where it can be, else in the log's words", () => {
    open();
    const table = screen.getByRole("table", { name: "Credits" });
    expect(within(table).getByText("Redeemed code #31")).toBeTruthy();
    expect(within(table).getByText("a gift")).toBeTruthy();
  });

  test("what the server says stands in the reader's language, also when it is read anew and when the language changes", async () => {
    const content = "获得套餐「Small」，每周期额度 ＄1.000000 额度";
    const text = "Got the plan “Small”, $1.000000 each period";
    const row = { id: 3, created_at: NOW, content, quota: 500_000, other: "" };
    const island = open();
    island.answer("GET /api/log/self", () => ({
      success: true,
      data: { items: [language.peek() === "zh" ? row : { ...row, text }], total: 1 },
    }));
    act(() => setLanguage("zh"));
    expect(await screen.findByText(content)).toBeTruthy();
    act(() => setLanguage("en"));
    expect(await screen.findByText(text)).toBeTruthy();
    expect(screen.queryByText(content)).toBeNull();
  });
});

describe("the invitation", () => {
  test("the link can be copied; below one unit there is nothing to move", async () => {
    const island = open({ reward: 499_999 });
    await island.user.click(screen.getByRole("button", { name: "Copy the invitation link" }));
    expect(await navigator.clipboard.readText()).toBe("http://localhost/register?aff=aB3x");
    expect(screen.queryByRole("textbox", { name: "Amount to move" })).toBeNull();
    expect(screen.getByText("Rewards of $1.00 or more can be moved to the balance.")).toBeTruthy();
  });

  test("all of it is proposed; too little and too much are refused at the field", async () => {
    const island = open({ reward: 1_500_000 });
    island.answer("POST /api/user/aff_transfer", { success: true, message: "" });
    const amount = screen.getByRole("textbox", { name: "Amount to move" }) as HTMLInputElement;
    expect(amount.value).toBe("3");
    for (const [text, problem] of [
      ["0.5", "The minimum is $1.00"],
      ["3.01", "The reward is smaller than that"],
      ["much", "The minimum is $1.00"],
    ] as const) {
      await island.user.clear(amount);
      await island.user.type(amount, `${text}{Enter}`);
      await settle();
      expect(screen.getByText(problem)).toBeTruthy();
    }
    expect(writes(island)).toEqual([]);
    await island.user.clear(amount);
    await island.user.type(amount, "2{Enter}");
    await settle();
    expect(writes(island)[0]?.body).toEqual({ quota: 1_000_000 });
    expect(screen.getByTestId("balance").textContent).toBe("$12.00");
    expect((screen.getByRole("textbox", { name: "Amount to move" }) as HTMLInputElement).value).toBe("1");
  });
});
