// What the price desk begins with, over the wire: prices as stored, who is served, refused and named; who may read it; and the
// first rows that the page carries.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DeskPageData, DeskPrices } from "../../src/shared/price-desk.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const NOW = Date.UTC(2026, 10, 20, 12);
const HOUR = 3600;

describe.each(DATABASE_KINDS)("the price desk on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let user: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: testClock(NOW) });
    root = await app.createUser({ role: 100, username: "chief" });
    admin = await app.createUser({ role: 10, username: "keeper", group: "vip" });
    user = await app.createUser({ username: "ada", group: "vip" });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
    await app.deps.options.set("ModelRatio", '{"gpt-4o":1.25,"plain":1}');
    await app.deps.options.set("CompletionRatio", '{"plain":3}');
    await app.deps.options.set("ModelPrice", '{"song":0.1}');
    await app.deps.options.set("PriceRules", '{"gpt-4o":{"when":[{"over":1000,"times":2}]}}');
    await app.createChannel({ models: "gpt-4o,new-a,new-b", group: "default,vip" });
    await app.createChannel({ models: "off", group: "default", status: 2 });
    // The index of what channels serve is made when they are saved.
    expect((await app.call("POST", "/api/channel/fix", undefined, root)).status).toBe(200);
    await app.createToken(user.id, { group: "team" });
  });
  afterAll(() => app.close());

  const read = async (as: TestUser): Promise<DeskPrices> =>
    (await app.call<{ data: DeskPrices }>("GET", "/api/price/desk", undefined, as)).body.data;

  async function refusedRow(model: string, code: string, hoursAgo: number, type = 5): Promise<void> {
    const { db } = app.deps;
    await db.orm.insert(db.t.logs).values({
      userId: user.id,
      username: "ada",
      createdAt: NOW / 1000 - hoursAgo * HOUR,
      type,
      modelName: model,
      content: "",
      other: JSON.stringify({ error_code: code }),
    });
  }

  test("is for administrators alone", async () => {
    const statusOf = async (as?: TestUser) =>
      (await app.call("GET", "/api/price/desk", undefined, as)).status;
    expect([await statusOf(), await statusOf(user), await statusOf(admin), await statusOf(root)]).toEqual([
      401, 403, 200, 200,
    ]);
  });

  test("tells prices as they are stored, with their revision", async () => {
    const { texts, revision } = await read(admin);
    expect([texts["ModelRatio"], texts["ModelPrice"]]).toEqual(['{"gpt-4o":1.25,"plain":1}', '{"song":0.1}']);
    await app.deps.options.set("ModelPrice", '{"song":0.2}');
    const after = await read(admin);
    expect(after.texts["ModelPrice"]).toBe('{"song":0.2}');
    expect(after.revision).toBeGreaterThan(revision);
  });

  test("tells what enabled channels serve, and who makes it", async () => {
    const { served, makers } = await read(admin);
    expect(served.map(({ name }) => name).toSorted()).toEqual(["gpt-4o", "new-a", "new-b"]);
    expect(makers.find(({ en }) => en === "OpenAI")?.models).toEqual(["gpt-4o"]);
    // The beginning of a name is no maker.
    expect(makers.flatMap(({ models }) => models)).not.toContain("plain");
  });

  test("counts calls of the last day that had no price, and no others", async () => {
    for (const hours of [1, 2, 23]) await refusedRow("new-a", "model_not_priced", hours);
    await refusedRow("new-b", "model_not_priced", 25);
    await refusedRow("new-b", "quota_exhausted", 1);
    await refusedRow("new-b", "model_not_priced", 1, 2);
    expect((await read(admin)).refused).toEqual({ "new-a": 3 });
  });

  test("names every group that a user, a key or a channel has", async () => {
    const { groups } = await read(admin);
    expect(groups).toEqual([
      { name: "default", users: 1, keys: 0, channels: 1 + 1, enabledChannels: 1 },
      { name: "team", users: 0, keys: 1, channels: 0, enabledChannels: 0 },
      { name: "vip", users: 2, keys: 0, channels: 1, enabledChannels: 1 },
    ]);
  });

  test("the page carries the first rows of the view that its address names", async () => {
    const first = async (query: string): Promise<DeskPageData> => {
      const answer = await fetch(`${app.url}/prices${query}`, { headers: admin.headers });
      const text = await answer.text();
      const json = /<script[^>]*id="boot"[^>]*>(.*?)<\/script>/s.exec(text)?.[1] ?? "";
      return (JSON.parse(json) as { data: DeskPageData }).data;
    };
    const all = await first("");
    expect(all.canApply).toBe(false);
    expect(all.first?.rows.map(({ name }) => name)).toEqual(["gpt-4o", "new-a", "new-b", "plain", "song"]);
    expect(all.first?.rows[0]).toEqual({
      name: "gpt-4o",
      maker: "OpenAI",
      row: { in: 2.5, out: 10, cache_read: 1.25, when: [{ over: 1000, times: 2 }] },
      isOutputDerived: true,
      rules: 1,
    });
    expect(all.first?.counts).toEqual({ all: 5, unpriced: 2, used: 3 });
    const unpriced = await first("?view=unpriced&q=new-b");
    expect(unpriced.first?.rows.map(({ name }) => name)).toEqual(["new-b"]);
    expect((await first("?section=groups")).first).toBeUndefined();
  });
});
