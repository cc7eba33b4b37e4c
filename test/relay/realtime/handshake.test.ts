// Before a realtime socket opens: every refusal is an HTTP answer, channels fail over, and nothing stays held back.
// Also the official client, drain, and sessions that only transcribe.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";
import { audit } from "../../../src/core/ledger/audit.ts";
import { drainSockets } from "../../../src/http/sockets.ts";
import { GREETING, REALTIME_USAGE, responseDone, startFakeRealtime } from "../../support/fake-realtime.ts";
import type { FakeRealtime } from "../../support/fake-realtime.ts";
import { startTestApp } from "../../support/app.ts";
import { attach, MODEL, startRealtimeGateway } from "./support.ts";
import type { RealtimeGateway, SocketClient } from "./support.ts";
import { untilSo } from "../../support/turns.ts";
import { freePort } from "../../support/ports.ts";

let g: RealtimeGateway;
let other: FakeRealtime;
let models = 0;

beforeAll(async () => {
  g = await startRealtimeGateway();
  other = startFakeRealtime();
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(async () => {
  await g.close();
  other.stop();
});
afterEach(async () => {
  await g.setOption("RetryTimes", "0");
  await g.app.deps.ledger.flush();
  expect((await audit(g.app.deps.db)).differences).toEqual([]);
  const user = await g.app.deps.accounts.user(g.user.id);
  expect(user?.reserved).toBe(0);
});

async function end(client: SocketClient): Promise<void> {
  client.socket.close(1000);
  await client.closed;
}

/** Two channels of one model, the first one asked first. */
async function pair(fields: Record<string, unknown> = {}): Promise<{ model: string; query: string }> {
  const model = `pair-realtime-${++models}`;
  await g.app.createChannel({ baseUrl: g.upstream.url, models: model, priority: 10, ...fields });
  await g.app.createChannel({ baseUrl: other.url, models: model, priority: 1 });
  return { model, query: `?model=${model}` };
}

describe("refusals come over HTTP, in OpenAI's shape, with a request id", () => {
  test("no key, unknown key: 401", async () => {
    expect(await g.refused({ key: "" })).toMatchObject({ status: 401, error: { type: "new_api_error" } });
    const refused = await g.refused({ key: "sk-unknown" });
    expect(refused.status).toBe(401);
    expect(refused.error.message).toEndWith(
      `(request id: ${String(refused.headers["x-oneapi-request-id"])})`,
    );
  });
  test("a plain GET: 426", async () => {
    const refused = await g.refused({ plain: true });
    expect(refused).toMatchObject({ status: 426, error: { code: "websocket_required" } });
    expect(refused.headers["upgrade"]).toBe("websocket");
  });
  test("what could never become a socket: 400, nobody is asked, and no place of the channel is taken", async () => {
    const { query } = await pair({ maxConcurrency: 1 });
    const before = g.upstream.connections.items.length + other.connections.items.length;
    for (const key of ["", "c2hvcnQ=", "not base64 of sixteen!=="]) {
      const refused = await g.refused({ query, headers: { "sec-websocket-key": key } });
      expect(refused).toMatchObject({ status: 400, error: { code: "websocket_required" } });
    }
    expect(g.upstream.connections.items.length + other.connections.items.length).toBe(before);
    const asked = g.upstream.connections.items.length;
    await end(await g.open({ query }));
    expect(g.upstream.connections.items).toHaveLength(asked + 1);
  });
  test("no model, two models: 400", async () => {
    expect(await g.refused({ query: "" })).toMatchObject({ status: 400, error: { param: "model" } });
    expect(await g.refused({ query: `?model=${MODEL}&model=gpt-4` })).toMatchObject({ status: 400 });
  });
  test("a model that no channel has: 404; one whose channels are off: 503", async () => {
    expect(await g.refused({ query: "?model=nobody-has-this" })).toMatchObject({
      status: 404,
      error: { code: "model_not_found" },
      headers: { "x-weir-error-code": "model_not_found" },
    });
    await g.app.createChannel({ baseUrl: g.upstream.url, models: "rests-realtime", status: 2 });
    expect(await g.refused({ query: "?model=rests-realtime" })).toMatchObject({ status: 503 });
  });
  test("a key that may not use the model: 403; from another address: 403", async () => {
    const limited = await g.app.createToken(g.user.id, { modelLimitsEnabled: true, modelLimits: "gpt-4o" });
    expect(await g.refused({ key: limited.key })).toMatchObject({ status: 403 });
    const elsewhere = await g.app.createToken(g.user.id, { allowIps: "10.1.2.3" });
    expect(await g.refused({ key: elsewhere.key })).toMatchObject({ status: 403 });
  });
  test("no balance: 403, and the upstream is not asked", async () => {
    const poor = await g.app.createUser();
    const { key } = await g.app.createToken(poor.id);
    const before = g.upstream.connections.items.length;
    expect(await g.refused({ key })).toMatchObject({
      status: 403,
      error: { code: "insufficient_user_quota" },
    });
    expect(g.upstream.connections.items).toHaveLength(before);
  });
  test("a model without a price: 400", async () => {
    await g.setOption("SelfUseModeEnabled", "false");
    const { query } = await pair();
    expect(await g.refused({ query })).toMatchObject({ status: 400, error: { code: "model_not_priced" } });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  test("a price for what no turn is counted in: 400, before the upstream is asked", async () => {
    const { model, query } = await pair();
    const before = g.upstream.connections.items.length;
    const { ModelPrice, PriceRules } = {
      ModelPrice: g.app.deps.options.text("ModelPrice"),
      PriceRules: g.app.deps.options.text("PriceRules"),
    };
    await g.setOption("ModelPrice", JSON.stringify({ [model]: 0.1 }));
    for (const unit of ["second", "kchar", "page"]) {
      await g.setOption("PriceRules", JSON.stringify({ [model]: { unit } }));
      const refused = await g.refused({ query });
      expect([unit, refused.status, refused.error.code]).toEqual([unit, 400, "price_unit_uncounted"]);
    }
    expect(g.upstream.connections.items).toHaveLength(before);
    await g.setOption("PriceRules", JSON.stringify({ [model]: { unit: "call" } }));
    await end(await g.open({ query }));
    await g.setOption("ModelPrice", ModelPrice);
    await g.setOption("PriceRules", PriceRules);
  });
  test("too many sessions in the window: 429", async () => {
    await g.setOption("ModelRequestRateLimitSuccessCount", "1");
    await g.setOption("ModelRequestRateLimitEnabled", "true");
    const user = await g.app.createUser({ quota: 1_000_000 });
    const { key } = await g.app.createToken(user.id);
    await end(await g.open({ key }));
    expect(await g.refused({ key })).toMatchObject({ status: 429 });
    await g.setOption("ModelRequestRateLimitEnabled", "false");
  });
});

describe("an upstream that refuses", () => {
  test.each([
    [401, 502],
    [403, 502],
    [404, 404],
    [429, 429],
    [500, 500],
    [200, 502],
  ])("with %i: the client gets %i, and with a retry the next channel serves", async (status, shown) => {
    const { query } = await pair();
    g.upstream.refuse(status);
    const refused = await g.refused({ query });
    expect(refused.status).toBe(shown);
    expect(JSON.stringify(refused.error)).not.toContain("127.0.0.1");
    await g.setOption("RetryTimes", "1");
    const { query: again } = await pair();
    g.upstream.refuse(status);
    const client = await g.open({ query: again });
    expect(await client.next()).toEqual(GREETING);
    await end(client);
  });

  test("by an error in place of a greeting: the next channel serves", async () => {
    const { query } = await pair();
    const error = {
      type: "invalid_request_error",
      code: "invalid_api_key",
      message: "Incorrect key sk-abcdefghijklmnop",
    };
    g.upstream.greeting = { type: "error", error };
    const refused = await g.refused({ query });
    expect(refused).toMatchObject({ status: 502, error: { code: "upstream_auth" } });
    expect(refused.error.message).not.toContain("sk-abc");
    await g.setOption("RetryTimes", "1");
    const { query: again } = await pair();
    const client = await g.open({ query: again });
    expect(await client.next()).toEqual(GREETING);
    g.upstream.greeting = GREETING;
    await end(client);
  });

  test("by not being there: 500, or the next channel", async () => {
    const gone = { url: `http://127.0.0.1:${freePort()}` };
    const { query } = await pair({ baseUrl: gone.url });
    const refused = await g.refused({ query });
    expect(refused).toMatchObject({ status: 500, error: { code: "do_request_failed" } });
    expect(refused.error.message).not.toContain(gone.url.slice(7));
    await g.setOption("RetryTimes", "1");
    const { query: again } = await pair({ baseUrl: gone.url });
    const client = await g.open({ query: again });
    expect(await client.next()).toEqual(GREETING);
    const count = (await g.logs()).length;
    const peer = other.connections.items.at(-1);
    peer?.say({ type: "response.created", response: { id: "r" } });
    peer?.say(responseDone("r", REALTIME_USAGE));
    await client.nextOf("response.done");
    const [row] = (await g.logs()).slice(count);
    expect(row?.other["attempts"]).toMatchObject([{ code: "do_request_failed" }, { code: "ok" }]);
    await end(client);
  });

  test("an upstream without a greeting is taken as it is", async () => {
    g.upstream.greeting = undefined;
    const client = await g.open();
    client.say("hello");
    const peer = g.upstream.connections.items.at(-1);
    expect(await peer?.received.next()).toBe("hello");
    g.upstream.greeting = GREETING;
    await end(client);
  });

  test("where only a provider that is gone is left, the client reads that", async () => {
    const model = `palm-realtime-${++models}`;
    await g.app.createChannel({ type: 11, baseUrl: g.upstream.url, models: model });
    expect(await g.refused({ query: `?model=${model}` })).toMatchObject({
      status: 503,
      error: { code: "provider_retired" },
    });
  });

  test("types without realtime are passed over", async () => {
    const model = `azure-realtime-${++models}`;
    await g.app.createChannel({ type: 14, baseUrl: g.upstream.url, models: model });
    expect(await g.refused({ query: `?model=${model}` })).toMatchObject({
      status: 503,
      error: { code: "endpoint_unsupported" },
    });
  });
});

test("Azure gets its own address and its own header, and no key in the sub-protocol", async () => {
  const model = `azure-realtime-${++models}`;
  await g.app.createChannel({
    key: "azure-key",
    type: 3,
    baseUrl: g.upstream.url,
    models: model,
    other: "2025-08-28",
    modelMapping: JSON.stringify({ [model]: "gpt-4o-realtime-preview" }),
    createdTime: 2_000_000_000,
  });
  const client = await g.open({
    query: `?model=${model}`,
    protocols: ["realtime", `openai-insecure-api-key.${g.key}`],
  });
  const peer = g.upstream.connections.items.at(-1);
  expect(peer?.url).toBe("/openai/realtime?deployment=gpt-4o-realtime-preview&api-version=2025-08-28");
  expect(peer?.headers.get("api-key")).toBe("azure-key");
  expect(peer?.headers.has("authorization")).toBe(false);
  expect(peer?.protocols).toEqual(["realtime"]);
  // Priced by the mapped name, logged by the requested one.
  const count = (await g.logs()).length;
  peer?.say({ type: "response.created", response: { id: "az" } });
  peer?.say(responseDone("az", REALTIME_USAGE));
  await client.nextOf("response.done");
  const [row] = (await g.logs()).slice(count);
  expect(row).toMatchObject({ modelName: model });
  expect(row?.other).toMatchObject({
    model_ratio: 2.5,
    is_model_mapped: true,
    upstream_model_name: "gpt-4o-realtime-preview",
  });
  await end(client);
});

test("at a fixed price every response costs that price, cut to whole units", async () => {
  const model = `priced-realtime-${++models}`;
  await g.setOption("ModelPrice", JSON.stringify({ [model]: 0.0000111 }));
  await g.app.createChannel({ baseUrl: g.upstream.url, models: model });
  const client = await g.open({ query: `?model=${model}` });
  const peer = g.upstream.connections.items.at(-1);
  const count = (await g.logs()).length;
  for (const id of ["p1", "p2"]) {
    peer?.say({ type: "response.created", response: { id } });
    peer?.say(responseDone(id, REALTIME_USAGE));
    await client.nextOf("response.done");
  }
  const rows = (await g.logs()).slice(count);
  expect(rows.map((row) => row.quota)).toEqual([5, 5]);
  expect(rows[0]?.other).toMatchObject({ model_price: 0.0000111, ws: true, audio_ratio: 0 });
  expect(rows[0]?.content).toBe("模型价格 0.00，分组倍率 1.00");
  await end(client);
});

test("a session that transcribes is charged for each finished transcription", async () => {
  const client = await g.open({ query: `?model=${MODEL}&intent=transcription` });
  const peer = g.upstream.connections.items.at(-1);
  expect(peer?.url).toContain("intent=transcription");
  const count = (await g.logs()).length;
  const completed = "conversation.item.input_audio_transcription.completed";
  peer?.say({
    type: completed,
    item_id: "item_1",
    transcript: "Hello",
    usage: {
      type: "tokens",
      total_tokens: 30,
      input_tokens: 20,
      input_token_details: { text_tokens: 4, audio_tokens: 16 },
      output_tokens: 10,
    },
  });
  await client.nextOf(completed);
  peer?.say({ type: completed, item_id: "item_2", usage: { type: "duration", seconds: 5.2 } });
  await client.nextOf(completed);
  const rows = (await g.logs()).slice(count);
  expect(rows.map((row) => row.quota)).toEqual([
    Math.round((4 + 16 * 8 + 10 * 4) * 2.5),
    Math.round((6 / 60) * 1000 * 2.5),
  ]);
  await end(client);
});

describe("what an ordinary session hears is charged too:", () => {
  const COMPLETED = "conversation.item.input_audio_transcription.completed";
  const DELTA = "conversation.item.input_audio_transcription.delta";
  const SEGMENT = "conversation.item.input_audio_transcription.segment";
  const HEARD = {
    type: "tokens",
    input_tokens: 20,
    input_token_details: { text_tokens: 4, audio_tokens: 16 },
    output_tokens: 10,
  };
  const HEARD_QUOTA = (4 + 16 * 8 + 10 * 4) * 2.5;
  const RESPONSE_QUOTA = (55 + 32 + 13 * 8 + 30 * 4 + 91 * 16) * 2.5;

  async function hearing(
    talk: (
      say: (event: Record<string, unknown>) => Promise<unknown>,
      tell: (event: Record<string, unknown>) => Promise<unknown>,
    ) => Promise<void>,
  ): Promise<Awaited<ReturnType<RealtimeGateway["logs"]>>> {
    const count = (await g.logs()).length;
    const client = await g.open();
    const peer = g.upstream.connections.items.at(-1);
    await talk(
      (event) => {
        peer?.say(event);
        return client.nextOf(String(event["type"]));
      },
      async (event) => {
        client.say(event);
        await peer?.received.next();
      },
    );
    client.socket.close(1000);
    await Promise.all([client.closed, peer?.closed]);
    const user = await g.app.deps.accounts.user(g.user.id);
    await untilSo(() => user?.reserved === 0);
    return (await g.logs()).slice(count);
  }

  test("without a response, when it ends", async () => {
    const rows = await hearing(async (say) => {
      await say({ type: COMPLETED, item_id: "a", usage: HEARD });
      // Told twice, charged once.
      await say({ type: COMPLETED, item_id: "a", usage: HEARD });
    });
    expect(rows.map(({ quota }) => quota)).toEqual([HEARD_QUOTA]);
    expect(rows[0]?.other["estimated"]).toBeUndefined();
  });
  test("by time it counts as sound, and a second one is charged at once with the first", async () => {
    const rows = await hearing(async (say) => {
      await say({ type: COMPLETED, item_id: "a", usage: { type: "duration", seconds: 59.5 } });
      await say({ type: COMPLETED, item_id: "b", usage: HEARD });
      await say({ type: COMPLETED, item_id: "b", content_index: 1, usage: HEARD });
    });
    expect(rows.map(({ quota }) => quota)).toEqual([60 * 10 * 8 * 2.5 + HEARD_QUOTA, HEARD_QUOTA]);
  });
  test("beside a response, in its row", async () => {
    const rows = await hearing(async (say) => {
      await say({ type: COMPLETED, item_id: "a", usage: HEARD });
      await say({ type: "response.created", response: { id: "beside" } });
      await say({ type: COMPLETED, item_id: "b", usage: HEARD });
      await say(responseDone("beside", REALTIME_USAGE));
    });
    expect(rows.map(({ quota }) => quota)).toEqual([Math.round(RESPONSE_QUOTA + 2 * HEARD_QUOTA)]);
  });
  test("by our own count where nobody says what it took, or where it was cut", async () => {
    const rows = await hearing(async (say, tell) => {
      await tell({ type: "input_audio_buffer.append", audio: "A".repeat((6 * 48_000 * 4) / 3) });
      await say({ type: COMPLETED, item_id: "a", transcript: "hello over there" });
      await tell({ type: "input_audio_buffer.append", audio: "A".repeat((3 * 48_000 * 4) / 3) });
      await say({ type: DELTA, item_id: "b", delta: "hello" });
      await say({ type: SEGMENT, item_id: "b", text: " again" });
    });
    expect(rows).toHaveLength(1);
    expect(rows[0]?.other).toMatchObject({ estimated: true, audio_input: 60 + 30, text_output: 4 + 2 });
  });
  test("by a model with a price of its own, as calls of that model: the response beside it pays its own only", async () => {
    const named = (model: string) => ({
      type: "session.updated",
      session: { audio: { input: { transcription: { model } } } },
    });
    const { channelId } = g;
    const { costs, db } = g.app.deps;
    const cost = { channelId, model: "whisper-1", price: '{"in":6}', validFrom: 0, createdAt: 0 };
    await db.orm.insert(db.t.channelCosts).values(cost);
    await costs.refresh([channelId]);
    const rows = await hearing(async (say, tell) => {
      await say(named("whisper-1"));
      // What the upstream has not taken up does not count.
      await tell({ ...named("nobody-asr"), type: "session.update" });
      await say({ type: "response.created", response: { id: "own" } });
      await say({ type: COMPLETED, item_id: "a", usage: { type: "duration", seconds: 59.5 } });
      await say({ type: COMPLETED, item_id: "a", usage: { type: "duration", seconds: 59.5 } });
      await say(responseDone("own", REALTIME_USAGE));
      await tell({ type: "input_audio_buffer.append", audio: "A".repeat((6 * 48_000 * 4) / 3) });
      await say({ type: COMPLETED, item_id: "b", transcript: "hello" });
      await say({ type: DELTA, item_id: "c", delta: "hello" });
    });
    expect(rows.map(({ quota, modelName }) => [modelName, quota])).toEqual([
      ["whisper-1", 1000 * 3],
      [MODEL, Math.round(RESPONSE_QUOTA)],
      ["whisper-1", 100 * 3],
      ["whisper-1", 17 * 3],
    ]);
    expect(rows.map(({ other }) => other["estimated"])).toEqual([undefined, undefined, true, true]);
    // Six dollars a million tokens of it are 0.6 cents a minute.
    expect(rows[0]?.other["admin_info"]).toMatchObject({
      upstream_model: "whisper-1",
      cost_nanos: 6_000_000,
    });
    expect(rows[1]?.other["admin_info"]).not.toHaveProperty("cost_nanos");
  });
  test("at no price of the call: one is due for answers", async () => {
    await g.setOption("ModelPrice", JSON.stringify({ [MODEL]: 0.5 }));
    const rows = await hearing(async (say) => {
      await say({ type: COMPLETED, item_id: "a", usage: HEARD });
      await say({ type: COMPLETED, item_id: "b", transcript: "hello" });
      await say({ type: "response.created", response: { id: "due" } });
      await say(responseDone("due", REALTIME_USAGE));
      await say({ type: COMPLETED, item_id: "c", usage: HEARD });
    });
    await g.setOption("ModelPrice", "{}");
    expect(rows.map(({ quota }) => quota)).toEqual([0, 250_000, 0]);
    expect(rows.map(({ other }) => other["estimated"])).toEqual([true, undefined, undefined]);
  });
  test("by a model that writes down what it hears, or one that the key may use", async () => {
    const { key } = await g.app.createToken(g.user.id, { modelLimitsEnabled: true, modelLimits: MODEL });
    const client = await g.open({ key });
    const peer = g.upstream.connections.items.at(-1);
    const update = (model: string) => ({
      type: "session.update",
      session: { audio: { input: { transcription: { model } } } },
    });
    client.say(update("gpt-4o"));
    expect(await client.nextOf("error")).toMatchObject({ error: { code: "token_model_forbidden" } });
    client.say(update("whisper-1"));
    expect(await peer?.nextJson()).toEqual(update("whisper-1"));
    await end(client);
  });
});

test("five hundred idle sessions hold their amounts and give them all back", async () => {
  const clients = await Promise.all(Array.from({ length: 500 }, () => g.open()));
  const user = await g.app.deps.accounts.user(g.user.id);
  // Five hundred tokens of sound each, at 8 × 2 × 2.5.
  expect(user?.reserved).toBe(500 * 500 * 40);
  await Promise.all(clients.map(end));
  await untilSo(() => (user?.reserved ?? 0) === 0);
});

test("a stopping server lets a response finish, records it, and says goodbye", async () => {
  const upstream = startFakeRealtime();
  const app = await startTestApp();
  const channelId = await app.createChannel({ baseUrl: upstream.url, models: MODEL });
  const user = await app.createUser({ quota: 1_000_000 });
  const { key } = await app.createToken(user.id);
  const address = `${app.url.replace("http", "ws")}/v1/realtime?model=${MODEL}`;
  const connect = async (): Promise<SocketClient> => {
    const socket = new WebSocket(address, {
      headers: { authorization: `Bearer ${key}` },
    } as unknown as string[]);
    const client = attach(socket as unknown as import("bun").WebSocket);
    expect(await client.next()).toEqual(GREETING);
    return client;
  };
  const idle = await connect();
  const busy = await connect();
  const peer = upstream.connections.items[1];
  peer?.say({ type: "response.created", response: { id: "last" } });
  await busy.nextOf("response.created");
  // Its upstream answers when the server is stopping already: no socket any more, and no place is left taken.
  upstream.greeting = undefined;
  const late = fetch(address.replace("ws", "http"), {
    headers: {
      authorization: `Bearer ${key}`,
      upgrade: "websocket",
      "sec-websocket-key": Buffer.from("0123456789abcdef").toString("base64"),
    },
  });
  await untilSo(() => upstream.connections.items.length === 3);
  const draining = drainSockets(app.server, 10_000);
  upstream.connections.items[2]?.say(GREETING);
  expect((await late).status).toBe(503);
  await upstream.connections.items[2]?.closed;
  expect(await idle.closed).toEqual({ code: 1001, reason: "the gateway is restarting" });
  peer?.say(responseDone("last", REALTIME_USAGE));
  await busy.nextOf("response.done");
  expect((await busy.closed).code).toBe(1001);
  await draining;
  const keyId = app.deps.routing.channel(channelId)?.keyRows[0]?.id ?? 0;
  expect(app.deps.caps.useOf(keyId)).toMatchObject({ requests: 3, inFlight: 0 });
  await app.deps.ledger.flush();
  const rows = await app.deps.db.orm.select().from(app.deps.db.t.logs);
  expect(rows.filter((row) => row.type === 2)).toHaveLength(1);
  await app.close();
  upstream.stop();
});

test("OpenAI's own realtime client holds a conversation", async () => {
  const own = globalThis.WebSocket;
  // The client insists on TLS, which ends in front of the gateway.
  globalThis.WebSocket = class extends own {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(String(url).replace("wss:", "ws:"), protocols);
    }
  };
  const client = new OpenAI({ apiKey: g.key, baseURL: `${g.app.url}/v1` });
  const realtime = new OpenAIRealtimeWebSocket({ model: MODEL }, client);
  globalThis.WebSocket = own;
  const greeted = new Promise((resolve) => realtime.once("session.created", resolve));
  await greeted;
  const peer = g.upstream.connections.items.at(-1);
  expect(peer?.protocols.slice(0, 2)).toEqual(["realtime", "openai-insecure-api-key.upstream-key"]);
  const said: string[] = [];
  realtime.on("response.output_text.delta", ({ delta }) => said.push(delta));
  const done = new Promise((resolve) => realtime.once("response.done", resolve));
  realtime.send({ type: "response.create" });
  expect(await peer?.nextJson()).toEqual({ type: "response.create" });
  peer?.say({ type: "response.created", response: { id: "sdk" } });
  for (const delta of ["Good ", "morning"]) peer?.say({ type: "response.output_text.delta", delta });
  peer?.say(responseDone("sdk", REALTIME_USAGE));
  expect(await done).toMatchObject({ response: { id: "sdk", usage: { total_tokens: 253 } } });
  expect(said.join("")).toBe("Good morning");
  const closed = new Promise((resolve) => realtime.socket.addEventListener("close", resolve));
  realtime.close();
  await closed;
  await peer?.closed;
});
