// Notices about models and channels: written by administrators, read by those who may call the models, over at their end.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const START = Date.UTC(2026, 10, 20, 12) / 1000;
const HOUR = 3600;
const DAY = 24 * HOUR;

interface Written {
  id: string;
  models: string[];
  channels: number[];
  text: string;
  until: number;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let now = START;
  let admin: TestUser;
  let user: TestUser;
  let vip: TestUser;
  let slow = 0;
  let inner = 0;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => now * 1000 } });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: START });
    admin = await app.createUser({ role: 10 });
    user = await app.createUser();
    vip = await app.createUser({ group: "inner" });
    slow = await app.createChannel({ name: "secret supplier", models: "gpt-4o,gpt-4o-mini" });
    inner = await app.createChannel({ name: "inner supplier", models: "house-model", group: "inner" });
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    now = START;
    await app.deps.options.set("site.model_notices", "[]");
  });

  const write = (body: Partial<Written>, as = admin) =>
    app.call<{ success: boolean; code?: string; field?: string; data: Written }>(
      "POST",
      "/api/model_notice/",
      { models: [], channels: [], text: "Slow today", until: 0, ...body },
      as,
    );
  const listed = async () =>
    (await app.call<{ data: Written[] }>("GET", "/api/model_notice/", undefined, admin)).body.data;
  const told = async (as: TestUser) =>
    (
      await app.call<{ data: { text: string; models: string[]; until: number }[] }>(
        "GET",
        "/api/user/models/notices",
        undefined,
        as,
      )
    ).body.data;

  test("an administrator writes, changes and deletes one; users may do none of it", async () => {
    const { body } = await write({ models: ["gpt-4o"], until: START + HOUR });
    expect(body).toMatchObject({ success: true, data: { models: ["gpt-4o"], text: "Slow today" } });
    const { id } = body.data;
    const changed = { models: ["gpt-4o"], channels: [slow], text: "  Slow until noon ", until: 0 };
    const put = await app.call<{ data: Written }>("PUT", `/api/model_notice/${id}`, changed, admin);
    expect(put.body.data).toEqual({ ...changed, id, text: "Slow until noon" });
    expect(await listed()).toEqual([put.body.data]);
    for (const [method, path] of [
      ["GET", ""],
      ["POST", ""],
      ["PUT", id],
      ["DELETE", id],
    ] as const) {
      const answer = await app.call(
        method,
        `/api/model_notice/${path}`,
        method === "GET" ? undefined : changed,
        user,
      );
      expect([method, answer.status]).toEqual([method, 403]);
    }
    await app.call("DELETE", `/api/model_notice/${id}`, undefined, admin);
    expect(await listed()).toEqual([]);
    const gone = await app.call("DELETE", `/api/model_notice/${id}`, undefined, admin);
    expect(gone.body).toMatchObject({ success: false, code: "record_missing" });
  });

  test("a notice about nothing, without words, too long or already over is refused at its field and leaves nothing", async () => {
    const cases = [
      [{}, "notice_target_missing", "models"],
      [{ models: [" "] }, "notice_target_missing", "models"],
      [{ models: ["a"], text: "  " }, "notice_text_missing", "text"],
      [{ models: ["a"], text: "x".repeat(301) }, "invalid_field", "text"],
      [{ models: ["a"], until: START }, "notice_until_past", "until"],
      [{ models: ["a"], until: -1 }, "invalid_field", "until"],
      [{ channels: [0] }, "invalid_field", "channels.0"],
    ] as const;
    for (const [body, code, field] of cases) {
      const answer = await write(body as Partial<Written>);
      expect([body, answer.body.code, answer.body.field]).toEqual([body, code, field]);
    }
    expect(await listed()).toEqual([]);
  });

  test("the option takes a whole list and refuses an entry that is no notice, naming its place", async () => {
    const root = await app.createUser({ role: 100 });
    const put = (value: unknown) =>
      app.call("PUT", "/api/option/", { key: "site.model_notices", value: JSON.stringify(value) }, root);
    const good = { models: ["gpt-4o"], channels: [], text: "Slow today", until: 0 };
    for (const [bad, code] of [
      [{}, "option_not_list"],
      [[good, { ...good, text: "" }], "option_bad_notice"],
      [[good, { ...good, models: [] }], "option_bad_notice"],
      [[good, { ...good, channels: ["1"] }], "option_bad_notice"],
      [[good, { ...good, until: 1.5 }], "option_bad_notice"],
      [[good, null], "option_bad_notice"],
    ] as const) {
      const { body } = await put(bad);
      expect([bad, body["code"]]).toEqual([bad, code]);
      if (code === "option_bad_notice") expect(String(body["message"])).toContain("2");
    }
    expect((await put([good])).body["success"]).toBe(true);
    expect(await told(user)).toMatchObject([{ text: "Slow today", models: ["gpt-4o"] }]);
  });

  test("users read what concerns models that they may call, and never of channels or others' models", async () => {
    await write({ models: ["gpt-4o", "unknown-model"], text: "one" });
    await write({ channels: [slow], text: "two" });
    await write({ channels: [inner], text: "three" });
    await write({ models: ["unknown-model"], text: "four" });
    const forUser = await told(user);
    expect(forUser.map(({ text, models }) => [text, models])).toEqual([
      ["one", ["gpt-4o"]],
      ["two", ["gpt-4o", "gpt-4o-mini"]],
    ]);
    expect(JSON.stringify(forUser)).not.toMatch(/supplier|unknown|channel/);
    expect((await told(vip)).map(({ text }) => text)).toContain("three");
  });

  test("a channel that is off has nothing to be told about, a channel that is back has", async () => {
    await write({ channels: [slow] });
    const turn = (status: number) => app.call("PUT", "/api/channel/", { id: slow, status }, admin);
    await turn(2);
    expect(await told(user)).toEqual([]);
    await turn(1);
    expect((await told(user)).length).toBe(1);
  });

  test("at its end a notice is told no more; administrators see it for thirty days", async () => {
    await write({ models: ["gpt-4o"], text: "ends", until: START + HOUR });
    now = START + HOUR - 1;
    expect((await told(user)).length).toBe(1);
    now = START + HOUR;
    expect(await told(user)).toEqual([]);
    expect((await listed()).map(({ text }) => text)).toEqual(["ends"]);
    const old = [{ models: ["gpt-4o"], channels: [], text: "old", until: START - 5 * DAY }];
    await app.deps.options.set("site.model_notices", JSON.stringify(old));
    now = START + 24 * DAY;
    await write({ models: ["gpt-4o"], text: "later" });
    expect((await listed()).map(({ text }) => text)).toEqual(["later", "old"]);
    now = START + 26 * DAY;
    await write({ models: ["gpt-4o"], text: "latest" });
    expect((await listed()).map(({ text }) => text)).toEqual(["latest", "later"]);
  });

  test("administrators who write at the same moment lose none of each other's", async () => {
    const texts = Array.from({ length: 12 }, (_, index) => `notice ${index}`);
    await Promise.all(texts.map((text) => write({ models: ["gpt-4o"], text })));
    expect((await listed()).map(({ text }) => text).toSorted()).toEqual(texts.toSorted());
  });

  test("the pages of keys and of the playground come with them", async () => {
    await write({ models: ["gpt-4o"], text: "Slow <today>" });
    for (const path of ["/token", "/playground"]) {
      const html = await (await fetch(app.url + path, { headers: user.headers })).text();
      const boot = JSON.parse(/<script id="boot"[^>]*>([\s\S]*?)<\/script>/.exec(html)?.[1] ?? "null") as {
        data: { notices: unknown };
      };
      expect([path, boot.data.notices]).toEqual([
        path,
        [{ id: expect.any(String), text: "Slow <today>", until: 0, models: ["gpt-4o"] }],
      ]);
    }
  });
});
