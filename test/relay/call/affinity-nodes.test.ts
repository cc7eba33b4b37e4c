// Sessions stay on one channel and key on whichever node their calls arrive, where nodes share a Valkey; it may go, hang or
// forget everything at any moment, and no call fails or is held up by that.
// Refuses fixed waits: what is written behind a call is looked for until it is there.
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { eq } from "drizzle-orm";
import { bindingIn } from "../../../src/core/channels/shared-affinity.ts";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { answer, refuseUntil, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { startRedis } from "../../support/redis.ts";
import type { TestRedis } from "../../support/redis.ts";
import { nextLook } from "../../support/turns.ts";

setDefaultTimeout(60_000);

const SESSION = "x-claude-code-session-id";
const CACHE = "/api/option/channel_affinity_cache";

let database: TestDatabase;
let upstream: FakeUpstream;
let redis: TestRedis;
let nodes: [TestApp, TestApp];
let root: TestUser;
let user: TestUser;
let key: string;
let env: Record<string, string>;
let serial = 0;

beforeAll(async () => {
  [database, redis, upstream] = await Promise.all([
    createTestDatabase("postgres"),
    startRedis(),
    startFakeUpstream(),
  ]);
  env = {
    DATABASE_URL: database.databaseUrl ?? "",
    ENCRYPTION_KEY: "one key for both nodes",
    REDIS_URL: redis.url,
  };
  // What Valkey says is waited for on a busy machine too; paused, it must still hold up nobody for long.
  nodes = [await startTestApp({ env, valkeyTicks: 100 }), await startTestApp({ env, valkeyTicks: 100 })];
  root = await nodes[0].createUser({ role: 100 });
  user = await nodes[0].createUser({ quota: 1_000_000_000 });
  ({ key } = await nodes[0].createToken(user.id));
  for (const [name, value] of [
    ["SelfUseModeEnabled", "true"],
    ["RetryTimes", "3"],
  ])
    expect((await nodes[0].call("PUT", "/api/option/", { key: name, value }, root)).body).toMatchObject({
      success: true,
    });
});
afterAll(async () => {
  for (const node of nodes) await node.close();
  await redis.remove();
  await database.drop();
  upstream.stop();
});
beforeEach(async () => {
  upstream.reset();
  upstream.always(() => answer("done"));
  for (const node of nodes) await node.deps.affinity.clear();
});

async function until(isSo: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
  const startedMs = performance.now();
  for (let looks = 0; !(await isSo()); looks++) {
    if (performance.now() - startedMs > limitMs) throw new Error(`not so after ${limitMs} ms`);
    await nextLook(looks);
  }
}

/** Three channels of four keys, known to both nodes. Channels and keys take turns: without a session each node begins elsewhere. */
async function channels(): Promise<{ model: string; ids: number[] }> {
  const model = `wide-${++serial}`;
  const ids: number[] = [];
  for (let at = 0; at < 3; at++) {
    const names = [0, 1, 2, 3].map((name) => `${model}-${at}-${name}`);
    ids.push(await nodes[0].createChannel({ baseUrl: upstream.url, models: model, key: names.join("\n") }));
  }
  await nodes[1].deps.routing.reload();
  await turn(nodes[1], model, "");
  upstream.reset();
  upstream.always(() => answer("done"));
  return { model, ids };
}

async function turn(node: TestApp, model: string, session: string): Promise<number> {
  const response = await fetch(`${node.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(session === "" ? {} : { [SESSION]: session }),
    },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "go on" }] }),
  });
  await response.text();
  return response.status;
}

const keysAsked = (from = 0): string[] =>
  upstream.requests
    .slice(from)
    .map(({ headers }) => String(headers["authorization"]).slice("Bearer ".length));

/** Questions that were not answered in time, on both nodes: all that is in here shares one event loop. */
const missed = (): number => nodes.reduce((sum, { deps }) => sum + (deps.valkey?.state().missed ?? 0), 0);

const MOST_TRIES = 20;

/**
 * What holds of sessions whose questions Valkey answers in time: where one of them was late, which a busy machine does, the
 * session may stand elsewhere for a call, and another one is taken.
 */
async function answered(holds: (session: string) => Promise<void>): Promise<string> {
  for (let at = 1; ; at++) {
    const session = `session ${++serial}`;
    const before = missed();
    try {
      await holds(session);
      if (missed() === before || at >= MOST_TRIES) return session;
    } catch (error) {
      if (missed() === before || at >= MOST_TRIES) throw error;
    }
  }
}

/** A session that was bound on one node and is known to the other, with the one key that both asked. */
async function boundOnBoth(model: string): Promise<{ session: string; home: string }> {
  let home = "";
  const session = await answered(async (name) => {
    const from = upstream.requests.length;
    for (const node of nodes) expect(await turn(node, model, name)).toBe(200);
    const asked = new Set(keysAsked(from));
    expect(asked.size).toBe(1);
    [home = ""] = asked;
  });
  return { session, home };
}

const sharedKeys = async (): Promise<string[]> => (await redis.command("KEYS", "*:aff:*")) as string[];
const sharedTexts = async (): Promise<string[]> =>
  Promise.all((await sharedKeys()).map(async (name) => String(await redis.command("GET", name))));

const hashOf = (secret: string): string => new Bun.CryptoHasher("sha256").update(secret).digest("hex");

/** The one session that the node knew is gone from its memory. */
const isForgotten = ({ deps }: TestApp): boolean => deps.affinity.isEmpty();

const isUp = (): boolean => nodes.every(({ deps }) => deps.valkey?.state().isUp);

test("thirty turns over two nodes by turns: one key, also while Valkey is killed in between", async () => {
  const { model } = await channels();
  const { session, home } = await boundOnBoth(model);
  const from = upstream.requests.length;
  for (let at = 2; at < 30; at++) {
    if (at === 10) await redis.stop();
    if (at === 20) {
      await redis.start();
      await until(isUp);
    }
    expect(await turn(nodes[at % 2] as TestApp, model, session)).toBe(200);
  }
  expect(keysAsked(from)).toEqual(Array.from({ length: 28 }, () => home));
  // What was lost with Valkey is written again: a node that comes later knows by the others.
  await until(async () => {
    for (const node of nodes) await turn(node, model, session);
    return (await sharedTexts()).some((text) => text.includes(` ${hashOf(home)} `));
  });
  const late = await startTestApp({ env, valkeyTicks: 100 });
  const before = upstream.requests.length;
  expect(await turn(late, model, session)).toBe(200);
  const isLate = (late.deps.valkey?.state().missed ?? 0) > 0;
  await late.close();
  if (!isLate) expect(keysAsked(before)).toEqual([home]);
});

test("what Valkey holds names no session, no user and no key of a channel, and ends with its time", async () => {
  const { model } = await channels();
  await turn(nodes[0], model, "a-name-of-a-session");
  await until(async () => (await sharedKeys()).length === 1);
  const [name = ""] = await sharedKeys();
  const [text = ""] = await sharedTexts();
  expect(name).toMatch(/^weir:[0-9a-z]+\.[0-9a-z]+\.[0-9a-z]+:aff:[0-9a-f]{32}$/);
  expect(`${name} ${text}`).not.toMatch(new RegExp(`a-name|${keysAsked()[0]}|${key}|${user.username}`));
  expect(bindingIn(text)).toMatchObject({ rule: "session-header", ttlMs: 3_600_000 });
  const left = Number(await redis.command("PTTL", name));
  expect(left).toBeGreaterThan(3_590_000);
  expect(left).toBeLessThanOrEqual(3_600_000);
});

test("a session that has to leave its key leaves it on every node, and both go to one new place", async () => {
  const { model, ids } = await channels();
  let moved = "";
  const session = await answered(async (name) => {
    upstream.always(() => answer("done"));
    for (const node of nodes) await node.deps.affinity.clear();
    for (const node of nodes) await turn(node, model, name);
    const [home = ""] = keysAsked(-1);
    const before = upstream.requests.length;
    upstream.always((request) =>
      String(request.headers["authorization"]).endsWith(home) ? refuseUntil(600) : answer("done"),
    );
    expect(await turn(nodes[0], model, name)).toBe(200);
    moved = keysAsked(before).at(-1) ?? "";
    expect(moved).not.toBe(home);
    // At the other node nothing rests, and the upstream would answer by now: it goes to the new place all the same.
    upstream.always(() => answer("done"));
    await until(async () => (await sharedTexts()).some((text) => text.includes(` ${hashOf(moved)} `)));
    await until(() => isForgotten(nodes[1]));
    const from = upstream.requests.length;
    for (let at = 0; at < 6; at++) expect(await turn(nodes[(at + 1) % 2] as TestApp, model, name)).toBe(200);
    expect(new Set(keysAsked(from))).toEqual(new Set([moved]));
  });
  // What stands in Valkey is a wish: a channel that is off on one node alone is passed by there without an error.
  const { db, routing } = nodes[1].deps;
  const channel = ids[Number(moved.split("-")[2])] ?? 0;
  await db.orm
    .update(db.t.channels)
    .set({ status: ChannelStatus.disabled })
    .where(eq(db.t.channels.id, channel));
  await routing.refresh([channel]);
  expect(await turn(nodes[1], model, session)).toBe(200);
  expect(keysAsked().at(-1)?.split("-")[2]).not.toBe(moved.split("-")[2]);
});

test("nodes that bind sessions at one moment agree after it", async () => {
  const { model } = await channels();
  await answered(async (name) => {
    const sessions = Array.from({ length: 8 }, (_, at) => `${name} ${at}`);
    await Promise.all(sessions.flatMap((session) => nodes.map((node) => turn(node, model, session))));
    for (const session of sessions) for (const node of nodes) await turn(node, model, session);
    for (const session of sessions) {
      const from = upstream.requests.length;
      for (const node of nodes) expect(await turn(node, model, session)).toBe(200);
      expect([session, new Set(keysAsked(from)).size]).toEqual([session, 1]);
    }
  });
});

test("emptied and paused, Valkey holds up no call and moves no session", async () => {
  const { model } = await channels();
  const { session, home } = await boundOnBoth(model);
  await redis.flush();
  const steady: string[] = [];
  const next = async (node: TestApp): Promise<void> => {
    const from = upstream.requests.length;
    expect(await turn(node, model, session)).toBe(200);
    steady.push(...keysAsked(from));
  };
  for (const node of nodes) await next(node);
  redis.pause();
  try {
    for (let at = 0; at < 10; at++) {
      const node = nodes[at % 2] as TestApp;
      await next(node);
      // Nobody knows these: each would ask.
      expect(await turn(node, model, `new ${at}`)).toBe(200);
    }
  } finally {
    redis.resume();
  }
  expect(steady).toEqual(Array.from({ length: 12 }, () => home));
  await until(isUp);
});

test("the calls that count and forget bindings are of all nodes; away, they say that they are of one", async () => {
  const { model } = await channels();
  for (const session of ["a", "b", "c"]) await turn(nodes[0], model, session);
  await turn(nodes[1], model, "d");
  await until(async () => (await sharedKeys()).length === 4);
  for (const node of nodes)
    expect((await node.call("GET", CACHE, undefined, root)).body).toMatchObject({
      data: { total: 4, by_rule_name: { "session-header": 4 }, is_shared: true },
    });
  const places = keysAsked();
  expect((await nodes[1].call("DELETE", `${CACHE}?rule_name=other`, undefined, root)).body).toMatchObject({
    data: { deleted: 0, is_shared: true },
  });
  expect(
    (await nodes[1].call("DELETE", `${CACHE}?rule_name=session-header`, undefined, root)).body,
  ).toMatchObject({ data: { deleted: 4, is_shared: true } });
  await until(() => nodes.every(({ deps }) => deps.affinity.isEmpty()));
  expect(await sharedKeys()).toEqual([]);
  expect(places).toHaveLength(4);
  await turn(nodes[0], model, "a");
  await redis.stop();
  await until(() => !nodes[1].deps.valkey?.state().isUp);
  expect((await nodes[1].call("GET", CACHE, undefined, root)).body).toMatchObject({
    data: { total: 0, is_shared: false },
  });
  expect((await nodes[1].call("DELETE", `${CACHE}?all=true`, undefined, root)).body).toMatchObject({
    data: { deleted: 0, is_shared: false },
  });
  await redis.start();
  await until(isUp);
});

test("what somebody else writes in their place binds nobody", async () => {
  const { model } = await channels();
  await turn(nodes[0], model, "forged");
  await until(async () => (await sharedKeys()).length === 1);
  const [name = ""] = await sharedKeys();
  for (const text of [
    "",
    "no such thing",
    `999999 ${"0".repeat(64)} 0 3600000 session-header`,
    "1 - 9 1 x",
  ]) {
    await redis.command("SET", name, text, "PX", "100000");
    const fresh = nodes[1];
    expect(await turn(fresh, model, "forged")).toBe(200);
    await nodes[1].deps.affinity.clear();
  }
  for (const text of ["", "x", "1 - 0 1", `-1 ${"0".repeat(64)} 0 1 r`, "1e3 - 0 1 r"])
    expect(bindingIn(text)).toBeUndefined();
});
