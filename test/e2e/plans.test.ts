// Plans in a browser: an administrator makes one, a user buys it from the wallet and by an order, uses it up, meets its end with and
// without overflow, cancels, and gets money back. The books balance after each step. By mouse, and by finger in Chinese.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright";
import { audit } from "../../src/core/ledger/audit.ts";
import { receivePayment, markPending } from "../../src/core/payments/orders.ts";
import { takeBack } from "../../src/core/payments/taken-back.ts";
import type { PaymentRail } from "../../src/core/payments/rail.ts";
import { renewDuePlans } from "../../src/core/plans/periods.ts";
import { newRequestId } from "../../src/http/request-id.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { testClock } from "../support/clock.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF } from "../support/hands.ts";
import type { Hand, Manner } from "../support/hands.ts";
import type { DatabaseKind } from "../support/postgres.ts";

const TEXTS = {
  en: {
    newPlan: "New plan",
    create: "Create",
    balance: "Buy with the balance: Pro",
    pigeon: "Buy with Pigeon: Pro",
    buy: "Buy",
    pay: "Pay 73.00 CNY",
    paid: "Paid: the plan “Pro” is yours",
    left: (left: string) => `${left} of $20.00 left`,
    cancel: "Cancel plan",
    past: /plans? before/,
    refunded: "Refunded",
    cancelled: "Cancelled",
    give: "Give plan",
    edit: "Edit the plan “Pro”",
    overflow: "Beyond the plan, use the wallet",
    save: "Save",
    refused: "Beyond that, calls are refused; the wallet is not touched",
    ended: "Ended",
  },
  zh: {
    newPlan: "新建套餐",
    create: "新建",
    balance: "余额购买：Pro",
    pigeon: "Pigeon购买：Pro",
    buy: "购买",
    pay: "支付 73.00 CNY",
    paid: "付款成功，套餐「Pro」已生效",
    left: (left: string) => `剩余 ${left} / $20.00`,
    cancel: "取消套餐",
    past: /以往的套餐/,
    refunded: "已退款",
    cancelled: "已取消",
    give: "赠送套餐",
    edit: "编辑套餐「Pro」",
    overflow: "用完后使用钱包余额",
    save: "保存",
    refused: "额度用完后请求被拒绝，钱包余额不会被使用",
    ended: "已到期",
  },
} as const;

type Language = keyof typeof TEXTS;

const WALKS: readonly { database: DatabaseKind; language: Language; manner: Manner }[] = [
  { database: "sqlite", language: "en", manner: "mouse" },
  { database: "postgres", language: "zh", manner: "finger" },
];
const DOLLAR = 500_000;

let ordered = "";
const pigeon: PaymentRail = {
  name: "pigeon",
  title: "pigeon",
  isGuarded: () => true,
  currency: () => "cny",
  price: () => "7.3",
  minimum: () => 1,
  seconds: 600,
  methods: () => [{ type: "grey", name: "Pigeon", minimum: 0 }],
  async start(deps, order) {
    ordered = order.tradeNo;
    await markPending(deps, order.tradeNo);
    return { url: `https://loft.example/${order.tradeNo}` };
  },
  maxBodyBytes: 10,
  receive: () => Promise.resolve(""),
};

interface Seat extends Visit {
  hand: Hand;
}

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

for (const { database, language, manner } of WALKS) {
  describe(`by ${manner} on ${database}, in ${language}`, () => {
    const texts = TEXTS[language];
    const clock = testClock(Date.now());
    let app: TestApp;
    let root: TestUser;
    let buyer: TestUser;
    let channelId = 0;

    beforeAll(async () => {
      app = await startTestApp({ database, rails: [pigeon], clock });
      const { db } = app.deps;
      await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
      root = await app.createUser({ username: "root", role: Role.root });
      buyer = await app.createUser({ username: "buyer", quota: 50 * DOLLAR });
      channelId = await app.createChannel({});
    });
    afterEach(async () => {
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });
    afterAll(() => app.close());

    async function visitAs(user: TestUser): Promise<Seat> {
      const visit = await openVisit(browser, {
        baseURL: app.url,
        locale: LOCALE_OF[language],
        ...CONTEXT_OF[manner],
      });
      const cookie = user.headers["cookie"] ?? "";
      await visit.context.addCookies([
        { name: "session", value: cookie.slice(cookie.indexOf("=") + 1), url: app.url },
      ]);
      await visit.page.route("https://loft.example/**", (route) =>
        route.fulfill({ contentType: "text/html", body: "<title>Loft</title>" }),
      );
      return { ...visit, hand: await handOf(visit.page, manner) };
    }

    async function open(page: Page, path: string): Promise<void> {
      await page.goto(path);
      await page.locator("[data-mounted]").waitFor();
    }

    /** A settled call of the buyer's, or the code of its refusal. */
    async function use(dollars: number): Promise<string> {
      const user = await app.deps.accounts.user(buyer.id);
      if (!user) throw new Error("no buyer");
      const amount = dollars * DOLLAR;
      try {
        const requestId = newRequestId(app.deps.clock.nowMs());
        const held = await app.deps.ledger.reserve({ requestId, user, token: undefined, amount });
        await held.settle({
          quota: amount,
          promptTokens: 1,
          completionTokens: 1,
          modelName: "gpt-4o-mini",
          channelId,
          group: "default",
          isStream: false,
          useTimeMs: 1,
          content: "",
          other: {},
        });
        await app.deps.ledger.flush();
        return "";
      } catch (error) {
        return (error as { code: string }).code;
      }
    }

    const sure = async ({ page, hand }: Seat, name: string) =>
      hand.press(page.getByRole("dialog").last().getByRole("button", { name, exact: true }));
    const balance = (page: Page) => page.getByTestId("balance").textContent();
    const expectSound = async ({ page, problems }: Seat) => {
      expect(await violationsOf(page)).toEqual([]);
      expect(await isAsWideAsTheScreen(page)).toBe(true);
      expect(problems).toEqual([]);
    };

    test("is made, bought, used up beyond its quota, bought by an order, refunded and cancelled", async () => {
      const desk = await visitAs(root);
      await open(desk.page, "/plan");
      await desk.hand.press(desk.page.getByRole("button", { name: texts.newPlan }).first());
      const drawer = desk.page.getByRole("dialog");
      await desk.hand.fill(drawer.locator("[name=title]"), "Pro");
      await desk.hand.fill(drawer.locator("[name=price]"), "73.00");
      await desk.hand.fill(drawer.locator("[name=wallet_price]"), "10");
      await desk.hand.fill(drawer.locator("[name=quota]"), "20");
      expect(await violationsOf(desk.page)).toEqual([]);
      await desk.hand.press(drawer.getByRole("button", { name: texts.create, exact: true }));
      await desk.page.locator("[data-plan]").waitFor();
      await expectSound(desk);
      // Administrators see it, and are offered no change: prices are root's.
      const admin = await app.createUser({ role: Role.admin });
      const seen = await (await fetch(`${app.url}/plan`, { headers: admin.headers })).text();
      expect([seen.includes("data-plan"), seen.includes("<button") && seen.includes("btn-primary")]).toEqual([
        true,
        false,
      ]);

      const seat = await visitAs(buyer);
      const { page, hand } = seat;
      await open(page, "/topup");
      expect(await balance(page)).toBe("$50.00");
      await hand.press(page.getByRole("button", { name: texts.balance, exact: true }));
      await sure(seat, texts.buy);
      await page.getByText(texts.left("$20.00")).waitFor();
      await page.getByTestId("balance").getByText("$60.00").waitFor();
      await expectSound(seat);
      expect(await use(15)).toBe("");
      await page.reload();
      await page.getByText(texts.left("$5.00")).waitFor();
      // Beyond the plan the wallet pays.
      expect(await use(15)).toBe("");
      await page.reload();
      await page.getByText(texts.left("$0")).waitFor();
      expect(await balance(page)).toBe("$30.00");

      // Another one by an order: it waits for the first to end.
      await page.locator("[data-mounted]").waitFor();
      await hand.press(page.getByRole("button", { name: texts.pigeon, exact: true }));
      await sure(seat, texts.pay);
      await page.waitForURL("https://loft.example/*");
      expect(
        await receivePayment(app.deps, {
          rail: "pigeon",
          eventId: `landed:${ordered}`,
          tradeNo: ordered,
          providerRef: ordered,
          moneyMinor: 7300,
          currency: "cny",
          doubt: "",
          payload: {},
        }),
      ).toBe("credited");
      await open(page, `/topup?order=${ordered}`);
      await page.getByText(texts.paid).waitFor();
      expect(await page.locator("[data-user-plan][data-status=waiting]").count()).toBe(1);

      // The first is cancelled: the second begins at once, and its money goes back.
      await hand.press(page.locator("[data-status=active]").getByRole("button", { name: texts.cancel }));
      await sure(seat, texts.cancel);
      await page.getByText(texts.left("$20.00")).waitFor();
      expect(await balance(page)).toBe("$50.00");
      expect(await use(4)).toBe("");
      await takeBack(app.deps, { tradeNo: ordered, eventId: "back", reason: "refund" }, () => ({
        refundedMinor: 7300,
      }));
      await open(page, "/topup");
      expect(await balance(page)).toBe("$26.00");
      await hand.press(page.getByText(texts.past));
      for (const state of [texts.refunded, texts.cancelled])
        await page.locator("[data-user-plan]").getByText(state).waitFor();
      await expectSound(seat);
      await desk.close();
      await seat.close();
    });

    test("without overflow calls end with the plan; an administrator gives it and takes it away", async () => {
      const desk = await visitAs(root);
      const { page, hand } = desk;
      await open(page, "/plan");
      await hand.press(page.getByRole("button", { name: texts.edit, exact: true }));
      const drawer = page.getByRole("dialog");
      await hand.press(drawer.getByRole("switch", { name: texts.overflow }));
      await hand.press(drawer.getByRole("button", { name: texts.save, exact: true }));
      await page.getByText(texts.refused).waitFor();

      await open(page, `/user?plans=${buyer.id}`);
      const plans = page.getByRole("dialog");
      await hand.fill(plans.locator("[name=reason]"), "an outage");
      await plans.locator("[data-field=plan] select").selectOption({ label: "Pro" });
      expect(await violationsOf(page)).toEqual([]);
      await hand.press(plans.getByRole("button", { name: texts.give, exact: true }));
      await plans.waitFor({ state: "hidden" });
      expect([await use(20), await use(1)]).toEqual(["", "plan_quota_used"]);

      await open(page, `/user?plans=${buyer.id}`);
      await plans.getByText(texts.left("$0")).waitFor();
      await hand.fill(plans.locator("[name=reason]"), "it is over");
      await hand.press(plans.locator("[data-status=active]").getByRole("button", { name: texts.cancel }));
      await sure(desk, texts.cancel);
      await plans.locator("[data-status=active]").waitFor({ state: "detached" });
      expect(await use(1)).toBe("");
      await expectSound(desk);
      await desk.close();
    });

    test("a plan that runs its time ends by itself: what is left of it goes, the wallet stays", async () => {
      const made = await app.call<{ data: { id: number } }>(
        "POST",
        "/api/plan/",
        { title: "Day", quota: 3 * DOLLAR, wallet_price: 1, duration_unit: "day", duration_count: 1 },
        root,
      );
      expect(made.body).toMatchObject({ success: true });
      const given = { plan_id: made.body.data.id, reason: "a try" };
      await app.call("POST", `/api/plan/user/${buyer.id}`, given, root);
      const seat = await visitAs(buyer);
      const { page, hand } = seat;
      await open(page, "/topup");
      const before = Number((await balance(page))?.replace("$", ""));
      expect(await page.locator("[data-status=active]").count()).toBe(1);
      clock.advance(25 * 3_600_000);
      await renewDuePlans(app.deps);
      await open(page, "/topup");
      expect(Number((await balance(page))?.replace("$", ""))).toBe(before - 3);
      expect(await page.locator("[data-status=active]").count()).toBe(0);
      await hand.press(page.getByText(texts.past));
      await page.locator("[data-user-plan]").getByText(texts.ended).first().waitFor();
      await expectSound(seat);
      await seat.close();
    });
  });
}
