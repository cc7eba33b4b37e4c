// An order whose node is killed between every two of its steps: between row, provider and answer, while the payment is entered,
// statement by statement where the database can be held there, and after it. Started again, told again: credited once. The
// same of a plan that is bought from the wallet: plan and price are there together, or neither is.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { SQLITE_FILE } from "../../src/db/connect.ts";
import { startFakeEpay } from "../support/fake-epay.ts";
import type { FakeEpay } from "../support/fake-epay.ts";
import { lockFile } from "../support/lock-file.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import type { FakeSession, FakeStripe } from "../support/fake-stripe.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startSite } from "./site.ts";
import type { Person, Site } from "./site.ts";
import { untilSo } from "../support/turns.ts";

const UNIT = 500_000;
const SECRET = "whsec_0123456789abcdefghijkl";
const START_QUOTA = 1000;
/** The lock that a trigger waits for. */
const GATE = 4_242_019;
/** What one transaction of a payment writes, in its order. */
const STEPS = [
  ["orders", "update"],
  ["credits", "insert"],
  ["users", "update"],
  ["logs", "insert"],
  ["payment_events", "insert"],
] as const;
/** Of what a plan's purchase writes the first, the money and the last. */
const PURCHASE_STEPS = [
  ["user_plans", "insert"],
  ["credits", "insert"],
  ["logs", "insert"],
] as const;
const PLAN_PRICE = 400;
const PLAN_QUOTA = 5000;

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  let site: Site;
  let stripe: FakeStripe;
  let epay: FakeEpay;
  let sql: ReturnType<typeof postgres> | undefined;

  beforeAll(async () => {
    [stripe, epay] = [startFakeStripe(), startFakeEpay()];
    site = await startSite({ kind });
    await site.set("ServerAddress", site.server.url);
    await site.set("StripeApiBase", stripe.url);
    await site.set("StripeApiSecret", "sk_test_0123456789");
    await site.set("StripeWebhookSecret", SECRET);
    await site.set("EpayId", epay.pid);
    await site.set("EpayKey", epay.key);
    await site.set("PayAddress", epay.url);
    if (site.databaseUrl !== undefined) {
      sql = postgres(site.databaseUrl, { max: 3, onnotice: () => undefined });
      await sql.unsafe(
        `create function wait_at_gate() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock_shared(${GATE}); return new; end'`,
      );
      // Who waits there, and nobody of another lane, whose databases the same server has.
      await sql.unsafe(
        `create view gate_waiters as select pid from pg_locks where locktype = 'advisory' and not granted and objid = ${GATE} and database = (select oid from pg_database where datname = current_database())`,
      );
    }
  }, 60_000);
  afterAll(async () => {
    await sql?.end();
    await site.remove();
    await Promise.all([stripe.stop(), epay.stop()]);
  });

  const order = (buyer: Person) => buyer.send("POST", "/api/user/topup/pay", { rail: "stripe", amount: 10 });
  const newest = (): FakeSession => {
    const session = stripe.sessions.at(-1);
    if (!session) throw new Error("no session");
    return session;
  };

  async function tell(session: FakeSession): Promise<number> {
    const { payload, header } = await signedEvent(
      "checkout.session.completed",
      { ...session, payment_status: "paid", status: "complete" },
      { secret: SECRET, timestamp: Math.floor(Date.now() / 1000), id: `evt_${session.id}` },
    );
    const answer = await fetch(`${site.server.url}/api/stripe/webhook`, {
      method: "POST",
      headers: { "stripe-signature": header },
      body: payload,
    });
    await answer.text();
    return answer.status;
  }

  async function expectCreditedOnce(buyer: Person, session: FakeSession): Promise<void> {
    expect(await tell(session)).toBe(200);
    expect(await tell(session)).toBe(200);
    const self = (await buyer.send("GET", "/api/user/self")) as { quota: number };
    const state = (await buyer.send("GET", `/api/user/topup/${session.client_reference_id}`)) as {
      status: string;
    };
    expect([self.quota, state.status]).toEqual([START_QUOTA + 10 * UNIT, "success"]);
  }

  async function killAndRestart(): Promise<void> {
    await site.server.kill();
    await site.server.restart();
  }

  test("after the provider made its session, before the node knows of it", async () => {
    const buyer = await site.person(START_QUOTA);
    const killed = Promise.withResolvers<void>();
    stripe.beforeAnswer = () => {
      void site.server.kill().then(() => killed.resolve());
      return killed.promise;
    };
    expect(await order(buyer).catch((error: unknown) => error)).toBeInstanceOf(Error);
    await killed.promise;
    stripe.beforeAnswer = () => Promise.resolve();
    await site.server.restart();
    await expectCreditedOnce(buyer, newest());
  }, 60_000);

  test("after the order was answered, and after the payment was", async () => {
    const buyer = await site.person(START_QUOTA);
    await order(buyer);
    const session = newest();
    await killAndRestart();
    expect(await tell(session)).toBe(200);
    await killAndRestart();
    await expectCreditedOnce(buyer, session);
  }, 60_000);

  test("after the provider sent the money back, before the node knows of it", async () => {
    const buyer = await site.person(START_QUOTA);
    await order(buyer);
    const session = newest();
    expect(await tell(session)).toBe(200);
    const before = stripe.refunds.length;
    const killed = Promise.withResolvers<void>();
    stripe.beforeAnswer = () => {
      void site.server.kill().then(() => killed.resolve());
      return killed.promise;
    };
    const refund = { trade_no: session.client_reference_id, reason: "changed their mind" };
    const asked = () => site.root.send("POST", "/api/user/topup/refund", refund);
    expect(await asked().catch((error: unknown) => error)).toBeInstanceOf(Error);
    await killed.promise;
    stripe.beforeAnswer = () => Promise.resolve();
    await site.server.restart();
    const quota = async () => ((await buyer.send("GET", "/api/user/self")) as { quota: number }).quota;
    expect(await quota()).toBe(START_QUOTA + 10 * UNIT);
    // Asked for once more it is the same refund; the provider's own word of it changes nothing then.
    await asked();
    const { payload, header } = await signedEvent(
      "charge.refunded",
      { metadata: session.metadata, amount_refunded: 1000, refunded: true },
      { secret: SECRET, timestamp: Math.floor(Date.now() / 1000) },
    );
    const headers = { "stripe-signature": header };
    const told = await fetch(`${site.server.url}/api/stripe/webhook`, {
      method: "POST",
      headers,
      body: payload,
    });
    expect([told.status, stripe.refunds.length - before, await quota()]).toEqual([200, 1, START_QUOTA]);
  }, 60_000);

  /** The state of the newest order, past the server. */
  async function stateInBooks(): Promise<{ tradeNo: string; status: string }> {
    const [row] = await site.books.ask("select trade_no, status from orders order by id desc limit 1");
    return { tradeNo: String(row?.["trade_no"]), status: String(row?.["status"]) };
  }

  /** Holds the next change of an order in the middle, until the process is gone; resolves once it hangs there. */
  async function holdOrders(): Promise<{
    isHeld: () => Promise<boolean | undefined>;
    release: () => Promise<void>;
  }> {
    if (sql) {
      const [own, gate] = [sql, await sql.reserve()];
      await gate`select pg_advisory_lock(${GATE})`;
      await own.unsafe(
        "create trigger held before update on orders for each row execute function wait_at_gate()",
      );
      return {
        async isHeld() {
          const [row] = await gate<{ held: number }[]>`
            select count(*)::int as held from gate_waiters`;
          return (row?.held ?? 0) > 0;
        },
        async release() {
          // Its statement would go on without it, and be committed.
          await gate`select pg_terminate_backend(pid) from gate_waiters`;
          await gate`select pg_advisory_unlock(${GATE})`;
          gate.release();
          await own.unsafe("drop trigger held on orders");
        },
      };
    }
    const path = join(site.server.dataDir, SQLITE_FILE);
    const run = (statement: string) => {
      const file = new Database(path);
      file.run("pragma busy_timeout = 5000");
      file.run(statement);
      file.close();
    };
    // Counts pairs of pairs of the schema's rows for longer than anybody waits.
    const tables = ["a", "b", "c", "d", "e", "f"];
    run(
      `create trigger held before update on orders when (select count(*) from ${tables
        .map((name) => `sqlite_schema ${name}`)
        .join(
          ", ",
        )} where ${tables.map((name) => `${name}.rootpage`).join(" + ")} < 0) >= 0 begin select 1; end`,
    );
    return {
      // Whoever writes the embedded database is the process itself: it answers nobody meanwhile.
      async isHeld() {
        const answer = fetch(`${site.server.url}/api/status/test`, { signal: AbortSignal.timeout(1000) });
        return answer.then(
          async (each) => (await each.text()) === "never",
          () => true,
        );
      },
      release: () => Promise.resolve(run("drop trigger held")),
    };
  }

  test("by epay: between the row and its being told of, and between that and the callback", async () => {
    const buyer = await site.person(START_QUOTA);
    const wish = { rail: "epay", method: "alipay", amount: 10 };
    const self = async () => ((await buyer.send("GET", "/api/user/self")) as { quota: number }).quota;
    const hold = await holdOrders();
    const asked = buyer.send("POST", "/api/user/topup/pay", wish).catch(() => "gone");
    await site.until(async () => (await stateInBooks()).status === "created" && (await hold.isHeld()));
    await site.server.kill();
    expect(await asked).toBe("gone");
    await hold.release();
    const { tradeNo, status } = await stateInBooks();
    expect(status).toBe("created");
    await site.server.restart();
    // The buyer has no form of it; what is paid by its number all the same is credited, once.
    const form = { out_trade_no: tradeNo, type: "alipay", name: "TUC10", money: "73.00" };
    const notifyUrl = () => `${site.server.url}/api/user/epay/notify`;
    const trade = { form, tradeNo: `gw-${tradeNo}`, isPaid: false };
    expect(await epay.pay(trade, { notifyUrl: notifyUrl() })).toBe("success");
    expect(await epay.pay(trade, { notifyUrl: notifyUrl(), method: "POST" })).toBe("success");
    expect(await self()).toBe(START_QUOTA + 10 * UNIT);

    const made = (await buyer.send("POST", "/api/user/topup/pay", wish)) as {
      url: string;
      fields: Record<string, string>;
    };
    const second = await epay.submit(made.url, made.fields);
    expect((await stateInBooks()).status).toBe("pending");
    // Killed in the middle of the callback: the gateway hears nothing, and repeats.
    const again = await holdOrders();
    const told = epay.pay(second, { notifyUrl: notifyUrl() }).catch(() => "gone");
    await site.until(again.isHeld);
    await site.server.kill();
    expect(await told).toBe("gone");
    await again.release();
    await site.server.restart();
    for (const method of ["GET", "POST", "GET"] as const)
      expect(await epay.pay(second, { notifyUrl: notifyUrl(), method })).toBe("success");
    expect(await self()).toBe(START_QUOTA + 20 * UNIT);
  }, 60_000);

  if (kind === "sqlite")
    test("while the payment waits to be entered: it is one write, which is there or is not", async () => {
      const buyer = await site.person(START_QUOTA);
      await order(buyer);
      const session = newest();
      const lock = lockFile(join(site.server.dataDir, SQLITE_FILE));
      const told = tell(session).then(
        (status) => status,
        () => 0,
      );
      // The event came first on its own connection: what is answered after it was asked after it.
      for (let i = 0; i < 3; i++) await (await fetch(`${site.server.url}/api/status/test`)).text();
      await site.server.kill();
      lock.release();
      expect(await told).toBe(0);
      await site.server.restart();
      await expectCreditedOnce(buyer, session);
    }, 60_000);

  /** Kills the node while the table waits for `event` in what `act` began; what was answered, 0 for nothing. */
  async function killedWhile(table: string, event: string, act: () => Promise<number>): Promise<number> {
    if (!sql) throw new Error("no database");
    const gate = await sql.reserve();
    await gate`select pg_advisory_lock(${GATE})`;
    await sql.unsafe(
      `create trigger held before ${event} on ${table} for each row execute function wait_at_gate()`,
    );
    const told = act().catch(() => 0);
    const isHeld = async (): Promise<boolean> => {
      const [row] = await gate<{ held: number }[]>`
          select count(*)::int as held from gate_waiters`;
      return (row?.held ?? 0) > 0;
    };
    await untilSo(isHeld);
    await site.server.kill();
    const answered = await told;
    await gate`select pg_advisory_unlock(${GATE})`;
    gate.release();
    await sql.unsafe(`drop trigger held on ${table}`);
    return answered;
  }

  if (kind === "postgres")
    test.each(STEPS)(
      "while %s waits for its %s in the transaction that credits",
      async (table, event) => {
        if (!sql) throw new Error("no database");
        const buyer = await site.person(START_QUOTA);
        await order(buyer);
        const session = newest();
        expect(await killedWhile(table, event, () => tell(session))).toBe(0);
        const [row] = await sql`select status from orders where trade_no = ${session.client_reference_id}`;
        expect(row?.["status"]).toBe("pending");
        await site.server.restart();
        await expectCreditedOnce(buyer, session);
      },
      60_000,
    );

  describe("a plan that is bought from the wallet", () => {
    let planId = 0;
    beforeAll(async () => {
      const made = (await site.root.send("POST", "/api/plan/", {
        title: "Once",
        wallet_price: PLAN_PRICE,
        quota: PLAN_QUOTA,
        duration_unit: "month",
        duration_count: 1,
        reset: "none",
        max_per_user: 1,
      })) as { id: number };
      planId = made.id;
    });

    const buy = (buyer: Person) =>
      buyer.send("POST", `/api/plan/${planId}/buy`, { method: "wallet" }).then(() => 200);
    async function stateOf(buyer: Person): Promise<[quota: number, plans: number]> {
      const self = (await buyer.send("GET", "/api/user/self")) as { quota: number };
      const { items } = (await buyer.send("GET", "/api/plan/self")) as { items: unknown[] };
      return [self.quota, items.length];
    }
    const BEFORE = [START_QUOTA, 0] as const;
    const BOUGHT = [START_QUOTA - PLAN_PRICE + PLAN_QUOTA, 1] as const;

    /** After a purchase that nobody was answered: nothing of it is there, and the next one is the first. */
    async function expectBoughtOnce(buyer: Person): Promise<void> {
      expect(await stateOf(buyer)).toEqual([...BEFORE]);
      expect(await buy(buyer)).toBe(200);
      // Answered is bought, whatever becomes of the process.
      await killAndRestart();
      expect(await stateOf(buyer)).toEqual([...BOUGHT]);
      expect(await buy(buyer).catch((error: unknown) => String(error))).toContain("plan");
      expect(await stateOf(buyer)).toEqual([...BOUGHT]);
    }

    if (kind === "sqlite")
      test("is there with its price, or not at all: killed while it waits to be entered", async () => {
        const buyer = await site.person(START_QUOTA);
        const lock = lockFile(join(site.server.dataDir, SQLITE_FILE));
        const told = buy(buyer).catch(() => 0);
        for (let i = 0; i < 3; i++) await (await fetch(`${site.server.url}/api/status/test`)).text();
        await site.server.kill();
        lock.release();
        expect(await told).toBe(0);
        await site.server.restart();
        await expectBoughtOnce(buyer);
      }, 60_000);

    if (kind === "postgres")
      test("is there with its price, or not at all: killed between its statements", async () => {
        const buyer = await site.person(START_QUOTA);
        for (const [table, event] of PURCHASE_STEPS) {
          expect([table, await killedWhile(table, event, () => buy(buyer))]).toEqual([table, 0]);
          await site.server.restart();
          expect([table, ...(await stateOf(buyer))]).toEqual([table, ...BEFORE]);
        }
        await expectBoughtOnce(buyer);
      }, 60_000);
  });

  test("after all of it the books balance", async () => {
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.server.restart();
  }, 60_000);
});
