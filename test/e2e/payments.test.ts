// Money in, in a browser: an amount chosen and paid at the gateway's own page, the return before its word has come, the word that
// comes late, the receipt, a card payment that is refunded after its credit was spent, and the month's statement. The books balance
// after each. By mouse, by finger in Chinese, by keyboard alone.
// The walk with the mouse is the long run's (WEIR_LONG): finger and keyboard are asked for more.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { Browser, Page } from "playwright";
import { audit } from "../../src/core/ledger/audit.ts";
import { epaySign } from "../../src/core/payments/epay.ts";
import { markExpired, orderOf } from "../../src/core/payments/orders.ts";
import { hashPassword } from "../../src/core/users/credentials.ts";
import { newRequestId } from "../../src/http/request-id.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { violationsOf } from "../support/axe.ts";
import { launchBrowser, openVisit } from "../support/browser.ts";
import type { Visit } from "../support/browser.ts";
import { testClock } from "../support/clock.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import type { FakeStripe } from "../support/fake-stripe.ts";
import { CONTEXT_OF, handOf, isAsWideAsTheScreen, LOCALE_OF, walkedNow } from "../support/hands.ts";
import type { Hand, Manner } from "../support/hands.ts";
import type { DatabaseKind } from "../support/postgres.ts";

const TEXTS = {
  en: {
    pay: "Pay",
    payMoney: (money: string) => `Pay ${money}`,
    waiting: "Waiting for the payment provider to confirm…",
    expired: /The order has expired/,
    credited: (amount: string) => `Payment received: ${amount} credited`,
    receipt: "Receipt",
    noInvoice: "This receipt is not a tax invoice.",
    payments: "Payments",
    refunded: "10.00 USD refunded",
    reason: "Reason",
    refund: "Refund",
    isRefunded: "Refunded",
    statements: "Monthly statements",
    statement: "Monthly statement",
    proof: "Is it still you?",
    password: "Your password",
    confirm: "Confirm",
  },
  zh: {
    pay: "充值",
    payMoney: (money: string) => `支付 ${money}`,
    waiting: "正在等待支付平台确认…",
    expired: /订单已过期/,
    credited: (amount: string) => `充值成功，已到账 ${amount}`,
    receipt: "收据",
    noInvoice: "本收据不是税务发票。",
    payments: "支付订单",
    refunded: "已退 10.00 USD",
    reason: "原因",
    refund: "退款",
    isRefunded: "已退款",
    statements: "月度账单",
    statement: "月度账单",
    proof: "请确认是您本人",
    password: "您的密码",
    confirm: "确认",
  },
} as const;

type Language = keyof typeof TEXTS;

const WALKS: readonly { database: DatabaseKind; language: Language; manner: Manner }[] = [
  { database: "sqlite", language: "en", manner: "mouse" },
  { database: "postgres", language: "zh", manner: "finger" },
  { database: "sqlite", language: "en", manner: "keyboard" },
];

const PASSWORD = "correct horse battery";
const PID = "1001";
const KEY = "epay-secret-key";
const WEBHOOK_SECRET = "whsec_0123456789abcdefghijkl";
const UNIT = 500_000;

interface Seat extends Visit {
  hand: Hand;
}

/** The gateway's page: keeps what was posted, and leads back where the form says. */
function startFakeEpay() {
  const forms: Record<string, string>[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method !== "POST") return new Response("", { status: 204 });
      const form = Object.fromEntries(new URLSearchParams(await request.text()));
      forms.push(form);
      const back = Bun.escapeHTML(form["return_url"] ?? "");
      return new Response(`<!doctype html><title>Gateway</title><a href="${back}">back</a>`, {
        headers: { "content-type": "text/html" },
      });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, forms, stop: () => server.stop(true) };
}

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

for (const { database, language, manner } of walkedNow(WALKS)) {
  describe(`by ${manner} on ${database}, in ${language}`, () => {
    const texts = TEXTS[language];
    const clock = testClock(Date.now());
    let app: TestApp;
    let epay: ReturnType<typeof startFakeEpay>;
    let stripe: FakeStripe;
    let root: TestUser;
    let buyer: TestUser;

    beforeAll(async () => {
      [epay, stripe] = [startFakeEpay(), startFakeStripe()];
      app = await startTestApp({ database, clock });
      const { db, options } = app.deps;
      await db.orm.insert(db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
      root = await app.createUser({ username: "root", role: Role.root });
      buyer = await app.createUser({ username: "buyer" });
      const passwordHash = await hashPassword(PASSWORD);
      await db.orm.update(db.t.users).set({ passwordHash }).where(eq(db.t.users.id, root.id));
      await options.set("ServerAddress", app.url);
      await options.set("EpayId", PID);
      await options.set("EpayKey", KEY);
      await options.set("PayAddress", epay.url);
      await options.set("StripeApiBase", stripe.url);
      await options.set("StripeApiSecret", "sk_test_0123456789");
      await options.set("StripeWebhookSecret", WEBHOOK_SECRET);
    });
    afterEach(async () => {
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });
    afterAll(async () => {
      await app.close();
      await Promise.all([epay.stop(), stripe.stop()]);
    });

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
      return { ...visit, hand: await handOf(visit.page, manner) };
    }

    async function open(page: Page, path: string): Promise<void> {
      await page.goto(path);
      await page.locator("[data-mounted]").waitFor();
    }

    /** Chooses an amount, sees the price, confirms it. */
    async function pay({ page, hand }: Seat, choice: string, money: string): Promise<void> {
      await hand.press(page.getByRole("button", { name: choice, exact: true }));
      await page.getByTestId("payable").getByText(money).waitFor();
      await hand.press(page.getByRole("button", { name: texts.pay, exact: true }));
      await hand.press(page.getByRole("dialog").getByRole("button", { name: texts.payMoney(money) }));
    }

    /** What the gateway sends once the form of an order was paid. */
    async function report(form: Record<string, string>, reference: string): Promise<void> {
      const fields = {
        pid: PID,
        trade_no: reference,
        out_trade_no: form["out_trade_no"] ?? "",
        type: form["type"] ?? "",
        name: form["name"] ?? "",
        money: form["money"] ?? "",
        trade_status: "TRADE_SUCCESS",
      };
      const sign = epaySign(new Map(Object.entries(fields)), KEY);
      const query = new URLSearchParams({ ...fields, sign, sign_type: "MD5" });
      const answer = await fetch(`${app.url}/api/user/epay/notify?${query}`);
      expect(await answer.text()).toBe("success");
    }

    const balance = (page: Page) => page.getByTestId("balance").textContent();

    test("pays, comes back early, is told when it is credited, and has a receipt", async () => {
      const seat = await visitAs(buyer);
      const { page, hand } = seat;
      await open(page, "/topup");
      await page.getByTestId("payable").getByText("7.30 CNY").waitFor();
      expect(await violationsOf(page)).toEqual([]);
      expect(await isAsWideAsTheScreen(page)).toBe(true);
      await pay(seat, "$10", "73.00 CNY");
      await page.waitForURL(`${epay.url}/submit.php`);
      const form = epay.forms.at(-1) ?? {};
      expect(form).toMatchObject({ money: "73.00", type: "alipay", pid: PID });

      // Back before the gateway has said anything.
      await page.goto(form["return_url"] ?? "");
      await page.getByText(texts.waiting).waitFor();
      expect(await balance(page)).toBe("$0");
      await report(form, "ref-1");
      await page.getByText(texts.credited("$10.00")).waitFor();
      expect(await balance(page)).toBe("$10.00");

      await hand.press(page.getByTestId("order-state").getByRole("link", { name: texts.receipt }));
      await page.waitForURL(`**/topup/receipt/${form["out_trade_no"]}`);
      await page.getByText(texts.noInvoice).waitFor();
      const sheet = (await page.locator(".paper").textContent()) ?? "";
      for (const part of ["buyer", "73.00 CNY", "$10.00", form["out_trade_no"] ?? ""])
        expect(sheet).toContain(part);
      expect(await violationsOf(page)).toEqual([]);
      expect(await isAsWideAsTheScreen(page)).toBe(true);
      await page.emulateMedia({ media: "print" });
      expect(await page.locator(".topbar").isVisible()).toBe(false);
      expect(seat.problems).toEqual([]);
      await seat.close();
    });

    test("money that comes after the order has expired is credited all the same", async () => {
      const seat = await visitAs(buyer);
      const { page } = seat;
      await open(page, "/topup");
      await pay(seat, "$20", "146.00 CNY");
      await page.waitForURL(`${epay.url}/submit.php`);
      const form = epay.forms.at(-1) ?? {};
      const order = await orderOf(app.deps, form["out_trade_no"] ?? "");
      expect(await markExpired(app.deps, order?.tradeNo ?? "")).toBe(true);
      await page.goto(form["return_url"] ?? "");
      await page.getByText(texts.expired).waitFor();
      await report(form, "ref-2");
      await page.reload();
      await page.getByText(texts.credited("$20.00")).waitFor();
      expect(await balance(page)).toBe("$30.00");
      // A receipt is its buyer's: to others there is no such page.
      const other = await app.createUser();
      const { status } = await fetch(`${app.url}/topup/receipt/${order?.tradeNo}`, {
        headers: other.headers,
      });
      expect(status).toBe(404);
      await seat.close();
    });

    test("a card payment is refunded by root after its credit was spent; statement and list say so", async () => {
      const seat = await visitAs(buyer);
      const { page, hand } = seat;
      await page.route("https://checkout.example/**", (route) =>
        route.fulfill({ contentType: "text/html", body: "<title>Checkout</title>" }),
      );
      await open(page, "/topup");
      // The arrows walk between the methods.
      const card = page.getByRole("radio", { name: "Stripe" });
      if (manner === "keyboard") {
        await hand.walkTo(page.getByRole("radio").first());
        await page.keyboard.press("ArrowUp");
      } else await hand.press(card);
      expect(await card.isChecked()).toBe(true);
      await pay(seat, "$10", "10.00 USD");
      await page.waitForURL("https://checkout.example/1");
      const [session] = stripe.sessions;
      if (!session) throw new Error("no session was made");
      Object.assign(session, { payment_status: "paid", status: "complete" });
      const { payload, header } = await signedEvent("checkout.session.completed", session, {
        secret: WEBHOOK_SECRET,
        timestamp: Math.floor(clock.nowMs() / 1000),
      });
      const told = await fetch(`${app.url}/api/stripe/webhook`, {
        method: "POST",
        body: payload,
        headers: { "stripe-signature": header },
      });
      expect(told.status).toBe(200);
      const tradeNo = session.client_reference_id;
      // All of it but five dollars is gone.
      await app.deps.ledger.atomic(function* (_, credit) {
        yield* credit({ userId: buyer.id, amount: -35 * UNIT, kind: "admin", ref: `spent:${manner}` });
      });

      // Root came in a while ago: money goes back to who proves afresh that they are root.
      clock.advance(11 * 60_000);
      const desk = await visitAs(root);
      await open(desk.page, `/order?order=${tradeNo}`);
      const drawer = desk.page.getByRole("dialog");
      await drawer.getByText("10.00 USD").first().waitFor();
      expect(await violationsOf(desk.page)).toEqual([]);
      await desk.hand.fill(drawer.getByLabel(texts.reason), "changed their mind");
      await desk.hand.press(drawer.getByRole("button", { name: texts.refund, exact: true }));
      const question = desk.page.getByRole("dialog").last();
      await desk.hand.fill(question.getByRole("textbox"), tradeNo);
      await desk.hand.press(question.getByRole("button", { name: texts.refund, exact: true }));
      const proof = desk.page.getByRole("dialog", { name: texts.proof });
      await proof.waitFor();
      expect(stripe.refunds).toHaveLength(0);
      expect(await violationsOf(desk.page)).toEqual([]);
      await desk.hand.fill(proof.getByLabel(texts.password), PASSWORD);
      await desk.hand.press(proof.getByRole("button", { name: texts.confirm, exact: true }));
      await drawer.getByText(texts.isRefunded).first().waitFor();
      expect(stripe.refunds).toHaveLength(1);
      // The call that asked for the proof is refused first; the browser says so.
      expect(desk.problems.filter((each) => !each.includes("403"))).toEqual([]);
      await desk.close();

      await open(page, "/topup");
      expect(await balance(page)).toBe("-$5.00");
      // What went back stands among the credits, too.
      await page.locator("tr[data-index]", { hasText: "-$10.00" }).first().waitFor();
      await hand.press(page.getByRole("link", { name: texts.payments, exact: true }));
      await page.waitForURL("**/topup?view=payments");
      await page.getByText(texts.refunded).waitFor();
      await hand.press(page.getByRole("link", { name: texts.statements }));
      await page.waitForURL("**/topup/statement");
      const [opening, credited, used, closing] = await page.locator(".paper > .facts dd").allTextContents();
      expect([opening, credited, used, closing]).toEqual(["$0.00", "−$5.00", "$0.00", "−$5.00"]);
      expect(await violationsOf(page)).toEqual([]);
      expect(await isAsWideAsTheScreen(page)).toBe(true);
      expect(seat.problems).toEqual([]);
      await seat.close();
    });

    if (manner === "keyboard")
      test("an administrator opens a user's statement: use by day, model and key, and its sums are the books'", async () => {
        const { accounts, db, ledger } = app.deps;
        const { id, username } = await app.createUser({ username: "spender", quota: 10 * UNIT });
        const token = await app.createToken(id, { name: "laptop" });
        const channelId = await app.createChannel({});
        const account = await accounts.user(id);
        if (!account) throw new Error("no user");
        const uses = [
          ["gpt-4o", token.id, UNIT],
          ["gpt-4o", 0, UNIT / 2],
          ["claude-sonnet-5", token.id, 123_457],
        ] as const;
        for (const [modelName, tokenId, quota] of uses) {
          const key = tokenId === 0 ? undefined : await accounts.tokenByKey(token.key.replace("sk-", ""));
          const held = await ledger.reserve({
            requestId: newRequestId(clock.nowMs()),
            user: account,
            token: key,
            amount: quota,
          });
          const counts = { promptTokens: 100, completionTokens: 20, useTimeMs: 1 };
          const what = { modelName, channelId, group: "default", isStream: false, content: "", other: {} };
          await held.settle({ quota, ...counts, ...what });
        }
        await ledger.flush();
        const [books] = await db.orm
          .select({ quota: db.t.users.quota, used: db.t.users.usedQuota })
          .from(db.t.users)
          .where(eq(db.t.users.id, id));

        const admin = await app.createUser({ username: "admin", role: Role.admin });
        const seat = await visitAs(admin);
        const { page, hand } = seat;
        await open(page, `/user?keyword=${username}`);
        await hand.press(page.locator("tr[data-index] .row-link").first());
        const drawer = page.getByRole("dialog");
        // It stands in a folded section.
        const about = drawer.locator("details", { has: page.locator("a", { hasText: texts.statement }) });
        await hand.press(about.locator("summary"));
        await hand.press(drawer.getByRole("link", { name: texts.statement, exact: true }));
        await page.waitForURL(`**/topup/statement?user_id=${id}`);
        const text = (await page.locator(".paper").textContent()) ?? "";
        for (const part of ["spender", "gpt-4o", "claude-sonnet-5", "laptop", "$1.50", "$0.246914"])
          expect([part, text.includes(part)]).toEqual([part, true]);
        const facts = await page.locator(".paper > .facts dd").allTextContents();
        const units = (shown: string) =>
          Math.round(Number(shown.replace("−", "-").replace(/[$,]/g, "")) * UNIT);
        expect(facts.map(units)).toEqual([0, 10 * UNIT, -(books?.used ?? 0), books?.quota ?? 0]);
        // Each way of cutting it up is all of it.
        const sums = await page
          .locator(".paper table")
          .evaluateAll((tables) =>
            tables
              .slice(-3)
              .map((table) =>
                [...table.querySelectorAll("tbody tr")].map(
                  (row) => row.querySelector("td:last-child")?.textContent ?? "",
                ),
              ),
          );
        for (const rows of sums)
          expect(rows.map(units).reduce((sum, each) => sum + each, 0)).toBe(books?.used ?? Number.NaN);
        expect(await violationsOf(page)).toEqual([]);
        expect(await isAsWideAsTheScreen(page)).toBe(true);
        const csv = await page.locator("a[href*='format=csv']").getAttribute("href");
        const file = await fetch(app.url + (csv ?? ""), { headers: admin.headers });
        expect(await file.text()).toContain("laptop");
        // Theirs and nobody else's: for users there is no such page.
        expect(
          (await fetch(`${app.url}/topup/statement?user_id=${id}`, { headers: buyer.headers })).status,
        ).toBe(404);
        expect(seat.problems).toEqual([]);
        await seat.close();
      });
  });
}
