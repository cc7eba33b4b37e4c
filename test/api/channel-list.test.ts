// What the console's channel list asks beyond the specified calls: views, orders, counts, and how many keys rest.
// Refuses to look at one database only.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import type { SiteStatus } from "../../src/core/site/status.ts";
import { loadChannels } from "../../src/pages/load-channels.ts";
import { ChannelStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Row {
  id: number;
  name: string;
  tag: string | null;
  key_count: number;
  keys_resting: number;
}

describe.each(DATABASE_KINDS)("the channel list on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let user: TestUser;
  const ids: Record<string, number> = {};

  beforeAll(async () => {
    app = await startTestApp({ database });
    admin = await app.createUser({ role: 10 });
    user = await app.createUser({});
    const rows: [string, Record<string, unknown>][] = [
      ["alpha", { tag: "east", priority: 3, responseTime: 900, testTime: 5, usedQuota: 0, balance: 4 }],
      ["bravo", { tag: "east", status: ChannelStatus.disabled, responseTime: 100, testTime: 5, balance: 9 }],
      ["charlie", { tag: "west", status: ChannelStatus.autoDisabled, responseTime: 500, testTime: 5 }],
      ["delta", { key: "one\ntwo\nthree", balance: -1 }],
    ];
    for (const [name, fields] of rows) ids[name] = await app.createChannel({ name, models: "m", ...fields });
  });
  afterAll(() => app.close());

  const ask = <T = Row[]>(path: string, as = admin) =>
    app.call<{ success: boolean; data: T; total?: number }>("GET", `/api/channel${path}`, undefined, as);
  const names = async (query: string) => {
    const { body } = await ask(`/search?${query}`);
    expect(body.total).toBeGreaterThanOrEqual(body.data.length > 0 ? 1 : 0);
    return body.data.map(({ name }) => name);
  };

  test("a view shows the channels of one status, of one tag, or those that were never tested", async () => {
    expect(await names("status=1&sort=name")).toEqual(["alpha", "delta"]);
    expect(await names("status=2")).toEqual(["bravo"]);
    expect(await names("status=3")).toEqual(["charlie"]);
    expect(await names("untested=true")).toEqual(["delta"]);
    expect(await names("tag=east&sort=name")).toEqual(["alpha", "bravo"]);
    expect(await names("tag=eas")).toEqual([]);
    // What is no status asks for nothing.
    expect(await names("status=9&sort=name")).toHaveLength(4);
    const plain = await ask("/?p=0&page_size=10&status=3");
    expect(plain.body.data.map(({ name }) => name)).toEqual(["charlie"]);
  });

  test("the list is ordered by the column asked for, both ways; an unknown one changes nothing", async () => {
    expect(await names("sort=name")).toEqual(["alpha", "bravo", "charlie", "delta"]);
    expect(await names("sort=-name")).toEqual(["delta", "charlie", "bravo", "alpha"]);
    expect(await names("sort=-response_time")).toEqual(["alpha", "charlie", "bravo", "delta"]);
    expect(await names("sort=balance")).toEqual(["delta", "charlie", "alpha", "bravo"]);
    expect(await names("sort=-id")).toEqual(["delta", "charlie", "bravo", "alpha"]);
    expect(await names("sort=key_sealed")).toEqual(await names(""));
    expect((await names(""))[0]).toBe("alpha");
  });

  test("in tag mode a view keeps only its channels, and pages count tags", async () => {
    const { body } = await ask("/search?tag_mode=true&status=1&p=0&page_size=10");
    expect(body.data.map(({ name }) => name)).toEqual(["alpha"]);
    expect(body.total).toBe(1);
    const whole = await ask("/search?tag_mode=true&p=0&page_size=10");
    expect(whole.body.data.map(({ tag }) => tag).sort()).toEqual(["east", "east", "west"]);
    expect(whole.body.total).toBe(2);
  });

  test("the counts above the list are those of the rows, tags included", async () => {
    expect((await ask<unknown>("/summary")).body.data).toEqual({
      total: 4,
      enabled: 2,
      disabled: 1,
      auto_disabled: 1,
      untested: 1,
      tags: [
        { tag: "east", count: 2 },
        { tag: "west", count: 1 },
      ],
    });
    expect((await ask("/summary", user)).status).toBe(403);
  });

  test("a row tells how many keys there are and how many rest, never the keys", async () => {
    const delta = ids["delta"] ?? 0;
    const channel = app.deps.routing.channel(delta);
    if (!channel) throw new Error("no channel");
    const nowMs = app.deps.clock.monotonicMs();
    app.deps.keyring.rest(channel, 1, { reason: "limited", restMs: 60_000, detail: "slow" }, nowMs);
    const { body, text } = await ask("/search?keyword=delta");
    expect(body.data).toMatchObject([{ key_count: 3, keys_resting: 1 }]);
    expect(text).not.toContain("three");
    expect((await ask("/search?keyword=alpha")).body.data).toMatchObject([{ key_count: 1, keys_resting: 0 }]);
  });

  test("the page's first rows are those that the address asks for, or that the browser remembers", async () => {
    const page = (path: string, remembered: Record<string, string> = {}) =>
      loadChannels({
        deps: app.deps,
        user: undefined,
        language: "en",
        status: {} as SiteStatus,
        url: new URL(path, app.url),
        params: {},
        timeZone: "UTC",
        remembered: (name) => remembered[name] ?? "",
      });
    expect((await page("/channel?status=3")).rows.map(({ name }) => name)).toEqual(["charlie"]);
    const remembered = await page("/channel", { "enable-tag-mode": "true", "id-sort": "true" });
    expect(remembered.remembered).toEqual({ tag_mode: "true", sort: "-id" });
    expect(remembered.rows.map(({ name }) => name)).toEqual(["charlie", "bravo", "alpha"]);
    expect(remembered.total).toBe(2);
    // An address that asks for something is not overruled.
    expect((await page("/channel?status=1", { "enable-tag-mode": "true" })).rows).toHaveLength(2);
    const { channelKeys } = app.deps.db.t;
    const [row] = await app.deps.db.orm
      .select()
      .from(channelKeys)
      .where(eq(channelKeys.channelId, ids["alpha"] ?? 0));
    expect(JSON.stringify(await page("/channel"))).not.toContain(row?.keySealed ?? "?");
  });
});
