// Paying from the wallet, as its owner meets it: the price is the server's, nobody leaves without having seen what they pay and get,
// and whoever comes back is told what became of the order. In dollars, in units, in a currency of the site's own.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { act, screen } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import Wallet from "../../islands/screens/topup.tsx";
import failure from "../../locales/zh/failure.json" with { type: "json" };
import topup from "../../locales/zh/topup.json" with { type: "json" };
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const METHODS = [
  { rail: "epay", type: "alipay", name: "Alipay", currency: "CNY", min_topup: 5 },
  { rail: "stripe", type: "stripe", name: "Card", currency: "USD", min_topup: 5 },
];
const OFFERS = {
  open: true,
  unit: "dollars",
  min_topup: 5,
  max_topup: 1000,
  amounts: [10, 100],
  discounts: [{ from: 100, part: 0.95 }],
  methods: METHODS,
};
const ORDER = {
  id: 1,
  user_id: 7,
  amount: 10,
  unit: "dollars",
  plan: "",
  quota: 5_000_000,
  money: "73.00",
  currency: "CNY",
  trade_no: "USR7NOabc",
  rail: "epay",
  payment_method: "alipay",
  method_name: "Alipay",
  create_time: NOW,
  complete_time: 0,
  expires_at: NOW + 3600,
  status: "pending",
  refunded: "0.00",
  disputed: "0.00",
  debited_quota: 0,
  can_refund: false,
};
const OWN = {
  quota_display_type: "CUSTOM",
  custom_currency_symbol: "◎",
  custom_currency_exchange_rate: 100,
} as NonNullable<IslandOptions["status"]>;

let left: string[] = [];
let posted: { action: string; fields: Record<string, string> }[] = [];
const submit = HTMLFormElement.prototype.submit;

beforeEach(() => {
  localStorage.clear();
  left = [];
  posted = [];
  interceptLeaving(
    (url) => left.push(url),
    () => undefined,
  );
  HTMLFormElement.prototype.submit = function post(this: HTMLFormElement) {
    posted.push({
      action: this.getAttribute("action") ?? "",
      fields: Object.fromEntries(
        [...new FormData(this)].map(([name, value]) => [name, typeof value === "string" ? value : ""]),
      ),
    });
  };
});
afterEach(() => {
  HTMLFormElement.prototype.submit = submit;
});

interface Opened extends IslandOptions {
  offers?: Record<string, unknown>;
  order?: Record<string, unknown> | null;
  orders?: readonly Record<string, unknown>[];
  /** The credits. */
  rows?: readonly Record<string, unknown>[];
}

function open({ offers = OFFERS, order = null, orders = [], rows = [], ...rest }: Opened = {}): Island {
  return renderScreen(Wallet, {
    url: "/topup",
    data: {
      rows,
      total: rows.length,
      pageSize: 10,
      used: 0,
      requests: 0,
      invitation: { code: "aB3x", count: 0, quota: 0, history: 0 },
      offers,
      orders: { rows: orders, total: orders.length },
      order,
      plans: { items: [], on_sale: [], left: 0, balance: 0 },
    },
    ...rest,
  });
}

const amount = () => screen.getByRole("textbox", { name: "Amount" }) as HTMLInputElement;
const payable = () => screen.getByTestId("payable").textContent;
const asked = ({ requests }: Island, path: string) =>
  requests.filter((request) => request.path === path).map(({ body }) => body);

const priced = (island: Island, money = "73.00", currency = "CNY") =>
  island.answer("POST /api/user/topup/amount", {
    success: true,
    data: { money, currency, quota: 5_000_000, discount: 1 },
  });

describe("paying", () => {
  test("nothing is set up: says so, and tells root where to change it", () => {
    const closed = { ...OFFERS, open: false, methods: [] };
    const island = open({ offers: closed, language: "zh" });
    expect(screen.getByText("管理员未开启在线充值！")).toBeTruthy();
    expect(screen.queryByRole("link", { name: "去设置支付" })).toBeNull();
    island.unmount();
    open({ offers: closed, user: { role: 100 } });
    expect(screen.getByRole("link", { name: "Set up payments" }).getAttribute("href")).toBe(
      "/setting?tab=payment",
    );
  });

  test("a form for its rail: price by the server, both named before it goes, then posted as it was answered", async () => {
    const island = open();
    priced(island);
    expect(amount().value).toBe("5");
    await island.user.click(screen.getByRole("button", { name: "$10" }));
    expect(await screen.findByText("73.00 CNY")).toBeTruthy();
    expect(asked(island, "/api/user/topup/amount").at(-1)).toEqual({
      rail: "epay",
      method: "alipay",
      amount: 10,
    });
    island.answer("POST /api/user/topup/pay", {
      success: true,
      data: { trade_no: "n", url: "https://pay.example/submit.php", fields: { pid: "1", sign: "s" } },
    });
    await island.user.click(screen.getByRole("button", { name: "Pay" }));
    expect(screen.getByText("Pay 73.00 CNY by Alipay?")).toBeTruthy();
    expect(screen.getByText("Credit to your balance: $10.00")).toBeTruthy();
    expect(asked(island, "/api/user/topup/pay")).toEqual([]);
    await island.user.click(screen.getByRole("button", { name: "Pay 73.00 CNY" }));
    await settle();
    expect(posted).toEqual([{ action: "https://pay.example/submit.php", fields: { pid: "1", sign: "s" } }]);
    expect(left).toEqual([]);
  });

  test("another method is priced anew, and a rail without fields is gone to", async () => {
    const island = open();
    priced(island, "5.00", "USD");
    island.answer("POST /api/user/topup/pay", {
      success: true,
      data: { trade_no: "n", url: "https://checkout.example/c/1", fields: null },
    });
    await island.user.click(screen.getByRole("radio", { name: "Card" }));
    expect(await screen.findByText("5.00 USD")).toBeTruthy();
    expect(asked(island, "/api/user/topup/amount").at(-1)).toEqual({
      rail: "stripe",
      method: "stripe",
      amount: 5,
    });
    await island.user.click(screen.getByRole("button", { name: "Pay" }));
    await island.user.click(screen.getByRole("button", { name: "Pay 5.00 USD" }));
    await settle();
    expect(left).toEqual(["https://checkout.example/c/1"]);
    expect(posted).toEqual([]);
  });

  test.each([
    ["4", "充值数量不能小于$5"],
    ["1001", "充值数量不能大于$1,000"],
    ["many", "请输入数字"],
  ])("%s is refused in the specification's words, and nothing is asked", async (typed, words) => {
    const island = open({ language: "zh" });
    const field = screen.getByRole("textbox", { name: "充值数量" });
    await island.user.clear(field);
    await island.user.type(field, typed);
    expect(screen.getByRole("alert").textContent).toBe(words);
    expect(screen.getByRole("button", { name: "充值" }).getAttribute("aria-disabled")).toBe("true");
    expect(screen.getByTestId("payable").textContent).toBe("–");
  });

  test("the amount is whole, half up, and never below 1", async () => {
    const island = open({ offers: { ...OFFERS, min_topup: 1, methods: [{ ...METHODS[0], min_topup: 1 }] } });
    priced(island);
    for (const [typed, whole] of [
      ["7.5", "8"],
      ["7.4", "7"],
      ["0", "1"],
    ] as const) {
      await island.user.clear(amount());
      await island.user.type(amount(), typed);
      await island.user.tab();
      expect(amount().value).toBe(whole);
    }
  });

  test("a refusal of the server stands at the field", async () => {
    const island = open();
    island.answer("POST /api/user/topup/amount", {
      success: false,
      message: "too little",
      code: "topup_money_low",
    });
    expect((await screen.findByRole("alert")).textContent).toBe("too little");
    expect(payable()).toBe("–");
  });

  test("in a currency of the site's own no dollar is named, and an amount is what was typed", async () => {
    const island = open({ status: OWN });
    priced(island);
    expect(amount().value).toBe("500");
    await island.user.clear(amount());
    await island.user.type(amount(), "1250.5");
    await island.user.tab();
    expect(amount().value).toBe("1250.5");
    expect(screen.getByText("Credit ◎1,250.50 (6,252,500 quota units), minimum ◎500")).toBeTruthy();
    expect(await screen.findByText("73.00 CNY")).toBeTruthy();
    const last = () => asked(island, "/api/user/topup/amount").at(-1);
    expect(last()).toEqual({ rail: "epay", method: "alipay", quota: 6_252_500 });
    expect(document.body.textContent).not.toContain("$");
    expect(screen.getByRole("button", { name: /^◎10,000.*−5%/ })).toBeTruthy();
    await island.user.clear(amount());
    await island.user.type(amount(), "499.99");
    expect(screen.getByRole("alert").textContent).toBe("The minimum is ◎500");
  });

  test("what was typed stays as it was typed, where it is no whole number of units", async () => {
    const island = open({ status: { quota_display_type: "CNY", usd_exchange_rate: 7.3 } as typeof OWN });
    priced(island, "100.50");
    await island.user.clear(amount());
    await island.user.type(amount(), "100.5");
    await island.user.tab();
    expect(amount().value).toBe("100.5");
    expect(await screen.findByText("100.50 CNY")).toBeTruthy();
    expect(asked(island, "/api/user/topup/amount").at(-1)).toMatchObject({ quota: 6_883_562 });
  });

  test("an offered amount is exactly that, also where the currency's decimals cannot say it", async () => {
    const status = { ...OWN, custom_currency_exchange_rate: 0.123457 };
    const island = open({ status, offers: { ...OFFERS, amounts: [7] } });
    priced(island);
    await island.user.click(screen.getByRole("button", { name: /^◎0\.8642/ }));
    expect(await screen.findByText("73.00 CNY")).toBeTruthy();
    expect(asked(island, "/api/user/topup/amount").at(-1)).toMatchObject({ quota: 3_500_000 });
    expect(screen.getByRole("button", { name: /^◎0\.8642/ }).getAttribute("aria-pressed")).toBe("true");
  });

  test("where the site shows units, units are sent", async () => {
    const island = open({
      status: { display_in_currency: false },
      offers: {
        ...OFFERS,
        unit: "quota",
        min_topup: 2_500_000,
        max_topup: 500_000_000,
        amounts: [5_000_000],
        methods: [{ ...METHODS[0], min_topup: 2_500_000 }],
      },
    });
    priced(island);
    await island.user.click(screen.getByRole("button", { name: "5,000,000" }));
    expect(await screen.findByText("73.00 CNY")).toBeTruthy();
    expect(asked(island, "/api/user/topup/amount").at(-1)).toMatchObject({ amount: 5_000_000 });
  });
});

test("the Chinese texts of the specification's wallet stand word for word", () => {
  expect([
    topup.title,
    topup.payClosed,
    topup.codeMissing,
    topup.payLow.replace("{{minimum}}", ""),
    topup.noLink,
    topup.failed,
    failure.payment_unset,
  ]).toEqual([
    "我的钱包",
    "管理员未开启在线充值！",
    "请输入兑换码！",
    "充值数量不能小于",
    "超级管理员未设置充值链接！",
    "请求失败",
    "当前管理员未配置支付信息",
  ]);
});

describe("coming back", () => {
  const url = "/topup?order=USR7NOabc";
  const path = "GET /api/user/topup/USR7NOabc";
  const state = () => screen.getByTestId("order-state");

  test("early: asks until it is credited, then says how much, moves the balance and offers the receipt", async () => {
    const island = open({ url, order: ORDER });
    expect(state().textContent).toContain("Waiting for the payment provider");
    expect(state().textContent).toContain("Order USR7NOabc · 73.00 CNY");
    // The window of the provider is closed, and this one has the focus again.
    const look = async () => {
      act(() => void window.dispatchEvent(new Event("focus")));
      await settle();
    };
    island.answer(path, { success: true, data: ORDER });
    await look();
    expect(state().dataset["status"]).toBe("pending");
    expect(screen.getByTestId("balance").textContent).toBe("$10.00");
    island.answer("GET /api/log/self", { success: true, data: { items: [], total: 0 } });
    island.answer(path, { success: true, data: { ...ORDER, status: "success", complete_time: NOW } });
    await look();
    expect(state().textContent).toContain("Payment received: $10.00 credited");
    expect(screen.getByTestId("balance").textContent).toBe("$20.00");
    expect(screen.getByRole("link", { name: "Receipt" }).getAttribute("href")).toBe(
      "/topup/receipt/USR7NOabc",
    );
  });

  test.each([
    ["success", "Payment received: $10.00 credited"],
    ["review", "Administrators are looking into it"],
    ["failed", "The payment failed"],
    ["expired", "the credit still comes once that is confirmed"],
    ["refunded", "The order was refunded: 73.00 CNY"],
  ])("%s is said and not asked for again", (status, words) => {
    const island = open({ url, order: { ...ORDER, status, refunded: "73.00" } });
    expect(state().textContent).toContain(words);
    expect(screen.getByTestId("balance").textContent).toBe("$10.00");
    expect(island.requests).toEqual([]);
  });

  test("another's order, or none: the wallet alone", () => {
    open({ url, order: null });
    expect(screen.queryByTestId("order-state")).toBeNull();
  });
});

test("credits that went back with a refund stand among the credits, below zero", () => {
  open({
    rows: [
      { id: 2, created_at: NOW, content: "Order refunded", quota: -5_000_000, other: "{}" },
      { id: 1, created_at: NOW, content: "Topped up online", quota: 5_000_000, other: "{}" },
    ],
  });
  const rows = [...document.querySelectorAll("tr[data-index]")].map((row) => row.textContent ?? "");
  expect(rows[0]).toContain("Order refunded");
  expect(rows[0]).toContain("-$10.00");
  expect(rows[1]).toMatch(/[^-]\$10\.00/);
});

test("the own orders show state, what went back, and the receipt of what was paid", () => {
  open({
    url: "/topup?view=payments",
    orders: [
      ORDER,
      { ...ORDER, id: 2, trade_no: "USR7NOdef", status: "success", refunded: "20.00" },
      { ...ORDER, id: 3, trade_no: "USR7NOghi", status: "expired" },
    ],
  });
  const rows = [...document.querySelectorAll("tr[data-index]")].map((row) => row.textContent ?? "");
  expect(rows[0]).toContain("Awaiting payment");
  expect(rows[1]).toContain("Credited20.00 CNY refunded");
  expect(rows[2]).toContain("Expired");
  const links = screen.getAllByRole("link", { name: /^(Receipt|See its state)$/ });
  expect(links.map((link) => link.getAttribute("href"))).toEqual([
    "/topup?order=USR7NOabc",
    "/topup/receipt/USR7NOdef",
  ]);
});
