// Which channel and which key a realtime session is opened with: the policy of every other call. One bad key never takes
// the whole channel while another works.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { ChannelStatus, LogType } from "../../../src/shared/enums.ts";
import { GREETING, REALTIME_USAGE, responseDone, startFakeRealtime } from "../../support/fake-realtime.ts";
import type { FakeRealtime } from "../../support/fake-realtime.ts";
import { until } from "../support.ts";
import { startRealtimeGateway } from "./support.ts";
import type { RealtimeGateway, SocketClient } from "./support.ts";

let g: RealtimeGateway;
let other: FakeRealtime;
let models = 0;

beforeAll(async () => {
  g = await startRealtimeGateway();
  other = startFakeRealtime();
  await g.setOption("SelfUseModeEnabled", "true");
  await g.setOption("AutomaticDisableChannelEnabled", "true");
});
afterAll(async () => {
  await g.close();
  other.stop();
});
beforeEach(() => g.setOption("RetryTimes", "1"));
afterEach(async () => {
  const user = await g.app.deps.accounts.user(g.user.id);
  expect(user?.reserved).toBe(0);
});

async function channel(fields: Record<string, unknown>): Promise<{ id: number; query: string }> {
  const model = typeof fields["models"] === "string" ? fields["models"] : `keys-realtime-${++models}`;
  const id = await g.app.createChannel({ baseUrl: g.upstream.url, models: model, ...fields });
  return { id, query: `?model=${model}` };
}

async function opened(query: string): Promise<SocketClient> {
  const client = await g.open({ query });
  expect(await client.next()).toEqual(GREETING);
  return client;
}

async function end(client: SocketClient): Promise<void> {
  client.socket.close(1000);
  await client.closed;
  await until(async () => {
    const user = await g.app.deps.accounts.user(g.user.id);
    return user?.reserved === 0 ? true : undefined;
  });
}

const lastKey = (): string =>
  (g.upstream.connections.items.at(-1)?.headers.get("authorization") ?? "").replace("Bearer ", "");
const statusOf = (id: number): number | undefined => g.app.deps.routing.channel(id)?.status;

async function errorRows(channelId: number) {
  await g.app.deps.ledger.flush();
  const { logs } = g.app.deps.db.t;
  const rows = await g.app.deps.db.orm.select().from(logs).where(eq(logs.channelId, channelId));
  return rows
    .filter((row) => row.type === LogType.error)
    .map((row) => ({ ...row, other: JSON.parse(row.other) as Record<string, unknown> }));
}

test("of two keys a rejected one rests alone: the session opens on the other, and the channel stays in service", async () => {
  const { id, query } = await channel({ key: "first-key\nsecond-key" });
  g.upstream.refuse(401);
  const client = await opened(query);
  expect(lastKey()).toBe("second-key");
  await end(client);
  const parsed = g.app.deps.routing.channel(id);
  expect(parsed && g.app.deps.keyring.states(parsed)).toMatchObject([
    { index: 0, reason: "rejected" },
    { index: 1, reason: "", restsUntilMs: 0 },
  ]);
  // The next sessions go on with the key that works.
  for (let i = 0; i < 2; i++) {
    await end(await opened(query));
    expect(lastKey()).toBe("second-key");
  }
  expect(statusOf(id)).toBe(ChannelStatus.enabled);
});

test("a key that an error event refuses after the handshake rests like any other", async () => {
  const { id, query } = await channel({ key: "late-one\nlate-two" });
  const error = { type: "invalid_request_error", code: "invalid_api_key", message: "Incorrect key" };
  g.upstream.greeting = { type: "error", error };
  expect(await g.refused({ query })).toMatchObject({ status: 502 });
  g.upstream.greeting = GREETING;
  const parsed = g.app.deps.routing.channel(id);
  const states = parsed ? g.app.deps.keyring.states(parsed) : [];
  expect(states.map(({ reason }) => reason)).toEqual(["rejected", "rejected"]);
});

test("the only key of a channel takes the channel with it, as in chat", async () => {
  const { id, query } = await channel({ key: "only-key" });
  g.upstream.refuse(401);
  expect(await g.refused({ query })).toMatchObject({ status: 502 });
  await until(() => Promise.resolve(statusOf(id) === ChannelStatus.autoDisabled ? true : undefined));
});

test("what the turns of a session take counts under the caps of tokens a minute while it goes on", async () => {
  const { query } = await channel({ tpmLimit: 200 });
  const client = await opened(query);
  const peer = g.upstream.connections.items.at(-1);
  client.say({ type: "response.create" });
  peer?.say(responseDone("capped_1", REALTIME_USAGE));
  await client.nextOf("response.done");
  const { status, error } = await g.refused({ query });
  expect([status, error.code]).toEqual([429, "channel_capacity_exhausted"]);
  await end(client);
});

test("keys take turns", async () => {
  const { query } = await channel({ key: "turn-one\nturn-two" });
  const seen: string[] = [];
  for (let i = 0; i < 4; i++) {
    await end(await opened(query));
    seen.push(lastKey());
  }
  expect(seen).toEqual(["turn-one", "turn-two", "turn-one", "turn-two"]);
});

test("a channel that refused rests, and the next session begins at the next one", async () => {
  const { query } = await channel({ priority: 10 });
  await channel({ baseUrl: other.url, models: query.slice("?model=".length), priority: 1 });
  g.upstream.refuse(429);
  await end(await opened(query));
  const before = g.upstream.connections.items.length;
  const others = other.connections.items.length;
  await end(await opened(query));
  expect(g.upstream.connections.items).toHaveLength(before);
  expect(other.connections.items).toHaveLength(others + 1);
});

test("each failed attempt leaves an error row, whoever serves in the end", async () => {
  const first = await channel({ priority: 10 });
  await channel({ baseUrl: other.url, models: first.query.slice("?model=".length), priority: 1 });
  g.upstream.refuse(500);
  await end(await opened(first.query));
  const [row, ...more] = await errorRows(first.id);
  expect(more).toEqual([]);
  expect(row).toMatchObject({
    userId: g.user.id,
    tokenId: g.tokenId,
    modelName: first.query.slice("?model=".length),
    isStream: true,
  });
  expect(row?.other).toMatchObject({
    status_code: 500,
    channel_id: first.id,
    admin_info: { use_channel: [String(first.id)] },
  });
  expect(row?.content).not.toContain("127.0.0.1");
});

test("a refusal of ours is no attempt: no error row, no key at rest", async () => {
  const { id, query } = await channel({ key: "kept-one\nkept-two" });
  const poor = await g.app.createUser();
  const { key } = await g.app.createToken(poor.id);
  expect(await g.refused({ query, key })).toMatchObject({ status: 403 });
  expect(await errorRows(id)).toEqual([]);
  const parsed = g.app.deps.routing.channel(id);
  const states = parsed ? g.app.deps.keyring.states(parsed) : [];
  expect(states.map(({ reason }) => reason)).toEqual(["", ""]);
});
