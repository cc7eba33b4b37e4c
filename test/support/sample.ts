// A product full of sample rows for whatever looks at whole screens: budgets, accessibility, hostile names, screenshots.
// Refuses nothing that a database takes: names come from the caller and may be anything. The sums are made up, not audited.
import { randomBytes } from "node:crypto";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import type { InboxKind, InboxParams } from "../../src/shared/inbox.ts";
import type { Schema } from "../../drizzle/schema.ts";
import type { BrowserContext } from "playwright";
import { startTestApp } from "./app.ts";
import type { TestApp, TestAppOptions, TestUser } from "./app.ts";

const HOUR_SECONDS = 3600;
const MOST_DAYS_OF = 8;
/** Below the parameter limit of one statement, for the widest table. */
const AT_ONCE = 500;

/** Every text of the sample that people, operators or upstreams choose. */
export interface SampleWords {
  /** Names of things: keys, channels, tags, codes. */
  name: (what: string, index: number) => string;
  model: (index: number) => string;
  group: (index: number) => string;
  /** Prompts, failures, notes. */
  sentence: (index: number) => string;
  /** How many rows each list gets. */
  rows: number;
  models: number;
  groups: number;
}

const SENTENCES = [
  "A weir at dawn, mist over the water, long exposure, 35 mm",
  "A quiet song about a river that remembers every boat",
  "河上的小桥，雨后初晴，水彩画",
  "The upstream answered 429: too many requests, try again in 20 seconds",
];

const MODELS = [
  "gpt-4o",
  "gpt-4o-mini",
  "claude-sonnet-4-20250514",
  "gemini-2.5-pro",
  "deepseek-chat",
  "qwen-max",
  "text-embedding-3-small",
  "mistral-large-latest",
];

/** What waits in the inbox beside disabled channels, the newest first; the last is closed. */
const INBOX: readonly (readonly [InboxKind, InboxParams])[] = [
  ["mail", {}],
  ["audit", { count: 3, what: "users.quota", id: "17", expected: 1_500_000, found: 1_499_000 }],
  ["disk", { node: "0f3c9a41", free: "8.8 GiB", percent: 9 }],
  ["settlement_refused", { node: "0f3c9a41", count: 2 }],
  ["database", { node: "0f3c9a41" }],
];

/** What an operator of a middling installation would see. */
export const PLAIN_WORDS: SampleWords = {
  name: (what, index) => `${what} ${index + 1}`,
  model: (index) => MODELS[index % MODELS.length] ?? "",
  group: (index) => ["default", "vip", "svip"][index] ?? `team-${index}`,
  sentence: (index) => SENTENCES[index % SENTENCES.length] ?? "",
  rows: 36,
  models: MODELS.length,
  groups: 4,
};

export interface Sample {
  app: TestApp;
  user: TestUser;
  admin: TestUser;
  root: TestUser;
}

export type SampleRole = "guest" | "user" | "admin" | "root";
export const SAMPLE_ROLES: readonly SampleRole[] = ["guest", "user", "admin", "root"];

/** Headers that sign a page load; none for guests. */
export function headersOf(sample: Sample, role: SampleRole): Record<string, string> {
  return role === "guest" ? {} : sample[role].headers;
}

/** Starts a server of its own on an empty directory, set up and filled. Close `app` when done. */
export async function startSample(
  words: SampleWords = PLAIN_WORDS,
  options: TestAppOptions = {},
): Promise<Sample> {
  const app = await startTestApp(options);
  const { deps } = app;
  const range = (count: number) => Array.from({ length: count }, (_, index) => index);
  const groups = range(words.groups).map(words.group);
  const models = [...new Set(range(words.models).map(words.model))];
  const root = await app.createUser({ username: "root", role: 100, quota: 100_000_000 });
  const admin = await app.createUser({ username: "ada", role: 10, quota: 20_000_000 });
  const user = await app.createUser({ username: "bob", role: 1, quota: 12_345_678, group: groups[0] ?? "" });
  const nowSeconds = Math.floor(deps.clock.nowMs() / 1000);
  const t = deps.db.t;
  await deps.db.orm.insert(t.setups).values({ version: "0.1.0", initializedAt: nowSeconds });

  const ratios = Object.fromEntries(groups.map((group, index) => [group, 1 + (index % 5) * 0.5]));
  await deps.options.set("GroupRatio", JSON.stringify(ratios));
  await deps.options.set(
    "UserUsableGroups",
    JSON.stringify(Object.fromEntries(groups.map((group, index) => [group, words.sentence(index)]))),
  );
  await deps.options.set(
    "Chats",
    JSON.stringify([{ [words.name("chat", 0)]: "https://chat.example/?key={key}&url={address}" }]),
  );
  await deps.options.set("SelfUseModeEnabled", "true");
  await deps.options.set("site.status_page", "public");
  await deps.options.set("KeyLimitsDefault", JSON.stringify({ max_concurrency: 20 }));
  await deps.options.set(
    "KeyLimitsGroup",
    JSON.stringify(
      Object.fromEntries(
        groups
          .slice(0, 2)
          .map((group) => [group, { budget_quota: 25_000_000, budget_period: "week", rpm_limit: 600 }]),
      ),
    ),
  );

  await insertAll(
    range(words.rows).map((index) => ({
      username: words.name("user", index),
      displayName: words.name("person", index),
      email: `person${index}@example.org`,
      group: groups[index % groups.length] ?? "",
      status: index % 7 === 3 ? 2 : 1,
      quota: index * 1_234_567,
      usedQuota: index * 654_321,
      requestCount: index * 77,
      createdAt: nowSeconds - index * 86_400,
    })),
    (rows) => deps.db.orm.insert(t.users).values(rows),
  );
  await insertAll(
    range(words.rows).map((index) => ({
      name: words.name("channel", index),
      type: [1, 14, 24, 3, 33, 15][index % 6] ?? 1,
      status: index % 9 === 4 ? 3 : index % 9 === 7 ? 2 : 1,
      otherInfo:
        index % 9 === 4
          ? JSON.stringify({ status_reason: words.sentence(index), status_time: nowSeconds - 600 })
          : "",
      models: (index === 0 ? models : models.slice(0, 3 + (index % 4))).join(","),
      group: index === 0 ? groups.slice(0, 20).join(",") : (groups[index % groups.length] ?? ""),
      weight: index % 3,
      priority: index % 4,
      usedQuota: index * 777_777,
      balance: index * 1.25,
      responseTime: 350 * (index % 20),
      testTime: index % 5 === 0 ? 0 : nowSeconds - index * 900,
      createdTime: nowSeconds - index * 86_400,
      tag: index % 3 === 0 ? words.name("tag", index % 2) : null,
    })),
    (rows) => deps.db.orm.insert(t.channels).values(rows),
  );
  const channelIds = await deps.db.orm.select({ id: t.channels.id }).from(t.channels);
  await insertAll(
    channelIds.map(({ id }) => ({
      channelId: id,
      pos: 0,
      keyHash: sha256Hex(`upstream-key-${id}`),
      keySealed: deps.seal.seal("channel", `upstream-key-${id}`),
    })),
    (rows) => deps.db.orm.insert(t.channelKeys).values(rows),
  );
  await insertAll(
    models.map((model) => ({ group: groups[0] ?? "", model, channelId: 1, enabled: true })),
    (rows) => deps.db.orm.insert(t.abilities).values(rows).onConflictDoNothing(),
  );
  for (const owner of [user, admin, root]) {
    await insertAll(
      range(owner === user ? words.rows : 3).map((index) => tokenRow(app, words, owner, index)),
      (rows) => deps.db.orm.insert(t.tokens).values(rows),
    );
  }
  await insertAll(
    range(words.rows).map((index) => {
      const key = randomBytes(16).toString("hex");
      return {
        userId: admin.id,
        name: words.name("code", index).slice(0, 20),
        keyHash: sha256Hex(key),
        keySealed: deps.seal.seal("redemption", key),
        status: (index % 3) + 1,
        quota: 500_000 * (index + 1),
        createdTime: nowSeconds - index * 7200,
        redeemedTime: index % 3 === 2 ? nowSeconds - index * 3600 : 0,
        usedUserId: index % 3 === 2 ? user.id : 0,
      };
    }),
    (rows) => deps.db.orm.insert(t.redemptions).values(rows),
  );
  await seedModelDays(app, models, nowSeconds);
  await seedLogs(app, words, [user, admin], nowSeconds);
  await seedTasks(app, words, [user, admin], nowSeconds);
  await seedOrders(app, words, [user, admin], nowSeconds);
  await deps.routing.reload();
  await seedInbox(app, nowSeconds);
  return { app, user, admin, root };
}

/** Opens both rails of a sample, which is a site for own use: the wallet sells then, by methods of these names. */
export async function openPayments({ app }: Sample, names: readonly string[] = ["Alipay", "WeChat Pay"]) {
  const methods = names.map((name, index) => ({ name, type: `method${index}` }));
  for (const [key, value] of [
    ["SelfUseModeEnabled", "false"],
    ["ServerAddress", app.url],
    ["EpayId", "1001"],
    ["EpayKey", "merchant-key"],
    ["PayAddress", "https://pay.example"],
    ["PayMethods", JSON.stringify(methods)],
    ["payment_setting.amount_discount", '{"100":0.95}'],
    ["StripeApiSecret", "sk_test_0123456789"],
    ["StripeWebhookSecret", "whsec_0123456789abcdefghijkl"],
  ] as const)
    await app.deps.options.set(key, value);
}

/** Orders in every state; the first one, number 1, has a receipt and reports of its rail. */
async function seedOrders(
  { deps }: TestApp,
  words: SampleWords,
  owners: readonly TestUser[],
  nowSeconds: number,
): Promise<void> {
  const { orm, t } = deps.db;
  const states = ["credited", "review", "pending", "refunded", "expired", "failed"] as const;
  await insertAll(
    Array.from({ length: words.rows }, (_, index) => {
      const status = states[index % states.length] ?? "pending";
      const isPaid = status === "credited" || status === "refunded";
      return {
        tradeNo: index === 0 ? "1" : `USR${index}NO${String(index).padStart(20, "0")}`,
        userId: owners[index % 3 === 1 ? 1 : 0]?.id ?? 0,
        rail: index % 4 === 3 ? "stripe" : "epay",
        method: index % 4 === 3 ? "stripe" : words.name("method", index),
        quota: 500_000 * (index + 1),
        moneyMinor: 730 * (index + 1),
        currency: index % 4 === 3 ? "usd" : "CNY",
        snapshot: JSON.stringify({ amount: index + 1, unit: "dollars", price: "7.3" }),
        status,
        providerRef: isPaid ? `ref-${index}` : null,
        refundedMinor: status === "refunded" ? 730 * (index + 1) : 0,
        debitedQuota: status === "refunded" ? 500_000 * (index + 1) : 0,
        createdAt: nowSeconds - index * HOUR_SECONDS,
        updatedAt: nowSeconds - index * HOUR_SECONDS,
        expiresAt: nowSeconds + HOUR_SECONDS,
        creditedAt: isPaid ? nowSeconds - index * HOUR_SECONDS + 60 : 0,
        note: status === "review" ? (index % 2 === 0 ? words.sentence(index) : "money") : "",
      };
    }),
    (rows) => orm.insert(t.orders).values(rows),
  );
  await orm.insert(t.paymentEvents).values(
    ["repeated", "credited"].map((verdict, index) => ({
      rail: "epay",
      eventId: `event-${index}`,
      tradeNo: "1",
      at: nowSeconds + 60 - index,
      verdict,
      report: JSON.stringify({ trade_status: "TRADE_SUCCESS", name: words.sentence(index) }),
    })),
  );
}

/** How models did in the last weeks: most days well, some not, the oldest not at all. */
async function seedModelDays(
  { deps }: TestApp,
  models: readonly string[],
  nowSeconds: number,
): Promise<void> {
  const today = nowSeconds - (nowSeconds % (24 * HOUR_SECONDS));
  const rows = models.slice(0, MOST_DAYS_OF).flatMap((modelName, at) =>
    Array.from({ length: 60 }, (_, index) => {
      const day = today - index * 24 * HOUR_SECONDS;
      const failed = (index + at * 7) % 23 === 3 ? 40 : (index + at * 5) % 17 === 2 ? 4 : 0;
      return [
        { day, modelName, slot: -2, count: 400 },
        ...(failed > 0 ? [{ day, modelName, slot: -1, count: failed }] : []),
        ...(index < 7 ? [{ day, modelName, slot: 9 + (at % 4), count: 90 }] : []),
      ];
    }).flat(),
  );
  await insertAll(rows, (part) => deps.db.orm.insert(deps.db.t.modelDays).values(part));
}

async function seedInbox({ deps, services }: TestApp, nowSeconds: number): Promise<void> {
  await deps.db.orm.insert(deps.db.t.inboxItems).values(
    INBOX.map(([kind, params], index) => ({
      kind,
      // Of another node: looks of this one leave it alone.
      subject: "0f3c9a41",
      params: JSON.stringify(params),
      openedAt: nowSeconds - (index + 1) * HOUR_SECONDS,
      lastSeenAt: nowSeconds - index * 60,
      count: index + 1,
      closedAt: index === INBOX.length - 1 ? nowSeconds : 0,
    })),
  );
  await services.inbox.read();
  await services.looks.look();
}

async function insertAll<Row>(
  rows: readonly Row[],
  insert: (rows: Row[]) => PromiseLike<unknown>,
): Promise<void> {
  for (let at = 0; at < rows.length; at += AT_ONCE) await insert(rows.slice(at, at + AT_ONCE));
}

function tokenRow(app: TestApp, words: SampleWords, owner: TestUser, index: number) {
  const { deps } = app;
  const key = randomBytes(24).toString("hex");
  const nowSeconds = Math.floor(deps.clock.nowMs() / 1000);
  return {
    userId: owner.id,
    name: words.name("key", index),
    keyHash: sha256Hex(key),
    keySealed: deps.seal.seal("token", key),
    keyHead: key.slice(0, 4),
    keyTail: key.slice(-4),
    status: index % 8 === 5 ? 2 : 1,
    createdTime: nowSeconds - index * 86_400,
    accessedTime: index % 4 === 0 ? 0 : nowSeconds - index * 1800,
    expiredTime: index % 6 === 2 ? nowSeconds - 60 : index % 6 === 3 ? nowSeconds + 86_400 * 30 : -1,
    unlimitedQuota: index % 2 === 0,
    remainQuota: index * 400_000,
    usedQuota: index * 123_456,
    quotaBase: index * 523_456,
    modelLimitsEnabled: index % 3 === 1,
    modelLimits: index % 3 === 1 ? [words.model(0), words.model(1), words.model(2)].join(",") : "",
    budgetQuota: index % 3 === 2 ? 0 : 150_000 * (index % 3) + 500_000,
    budgetPeriod: ["day", "week", "month"][index % 3] ?? "day",
    rpmLimit: index % 4 === 0 ? 60 : 0,
    allowIps: index % 5 === 1 ? "10.0.0.0/8\n192.0.2.7" : "",
    group: index % 2 === 0 ? "" : words.group(1),
  };
}

async function seedLogs(
  app: TestApp,
  words: SampleWords,
  owners: readonly TestUser[],
  nowSeconds: number,
): Promise<void> {
  const { orm, t } = app.deps.db;
  const rows: Schema["logs"]["$inferInsert"][] = [];
  for (const owner of owners) {
    for (let index = 0; index < words.rows; index++) {
      const type = [2, 2, 2, 5, 2, 1, 2, 3, 2, 4][index % 10] ?? 2;
      const isCall = type === 2 || type === 5;
      rows.push({
        createdAt: nowSeconds - 120 - index * 1500,
        type,
        userId: owner.id,
        username: owner.username,
        channelId: isCall ? 1 + (index % 5) : 0,
        tokenId: isCall ? 1 + (index % 3) : 0,
        tokenName: isCall ? words.name("key", index % 3) : "",
        modelName: isCall ? words.model(index) : "",
        group: isCall ? words.group(index % 2) : "",
        quota: type === 2 ? 1500 + index * 321 : type === 1 ? 500_000 : 0,
        promptTokens: type === 2 ? 120 + index * 31 : 0,
        completionTokens: type === 2 ? 80 + index * 17 : 0,
        useTimeMs: isCall ? 900 + (index % 7) * 2100 : 0,
        isStream: index % 2 === 0,
        requestId: isCall ? `req_${owner.id}_${index}` : "",
        content: type === 2 ? "" : words.sentence(index),
        other: isCall ? JSON.stringify(otherOf(words, index, type)) : "",
      });
    }
  }
  await insertAll(rows, (part) => orm.insert(t.logs).values(part));
  const sums = new Map<string, Schema["rollups"]["$inferInsert"]>();
  for (const row of rows) {
    if (row.type !== 2) continue;
    const hour = row.createdAt - (row.createdAt % HOUR_SECONDS);
    const key = JSON.stringify([hour, row.userId, row.modelName, row.channelId, row.tokenId, row.group]);
    const sum = sums.get(key) ?? {
      hour,
      userId: row.userId,
      modelName: row.modelName ?? "",
      channelId: row.channelId ?? 0,
      tokenId: row.tokenId ?? 0,
      group: row.group ?? "",
      count: 0,
      quota: 0,
      promptTokens: 0,
      completionTokens: 0,
      useTimeMs: 0,
      loggedCount: 0,
      loggedQuota: 0,
    };
    sum.count = (sum.count ?? 0) + 1;
    sum.loggedCount = sum.count;
    sum.quota = (sum.quota ?? 0) + (row.quota ?? 0);
    sum.loggedQuota = sum.quota;
    sum.promptTokens = (sum.promptTokens ?? 0) + (row.promptTokens ?? 0);
    sum.completionTokens = (sum.completionTokens ?? 0) + (row.completionTokens ?? 0);
    sum.useTimeMs = (sum.useTimeMs ?? 0) + (row.useTimeMs ?? 0);
    sums.set(key, sum);
  }
  await insertAll([...sums.values()], (part) => orm.insert(t.rollups).values(part));
}

function otherOf(words: SampleWords, index: number, type: number): Record<string, unknown> {
  if (type === 5) {
    return {
      error_type: "upstream_error",
      error_code: "rate_limit_exceeded",
      status_code: 429,
      channel_id: 1,
      channel_name: words.name("channel", 0),
      admin_info: { use_channel: ["1", "2"], internal: words.sentence(index) },
    };
  }
  return {
    model_ratio: 1.25,
    group_ratio: 1,
    completion_ratio: 4,
    cache_tokens: index % 3 === 0 ? 40 : 0,
    cache_ratio: 0.5,
    frt: 300 + (index % 5) * 700,
    client_dialect: "openai-chat",
    upstream_dialect: index % 4 === 0 ? "anthropic" : "openai-chat",
    ...(index % 4 === 0
      ? { is_model_mapped: true, upstream_model_name: words.model(index + 1), dropped: ["logit_bias"] }
      : {}),
    attempts: [
      ...(index % 4 === 0 ? [{ channel: 2, ms: 310, code: "rate_limit_exceeded", status: 429 }] : []),
      { channel: 1, ms: 280 + (index % 5) * 600, code: "ok" },
    ],
    admin_info: { use_channel: index % 4 === 0 ? ["2", "1"] : ["1"] },
  };
}

async function seedTasks(
  app: TestApp,
  words: SampleWords,
  owners: readonly TestUser[],
  nowSeconds: number,
): Promise<void> {
  const { orm, t } = app.deps.db;
  const states = ["SUCCESS", "SUCCESS", "FAILURE", "SUCCESS", "NOT_START", "SUCCESS"];
  const drawings: Schema["drawings"]["$inferInsert"][] = [];
  const tasks: Schema["tasks"]["$inferInsert"][] = [];
  for (const owner of owners) {
    for (let index = 0; index < words.rows; index++) {
      const status = states[index % states.length] ?? "";
      const submitted = nowSeconds - 300 - index * 1700;
      const isDone = status === "SUCCESS" || status === "FAILURE";
      const shared = {
        userId: owner.id,
        channelId: 1 + (index % 4),
        status,
        // All have ended, so that no list polls while it is measured.
        progress: "100%",
        failReason: status === "FAILURE" ? words.sentence(index) : "",
        quota: 50_000,
      };
      drawings.push({
        ...shared,
        code: [1, 22, 21, 1][index % 4] ?? 1,
        action: ["IMAGINE", "UPSCALE", "VARIATION", "DESCRIBE"][index % 4] ?? "",
        mjId: `17${owner.id}${String(index).padStart(12, "0")}`,
        submitTimeMs: submitted * 1000,
        startTimeMs: (submitted + 2) * 1000,
        finishTimeMs: isDone ? (submitted + 30 + index) * 1000 : 0,
        prompt: words.sentence(index),
        promptEn: words.sentence(index + 1),
        imageUrl: status === "SUCCESS" ? `https://cdn.example/${index}.png` : "",
      });
      tasks.push({
        ...shared,
        platform: "suno",
        action: index % 3 === 2 ? "LYRICS" : "MUSIC",
        taskId: `task-${owner.id}-${index}`,
        submitTime: submitted,
        startTime: submitted + 2,
        finishTime: isDone ? submitted + 60 + index : 0,
        createdAt: submitted,
        updatedAt: submitted,
        data:
          status === "SUCCESS"
            ? JSON.stringify([
                {
                  title: words.name("song", index),
                  audio_url: `https://cdn.example/${index}.mp3`,
                  image_url: `https://cdn.example/${index}.png`,
                  metadata: { tags: words.name("style", index), prompt: words.sentence(index) },
                },
              ])
            : "",
      });
    }
  }
  await app.deps.options.set("MjForwardUrlEnabled", "false");
  await insertAll(drawings, (part) => orm.insert(t.drawings).values(part));
  await insertAll(tasks, (part) => orm.insert(t.tasks).values(part));
}

/** Gives a browser context the session of a role. */
export async function signIn(context: BrowserContext, sample: Sample, role: SampleRole): Promise<void> {
  const cookie = headersOf(sample, role)["cookie"] ?? "";
  const value = cookie.slice(cookie.indexOf("=") + 1);
  if (value !== "") await context.addCookies([{ name: "session", value, url: sample.app.url }]);
}

const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="512" height="512"><rect width="512" height="512" fill="#7a8aa0"/></svg>`;

/** Answers for the hosts that sample rows point to: tests reach no network. */
export async function standInForPictures(context: BrowserContext): Promise<void> {
  await context.route(/^https:\/\/(cdn|chat)\.example\//, (route) => {
    const { hostname, search } = new URL(route.request().url());
    if (hostname !== "chat.example") return route.fulfill({ contentType: "image/svg+xml", body: PICTURE });
    // Where /chat2link leaves for: whoever looks at that page wants it to stay.
    if (search === "") return route.fulfill({ status: 204 });
    return route.fulfill({ contentType: "text/html", body: "<!doctype html><title>chat</title><p>chat" });
  });
}
