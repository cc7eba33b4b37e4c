// The keys of a channel on two nodes with one PostgreSQL: what happens to a key on one is so on the other within a second, and
// caps hold over both together. Refuses fixed waits, as nodes.test.ts beside it.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq, like } from "drizzle-orm";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { answer, gate, refuse, startFakeUpstream } from "../../support/fake-upstream.ts";
import type { FakeUpstream } from "../../support/fake-upstream.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import type { TestDatabase } from "../../support/postgres.ts";
import { HI, until } from "../support.ts";

let database: TestDatabase;
let upstream: FakeUpstream;
let here: TestApp;
let there: TestApp;
let root: TestUser;
let key = "";
let serial = 0;

beforeAll(async () => {
  database = await createTestDatabase("postgres");
  upstream = await startFakeUpstream();
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  here = await startTestApp({ env });
  there = await startTestApp({ env });
  root = await here.createUser({ role: 100, quota: 1_000_000_000 });
  key = (await here.createToken(root.id)).key;
  for (const name of [
    "SelfUseModeEnabled",
    "AutomaticDisableChannelEnabled",
    "AutomaticEnableChannelEnabled",
  ])
    await here.deps.options.set(name, "true");
  await until(() => Promise.resolve(there.deps.options.get("SelfUseModeEnabled") || undefined));
});
afterAll(async () => {
  await here.close();
  await there.close();
  await database.drop();
  upstream.stop();
});
beforeEach(() => upstream.reset());

async function channel(keys: string[], fields: Record<string, unknown> = {}) {
  const model = `nodes-${++serial}`;
  const id = await here.createChannel({
    baseUrl: upstream.url,
    models: model,
    key: keys.join("\n"),
    ...fields,
  });
  await there.deps.routing.reload();
  return { id, model };
}

async function call(node: TestApp, model: string): Promise<Response> {
  const response = await fetch(`${node.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: HI }),
  });
  await response.text();
  return response;
}

const manage = (node: TestApp, id: number, action: string, index: number) =>
  node.call("POST", "/api/channel/multi_key/manage", { channel_id: id, action, key_index: index }, root);
const statesAt = ({ deps }: TestApp, id: number) => [
  deps.routing.channel(id)?.status,
  ...(deps.routing.channel(id)?.keyRows ?? []).map(({ status }) => status),
];
async function soon(id: number, expected: number[]): Promise<void> {
  await until(() =>
    Promise.resolve(
      [here, there].every((node) => Bun.deepEquals(statesAt(node, id), expected)) ? true : undefined,
    ),
  );
}

test("off by hand here, off by itself there, back from either: both nodes call the same keys, and the channel follows", async () => {
  const { enabled, autoDisabled } = ChannelStatus;
  const { id, model } = await channel(["hand", "fails"]);
  await manage(here, id, "disable_key", 0);
  await soon(id, [enabled, 2, 1]);
  // Its provider refuses the last key to the other node: the channel is off on both.
  upstream.always(refuse(401));
  expect((await call(there, model)).status).toBe(502);
  await soon(id, [autoDisabled, 2, 3]);
  const asked = upstream.requests.length;
  expect([(await call(here, model)).status, (await call(there, model)).status]).toEqual([503, 503]);
  expect(upstream.requests).toHaveLength(asked);
  // It works again, as one node finds out: both go on.
  upstream.reset();
  await manage(here, id, "test_key", 1);
  await soon(id, [enabled, 2, 1]);
  upstream.reset();
  expect([(await call(here, model)).status, (await call(there, model)).status]).toEqual([200, 200]);
  expect(upstream.requests.map(({ headers }) => headers["authorization"])).toEqual([
    "Bearer fails",
    "Bearer fails",
  ]);
});

test.each<[string, (id: number, tag: string) => Promise<unknown>]>([
  ["by hand", (id) => manage(here, id, "enable_key", 0)],
  ["with its channel", (id) => here.call("PUT", "/api/channel/", { id, status: 1 }, root)],
  ["with its tag", (_, tag) => here.call("POST", "/api/channel/tag/enabled", { tag }, root)],
])("a key that is switched on (%s) rests on neither node any more", async (_, switchOn) => {
  const { enabled, autoDisabled } = ChannelStatus;
  const { id, model } = await channel(["back", "off"], { tag: `back-${serial + 1}` });
  const { db, routing } = here.deps;
  const { channels, channelKeys } = db.t;
  await db.orm.update(channelKeys).set({ status: 3 }).where(eq(channelKeys.channelId, id));
  await db.orm.update(channels).set({ status: autoDisabled }).where(eq(channels.id, id));
  await routing.refresh([id]);
  await soon(id, [autoDisabled, 3, 3]);
  const rest = { reason: "rejected", restMs: 86_400_000, detail: "" } as const;
  const restsAt = ({ deps }: TestApp) => {
    const found = deps.routing.channel(id);
    return found && deps.keyring.restOf(found, 0, model, deps.clock.monotonicMs())?.reason;
  };
  for (const { deps } of [here, there]) {
    const found = deps.routing.channel(id);
    if (found) deps.keyring.rest(found, 0, rest, deps.clock.monotonicMs());
  }
  // What else is done to a channel wakes nobody.
  await here.call("PUT", "/api/channel/", { id, weight: 3 }, root);
  await until(() => Promise.resolve(there.deps.routing.channel(id)?.weight === 3 || undefined));
  expect([restsAt(here), restsAt(there)]).toEqual(["rejected", "rejected"]);
  await switchOn(id, `back-${serial}`);
  await until(() => Promise.resolve(there.deps.routing.channel(id)?.status === enabled || undefined));
  expect([restsAt(here), restsAt(there)]).toEqual([undefined, undefined]);
});

test("caps are shared out: three at once and five a minute over both nodes together, exactly", async () => {
  await until(() => {
    const places = [here, there].map(({ deps }) => deps.ledger.place());
    const isShared = places.every(({ nodes }) => nodes === 2) && places[0]?.rank !== places[1]?.rank;
    return Promise.resolve(isShared || undefined);
  });
  const atOnce = await channel(["one"], { maxConcurrency: 3 });
  const door = gate();
  upstream.always({ ...answer("hi"), before: door });
  let refused = 0;
  const calls = [here, there].flatMap((node) =>
    Array.from({ length: 5 }, async () => {
      const { status } = await call(node, atOnce.model);
      if (status === 429) refused++;
      return status;
    }),
  );
  await until(() => Promise.resolve((refused === 7 && upstream.requests.length === 3) || undefined));
  door.open();
  const statuses = await Promise.all(calls);
  expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  const perMinute = await channel(["one"], { rpmLimit: 5 });
  upstream.reset();
  const minute = await Promise.all(
    [here, there].flatMap((node) => Array.from({ length: 5 }, () => call(node, perMinute.model))),
  );
  expect(minute.filter(({ status }) => status === 200)).toHaveLength(5);
  expect(upstream.requests).toHaveLength(5);
});

test("what probes may cost in a day both nodes spend together", async () => {
  const { id, model } = await channel(["resting"]);
  upstream.always(refuse(500));
  for (const node of [here, there]) for (let calls = 0; calls < 3; calls++) await call(node, model);
  const isOpen = ({ deps }: TestApp): boolean => {
    const found = deps.routing.channel(id);
    const cells = found ? deps.picker.cells(found, deps.clock.monotonicMs()) : [];
    return cells.some(({ model: of, state }) => of === model && state !== "closed");
  };
  expect([isOpen(here), isOpen(there)]).toEqual([true, true]);
  const { marks } = here.deps.db.t;
  const spent = async () => {
    const rows = await here.deps.db.orm.select().from(marks).where(like(marks.key, "probe_quota:%"));
    return rows.map(({ value }) => value);
  };
  const probed = async (node: TestApp): Promise<number> => {
    upstream.requests.length = 0;
    await node.services.gateway.watch.warm();
    return upstream.requests.length;
  };
  const allow = async (most: number): Promise<void> => {
    await here.deps.options.set("relay.probe_max_quota_per_day", String(most));
    await until(() =>
      Promise.resolve(there.deps.options.get("relay.probe_max_quota_per_day") === most || undefined),
    );
  };
  await allow(1_000_000);
  expect(await probed(here)).toBe(1);
  const [one = 0] = await spent();
  expect(one).toBeGreaterThan(1);
  // One unit short of a second one: the other node, which has asked nothing yet, knows it too.
  await allow(2 * one - 1);
  expect(await probed(there)).toBe(0);
  expect(await spent()).toEqual([one]);
  await allow(2 * one);
  expect(await probed(there)).toBe(1);
  expect(await spent()).toEqual([2 * one]);
});
