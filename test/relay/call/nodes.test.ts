// Two nodes on one PostgreSQL: what is changed on one is in force on the other within a second, and no balance is
// spent twice. Refuses fixed waits: the other node is asked again and again until it obeys or the second is over.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { desc, eq, sql } from "drizzle-orm";
import { audit } from "../../../src/core/ledger/audit.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { answer, gate, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { HI, MODEL } from "../support.ts";
import { nextLook } from "../../support/turns.ts";
import { startStretch } from "../../support/stretch.ts";

const LIMIT_MS = 1000;
/** Units per call, as a price in dollars. */
const dollars = (units: number) => JSON.stringify({ [MODEL]: units / 500_000 });

let database: TestDatabase;
let upstream: FakeUpstream;
/** Where things are changed, and where they must be in force. */
let here: TestApp;
let there: TestApp;
let root: TestUser;
let channelId: number;

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  upstream = await startFakeUpstream();
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  here = await startTestApp({ env });
  there = await startTestApp({ env });
  root = await here.createUser({ role: 100 });
  channelId = await here.createChannel({ baseUrl: upstream.url, models: MODEL, name: "shared" });
  await there.deps.routing.reload();
  await change("PUT", "/api/option/", { key: "ModelPrice", value: dollars(10) });
});
afterAll(async () => {
  await here.close();
  await there.close();
  await database.drop();
  upstream.stop();
});

async function change(method: string, path: string, body?: unknown, as = root): Promise<void> {
  expect((await here.call(method, path, body, as)).body).toMatchObject({ success: true });
}

async function chat(node: TestApp, key: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${node.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: HI }),
  });
  return { status: response.status, text: await response.text() };
}

/** A user with a key that the other node has already seen and keeps in memory. */
async function knownCaller(quota = 1_000_000): Promise<{ user: TestUser; key: string; tokenId: number }> {
  const user = await here.createUser({ quota });
  const { id, key } = await here.createToken(user.id);
  expect((await chat(there, key)).status).toBe(200);
  return { user, key, tokenId: id };
}

/** Looks until it is so, at most for the second that the guarantee allows. */
async function soon(isSo: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  const stretch = startStretch();
  for (let looks = 0; !(await isSo()); looks++) {
    if (performance.now() - startedMs > LIMIT_MS * stretch())
      throw new Error(`not in force after ${LIMIT_MS} ms`);
    await nextLook(looks);
  }
}

async function newestCharge(node: TestApp): Promise<number | undefined> {
  await node.deps.ledger.flush();
  const { logs } = node.deps.db.t;
  const rows = await node.deps.db.orm.select().from(logs).orderBy(desc(logs.id)).limit(1);
  return rows[0]?.quota;
}

describe("a change on one node is in force on the other within a second", () => {
  test("a disabled user: calls and sessions are refused", async () => {
    const { user, key } = await knownCaller();
    expect((await there.call("GET", "/api/user/self", undefined, user)).status).toBe(200);
    await change("POST", "/api/user/manage", { id: user.id, action: "disable" });
    await soon(async () => (await chat(there, key)).status === 403);
    await soon(async () => (await there.call("GET", "/api/user/self", undefined, user)).status === 401);
  });

  test("a revoked key, and one that is switched off", async () => {
    for (const revoke of [
      (id: number, as: TestUser) => change("DELETE", `/api/token/${id}`, undefined, as),
      (id: number, as: TestUser) => change("PUT", "/api/token/?status_only=true", { id, status: 2 }, as),
    ]) {
      const { user, key, tokenId } = await knownCaller();
      await revoke(tokenId, user);
      await soon(async () => (await chat(there, key)).status === 401);
    }
  });

  test("a key's model limits", async () => {
    const { user, key, tokenId } = await knownCaller();
    await change(
      "PUT",
      "/api/token/",
      { id: tokenId, model_limits_enabled: true, model_limits: "another" },
      user,
    );
    await soon(async () => (await chat(there, key)).status === 403);
  });

  test("a new key of a user whom the other node knows", async () => {
    const { user } = await knownCaller();
    const { key } = await here.createToken(user.id);
    await soon(async () => (await chat(there, key)).status === 200);
  });

  test("a raised balance", async () => {
    const { user, key } = await knownCaller(10);
    expect((await chat(there, key)).status).toBe(403);
    await change("PUT", "/api/user/", { id: user.id, quota: 1000 });
    await soon(async () => (await chat(there, key)).status === 200);
  });

  test("a price", async () => {
    const { key } = await knownCaller();
    expect(await newestCharge(there)).toBe(10);
    await change("PUT", "/api/option/", { key: "ModelPrice", value: dollars(70) });
    await soon(async () => {
      expect((await chat(there, key)).status).toBe(200);
      return (await newestCharge(there)) === 70;
    });
    await change("PUT", "/api/option/", { key: "ModelPrice", value: dollars(10) });
    await soon(async () => (await chat(there, key)).status === 200 && (await newestCharge(there)) === 10);
  });

  test("an option without a price: the site's name", async () => {
    await change("PUT", "/api/option/", { key: "SystemName", value: "Weir of two" });
    await soon(async () => (await there.call("GET", "/api/status")).text.includes("Weir of two"));
  });

  test("a channel: disabled, enabled again, moved, and one more model", async () => {
    const { key } = await knownCaller();
    const update = (fields: object) => change("PUT", "/api/channel/", { id: channelId, ...fields });
    await update({ status: 2 });
    await soon(async () => (await chat(there, key)).status === 503);
    await update({ status: 1 });
    await soon(async () => (await chat(there, key)).status === 200);
    const moved = await startFakeUpstream();
    await update({ base_url: moved.url });
    await soon(async () => {
      expect((await chat(there, key)).status).toBe(200);
      return moved.requests.length > 0;
    });
    await update({ base_url: upstream.url, models: `${MODEL},brand-new` });
    await soon(async () => {
      const list = await fetch(`${there.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      return (await list.text()).includes("brand-new");
    });
    moved.stop();
  });
});

test("what one node quotes another charges, though the price has changed", async () => {
  const { key } = await knownCaller();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = { model: MODEL, messages: HI };
  const told = await fetch(`${here.url}/v1/quote`, {
    method: "POST",
    headers,
    body: JSON.stringify({ path: "/v1/chat/completions", body }),
  });
  const { quote_id: id, expected } = (await told.json()) as { quote_id: string; expected: number };
  expect(expected).toBe(10);
  await change("PUT", "/api/option/", { key: "ModelPrice", value: dollars(25) });
  const chargeWith = async (more: Record<string, string>) => {
    const response = await fetch(`${there.url}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify(body),
    });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    return newestCharge(there);
  };
  await soon(async () => (await chargeWith({})) === 25);
  expect(await chargeWith({ "x-quote": id })).toBe(10);
  await change("PUT", "/api/option/", { key: "ModelPrice", value: dollars(10) });
  await soon(async () => (await chargeWith({})) === 10);
});

test("an edited channel wakes no other one, and itself only with other keys or another address, on every node", async () => {
  const resting = await here.createChannel({ baseUrl: upstream.url, models: "rests", key: "one\ntwo" });
  const edited = await here.createChannel({ baseUrl: upstream.url, models: "edited" });
  await there.deps.routing.reload();
  const nodes = [here, there];
  const states = () =>
    nodes.map(({ deps, services }) => {
      const channel = deps.routing.channel(resting);
      const keys = channel ? deps.keyring.states(channel) : [];
      return [
        services.gateway.relay.parts.picker.rests(resting, 0).length > 0,
        keys.filter(({ restsUntilMs }) => restsUntilMs > 0).length,
      ];
    });
  for (const { deps, services } of nodes) {
    const nowMs = deps.clock.monotonicMs();
    const channel = deps.routing.channel(resting);
    if (!channel) throw new Error("no channel");
    services.gateway.relay.parts.picker.failed(
      channel,
      "rests",
      { reason: "rejected", isWhole: true, beganMs: nowMs },
      nowMs,
    );
    deps.keyring.rest(channel, 1, { reason: "rejected", restMs: 600_000, detail: "" }, nowMs);
  }
  const asleep = [true, 1];
  const weightOf = (node: TestApp, id: number) => node.deps.routing.channel(id)?.weight;
  await change("PUT", "/api/channel/", { id: edited, weight: 7 });
  await soon(() => Promise.resolve(weightOf(there, edited) === 7));
  expect(states()).toEqual([asleep, asleep]);
  // The same after a lost announcement, when every row is read anew.
  const { channels, marks } = here.deps.db.t;
  await here.deps.db.orm.update(channels).set({ weight: 8 }).where(eq(channels.id, edited));
  await here.deps.db.orm
    .update(marks)
    .set({ value: sql`${marks.value} + 1` })
    .where(eq(marks.key, "version:channels"));
  await soon(() => Promise.resolve(nodes.every((node) => weightOf(node, edited) === 8)));
  expect(states()).toEqual([asleep, asleep]);
  await change("PUT", "/api/channel/", { id: resting, weight: 9 });
  await soon(() => Promise.resolve(weightOf(there, resting) === 9));
  expect(states()).toEqual([asleep, asleep]);
  await change("PUT", "/api/channel/", { id: resting, key: "one\nthree" });
  const awake = JSON.stringify([
    [false, 0],
    [false, 0],
  ]);
  await soon(() => Promise.resolve(JSON.stringify(states()) === awake));
});

test("300 concurrent calls over both nodes against a balance for 100: exactly 100 succeed, the books agree", async () => {
  const user = await here.createUser({ quota: 1000 });
  const { key } = await here.createToken(user.id);
  upstream.reset();
  const door = gate();
  upstream.always({ ...answer("ok"), before: door });
  const calls = Promise.all(
    Array.from({ length: 300 }, (_, number) => chat(number % 2 === 0 ? here : there, key)),
  );
  // All admitted calls wait at the upstream's door: nobody's charge can make room for another.
  await upstream.request(99);
  door.open();
  const statuses = (await calls).map((each) => each.status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(100);
  // Held beside them for the moment, or empty once they have been charged.
  expect(statuses.filter((status) => status === 429 || status === 403)).toHaveLength(200);
  expect(upstream.requests).toHaveLength(100);
  await here.deps.ledger.flush();
  await there.deps.ledger.flush();
  const { data } = (await here.call<{ data: object }>("GET", "/api/user/self", undefined, user)).body;
  expect(data).toMatchObject({ quota: 0, used_quota: 1000, request_count: 100 });
  expect((await audit(here.deps.db)).differences).toEqual([]);
  expect(await here.deps.db.orm.select().from(here.deps.db.t.reservations)).toEqual([]);
}, 60_000);
