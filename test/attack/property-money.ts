// Money in the world of the property test: orders by two rails, callbacks that are doubled, wrong or lost, refunds, disputes, codes.
// Refuses to judge: it pays by chance, repeats what a gateway would repeat, and says what the books must have of each order.
import { startFakeEpay } from "../support/fake-epay.ts";
import type { EpayTrade } from "../support/fake-epay.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import type { Random } from "./property-world.ts";
import type { Person, Site } from "./site.ts";

const SECRET = "whsec_0123456789abcdefghijkl";
/** Units of an order, and of a code: little beside a small balance too. */
const AMOUNT = 2000;
const CODE = 1500;
/** Units of a card payment, of those who can owe nothing: money that goes back may be spent already. */
const CARD_AMOUNT = 1_000_000;

interface Told {
  type: string;
  object: object;
  id: string;
}

export interface Money {
  /** One thing by chance: an order, a payment, a repeat, a refund, a code. Failures of the moment are the world's. */
  act(): Promise<void>;
  /** Everything that was paid, refunded or disputed is told until it is heard. Call when every node serves. */
  settle(): Promise<void>;
  /** What the books have wrong about orders, codes and what went back; empty: nothing. */
  judge(): Promise<string[]>;
  /** How many orders were paid, by card among them, and how many codes were made. */
  counts(): { paid: number; cards: number; codes: number };
  stop(): Promise<void>;
}

export async function startMoney(
  site: Site,
  {
    random,
    people,
    rich,
    urls,
  }: { random: Random; people: readonly Person[]; rich: readonly Person[]; urls: () => string[] },
): Promise<Money> {
  const [epay, stripe] = [startFakeEpay(), startFakeStripe()];
  for (const [key, value] of [
    ["ServerAddress", site.server.url],
    ["EpayId", epay.pid],
    ["EpayKey", epay.key],
    ["PayAddress", epay.url],
    ["StripeApiBase", stripe.url],
    ["StripeApiSecret", "sk_test_0123456789"],
    ["StripeWebhookSecret", SECRET],
    // Amounts are units, and small ones are sold.
    ["DisplayInCurrencyEnabled", "false"],
    ["MinTopUp", "0"],
    ["StripeMinTopUp", "0"],
  ] as const)
    await site.set(key, value);

  const trades: EpayTrade[] = [];
  const paid = new Set<EpayTrade>();
  const cards = new Map<string, Told[]>();
  const codes: string[] = [];
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const node = (): string => pick(urls()) ?? site.server.url;

  async function notify(trade: EpayTrade, other: Record<string, string> = {}): Promise<string> {
    const query = epay.report(trade, other);
    return (await fetch(`${node()}/api/user/epay/notify?${query}`)).text();
  }

  async function tell({ type, object, id }: Told): Promise<number> {
    const timestamp = Math.floor(Date.now() / 1000);
    const { payload, header } = await signedEvent(type, object, { secret: SECRET, timestamp, id });
    const headers = { "stripe-signature": header };
    const answer = await fetch(`${node()}/api/stripe/webhook`, { method: "POST", headers, body: payload });
    await answer.text();
    return answer.status;
  }

  async function order(): Promise<void> {
    const buyer = pick(people);
    const wish = { rail: "epay", method: "alipay", amount: AMOUNT };
    const made = (await buyer?.send("POST", "/api/user/topup/pay", wish)) as {
      url: string;
      fields: Record<string, string>;
    };
    trades.push(await epay.submit(made.url, made.fields));
  }

  /** Paid at the gateway; its word of it may be lost, come twice, or come with another sum first. */
  async function pay(): Promise<void> {
    const trade = pick(trades);
    if (!trade) return;
    const choice = random();
    if (choice < 0.2 && !paid.has(trade)) {
      await notify(trade, { trade_status: "WAIT_BUYER_PAY" });
      return;
    }
    paid.add(trade);
    if (choice < 0.4) return;
    await Promise.all(Array.from({ length: 1 + Math.floor(random() * 3) }, () => notify(trade)));
  }

  async function card(): Promise<void> {
    const buyer = pick(rich);
    await buyer?.send("POST", "/api/user/topup/pay", { rail: "stripe", amount: CARD_AMOUNT });
    const session = stripe.sessions.at(-1);
    if (!session || cards.has(session.client_reference_id)) return;
    const object = { ...session, payment_status: "paid", status: "complete" };
    const told: Told[] = [{ type: "checkout.session.completed", object, id: `paid-${session.id}` }];
    const whole = session.amount_total;
    const part = 1 + Math.floor(random() * whole);
    const { metadata, payment_intent: intent } = session;
    if (random() < 0.6)
      told.push({
        type: "charge.refunded",
        object: { metadata, amount_refunded: part, refunded: part === whole },
        id: `refund-${session.id}`,
      });
    if (random() < 0.3) {
      const dispute = { id: `dp-${session.id}`, payment_intent: intent, amount: whole };
      told.push({
        type: "charge.dispute.created",
        object: { ...dispute, status: "needs_response" },
        id: `open-${session.id}`,
      });
      told.push({
        type: "charge.dispute.closed",
        object: { ...dispute, status: "won" },
        id: `won-${session.id}`,
      });
    }
    cards.set(session.client_reference_id, told);
    // A dispute is told at the end alone: while it is open its account's calls are refused.
    if (random() < 0.7)
      for (const each of told) if (!each.type.startsWith("charge.dispute")) await tell(each);
  }

  async function code(): Promise<void> {
    const made = (await site.root.send("POST", "/api/redemption/", {
      name: "property",
      quota: CODE,
      count: 1,
    })) as string[];
    const key = made[0] ?? "";
    codes.push(key);
    const [one, other] = [pick(people), pick(people)];
    if (!one || !other) return;
    await Promise.allSettled([one, other, one].map((who) => who.send("POST", "/api/user/topup", { key })));
  }

  async function byHand(): Promise<void> {
    const trade = pick(trades);
    if (!trade) return;
    await site.root.send("POST", "/api/user/topup/complete", {
      trade_no: trade.form["out_trade_no"],
      reason: "by chance",
    });
  }

  async function until(isHeard: () => Promise<boolean>): Promise<void> {
    await site.until(() => isHeard().catch(() => false), 30_000);
  }

  return {
    async act() {
      const choice = random();
      const act =
        choice < 0.3 ? order : choice < 0.7 ? pay : choice < 0.8 ? card : choice < 0.92 ? code : byHand;
      // A node that is killed or waits for its database, and limits of orders, are the world's.
      await act().catch(() => undefined);
    },
    async settle() {
      for (const trade of paid) await until(async () => (await notify(trade)) === "success");
      // In any order: what is early is asked for once more.
      const events = [...cards.values()].flatMap((told) => (random() < 0.5 ? told : told.toReversed()));
      const waiting = new Set(events);
      await until(async () => {
        for (const each of waiting) if ((await tell(each)) === 200) waiting.delete(each);
        return waiting.size === 0;
      });
      for (const each of events) await tell(each);
    },
    async judge() {
      const rows = await site.books.ask(
        "select id, trade_no, rail, quota, status, money_minor, refunded_minor, debited_quota, actor_id from orders",
      );
      const credits = await site.books.ask("select kind, ref, amount from credits");
      const sumOf = (kind: string, isOf: (ref: string) => boolean) => {
        const own = credits.filter((each) => each["kind"] === kind && isOf(String(each["ref"])));
        return { count: own.length, sum: own.reduce((sum, each) => sum + Number(each["amount"]), 0) };
      };
      const isPaid = new Set([...paid].map(({ form }) => form["out_trade_no"] ?? ""));
      const wrong: string[] = [];
      for (const row of rows) {
        const tradeNo = String(row["trade_no"]);
        const isDue = isPaid.has(tradeNo) || cards.has(tradeNo) || Number(row["actor_id"]) > 0;
        const isCredited = ["credited", "refunded"].includes(String(row["status"]));
        const came = sumOf("payment", (ref) => ref === tradeNo);
        const went = sumOf("refund", (ref) => ref.startsWith(`${tradeNo}:`));
        if (isDue !== isCredited) wrong.push(`${tradeNo}: paid ${isDue}, ${String(row["status"])}`);
        if (came.count !== (isDue ? 1 : 0) || came.sum !== (isDue ? Number(row["quota"]) : 0))
          wrong.push(`${tradeNo}: credited ${came.count} times, ${came.sum}`);
        if (went.sum !== -Number(row["debited_quota"])) wrong.push(`${tradeNo}: ${went.sum} went back`);
        const refunded = (cards.get(tradeNo) ?? []).find(({ type }) => type === "charge.refunded");
        const { amount_refunded: minor = 0 } = (refunded?.object ?? {}) as { amount_refunded?: number };
        const share = Math.floor((Number(row["quota"]) * minor) / Number(row["money_minor"]));
        if (isCredited && Number(row["debited_quota"]) !== share)
          wrong.push(`${tradeNo}: ${String(row["debited_quota"])} taken for ${minor}, not ${share}`);
      }
      const redeemed = sumOf("redeem", () => true);
      const used = await site.books.ask("select id from redemptions where status = 3");
      if (redeemed.count !== used.length || redeemed.sum !== used.length * CODE)
        wrong.push(`${used.length} codes used, ${redeemed.count} credited with ${redeemed.sum}`);
      return wrong;
    },
    counts: () => ({ paid: paid.size + cards.size, cards: cards.size, codes: codes.length }),
    async stop() {
      await Promise.all([epay.stop(), stripe.stop()]);
    },
  };
}
