// Wrong passwords and letters, counted over two nodes that share a Valkey: whoever goes from one to the other has no more tries
// than on one. Refuses fixed waits.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import type { TestRedis } from "../support/redis.ts";

setDefaultTimeout(60_000);

/** As src/core/users/sign-in.ts and entry-limits.ts have them: of an account from one address, letters of one address. */
const [WRONG_TRIES, LETTERS] = [10, 10];
const MOST_ROUNDS = 20;

let database: TestDatabase;
let redis: TestRedis;
let nodes: TestApp[];
let visits = 0;

beforeAll(async () => {
  [database, redis] = await Promise.all([createTestDatabase("postgres"), startRedis()]);
  const env = {
    DATABASE_URL: database.databaseUrl ?? "",
    ENCRYPTION_KEY: "one key for both nodes",
    SESSION_SECRET: "one secret for both nodes",
    TRUSTED_PROXIES: "127.0.0.1",
    REDIS_URL: redis.url,
  };
  nodes = [await startTestApp({ env }), await startTestApp({ env })];
});
afterAll(async () => {
  for (const node of nodes) await node.close();
  await redis.remove();
  await database.drop();
});

/** Somebody from an address that nobody came from before. */
function stranger(): TestUser {
  visits += 1;
  return { id: 0, username: "", headers: { "x-forwarded-for": `198.18.${visits >> 8}.${visits & 255}` } };
}

const missed = (): number => nodes.reduce((sum, { deps }) => sum + (deps.valkey?.state().missed ?? 0), 0);

/** Statuses of so many calls, each on the next node; once more where a busy machine kept one from asking. */
async function statuses(
  count: number,
  call: (node: TestApp, who: TestUser) => Promise<string>,
): Promise<string[]> {
  for (let round = 1; ; round++) {
    while (!nodes.every(({ deps }) => deps.valkey?.state().isUp)) await Bun.sleep(5);
    const before = missed();
    const who = stranger();
    const all: string[] = [];
    for (let at = 0; at < count; at++) all.push(await call(nodes[at % nodes.length] as TestApp, who));
    if (missed() === before || round === MOST_ROUNDS) return all;
  }
}

test("a stranger who goes from node to node has ten wrong passwords, not twenty", async () => {
  const owner = await nodes[0]?.createUser();
  const tried = await statuses(WRONG_TRIES + 6, async (node, who) => {
    const body = { username: owner?.username, password: "wrong horse battery" };
    const answer = await node.call("POST", "/api/user/login", body, who);
    return String(answer.body["code"]);
  });
  expect(tried).toEqual([
    ...Array.from({ length: WRONG_TRIES }, () => "login_failed"),
    ...Array.from({ length: 6 }, () => "too_many_attempts"),
  ]);
});

test("letters of one address are counted over both nodes", async () => {
  const asked = await statuses(LETTERS + 4, async (node, who) => {
    const answer = await node.call("GET", "/api/verification?email=a%40mail.example", undefined, who);
    return answer.status === 429 ? "limited" : "let in";
  });
  expect(asked).toEqual([
    ...Array.from({ length: LETTERS }, () => "let in"),
    ...Array.from({ length: 4 }, () => "limited"),
  ]);
});
