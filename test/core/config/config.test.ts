// Settings as a document over the wire: what counts as a difference, what is refused as a whole, and that what was applied acts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import type { OptionKey } from "../../../src/core/options/definitions.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";

interface Judged {
  status: string;
  plan_hash: string;
  changes: {
    section: string;
    name: string;
    field: string;
    action: string;
    before: unknown;
    after: unknown;
  }[];
  guards: { code: string; name: string; blocking: boolean }[];
  removals: { name: string; calls: number }[];
  problems: { path: string[]; code: string; message: string }[];
}

type Document = Record<string, unknown>;
type Sections = Record<string, Record<string, Record<string, unknown>>>;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let root: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database });
    root = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  async function send(verb: "plan" | "apply", document: Document, more: Document = {}): Promise<Judged> {
    const body = { document: { format: 1, ...document }, ...more };
    const answer = await app.call<{ success: boolean; data: Judged }>(
      "POST",
      `/api/config/${verb}`,
      body,
      root,
    );
    expect([answer.text, answer.body.success]).toEqual([answer.text, true]);
    return answer.body.data;
  }
  const plan = (document: Document, more?: Document) => send("plan", document, more);
  const apply = (document: Document, more?: Document) => send("apply", document, more);

  async function exported(): Promise<{
    document: Sections;
    secrets: string[];
    unnamed: string[];
    text: string;
  }> {
    const answer = await app.call<{ data: { document: Sections; secrets: string[]; unnamed: string[] } }>(
      "GET",
      "/api/config",
      undefined,
      root,
    );
    return { ...answer.body.data, text: answer.text };
  }

  const fieldsOf = ({ changes }: Judged) =>
    changes.map(({ name, field, action }) => [action, name, field].join(" ").trim());
  const problemsOf = ({ problems }: Judged) => problems.map(({ path, code }) => `${path.join(".")} ${code}`);
  const channelNamed = (name: string) => {
    const found = [...app.deps.routing.channels()].find((each) => each.name === name);
    if (!found) throw new Error(`no channel ${name}`);
    return found;
  };

  const CHANNEL = { type: 1, models: ["m-one"], base_url: "http://127.0.0.1:9" };

  beforeEach(async () => {
    const rows = await app.deps.db.orm.select({ id: app.deps.db.t.channels.id }).from(app.deps.db.t.channels);
    await app.call(
      "POST",
      "/api/channel/batch",
      { ids: [0, ...rows.map(({ id }) => id)].filter((id) => id > 0) },
      root,
    );
  });

  test("is for root alone", async () => {
    const admin = await app.createUser({ role: 10 });
    for (const [method, path] of [
      ["GET", ""],
      ["POST", "/plan"],
      ["POST", "/apply"],
    ] as const) {
      const body = method === "POST" ? { document: { format: 1 } } : undefined;
      expect((await app.call(method, `/api/config${path}`, body, admin)).status).toBe(403);
      expect((await app.call(method, `/api/config${path}`, body)).status).toBe(401);
    }
  });

  test("what was applied acts at once: price, channel, keys, option", async () => {
    const applied = await apply(
      {
        prices: { "m-one": { in: 3, out: 6 } },
        options: {
          RetryTimes: 4,
          SensitiveWords: ["one", "two"],
          "claude.default_max_tokens": { default: 9000 },
        },
        channels: { live: { ...CHANNEL, key: "${A}", tag: "t", auto_ban: false, weight: 7 } },
      },
      { variables: { A: "k1\n k2 \n\nk1" } },
    );
    expect(applied.status).toBe("applied");
    expect(app.deps.prices.pricing("m-one")).toMatchObject({ modelRatio: 1.5, completionRatio: 2 });
    expect(app.deps.options.get("RetryTimes")).toBe(4);
    expect(app.deps.options.get("SensitiveWords")).toEqual(["one", "two"]);
    expect(app.deps.options.get("claude.default_max_tokens")).toEqual({ default: 9000 });
    expect(channelNamed("live")).toMatchObject({
      keys: ["k1", "k2"],
      tag: "t",
      autoBan: false,
      weight: 7,
      groups: ["default"],
    });
    const { abilities } = app.deps.db.t;
    expect(
      (await app.deps.db.orm.select().from(abilities)).map(({ model, group }) => [model, group]),
    ).toEqual([["m-one", "default"]]);
  });

  test("a key that is the same is no difference, another one is; none in the file keeps it", async () => {
    const channels = { live: { ...CHANNEL, key: "${A}" } };
    const made = await apply({ channels }, { variables: { A: "k1" } });
    expect(fieldsOf(made)).toContain("add live key");
    expect((await plan({ channels }, { variables: { A: "k1" } })).status).toBe("nothing");
    const other = await plan({ channels }, { variables: { A: "k2" } });
    expect(fieldsOf(other)).toEqual(["change live key"]);
    expect(JSON.stringify(other)).not.toContain("k2");
    // Another secret is another plan, though neither is told.
    expect((await plan({ channels }, { variables: { A: "k3" } })).plan_hash).not.toBe(other.plan_hash);
    const stale = await apply({ channels }, { variables: { A: "k3" }, plan_hash: other.plan_hash });
    expect(stale.status).toBe("mismatch");
    expect(channelNamed("live").keys).toEqual(["k1"]);
    expect((await apply({ channels: { live: { ...CHANNEL, priority: 2 } } })).status).toBe("applied");
    expect(channelNamed("live")).toMatchObject({ keys: ["k1"], priority: 2 });
    const gone = await plan({ channels }, { variables: {} });
    expect(problemsOf(gone)).toEqual(["channels.live.key config_variable_missing"]);
  });

  test("names are exact: a field that the file leaves out goes back to what is shipped", async () => {
    const whole = {
      ...CHANNEL,
      tag: "t",
      group: ["default", "vip"],
      param_override: { a: 1 },
      status: "disabled",
    };
    await apply({ channels: { live: { ...whole, key: "${A}" } } }, { variables: { A: "k" } });
    expect((await plan({ channels: { live: whole } })).status).toBe("nothing");
    const bare = await apply({ channels: { live: CHANNEL } });
    expect(fieldsOf(bare)).toEqual(
      ["status", "group", "tag", "param_override"].map((field) => `change live ${field}`),
    );
    expect(channelNamed("live")).toMatchObject({
      tag: "",
      groups: ["default"],
      paramOverride: {},
      status: 1,
    });
  });

  test("what only looks different is none: order, JSON's blanks, texts for lists and maps", async () => {
    const id = await app.createChannel({
      type: 1,
      name: "live",
      key: "k",
      models: "b,a",
      group: "vip,default",
      modelMapping: '{ "a":"x" }',
    });
    expect(id).toBeGreaterThan(0);
    const row = (await exported()).document["channels"]?.["live"] ?? {};
    expect(row["models"]).toEqual(["b", "a"]);
    for (const same of [
      { ...row, models: ["a", "b"], group: ["default", "vip"] },
      { ...row, models: "a, b", group: "default,vip", model_mapping: '{"a": "x"}' },
    ])
      expect(await plan({ channels: { live: same } })).toMatchObject({ status: "nothing", problems: [] });
  });

  test("a channel that failures switched off stays so, one that a person switched off is a difference", async () => {
    const id = await app.createChannel({ type: 1, name: "live", key: "k", models: "m-one" });
    const row = (await exported()).document["channels"]?.["live"];
    const status = (value: number) => app.call("PUT", "/api/channel/", { id, status: value }, root);
    await status(3);
    expect((await exported()).document["channels"]?.["live"]).toEqual(row ?? {});
    expect((await plan({ channels: { live: row } })).status).toBe("nothing");
    await status(2);
    expect(fieldsOf(await plan({ channels: { live: row } }))).toEqual(["change live status"]);
  });

  test("a password in an address is not told, stays where it is masked, and comes from the environment", async () => {
    const proxied = (proxy: string) => ({
      channels: { live: { ...CHANNEL, setting: { proxy }, key: "${K}" } },
    });
    const variables = { K: "k", P: "se:cr@t" };
    await apply(proxied("socks5://me:${P}@h:1"), { variables });
    expect(channelNamed("live").setting.proxy).toBe("socks5://me:se%3Acr%40t@h:1");
    const { document, text } = await exported();
    expect(document["channels"]?.["live"]?.["setting"]).toEqual({ proxy: "socks5://me:***@h:1" });
    expect(text).not.toContain("cr%40t");
    expect((await plan(proxied("socks5://me:***@h:1"), { variables })).status).toBe("nothing");
    expect((await plan(proxied("socks5://me:${P}@h:1"), { variables })).status).toBe("nothing");
    expect(problemsOf(await plan(proxied("socks5://me:***@other:1"), { variables }))).toEqual([
      "channels.live.setting.proxy config_masked_password",
    ]);
    expect(problemsOf(await plan(proxied("socks5://me:plain@h:1"), { variables }))).toEqual([
      "channels.live.setting.proxy config_literal_secret",
    ]);
    const other = await plan(proxied("socks5://me:${P}@h:1"), { variables: { K: "k", P: "new-one" } });
    expect(fieldsOf(other)).toEqual(["change live setting"]);
    expect(JSON.stringify(other)).not.toContain("new-one");
  });

  test("secrets in headers, parameters and queries are not told, stay where they are masked, and come from the environment", async () => {
    const of = (secret: string) => ({
      live: {
        ...CHANNEL,
        base_url: `https://up.example/v1?api_key=${secret}&region=eu`,
        header_override: { Authorization: `Bearer ${secret}`, "X-Trace": "plain", "api-key": "{api_key}" },
        param_override: {
          extra: [{ access_token: secret, level: "high" }],
          max_tokens: 5,
          prompt_cache_key: "everybody",
        },
        key: "${K}",
      },
    });
    const variables = { K: "k", S: "upstream-secret" };
    await apply({ channels: of("${S}") }, { variables });
    const stored = channelNamed("live");
    expect(stored.baseUrl).toContain("upstream-secret");
    expect(JSON.stringify(stored.headerRules)).toContain("upstream-secret");
    const { document, text } = await exported();
    expect(text).not.toContain("upstream-secret");
    expect(document["channels"]?.["live"]).toMatchObject({
      base_url: "https://up.example/v1?api_key=***&region=eu",
      header_override: { Authorization: "***", "X-Trace": "plain", "api-key": "{api_key}" },
      param_override: {
        extra: [{ access_token: "***", level: "high" }],
        max_tokens: 5,
        prompt_cache_key: "everybody",
      },
    });
    const masked = { ...document["channels"]?.["live"] };
    expect((await plan({ channels: { live: masked } })).status).toBe("nothing");
    expect((await plan({ channels: of("${S}") }, { variables })).status).toBe("nothing");
    // Beside a change the mask still stands for what is there.
    await apply({
      channels: { live: { ...masked, header_override: { Authorization: "***", "X-Trace": "new" } } },
    });
    expect(JSON.stringify(channelNamed("live").headerRules)).toContain("upstream-secret");
    const unknown = { ...masked, header_override: { Authorization: "***", "X-Api-Key": "***" } };
    expect(problemsOf(await plan({ channels: { live: unknown } }))).toEqual([
      "channels.live.header_override.X-Api-Key config_masked_password",
    ]);
    const gone = await plan({ channels: of("${GONE}") }, { variables });
    expect(problemsOf(gone).every((each) => each.endsWith("config_variable_missing"))).toBe(true);
    expect(problemsOf(gone)).toHaveLength(3);
  });

  test("names that several channels have: left out, refused, and not pruned unseen", async () => {
    for (const key of ["a", "b"]) await app.createChannel({ type: 1, name: "twin", key, models: "m" });
    await app.createChannel({ type: 1, name: "one", key: "k", models: "m" });
    const { document, unnamed } = await exported();
    expect([unnamed, Object.keys(document["channels"] ?? {})]).toEqual([["twin"], ["one"]]);
    expect(problemsOf(await plan({ channels: { twin: CHANNEL } }))).toEqual([
      "channels.twin config_channel_twice",
    ]);
    expect(problemsOf(await plan({ prune: true, channels: document["channels"] ?? {} }))).toEqual([
      "channels config_channel_twice",
    ]);
    expect((await plan({ channels: document["channels"] ?? {} })).status).toBe("nothing");
  });

  test("rows that nobody could write today are no difference either: only what is written is judged", async () => {
    const { channels } = app.deps.db.t;
    const odd = {
      name: "odd",
      type: 1,
      models: "",
      group: "",
      modelMapping: "{",
      baseUrl: "ftp://x",
    };
    const [row] = await app.deps.db.orm.insert(channels).values(odd).returning({ id: channels.id });
    await app.deps.routing.refresh([row?.id ?? 0]);
    const { document } = await exported();
    expect(await plan({ prune: true, channels: document["channels"] ?? {} })).toMatchObject({
      status: "nothing",
      problems: [],
    });
  });

  test("options: typed, secret by name alone, shipped again where pruned; secrets stay", async () => {
    const options = { SystemName: "Ours", "general_setting.ping_interval_seconds": 20, EpayKey: "${E}" };
    const made = await apply({ options }, { variables: { E: "epay-secret" } });
    expect(made.changes.find(({ name }) => name === "EpayKey")).toMatchObject({
      action: "add",
      before: null,
      after: null,
    });
    expect((await plan({ options }, { variables: { E: "epay-secret" } })).status).toBe("nothing");
    const { document, secrets, text } = await exported();
    expect(secrets).toContain("EpayKey");
    expect(document["options"]).not.toHaveProperty("EpayKey");
    expect(text).not.toContain("epay-secret");
    const pruned = await apply({
      prune: ["options"],
      options: { "general_setting.ping_interval_seconds": 20 },
    });
    expect(fieldsOf(pruned)).toContain("change SystemName");
    expect([
      app.deps.options.get("SystemName"),
      app.deps.options.text("EpayKey" as string as OptionKey),
    ]).toEqual(["Weir", "epay-secret"]);
    expect(app.deps.options.get("general_setting.ping_interval_seconds")).toBe(20);
  });

  test("switches and what they need may come in one file, in any order; half of it is blocked", async () => {
    const half = { TelegramOAuthEnabled: true, TelegramBotName: "bot" };
    const refused = await apply({ options: half }, { accept_guards: true });
    expect([refused.status, refused.guards]).toEqual([
      "guarded",
      [
        expect.objectContaining({
          code: "option_needs_telegram",
          name: "TelegramOAuthEnabled",
          blocking: true,
        }),
      ],
    ]);
    expect(app.deps.options.get("TelegramOAuthEnabled")).toBe(false);
    const whole = { ...half, TelegramBotToken: "${T}" };
    expect((await apply({ options: whole }, { variables: { T: "1:a" } })).status).toBe("applied");
    const without = await plan({ prune: ["options"], options: { TelegramOAuthEnabled: true } });
    expect(without.guards).toEqual([
      expect.objectContaining({ code: "option_needs_telegram_name", blocking: true }),
    ]);
    expect((await apply({ options: { TelegramOAuthEnabled: false } })).status).toBe("applied");
  });

  test("groups: a used one keeps its ratio, channels count as the same file leaves them", async () => {
    await apply({ groups: { tmp: { ratio: 0.5, usable: "Temporary" } } });
    expect(app.deps.options.get("UserUsableGroups")).toMatchObject({ tmp: "Temporary" });
    await apply(
      { channels: { live: { ...CHANNEL, group: ["default", "tmp"], key: "${A}" } } },
      { variables: { A: "k" } },
    );
    const groups = { ...(await exported()).document["groups"] };
    delete groups["tmp"];
    const used = await apply({ prune: ["groups"], groups }, { accept_guards: true });
    expect([used.status, used.guards]).toEqual([
      "guarded",
      [expect.objectContaining({ code: "price_group_in_use", name: "tmp", blocking: true })],
    ]);
    const moved = await apply({ prune: ["groups"], groups, channels: { live: CHANNEL } });
    expect([moved.status, fieldsOf(moved)]).toEqual([
      "applied",
      ["remove tmp ratio", "remove tmp usable", "change live group"],
    ]);
    expect(app.deps.options.get("GroupRatio")).not.toHaveProperty("tmp");
    expect(app.deps.options.get("UserUsableGroups")).not.toHaveProperty("tmp");
    const dear = await plan({ groups: { ...groups, vip: { ratio: 2.5, usable: "vip分组", topup: 1 } } });
    expect(dear.guards).toEqual([
      expect.objectContaining({ code: "config_price_doubled", name: "GroupRatio vip" }),
    ]);
  });

  test.each([
    ["group_overrides", { vip: { default: 0.5 } }],
    ["special_usable_groups", { vip: { "+:svip": "S", "-:default": "" } }],
    ["auto_groups", ["default", "vip"]],
  ])("%s: as it is written", async (section, value) => {
    const answer = await apply({ [section]: value });
    expect([answer.status, answer.problems]).toEqual(["applied", []]);
    expect((await exported()).document[section]).toEqual(value as never);
    expect((await plan({ [section]: value })).status).toBe("nothing");
  });

  test("prices: dollars stay what they are where the same file changes the quota of a dollar", async () => {
    await apply({ prices: { "m-two": { in: 2, out: 8 }, "m-old": { in: 1, out: 1 } } });
    const changed = await apply(
      { options: { QuotaPerUnit: 400_000 }, prices: { "m-two": { in: 2, out: 8 } } },
      { accept_guards: true },
    );
    expect(changed.status).toBe("applied");
    const { prices } = (await exported()).document;
    expect(prices?.["m-two"]).toEqual({ in: 2, out: 8 });
    // Nobody named it: its ratio stays, of the new unit.
    expect(prices?.["m-old"]).toEqual({ in: 1.25, out: 1.25 });
    await apply({ options: { QuotaPerUnit: 500_000 } }, { accept_guards: true });
  });

  test("prices: guards look at entries and tools too, removals tell the calls of the week", async () => {
    const over = (price: number) => ({
      prices: { "m-three": { in: 1, out: 2, when: [{ over: 1000, set: { in: price } }] } },
    });
    await apply(over(2));
    expect((await plan(over(20))).guards).toEqual([
      expect.objectContaining({ code: "config_price_doubled", name: "m-three", blocking: false }),
    ]);
    const priced = (search: number, times: number) => ({
      prices: {
        "m-three": {
          in: 1,
          out: 2,
          tools: { web_search: search },
          when: [
            { over: 1000, set: { in: 2 } },
            { tier: "priority", times: 20 },
            { tier: "flex", times },
          ],
        },
      },
    });
    // The new tier of twenty times the price is one of the guards itself.
    expect((await plan(priced(10, 0.5))).guards).toMatchObject([{ code: "config_price_doubled" }]);
    await apply(priced(10, 0.5), { accept_guards: true });
    for (const [slip, code] of [
      [priced(100, 0.5), "config_price_doubled"],
      [priced(10, 5), "config_price_doubled"],
      [priced(10, 0.05), "config_price_halved"],
    ] as const)
      expect((await plan(slip)).guards).toMatchObject([{ code, name: "m-three", blocking: false }]);
    expect((await plan({ prices: { "m-three": { call: 1 } } })).guards).toEqual([
      expect.objectContaining({ code: "config_price_unit_changed" }),
    ]);
    expect((await plan({ prices: { "m-four": { in: 75, out: 75 } } })).guards).toEqual([
      expect.objectContaining({ code: "config_price_looks_unset" }),
    ]);
    const { prices = {} } = (await exported()).document;
    const { "m-three": _, ...rest } = prices;
    const without = await plan({ prune: true, prices: rest });
    expect([without.status, without.removals]).toEqual(["differences", [{ name: "m-three", calls: 0 }]]);
    expect(fieldsOf(without)).toEqual(
      ["in", "out", "tools", "when"].map((field) => `remove m-three ${field}`),
    );
    expect((await apply({ prune: true, prices: rest })).status).toBe("applied");
    expect(app.deps.prices.pricing("m-three")).toBeUndefined();
    expect(app.deps.options.get("PriceRules")).not.toHaveProperty("m-three");
  });

  test("all or nothing: a channel that cannot be written takes prices and options with it", async () => {
    const models = Array.from({ length: 1500 }, (_, index) => `m${index}`);
    const group = Array.from({ length: 90 }, (_, index) => `g${index}`);
    const document = {
      format: 1,
      options: { SystemName: "Half" },
      prices: { "m-half": { in: 1, out: 1 } },
      channels: { first: { ...CHANNEL, key: "${A}" }, huge: { ...CHANNEL, models, group, key: "${A}" } },
    };
    const answer = await app.call<{ success: boolean; code: string }>(
      "POST",
      "/api/config/apply",
      { document, variables: { A: "k" } },
      root,
    );
    expect([answer.body.success, answer.body.code]).toEqual([false, "channel_index_large"]);
    expect(app.deps.options.get("SystemName")).not.toBe("Half");
    expect(app.deps.prices.pricing("m-half")).toBeUndefined();
    expect((await exported()).document["channels"]).toEqual({});
  });

  test.each<[what: string, change: () => Promise<unknown>]>([
    ["an option", () => app.deps.options.set("Footer", crypto.randomUUID())],
    ["a price", () => app.deps.options.set("ModelPrice", JSON.stringify({ [crypto.randomUUID()]: 1 }))],
    [
      "the channel",
      () => app.call("PUT", "/api/channel/", { id: channelNamed("live").id, priority: 9 }, root),
    ],
    ["a new channel", () => app.createChannel({ type: 1, name: "late", key: "k", models: "m" })],
  ])("what changes between reading and writing stops the whole: %s", async (_, change) => {
    await apply({ channels: { live: { ...CHANNEL, key: "${A}" } } }, { variables: { A: "k" } });
    const { options } = app.deps;
    const write = options.write.bind(options);
    // Between the last look and the atomic block.
    options.write = async (...args) => {
      options.write = write;
      await change();
      return write(...args);
    };
    const document = { options: { SystemName: "Mine" }, channels: { live: { ...CHANNEL, tag: "mine" } } };
    const answer = await apply(document);
    expect(answer.status).toBe("moved");
    expect([options.get("SystemName"), channelNamed("live").tag]).not.toContain("Mine");
    expect(channelNamed("live").tag).toBe("");
  });

  test("calls, tests and balances of a channel meanwhile stop nothing", async () => {
    await apply({ channels: { live: { ...CHANNEL, key: "${A}" } } }, { variables: { A: "k" } });
    const { options, db } = app.deps;
    const write = options.write.bind(options);
    options.write = async (...args) => {
      options.write = write;
      await db.orm.update(db.t.channels).set({ testTime: 5, responseTime: 7, balance: 3 });
      return write(...args);
    };
    expect((await apply({ channels: { live: { ...CHANNEL, tag: "mine" } } })).status).toBe("applied");
  });

  test("one revision for all prices of a file, with note and author, and none where no price changes", async () => {
    const count = async () =>
      (
        await app.call<{ data: { total: number; items: { kind: string; note: string }[] } }>(
          "GET",
          "/api/price/revisions",
          undefined,
          root,
        )
      ).body.data;
    const before = await count();
    await apply(
      { groups: { extra: { ratio: 1 } }, prices: { "m-five": { in: 1, out: 1 }, "m-six": { call: 1 } } },
      { note: "why" },
    );
    await apply({ options: { About: "About us" } });
    const after = await count();
    expect(after.total).toBe(before.total + 1);
    expect(after.items[0]).toMatchObject({ kind: "cli", note: "why", username: root.username });
  });
});
