// The usage log over the wire: who sees what, paging, filters, figures and clearing, on rows that real settlements wrote.
// Refuses rows made by hand: every call row goes through the ledger, so that sums and rows belong together.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Log {
  id: number;
  user_id: number;
  type: number;
  model_name: string;
  channel: number;
  channel_name: string;
  other: string;
  quota: number;
  created_at: number;
  request_id: string;
  username: string;
  token_name: string;
  use_time: number;
}

interface Envelope<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

type LogPage = { items: Log[]; total: number; page: number; page_size: number };

const HOUR = 3600;
const NOW = 1_760_000_400 - (1_760_000_400 % HOUR) + 600;

describe.each(DATABASE_KINDS)("logs on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let alice: TestUser;
  let bob: TestUser;
  let channelId = 0;
  const keys: { id: number; key: string }[] = [];
  let clock = NOW;

  async function charge(who: 0 | 1, at: number, modelName: string, quota: number): Promise<void> {
    clock = at;
    const user = await app.deps.accounts.user([alice, bob][who]?.id ?? 0);
    const token = await app.deps.accounts.tokenByKey((keys[who]?.key ?? "").replace("sk-", ""));
    if (!user || !token) throw new Error("no account");
    const requestId = `${database}-${at}-${modelName}-${quota}`;
    const hold = await app.deps.ledger.reserve({ requestId, user, token, amount: 0 });
    await hold.settle({
      quota,
      promptTokens: 3,
      completionTokens: 4,
      modelName,
      channelId,
      group: "default",
      isStream: true,
      useTimeMs: 2600,
      content: "模型倍率 1.00",
      other: {
        frt: 5,
        admin_info: { use_channel: [String(channelId)] },
        attempts: [{ channel: channelId, ms: 1 }],
      },
    });
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => clock * 1000 } });
    admin = await app.createUser({ username: "admin", role: 10 });
    alice = await app.createUser({ username: "alice", quota: 1_000_000 });
    bob = await app.createUser({ username: "bob", quota: 1_000_000 });
    channelId = await app.createChannel({ name: "upstream one" });
    for (const who of [alice, bob])
      keys.push(await app.createToken(who.id, { name: `key of ${who.username}` }));
    for (let index = 0; index < 12; index++) await charge(0, NOW - 5 * HOUR + index * 60, "gpt-4o", 10);
    await charge(0, NOW - 30, "gpt_4o", 7);
    await charge(1, NOW - 20, "claude-3", 100);
    clock = NOW;
    await app.deps.ledger.log({ type: 3, userId: bob.id, username: "bob", content: "管理员 100% 修改" });
    await app.deps.ledger.flush();
  });
  afterAll(() => app.close());

  const call = <T = LogPage>(method: string, path: string, as?: TestUser) =>
    app.call<Envelope<T>>(method, `/api${path}`, undefined, as);

  test("administrators' calls are refused to guests and users; users' calls to guests", async () => {
    const routes: [string, string, "admin" | "user"][] = [
      ["GET", "/log/", "admin"],
      ["GET", `/log/?username=alice`, "admin"],
      ["GET", "/log/stat", "admin"],
      ["GET", "/log/histogram", "admin"],
      ["GET", "/log/search?keyword=2", "admin"],
      ["DELETE", `/log/?target_timestamp=${NOW}`, "admin"],
      ["GET", "/data/", "admin"],
      ["GET", "/log/self", "user"],
      ["GET", "/log/self/stat", "user"],
      ["GET", "/log/self/histogram", "user"],
      ["GET", "/log/self/search?keyword=2", "user"],
      ["GET", "/data/self", "user"],
    ];
    for (const [method, path, level] of routes) {
      expect([path, (await call(method, path)).status]).toEqual([path, 401]);
      if (level === "admin") expect([path, (await call(method, path, alice)).status]).toEqual([path, 403]);
      else expect([path, (await call(method, path, alice)).body.success]).toEqual([path, true]);
    }
    expect((await call("GET", "/log/", admin)).body.data.total).toBe(15);
  });

  test("the admin list pages from 1, names channels, and filters exactly", async () => {
    const all = await call("GET", "/log/?p=1&page_size=4", admin);
    expect(all.body.data).toMatchObject({ total: 15, page: 1, page_size: 4 });
    expect(all.body.data.items.map(({ type }) => type)).toEqual([3, 2, 2, 2]);
    expect(all.body.data.items[1]).toMatchObject({
      username: "bob",
      channel: channelId,
      channel_name: "upstream one",
      quota: 100,
      use_time: 3,
      token_name: "key of bob",
    });
    expect(JSON.parse(all.body.data.items[1]?.other ?? "")).toHaveProperty("admin_info");
    const total = async (query: string) => (await call("GET", `/log?${query}`, admin)).body.data.total;
    expect(await total("type=2")).toBe(14);
    expect(await total("type=3")).toBe(1);
    expect(await total("username=alice")).toBe(13);
    expect(await total("username=nobody")).toBe(0);
    expect(await total("username=ali%25")).toBe(0);
    expect(await total("model_name=gpt-4o")).toBe(12);
    expect(await total("model_name=gpt_4o")).toBe(1);
    expect(await total("model_name=gpt_4%25")).toBe(1);
    expect(await total("model_name=%254o")).toBe(13);
    expect(await total("token_name=key%20of%20bob")).toBe(1);
    expect(await total("token_name=key%25")).toBe(0);
    expect(await total(`channel=${channelId}&group=default`)).toBe(14);
    expect(await total("channel=999")).toBe(0);
    expect(await total(`start_timestamp=${NOW - 5 * HOUR}&end_timestamp=${NOW - 5 * HOUR + 120}`)).toBe(3);
    const second = await call("GET", "/log/?p=2&page_size=4&type=2&username=alice&model_name=gpt-4o", admin);
    expect(second.body.data.items.map((row) => row.created_at)).toEqual(
      [7, 6, 5, 4].map((index) => NOW - 5 * HOUR + index * 60),
    );
  });

  test("the histogram takes the list's filters; users count their own rows, whatever they ask for", async () => {
    type Drawn = { from: number; step: number; buckets: { count: number; errors: number }[] };
    const rows = async (path: string, as: TestUser) => {
      const { data } = (await call<Drawn>("GET", path, as)).body;
      return data.buckets.reduce((sum, each) => sum + each.count + each.errors, 0);
    };
    const range = `start_timestamp=${NOW - 6 * HOUR}&end_timestamp=${NOW}`;
    expect(await rows("/log/histogram", admin)).toBe(15);
    expect(await rows(`/log/histogram?${range}`, admin)).toBe(15);
    expect(await rows(`/log/histogram?${range}&username=bob&type=2`, admin)).toBe(1);
    expect(await rows(`/log/histogram?${range}&token_name=key%20of%20alice`, admin)).toBe(13);
    expect(await rows(`/log/self/histogram?${range}`, bob)).toBe(2);
    expect(await rows(`/log/self/histogram?${range}&username=alice&user_id=1`, bob)).toBe(2);
    const short = await call<Drawn>(
      "GET",
      `/log/histogram?start_timestamp=${NOW - 1800}&end_timestamp=${NOW}`,
      admin,
    );
    expect(short.body.data.step).toBe(60);
  });

  test("users see their own rows only, whatever they ask for, without channels and with folded ids", async () => {
    for (const query of [
      "",
      "?username=alice",
      `?channel=${channelId}`,
      "?user_id=1",
      "?p=1&page_size=100",
    ]) {
      const own = await call("GET", `/log/self/${query}`, bob);
      expect([query, own.body.data.total, own.body.data.items.map((row) => row.user_id)]).toEqual([
        query,
        2,
        [bob.id, bob.id],
      ]);
      expect(own.text).not.toContain("admin_info");
      expect(own.text).not.toContain("attempts");
      expect(own.text).not.toContain("upstream one");
      expect(own.body.data.items.map((row) => [row.channel, row.channel_name])).toEqual([
        [0, ""],
        [channelId, ""],
      ]);
      expect(own.body.data.items.every((row) => row.id < 1024)).toBe(true);
    }
    const search = await call<Log[]>("GET", "/log/self/search?keyword=3", bob);
    expect(search.body.data.map(({ type }) => type)).toEqual([3]);
    expect((await call<Log[]>("GET", "/log/self/search?keyword=2", bob)).text).not.toContain("gpt-4o");
    expect((await call<Log[]>("GET", "/log/self/search?keyword=%25", bob)).body.data).toEqual([]);
  });

  test("a request id finds its rows by the whole id, beside every other filter, and nobody else's", async () => {
    const id = `${database}-${NOW - 20}-claude-3-100`;
    const found = async (path: string, as: TestUser) => {
      const { data } = (await call("GET", path, as)).body;
      return [data.total, ...data.items.map((row) => row.request_id)];
    };
    expect(await found(`/log/?request_id=${id}`, admin)).toEqual([1, id]);
    expect(await found(`/log/self?request_id=${id}`, bob)).toEqual([1, id]);
    expect(await found(`/log/self?request_id=${id}`, alice)).toEqual([0]);
    expect(await found(`/log/?request_id=${id.slice(0, -1)}`, admin)).toEqual([0]);
    expect(await found(`/log/?request_id=${id}&model_name=gpt-4o`, admin)).toEqual([0]);
    expect(await found(`/log/?request_id=${id}&type=5`, admin)).toEqual([0]);
    expect(await found(`/log/?request_id=${id}&type=2&username=bob`, admin)).toEqual([1, id]);
    expect(await found(`/log/?request_id=${id}&end_timestamp=${NOW - 60}`, admin)).toEqual([0]);
    const { data } = (await call<{ quota: number }>("GET", `/log/stat?request_id=${id}`, admin)).body;
    expect(data.quota).toBe(100);
  });

  test("figures: quota over the range, rates of the last minute, the type plays no part", async () => {
    const stat = async (query: string, as = admin, path = "/log/stat") =>
      (await call<Record<string, number>>("GET", `${path}?${query}`, as)).body.data;
    expect(await stat("")).toEqual({ quota: 227, rpm: 2, tpm: 14 });
    expect(await stat("type=3&username=alice")).toEqual({ quota: 127, rpm: 1, tpm: 7 });
    expect(await stat(`end_timestamp=${NOW - HOUR}`)).toEqual({ quota: 120, rpm: 2, tpm: 14 });
    expect(
      await stat(`start_timestamp=${NOW - 5 * HOUR + 61}&end_timestamp=${NOW - 4 * HOUR}`),
    ).toMatchObject({
      quota: 100,
    });
    expect(await stat("token_name=key%20of%20alice")).toMatchObject({ quota: 127 });
    expect(await stat("username=alice", bob, "/log/self/stat")).toEqual({ quota: 100, rpm: 1, tpm: 7 });
  });

  test("a key shows its own rows to whoever holds it, to any site, and a wrong one shows nothing", async () => {
    const answer = await call<Log[]>("GET", `/log/token?key=${keys[1]?.key}`);
    expect(answer.body.data.map((row) => row.model_name)).toEqual(["claude-3"]);
    expect(answer.text).not.toContain("admin_info");
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    for (const key of ["", "sk-", "sk-wrong", "%00", keys[1]?.key.slice(0, 20)]) {
      const refused = await call<Log[]>("GET", `/log/token?key=${key}`);
      expect([key, refused.body.success, refused.body.data]).toEqual([
        key,
        false,
        undefined as unknown as Log[],
      ]);
      expect(refused.headers.get("access-control-allow-origin")).toBe("*");
    }
  });

  test("the admin search takes a type or the beginning of a text, with wildcards as letters", async () => {
    const found = async (keyword: string) =>
      (await call<Log[]>("GET", `/log/search?keyword=${encodeURIComponent(keyword)}`, admin)).body.data;
    expect((await found("管理员 100%")).map(({ type }) => type)).toEqual([3]);
    expect((await found("管理员 1_0")).length).toBe(0);
    expect((await found("%")).length).toBe(0);
    expect((await found("2")).length).toBe(14);
  });

  test("the dashboard's rows are hourly sums by model; users get theirs for at most a month", async () => {
    type Series = {
      user_id: number;
      username: string;
      model_name: string;
      count: number;
      quota: number;
      token_used: number;
      created_at: number;
    }[];
    const range = `start_timestamp=${NOW - 10 * HOUR}&end_timestamp=${NOW}`;
    const all = (await call<Series>("GET", `/data/?${range}&default_time=hour`, admin)).body.data;
    expect(all.map((row) => [row.model_name, row.count, row.quota, row.token_used])).toEqual([
      ["gpt-4o", 12, 120, 84],
      ["claude-3", 1, 100, 7],
      ["gpt_4o", 1, 7, 7],
    ]);
    expect(all.every((row) => row.user_id === 0 && row.username === "" && row.created_at % HOUR === 0)).toBe(
      true,
    );
    const one = (await call<Series>("GET", `/data?${range}&username=bob`, admin)).body.data;
    expect(one.map((row) => [row.user_id, row.username, row.model_name])).toEqual([
      [bob.id, "bob", "claude-3"],
    ]);
    expect((await call<Series>("GET", `/data/?${range}&username=nobody`, admin)).body.data).toEqual([]);
    const own = (await call<Series>("GET", `/data/self/?${range}`, bob)).body.data;
    expect(own.map((row) => row.model_name)).toEqual(["claude-3"]);
    const long = await call("GET", `/data/self?start_timestamp=${NOW - 2_592_001}&end_timestamp=${NOW}`, bob);
    expect(long.body).toMatchObject({ success: false, message: "时间跨度不能超过 1 个月" });
  });

  test("hostile parameters neither fail with 500 nor widen what is seen", async () => {
    const values = [
      "-1",
      "1e309",
      "NaN",
      "9223372036854775808",
      "%00",
      "%E2%80%AE",
      "x".repeat(300),
      "'%20or%201=1",
    ];
    const names = [
      "p",
      "page_size",
      "type",
      "channel",
      "start_timestamp",
      "end_timestamp",
      "username",
      "model_name",
      "token_name",
      "group",
    ];
    for (const value of values) {
      for (const name of names) {
        for (const [path, as] of [
          ["/log/", admin],
          ["/log/self", bob],
          ["/log/stat", admin],
          ["/data/", admin],
        ] as const) {
          const answer = await call("GET", `${path}?${name}=${value}`, as);
          expect([path, name, value, answer.status]).toEqual([path, name, value, 200]);
          if (path === "/log/self" && answer.body.success)
            expect(answer.body.data.total).toBeLessThanOrEqual(2);
        }
      }
    }
    expect((await call("GET", "/log/?page_size=0", admin)).body.data.items.length).toBe(10);
    expect((await call("GET", "/log/?page_size=100000&p=0", admin)).body.data).toMatchObject({
      page: 1,
      page_size: 1000,
    });
  });

  test("clearing needs a time, deletes strictly older rows, and the figures stay", async () => {
    for (const query of ["", "?target_timestamp=0", "?target_timestamp=abc", "?target_timestamp=-5"]) {
      expect((await call("DELETE", `/log/${query}`, admin)).body.message).toBe(
        "target timestamp is required",
      );
    }
    const cut = NOW - 5 * HOUR + 120;
    // Counted first, by whoever may clear; counting deletes nothing.
    const count = (as: TestUser, at: number | string) =>
      call<number>("GET", `/log/clear_count?target_timestamp=${at}`, as);
    expect((await count(admin, cut)).body.data).toBe(2);
    expect((await count(admin, cut)).body.data).toBe(2);
    expect((await count(admin, "")).body.message).toBe("target timestamp is required");
    expect((await count(alice, cut)).status).toBe(403);
    expect((await call<number>("DELETE", `/log?target_timestamp=${cut}`, admin)).body.data).toBe(2);
    // Two are gone, and the clearing has a row of its own.
    expect((await call("GET", "/log/", admin)).body.data.total).toBe(14);
    const stat = await call<{ quota: number }>("GET", "/log/stat", admin);
    expect(stat.body.data.quota).toBe(227);
  });
});
