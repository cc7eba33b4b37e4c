// What the family's older console and scripts written for it send, on both databases: large pages, switches in every
// spelling, whole rows with zero values, JSON under any content type.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Told<T = unknown> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
  total?: number;
  page?: number;
  page_size?: number;
}

interface Page {
  items: unknown[];
  total: number;
  page: number;
  page_size: number;
}

/** More than the largest page holds. */
const ROWS = 1003;
const NOW = 1_760_000_400;

describe.each(DATABASE_KINDS)("scripts of old on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let key: string;

  /** Rows of a table in a few statements; SQLite binds some thirty thousand values in one. */
  async function insertRows<T>(
    count: number,
    row: (index: number) => T,
    insert: (rows: T[]) => Promise<unknown>,
  ) {
    const rows = Array.from({ length: count }, (_, index) => row(index));
    for (let from = 0; from < count; from += 500) await insert(rows.slice(from, from + 500));
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    root = await app.createUser({ username: "root", role: 100 });
    const { orm, t } = app.deps.db;
    const token = await app.createToken(root.id, { name: "script" });
    ({ key } = token);
    await insertRows(
      ROWS,
      (index) => ({ username: `many${index}`, displayName: "many" }),
      (rows) => orm.insert(t.users).values(rows),
    );
    await insertRows(
      ROWS,
      (index) => ({ name: `many${index}`, type: 1, models: "m", status: 2 }),
      (rows) => orm.insert(t.channels).values(rows),
    );
    await app.deps.routing.reload();
    await insertRows(
      ROWS,
      (index) => ({
        userId: root.id,
        keyHash: `hash${index}`,
        keySealed: app.deps.seal.seal("redemption", `code${index}`),
        name: "many",
        quota: 1,
      }),
      (rows) => orm.insert(t.redemptions).values(rows),
    );
    // Rows of a type that the hourly sums do not count: their place in the list is found without them.
    await insertRows(
      ROWS,
      (index) => ({
        userId: root.id,
        username: "root",
        createdAt: NOW - index,
        type: 3,
        tokenId: token.id,
        content: "many failed",
      }),
      (rows) => orm.insert(t.logs).values(rows),
    );
  });
  afterAll(() => app.close());

  const get = async <T>(path: string, headers = root.headers) => {
    const answer = await fetch(app.url + path, { headers });
    return { status: answer.status, body: (await answer.json()) as Told<T> };
  };

  test.each([
    "/api/user/?p=1",
    "/api/user/search?keyword=many&p=1",
    "/api/log/?type=3&p=1",
    "/api/log/self?type=3&p=1",
    "/api/redemption/?p=1",
    "/api/redemption/search?keyword=many&p=1",
  ])("%s gives up to a thousand rows, and says the size that it gave", async (path) => {
    for (const [size, given] of [
      ["1000", 1000],
      ["250", 250],
      ["5000", 1000],
      ["0", 10],
    ] as const) {
      const { data } = (await get<Page>(`${path}&page_size=${size}`)).body;
      expect([size, data.items.length, data.page_size, data.page]).toEqual([size, given, given, 1]);
      expect(data.total).toBeGreaterThanOrEqual(ROWS);
    }
    const second = (await get<Page>(`${path.replace("p=1", "p=2")}&page_size=1000`)).body.data;
    expect(second.items.length).toBe(second.total - 1000);
  });

  test.each(["/api/channel/?p=0", "/api/channel/search?keyword=many&p=0"])(
    "%s stays a bare array, with its size and page beside it",
    async (path) => {
      for (const [size, given] of [
        ["1000", 1000],
        ["250", 250],
        ["5000", 1000],
      ] as const) {
        const { body } = await get<unknown[]>(`${path}&page_size=${size}`);
        expect([size, body.data.length, body.page_size, body.page]).toEqual([size, given, given, 0]);
        expect(body.total).toBe(ROWS);
      }
      const last = (await get<unknown[]>(`${path.replace("p=0", "p=1")}&page_size=1000`)).body;
      expect([last.data.length, last.page]).toEqual([ROWS - 1000, 1]);
    },
  );

  test("a search that asks for no page gives every channel up to a thousand", async () => {
    const { body } = await get<unknown[]>("/api/channel/search?keyword=many");
    expect([body.data.length, body.total, body.page_size]).toEqual([1000, ROWS, 1000]);
  });

  test("the searches of the log take a size too; without one they give a hundred", async () => {
    for (const path of [
      "/api/log/search?keyword=many",
      "/api/log/search?keyword=3",
      "/api/log/self/search?keyword=3",
    ])
      for (const [size, given] of [
        ["", 100],
        ["&page_size=1000", 1000],
        ["&page_size=5000", 1000],
        ["&page_size=7", 7],
      ] as const) {
        const { body } = await get<unknown[]>(path + size);
        expect([path, size, body.data.length, body.page_size]).toEqual([path, size, given, given]);
      }
  });

  test("the log of a key is a bare array, of the newest thousand or of the page asked for", async () => {
    const of = async (query: string) =>
      (await get<{ created_at: number }[]>(`/api/log/token?key=${key}${query}`, {})).body;
    const all = await of("");
    expect([all.data.length, all.page_size, all.data[0]?.created_at]).toEqual([1000, 1000, NOW]);
    const large = await of("&page_size=1000&p=1");
    expect(large.data).toEqual(all.data);
    const rest = await of("&page_size=1000&p=2");
    expect([rest.data.length, rest.page, rest.page_size]).toEqual([ROWS - 1000, 2, 1000]);
    const small = await of("&page_size=20&p=2");
    expect([small.data[0]?.created_at, small.data.length, small.page_size]).toEqual([NOW - 20, 20, 20]);
    expect((await of("&page_size=9999")).page_size).toBe(1000);
  });

  test("an order and a grouping are switched on in every spelling of yes that the API knows", async () => {
    const ids = async (query: string) =>
      (await get<{ id: number }[]>(`/api/channel/?page_size=3&${query}`)).body.data.map(({ id }) => id);
    const high = await app.createChannel({ name: "first by priority", priority: 9, tag: "tagged" });
    await app.createChannel({ name: "newest", priority: 1 });
    expect((await ids(""))[0]).toBe(high);
    const newest = await ids("id_sort=true");
    expect(newest).toEqual(newest.toSorted((a, b) => b - a));
    expect(newest).toContain(high);
    expect(newest[0]).not.toBe(high);
    for (const yes of ["1", "t", "T", "True", "TRUE"]) {
      expect([yes, await ids(`id_sort=${yes}`)]).toEqual([yes, newest]);
      expect([yes, await ids(`tag_mode=${yes}`)]).toEqual([yes, [high]]);
    }
    for (const no of ["0", "f", "False", "FALSE", "false", "", "yes", "2"])
      expect([no, await ids(`id_sort=${no}`)]).toEqual([no, await ids("")]);
  });

  test("OPTIONS is answered everywhere; a page of another site may only read what a key tells of itself", async () => {
    for (const path of [
      "/api",
      "/api/",
      "/api/user/self",
      "/api/option/",
      "/api/channel/5",
      "/api/log/self",
    ]) {
      const answer = await fetch(app.url + path, {
        method: "OPTIONS",
        headers: { origin: "https://else.example", "access-control-request-method": "PUT" },
      });
      expect([path, answer.status, await answer.text()]).toEqual([path, 204, ""]);
      expect(answer.headers.get("allow")).toContain("PUT");
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
    for (const path of ["/api/log/token", "/api/usage/token"]) {
      const answer = await fetch(app.url + path, {
        method: "OPTIONS",
        headers: { origin: "https://else.example", "access-control-request-headers": "authorization" },
      });
      expect([
        path,
        answer.status,
        answer.headers.get("access-control-allow-origin"),
        answer.headers.get("access-control-allow-headers"),
      ]).toEqual([path, 204, "*", "authorization"]);
      expect(answer.headers.has("access-control-allow-credentials")).toBe(false);
    }
    // What there is not stays unknown to every other method.
    expect((await fetch(`${app.url}/api/x`)).status).toBe(404);
  });
});
