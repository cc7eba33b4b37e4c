// Paying by epay, over the wire: what an amount costs, the order, and every callback that somebody could send. Whatever
// comes, and however often, the books balance. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { epaySign } from "../../src/core/payments/epay.ts";
import { expireOrders, markFailed } from "../../src/core/payments/orders.ts";
import { takeBack } from "../../src/core/payments/taken-back.ts";
import { Role, UserStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const KEY = "epay-secret-key";
const PID = "1001";
const HOUR_MS = 3_600_000;
const UNIT = 500_000;

interface Told<T = unknown> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
  url?: string;
}

interface Listed {
  items: {
    trade_no: string;
    status: string;
    money: string;
    quota: number;
    debited_quota: number;
    note?: string;
  }[];
  total: number;
  events?: { verdict: string; trade_no: string; payload: Record<string, string> }[];
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let root: TestUser;
  let buyer: TestUser;
  let changed: [OptionKey, string][] = [];
  let serial = 0;

  async function set(key: OptionKey, text: string): Promise<void> {
    changed.push([key, app.deps.options.text(key)]);
    await app.deps.options.set(key, text);
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    root = await app.createUser({ role: Role.root });
    await app.deps.options.set("ServerAddress", "https://gate.example");
    await app.deps.options.set("EpayId", PID);
    await app.deps.options.set("EpayKey", KEY);
    await app.deps.options.set("PayAddress", "https://pay.example/");
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    serial += 1;
    clock.advance(HOUR_MS);
    // Root has just come in again: completing and refunding ask for that.
    root = await app.createUser({ role: Role.root });
    buyer = await app.createUser({ quota: 1000 });
  });
  afterEach(async () => {
    for (const [key, text] of changed.toReversed()) await app.deps.options.set(key, text);
    changed = [];
    await app.deps.ledger.flush();
    expect((await audit(app.deps.db)).differences).toEqual([]);
  });

  /** What a gateway sends to say that the form was paid. */
  function report(form: Record<string, string>, other: Record<string, string> = {}): Record<string, string> {
    const fields: Record<string, string> = {
      pid: PID,
      trade_no: `2026${serial}${form["out_trade_no"]}`,
      out_trade_no: form["out_trade_no"] ?? "",
      type: "alipay",
      name: form["name"] ?? "",
      money: form["money"] ?? "",
      trade_status: "TRADE_SUCCESS",
      ...other,
    };
    return { ...fields, sign: epaySign(new Map(Object.entries(fields)), KEY), sign_type: "MD5" };
  }

  const query = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

  async function notify(fields: Record<string, string>): Promise<string> {
    return (await app.call("GET", `/api/user/epay/notify?${query(fields)}`)).text;
  }

  async function order(amount: unknown = 10, method = "alipay"): Promise<Record<string, string>> {
    const { body } = await app.call<Told<Record<string, string>>>(
      "POST",
      "/api/user/pay",
      { amount, payment_method: method },
      buyer,
    );
    expect(body).toMatchObject({ message: "success", url: "https://pay.example/submit.php" });
    expect(body).not.toHaveProperty("success");
    return body.data;
  }

  async function balance(of = buyer): Promise<number> {
    const { users } = app.deps.db.t;
    await app.deps.ledger.flush();
    const [row] = await app.deps.db.orm.select({ quota: users.quota }).from(users).where(eq(users.id, of.id));
    return row?.quota ?? Number.NaN;
  }

  async function stateOf(form: Record<string, string>): Promise<string> {
    const path = `/api/user/topup?trade_no=${form["out_trade_no"]}`;
    const { body } = await app.call<Told<Listed>>("GET", path, undefined, root);
    return body.data.items[0]?.status ?? "none";
  }

  async function verdicts(form: Record<string, string>): Promise<string[]> {
    const path = `/api/user/topup?trade_no=${form["out_trade_no"]}`;
    const { body } = await app.call<Told<Listed>>("GET", path, undefined, root);
    return (body.data.events ?? []).map(({ verdict }) => verdict);
  }

  test("an order is paid, credited and told; the same callback again changes nothing", async () => {
    const form = await order();
    expect(form).toMatchObject({
      pid: PID,
      type: "alipay",
      money: "73.00",
      name: "TUC10",
      device: "pc",
      sign_type: "MD5",
      notify_url: "https://gate.example/api/user/epay/notify",
    });
    expect(form["out_trade_no"]).toMatch(new RegExp(`^USR${buyer.id}NO[0-9A-Za-z]{16,}$`));
    expect(form["sign"]).toBe(epaySign(new Map(Object.entries(form)), KEY));
    expect(await stateOf(form)).toBe("pending");
    expect(await notify(report(form))).toBe("success");
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await notify(report(form))).toBe("success");
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await stateOf(form)).toBe("success");
    const { body } = await app.call<Told<Listed>>("GET", "/api/user/topup/self", undefined, buyer);
    expect(body.data.items).toMatchObject([{ status: "success", money: "73.00", quota: 10 * UNIT }]);
    const log = await app.call<Told<{ items: { content: string; quota: number }[] }>>(
      "GET",
      "/api/log/self?type=1",
      undefined,
      buyer,
    );
    expect(log.body.data.items[0]).toMatchObject({
      quota: 10 * UNIT,
      content: "使用在线充值成功，充值金额: ＄10.000000 额度，支付金额：73.00",
    });
  });

  test("the sum is exact: price, group ratio and discount, rounded once and half up", async () => {
    await set("TopupGroupRatio", '{"default":0.95}');
    const cost = async (amount: number) => {
      const { body } = await app.call<Told<string>>("POST", "/api/user/amount", { amount }, buyer);
      return body.data;
    };
    expect(await cost(30)).toBe("208.05");
    await set("TopupGroupRatio", '{"default":0}');
    await set("Price", "1.005");
    expect(await cost(1)).toBe("1.01");
    await set("payment_setting.amount_discount", '{"100":0.9,"50":0.95}');
    await set("Price", "1");
    expect([await cost(49), await cost(50), await cost(100)]).toEqual(["49.00", "47.50", "90.00"]);
  });

  test.each([
    [-1, "topup_amount_invalid"],
    [0, "topup_amount_invalid"],
    [1.5, "topup_amount_invalid"],
    [1e21, "topup_amount_invalid"],
    [2 ** 53, "topup_amount_invalid"],
    ["1", "topup_amount_invalid"],
    [null, "topup_amount_invalid"],
    [4, "topup_amount_low"],
    [10_001, "topup_amount_high"],
  ])("the amount %j is refused, and no order is made", async (amount, code) => {
    await set("MinTopUp", "5");
    for (const path of ["/api/user/amount", "/api/user/pay"]) {
      const sent = { amount, payment_method: "alipay" };
      expect((await app.call<Told>("POST", path, sent, buyer)).body).toMatchObject({
        message: "error",
        code,
      });
    }
    const { body } = await app.call<Told<Listed>>("GET", "/api/user/topup/self", undefined, buyer);
    expect(body.data.total).toBe(0);
  });

  test("where the site shows units, an amount is units, to the unit", async () => {
    await set("DisplayInCurrencyEnabled", "false");
    const form = await order(1_250_001);
    expect(form["money"]).toBe("18.25");
    await notify(report(form));
    expect(await balance()).toBe(1000 + 1_250_001);
  });

  test("in a currency of the site's own an amount is what was typed there, to the unit; amounts stay dollars", async () => {
    const priced = async (wish: object) => {
      const body = { rail: "epay", method: "alipay", ...wish };
      const answer = await app.call<{
        code?: string;
        data: { money: string; quota: number; trade_no: string; fields: Record<string, string> };
      }>("POST", `/api/user/topup/${"pay" in wish ? "pay" : "amount"}`, body, buyer);
      return answer.body;
    };
    expect(await priced({ quota: 5_000_000 })).toMatchObject({ code: "topup_amount_invalid" });
    await set("QuotaDisplayType", "CNY");
    await set("payment_setting.amount_discount", '{"20":0.95}');
    // A hundred yuan at 7.3 to the dollar: no whole dollars, and no coin more or less.
    expect((await priced({ quota: 6_849_315 })).data).toMatchObject({ money: "100.00", quota: 6_849_315 });
    expect((await priced({ amount: 10 })).data).toMatchObject({ money: "73.00", quota: 10 * UNIT });
    expect((await priced({ quota: 20 * UNIT })).data).toMatchObject({ money: "138.70" });
    for (const [wish, code] of [
      [{ quota: UNIT - 1 }, "topup_amount_low"],
      [{ quota: 10_000 * UNIT + 1 }, "topup_amount_high"],
      [{ quota: 0 }, "topup_amount_invalid"],
      [{ quota: 1.5 }, "topup_amount_invalid"],
      [{ quota: "500000" }, "topup_amount_invalid"],
      [{ quota: null }, "topup_amount_invalid"],
      [{ quota: UNIT, amount: 1 }, "topup_amount_invalid"],
    ] as const)
      expect([wish, (await priced(wish)).code]).toEqual([wish, code]);
    const { data } = await priced({ quota: 6_849_315, pay: true });
    await notify(report(data.fields));
    expect(await balance()).toBe(1000 + 6_849_315);
  });

  test("a hundred callbacks at once credit once", async () => {
    const form = await order();
    const said = await Promise.all(Array.from({ length: 100 }, () => notify(report(form))));
    // Strangers have only so many open requests from one address: who is told to wait repeats the callback.
    expect(said).toContain("success");
    for (const text of said) expect(text === "success" || text.includes("too_many_open")).toBe(true);
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("a callback and a completion by hand at once credit once", async () => {
    const form = await order();
    const byHand = { trade_no: form["out_trade_no"], reason: "bank" };
    await Promise.all([
      notify(report(form)),
      app.call("POST", "/api/user/topup/complete", byHand, root),
      notify(report(form)),
      app.call("POST", "/api/user/topup/complete", byHand, root),
    ]);
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await stateOf(form)).toBe("success");
  });

  test("a sign that is wrong, absent, in capitals, cut or of another kind is refused", async () => {
    const form = await order();
    const good = report(form);
    const { sign = "", ...unsigned } = good;
    const wrong = [
      { ...good, sign: sign.replace(/^./, (c) => (c === "0" ? "1" : "0")) },
      unsigned,
      { ...good, sign: sign.toUpperCase() === sign ? "x" : sign.toUpperCase() },
      { ...good, sign: sign.slice(0, 16) },
      { ...good, sign: "" },
      { ...good, sign_type: "RSA" },
      { ...good, extra: "1" },
      { ...good, money: "0.01" },
    ];
    for (const fields of wrong) expect(await notify(fields as Record<string, string>)).toBe("fail");
    const doubled = `${query(good)}&money=73.00`;
    expect((await app.call("GET", `/api/user/epay/notify?${doubled}`)).text).toBe("fail");
    expect(await balance()).toBe(1000);
    expect(await stateOf(form)).toBe("pending");
  });

  test.each(["0.01", "73.001", "7.3e1", "+73", "73,00", "７３", "-73.00", " 73.00", "73.", ""])(
    "genuine, but the sum is %j: to review, nothing is credited",
    async (money) => {
      const form = await order();
      expect(await notify(report(form, { money }))).toBe("success");
      expect(await balance()).toBe(1000);
      expect(await stateOf(form)).toBe("review");
      // From there only a person credits it, whatever comes.
      expect(await notify(report(form, { trade_no: "other" }))).toBe("success");
      expect(await balance()).toBe(1000);
    },
  );

  test.each(["73", "73.0", "73.00", "73.000"])("%s is the same sum", async (money) => {
    const form = await order();
    await notify(report(form, { money }));
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("another merchant's callback with the right sign is refused", async () => {
    const form = await order();
    expect(await notify(report(form, { pid: "1002" }))).toBe("fail");
    expect(await stateOf(form)).toBe("pending");
  });

  test("what is not paid yet is taken note of, and paid when it is", async () => {
    const form = await order();
    expect(await notify(report(form, { trade_status: "WAIT_BUYER_PAY" }))).toBe("success");
    expect(await balance()).toBe(1000);
    await notify(report(form));
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect((await verdicts(form)).toSorted()).toEqual(["credited", "ignored"]);
  });

  test("one payment pays one order, also when both come at once", async () => {
    const [first, second] = [await order(), await order()];
    const number = { trade_no: "4200001" };
    await Promise.all([notify(report(first, number)), notify(report(second, number))]);
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect([await stateOf(first), await stateOf(second)].toSorted()).toEqual(["review", "success"]);
  });

  test("a second payment of one order credits nothing and is told to root", async () => {
    const form = await order();
    await notify(report(form));
    await notify(report(form, { trade_no: "a-second-one" }));
    expect(await balance()).toBe(1000 + 10 * UNIT);
    expect(await verdicts(form)).toContain("paid_twice");
  });

  test("whatever the site changes meanwhile, the order counts as it was made", async () => {
    const form = await order();
    await set("Price", "100");
    await set("TopupGroupRatio", '{"default":9}');
    await set("QuotaPerUnit", "1000");
    await set("DisplayInCurrencyEnabled", "false");
    const { users } = app.deps.db.t;
    await app.deps.db.orm
      .update(users)
      .set({ group: "vip", username: `${buyer.username}-renamed` })
      .where(eq(users.id, buyer.id));
    await notify(report(form));
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("late money is credited: after its time, and after a no", async () => {
    const late = await order();
    clock.advance(25 * HOUR_MS);
    expect(await expireOrders(app.deps)).toBeGreaterThan(0);
    expect(await stateOf(late)).toBe("expired");
    await notify(report(late));
    const failed = await order();
    await markFailed(app.deps, failed["out_trade_no"] ?? "", "no");
    await notify(report(failed));
    expect(await balance()).toBe(1000 + 20 * UNIT);
  });

  test("a banned buyer is credited, a deleted one's money goes to review", async () => {
    const [form, second] = [await order(), await order()];
    const { users } = app.deps.db.t;
    const isBuyer = eq(users.id, buyer.id);
    await app.deps.db.orm.update(users).set({ status: UserStatus.disabled }).where(isBuyer);
    await notify(report(form));
    expect(await balance()).toBe(1000 + 10 * UNIT);
    await app.deps.db.orm.update(users).set({ deletedAt: 1 }).where(isBuyer);
    expect(await notify(report(second))).toBe("success");
    expect(await stateOf(second)).toBe("review");
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("a balance that would leave the exact integers goes to review", async () => {
    const form = await order();
    await app.deps.ledger.atomic(function* (_tx, credit) {
      yield* credit({ userId: buyer.id, amount: Number.MAX_SAFE_INTEGER - 2000, kind: "import" });
    });
    await notify(report(form));
    expect(await stateOf(form)).toBe("review");
    await app.deps.ledger.atomic(function* (_tx, credit) {
      yield* credit({ userId: buyer.id, amount: -(Number.MAX_SAFE_INTEGER - 2000), kind: "import" });
    });
  });

  test("forms are read as queries are; other bodies have no sign", async () => {
    const form = await order();
    const post = (body: string, type: string) =>
      fetch(`${app.url}/api/user/epay/notify`, { method: "POST", headers: { "content-type": type }, body });
    const fields = report(form);
    expect(await (await post(JSON.stringify(fields), "application/json")).text()).toBe("fail");
    expect(
      (await post(`${query(fields)}&pad=${"x".repeat(9000)}`, "application/x-www-form-urlencoded")).status,
    ).toBe(413);
    // The query of a POST counts for nothing.
    const beside = await fetch(`${app.url}/api/user/epay/notify?${query(fields)}`, { method: "POST" });
    expect(await beside.text()).toBe("fail");
    expect(await balance()).toBe(1000);
    expect(await (await post(query(fields), "application/x-www-form-urlencoded")).text()).toBe("success");
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test.each([["EpayKey"], ["EpayId"], ["PayAddress"]] as string[][] as [OptionKey][])(
    "without %s there is no way to pay and no callback",
    async (key) => {
      const form = await order();
      await set(key, "");
      const answer = await app.call("GET", `/api/user/epay/notify?${query(report(form))}`);
      expect(answer.status).toBe(404);
      const pay = await app.call<Told>(
        "POST",
        "/api/user/pay",
        { amount: 10, payment_method: "alipay" },
        buyer,
      );
      expect(pay.body).toMatchObject({ message: "error", code: "payment_unset" });
      expect(await balance()).toBe(1000);
    },
  );

  test("a callback is taken while the site is closed, or only shown: late money is money", async () => {
    for (const [index, key] of (["site.maintenance_enabled", "DemoSiteEnabled"] as const).entries()) {
      const form = await order();
      await set(key, "true");
      const posted = await fetch(`${app.url}/api/user/epay/notify`, {
        method: "POST",
        body: new URLSearchParams(report(form)),
      });
      expect([posted.status, await posted.text()]).toEqual([200, "success"]);
      expect(await balance()).toBe(1000 + (index + 1) * 10 * UNIT);
      await set(key, "false");
    }
  });

  test("a database that cannot write makes the gateway repeat, and the repeat credits", async () => {
    const form = await order();
    const { atomic } = app.deps.ledger;
    app.deps.ledger.atomic = () => Promise.reject(new Error("the disk is full"));
    expect(await notify(report(form))).toBe("fail");
    app.deps.ledger.atomic = atomic;
    expect(await balance()).toBe(1000);
    expect(await notify(report(form))).toBe("success");
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("completing by hand is root's, with a reason, once", async () => {
    const form = await order();
    const body = { trade_no: form["out_trade_no"], reason: "paid at the desk" };
    const admin = await app.createUser({ role: Role.admin });
    expect((await app.call("POST", "/api/user/topup/complete", body, admin)).status).toBe(403);
    const mute = await app.call<Told>("POST", "/api/user/topup/complete", { ...body, reason: " " }, root);
    expect(mute.body).toMatchObject({ success: false, code: "reason_missing" });
    expect((await app.call<Told>("POST", "/api/user/topup/complete", body, root)).body.success).toBe(true);
    expect((await app.call<Told>("POST", "/api/user/topup/complete", body, root)).body).toMatchObject({
      code: "order_not_open",
    });
    expect(
      (await app.call<Told>("POST", "/api/user/topup/complete", { ...body, trade_no: "x" }, root)).body,
    ).toMatchObject({ code: "order_missing" });
    expect(await balance()).toBe(1000 + 10 * UNIT);
  });

  test("refunds are cumulative, disputes come back when they are won, and spent money leaves a debt", async () => {
    const form = await order();
    const tradeNo = form["out_trade_no"] ?? "";
    await notify(report(form));
    const back = (eventId: string, taken: { refundedMinor?: number; disputedMinor?: number }) =>
      takeBack(app.deps, { tradeNo, eventId, reason: "test" }, () => taken);
    expect(await back("e1", { refundedMinor: 2190 })).toBe(-3 * UNIT);
    expect(await back("e2", { refundedMinor: 2190 })).toBe(0);
    expect(await back("e3", { disputedMinor: 7300 })).toBe(-7 * UNIT);
    expect(await back("e4", { disputedMinor: 0 })).toBe(7 * UNIT);
    expect(await back("e5", { refundedMinor: 7300 })).toBe(-7 * UNIT);
    expect(await stateOf(form)).toBe("refunded");
    expect(await balance()).toBe(1000);
    const spent = await order();
    await notify(report(spent));
    await app.deps.ledger.atomic(function* (_tx, credit) {
      yield* credit({ userId: buyer.id, amount: -10 * UNIT, kind: "admin" });
    });
    await takeBack(app.deps, { tradeNo: spent["out_trade_no"] ?? "", eventId: "x", reason: "t" }, () => ({
      refundedMinor: 7300,
    }));
    expect(await balance()).toBe(1000 - 10 * UNIT);
  });

  test("a user has few open orders, and finds only own ones", async () => {
    for (let made = 0; made < 10; made++) await order();
    const more = await app.call<Told>(
      "POST",
      "/api/user/pay",
      { amount: 10, payment_method: "alipay" },
      buyer,
    );
    expect(more.status).toBe(429);
    expect(more.body).toMatchObject({ success: false, code: "orders_too_many" });
    const other = await app.createUser();
    const { body } = await app.call<Told<Listed>>("GET", "/api/user/topup/self", undefined, other);
    expect(body.data.total).toBe(0);
    const text = JSON.stringify((await app.call("GET", "/api/user/topup", undefined, root)).body);
    expect(text).not.toContain(KEY);
  });
});
