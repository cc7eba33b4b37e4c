// Sessions stay on the channel and key whose cache holds their prompt, and go elsewhere without an error where they have to.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { CacheRates } from "../../../src/core/logs/cache-rates.ts";
import { ChannelStatus } from "../../../src/shared/enums.ts";
import { testClock } from "../../support/clock.ts";
import { answer, gate, refuse } from "../../support/fake-upstream.ts";
import type { RecordedRequest, Script } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const TURN_TOKENS = 100;
const SESSION = "x-claude-code-session-id";

interface Message {
  role: string;
  content: string;
}

describe.each(DATABASE_KINDS)("affinity on %s", (database) => {
  let g: Gateway;
  let serial = 0;
  const clock = testClock();

  beforeAll(async () => {
    g = await startGateway({ database, clock });
    await g.setOption("SelfUseModeEnabled", "true");
    await g.setOption("RetryTimes", "3");
  });
  afterAll(() => g.close());
  beforeEach(() => {
    g.upstream.reset();
    g.upstream.always(cached());
  });

  /** Caches of prompts as providers keep them: each key has its own, of whole turns. */
  function cached(): (request: RecordedRequest) => Script {
    const known = new Map<string, Set<string>>();
    return (request) => {
      const key = keyOf(request);
      const messages = request.json()["messages"] as Message[];
      const prefixes = messages.map((_, at) => JSON.stringify(messages.slice(0, at + 1)));
      const held = known.get(key) ?? new Set();
      const hits = prefixes.filter((each) => held.has(each)).length;
      known.set(key, new Set([...held, ...prefixes]));
      const prompt = messages.length * TURN_TOKENS;
      return answer("done", {
        usage: {
          prompt_tokens: prompt,
          completion_tokens: 1,
          total_tokens: prompt + 1,
          prompt_tokens_details: { cached_tokens: hits * TURN_TOKENS },
        },
      });
    };
  }

  const keyOf = ({ headers }: RecordedRequest): string =>
    String(headers["authorization"]).slice("Bearer ".length);
  const keysAsked = (from = 0): string[] => g.upstream.requests.slice(from).map(keyOf);

  /** So many channels of one model, each with so many keys. */
  async function channels(count: number, keys: number, fields: Record<string, unknown>[] = []) {
    const model = `sticky-${++serial}`;
    const ids: number[] = [];
    for (let at = 0; at < count; at++) {
      const names = Array.from({ length: keys }, (_, key) => `${model}-${at}-${key}`);
      ids.push(
        await g.app.createChannel({
          baseUrl: g.upstream.url,
          models: model,
          key: names.join("\n"),
          ...fields[at],
        }),
      );
    }
    return { model, ids };
  }
  const channelOf = (key: string): number => Number(key.split("-")[2]);

  async function turnOff(id: number): Promise<void> {
    const { db, routing } = g.app.deps;
    await db.orm
      .update(db.t.channels)
      .set({ status: ChannelStatus.disabled })
      .where(eq(db.t.channels.id, id));
    await routing.refresh([id]);
  }

  const conversation = (turns: number): Message[] =>
    Array.from({ length: turns }, (_, at) => ({ role: "user", content: `turn ${at}` }));

  /** The turns of an agent, each a call with everything before it. Returns the share of the prompts that came from a cache. */
  async function agent(
    model: string,
    turns: number,
    { session = "s", between }: { session?: string; between?: (turn: number) => Promise<void> } = {},
  ): Promise<number> {
    let hits = 0;
    let prompts = 0;
    for (let turn = 1; turn <= turns; turn++) {
      await between?.(turn);
      const response = await g.chat({ model, messages: conversation(turn) }, { [SESSION]: session });
      expect(response.status).toBe(200);
      const { usage } = (await response.json()) as {
        usage: { prompt_tokens: number; prompt_tokens_details?: { cached_tokens: number } };
      };
      hits += usage.prompt_tokens_details?.cached_tokens ?? 0;
      prompts += usage.prompt_tokens;
    }
    return hits / prompts;
  }

  test("thirty turns over three channels of four keys: one key, and the hit rate of one channel", async () => {
    const one = await channels(1, 1);
    const single = await agent(one.model, 30);
    const from = g.upstream.requests.length;
    const many = await channels(3, 4);
    expect(await agent(many.model, 30)).toBe(single);
    expect(new Set(keysAsked(from)).size).toBe(1);
    expect(single).toBeGreaterThan(0.9);
    // Switched off, the calls go round: this is what the rest of the test measures against.
    await g.setOption("channel_affinity_setting.enabled", "false");
    const before = g.upstream.requests.length;
    expect(await agent(many.model, 12, { session: "other" })).toBeLessThan(single);
    expect(new Set(keysAsked(before)).size).toBe(12);
    await g.setOption("channel_affinity_setting.enabled", "true");
  });

  test("its channel is switched off in the middle: no error, and one other key from then on", async () => {
    const { model, ids } = await channels(3, 4);
    await agent(model, 30, {
      session: "off",
      between: async (turn) => {
        if (turn !== 15) return;
        const id = ids[channelOf(keysAsked()[0] ?? "")];
        if (id === undefined) throw new Error("no call yet");
        await turnOff(id);
      },
    });
    const keys = keysAsked();
    expect(keys).toHaveLength(30);
    expect(new Set(keys.slice(0, 14)).size).toBe(1);
    expect(new Set(keys.slice(14)).size).toBe(1);
    expect(channelOf(keys[14] ?? "")).not.toBe(channelOf(keys[0] ?? ""));
    const rows = (await g.logs()).filter(({ modelName }) => modelName === model);
    const told = rows.map(
      ({ other }) => (other["admin_info"] as Record<string, unknown>)["channel_affinity"],
    );
    expect(told[0]).toMatchObject({ rule_name: "session-header", key_source: SESSION, state: "new" });
    expect(told[13]).toMatchObject({ state: "kept" });
    expect(told[14]).toMatchObject({ state: "switched", reason: "off" });
    expect(told[15]).toMatchObject({ state: "kept" });
    expect(JSON.stringify(told)).not.toContain('"off-');
    expect((told[0] as { key_fp: string }).key_fp).toMatch(/^[0-9a-f]{8}$/);
  });

  test("a 429 is retried within the call, and the session stays where it was answered", async () => {
    const { model } = await channels(2, 2);
    await agent(model, 2, { session: "limited" });
    const [bound] = keysAsked();
    g.upstream.script(refuse(429, { error: { message: "slow down" } }));
    await agent(model, 3, { session: "limited" });
    const keys = keysAsked(2);
    expect(keys[0]).toBe(bound);
    expect(keys).toHaveLength(4);
    expect(new Set(keys.slice(1)).size).toBe(1);
    expect(keys[1]).not.toBe(bound);
  });

  test("two users with the same session id do not share, nor do two models or groups of one user", async () => {
    const fields = { group: "default,vip" };
    const { model } = await channels(1, 8, [fields]);
    const other = await g.app.createUser({ quota: 1_000_000 });
    await g.setOption("UserUsableGroups", JSON.stringify({ default: "", vip: "" }));
    const keys = [
      g.key,
      (await g.app.createToken(other.id)).key,
      (await g.app.createToken(g.user.id, { group: "vip" })).key,
    ];
    const ask = async (key: string, asked = model) => {
      const headers = { [SESSION]: "same", authorization: `Bearer ${key}` };
      expect((await g.chat({ model: asked }, headers)).status).toBe(200);
      return keysAsked().at(-1);
    };
    // Each in turn, so that a shared binding would show.
    const homes = [await ask(keys[0] ?? ""), await ask(keys[1] ?? ""), await ask(keys[2] ?? "")];
    expect(new Set(homes).size).toBe(3);
    for (const [at, key] of keys.entries()) expect([at, await ask(key)]).toEqual([at, homes[at]]);
    const second = `${model}-b`;
    const { db, routing } = g.app.deps;
    await db.orm
      .update(db.t.channels)
      .set({ models: `${model},${second}` })
      .where(eq(db.t.channels.models, model));
    await routing.reload();
    expect(homes).not.toContain(await ask(keys[0] ?? "", second));
    expect(await ask(keys[0] ?? "")).toBe(homes[0]);
  });

  test("of an automatic key the group that served is where its session stays", async () => {
    const { model, ids } = await channels(2, 2, [{ group: "vip" }, { group: "default" }]);
    await g.setOption("UserUsableGroups", JSON.stringify({ default: "", vip: "", auto: "" }));
    await g.setOption("AutoGroups", JSON.stringify(["vip", "default"]));
    const { key } = await g.app.createToken(g.user.id, { group: "auto" });
    const headers = { [SESSION]: "auto", authorization: `Bearer ${key}` };
    g.upstream.script(refuse(500, { error: { message: "down" } }));
    for (let turn = 0; turn < 4; turn++) expect((await g.chat({ model }, headers)).status).toBe(200);
    const asked = keysAsked();
    expect(asked.map(channelOf)).toEqual([0, 1, 1, 1, 1]);
    expect(new Set(asked.slice(1)).size).toBe(1);
    expect(await g.lastCharge()).toMatchObject({ group: "default", channelId: ids[1] });
  });

  test("where whoever answers is not followed, a session goes back to a channel that can serve again", async () => {
    await g.setOption("channel_affinity_setting.switch_on_success", "false");
    const { model } = await channels(2, 1);
    await agent(model, 1, { session: "back" });
    const [home] = keysAsked();
    g.upstream.script(refuse(500, { error: { message: "down" } }));
    await agent(model, 2, { session: "back" });
    const keys = keysAsked(1);
    expect(keys[0]).toBe(home);
    expect(keys[1]).not.toBe(home);
    expect(keys[2]).toBe(home);
    await g.setOption("channel_affinity_setting.switch_on_success", "true");
  });

  test("a full key and a full channel are passed by, and no cap is exceeded", async () => {
    const { model, ids } = await channels(2, 1, [{ maxConcurrency: 1 }, {}]);
    let turn = 0;
    while (channelOf(keysAsked().at(-1) ?? "x-x-1") !== 0)
      await agent(model, 1, { session: `full-${++turn}` });
    const session = { [SESSION]: `full-${turn}` };
    const door = gate();
    const from = g.upstream.requests.length;
    g.upstream.script({ ...answer("held"), before: door });
    const held = g.chat({ model }, session);
    await g.upstream.request(from);
    expect((await g.chat({ model }, session)).status).toBe(200);
    expect(keysAsked(from).map(channelOf)).toEqual([0, 1]);
    door.open();
    expect((await held).status).toBe(200);
    expect(ids).toHaveLength(2);
  });

  test("what fails is asked again at the highest tier; a lower one keeps a session for one lifetime", async () => {
    const { model, ids } = await channels(2, 1, [{ priority: 10 }, { priority: 0 }]);
    await agent(model, 1, { session: "tiers" });
    expect(keysAsked().map(channelOf)).toEqual([0]);
    g.upstream.script(refuse(500, { error: { message: "down" } }));
    await agent(model, 1, { session: "tiers" });
    expect(keysAsked(1).map(channelOf)).toEqual([0, 1]);
    // Calls do not lengthen it.
    for (let minute = 0; minute < 4; minute++) {
      await agent(model, 1, { session: "tiers" });
      clock.advance(1_000_000);
    }
    expect(keysAsked(3).map(channelOf)).toEqual([1, 1, 1, 1]);
    await agent(model, 2, { session: "tiers" });
    expect(keysAsked(7).map(channelOf)).toEqual([0, 0]);
    expect(ids).toHaveLength(2);
  });

  test("names of sessions: headers, bodies, and how a long prompt begins; a short one is nobody's", async () => {
    const long = "You are a careful assistant. ".repeat(200);
    const system = (text: string) => [{ role: "system", content: text }, ...conversation(1)];
    const named: [string, Record<string, unknown>, Record<string, string>][] = [
      ["session-header", {}, { "x-opencode-session": "ses_1" }],
      ["session-header", {}, { session_id: "s" }],
      ["metadata-session", { metadata: { user_id: "user_1_account__session_abc" } }, {}],
      ["metadata-session", { metadata: { user_id: '{"session_id":"abc"}' } }, {}],
      ["body-session", { session_id: "abc" }, {}],
      ["prompt-cache-key", { prompt_cache_key: "k" }, {}],
      ["prefix", { messages: system(long) }, {}],
    ];
    for (const [rule, fields, headers] of named) {
      const { model } = await channels(1, 3);
      const row = await g.charged(async () => {
        await (await g.chat({ model, ...fields }, headers)).text();
      });
      const told = (row.other["admin_info"] as Record<string, unknown>)["channel_affinity"];
      expect([rule, told]).toEqual([rule, expect.objectContaining({ rule_name: rule, state: "new" })]);
      const from = g.upstream.requests.length - 1;
      for (let call = 0; call < 2; call++) await (await g.chat({ model, ...fields }, headers)).text();
      expect(new Set(keysAsked(from)).size).toBe(1);
    }
    for (const fields of [{}, { metadata: { user_id: "jane" } }, { messages: system("short") }]) {
      const { model } = await channels(1, 2);
      const row = await g.charged(async () => {
        await (await g.chat({ model, ...fields })).text();
      });
      expect(row.other["admin_info"]).not.toHaveProperty("channel_affinity");
    }
  });

  test("rules of the operator come first: model, path, client, value, lifetime, template, no second try", async () => {
    const { model } = await channels(2, 2);
    const rule = {
      name: "tenants",
      model_regex: ["^sticky-"],
      path_regex: ["^/v1/chat/"],
      user_agent_include: ["Tenant-CLI"],
      key_sources: [
        { type: "request_header", key: "x-tenant" },
        { type: "gjson", path: "user" },
      ],
      value_regex: "^t-",
      ttl_seconds: 60,
      skip_retry_on_failure: true,
      param_override_template: { operations: [{ mode: "set", path: "temperature", value: 0.5 }] },
    };
    await g.setOption("channel_affinity_setting.rules", JSON.stringify([rule]));
    const headers = { "user-agent": "tenant-cli/1.0" };
    const ask = (fields: Record<string, unknown>, more: Record<string, string> = headers) =>
      g.chat({ model, ...fields }, more);
    for (let call = 0; call < 3; call++) expect((await ask({ user: "t-1" })).status).toBe(200);
    expect(new Set(keysAsked()).size).toBe(1);
    expect(g.upstream.requests[0]?.json()["temperature"]).toBe(0.5);
    expect((await g.lastCharge())?.other).toMatchObject({
      request_rules: ["set temperature"],
      admin_info: { channel_affinity: { rule_name: "tenants", key_source: "gjson user", state: "kept" } },
    });
    // Nothing that the rule is not met by.
    for (const other of [() => ask({ user: "x-1" }), () => ask({ user: "t-1" }, {})]) {
      const row = await g.charged(async () => {
        await (await other()).text();
      });
      expect(row.other["admin_info"]).not.toHaveProperty("channel_affinity");
      expect(g.upstream.requests.at(-1)?.json()["temperature"]).toBeUndefined();
    }
    const from = g.upstream.requests.length;
    g.upstream.script(refuse(500, { error: { message: "down" } }));
    expect((await ask({ user: "t-1" })).status).toBe(500);
    expect(keysAsked(from)).toHaveLength(1);
    await g.setOption("channel_affinity_setting.rules", "[]");
  });

  test("hit rate and money saved by rule, channel, model and user; what is bound can be looked at and forgotten", async () => {
    const { model, ids } = await channels(2, 2);
    const day = { start_timestamp: String(Math.floor(clock.nowMs() / 1000) - 60), end_timestamp: "" };
    await g.app.deps.options.set("ModelRatio", JSON.stringify({ [model]: 2 }));
    await g.app.deps.options.set("CacheRatio", JSON.stringify({ [model]: 0.1 }));
    const admin = await g.app.createUser({ role: 100 });
    await g.app.call("DELETE", "/api/option/channel_affinity_cache?all=true", undefined, admin);
    const rates = async (by: string) => {
      await g.app.deps.ledger.flush();
      const query = new URLSearchParams({ start_timestamp: day.start_timestamp, by });
      const { body } = await g.app.call<{ data: CacheRates }>(
        "GET",
        `/api/data/cache?${query}`,
        undefined,
        admin,
      );
      return body.data;
    };
    const rowOf = async (by: string, id: string) => {
      const { rows } = await rates(by);
      return rows.find((row) => row.id === id);
    };
    const before = await rowOf("rule", "session-header");
    await agent(model, 4, { session: "money" });
    // 10 turns of a hundred tokens, 6 of them read: each of these costs 0.1 in place of 2 units.
    const sums = { calls: 4, input: 1000, read: 600, saved: 600 * 2 * 0.9 };
    expect(await rowOf("model", model)).toEqual({ id: model, name: model, ...sums });
    const bound = ids[channelOf(keysAsked()[0] ?? "")];
    expect(await rowOf("channel", String(bound))).toMatchObject(sums);
    expect(await rowOf("user", String(g.user.id))).toMatchObject({ name: g.user.username });
    const after = await rowOf("rule", "session-header");
    expect((after?.kept ?? 0) - (before?.kept ?? 0)).toBe(3);
    expect((after?.saved ?? 0) - (before?.saved ?? 0)).toBe(sums.saved);

    const told = (await g.lastCharge())?.other["admin_info"] as { channel_affinity: { key_fp: string } };
    const query = new URLSearchParams({ rule_name: "session-header", key_fp: told.channel_affinity.key_fp });
    const used = await g.app.call("GET", `/api/log/channel_affinity_usage_cache?${query}`, undefined, admin);
    expect(used.body).toMatchObject({
      data: {
        hit: 3,
        total: 4,
        prompt_tokens: 1000,
        completion_tokens: 4,
        cached_tokens: 600,
        window_seconds: 3600,
      },
    });
    const path = "/api/option/channel_affinity_cache";
    expect((await g.app.call("GET", path, undefined, admin)).body).toMatchObject({
      data: { enabled: true, total: 1, by_rule_name: { "session-header": 1 }, cache_capacity: 100_000 },
    });
    expect((await g.app.call("DELETE", path, undefined, admin)).body).toMatchObject({ success: false });
    const cleared = await g.app.call("DELETE", `${path}?rule_name=session-header`, undefined, admin);
    expect(cleared.body).toMatchObject({ data: { deleted: 1 } });
    await agent(model, 1, { session: "money" });
    expect((await g.lastCharge())?.other).toMatchObject({
      admin_info: { channel_affinity: { state: "new" } },
    });
  });

  test("of more sessions than may be kept the longest unused are forgotten", async () => {
    await g.setOption("channel_affinity_setting.max_entries", "2");
    const { model } = await channels(1, 4);
    for (const session of ["one", "two", "one", "three", "one"]) await agent(model, 1, { session });
    const keys = keysAsked();
    expect(new Set([keys[0], keys[2], keys[4]]).size).toBe(1);
    await agent(model, 1, { session: "two" });
    expect((await g.lastCharge())?.other).toMatchObject({
      admin_info: { channel_affinity: { state: "new" } },
    });
    await g.setOption("channel_affinity_setting.max_entries", "100000");
  });
});
