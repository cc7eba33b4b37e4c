// Guarantees of the channel operations: what a test does to a channel, what is recorded, what never leaves the server.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { and, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { ChannelStatus, KeyStatus, Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { gate, refuse, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";

interface Told {
  success: boolean;
  message: string;
  data?: unknown;
  time?: number;
  balance?: number;
}

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    let upstream: FakeUpstream;
    let root: TestUser;
    let admin: TestUser;
    let user: TestUser;

    beforeAll(async () => {
      app = await startTestApp({ database });
      upstream = await startFakeUpstream();
      root = await app.createUser({ role: Role.root, quota: 0 });
      admin = await app.createUser({ role: Role.admin });
      user = await app.createUser({});
      await app.deps.options.set("AutomaticDisableChannelEnabled", "true");
      await app.deps.options.set("AutomaticEnableChannelEnabled", "true");
    });
    afterAll(async () => {
      expect((await audit(app.deps.db)).differences).toEqual([]);
      await app.close();
      upstream.stop();
    });
    beforeEach(() => upstream.reset());

    const ask = (path: string, as = admin, method = "GET", body?: unknown) =>
      app.call<Told>(method, `/api/channel${path}`, body, as).then((answer) => answer.body);
    async function row(id: number) {
      const { channels } = app.deps.db.t;
      const [found] = await app.deps.db.orm.select().from(channels).where(eq(channels.id, id));
      if (!found) throw new Error("no such channel");
      return found;
    }
    const add = (fields: Record<string, unknown> = {}) =>
      app.createChannel({ baseUrl: upstream.url, models: "gpt-4o-mini", ...fields });

    test("a test calls the model once, records the time, and charges nobody", async () => {
      const id = await add();
      const answer = await ask(`/test/${id}`);
      expect(answer).toMatchObject({ success: true, message: "" });
      expect(answer.time).toBeGreaterThan(0);
      expect(upstream.requests).toHaveLength(1);
      expect(upstream.requests[0]?.json()).toMatchObject({ model: "gpt-4o-mini", max_tokens: 10 });
      const tested = await row(id);
      expect(tested.testTime).toBeGreaterThan(0);
      expect(tested.usedQuota).toBe(0);
      // The owner's balance is empty, and the test went through all the same.
      expect(
        (await app.call<{ data: { quota: number } }>("GET", "/api/user/self", undefined, root)).body.data
          .quota,
      ).toBe(0);
    });

    test("the model asked for goes before the test model, which goes before the first", async () => {
      const id = await add({ models: "a,b", testModel: "b" });
      await ask(`/test/${id}`);
      await ask(`/test/${id}?model=a`);
      expect(upstream.requests.map((request) => request.json()["model"])).toEqual(["b", "a"]);
    });

    test("embedding models are tested on embeddings", async () => {
      await ask(`/test/${await add({ models: "text-embedding-3-small" })}`);
      expect(upstream.requests[0]?.url).toBe("/v1/embeddings");
    });

    test("a test by hand disables no channel and rests neither it nor its keys, however it fails", async () => {
      const single = await add({ models: "hand-made" });
      const several = await add({ models: "hand-made", key: "one\ntwo" });
      const { picker } = app.services.gateway.relay.parts;
      for (const status of [401, 429, 500]) {
        upstream.always(refuse(status, { error: { message: "no", code: "invalid_api_key" } }));
        for (const id of [single, several])
          for (let i = 0; i < 4; i++) expect((await ask(`/test/${id}`)).success).toBe(false);
      }
      for (const id of [single, several]) {
        expect(await row(id)).toMatchObject({ status: ChannelStatus.enabled, otherInfo: "" });
        expect((await row(id)).testTime).toBeGreaterThan(0);
        expect(picker.rests(id, -Infinity)).toEqual([]);
        expect((await ask(`/keys/${id}`)).data).toEqual(
          expect.arrayContaining([expect.objectContaining({ rests_until: 0, reason: "" })]),
        );
        expect((await ask(`/${id}`)).data).toMatchObject({ keys_resting: 0 });
      }
      // Nor does a test that succeeds wake anybody.
      const channel = app.deps.routing.channel(several);
      if (!channel) throw new Error("no channel");
      const nowMs = app.deps.clock.monotonicMs();
      const lone = app.deps.routing.channel(single);
      if (!lone) throw new Error("no channel");
      picker.failed(lone, "hand-made", { reason: "rejected", isWhole: true, beganMs: nowMs }, nowMs);
      for (const index of [0, 1])
        app.deps.keyring.rest(channel, index, { reason: "limited", restMs: 60_000, detail: "" }, nowMs);
      upstream.always(okAnswer);
      for (const id of [single, several]) expect((await ask(`/test/${id}`)).success).toBe(true);
      expect(picker.rests(single, nowMs)).toMatchObject([{ reason: "rejected" }]);
      expect((await ask(`/${several}`)).data).toMatchObject({ keys_resting: 2 });
    });

    test("types that have no such call say so", async () => {
      expect(await ask(`/test/${await add({ type: 2 })}`)).toMatchObject({
        success: false,
        message: "midjourney channel test is not supported",
      });
    });

    test("a failure is told with the provider's words, without address or key", async () => {
      const id = await add({ key: "sk-secretsecretsecret" });
      upstream.script(
        refuse(400, { error: { message: `no such model at ${upstream.url} for sk-secretsecretsecret` } }),
      );
      const answer = await ask(`/test/${id}`);
      expect(answer.success).toBe(false);
      expect(answer.message).toContain("no such model");
      expect(answer.message).not.toContain(upstream.url);
      expect(answer.message).not.toContain("secretsecret");
    });

    test("a provider's error object is told by its message, any other text as it is", async () => {
      const id = await add();
      upstream.script(
        refuse(401, { error: { message: "Incorrect API key provided", code: "invalid_api_key" } }),
      );
      expect((await ask(`/test/${id}`)).message).toBe("Incorrect API key provided");
      upstream.script(refuse(401, "go away"));
      expect((await ask(`/test/${id}`)).message).toMatch(/[^。]: go away$/);
    });

    test("testing all disables what is broken, revives what works, leaves alone what was switched off by hand", async () => {
      for (const { id } of await app.deps.db.orm.select().from(app.deps.db.t.channels))
        await ask(`/${id}`, admin, "DELETE");
      const broken = await add({ models: "broken" });
      const healed = await add({ models: "healed", status: ChannelStatus.autoDisabled });
      const off = await add({ models: "off", status: ChannelStatus.disabled });
      const keeps = await add({ models: "broken", autoBan: 0 });
      const door = gate();
      upstream.always((request) =>
        request.json()["model"] === "broken" ? refuse(401) : { ...okAnswer, before: door },
      );
      const { finished } = await app.services.gateway.watch.testAll(true);
      expect(await ask("/test")).toMatchObject({ success: false, message: "测试已在运行中" });
      expect((await ask("/test_progress")).data).toMatchObject({ isRunning: true });
      door.open();
      await finished;
      await app.deps.ledger.flush();
      expect((await row(broken)).status).toBe(ChannelStatus.autoDisabled);
      expect(JSON.parse((await row(broken)).otherInfo)).toMatchObject({ status_time: expect.any(Number) });
      expect((await row(healed)).status).toBe(ChannelStatus.enabled);
      expect((await row(off)).status).toBe(ChannelStatus.disabled);
      expect((await row(keeps)).status).toBe(ChannelStatus.enabled);
      const rows = await app.deps.db.orm.select().from(app.deps.db.t.logs);
      const contents = rows.filter((line) => line.userId === root.id).map((line) => line.content);
      expect(contents.some((text) => text.includes("已被禁用，原因："))).toBe(true);
      expect(contents.some((text) => text.includes("已被启用"))).toBe(true);
      expect((await ask("/test_progress")).data).toMatchObject({
        isRunning: false,
        done: 3,
        total: 3,
        failed: 2,
        skipped: 1,
        skips: [{ id: off, name: "test channel", code: "channel_switched_off", message: "渠道已手动禁用" }],
      });
    });

    test("a run leaves out what cannot be tested, touches nothing of it, and names it with the reason", async () => {
      for (const { id } of await app.deps.db.orm.select().from(app.deps.db.t.channels))
        await ask(`/${id}`, admin, "DELETE");
      const good = await add({ name: "good", models: "good", priority: 9 });
      const left = [
        [
          await add({ name: "drawings", type: 2 }),
          "channel_untested",
          "Channels of this type cannot be tested",
        ],
        [
          await add({ name: "songs", type: 36 }),
          "channel_untested",
          "Channels of this type cannot be tested",
        ],
        [await add({ name: "empty", models: "" }), "channel_without_models", "The channel has no models"],
        [
          await add({ name: "voice", models: "tts-1,good" }),
          "model_untested",
          "There is no test for model tts-1",
        ],
        [
          await add({ name: "ear", testModel: "gpt-4o-transcribe" }),
          "model_untested",
          "There is no test for model gpt-4o-transcribe",
        ],
        // A type that serves no embeddings.
        [
          await add({ name: "claude", type: 14, models: "text-embedding-3" }),
          "model_untested",
          "There is no test for model text-embedding-3",
        ],
        [
          await add({ name: "off", status: ChannelStatus.disabled }),
          "channel_switched_off",
          "The channel is switched off",
        ],
      ] as const;
      const chosen = await add({ name: "chosen", models: "tts-1,good", testModel: "good" });
      // A refused key would switch the enabled ones off.
      upstream.always((request) => (request.json()["model"] === "good" ? okAnswer : refuse(401)));
      const before = upstream.requests.length;
      await (
        await app.services.gateway.watch.testAll(false)
      ).finished;
      expect(upstream.requests.slice(before).map((request) => request.json()["model"])).toEqual([
        "good",
        "good",
      ]);
      const english = await app.call<{ data: unknown }>("GET", "/api/channel/test_progress", undefined, {
        ...admin,
        headers: { ...admin.headers, "accept-language": "en" },
      });
      expect(english.body.data).toMatchObject({ done: 2, total: 2, failed: 0, skipped: left.length });
      expect((english.body.data as { skips: { id: number }[] }).skips.sort((a, b) => a.id - b.id)).toEqual(
        left
          .map(([id, code, message]) => ({ id, name: expect.any(String), code, message }))
          .sort((a, b) => a.id - b.id),
      );
      for (const id of [good, chosen]) expect((await row(id)).testTime).toBeGreaterThan(0);
      for (const [id, code, message] of left) {
        expect(await row(id)).toMatchObject({ testTime: 0, responseTime: 0, otherInfo: "" });
        // One of a selection is left out for the same reason, but for what somebody chose although it is off.
        if (code === "channel_switched_off") continue;
        const answer = await app.call("GET", `/api/channel/test/${id}?bulk=true`, undefined, {
          ...admin,
          headers: { ...admin.headers, "accept-language": "en" },
        });
        expect(answer.body).toEqual({ success: false, message, code, time: 0, skipped: true });
        expect((await row(id)).testTime).toBe(0);
      }
      expect(upstream.requests.length - before).toBe(2);
    });

    test("a run over all channels can be ended: what is under way is finished, nothing more is begun or announced", async () => {
      for (const { id } of await app.deps.db.orm.select().from(app.deps.db.t.channels))
        await ask(`/${id}`, admin, "DELETE");
      for (let index = 0; index < 9; index++) await add({ models: "slow" });
      const door = gate();
      const begun = upstream.requests.length;
      const asked = gate();
      upstream.always(() => {
        asked.open();
        return { ...okAnswer, before: door };
      });
      const { finished } = await app.services.gateway.watch.testAll(true);
      // Ended before the first question there would be nothing under way.
      await asked.opened;
      expect(await ask("/test_cancel", admin, "POST")).toMatchObject({ success: true });
      expect((await ask("/test_progress")).data).toMatchObject({ isRunning: true, isCancelled: true });
      door.open();
      await finished;
      const { data } = await ask("/test_progress");
      expect(data).toMatchObject({ isRunning: false, isCancelled: true, total: 9 });
      const { done: reached } = data as { done: number };
      expect(reached).toBeLessThanOrEqual(4);
      expect(upstream.requests.length - begun).toBe(reached);
      // The next one starts anew; without a run there is nothing to end.
      expect(await ask("/balance_cancel", admin, "POST")).toMatchObject({ success: true });
      expect((await ask("/balance_progress")).data).toMatchObject({ isRunning: false, isCancelled: false });
      upstream.always(() => okAnswer);
      await (
        await app.services.gateway.watch.testAll(false)
      ).finished;
      expect((await ask("/test_progress")).data).toMatchObject({ isCancelled: false, done: 9, total: 9 });
    });

    test("a copy has the key, is switched off and has used nothing", async () => {
      const id = await add({ name: "first", key: "the-key", usedQuota: 0 });
      const { data } = await ask(`/copy/${id}`, admin, "POST");
      const copy = await row((data as { id: number }).id);
      expect(copy).toMatchObject({
        name: "first_copy",
        status: ChannelStatus.disabled,
      });
      expect(app.deps.routing.channel(copy.id)?.keys).toEqual(["the-key"]);
      expect((await ask(`/copy/999999`, admin, "POST")).success).toBe(false);
    });

    test("a channel with several keys goes on when one of them fails, and shows which one rests", async () => {
      const id = await add({ models: "many-keys", key: "good-1\nbad-key-long-enough-22\ngood-3" });
      upstream.always((request) =>
        String(request.headers["authorization"]).includes("bad") ? refuse(401) : okAnswer,
      );
      await app.deps.options.set("SelfUseModeEnabled", "true");
      await app.deps.options.set("RetryTimes", "1");
      const { key } = await app.createToken((await app.createUser({ quota: 1_000_000 })).id);
      for (let i = 0; i < 6; i++) {
        const response = await fetch(`${app.url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "many-keys", messages: [{ role: "user", content: "hi" }] }),
        });
        expect(response.status).toBe(200);
        await response.text();
      }
      const sent = upstream.requests.map((request) => String(request.headers["authorization"]));
      expect(sent.filter((text) => text.includes("bad"))).toHaveLength(1);
      expect((await row(id)).status).toBe(ChannelStatus.enabled);
      const { data } = await ask(`/keys/${id}`);
      expect(data).toMatchObject([
        // Of a short key the end would be too much.
        { index: 0, tail: "", reason: "" },
        { index: 1, tail: "h-22", reason: "rejected", rests_until: expect.any(Number) },
        { index: 2, reason: "" },
      ]);
      expect(JSON.stringify(data)).not.toContain("good-1");
    });

    test("models are listed from the channel, and from typed credentials only where the address is open", async () => {
      const id = await add();
      expect((await ask(`/fetch_models/${id}`)).data).toEqual(["fake-model", "fake-embedding"]);
      const typed = { base_url: upstream.url, type: 1, key: "k\nsecond" };
      expect(await ask("/fetch_models", admin, "POST", typed)).toMatchObject({ success: false });
      expect((await ask("/fetch_models", root, "POST", typed)).data).toEqual([
        "fake-model",
        "fake-embedding",
      ]);
      expect(upstream.requests.at(-1)?.headers["authorization"]).toBe("Bearer k");
    });

    test("a provider with pages is asked for all of them, in its own dialect", async () => {
      const names = Array.from({ length: 25 }, (_, index) => `claude-x-${index}`);
      upstream.always((request) => {
        if (request.headers["anthropic-version"] === undefined) return refuse(400);
        const query = new URL(request.url, "http://x").searchParams;
        const from = names.indexOf(query.get("after_id") ?? "") + 1;
        const page = names.slice(from, from + 10);
        const body = { data: page.map((id) => ({ id })), has_more: from + 10 < 25, last_id: page.at(-1) };
        return {
          status: 200,
          headers: { "content-type": "application/json" },
          steps: [JSON.stringify(body)],
        };
      });
      const id = await add({ type: 14 });
      expect((await ask(`/fetch_models/${id}`)).data).toEqual(names);
      const typed = { base_url: upstream.url, type: 14, key: "k" };
      expect((await ask("/fetch_models", root, "POST", typed)).data).toEqual(names);
      expect(
        upstream.requests.map((request) => new URL(request.url, "http://x").searchParams.get("limit")),
      ).toEqual(Array.from({ length: 6 }, () => "1000"));
    });

    test("a channel whose only key on is dead is disabled, whatever went off before", async () => {
      const id = await add({ models: "last-key", key: "dead\nwent-off" });
      const { channelKeys: k } = app.deps.db.t;
      await app.deps.db.orm
        .update(k)
        .set({ status: KeyStatus.autoOff })
        .where(and(eq(k.channelId, id), eq(k.pos, 1)));
      await app.deps.routing.refresh([id]);
      upstream.always(refuse(401));
      await (
        await app.services.gateway.watch.testAll(true)
      ).finished;
      expect((await row(id)).status).toBe(ChannelStatus.autoDisabled);
    });

    test("users are not let in", async () => {
      for (const path of [
        "/test",
        "/test/1",
        "/update_balance",
        "/update_balance/1",
        "/fetch_models/1",
        "/keys/1",
      ])
        expect((await app.call("GET", `/api/channel${path}`, undefined, user)).status).toBe(403);
    });
  });
}

const okAnswer = {
  status: 200,
  headers: { "content-type": "application/json" },
  steps: [
    JSON.stringify({
      id: "1",
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  ],
};

describe("balances", () => {
  let app: TestApp;
  let admin: TestUser;
  let answers: Record<string, unknown> = {};
  let refusedKeys: string[] = [];
  const asked: { url: string; authorization: string }[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    const header = request.headers["authorization"] ?? request.headers["api-key"];
    asked.push({ url: request.url ?? "", authorization: String(header) });
    const body = answers[path];
    if (refusedKeys.some((key) => String(header).includes(key))) {
      response.writeHead(429).end("{}");
      return;
    }
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(body ?? { error: "no" }));
  });
  let url = "";

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    app = await startTestApp();
    admin = await app.createUser({ role: Role.admin });
    await app.deps.options.set("Price", "7");
  });
  afterAll(async () => {
    await app.close();
    server.close();
  });

  test.each<[string, number, Record<string, unknown>, number]>([
    [
      "OpenAI's billing",
      1,
      {
        "/v1/dashboard/billing/subscription": { hard_limit_usd: 20, has_payment_method: true },
        "/v1/dashboard/billing/usage": { total_usage: 550 },
      },
      14.5,
    ],
    ["AIProxy", 10, { "/api/report/getUserOverview": { success: true, data: { totalPoints: 3.25 } } }, 3.25],
    ["API2GPT", 12, { "/dashboard/billing/credit_grants": { total_remaining: 4 } }, 4],
    ["AIGC2D", 13, { "/dashboard/billing/credit_grants": { total_available: "5.5" } }, 5.5],
    ["OpenRouter", 20, { "/api/v1/credits": { data: { total_credits: 10, total_usage: 4 } } }, 6],
    ["Moonshot, in dollars", 25, { "/v1/users/me/balance": { data: { available_balance: 70 } } }, 10],
    ["SiliconFlow", 40, { "/v1/user/info": { code: 20_000, data: { totalBalance: "8.8" } } }, 8.8],
    [
      "DeepSeek's CNY entry",
      43,
      {
        "/user/balance": {
          balance_infos: [
            { currency: "USD", total_balance: "1" },
            { currency: "CNY", total_balance: "9" },
          ],
        },
      },
      9,
    ],
  ])("%s is read and recorded", async (_, type, wire, expected) => {
    answers = wire;
    asked.length = 0;
    const id = await app.createChannel({ type, baseUrl: url, models: "m", key: "the-key" });
    const { body } = await app.call<Told>("GET", `/api/channel/update_balance/${id}`, undefined, admin);
    expect(body).toMatchObject({ success: true, balance: expected });
    expect(asked.every((request) => request.authorization.includes("the-key"))).toBe(true);
    const { channels } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(channels).where(eq(channels.id, id));
    expect(row).toMatchObject({ balance: expected });
    expect(row?.balanceUpdatedTime).toBeGreaterThan(0);
  });

  test("other types have none, and nonsense is told so", async () => {
    const none = await app.createChannel({ type: 14, baseUrl: url, models: "m" });
    expect(
      (await app.call<Told>("GET", `/api/channel/update_balance/${none}`, undefined, admin)).body,
    ).toMatchObject({
      success: false,
      message: "尚未实现",
    });
    answers = { "/user/balance": { balance_infos: [{ currency: "CNY", total_balance: "much" }] } };
    const broken = await app.createChannel({ type: 43, baseUrl: url, models: "m" });
    expect(
      (await app.call<Told>("GET", `/api/channel/update_balance/${broken}`, undefined, admin)).body.success,
    ).toBe(false);
  });

  test("updating all disables an empty account", async () => {
    answers = { "/user/balance": { balance_infos: [{ currency: "CNY", total_balance: "0" }] } };
    const id = await app.createChannel({ type: 43, baseUrl: url, models: "m" });
    await app.call("GET", "/api/channel/update_balance", undefined, admin);
    const { channels } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(channels).where(eq(channels.id, id));
    expect(row?.status).toBe(ChannelStatus.autoDisabled);
    expect(JSON.parse(row?.otherInfo ?? "{}")).toMatchObject({ status_reason: "余额不足" });
  });

  test("an empty account says nothing of those that were not told", async () => {
    answers = { "/user/balance": { balance_infos: [{ currency: "CNY", total_balance: "0" }] } };
    const id = await app.createChannel({ type: 43, baseUrl: url, models: "m", key: "empty\nunread" });
    const { channels } = app.deps.db.t;
    const statusOf = async () => {
      await app.call("GET", "/api/channel/update_balance", undefined, admin);
      const [row] = await app.deps.db.orm.select().from(channels).where(eq(channels.id, id));
      return row?.status;
    };
    refusedKeys = ["unread"];
    expect(await statusOf()).toBe(ChannelStatus.enabled);
    refusedKeys = [];
    expect(await statusOf()).toBe(ChannelStatus.autoDisabled);
  });
});
