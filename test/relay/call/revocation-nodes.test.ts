// What is taken from somebody on one node is refused by the other within 100 ms where they share a Valkey, also while
// PostgreSQL's announcements do not arrive; without Valkey within a second.
// Refuses fixed waits: the other node is asked again and again until it obeys.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { sql } from "drizzle-orm";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { startRedis } from "../../support/redis.ts";
import type { TestRedis } from "../../support/redis.ts";
import { HI, MODEL } from "../support.ts";

setDefaultTimeout(60_000);

const QUICK_MS = 100;
const LIMIT_MS = 1000;
/**
 * Of so many tries the middle one counts, of the second number where the first says no: a test shares its processor with others. By
 * the table alone it would take up to half a second.
 */
const TRIES = [3, 9] as const;
/** Two rounds for every connection that a node may have. */
const BUSY_QUERIES = 20;
const BUSY_HEARD_MS = 300;

let database: TestDatabase;
let upstream: FakeUpstream;
let redis: TestRedis;
/** Where it is taken, and where it must be refused. */
let here: TestApp;
let there: TestApp;
let root: TestUser;

beforeAll(async () => {
  [database, redis, upstream] = await Promise.all([
    createTestDatabase("postgres"),
    startRedis(),
    startFakeUpstream(),
  ]);
});
afterAll(async () => {
  await redis.remove();
  await database.drop();
  upstream.stop();
});

async function startNodes(more: Record<string, string>): Promise<void> {
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes", ...more };
  here = await startTestApp({ env });
  there = await startTestApp({ env });
  root = await here.createUser({ role: 100 });
}

async function change(method: string, path: string, body?: unknown, as = root): Promise<void> {
  expect((await here.call(method, path, body, as)).body).toMatchObject({ success: true });
}

async function chat(key: string, model = MODEL): Promise<number> {
  const response = await fetch(`${there.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: HI }),
  });
  await response.text();
  return response.status;
}

/** A user with a key, both of which the other node keeps in memory. */
async function knownCaller(quota = 1_000_000): Promise<{ user: TestUser; key: string; tokenId: number }> {
  const user = await here.createUser({ quota });
  const { id, key } = await here.createToken(user.id);
  expect(await chat(key)).toBe(200);
  expect((await there.call("GET", "/api/user/self", undefined, user)).status).toBe(200);
  return { user, key, tokenId: id };
}

/** A channel that serves this key on the other node. */
async function knownChannel(key: string): Promise<{ id: number; model: string }> {
  const model = `gone-${crypto.randomUUID()}`;
  const id = await here.createChannel({ baseUrl: upstream.url, models: model });
  await change("PUT", "/api/channel/", { id, name: "known to both" });
  while ((await chat(key, model)) !== 200);
  return { id, model };
}

/** From the answer to the change until the other node refuses what comes to it then. */
async function refusedAfterMs(asks: () => Promise<number>, status: number): Promise<number> {
  const startedMs = performance.now();
  for (;;) {
    // How long a refusal takes is not how long it took to be in force.
    const ms = performance.now() - startedMs;
    if ((await asks()) === status) return ms;
    if (ms > LIMIT_MS) throw new Error(`not refused after ${LIMIT_MS} ms`);
  }
}

/** What is taken, once: how long the other node went on. */
const TAKEN: Record<string, () => Promise<number>> = {
  "a key that is switched off": async () => {
    const { user, key, tokenId } = await knownCaller();
    await change("PUT", "/api/token/?status_only=true", { id: tokenId, status: 2 }, user);
    return refusedAfterMs(() => chat(key), 401);
  },
  "a user who is disabled": async () => {
    const { user, key } = await knownCaller();
    await change("POST", "/api/user/manage", { id: user.id, action: "disable" });
    return refusedAfterMs(() => chat(key), 403);
  },
  "a session that is ended": async () => {
    const { user } = await knownCaller();
    await here.deps.sessions.endAll(user.id, "test");
    return refusedAfterMs(
      async () => (await there.call("GET", "/api/user/self", undefined, user)).status,
      401,
    );
  },
  "a channel that is switched off": async () => {
    const { key } = await knownCaller();
    const { id, model } = await knownChannel(key);
    await change("PUT", "/api/channel/", { id, status: ChannelStatus.disabled });
    return refusedAfterMs(() => chat(key, model), 503);
  },
};

async function usually(taken: () => Promise<number>): Promise<number> {
  const tries: number[] = [];
  const middle = (): number => tries.sort((a, b) => a - b)[Math.floor(tries.length / 2)] ?? Infinity;
  for (const count of TRIES) {
    while (tries.length < count) tries.push(await taken());
    if (middle() < QUICK_MS) break;
  }
  return middle();
}

/** Ends the connections that listen again and again: no announcement of PostgreSQL's arrives meanwhile. */
function deafen(app: TestApp): () => Promise<void> {
  let isOver = false;
  const cutting = (async () => {
    while (!isOver)
      await app.deps.db.orm
        .select({ isCut: sql`pg_terminate_backend(pid)`, waited: sql`pg_sleep(0.01)` })
        .from(
          sql`(select pid from pg_stat_activity where query ilike 'listen%' and datname = current_database()) as s`,
        );
  })();
  return async () => {
    isOver = true;
    await cutting;
  };
}

describe.each([
  ["with Valkey", true],
  ["without Valkey", false],
] as const)("%s", (_, isShared) => {
  beforeAll(async () => {
    await startNodes(isShared ? { REDIS_URL: redis.url } : {});
    const channel = await here.createChannel({ baseUrl: upstream.url, models: MODEL });
    await change("PUT", "/api/channel/", { id: channel, name: "shared" });
    await change("PUT", "/api/option/", { key: "SelfUseModeEnabled", value: "true" });
    const { key } = await here.createToken((await here.createUser({ quota: 1_000_000 })).id);
    while ((await chat(key)) !== 200);
  });
  afterAll(async () => {
    await there.close();
    await here.close();
  });

  test.each(Object.entries(TAKEN))("%s", async (name, taken) => {
    const ms = await usually(taken);
    if (Bun.env["WEIR_PRINT"])
      console.log(`${isShared ? "both ways" : "LISTEN alone"}: ${name}: ${ms.toFixed(1)} ms`);
    expect(ms).toBeLessThan(isShared ? QUICK_MS : LIMIT_MS);
  });

  test("a key, a user and a channel are refused while all of the other node's connections are busy", async () => {
    const one = await knownCaller(100_000_000);
    const two = await knownCaller(100_000_000);
    const three = await knownCaller(100_000_000);
    const { id, model } = await knownChannel(three.key);
    // As settlements of a busy node have them.
    const busy = Array.from({ length: BUSY_QUERIES }, () =>
      there.deps.db.orm
        .select({ slept: sql`pg_sleep(0.5)::text` })
        .from(sql`(select 1) as once`)
        .then(() => undefined),
    );
    await change("PUT", "/api/token/?status_only=true", { id: one.tokenId, status: 2 }, one.user);
    await change("POST", "/api/user/manage", { id: two.user.id, action: "disable" });
    await change("PUT", "/api/channel/", { id, status: ChannelStatus.disabled });
    // Long before one of them is free; how quick it is on an idle node is looked at above.
    const fromMs = performance.now() + BUSY_HEARD_MS;
    const late: Promise<number>[] = [];
    while (performance.now() < fromMs + BUSY_HEARD_MS) {
      // Whoever comes from then on waits for the row, and is refused by it.
      if (performance.now() >= fromMs) late.push(chat(one.key), chat(two.key), chat(three.key, model));
      await Bun.sleep(10);
    }
    late.push(chat(one.key), chat(two.key), chat(three.key, model));
    expect(new Set(await Promise.all(late))).toEqual(new Set([401, 403, 503]));
    await Promise.all(busy);
  });

  if (!isShared) return;

  test("while PostgreSQL's announcements do not arrive, all of it is as quick", async () => {
    const hearing = deafen(here);
    try {
      for (const [name, taken] of Object.entries(TAKEN)) {
        const ms = await usually(taken);
        if (Bun.env["WEIR_PRINT"]) console.log(`Valkey alone: ${name}: ${ms.toFixed(1)} ms`);
        expect([name, ms < QUICK_MS ? "quick" : ms]).toEqual([name, "quick"]);
      }
    } finally {
      await hearing();
    }
  });

  test("what changed while Valkey was away, too, is in force within a second, and then quickly again", async () => {
    const { user, key } = await knownCaller();
    await redis.stop();
    await change("POST", "/api/user/manage", { id: user.id, action: "disable" });
    await refusedAfterMs(() => chat(key), 403);
    await redis.start();
    for (const { deps } of [here, there]) while (!deps.valkey?.state().isUp) await Bun.sleep(5);
    const hearing = deafen(here);
    try {
      // The subscription comes back beside the connection that asks: until it has, the table tells.
      for (let at = 0; ((await TAKEN["a user who is disabled"]?.()) ?? 0) >= QUICK_MS; at++)
        expect(at).toBeLessThan(20);
    } finally {
      await hearing();
    }
  });
});
