// Channels over the wire: who may, what is refused and in which words, and that no key ever comes back.
// Refuses to look only at answers: rows, abilities and routing are read as well.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

type Row = Record<string, unknown> & { id: number };

interface Envelope<T = Row[]> {
  success: boolean;
  message: string;
  code?: string;
  field?: string;
  data: T;
  total?: number;
}

const SECRET = "upstream-secret-0123456789";

describe.each(DATABASE_KINDS)("channels on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let user: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database });
    admin = await app.createUser({ username: "admin", role: 10 });
    user = await app.createUser({ username: "user" });
  });
  afterAll(() => app.close());

  const call = <T = Row[]>(method: string, path: string, body?: unknown, as: TestUser = admin) =>
    app.call<Envelope<T>>(method, `/api/channel${path}`, body, as);

  async function create(fields: Record<string, unknown> = {}): Promise<number[]> {
    const body = { name: "main", key: SECRET, models: "gpt-4o", group: "default", ...fields };
    const answer = await call<number[]>("POST", "/", body);
    expect([answer.body.message, answer.body.success]).toEqual(["", true]);
    return answer.body.data;
  }

  async function only(fields: Record<string, unknown> = {}): Promise<number> {
    const [id] = await create(fields);
    if (id === undefined) throw new Error("no channel");
    return id;
  }

  async function abilitiesOf(id: number): Promise<string[]> {
    const { abilities } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(abilities).where(eq(abilities.channelId, id));
    return rows.map((row) => `${row.group}/${row.model}/${row.enabled}/${row.priority}/${row.tag}`).sort();
  }

  test("every call is refused to guests with 401 and to ordinary users with 403, and changes nothing", async () => {
    const id = await only();
    const routes: [string, string, unknown?][] = [
      ["GET", "/"],
      ["GET", "/search?keyword=a"],
      ["GET", `/${id}`],
      ["POST", "/", { name: "x", key: "k", models: "m" }],
      ["PUT", "/", { id, name: "stolen" }],
      ["DELETE", `/${id}`],
      ["DELETE", "/disabled"],
      ["POST", "/batch", { ids: [id] }],
      ["POST", "/batch/tag", { ids: [id], tag: "x" }],
      ["PUT", "/tag", { tag: "x", new_tag: "" }],
      ["POST", "/tag/enabled", { tag: "x" }],
      ["POST", "/tag/disabled", { tag: "x" }],
      ["POST", "/fix"],
      ["GET", "/models"],
      ["GET", "/models_enabled"],
    ];
    for (const [method, path, body] of routes) {
      const guest = await app.call(method, `/api/channel${path}`, body);
      const plain = await call(method, path, body, user);
      expect([method, path, guest.status, plain.status]).toEqual([method, path, 401, 403]);
      expect(plain.body).toMatchObject({ success: false, code: "auth_role_too_low" });
    }
    const kept = await call<Row>("GET", `/${id}`);
    expect(kept.body.data).toMatchObject({ id, name: "main" });
  });

  test("several keys make one channel each, and neither keys nor their hashes leave in any answer", async () => {
    const before = (await call("GET", "/?page_size=1")).body.total ?? 0;
    const ids = await create({ name: "many", key: ` ${SECRET}-a \n\n${SECRET}-b\n${SECRET}-a\r\n` });
    expect(ids.length).toBe(2);
    expect(ids.map((id) => app.deps.routing.channel(id)?.keys)).toEqual([[`${SECRET}-a`], [`${SECRET}-b`]]);
    const { channelKeys } = app.deps.db.t;
    const rows = await app.deps.db.orm
      .select()
      .from(channelKeys)
      .where(eq(channelKeys.channelId, ids[0] ?? 0));
    const answers = [
      await call("GET", "/?page_size=100"),
      await call("GET", "/?tag_mode=true"),
      await call("GET", `/search?keyword=${SECRET}-a`),
      await call("GET", `/${ids[0]}`),
      await call("PUT", "/", { id: ids[0], key: `${SECRET}-c`, name: "renamed" }),
    ];
    for (const { text, body } of answers) {
      expect(body.success).toBe(true);
      for (const secret of [SECRET, rows[0]?.keySealed ?? "?", rows[0]?.keyHash ?? "?", "Hash", "ealed"]) {
        expect(text).not.toContain(secret);
      }
    }
    expect(answers[2]?.body.data.map(({ id }) => id)).toEqual([ids[0] ?? 0]);
    expect(app.deps.routing.channel(ids[0] ?? 0)?.keys).toEqual([`${SECRET}-c`]);
    expect(answers[0]?.body.total).toBe(before + 2);
  });

  test("what the console may not leave out is asked for in the console's words", async () => {
    const good = { name: "n", key: "k", models: "m" };
    const vertex = { ...good, type: 41, key: '{\n "a": "b\\nc" }' };
    const cases: [Record<string, unknown>, string][] = [
      [{ ...good, name: " " }, "请填写渠道名称和渠道密钥！"],
      [{ ...good, key: "" }, "请填写渠道名称和渠道密钥！"],
      [{ ...good, models: " , " }, "请至少选择一个模型！"],
      [{ ...good, models: `a,${"m".repeat(256)}` }, `模型名称过长: ${"m".repeat(256)}`],
      [{ ...good, models: "模".repeat(256) }, `模型名称过长: ${"模".repeat(256)}`],
      [vertex, "部署地区不能为空"],
      [{ ...vertex, other: '{"gpt":"us"}' }, "部署地区必须包含default字段"],
      [{ ...good, model_mapping: "{" }, "模型映射必须是合法的 JSON 格式！"],
      [{ ...good, model_mapping: '{"a":1}' }, "模型映射必须是合法的 JSON 格式！"],
      [{ ...good, model_mapping: '["a"]' }, "模型映射必须是合法的 JSON 格式！"],
    ];
    for (const [body, message] of cases) {
      const answer = await call("POST", "/", body);
      expect([answer.status, answer.body.success, answer.body.message]).toEqual([200, false, message]);
    }
    for (const [field, text] of [
      ["model_mapping", '{"a":"b","b":"a"}'],
      ["status_code_mapping", '{"abc":1}'],
      ["status_code_mapping", "[]"],
      ["param_override", "null"],
      ["setting", "7"],
      ["setting", '{"proxy":"file:///etc/passwd"}'],
      ["setting", '{"allow_networks":"10.0.0.0/8"}'],
      ["setting", '{"allow_networks":["10.0.0.0/8","lan"]}'],
      ["setting", '{"allow_networks":["10.0.0.0/33"]}'],
      ["setting", '{"responses":"chat"}'],
      ["base_url", "javascript:alert(1)"],
      ["name", "a\u0007b"],
    ] as const) {
      const answer = await call("POST", "/", { ...good, [field]: text });
      expect([field, answer.body.success, answer.body.field]).toEqual([field, false, field]);
    }
    for (const type of [11, 28, 9999]) {
      expect((await call("POST", "/", { ...good, type })).body.field).toBe("type");
    }
  });

  test("texts are brought into form: slashes cut, duplicates dropped, Spark's version and Vertex's key filled in", async () => {
    const id = await only({
      type: 18,
      base_url: "https://example.org/v1//",
      models: " a ,b,a,, b",
      group: "vip, default,vip",
    });
    expect((await call<Row>("GET", `/${id}/`)).body.data).toMatchObject({
      base_url: "https://example.org/v1",
      models: "a,b",
      group: "vip,default",
      other: "v2.1",
      status: 1,
      key: "",
    });
    // Of a complete address the slash at its end is a part.
    const whole = await only({ type: 8, base_url: " https://example.org/v1/chat/ " });
    expect((await call<Row>("GET", `/${whole}/`)).body.data).toMatchObject({
      base_url: "https://example.org/v1/chat/",
    });
    expect(app.deps.routing.channel(whole)?.baseUrl).toBe("https://example.org/v1/chat/");
    const vertex = await create({ type: 41, key: '{\n"type":\n"service_account"}', other: "us-central1" });
    expect(vertex.length).toBe(1);
    expect(app.deps.routing.channel(vertex[0] ?? 0)?.keys).toEqual(['{"type":"service_account"}']);
  });

  test("hostile values are refused with the field's name and never with an error 500", async () => {
    const id = await only();
    const big = 2 ** 63;
    const cases: [string, unknown][] = [
      ["weight", -1],
      ["weight", "NaN"],
      ["weight", big],
      ["weight", 1.5],
      ["priority", -1000],
      ["priority", big],
      ["auto_ban", 2],
      ["type", -1],
      ["type", "one"],
      ["status", 9],
      ["name", "n".repeat(300)],
      ["name", "名".repeat(256)],
      ["name", "nul\u0000"],
      ["models", "nul\u0000"],
      ["tag", "t".repeat(65)],
      ["max_input_tokens", -5],
      ["setting", '{"http_protocol":"http3"}'],
      ["setting", '{"http2_connection_shards":9}'],
      ["setting", '{"http2_connection_shards":"2"}'],
    ];
    const transport = '{"http_protocol":"http1","http2_connection_shards":8}';
    expect((await call<Row>("PUT", "/", { id, setting: transport })).body.data["setting"]).toBe(transport);
    expect((await call("PUT", "/", { id, name: "名".repeat(255) })).body.success).toBe(true);
    for (const [field, value] of cases) {
      const answer = await call("PUT", "/", { id, [field]: value });
      expect([field, value, answer.status, answer.body.success, answer.body.field]).toEqual([
        field,
        value,
        200,
        false,
        field,
      ]);
    }
    expect((await call("PUT", "/", `{"id":${id},"weight":1e309}`)).body.field).toBe("weight");
    expect((await call("PUT", "/", "{broken")).body.success).toBe(false);
    for (const path of ["/abc", "/-1", "/1e3", "/9223372036854775808", "/0", "/%00"]) {
      expect([path, (await call("GET", path)).body.code]).toEqual([path, "record_missing"]);
    }
    for (const query of [
      "?p=-5&page_size=-1",
      "?p=1e309&page_size=NaN",
      "?p=99999999999999999999",
      "?page_size=0",
    ]) {
      const answer = await call("GET", `/${query}`);
      expect([query, answer.status, answer.body.success]).toEqual([query, 200, true]);
    }
    expect((await call("GET", "/search?keyword=%00")).status).toBe(200);
    const rtl = "\u202eقناة";
    await call("PUT", "/", { id, name: rtl });
    expect((await call<Row>("GET", `/${id}`)).body.data["name"]).toBe(rtl);
  });

  test("an update writes what is present, keeps the key, and brings abilities and routing along", async () => {
    const id = await only({ models: "m1,m2", group: "default", priority: 5, tag: "t0" });
    expect(await abilitiesOf(id)).toEqual(["default/m1/true/5/t0", "default/m2/true/5/t0"]);
    const answer = await call<Row>("PUT", "/", {
      id,
      key: "",
      models: "m2,m3",
      group: "vip",
      other: "",
      weight: 0,
      priority: 0,
      tag: "",
      openai_organization: null,
      used_quota: 999,
      balance: 7,
    });
    expect(answer.body.data).toMatchObject({
      id,
      name: "main",
      models: "m2,m3",
      priority: 0,
      tag: null,
      used_quota: 0,
      balance: 0,
    });
    expect(await abilitiesOf(id)).toEqual(["vip/m2/true/0/null", "vip/m3/true/0/null"]);
    expect(app.deps.routing.tiers("vip", "m3")[0]?.entries.map(({ channel }) => channel.id)).toEqual([id]);
    expect(app.deps.routing.channel(id)?.keys).toEqual([SECRET]);
    await call("PUT", "/", { id, status: 2 });
    expect(await abilitiesOf(id)).toEqual(["vip/m2/false/0/null", "vip/m3/false/0/null"]);
    expect(app.deps.routing.tiers("vip", "m3")).toEqual([]);
    expect((await call("PUT", "/", { id: 999_999, name: "x" })).body.code).toBe("record_missing");
    expect((await call("PUT", "/", { id, name: " " })).body.success).toBe(false);
  });

  test("a whole row with zero values, as the older console sends it, changes what it says and loses nothing", async () => {
    const id = await only({
      name: "azure",
      type: 3,
      models: "m1,m2",
      group: "vip,svip",
      other: "2024-06-01",
    });
    const kept = { name: "azure", type: 3, models: "m1,m2", group: "vip,svip", other: "2024-06-01" };
    const row = {
      id,
      type: 0,
      key: "",
      openai_organization: "",
      test_model: "",
      status: 0,
      name: "",
      weight: 0,
      created_time: 0,
      test_time: 0,
      response_time: 0,
      base_url: "",
      other: "",
      balance: 0,
      balance_updated_time: 0,
      models: "",
      group: "",
      used_quota: 0,
      model_mapping: "",
      status_code_mapping: "",
      priority: 7,
      auto_ban: 0,
      other_info: "",
      tag: "",
      setting: "",
      param_override: null,
    };
    const answer = await call<Row>("PUT", "/", row);
    expect([answer.status, answer.body.message]).toEqual([200, ""]);
    expect(answer.body.data).toMatchObject({ ...kept, priority: 7, auto_ban: 0, status: 1 });
    expect(await abilitiesOf(id)).toEqual([
      "svip/m1/true/7/null",
      "svip/m2/true/7/null",
      "vip/m1/true/7/null",
      "vip/m2/true/7/null",
    ]);
    expect(app.deps.routing.channel(id)?.keys).toEqual([SECRET]);
    // Each of them by itself, and with another value beside it.
    for (const empty of [{ type: 0 }, { name: "" }, { models: "" }, { group: "" }, { other: "" }]) {
      const one = await call<Row>("PUT", "/", { id, ...empty, weight: 3 });
      expect([empty, one.body.success]).toEqual([empty, true]);
      expect(one.body.data).toMatchObject({ ...kept, weight: 3 });
    }
    // A blank is no empty text: it empties what can be empty, and is refused where nothing can be.
    for (const field of ["name", "models"])
      expect([field, (await call("PUT", "/", { id, [field]: " " })).body.field]).toEqual([field, field]);
    expect((await call<Row>("PUT", "/", { id, other: " " })).body.data["other"]).not.toBe("2024-06-01");
    // What makes a channel is asked for where there is none yet.
    const good = { name: "n", key: "k", models: "m" };
    for (const empty of [{ type: 0 }, { name: "" }, { models: "" }])
      expect([empty, (await call("POST", "/", { ...good, ...empty })).body.success]).toEqual([empty, false]);
    const [plain = 0] = (await call<number[]>("POST", "/", { ...good, group: "" })).body.data;
    expect((await call<Row>("GET", `/${plain}`)).body.data["group"]).toBe("default");
  });

  test("the list pages from 0 by priority or by id, tells the total, and tolerates missing sizes", async () => {
    const ids: number[] = [];
    for (let index = 0; index < 12; index++) {
      ids.push(await only({ name: `page ${index}`, priority: 1000 + index }));
    }
    const first = await call("GET", "/");
    expect(first.body.data.map(({ id }) => id)).toEqual(ids.slice(2).reverse());
    expect(first.body.total).toBeGreaterThanOrEqual(12);
    const second = await call("GET", "/?p=1&page_size=5");
    expect(second.body.data.map(({ id }) => id)).toEqual(ids.slice(2, 7).reverse());
    const byId = await call("GET", "?p=0&page_size=3&id_sort=true");
    expect(byId.body.data.map(({ id }) => id)).toEqual(ids.slice(-3).reverse());
    expect((await call("GET", "/?page_size=5000")).body.data.length).toBeLessThanOrEqual(1000);
    expect((await call("GET", "/?p=5000")).body.data).toEqual([]);
  });

  test("a search treats wildcards as letters and finds by id, name, address, model and whole group name", async () => {
    const id = await only({
      name: "100%_sure",
      base_url: "https://needle.example.org",
      models: "special-model-x",
      group: "vip,svip",
    });
    const found = async (query: string) =>
      (await call("GET", `/search?${query}`)).body.data.map((row) => row.id);
    expect(await found("keyword=100%25_")).toEqual([id]);
    expect(await found("keyword=%25%25%25")).toEqual([]);
    expect(await found("keyword=0__sure")).toEqual([]);
    expect(await found(`keyword=${id}`)).toContain(id);
    expect(await found("keyword=NEEDLE.example")).toEqual([id]);
    expect(await found("keyword=&model=special-model&group=svip")).toEqual([id]);
    expect(await found("model=special-model&group=")).toEqual([id]);
    expect(await found("model=special-model&group=null")).toEqual([id]);
    expect(await found("model=special-model&group=vi")).toEqual([]);
    expect(await found("model=special-model&group=v%25p")).toEqual([]);
    expect(await found("model=special_model")).toEqual([]);
  });

  test("tags: set in bulk, shown as groups, edited, switched and dissolved together", async () => {
    const ids = [await only({ models: "ta" }), await only({ models: "tb" }), await only({ models: "tc" })];
    expect((await call("POST", "/batch/tag", { ids: [], tag: "x" })).body.message).toBe("参数错误");
    expect((await call<number>("POST", "/batch/tag", { ids: [...ids, ids[0]], tag: "blue" })).body.data).toBe(
      3,
    );
    const grouped = await call("GET", "/?tag_mode=true&p=0&page_size=1&id_sort=true");
    expect(grouped.body.data.map(({ id }) => id)).toEqual([...ids].reverse());
    expect(grouped.body.total).toBe(1);
    expect((await call("PUT", "/tag", { tag: "", new_tag: "x" })).body.message).toBe("tag不能为空");
    expect((await call("POST", "/tag/disabled", {})).body.message).toBe("参数错误");
    const edit = { tag: "blue", new_tag: "green", priority: 9, weight: null, models: "", groups: "vip" };
    expect((await call("PUT", "/tag", edit)).body.success).toBe(true);
    expect(await abilitiesOf(ids[0] ?? 0)).toEqual(["vip/ta/true/9/green"]);
    expect((await call("PUT", "/tag", { tag: "green", model_mapping: "[]" })).body.success).toBe(false);
    await call("POST", "/tag/disabled", { tag: "green" });
    expect(await abilitiesOf(ids[1] ?? 0)).toEqual(["vip/tb/false/9/green"]);
    expect(app.deps.routing.tiers("vip", "tb")).toEqual([]);
    await call("POST", "/tag/enabled", { tag: "green" });
    expect(app.deps.routing.tiers("vip", "tb").length).toBe(1);
    await call("PUT", "/tag", { tag: "green", new_tag: "" });
    expect((await call<Row>("GET", `/${ids[2]}`)).body.data["tag"]).toBeNull();
  });

  test("deleting takes rows, abilities and routing away; unknown ids answer OK", async () => {
    const [one, two, three] = [await only({ models: "da" }), await only({ models: "db" }), await only()];
    expect((await call("DELETE", `/${one}/`)).body).toMatchObject({ success: true });
    expect((await call("DELETE", "/99999999")).body.success).toBe(true);
    expect((await call("GET", `/${one}`)).body.code).toBe("record_missing");
    expect(await abilitiesOf(one)).toEqual([]);
    expect(app.deps.routing.channel(one)).toBeUndefined();
    expect((await call("POST", "/batch", { ids: [] })).body.message).toBe("参数错误");
    expect((await call("POST", "/batch", { ids: ["x"] })).body.success).toBe(false);
    expect((await call<number>("POST", "/batch", { ids: [two] })).body.data).toBe(1);
    expect(await abilitiesOf(two)).toEqual([]);
    const { channels } = app.deps.db.t;
    const off = await app.deps.db.orm.select().from(channels);
    const disabled = off.filter(({ status }) => status !== 1).length;
    await call("PUT", "/", { id: three, status: 2 });
    expect((await call<number>("DELETE", "/disabled")).body.data).toBe(disabled + 1);
    expect(app.deps.routing.channel(three)).toBeUndefined();
  });

  test("fix removes orphans, restores what is missing, and then finds nothing more to do", async () => {
    const id = await only({ models: "fa,fb" });
    const { abilities } = app.deps.db.t;
    await call("POST", "/fix");
    await app.deps.db.orm.delete(abilities).where(eq(abilities.model, "fa"));
    await app.deps.db.orm.insert(abilities).values({ group: "default", model: "ghost", channelId: 777_777 });
    expect((await call<number>("POST", "/fix")).body.data).toBe(2);
    expect(await abilitiesOf(id)).toEqual(["default/fa/true/0/null", "default/fb/true/0/null"]);
    expect(await abilitiesOf(777_777)).toEqual([]);
    expect((await call<number>("POST", "/fix")).body.data).toBe(0);
  });

  test("model lists come without a message: presets as OpenAI objects, enabled models as names", async () => {
    app.deps.presets = { byType: {}, all: [{ id: "gpt-4o", owner: "openai" }] };
    const presets = await call("GET", "/models");
    expect(presets.body).toEqual({
      success: true,
      data: [{ id: "gpt-4o", object: "model", created: 1_626_777_600, owned_by: "openai" }],
    } as unknown as Envelope);
    await only({ models: "served-model" });
    await only({ models: "hidden-model", status: 2 });
    const enabled = await call<string[]>("GET", "/models_enabled");
    expect(enabled.body.data).toContain("served-model");
    expect(enabled.body.data).not.toContain("hidden-model");
    expect("message" in enabled.body).toBe(false);
  });
});
