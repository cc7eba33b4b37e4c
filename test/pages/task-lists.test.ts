// First rows of the drawing and task logs: the ranges of the specification, seconds in every address, own rows only.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { loadDrawings, loadTasks } from "../../src/pages/load-task-lists.ts";
import type { LoaderContext } from "../../src/pages/page.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

/** 20 Nov 2026, 15:30 UTC: 23:30 in Shanghai. */
const NOW = Date.UTC(2026, 10, 20, 15, 30) / 1000;
const HOUR = 3600;
const DAY = 24 * HOUR;

describe.each(["sqlite", "postgres"] as const)("%s", (database) => {
  let app: TestApp;
  let alice: TestUser;
  let bob: TestUser;
  let admin: TestUser;

  /** Rows by the seconds from now at which they were submitted. */
  async function insert(owner: TestUser, offsets: readonly number[], channelId = 1): Promise<void> {
    const { orm, t } = app.deps.db;
    await orm.insert(t.drawings).values(
      offsets.map((offset) => ({
        userId: owner.id,
        channelId,
        mjId: `${owner.username} ${offset}`,
        submitTimeMs: (NOW + offset) * 1000,
      })),
    );
    await orm.insert(t.tasks).values(
      offsets.map((offset) => ({
        userId: owner.id,
        channelId,
        platform: "suno",
        taskId: `${owner.username} ${offset}`,
        submitTime: NOW + offset,
      })),
    );
  }

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    alice = await app.createUser({ username: "alice" });
    bob = await app.createUser({ username: "bob" });
    admin = await app.createUser({ username: "ada", role: 10 });
    await insert(alice, [-31 * DAY, -29 * DAY, -2 * DAY, -15 * HOUR, -60, 0, 30 * 60, 2 * HOUR]);
    await insert(bob, [-120], 7);
  });
  afterAll(() => app.close());

  async function context(user: TestUser, search = "", timeZone = "UTC"): Promise<LoaderContext> {
    return {
      deps: app.deps,
      user: await app.deps.accounts.user(user.id),
      language: "en",
      status: {} as LoaderContext["status"],
      url: new URL(`http://localhost/x${search}`),
      params: {},
      timeZone,
    };
  }
  const drawings = async (user: TestUser, search?: string, timeZone?: string) =>
    (await loadDrawings(await context(user, search, timeZone))).rows.map(({ mj_id }) => mj_id);
  const tasks = async (user: TestUser, search?: string, timeZone?: string) =>
    (await loadTasks(await context(user, search, timeZone))).rows.map(({ task_id }) => task_id);
  const of = (name: string, ...offsets: number[]) => offsets.map((offset) => `${name} ${offset}`);

  test("drawings begin 30 days back and end one hour ahead", async () => {
    expect(await drawings(alice)).toEqual(of("alice", 30 * 60, 0, -60, -15 * HOUR, -2 * DAY, -29 * DAY));
  });

  test("tasks begin today at midnight of the site's zone, wherever the visitor is, and have no end", async () => {
    expect(await tasks(alice)).toEqual(of("alice", 2 * HOUR, 30 * 60, 0, -60, -15 * HOUR));
    // In Shanghai the day began at 16:00 UTC of the day before: 23.5 hours ago. In Tokyo it is half an hour old.
    const begunIn = async (zone: string) => {
      await app.deps.options.set("site.time_zone", zone);
      return tasks(alice, "", "Asia/Tokyo");
    };
    expect(await begunIn("Asia/Shanghai")).toEqual(of("alice", 2 * HOUR, 30 * 60, 0, -60, -15 * HOUR));
    expect(await begunIn("Asia/Tokyo")).toEqual(of("alice", 2 * HOUR, 30 * 60, 0, -60));
    await app.deps.options.set("site.time_zone", "UTC");
  });

  test("the address counts in seconds for both lists, both ends included", async () => {
    const search = `?start_timestamp=${NOW - 2 * DAY}&end_timestamp=${NOW}`;
    expect(await drawings(alice, search)).toEqual(of("alice", 0, -60, -15 * HOUR, -2 * DAY));
    expect(await tasks(alice, search)).toEqual(of("alice", 0, -60, -15 * HOUR, -2 * DAY));
  });

  test("a preset of the address stands for its own length", async () => {
    expect(await drawings(alice, "?range=1h")).toEqual(of("alice", 30 * 60, 0, -60));
    expect(await tasks(alice, "?range=7d")).toEqual(
      of("alice", 2 * HOUR, 30 * 60, 0, -60, -15 * HOUR, -2 * DAY),
    );
  });

  test("users see their own rows without channels, administrators everybody's, also of one channel", async () => {
    const own = await loadDrawings(await context(bob));
    expect(own.rows.map(({ mj_id, channel_id }) => [mj_id, channel_id])).toEqual([["bob -120", 0]]);
    expect(await tasks(bob, "?channel_id=1")).toEqual(["bob -120"]);
    expect((await loadTasks(await context(admin))).total).toBe(6);
    expect(await drawings(admin, "?channel_id=7")).toEqual(["bob -120"]);
    expect(await tasks(admin, "?channel_id=7")).toEqual(["bob -120"]);
  });

  test("a page of the list and its total agree with the range", async () => {
    const { rows, total } = await loadDrawings(await context(alice, "?p=2&page_size=10"));
    expect([rows, total]).toEqual([[], 6]);
  });
});
