// B1 from outside: PostgreSQL stops and comes back under load; one process serves all the time and loses no answer.
// Refuses a database of other tests: this one is stopped for real, in order and by crash.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startFakeEpay } from "../support/fake-epay.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import { startOwnPostgres } from "../support/own-postgres.ts";
import type { OwnPostgres } from "../support/own-postgres.ts";
import { startStretch } from "../support/stretch.ts";
import { callPlan, IS_LONG, signIn, startSite } from "./site.ts";
import type { Outcome, Person, Site } from "./site.ts";

const RESTARTS = IS_LONG ? 20 : 2;
const WORKERS = 12;
const AWAY_MS = 1200;
/** So long a read waits for a PostgreSQL that says nothing, beside what the machine takes; the next one waits for nobody. */
const REFUSED_MS = 6500;
const AT_ONCE_MS = 250;
/** Work of the machine on a few pages, where nothing else wants it. */
const WORK_MS = 500;
const BACK_MS = 5000;

describe("PostgreSQL restarts under load", () => {
  let postgres: OwnPostgres;
  let site: Site;
  /** Somebody who has not come since the last start: nothing of them is in memory. */
  let stranger: Person;
  beforeAll(async () => {
    postgres = await startOwnPostgres();
    site = await startSite({ databaseUrl: postgres.url });
  }, 60_000);
  afterAll(async () => {
    await postgres.start();
    await site.remove();
    await postgres.remove();
  });

  test(`${RESTARTS} restarts: the same process, open streams go on, every answer is in the books`, async () => {
    const { pid, url } = { pid: site.server.pid, url: site.server.url };
    const rich = (stranger = await site.person(1_000_000_000_000));
    const poor = await site.person(60_000);
    const [richKey, poorKey] = [await rich.key(), await poor.key()];
    const unknownKeys: string[] = [];
    for (let restart = 0; restart < RESTARTS; restart++) unknownKeys.push(await rich.key());
    const outcomes: { outcome: Outcome; isPoor: boolean; tookMs: number }[] = [];
    let isOver = false;
    const worker = async (number: number) => {
      const isPoor = number === 0;
      for (let round = 0; !isOver; round++) {
        const beganMs = performance.now();
        const plan = { id: `load-${number}-${round}`, words: 5 };
        const stream = (round + number) % 2 === 0;
        const outcome = await callPlan(url, isPoor ? poorKey : richKey, plan, { stream });
        outcomes.push({ outcome, isPoor, tookMs: performance.now() - beganMs });
        // A process that is gone refuses at once: no spinning.
        if (outcome.status !== 200) await Bun.sleep(50);
      }
    };
    const workers = Array.from({ length: WORKERS }, (_, number) => worker(number));
    const answered = () => outcomes.filter(({ outcome }) => outcome.status === 200).length;
    const streams: Outcome[] = [];
    /** Calls with keys that no node has in memory, in the middle of an outage. */
    const strangers: Outcome[] = [];
    const isGone = () => site.server.pid !== pid;
    for (let restart = 0; restart < RESTARTS && !isGone(); restart++) {
      const before = answered();
      await site.until(() => answered() > before + 30 || isGone(), 30_000);
      // Long enough to begin before the stop and end after the start.
      const words = 400;
      const long = callPlan(
        url,
        richKey,
        { id: `open-${restart}`, words, per: 2, paceMs: 20 },
        { stream: true },
      );
      await site.until(() => (site.upstream.of(`open-${restart}`)[0]?.given ?? 0) > 0 || isGone());
      await postgres.stop(restart % 2 === 0 ? "fast" : "immediate");
      const unknown = callPlan(url, unknownKeys[restart] ?? "", { id: `unknown-${restart}` });
      await Bun.sleep(AWAY_MS);
      await postgres.start();
      streams.push(await long);
      strangers.push(await unknown);
      const after = answered();
      await site.until(() => answered() > after + 30 || isGone(), 30_000);
    }
    isOver = true;
    await Promise.all(workers);
    expect(site.server.pid).toBe(pid);
    expect(site.server.log()).not.toContain("uncaught");
    expect(streams.map(({ words, isWhole }) => [words, isWhole])).toEqual(streams.map(() => [400, true]));
    expect(strangers.map(({ status }) => status).filter((status) => ![200, 503].includes(status))).toEqual(
      [],
    );
    const strange = outcomes.filter(({ outcome: { status, isWhole }, isPoor }) =>
      status === 200 ? !isWhole : status !== 503 && !(isPoor && [403, 429].includes(status)),
    );
    expect(strange.slice(0, 3).map(({ outcome }) => [outcome.status, outcome.text.slice(0, 200)])).toEqual(
      [],
    );
    // Nobody waits much longer than the ten seconds that a hold may take.
    expect(outcomes.filter(({ tookMs }) => tookMs > 15_000).length).toBe(0);
    await site.server.stop();
    expect(await site.server.exited()).toBe(0);
    const logged = (await site.books.log(2)).map(({ requestId }) => requestId);
    const known = new Set(logged);
    const all = [...outcomes.map(({ outcome }) => outcome), ...streams, ...strangers].filter(
      ({ status }) => status === 200,
    );
    expect(all.filter(({ requestId }) => !known.has(requestId)).length).toBe(0);
    expect(known.size).toBe(logged.length);
    expect(site.server.audit()).toMatchObject({ code: 0 });
    console.log(`${all.length} answers over ${RESTARTS} restarts`);
    await site.server.restart();
  }, 600_000);

  test("while PostgreSQL stands still console reads are refused in seconds and then at once; what is written is told truly", async () => {
    const { url } = site.server;
    const { id, cookie } = await signIn(url, "root");
    const root = { id, cookie };
    const look = async (path: string, language = "en", { id, cookie } = root) => {
      const headers = { cookie, "new-api-user": String(id), "accept-language": language };
      const beganMs = performance.now();
      const answer = await fetch(url + path, { headers });
      return { status: answer.status, text: await answer.text(), tookMs: performance.now() - beganMs };
    };
    const looks = () =>
      Promise.all([look("/api/log/?p=1"), look("/api/user/?p=1", "zh"), look("/log"), look("/user", "zh")]);
    const statuses = (all: readonly { status: number }[]) => all.map(({ status }) => status);
    expect(statuses(await looks())).toEqual([200, 200, 200, 200]);
    const stretch = startStretch();
    postgres.pause();
    const notice = "written while nobody answered";
    const write = site.set("Notice", notice).then(
      () => true,
      () => false,
    );
    const unknown = look("/api/user/self", "en", stranger);
    const [first, next] = [await looks(), await looks()];
    const memory = await look("/api/notice");
    postgres.resume();
    const texts = [
      '"code":"database_down"',
      "数据库连接失败",
      "<h1>The database does not answer</h1>",
      "<h1>数据库没有响应</h1>",
    ];
    for (const [all, limitMs] of [
      [[...first, await unknown], REFUSED_MS],
      [next, AT_ONCE_MS],
    ] as const) {
      expect(statuses(all)).toEqual(all.map(() => 503));
      all.forEach(({ text }, at) => expect(text).toContain(texts[at] ?? ""));
      expect(Math.max(...all.map(({ tookMs }) => tookMs))).toBeLessThan(limitMs + WORK_MS * stretch());
    }
    // What needs no database is answered all the time.
    expect(memory.status).toBe(200);
    await site.until(async () => statuses(await looks()).every((status) => status === 200), BACK_MS);
    // It had left before anybody knew that nobody answers: what its writer hears is what came of it.
    const isWritten = await write;
    const [row] = await site.books.ask("select value from options where key = 'Notice'");
    expect(row?.["value"] === notice).toBe(isWritten);
  }, 60_000);

  test("a payment that comes while PostgreSQL is away is refused, repeated and credited once", async () => {
    const [epay, stripe] = [startFakeEpay(), startFakeStripe()];
    const secret = "whsec_0123456789abcdefghijkl";
    for (const [key, value] of [
      ["ServerAddress", site.server.url],
      ["EpayId", epay.pid],
      ["EpayKey", epay.key],
      ["PayAddress", epay.url],
      ["StripeApiBase", stripe.url],
      ["StripeApiSecret", "sk_test_0123456789"],
      ["StripeWebhookSecret", secret],
    ] as const)
      await site.set(key, value);
    const buyer = await site.person(1000);
    const order = async (rail: string) =>
      (await buyer.send("POST", "/api/user/topup/pay", { rail, amount: 10 })) as {
        url: string;
        fields: Record<string, string>;
      };
    const { url, fields } = await order("epay");
    const trade = await epay.submit(url, fields);
    await order("stripe");
    const [session] = stripe.sessions;
    const event = async () => {
      const { payload, header } = await signedEvent(
        "checkout.session.completed",
        { ...session, payment_status: "paid", status: "complete" },
        { secret, timestamp: Math.floor(Date.now() / 1000), id: "evt_away" },
      );
      const answer = await fetch(`${site.server.url}/api/stripe/webhook`, {
        method: "POST",
        headers: { "stripe-signature": header },
        body: payload,
      });
      await answer.text();
      return answer.status;
    };
    await postgres.stop("immediate");
    const [said, status] = await Promise.all([epay.pay(trade), event()]);
    // Neither gateway takes it for heard: both repeat.
    expect([said === "success", status >= 500]).toEqual([false, true]);
    await postgres.start();
    await site.until(async () => (await epay.pay(trade).catch(() => "")) === "success", 30_000);
    await site.until(async () => (await event()) === 200, 30_000);
    expect([await epay.pay(trade, { method: "POST" }), await event()]).toEqual(["success", 200]);
    const { quota } = (await buyer.send("GET", "/api/user/self")) as { quota: number };
    expect(quota).toBe(1000 + 20 * 500_000);
    await Promise.all([epay.stop(), stripe.stop()]);
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.server.restart();
  }, 120_000);

  test("a start waits for the database", async () => {
    await postgres.stop("fast");
    const starting = site.join().then(
      () => "serves",
      (error: unknown) => String(error).slice(0, 200),
    );
    await Bun.sleep(2500);
    await postgres.start();
    expect(await starting).toBe("serves");
  }, 60_000);
});
