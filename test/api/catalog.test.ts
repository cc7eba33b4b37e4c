// Models, groups and prices over the wire, as guests, users and administrators may see them.
// Refuses to know the shipped price tables: the options are set here.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Envelope<T> {
  success: boolean;
  message?: string;
  data: T;
  group_ratio?: Record<string, number>;
  usable_group?: Record<string, string>;
}

describe.each(DATABASE_KINDS)("catalogue on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let plain: TestUser;
  let inner: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database });
    admin = await app.createUser({ username: "admin", role: 10 });
    plain = await app.createUser({ username: "plain" });
    inner = await app.createUser({ username: "inner", group: "inner" });
    const { options } = app.deps;
    await options.set("GroupRatio", '{"default":1,"vip":0.5,"inner":2}');
    await options.set("UserUsableGroups", '{"default":"所有人","vip":"会员","gone":"没有倍率"}');
    await options.set("ModelRatio", '{"m-ratio":2.5}');
    await options.set("ModelPrice", '{"m-call":0.04}');
    await options.set("CompletionRatio", '{"m-ratio":3}');
    await app.createChannel({ models: "m-ratio,m-call", group: "default,vip" });
    await app.createChannel({ models: "m-none,m-ratio", group: "inner" });
    await app.createChannel({ models: "m-off", group: "default", status: 2 });
    app.deps.presets = { byType: { "1": ["gpt-4o"], "37": null }, all: [] };
  });
  afterAll(() => app.close());

  const get = <T>(path: string, as?: TestUser) => app.call<Envelope<T>>("GET", `/api${path}`, undefined, as);

  test("who may ask: guests for prices and guest groups, users for their models, administrators for group names", async () => {
    const table: [string, number, number, number][] = [
      ["/pricing", 200, 200, 200],
      ["/user/groups", 200, 200, 200],
      ["/models", 401, 200, 200],
      ["/user/models", 401, 200, 200],
      ["/user/models/priced?group=default", 401, 200, 200],
      ["/user/self/groups", 401, 200, 200],
      ["/group/", 401, 403, 200],
    ];
    for (const [path, guest, user, administrator] of table) {
      const [bare = "", ...query] = path.split("?");
      const other = bare.endsWith("/") ? bare.slice(0, -1) : `${bare}/`;
      for (const form of [path, [other, ...query].join("?")]) {
        const statuses = [undefined, plain, admin].map(async (as) => (await get(form, as)).status);
        expect([form, await Promise.all(statuses)]).toEqual([form, [guest, user, administrator]]);
      }
    }
  });

  test("a user's models are those of the usable groups, without disabled channels", async () => {
    expect((await get<string[]>("/user/models", plain)).body.data).toEqual(["m-call", "m-ratio"]);
    expect((await get<string[]>("/user/models", inner)).body.data).toEqual(["m-call", "m-none", "m-ratio"]);
  });

  test("of one group only where it is usable; a foreign group's models are not told", async () => {
    const of = async (group: string, as: TestUser) =>
      (await get<string[]>(`/user/models?group=${group}`, as)).body.data;
    const own = (await of("inner", inner)) ?? [];
    expect(own).toContain("m-none");
    expect(await of("inner", plain)).toEqual([]);
    expect(await of("no-such-group", plain)).toEqual([]);
    expect([...((await of("default", plain)) ?? []), ...((await of("vip", plain)) ?? [])]).toEqual(
      expect.arrayContaining(["m-call", "m-ratio"]),
    );
  });

  test("the models of one group come with their prices: by token, per call, or none set", async () => {
    const of = async (group: string, as: TestUser) =>
      (await get<[string, number[]][]>(`/user/models/priced?group=${group}`, as)).body.data;
    expect(await of("default", plain)).toEqual([
      ["m-call", [0.04]],
      ["m-ratio", [2.5, 7.5]],
    ]);
    expect(await of("inner", inner)).toContainEqual(["m-none", []]);
    expect(await of("inner", plain)).toEqual([]);
  });

  test("groups to choose from have a ratio and are open, or are the own one", async () => {
    const open = { default: { ratio: 1, desc: "所有人" }, vip: { ratio: 0.5, desc: "会员" } };
    expect((await get("/user/groups")).body.data).toEqual(open);
    expect((await get("/user/self/groups", plain)).body.data).toEqual(open);
    expect((await get("/user/self/groups", inner)).body.data).toEqual({
      ...open,
      inner: { ratio: 2, desc: "用户分组" },
    });
    expect(((await get<string[]>("/group", admin)).body.data ?? []).sort()).toEqual([
      "default",
      "inner",
      "vip",
    ]);
  });

  test("prices: ratio, per call, and the stand-in for models without one; group ratios of usable groups only", async () => {
    type Entry = { model_name: string } & Record<string, unknown>;
    const guest = await get<Entry[]>("/pricing");
    const byName = new Map(guest.body.data.map((entry) => [entry.model_name, entry]));
    expect([...byName.keys()].sort()).toEqual(["m-call", "m-none", "m-ratio"]);
    expect(byName.get("m-ratio")).toEqual({
      model_name: "m-ratio",
      quota_type: 0,
      model_ratio: 2.5,
      model_price: 0,
      owner_by: "",
      completion_ratio: 3,
      enable_groups: ["default", "inner", "vip"],
      is_priced: true,
      cache_ratio: 1,
      create_cache_ratio: 1.25,
      create_cache_1h_ratio: 2,
      image_ratio: 1,
      audio_ratio: 1,
      audio_completion_ratio: 3,
      lines: [
        { kind: "fresh", per: "mtok", unit_price: 5 },
        { kind: "cache_read", per: "mtok", unit_price: 5 },
        { kind: "cache_write_5m", per: "mtok", unit_price: 6.25 },
        { kind: "cache_write_1h", per: "mtok", unit_price: 10 },
        { kind: "image_input", per: "mtok", unit_price: 5 },
        { kind: "audio_input", per: "mtok", unit_price: 5 },
        { kind: "output", per: "mtok", unit_price: 15 },
        { kind: "thinking", per: "mtok", unit_price: 15 },
        { kind: "image_output", per: "mtok", unit_price: 15 },
        { kind: "audio_output", per: "mtok", unit_price: 15 },
      ],
      tools: { web_search: { low: 25, medium: 27.5, high: 30 }, file_search: 2.5 },
      rules: [],
    });
    expect(byName.get("m-call")).toMatchObject({
      quota_type: 1,
      model_ratio: 0,
      model_price: 0.04,
      completion_ratio: 0,
      is_priced: true,
      cache_ratio: null,
      audio_completion_ratio: null,
      lines: [{ kind: "per_call", per: "call", unit_price: 0.04 }],
    });
    expect(byName.get("m-none")).toMatchObject({
      quota_type: 0,
      model_ratio: 37.5,
      is_priced: false,
      cache_ratio: null,
      lines: [],
    });
    expect(guest.body.group_ratio).toEqual({ default: 1, vip: 0.5 });
    expect(guest.body.usable_group).toEqual({ default: "所有人", vip: "会员", gone: "没有倍率" });
    expect("message" in guest.body).toBe(false);
    const own = await get<Entry[]>("/pricing", {
      ...inner,
      headers: { cookie: inner.headers["cookie"] ?? "" },
    });
    expect(own.body.group_ratio).toEqual({ default: 1, vip: 0.5, inner: 2 });
    expect(own.body.usable_group).toHaveProperty("inner", "用户分组");
    const forged = await get<Entry[]>("/pricing", { ...inner, headers: { cookie: "session=forged" } });
    expect(forged.body.group_ratio).toEqual({ default: 1, vip: 0.5 });
  });

  test("a change of prices, of units to the dollar or of channels is in the list at once", async () => {
    type Entry = { model_name: string; lines: { unit_price: number }[] };
    const { options } = app.deps;
    const input = async () => {
      const { data } = (await get<Entry[]>("/pricing")).body;
      return data.find(({ model_name: name }) => name === "m-ratio")?.lines[0]?.unit_price;
    };
    await options.set("ModelRatio", '{"m-ratio":1.5}');
    expect(await input()).toBe(3);
    await options.set("QuotaPerUnit", "1000000");
    expect(await input()).toBe(1.5);
    await options.set("QuotaPerUnit", "500000");
    await options.set("ModelRatio", '{"m-ratio":2.5}');
    expect(await input()).toBe(5);
    const { channels } = app.deps.db.t;
    const late = await app.createChannel({ models: "m-late", group: "vip" });
    const names = async () =>
      (await get<Entry[]>("/pricing")).body.data.map((each) => each.model_name).sort();
    expect(await names()).toEqual(["m-call", "m-late", "m-none", "m-ratio"]);
    await app.deps.db.orm.update(channels).set({ status: 2 }).where(eq(channels.id, late));
    await app.deps.routing.refresh([late]);
    expect(await names()).toEqual(["m-call", "m-none", "m-ratio"]);
  });

  test("preset models come by channel type, null where a type chooses its own", async () => {
    const answer = await get("/models", plain);
    expect(answer.body).toEqual({ success: true, data: { "1": ["gpt-4o"], "37": null } });
  });

  test("what is refused for want of a price is told beforehand: to users their own models, to administrators what has a price", async () => {
    const { options } = app.deps;
    const root = await app.createUser({ username: "the-root", role: 100 });
    const own = async (as: TestUser) => (await get<string[]>("/user/models/unpriced", as)).body.data;
    const all = async (as: TestUser) =>
      (await get<{ isRefusing: boolean; names: string[]; ask: string }>("/channel/models_priced", as)).body
        .data;
    expect([await own(plain), await own(inner)]).toEqual([[], ["m-none"]]);
    expect(await all(admin)).toEqual({ isRefusing: true, names: ["m-ratio", "m-call"], ask: "the-root" });
    expect((await all(root)).ask).toBe("");
    expect((await get("/channel/models_priced", plain)).status).toBe(403);
    await options.set("SelfUseModeEnabled", "true");
    expect([await own(inner), (await all(root)).isRefusing]).toEqual([[], false]);
    await options.set("SelfUseModeEnabled", "false");
  });
});
