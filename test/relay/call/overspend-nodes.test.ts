// What two nodes can overspend together, by the program as it ships: near the limit nothing, and in an outage each no more than its
// share of what was known. Refuses to let them speak but through their database.
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import { startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import type { Operator } from "../../support/operator.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";
import type { ServerProcess } from "../../support/server.ts";
import { startSwitchTo } from "../../support/tcp-switch.ts";
import type { TcpSwitch } from "../../support/tcp-switch.ts";
import { untilSo } from "../../support/turns.ts";
import { HI, MODEL } from "../support.ts";

/** Units of a call; memory is trusted above 500,000. */
const PRICE = 500;
const TRUSTED_ABOVE = 500_000;

let database: TestDatabase;
let books: postgres.Sql;
let upstream: FakeUpstream;
let links: TcpSwitch[];
let nodes: ServerProcess[];
let operator: Operator;

const node = (index: number): ServerProcess => {
  const found = nodes[index];
  if (!found) throw new Error(`no node ${index}`);
  return found;
};

/** When each node last said that it lives, by the database's clock, the oldest first. */
async function signs(): Promise<number[]> {
  const rows = await books`select value from marks where key like 'node:%' order by value`;
  return rows.map((row) => Number(row["value"]));
}

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  books = postgres(database.databaseUrl ?? "", { max: 1, onnotice: () => {} });
  upstream = await startFakeUpstream();
  links = [];
  nodes = [];
  for (let index = 0; index < 2; index++) {
    const link = await startSwitchTo(database.databaseUrl ?? "");
    links.push(link);
    const env = { DATABASE_URL: link.url, ENCRYPTION_KEY: "one key for both nodes" };
    nodes.push(await startServerProcess(env));
    if (index === 0) operator = await startOperator(node(0), { base_url: upstream.url, models: MODEL });
  }
  await operator.send("PUT", "/api/option/", {
    key: "ModelPrice",
    value: JSON.stringify({ [MODEL]: PRICE / 500_000 }),
  });
  const [, youngest = 0] = await signs();
  // A node counts the others right behind its own sign: the first one's next comes after the second has begun.
  await untilSo(async () => ((await signs())[0] ?? 0) > youngest);
}, 90_000);
afterAll(async () => {
  await Promise.all(links.map((link) => link.restore()));
  for (const each of nodes) await each.remove();
  for (const link of links) await link.stop();
  await books.end();
  await database.drop();
  upstream.stop();
}, 60_000);

async function statusOf(index: number): Promise<number> {
  const answer = await fetch(`${node(index).url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: HI }),
  });
  await answer.text();
  return answer.status;
}

async function balance(): Promise<number> {
  const [row] = await books`select quota from users where username = 'root'`;
  return Number(row?.["quota"]);
}

/** Both nodes know it: each has been asked since. */
async function setBalance(units: number): Promise<void> {
  const change = units - (await balance());
  const self = { id: 1, quota_change: change, quota_reason: "for the test" };
  await operator.send("PUT", "/api/user/", self);
  expect(await balance()).toBe(units);
}

test("near the limit 80 calls at once on two nodes, on a balance for 20: 20 are answered, and nothing is too much", async () => {
  await setBalance(20 * PRICE);
  // Refused calls were in the way of each other's holds: they come again, as 429 asks them to.
  let answered = 0;
  for (let round = 0; round < 4; round++) {
    const found = await Promise.all(Array.from({ length: 80 }, (_, call) => statusOf(call % 2)));
    answered += found.filter((status) => status === 200).length;
    expect(found.filter((status) => ![200, 403, 429].includes(status))).toEqual([]);
    expect(answered).toBeLessThanOrEqual(20);
  }
  expect(answered).toBe(20);
  await untilSo(async () => (await balance()) === 0);
});

test("in an outage of five seconds each node spends its half of what was known above the limit, and no unit more", async () => {
  // Of a half 40 calls lie above what memory is trusted with.
  const share = TRUSTED_ABOVE + 40 * PRICE;
  await setBalance(2 * share + 2 * PRICE);
  // Once more on both, so that memory has the balance.
  await untilSo(async () => (await statusOf(0)) === 200);
  await untilSo(async () => (await statusOf(1)) === 200);
  await untilSo(async () => (await balance()) === 2 * share);
  await untilSo(async () => {
    const known = await Promise.all(nodes.map(async ({ url }) => (await fetch(`${url}/readyz`)).json()));
    return known.every((each) => (each as { status: string }).status === "ready");
  });
  await Promise.all(links.map((link) => link.cut()));
  await untilSo(async () => {
    const known = await Promise.all(nodes.map(async ({ url }) => (await fetch(`${url}/readyz`)).json()));
    return known.every((each) => (each as { status: string }).status === "degraded");
  });
  const before = upstream.requests.length;
  const found = await Promise.all(Array.from({ length: 160 }, (_, call) => statusOf(call % 2)));
  const of = (index: number) => found.filter((status, call) => call % 2 === index && status === 200).length;
  for (const index of [0, 1]) {
    expect(of(index)).toBeGreaterThan(0);
    expect(of(index) * PRICE).toBeLessThanOrEqual(share - TRUSTED_ABOVE + PRICE);
  }
  expect(found.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  // Whoever got 503 reached no upstream.
  expect(upstream.requests.length - before).toBe(of(0) + of(1));
  await Promise.all(links.map((link) => link.restore()));
  await untilSo(async () => (await balance()) === 2 * share - (of(0) + of(1)) * PRICE);
  for (const each of nodes) expect(await each.stop()).toBe(0);
  expect(node(0).run(["audit"])).toMatchObject({ code: 0 });
}, 60_000);
