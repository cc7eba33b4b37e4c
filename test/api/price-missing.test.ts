// Missing prices from the shipped table over the wire: one revision, whole rows, no price that is in force ever changed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { originRows } from "../../src/core/prices/origins.ts";
import { shippedPrices } from "../../src/core/prices/shipped.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { answer, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Wire<T> {
  success: boolean;
  message: string;
  data: T;
}
interface Missing {
  table: { source: string; version: string; date: string };
  items: { name: string; row: Record<string, unknown> | null; guards: string[] }[];
}
interface SetAnswer {
  revision: number;
  set: string[];
  unknown: string[];
  guarded: string[];
  kept: string[];
}

const PATH = "/api/price/missing";
const MAPS = {
  ModelRatio: '{"kept-x":1}',
  // Left behind by a price that is gone.
  CompletionRatio: '{"kept-x":4,"gpt-5.4":99}',
  CacheRatio: "{}",
  CreateCacheRatio: "{}",
  CreateCache1hRatio: "{}",
  ImageRatio: "{}",
  AudioRatio: "{}",
  AudioCompletionRatio: "{}",
  ModelPrice: '{"call-x":0.1}',
  PriceRules: "{}",
  QuotaPerUnit: "500000",
};

describe.each(DATABASE_KINDS)("missing prices on %s", (database) => {
  let app: TestApp;
  let upstream: FakeUpstream;
  let root: TestUser;
  let admin: TestUser;
  beforeAll(async () => {
    [app, upstream] = await Promise.all([startTestApp({ database }), startFakeUpstream()]);
    root = await app.createUser({ role: 100, username: "chief" });
    admin = await app.createUser({ role: 10, username: "keeper" });
    await app.createChannel({ models: "gpt-5.4,house-1,kept-x,call-x", baseUrl: upstream.url });
  });
  afterAll(async () => {
    await app.close();
    upstream.stop();
  });
  beforeEach(async () => {
    for (const [key, value] of Object.entries(MAPS)) await app.deps.options.set(key, value);
  });

  const look = async (query = "", as = admin): Promise<Missing> =>
    (await app.call<Wire<Missing>>("GET", PATH + query, undefined, as)).body.data;
  const set = async (body: object = {}): Promise<SetAnswer> =>
    (await app.call<Wire<SetAnswer>>("POST", PATH, body, root)).body.data;
  const texts = (): Record<string, string> =>
    Object.fromEntries(Object.keys(MAPS).map((key) => [key, app.deps.options.text(key as never)]));
  const revisions = async (): Promise<{ revision: number; items: Record<string, unknown>[] }> =>
    (
      await app.call<Wire<{ revision: number; items: Record<string, unknown>[] }>>(
        "GET",
        "/api/price/revisions",
        undefined,
        root,
      )
    ).body.data;

  test("administrators see what is missing, with the table's rows in dollars; users see nothing, and only root sets", async () => {
    const { table, items } = await look();
    expect(table).toMatchObject({ source: "@pydantic/genai-prices", date: shippedPrices().date });
    expect(items).toEqual([
      { name: "gpt-5.4", row: expect.objectContaining({ in: 2.5, out: 15 }), guards: [] },
      { name: "house-1", row: null, guards: [] },
    ]);
    const named = await look("?models=claude-sonnet-4-6,%20kept-x,nobody,");
    expect(named.items.map(({ name, row }) => [name, row !== null])).toEqual([
      ["claude-sonnet-4-6", true],
      ["nobody", false],
    ]);
    const user = await app.createUser();
    const statuses = await Promise.all([
      app.call("GET", PATH, undefined, user),
      app.call("POST", PATH, {}, admin),
      app.call("POST", PATH, {}),
    ]);
    expect(statuses.map(({ body }) => (body as { success?: boolean }).success)).toEqual([
      false,
      false,
      false,
    ]);
    expect(texts()).toEqual(MAPS);
  });

  test("sets them as one revision with the whole row, says what the table has not, and touches nothing else", async () => {
    const { revision } = await revisions();
    const done = await set();
    expect(done).toEqual({
      revision: revision + 1,
      set: ["gpt-5.4"],
      unknown: ["house-1"],
      guarded: [],
      kept: ["call-x", "kept-x"],
    });
    const { options } = app.deps;
    expect([options.get("ModelRatio"), options.get("ModelPrice")]).toEqual([
      { "kept-x": 1, "gpt-5.4": 1.25 },
      { "call-x": 0.1 },
    ]);
    expect(options.get("CompletionRatio")).toEqual({ "kept-x": 4, "gpt-5.4": 6 });
    expect(options.get("PriceRules")["gpt-5.4"]).toMatchObject({ when: [{ over: 271_999 }] });
    const { items } = await revisions();
    expect(items[0]).toMatchObject({
      id: revision + 1,
      kind: "apply",
      username: "chief",
      names: ["gpt-5.4"],
    });
    expect(String(items[0]?.["note"])).toStartWith("shipped@");
    // A later table is compared with what was taken.
    expect((await originRows(app.deps)).get("gpt-5.4")).toMatchObject({
      source: "shipped",
      row: { in: 2.5, out: 15 },
    });
    expect((await look()).items.map(({ name }) => name)).toEqual(["house-1"]);
    // Once more: nothing is left to do, and no revision is made of it.
    expect(await set()).toMatchObject({
      revision: revision + 1,
      set: [],
      kept: expect.arrayContaining(["gpt-5.4"]),
    });
    expect((await revisions()).revision).toBe(revision + 1);
  });

  test("an undo takes them away again, and gives back what stood there", async () => {
    const { revision } = await set({ note: "New models" });
    expect((await revisions()).items[0]).toMatchObject({ note: "New models" });
    const undo = await app.call<Wire<null>>("POST", `/api/price/revisions/${revision}/undo`, {}, root);
    expect(undo.body.success).toBe(true);
    expect(Object.entries(texts()).map(([key, text]) => [key, JSON.parse(text) as unknown])).toEqual(
      Object.entries(MAPS).map(([key, text]) => [key, JSON.parse(text) as unknown]),
    );
  });

  test("a price that somebody sets at the same moment stays, whoever comes first", async () => {
    const mine = JSON.stringify({ ...JSON.parse(MAPS.ModelRatio), "gpt-5.4": 7 });
    const [done] = await Promise.all([set(), app.deps.options.set("ModelRatio", mine)]);
    // Either it was there before, or it came later and replaced the whole map: it is never overwritten.
    expect([done.set, done.kept.includes("gpt-5.4")]).toEqual(
      done.set.length === 0 ? [[], true] : [["gpt-5.4"], false],
    );
    expect(app.deps.options.get("ModelRatio")["gpt-5.4"]).toBe(7);
  });

  test("dollars stay dollars where a dollar has other units, and calls are charged to the unit", async () => {
    await app.deps.options.set("QuotaPerUnit", "1000000");
    await set({ models: ["gpt-5.4"] });
    expect(app.deps.options.get("ModelRatio")["gpt-5.4"]).toBe(2.5);
    const user = await app.createUser({ quota: 1_000_000 });
    const { key } = await app.createToken(user.id);
    const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 };
    upstream.always(answer("hello", { usage }));
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5.4", messages: [{ role: "user", content: "hi" }] }),
    });
    expect(response.status).toBe(200);
    await response.text();
    await app.deps.ledger.flush();
    const account = await app.deps.accounts.user(user.id);
    // 1,000 × $2.50 and 100 × $15.00 a million, at a million units to the dollar.
    expect(account && app.deps.ledger.available({ user: account, token: undefined })).toBe(1_000_000 - 4000);
  });

  test("names that nobody may have, and far too many, are refused or harmless", async () => {
    expect(await set({ models: ["__proto__", "constructor", ""] })).toMatchObject({ set: [] });
    const many = Array.from({ length: 20_001 }, (_, index) => `m${index}`);
    const refused = await app.call<Wire<null>>("POST", PATH, { models: many }, root);
    expect(refused.body.success).toBe(false);
    expect(texts()).toEqual(MAPS);
  });
});
