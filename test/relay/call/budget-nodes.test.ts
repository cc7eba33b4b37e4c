// Budgets and limits over two nodes on one PostgreSQL: what one node's calls hold and spend is in force on the other within a
// second, calls of before a limit too. Refuses fixed waits: it is asked again and again until it is so.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { answer, gate, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { HI, MODEL, until } from "../support.ts";
import { startStretch } from "../../support/stretch.ts";

const PRICE = 10;
const LAG_MS = 1000;

let database: TestDatabase;
let upstream: FakeUpstream;
let here: TestApp;
let there: TestApp;
let user: TestUser;

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  upstream = await startFakeUpstream();
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  here = await startTestApp({ env });
  there = await startTestApp({ env });
  await here.createChannel({ baseUrl: upstream.url, models: MODEL });
  await there.deps.routing.reload();
  for (const node of [here, there])
    await node.deps.options.set("ModelPrice", JSON.stringify({ [MODEL]: PRICE / 500_000 }));
}, 60_000);
afterAll(async () => {
  await here.deps.ledger.flush();
  await there.deps.ledger.flush();
  expect(await audit(here.deps.db)).toMatchObject({ differences: [] });
  await here.close();
  await there.close();
  await database.drop();
  upstream.stop();
});
beforeEach(async () => {
  upstream.reset();
  user = await here.createUser({ quota: 100_000_000 });
});

async function call(node: TestApp, key: string): Promise<{ status: number; code: string | null }> {
  const response = await fetch(`${node.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: HI }),
  });
  await response.text();
  return { status: response.status, code: response.headers.get("x-weir-error-code") };
}

const token = (fields: Record<string, unknown>) =>
  here.createToken(user.id, { unlimitedQuota: true, ...fields });

/** How long it took until it was so, in milliseconds of a machine that does nothing else. */
async function lagUntil(isSo: () => Promise<boolean>): Promise<number> {
  const startedMs = performance.now();
  const stretch = startStretch();
  await until(async () => ((await isSo()) ? true : undefined));
  return (performance.now() - startedMs) / stretch();
}

test("what was spent on one node is spent on the other, and both never pass the budget by more than the lag's calls", async () => {
  const { id, key } = await token({ budgetQuota: 20 * PRICE, budgetPeriod: "day" });
  expect((await call(there, key)).status).toBe(200);
  // In the tables, and no longer told as held: for the lag it may count as both.
  await there.deps.ledger.flush();
  await there.deps.limits.exchange();
  await here.deps.limits.exchange();
  for (let count = 0; count < 19; count++) expect((await call(here, key)).status).toBe(200);
  expect(await call(here, key)).toEqual({ status: 429, code: "budget_exceeded" });
  let passed = 0;
  const lagMs = await lagUntil(async () => {
    const { status } = await call(there, key);
    if (status === 200) passed++;
    return status === 429;
  });
  expect(lagMs).toBeLessThan(LAG_MS);
  await here.deps.ledger.flush();
  await there.deps.ledger.flush();
  const { tokens } = here.deps.db.t;
  const [row] = await here.deps.db.orm.select().from(tokens).where(eq(tokens.id, id));
  expect(row?.usedQuota).toBe((20 + passed) * PRICE);
  expect(await call(here, key)).toEqual({ status: 429, code: "budget_exceeded" });
});

test("calls that are open on one node take the places of the other, and give them back", async () => {
  const { key } = await token({ maxConcurrency: 3 });
  expect((await call(there, key)).status).toBe(200);
  const door = gate();
  upstream.always({ ...answer("hello"), before: door });
  const before = upstream.requests.length;
  const open = Array.from({ length: 3 }, () => call(here, key));
  await until(() => Promise.resolve(upstream.requests.length === before + 3 || undefined));
  await here.deps.limits.exchange();
  await there.deps.limits.exchange();
  expect(await call(there, key)).toEqual({ status: 429, code: "key_limit_exceeded" });
  door.open();
  await Promise.all(open);
  expect(await lagUntil(async () => (await call(there, key)).status === 200)).toBeLessThan(LAG_MS);
});

test("requests of a minute are those of both nodes", async () => {
  const { key } = await token({ rpmLimit: 10 });
  for (let count = 0; count < 6; count++) expect((await call(here, key)).status).toBe(200);
  expect((await call(there, key)).status).toBe(200);
  await here.deps.limits.exchange();
  await there.deps.limits.exchange();
  const statuses: number[] = [];
  for (let count = 0; count < 5; count++) statuses.push((await call(there, key)).status);
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
});

test("a limit that is set while the other node has calls open counts them, though nobody asks there again", async () => {
  const { id, key } = await token({});
  const door = gate();
  upstream.always({ ...answer("hello"), before: door });
  const before = upstream.requests.length;
  const open = Array.from({ length: 2 }, () => call(there, key));
  await until(() => Promise.resolve(upstream.requests.length === before + 2 || undefined));
  const { body } = await here.call("PUT", "/api/token/", { id, max_concurrency: 2 }, user);
  expect(body).toMatchObject({ success: true });
  upstream.always(undefined);
  // Once the other node has heard of the limit, it tells what is open there.
  const lagMs = await lagUntil(async () => (await call(here, key)).status === 429);
  expect(lagMs).toBeLessThan(2 * LAG_MS);
  door.open();
  await Promise.all(open);
  expect(await lagUntil(async () => (await call(here, key)).status === 200)).toBeLessThan(LAG_MS);
});

test("two nodes that see four fifths at once warn once", async () => {
  const { db } = here.deps;
  await db.orm
    .update(db.t.users)
    .set({ setting: JSON.stringify({ notify_type: "webhook", webhook_url: "https://hooks.invalid/" }) })
    .where(eq(db.t.users.id, user.id));
  for (const node of [here, there]) await node.deps.accounts.userChanged(user.id);
  const { id, key } = await token({ budgetQuota: 10 * PRICE, budgetPeriod: "month" });
  await Promise.all(Array.from({ length: 8 }, (_, at) => call(at % 2 === 0 ? here : there, key)));
  for (const node of [here, there]) {
    await node.deps.ledger.flush();
    await node.deps.limits.exchange();
  }
  await Promise.all([call(here, key), call(there, key)]);
  for (const node of [here, there]) await node.services.budgetWarnings.settled();
  const { marks } = db.t;
  const rows = await db.orm
    .select()
    .from(marks)
    .where(eq(marks.key, `budget:token:${id}`));
  expect(rows).toHaveLength(1);
});
