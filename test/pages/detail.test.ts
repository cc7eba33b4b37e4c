// The dashboard's page over the wire: its first figures are those of the raw rows, and nobody gets another's.
// Refuses rows made by hand: every call goes through the ledger; the expectation is added up from the log itself.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Boot } from "../../islands/lib/boot.ts";
import type { DetailPageData } from "../../islands/screens/detail/data.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** 23:40 of the 20th in UTC, 07:40 of the 21st in Shanghai. */
const NOW = Date.UTC(2025, 10, 20, 23, 40) / 1000;
const MODELS = ["gpt-4o", "claude-sonnet-4", "gemini-2.5-pro"];

const total = (values: readonly number[] = []) => values.reduce((sum, value) => sum + value, 0);

describe.each(DATABASE_KINDS)("the dashboard's page on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let ada: TestUser;
  let ben: TestUser;
  let rows: { userId: number; modelName: string; createdAt: number; quota: number; tokens: number }[] = [];
  let clock = NOW;

  async function charge(user: TestUser, key: string, at: number, modelName: string, quota: number) {
    clock = at;
    const account = await app.deps.accounts.user(user.id);
    const token = await app.deps.accounts.tokenByKey(key.replace("sk-", ""));
    if (!account || !token) throw new Error("no account");
    const hold = await app.deps.ledger.reserve({
      requestId: `${at} ${modelName}`,
      user: account,
      token,
      amount: 0,
    });
    await hold.settle({
      quota,
      promptTokens: quota % 13,
      completionTokens: quota % 7,
      modelName,
      channelId: 1,
      group: "default",
      isStream: false,
      useTimeMs: 1500,
      content: "",
      other: {},
    });
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => clock * 1000 } });
    root = await app.createUser({ username: "root", role: 100 });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: NOW });
    ada = await app.createUser({ username: "ada", quota: 1_000_000 });
    ben = await app.createUser({ username: "ben", quota: 1_000_000 });
    const keys = [(await app.createToken(ada.id)).key, (await app.createToken(ben.id)).key];
    for (let index = 0; index < 40; index++) {
      const at = NOW - index * 9_700;
      const [user, key] = index % 4 === 0 ? [ben, keys[1]] : [ada, keys[0]];
      await charge(user, key ?? "", at, MODELS[index % 3] ?? "", 1000 + index * 37);
    }
    clock = NOW;
    await app.deps.ledger.flush();
    const logs = await app.deps.db.orm.select().from(app.deps.db.t.logs);
    rows = logs.map((row) => ({ ...row, tokens: row.promptTokens + row.completionTokens }));
  });
  afterAll(() => app.close());

  async function open(
    path: string,
    as: TestUser,
    zone = "UTC",
  ): Promise<{ html: string; data: DetailPageData }> {
    const response = await fetch(app.url + path, {
      headers: {
        ...as.headers,
        cookie: `${as.headers.cookie}; tz=${zone}; i18nextLng=en`,
        "accept-language": "en",
      },
    });
    const html = await response.text();
    expect([path, response.status]).toEqual([path, 200]);
    const boot = JSON.parse(
      /<script id="boot"[^>]*>([\s\S]*?)<\/script>/.exec(html)?.[1] ?? "null",
    ) as Boot<DetailPageData>;
    return { html, data: boot.data };
  }

  test("everybody's last 24 hours are what the rows of these hours add up to, hour by hour and model by model", async () => {
    const { html, data } = await open("/detail", root);
    const { use } = data;
    const from = NOW - (NOW % HOUR) - 23 * HOUR;
    expect(use).toMatchObject({ from, to: from + DAY, step: "hour", by: "model", figure: "quota" });
    const inside = rows.filter((row) => row.createdAt >= from);
    expect(inside.length).toBeGreaterThan(5);
    for (const [bar, at] of (use?.at ?? []).entries()) {
      const own = inside.filter((row) => row.createdAt >= at && row.createdAt < at + HOUR);
      expect([at, use?.lines.quota[bar], use?.lines.count[bar], use?.lines.tokens[bar]]).toEqual([
        at,
        total(own.map(({ quota }) => quota)),
        own.length,
        total(own.map(({ tokens }) => tokens)),
      ]);
    }
    for (const { id, values } of use?.series ?? []) {
      expect([id, total(values)]).toEqual([
        id,
        total(inside.filter((row) => row.modelName === id).map(({ quota }) => quota)),
      ]);
    }
    expect(use?.series.length).toBe(3);
    // Drawn by the server already, with the sum in words.
    const dollars = (total(inside.map(({ quota }) => quota)) / 500_000).toFixed(4).replace(/0+$/, "");
    expect(html.includes(`$${dollars} spent in the last 24 hours`)).toBe(true);
    expect(html.includes('class="chart-series"')).toBe(true);
  });

  test("days are those of the site's zone, wherever the visitor is", async () => {
    await app.deps.options.set("site.time_zone", "Asia/Shanghai");
    const { data, html } = await open("/detail?range=7d", root, "America/New_York");
    await app.deps.options.set("site.time_zone", "UTC");
    expect(html).toContain("Days are those of Asia/Shanghai.");
    const shanghai = Date.UTC(2025, 10, 15, -8) / 1000;
    expect(data.use?.at).toEqual([0, 1, 2, 3, 4, 5, 6].map((days) => shanghai + days * DAY));
    for (const [bar, at] of (data.use?.at ?? []).entries()) {
      const own = rows.filter((row) => row.createdAt >= at && row.createdAt < at + DAY);
      expect([at, data.use?.lines.quota[bar]]).toEqual([at, total(own.map(({ quota }) => quota))]);
    }
  });

  test("a user gets the own figures, whatever the address asks for; an administrator may ask for one", async () => {
    const own = (user: TestUser) =>
      total(rows.filter((row) => row.userId === user.id).map(({ quota }) => quota));
    for (const query of ["", "&username=ada", "&scope=all", "&by=user", "&by=channel"]) {
      const { data } = await open(`/detail?range=7d${query}`, ben);
      expect([query, data.isAdmin, total(data.use?.lines.quota)]).toEqual([query, false, own(ben)]);
      expect(data.use?.by).toBe("model");
    }
    const one = (await open("/detail?range=7d&username=ada&by=user", root)).data;
    expect([total(one.use?.lines.quota), one.use?.series.map(({ name }) => name)]).toEqual([
      own(ada),
      ["ada"],
    ]);
    expect(total((await open("/detail?range=7d&username=nobody", root)).data.use?.lines.quota)).toBe(0);
    expect(total((await open("/detail?range=7d&scope=me", root)).data.use?.lines.quota)).toBe(0);
  });

  test("a range that users may not ask for comes without figures, for administrators with them", async () => {
    const long = `/detail?start_timestamp=${NOW - 60 * DAY}&end_timestamp=${NOW}`;
    expect((await open(long, ada)).data.use).toBeUndefined();
    const { data } = await open(long, root);
    expect(total(data.use?.lines.quota)).toBe(total(rows.map(({ quota }) => quota)));
    for (const query of [
      "granularity=hour&range=30d",
      "start_timestamp=1&end_timestamp=2000000000",
      "range=%00&by=%00",
    ]) {
      await open(`/detail?${query}`, root);
    }
  });

  test("before the first call there are steps instead: what is missing, and for users no channel", async () => {
    const fresh = await app.createUser({ username: "fresh" });
    expect((await open("/detail", fresh)).data.first).toEqual({ key: false, call: false });
    await app.createToken(fresh.id);
    expect((await open("/detail", fresh)).data.first).toEqual({ key: true, call: false });
    // A site that has sold a call needs no list, not even where its administrator has made none.
    expect((await open("/detail?scope=me", root)).data.first).toBeUndefined();
    expect((await open("/detail", root)).data.first).toBeUndefined();
  });

  test("an administrator of a fresh site is told which models have no price, and which one can be called", async () => {
    const site = await startTestApp({ database });
    try {
      const owner = await site.createUser({ role: 100 });
      const steps = async () =>
        (await site.call<{ data: object }>("GET", "/api/data/self/first_steps", undefined, owner)).body.data;
      expect(await steps()).toEqual({ channel: false, unpriced: [], key: false, call: false });
      await site.createChannel({ models: "gpt-4o-mini,house-model" });
      await site.createToken(owner.id);
      const model = "gpt-4o-mini";
      expect(await steps()).toEqual({
        channel: true,
        unpriced: ["house-model"],
        model,
        key: true,
        call: false,
      });
      // Where nothing is refused for want of a price there is no such step.
      await site.deps.options.set("SelfUseModeEnabled", "true");
      expect(await steps()).toEqual({ channel: true, model, key: true, call: false });
    } finally {
      await site.close();
    }
  });

  test("the navigation follows the operator's switch; the site's granularity decides the first range", async () => {
    expect((await open("/token", ada)).html.includes('href="/detail"')).toBe(true);
    await app.deps.options.set("DataExportDefaultTime", "day");
    expect((await open("/detail", ada)).data.use).toMatchObject({ step: "day" });
    await app.deps.options.set("DataExportEnabled", "false");
    expect((await open("/token", ada)).html.includes('href="/detail"')).toBe(false);
  });
});
