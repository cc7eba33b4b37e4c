// The shared database away: what memory is trusted with, how long a hold waits for it, and what comes back afterwards.
// Refuses to fake the outage: the database really refuses connections, only the clock is moved.
import { afterEach, beforeEach, expect, test } from "bun:test";
import postgres from "postgres";
import { sha256Hex } from "../../../src/core/kit/seal.ts";
import { requestId, settlement, startBooks } from "./support.ts";
import type { Books, TestBooks } from "./support.ts";
import { untilSo } from "../../support/turns.ts";

const WAIT_MS = 400;
const RICH = 2_000_000;

let nowMs = 0;
let a: TestBooks;
let b: Books;
let admin: postgres.Sql;
let name: string;

beforeEach(async () => {
  nowMs = 0;
  // Waiting for the database is measured by timers, the age of the outage by this clock.
  const monotonicMs = () => nowMs;
  a = await startBooks("postgres", { databaseWaitMs: WAIT_MS, monotonicMs });
  await a.addChannel();
  const url = new URL(a.database.databaseUrl ?? "");
  name = url.pathname.slice(1);
  url.pathname = "/postgres";
  admin = postgres(url.href, { max: 1, onnotice: () => {} });
});
afterEach(async () => {
  await comeBack();
  await admin.end();
  await a.close();
});

async function goAway(): Promise<void> {
  await admin.unsafe(`alter database ${name} allow_connections false`);
  // One that was just being let in shows up a little later.
  for (let quiet = 0, looks = 0; quiet < 3 && looks < 100; looks++) {
    const ended = await admin.unsafe(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
    quiet = ended.length === 0 ? quiet + 1 : 0;
  }
}

async function comeBack(): Promise<void> {
  await admin.unsafe(`alter database ${name} allow_connections true`);
}

const ask = async (userId: number, amount: number, least = amount) =>
  a.ledger.reserve({ requestId: requestId(), user: await a.user(userId), token: undefined, amount, least });
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => "held",
    (error: unknown) => (error as { code?: string }).code,
  );

test("a hold that must grow waits for the database, then memory is trusted; what it held comes back to the unit", async () => {
  const poor = await a.addUser(1000);
  const stream = await ask(poor.id, 100);
  const second = await ask(poor.id, 0);
  await goAway();
  const begun = performance.now();
  expect(await stream.grow(300)).toBe(300);
  expect(performance.now() - begun).toBeGreaterThan(WAIT_MS * 0.9);
  // The outage is known by now: it is waited out once, not at every step.
  nowMs = WAIT_MS;
  const later = performance.now();
  expect(await stream.grow(300)).toBe(300);
  expect(await second.grow(900)).toBe(300);
  expect(await second.grow(900)).toBe(0);
  expect(performance.now() - later).toBeLessThan(WAIT_MS * 2);
  await stream.settle(settlement(650));
  await second.settle(settlement(300));
  await comeBack();
  // A step that was given up may still be committed by a connection that was on its way; then it goes back.
  for (let looks = 0; looks === 0 || (poor.quota !== 50 && looks < 20); looks++) {
    await a.expectBalanced();
    await a.accounts.userChanged(poor.id);
  }
  expect(poor).toMatchObject({ quota: 50, usedQuota: 950, reserved: 0, pending: 0, returning: 0 });
});

test("far from zero calls go on at once; near zero they wait and are told 503", async () => {
  const rich = await a.addUser(RICH);
  const poor = await a.addUser(1000);
  await goAway();
  await (await ask(rich.id, 50)).settle(settlement(70));
  expect(await codeOf(ask(poor.id, 5))).toBe("ledger_down");
  expect(await codeOf(ask(poor.id, 0))).toBe("ledger_down");
  expect(poor.reserved).toBe(0);
  await comeBack();
  await a.expectBalanced();
  expect(rich).toMatchObject({ quota: RICH - 70, reserved: 0 });
});

test("a key that nobody has in memory is waited for, then its caller is told 503; afterwards it is found", async () => {
  const { db } = a;
  const user = await a.addUser(RICH);
  const keyHash = sha256Hex("unknown here");
  await db.orm.insert(db.t.tokens).values({ userId: user.id, name: "key", keyHash, keySealed: "" });
  await goAway();
  const begun = performance.now();
  const refused: unknown = await Promise.resolve(a.accounts.tokenByKey("unknown here")).catch(
    (error: unknown) => error,
  );
  expect(refused).toMatchObject({ code: "database_down", status: 503 });
  expect(performance.now() - begun).toBeGreaterThan(WAIT_MS * 0.9);
  const asking = async () => a.accounts.tokenByKey("unknown here");
  const waiting = asking();
  await comeBack();
  // On a slow machine the wait may be over by now.
  const found = await waiting.catch(asking);
  expect(found).toMatchObject({ user: { id: user.id } });
});

test("once the outage is 5 seconds old each of two nodes trusts its half", async () => {
  b = await a.join("node-b");
  const rich = await a.addUser(RICH);
  const [own, other] = [await a.user(rich.id), await b.user(rich.id)];
  // Node a counts its neighbours each second.
  while (!(await countsTwo())) await a.ledger.maintain();
  await goAway();
  const request = (user: typeof own) => ({ user, token: undefined });
  expect(a.ledger.available(request(own))).toBe(RICH);
  nowMs = 5000;
  expect(a.ledger.available(request(own))).toBe(RICH / 2);
  expect(b.ledger.available(request(other))).toBe(RICH);
  // 1,000 calls of this size are more than the half pays: the rows must decide, and they are away.
  expect(await codeOf(ask(rich.id, 1500))).toBe("ledger_down");
  const held = await ask(rich.id, 900);
  nowMs = 20_000;
  expect(await held.grow(RICH)).toBe(RICH / 2 - 900);
  expect(await held.grow(1)).toBe(0);
  await held.settle(settlement(RICH / 2));
  await comeBack();
  // What was refused for want of an answer may have been done: it comes back by itself.
  await untilSo(() => own.quota === RICH / 2);
  await a.expectBalanced();
  expect(own).toMatchObject({ quota: RICH / 2, reserved: 0 });
});

async function countsTwo(): Promise<boolean> {
  const user = await a.addUser(RICH);
  const before = nowMs;
  nowMs = before + 5000;
  const free = a.ledger.available({ user, token: undefined });
  nowMs = before;
  return free === RICH / 2;
}
