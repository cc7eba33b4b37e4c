// What an old site offers: channels and their keys, prices and settings, plans. What is not understood must not serve, and is told.
import { describe, expect, test } from "bun:test";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import { mapChannel } from "../../src/import/mapping/channels.ts";
import { readExpression } from "../../src/import/mapping/expression.ts";
import { mapOptions } from "../../src/import/mapping/options.ts";
import { effectsOf, mapPlan, mapRunning } from "../../src/import/mapping/plans.ts";
import type { MappedPlan } from "../../src/import/mapping/plans.ts";
import { mapPrices } from "../../src/import/mapping/prices.ts";
import { createNotes } from "../../src/import/report.ts";
import type { Notes } from "../../src/import/report.ts";
import type { Family } from "../../src/import/family.ts";
import { definitionOf } from "../../src/core/options/definitions.ts";
import { shippedPrices } from "../../src/core/prices/shipped.ts";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const DAY = 86_400;

const told = ({ findings }: Notes): Record<string, string[]> =>
  Object.fromEntries(findings.map(({ code, samples }) => [code, samples]));

describe("channels", () => {
  const facts = (family: Family = "new-api") => ({
    family,
    notes: createNotes(),
    sums: new Map([[1, { quota: 40, count: 1, first: 0 }]]),
  });
  const base = {
    id: 1,
    type: 1,
    key: "sk-a",
    status: 1,
    name: "c",
    models: "m1, m2,m1",
    group: "default,vip",
    used_quota: 100,
  };

  test("a channel keeps its columns; its use is an opening, and no key's", () => {
    const own = facts();
    const found = mapChannel(
      { ...base, setting: '{"proxy":"http://p:1"}', auto_ban: null, weight: null, tag: "" },
      own,
    );
    expect(found.channel).toMatchObject({
      id: 1,
      models: "m1,m2",
      group: "default,vip",
      status: 1,
      usedQuota: 100,
      goneKeysQuota: 100,
      setting: '{"proxy":"http://p:1"}',
      autoBan: 1,
      tag: null,
    });
    expect(found.opening).toEqual({ kind: "channel", id: 1, usedQuota: 60, requestCount: 0 });
    expect(own.notes.findings).toEqual([]);
  });

  test("states of keys count by their places, before doubles are one; surplus states are told", () => {
    const own = facts("new-api-v1");
    const found = mapChannel(
      {
        ...base,
        key: "k0\nk1\nk0\nk2",
        channel_info: JSON.stringify({
          is_multi_key: true,
          multi_key_mode: "random",
          multi_key_status_list: { 1: 2, 3: 3, 9: 2 },
          multi_key_disabled_reason: { 3: "quota" },
          multi_key_disabled_time: { 3: 1000 },
        }),
      },
      own,
    );
    expect(
      found.keys.map(({ text, status, reason, hash }) => [text, status, reason, hash === sha256Hex(text)]),
    ).toEqual([
      ["k0", undefined, undefined, true],
      ["k1", 2, "", true],
      ["k2", 3, "quota", true],
    ]);
    expect(found.channel.multiKeyMode).toBe("random");
    expect(told(own.notes)).toEqual({
      channel_key_states: ["1"],
      channel_key_twice: ["1"],
      channel_keys_off: ["1 (1)"],
    });
  });

  test("a list of keys as JSON is one a line; with none of them on the channel is off by itself", () => {
    const info = { multi_key_status_list: { 0: 3, 1: 2 } };
    const { channel, keys } = mapChannel(
      { ...base, key: '["a","b"]', channel_info: info },
      facts("new-api-v1"),
    );
    expect([keys.map(({ text }) => text), channel.status]).toEqual([["a", "b"], 3]);
  });

  test("what is not understood switches the channel off: types, forks' numbers, chosen users, overrides", () => {
    const own = facts();
    const statusOf = (row: object) => mapChannel({ ...base, ...row }, own).channel.status;
    expect(statusOf({ id: 2, type: 99 })).toBe(2);
    expect(statusOf({ id: 3, type: 58 })).toBe(2);
    expect(statusOf({ id: 4, open_user_ids: "[1]" })).toBe(2);
    expect(statusOf({ id: 5, param_override: '{"operations":[{"mode":"no such"}]}' })).toBe(2);
    expect(statusOf({ id: 6, status: 0 })).toBe(2);
    expect(statusOf({ id: 7, status: 3 })).toBe(3);
    expect(told(own.notes)).toMatchObject({
      channel_fork_type: ["2 (99)", "3 (58)"],
      channel_open_users: ["4"],
      channel_override: ["5 (param_override)"],
    });
  });

  test("broken JSON is an empty field and told, the channel serves on", () => {
    const own = facts();
    const { channel } = mapChannel(
      { ...base, model_mapping: "{a", setting: "null", settings: '{"azure_version":"1"}', remark: "r" },
      own,
    );
    expect([channel.modelMapping, channel.setting, channel.status]).toEqual(["", "", 1]);
    expect(told(own.notes)).toEqual({
      broken_json: ["1 (model_mapping)"],
      channel_field: ["1 (settings.azure_version)", "1 (remark)"],
    });
  });

  test.each([
    [1, {}, { type: 1, baseUrl: "" }],
    [29, {}, { type: 1, baseUrl: "https://api.groq.com/openai" }],
    [29, { base_url: "https://own.example/" }, { type: 1, baseUrl: "https://own.example" }],
    [50, { base_url: "https://own.example/v1/" }, { type: 1, baseUrl: "https://own.example" }],
    [36, {}, { type: 43 }],
    [42, { config: '{"vertex_ai_adc":"{\\"a\\":1}","region":"us"}' }, { type: 41, other: "us" }],
    [34, { config: { user_id: "u" } }, { type: 49, other: "u" }],
    [
      18,
      { other: "v3.5", system_prompt: "be kind" },
      { type: 18, other: "v3.5", setting: '{"system_prompt":"be kind"}' },
    ],
    [46, {}, { type: 46, status: 2 }],
  ])("one-api's number %d means what it meant there", (type, more, expected) => {
    expect(mapChannel({ ...base, type, ...more }, facts("one-api")).channel).toMatchObject(expected);
  });

  test("one-api's AWS keys stand in its config", () => {
    const { keys } = mapChannel(
      { ...base, type: 33, key: "", config: '{"ak":"A","sk":"S","region":"r"}' },
      facts("one-api"),
    );
    expect(keys.map(({ text }) => text)).toEqual(["A|S|r"]);
  });
});

describe("prices", () => {
  const facts = (family: Family, served: string[] = []) => ({
    family,
    notes: createNotes(),
    now: NOW,
    quotaPerUnit: 500_000,
    served: new Set(served),
  });
  const texts = (options: Record<string, unknown>) =>
    new Map(
      Object.entries(options).map(([key, value]) => [
        key,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    );

  test("a map is whole; one that is absent is the built-in one of that product", () => {
    const own = facts("new-api");
    const { maps, origins } = mapPrices(
      texts({ ModelRatio: { mine: 2, free: 0, odd: "x", "a(33)": 1 } }),
      own,
    );
    expect(maps.ModelRatio).toEqual({ mine: 2, free: 0 });
    expect(maps.ModelPrice).toEqual(JSON.parse(definitionOf("ModelPrice").default) as never);
    expect(told(own.notes)).toEqual({
      price_refused: ["ModelRatio: odd"],
      price_channel_name: ["ModelRatio: a(33)"],
    });
    // What the product itself said of a model is the origin, also of one that the operator has taken away.
    const builtIn = JSON.parse(definitionOf("ModelRatio").default) as Record<string, number>;
    expect(origins.map(({ name }) => name)).toContain(Object.keys(builtIn)[0]!);
    expect(origins.map(({ name }) => name)).not.toContain("mine");
  });

  test("of a product whose built-in prices nobody knows the shipped table stands in, by name", () => {
    const [model] = [...shippedPrices().rows].find(([, row]) => row.call === undefined && row.in !== 0) ?? [
      "",
    ];
    const own = facts("new-api-v1", [model, "unknown"]);
    expect(mapPrices(texts({}), own).maps.ModelRatio[model]).toBeGreaterThan(0);
    expect(told(own.notes)).toEqual({ price_shipped: [model] });
    const whole = facts("new-api-v1", [model]);
    expect(mapPrices(texts({ ModelRatio: { [model]: 7 }, ModelPrice: {} }), whole).maps.ModelRatio).toEqual({
      [model]: 7,
    });
    expect(whole.notes.findings).toEqual([]);
  });

  test("one-api knows ratios alone: no fixed price and no cache ratio comes in beside them", () => {
    const { maps } = mapPrices(texts({ ModelRatio: { "dall-e-3": 20 } }), facts("one-api", ["dall-e-3"]));
    expect([maps.ModelPrice, maps.CacheRatio, maps.ModelRatio]).toEqual([{}, {}, { "dall-e-3": 20 }]);
  });

  test("an output ratio that a lock had silenced goes, so that the price stays", () => {
    const own = facts("new-api");
    const { maps } = mapPrices(texts({ CompletionRatio: { "gpt-4o": 9, "claude-3-opus": 5, own: 3 } }), own);
    expect(maps.CompletionRatio).toEqual({ "claude-3-opus": 5, own: 3 });
    expect(told(own.notes)).toEqual({ price_silenced: ["gpt-4o"] });
  });

  test("an expression becomes a row with its tiers; one that says more keeps the other price and is told", () => {
    const own = facts("new-api-v1");
    const { maps } = mapPrices(
      texts({
        ModelRatio: { long: 1, odd: 3 },
        ModelPrice: {},
        "billing_setting.billing_mode": { long: "tiered_expr", odd: "tiered_expr", off: "ratio" },
        "billing_setting.billing_expr": {
          long: 'len <= 200000 ? tier("a", p * 3 + c * 15 + cr * 0.3) : tier("b", p * 6 + c * 22.5)',
          odd: 'p > 3 && c > 4 ? tier("a", p) : tier("b", c)',
          off: 'tier("a", p * 1)',
        },
      }),
      own,
    );
    expect([maps.ModelRatio["long"], maps.CompletionRatio["long"], maps.CacheRatio["long"]]).toEqual([
      1.5, 5, 0.1,
    ]);
    expect(maps.PriceRules["long"]?.when).toEqual([
      {
        over: 200_000,
        set: expect.objectContaining({
          in: 6,
          out: 22.5,
          cache_read: 6,
          cache_write: 6,
          image_in: 6,
        }) as never,
      },
    ]);
    expect(maps.ModelRatio["odd"]).toBe(3);
    expect(maps.ModelRatio).not.toHaveProperty("off");
    expect(told(own.notes)["expression_refused"]?.[0]).toStartWith("odd (");
  });

  test.each([
    ['v1: tier("x", p * 1 + c * 2)', [[0, 1]]],
    [
      'len < 100 ? tier("a", p*1) : tier("b", p*2)',
      [
        [0, 1],
        [99, 2],
      ],
    ],
    [
      'len > 100 ? tier("b", p*2) : tier("a", p*1)',
      [
        [0, 1],
        [100, 2],
      ],
    ],
    [
      'len >= 100 ? tier("b", p*2) : tier("a", p*1)',
      [
        [0, 1],
        [99, 2],
      ],
    ],
    [
      'len <= 10 ? tier("a", p*1) : len <= 20 ? tier("b", p*2) : tier("c", p*3)',
      [
        [0, 1],
        [10, 2],
        [20, 3],
      ],
    ],
    [
      'p <= 10 ? tier("a", 1.5 * p + c*2) : tier("b", p*2)',
      [
        [0, 1.5],
        [10, 2],
      ],
    ],
  ] as [string, [number, number][]][])("%s", (expression, expected) => {
    const { row } = readExpression(expression);
    const found = [[0, row?.in], ...(row?.when ?? []).map(({ over, set }) => [over, set?.in])];
    expect(found).toEqual(expected);
  });

  test.each([
    ['||| param("service_tier") == "flex" ? 0.5 : 1', [{ tier: "flex", times: 0.5 }]],
    [
      '* (param("service_tier") == "priority" ? 2 : 1) * (hour("Asia/Shanghai") >= 21 || hour("Asia/Shanghai") < 6 ? 0.5 : 1)',
      [
        { tier: "priority", times: 2 },
        { hours: ["21:00-06:00"], tz: "Asia/Shanghai", times: 0.5 },
      ],
    ],
    [
      '||| ((hour("UTC") >= 9 && hour("UTC") < 12) || (hour("UTC") >= 14 && hour("UTC") < 18)) && weekday("UTC") >= 1 && weekday("UTC") <= 5 ? 2 : 1',
      [
        {
          hours: ["09:00-12:00", "14:00-18:00"],
          days: ["mon", "tue", "wed", "thu", "fri"],
          tz: "UTC",
          times: 2,
        },
      ],
    ],
  ] as [string, unknown[]][])("rules of a request behind the tiers: %s", (rules, expected) => {
    const { row, problem } = readExpression(`tier("a", p * 1 + c * 2) ${rules}`);
    expect([row?.when, problem]).toEqual([expected as never, undefined]);
  });

  test.each([
    "",
    'tier("a", p) ||| header("x") == "y" ? 2 : 1',
    'tier("a", p) ||| param("service_tier") == "flex" ? 0.5 : 2',
    'tier("a", p) ||| weekday("UTC") == 1 && (hour("UTC") >= 21 || hour("UTC") < 6) ? 2 : 1',
    "p * 2",
    'tier("a", x * 2)',
    'tier("a", p) ||| param("x")',
    'p <= 10 ? tier("a", p + cr*1) : tier("b", p)',
  ])("%s is refused with its place", (expression) => {
    expect(readExpression(expression).problem).toBeString();
  });
});

describe("settings", () => {
  test("known ones come under our names, switches last, secrets by name alone", () => {
    const notes = createNotes();
    const writes = mapOptions(
      new Map([
        ["GitHubOAuthEnabled", "true"],
        ["GitHubClientId", "id"],
        ["GitHubClientSecret", "secret"],
        ["ServerAddress", "https://old.example"],
        ["legal.user_agreement", "terms"],
        ["general_setting.quota_display_type", "TOKENS"],
        ["TelegramOAuthEnabled", "true"],
        ["TelegramBotToken", ""],
        ["RetryTimes", "many"],
        ["perf_metrics.enabled", "true"],
        ["ModelRatio", "{}"],
      ]),
      notes,
    );
    const keys = writes.map(({ key }) => String(key));
    expect(keys.at(-1)).toBe("GitHubOAuthEnabled");
    expect(new Map(writes.map(({ key, text }) => [key, text]))).toEqual(
      new Map<never, string>([
        ["GitHubClientId", "id"],
        ["GitHubClientSecret", "secret"],
        ["ServerAddress", "https://old.example"],
        ["legal.terms", "terms"],
        ["QuotaDisplayType", "TOKENS"],
        ["TelegramBotToken", ""],
        ["GitHubOAuthEnabled", "true"],
      ] as never),
    );
    expect(told(notes)).toMatchObject({
      option_refused: ["RetryTimes"],
      option_off: ["TelegramOAuthEnabled"],
      option_unknown: ["perf_metrics.enabled"],
    });
    expect(JSON.stringify(notes.findings)).not.toContain('secret"');
  });
});

describe("plans", () => {
  const planFacts = (unlimitedQuota?: number) => ({
    notes: createNotes(),
    now: NOW,
    quotaPerUnit: 500_000,
    unlimitedQuota,
    titles: new Set<string>(),
  });
  const plan = {
    id: 1,
    title: "Pro",
    price_amount: "9.99",
    currency: "usd",
    duration_unit: "month",
    duration_value: 1,
    total_amount: 1000,
  };

  test("terms come over; what cannot be kept is off, and doubled titles are told apart", () => {
    const own = planFacts();
    const kept = mapPlan(
      { ...plan, quota_reset_period: "daily", allow_wallet_overflow: null, upgrade_group: "vip" },
      own,
    );
    expect(kept).toMatchObject({
      priceMinor: 999,
      currency: "USD",
      reset: "day",
      quota: 1000,
      overflow: true,
      stack: "parallel",
      enabled: true,
      group: "vip",
    });
    const off = [
      { ...plan, id: 2, duration_unit: "hour", duration_value: 5, quota_reset_period: "daily" },
      { ...plan, id: 3, quota_reset_period: "custom" },
      { ...plan, id: 4, total_amount: 0 },
      { ...plan, id: 5, title: "Weekly", duration_unit: "custom", custom_seconds: 7 * DAY },
    ].map((row) => mapPlan(row, own));
    expect(
      off.map(({ enabled, reset, durationCount, title }) => [enabled, reset, durationCount, title]),
    ).toEqual([
      [false, "none", 1, "Pro#2"],
      [false, "none", 1, "Pro#3"],
      [false, "none", 1, "Pro#4"],
      [true, "none", 7, "Weekly"],
    ]);
    expect(told(own.notes)).toEqual({
      plan_off: ["2", "3"],
      plan_title: ["2", "3", "4"],
      plan_unlimited: ["4"],
    });
    expect(mapPlan({ ...plan, total_amount: 0 }, planFacts(77))).toMatchObject({ quota: 77, enabled: true });
  });

  function running(
    row: object,
    plans: MappedPlan[],
    preference: string | undefined = "",
    unlimitedQuota?: number,
  ) {
    const notes = createNotes();
    const found = mapRunning(
      {
        id: 9,
        user_id: 3,
        plan_id: 1,
        status: "active",
        amount_total: 1000,
        amount_used: 300,
        start_time: NOW - 9 * DAY,
        end_time: NOW + 5 * DAY,
        ...row,
      },
      {
        notes,
        now: NOW,
        zone: "UTC",
        plans: new Map(plans.map((each) => [each.id, each])),
        unlimitedQuota,
        preferenceOf: () => preference,
      },
    );
    return { found, notes };
  }

  test("a running plan goes on where it is: its period, what is left, and its number of credits", () => {
    const daily = mapPlan({ ...plan, quota_reset_period: "daily" }, planFacts());
    const midnight = Date.UTC(2026, 10, 21) / 1000;
    const { found } = running({ next_reset_time: midnight, upgrade_group: "vip", prev_user_group: "old" }, [
      daily,
    ]);
    expect(found?.period).toMatchObject({
      no: 1,
      startsAt: midnight - DAY,
      endsAt: midnight,
      quota: 1000,
      used: 300,
    });
    expect(found?.credit).toMatchObject({ kind: "plan", ref: "9:1", amount: 1000 });
    expect(found?.ownGroup).toBe("old");
    // Its reset is overdue: all of it is there again.
    expect(running({ next_reset_time: midnight - DAY }, [daily]).found?.period).toMatchObject({
      used: 0,
      endsAt: midnight,
    });
    // Without a reset one period is all of it.
    const once = mapPlan(plan, planFacts());
    expect(running({}, [once]).found?.period).toMatchObject({
      startsAt: NOW - 9 * DAY,
      endsAt: NOW + 5 * DAY,
    });
  });

  test("what has ended, has no plan or no limit does not run; preferences are kept where they can be", () => {
    const known = [mapPlan(plan, planFacts())];
    expect(running({ status: "expired" }, known).found).toBeUndefined();
    expect(running({ end_time: NOW }, known).found).toBeUndefined();
    expect(told(running({}, []).notes)).toEqual({ plan_gone: ["9 (3)"] });
    expect(told(running({ amount_total: 0 }, known).notes)).toEqual({ plan_unlimited_holder: ["9 (3)"] });
    expect(running({ amount_total: 0 }, known, "", 500).found?.period.quota).toBe(500);
    expect(running({}, known, "subscription_only").found?.userPlan.overflow).toBe(false);
    expect(told(running({}, known, "wallet_first").notes)).toEqual({ plan_wallet_first: ["9 (3)"] });
  });

  test("several plans of one account: their sums, the earliest end, the newest group, the oldest own group", () => {
    const known = [mapPlan(plan, planFacts())];
    const first = running({ id: 1, upgrade_group: "a", prev_user_group: "own" }, known).found;
    const second = running(
      { id: 2, upgrade_group: "b", prev_user_group: "a", end_time: NOW + DAY, amount_used: 1000 },
      known,
    ).found;
    expect(effectsOf([first!, second!]).get(3)).toEqual({
      left: 700,
      used: 1300,
      until: NOW + DAY,
      isStrict: false,
      planGroup: "b",
      ownGroup: "own",
    });
  });
});
