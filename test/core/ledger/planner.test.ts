// What stands in an atomic block finds its rows by a key: on the embedded database every stream waits meanwhile. The
// statements are those of real flows, and the databases' own planners are asked about each of them, on filled tables.
import { Database as BunSqlite } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { Sql } from "postgres";
import { noteFailedLogin } from "../../../src/core/logs/login-trail.ts";
import { transferReward } from "../../../src/core/users/affiliates.ts";
import { CREATIVE_TASKS, DRAWINGS } from "../../../src/core/tasks/families.ts";
import { renewPlans } from "../../../src/core/plans/periods.ts";
import { addTask, failTask } from "../../../src/core/tasks/store.ts";
import type { Query, Steps } from "../../../src/db/database.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";

const ROWS = 20_000;
const BIG = [
  "logs",
  // Where PostgreSQL keeps rows of no month's part.
  "logs_rest",
  "rollups",
  "users",
  "tokens",
  "credits",
  "midjourneys",
  "tasks",
  "redemptions",
  "top_ups",
  "sessions",
  "user_devices",
  "remote_objects",
  "user_plans",
  "plan_periods",
];
/** How the planners say that they read a table from end to end. */
const SCAN = {
  sqlite: new RegExp(`\\bSCAN (${BIG.join("|")})\\b`),
  postgres: new RegExp(`Seq Scan on (${BIG.join("|")})\\b`),
};

type Told = Query<unknown> & { getQuery?(): ReturnType<Query<unknown>["toSQL"]> };

interface Statement {
  text: string;
  params: unknown[];
}

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    let root: TestUser;
    let user: TestUser;
    const seen = new Map<string, Statement>();

    beforeAll(async () => {
      // The ledger's own transaction on SQLite runs statements that are prepared at the start.
      const prepared = spyOn(BunSqlite.prototype, "prepare");
      app = await startTestApp({ database });
      for (const [text] of prepared.mock.calls)
        if (/^\s*(insert|update|delete)/i.test(text)) seen.set(text, { text, params: [] });
      prepared.mockRestore();
      const { db } = app.deps;
      const atomic = db.atomic.bind(db);
      function* watched<T>(steps: Steps<T>): Steps<T> {
        let state = steps.next();
        while (!state.done) {
          const query: Told & { parts?: readonly Told[] } = state.value;
          for (const each of query.parts ?? [query]) {
            // Raw statements name it differently.
            const { sql: text, params } = each.getQuery?.() ?? each.toSQL();
            seen.set(text, { text, params });
          }
          state = steps.next(yield query);
        }
        return state.value;
      }
      db.atomic = (body) => atomic((tx) => watched(body(tx)));
      root = await app.createUser({ role: 100 });
      user = await app.createUser({ quota: 100_000_000 });
      await fill();
    });
    afterAll(() => app.close());

    /** Rows enough for a planner to see what a scan costs; none of them is anybody's who takes part. */
    async function fill(): Promise<void> {
      const series = `(with recursive series(i) as (select 1000000 union all select i + 1 from series where i < ${
        1_000_000 + ROWS
      }) select i from series) as series`;
      for (const text of [
        `insert into users (id, username) select i, 'filler' || i from ${series}`,
        `insert into tokens (user_id, key_hash, key_sealed) select i, 'hash' || i, '' from ${series}`,
        `insert into logs (created_at, type, user_id, quota, request_id)
          select i, 2, i, 0, 'filler' || i from ${series}`,
        `insert into rollups (hour, user_id, model_name, channel_id, token_id, "group", count)
          select 3600, i, 'm', 0, 0, 'default', 1 from ${series}`,
        `insert into credits (user_id, amount, kind, created_at) select i, 0, 'import', 0 from ${series}`,
        `insert into midjourneys (user_id, progress) select i, '100%' from ${series}`,
        `insert into tasks (user_id, progress) select i, '100%' from ${series}`,
        `insert into sessions (id, user_id, session_version, method, created_at, last_seen_at, expires_at)
          select 'filler' || i, i, 1, 'password', 0, 0, 4000000000 from ${series}`,
        `insert into user_devices (user_id, hash, last_seen_at) select i, 'filler', 0 from ${series}`,
        `insert into redemptions (user_id, key_hash, key_sealed) select i, 'hash' || i, '' from ${series}`,
        `insert into remote_objects (user_id, kind, upstream_id, channel_id, key_hash, created_at, expires_at)
          select i, 'response', 'resp_' || i, 1, '', 0, 4000000000 from ${series}`,
        `insert into user_plans (user_id, plan_id, title, duration_unit, duration_count, reset, quota, overflow, stack,
          zone, source, starts_at, ends_at, status, created_at)
          select i, 1000000 + i, 'filler', 'day', 1, 'none', 1, true, 'extend', 'UTC', 'admin', 0, 1, 'ended', 0 from ${series}`,
        `insert into plan_periods (user_plan_id, user_id, no, starts_at, ends_at, quota, closed_at)
          select i, i, 1, 0, 1, 1, 1 from ${series}`,
        "analyze",
      ])
        await run(text);
    }

    const postgres = (): Sql => (app.deps.db.orm as unknown as { $client: Sql }).$client;

    async function run(text: string): Promise<void> {
      if (app.deps.db.client) app.deps.db.client.run(text);
      else await postgres().unsafe(text);
    }

    async function planOf({ text, params }: Statement): Promise<string> {
      const { client } = app.deps.db;
      if (client) {
        const bound = params as (string | number | null)[];
        const steps = client.prepare<{ detail: string }, (string | number | null)[]>(
          `explain query plan ${text}`,
        );
        try {
          return steps
            .all(...bound)
            .map(({ detail }) => detail)
            .join("\n");
        } finally {
          // The plan of a write stays open, and with it the lock that the last checkpoint needs.
          steps.finalize();
        }
      }
      const lines = await postgres().unsafe(`explain ${text}`, params as string[]);
      return lines.map((line) => String(line["QUERY PLAN"])).join("\n");
    }

    const call = async (method: string, path: string, body: unknown, as: TestUser) => {
      const answer = await app.call<{ success: boolean; data: unknown }>(method, path, body, as);
      expect([method, path, answer.body.success, answer.text]).toEqual([method, path, true, answer.text]);
      return answer.body.data;
    };

    /** Every flow that opens an atomic block. */
    async function everything(): Promise<void> {
      const { deps } = app;
      // Keys: made, edited, switched; calls: held, charged, given back; also near zero.
      const { id, key } = await app.createToken(user.id, { remainQuota: 60_000, unlimitedQuota: false });
      await call("POST", "/api/token/", { name: "own", remain_quota: 5, unlimited_quota: false }, user);
      await call("PUT", "/api/token/", { id, name: "renamed", remain_quota: 50_000 }, user);
      await call("PUT", "/api/token/?status_only=true", { id, status: 2 }, user);
      await call("PUT", "/api/token/?status_only=true", { id, status: 1 }, user);
      const channelId = await app.createChannel({ type: 2, models: "mj_imagine" });
      const token = await deps.accounts.tokenByKey(key.slice(3));
      if (!token) throw new Error("no token");
      for (const requestId of ["one", "two", "three"]) {
        const held = await deps.ledger.reserve({ requestId, user: token.user, token, amount: 10_000 });
        if (requestId === "three") await held.release();
        else
          await held.settle({
            quota: 10_000,
            promptTokens: 1,
            completionTokens: 1,
            modelName: "mj_imagine",
            channelId,
            group: "default",
            isStream: false,
            useTimeMs: 1,
            content: "",
            other: {},
            object: {
              userId: user.id,
              kind: "response",
              upstreamId: requestId,
              tokenId: id,
              channelId,
              keyHash: "",
              modelName: "",
              tokenCount: 1,
              createdAt: 1,
              expiresAt: 4_000_000_000,
              state: "completed",
            },
          });
      }
      await deps.ledger.flush();
      const task = {
        userId: user.id,
        tokenId: id,
        channelId,
        group: "default",
        modelName: "mj_imagine",
        quota: 10_000,
        submitTimeMs: deps.clock.nowMs(),
        createdAt: Math.floor(deps.clock.nowMs() / 1000),
      };
      const drawing = await addTask(deps, DRAWINGS, {
        ...task,
        action: "IMAGINE",
        mjId: "m",
        requestId: "one",
      });
      const song = await addTask(deps, CREATIVE_TASKS, {
        ...task,
        action: "MUSIC",
        taskId: "s",
        requestId: "two",
      });
      expect(await failTask(deps, DRAWINGS, drawing, { failReason: "no" })).toBe(true);
      expect(await failTask(deps, CREATIVE_TASKS, song, { failReason: "no" })).toBe(true);
      // Balances: codes, rewards, an administrator's edit.
      const codes = await call("POST", "/api/redemption/", { name: "code", quota: 7, count: 1 }, root);
      await call("POST", "/api/user/topup", { key: (codes as string[])[0] }, user);
      // Plans: made, changed, bought, cancelled, given, refunded, ended by the clock.
      const terms = { title: "Pro", quota: 5000, duration_unit: "day", reset: "day", wallet_price: 7 };
      const { id: plan } = (await call("POST", "/api/plan/", terms, root)) as { id: number };
      await call("PUT", `/api/plan/${plan}`, { stack: "parallel" }, root);
      const buy = async () =>
        ((await call("POST", `/api/plan/${plan}/buy`, { method: "wallet" }, user)) as { id: number }).id;
      await call("POST", `/api/plan/self/${await buy()}/cancel`, undefined, user);
      const back = { user_plan_id: await buy(), reason: "x", refund: true };
      await call("POST", `/api/plan/user/${user.id}/cancel`, back, root);
      await call("POST", `/api/plan/user/${user.id}`, { plan_id: plan, reason: "x" }, root);
      await renewPlans(deps, user.id);
      await call("DELETE", `/api/plan/${plan}`, undefined, root);
      const { users } = deps.db.t;
      await deps.db.orm
        .update(users)
        .set({ affQuota: 1_000_000 })
        .where(sql`id = ${user.id}`);
      const account = await deps.accounts.user(user.id);
      if (account) await transferReward(deps, account, 500_000);
      const made = { username: "edited", password: "12345678", display_name: "x" };
      await call("POST", "/api/user/", made, root);
      await call(
        "PUT",
        "/api/user/",
        { id: user.id, quota_change: 5, quota_reason: "x", group: "default" },
        root,
      );
      const origin = { address: "", userAgent: "", authMethod: "none" as const };
      const tried = { ...origin, id: user.id, username: user.username, role: 1 };
      for (let tries = 0; tries < 2; tries++) await noteFailedLogin(deps, "login.failed", tried, "");
      await call("POST", "/api/user/sessions/revoke-others", {}, user);
      const doomed = await app.createUser({ quota: 1 });
      await call("DELETE", `/api/user/${doomed.id}`, undefined, root);
      // Channels: made, edited, copied, tagged, switched, repaired, deleted.
      const ids = (await call(
        "POST",
        "/api/channel/",
        { name: "c", key: "k1", models: "a,b", tag: "t" },
        root,
      )) as number[];
      await call("PUT", "/api/channel/", { id: ids[0], models: "a,c", status: 2 }, root);
      await call("POST", `/api/channel/copy/${ids[0]}`, {}, root);
      await call("POST", "/api/channel/batch/tag", { ids, tag: "u" }, root);
      await call("PUT", "/api/channel/tag", { tag: "u", priority: 3 }, root);
      await call("POST", "/api/channel/tag/enabled", { tag: "u" }, root);
      await call("POST", "/api/channel/fix", {}, root);
      await call("POST", "/api/channel/batch", { ids }, root);
      await call("DELETE", "/api/channel/disabled", undefined, root);
    }

    test("no statement of an atomic block reads a table that grows from end to end", async () => {
      await everything();
      const scans: [string, string][] = [];
      let asked = 0;
      for (const statement of seen.values()) {
        const plan = await planOf(statement);
        asked++;
        if (SCAN[database].test(plan)) scans.push([statement.text, plan]);
      }
      expect(asked).toBeGreaterThan(30);
      for (const table of [
        "logs",
        "rollups",
        "users",
        "tokens",
        "credits",
        "midjourneys",
        "tasks",
        "redemptions",
      ])
        expect([
          table,
          [...seen.keys()].some((text) => new RegExp(`["\\s]${table}["\\s]`).test(text)),
        ]).toEqual([table, true]);
      expect(scans).toEqual([]);
    });
  });
}
