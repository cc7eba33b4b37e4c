// One query string, one answer: a list's page shows the rows that its call answers, because both read it with one function.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { channelFilterOf, channelSearchFields } from "../../src/http/queries/channels.ts";
import { adminLogFields, logFilterOf } from "../../src/http/queries/logs.ts";
import { redemptionFilterOf, redemptionListFields } from "../../src/http/queries/redemptions.ts";
import { sentBy } from "../../src/http/queries/sent.ts";
import { drawingFields, taskFields, taskFilterOf } from "../../src/http/queries/tasks.ts";
import { tokenFilterOf, tokenSearchFields } from "../../src/http/queries/tokens.ts";
import { userFilterOf, userSearchFields } from "../../src/http/queries/users.ts";
import { loadChannels } from "../../src/pages/load-channels.ts";
import { loadLogs } from "../../src/pages/load-logs.ts";
import { loadRedemptions } from "../../src/pages/load-redemptions.ts";
import { loadDrawings, loadTasks } from "../../src/pages/load-task-lists.ts";
import { loadTokens } from "../../src/pages/load-tokens.ts";
import { loadUsers } from "../../src/pages/load-users.ts";
import type { LoaderContext } from "../../src/pages/page.ts";
import { ChannelStatus, LogType, TokenStatus } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30) / 1000;
const HOUR = 3600;
const DAY = 24 * HOUR;

const read = (query: string) => new URLSearchParams(query);

describe("what a query string means", () => {
  test("channels", () => {
    const all =
      "keyword=a&group=vip&model=gpt&id_sort=true&tag_mode=true&status=3&untested=true&tag=%20east%20&sort=-name";
    expect(channelFilterOf(sentBy(channelSearchFields, read(all)))).toEqual({
      keyword: "a",
      group: "vip",
      model: "gpt",
      idSort: true,
      tagMode: true,
      status: ChannelStatus.autoDisabled,
      isUntested: true,
      tag: "east",
      sort: "-name",
    });
    const none = { idSort: false, tagMode: false, status: undefined, isUntested: false, tag: undefined };
    expect(
      channelFilterOf(sentBy(channelSearchFields, read("status=9&id_sort=0&tag_mode=yes&tag="))),
    ).toEqual({
      keyword: undefined,
      group: undefined,
      model: undefined,
      sort: undefined,
      ...none,
    });
  });

  test("keys, users and redemption codes", () => {
    expect(tokenFilterOf(sentBy(tokenSearchFields, read("keyword=a&token=sk-b&status=3")))).toEqual({
      keyword: "a",
      token: "sk-b",
      status: TokenStatus.expired,
    });
    expect(tokenFilterOf(sentBy(tokenSearchFields, read("status=1.5"))).status).toBeUndefined();
    expect(userFilterOf(sentBy(userSearchFields, read("keyword=a&group=vip")))).toEqual({
      keyword: "a",
      group: "vip",
    });
    expect(redemptionFilterOf(sentBy(redemptionListFields, read("keyword=a&status=3")))).toEqual({
      keyword: "a",
      status: 3,
    });
    expect(redemptionFilterOf(sentBy(redemptionListFields, read("status=4"))).status).toBeUndefined();
  });

  test("logs", () => {
    const all = "type=2&token_name=k&model_name=m&group=vip&channel=7&start_timestamp=10&end_timestamp=20";
    expect(logFilterOf(sentBy(adminLogFields, read(all)))).toEqual({
      type: LogType.consume,
      tokenName: "k",
      modelName: "m",
      group: "vip",
      channelId: 7,
      from: 10,
      to: 21,
    });
    const empty = logFilterOf(
      sentBy(adminLogFields, read("type=x&channel=-1&token_name=&start_timestamp=1e3")),
    );
    expect(Object.keys(empty).toSorted()).toEqual(["from", "to", "type"]);
    expect([empty.type, empty.from]).toEqual([0, 0]);
  });

  test("drawings and tasks", () => {
    const all = "channel_id=7&mj_id=m&start_timestamp=10000&end_timestamp=20000";
    expect(taskFilterOf(sentBy(drawingFields, read(all)))).toEqual({
      channelId: 7,
      upstreamId: "m",
      from: 10_000,
      to: 20_000,
    });
    const task =
      "channel_id=7&platform=suno&task_id=t&status=SUCCESS&action=MUSIC&start_timestamp=1&end_timestamp=2";
    expect(taskFilterOf(sentBy(taskFields, read(task)))).toEqual({
      channelId: 7,
      platform: "suno",
      upstreamId: "t",
      status: "SUCCESS",
      action: "MUSIC",
      from: 1,
      to: 2,
    });
    expect(taskFilterOf(sentBy(taskFields, read("channel_id=0&start_timestamp=-1")))).toEqual({});
  });

  test("what a call refuses counts as not sent in an address, and the last of a repeated field counts", () => {
    const long = "x".repeat(1025);
    expect(sentBy(channelSearchFields, read(`keyword=${long}&group=a%00b&tag=${"y".repeat(65)}`))).toEqual(
      {},
    );
    expect(sentBy(channelSearchFields, read(`keyword=${long.slice(1)}`))).toEqual({ keyword: long.slice(1) });
    expect(sentBy(userSearchFields, read("keyword=a&keyword=b&other=c"))).toEqual({ keyword: "b" });
  });
});

describe.each(DATABASE_KINDS)("a list's page and its call on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let user: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    admin = await app.createUser({ username: "ada", role: 10 });
    user = await app.createUser({ username: "bob", group: "vip" });
    const { orm, t } = app.deps.db;
    const channels: [string, Record<string, unknown>][] = [
      ["alpha", { tag: "east", priority: 3, models: "gpt-4o" }],
      ["bravo", { tag: "east", status: ChannelStatus.disabled, models: "gpt-4o,claude" }],
      [
        "charlie",
        { tag: "west", status: ChannelStatus.autoDisabled, models: "claude", testTime: 5, group: "vip" },
      ],
      ["delta", { models: "gemini" }],
    ];
    for (const [name, fields] of channels) await app.createChannel({ name, ...fields });
    for (const name of ["red key", "blue key", "green"]) await app.createToken(admin.id, { name });
    await app.createToken(admin.id, { name: "off key", status: TokenStatus.disabled });
    await orm.insert(t.redemptions).values(
      [1, 2, 3, 1].map((status, index) => ({
        name: `code ${index}`,
        keyHash: `hash ${index}`,
        keySealed: "",
        status,
        quota: 5,
        userId: admin.id,
        createdTime: NOW,
      })),
    );
    const owners = [admin, user, user, admin, user];
    await orm.insert(t.logs).values(
      owners.map((owner, index) => ({
        userId: owner.id,
        username: owner.username,
        createdAt: NOW - index * HOUR * 20,
        type: index === 1 ? LogType.topUp : LogType.consume,
        modelName: index % 2 === 0 ? "gpt-4o" : "claude",
        tokenName: `key ${index % 2}`,
        group: index < 3 ? "default" : "vip",
        channelId: index,
      })),
    );
    await orm.insert(t.drawings).values(
      owners.map((owner, index) => ({
        userId: owner.id,
        channelId: index % 2,
        mjId: `drawing ${index}`,
        submitTimeMs: (NOW - index * DAY) * 1000,
      })),
    );
    await orm.insert(t.tasks).values(
      owners.map((owner, index) => ({
        userId: owner.id,
        channelId: index % 2,
        platform: "suno",
        taskId: `task ${index}`,
        action: index === 0 ? "LYRICS" : "MUSIC",
        status: index < 2 ? "SUCCESS" : "FAILURE",
        submitTime: NOW - index * DAY,
      })),
    );
  });
  afterAll(() => app.close());

  type Loader = (context: LoaderContext) => Promise<{ rows: readonly object[]; total: number }>;

  /** The page and the call with the same query string; pages count from 1, `first` is the call's first page. */
  async function compare(terms: {
    loader: Loader;
    call: string;
    first: 0 | 1;
    queries: readonly string[];
    as?: TestUser;
    /** What the call asks for where the page's address says it otherwise. */
    called?: (query: string) => string;
  }): Promise<void> {
    const { loader, call, first, queries, as = admin, called = (query) => query } = terms;
    const answers = new Set<string>();
    for (const query of queries) {
      const context: LoaderContext = {
        deps: app.deps,
        user: await app.deps.accounts.user(as.id),
        language: "en",
        status: {} as LoaderContext["status"],
        url: new URL(`http://localhost/x?${query}`),
        params: {},
        timeZone: "UTC",
      };
      const { rows, total } = await loader(context);
      const { body } = await app.call<{
        data: object[] | { items: object[]; total: number };
        total?: number;
      }>("GET", `${call}?p=${first}&page_size=10&${called(query)}`, undefined, as);
      const list = Array.isArray(body.data) ? { items: body.data, total: body.total } : body.data;
      expect([query, JSON.parse(JSON.stringify(rows)), total]).toEqual([query, list.items, list.total]);
      answers.add(JSON.stringify(list.items.map((row) => ("id" in row ? row.id : row))));
    }
    // The queries are worth comparing: most of them narrow or order the list in ways of their own.
    expect(answers.size).toBeGreaterThanOrEqual(queries.length / 2);
  }

  test("channels", () =>
    compare({
      loader: loadChannels,
      call: "/api/channel/search",
      first: 0,
      queries: [
        "",
        "keyword=alp",
        "keyword=brav&keyword=alp",
        "group=vip",
        "model=claude",
        "status=2",
        "status=9",
        "untested=true&sort=name",
        "tag=east",
        "tag_mode=true",
        "sort=-name",
        "id_sort=true",
      ],
    }));

  test("keys", () =>
    compare({
      loader: loadTokens,
      call: "/api/token/search",
      first: 0,
      queries: ["", "keyword=key", "keyword=%20blue%20", "status=2", "status=1.5", "token=sk-nothing"],
    }));

  test("users", () =>
    compare({
      loader: loadUsers,
      call: "/api/user/search",
      first: 1,
      queries: ["", "keyword=ada", "group=vip", "keyword=nobody"],
    }));

  test("redemption codes", () =>
    compare({
      loader: loadRedemptions,
      call: "/api/redemption/search",
      first: 1,
      queries: ["", "keyword=code%202", "status=2", "status=7", "keyword=none"],
    }));

  const fixed = `start_timestamp=${NOW - 2 * DAY}&end_timestamp=${NOW}`;

  test("logs", async () => {
    const queries = ["", "&type=1", "&model_name=gpt-4o", "&token_name=key%201", "&group=vip", "&channel=2"];
    const admins = [...queries, "&username=bob", "&username=nobody"].map((query) => fixed + query);
    await compare({ loader: loadLogs, call: "/api/log/", first: 1, queries: admins });
    const own = ["", "&type=1", "&model_name=gpt-4o", "&group=vip"].map((query) => fixed + query);
    await compare({ loader: loadLogs, call: "/api/log/self", first: 1, queries: own, as: user });
  });

  test("drawings, whose call counts in milliseconds", async () => {
    const called = (query: string) => query.replace(/(_timestamp=\d+)/g, "$1000");
    const queries = ["", "&mj_id=drawing%201", "&channel_id=1", "&channel_id=x"].map(
      (query) => fixed + query,
    );
    await compare({ loader: loadDrawings, call: "/api/mj/", first: 0, queries, called });
    const own = [fixed, `${fixed}&mj_id=drawing%202`];
    await compare({ loader: loadDrawings, call: "/api/mj/self", first: 0, queries: own, called, as: user });
  });

  test("tasks", async () => {
    const fields = [
      "",
      "&task_id=task%201",
      "&status=FAILURE",
      "&action=LYRICS",
      "&platform=none",
      "&channel_id=1",
    ];
    const queries = fields.map((query) => fixed + query);
    await compare({ loader: loadTasks, call: "/api/task/", first: 0, queries });
    const own = [fixed, `${fixed}&status=SUCCESS`];
    await compare({ loader: loadTasks, call: "/api/task/self", first: 0, queries: own, as: user });
  });
});
