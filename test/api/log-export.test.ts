// The log as a CSV file over the wire: every row once over several pages, the filter, the columns of the audit trail, one
// export an account, and a client that leaves. On both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { BYTE_ORDER_MARK } from "../../src/shared/csv.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { until } from "../relay/support.ts";

/** More than the console's lists would ever be asked for, and many pages. */
const ROWS = 22_500;
const NOW = 1_790_000_000;
const CALL = {
  modelName: "gpt-4o",
  quota: 2625,
  other: JSON.stringify({ upstream_model_name: "claude-sonnet-4", frt: 500, cache_tokens: 200 }),
};

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let user: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    admin = await app.createUser({ username: "keeper", role: 10 });
    user = await app.createUser({ username: "ada" });
    const { logs } = app.deps.db.t;
    // Many of one second: pages end within it.
    const rows = Array.from({ length: ROWS }, (_, n) => ({
      userId: user.id,
      username: "ada",
      createdAt: NOW - 10 - Math.floor(n / 1500),
      type: n % 9 === 0 ? 4 : n % 9 === 1 ? 7 : 1,
      content: n === 0 ? '=cmd|"x"!A0,\nnext' : `row ${n}`,
      ...(n === 1 ? CALL : {}),
    }));
    for (let n = 0; n < rows.length; n += 500)
      await app.deps.db.orm.insert(logs).values(rows.slice(n, n + 500));
  });
  afterAll(() => app.close());

  const file = async (path: string, as: TestUser, language = "zh") => {
    const headers = { ...as.headers, "accept-language": language };
    const answer = await app.call("GET", path, undefined, { ...as, headers });
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(answer.text));
    return { answer, lines: text.replace(BYTE_ORDER_MARK, "").trimEnd().split("\r\n") };
  };
  const idsOf = (lines: readonly string[]) => lines.slice(1).map((line) => Number(line.split(",", 1)[0]));

  test("holds every row once, newest first, with heads", async () => {
    const { answer, lines } = await file(`/api/log/export?username=ada`, admin);
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="log-2026-09-21.csv"');
    expect(lines[0]).toStartWith("id,time,type,user_id,username,action,text,admin_id,admin_username,ip,");
    const ids = idsOf(lines);
    expect(new Set(ids).size).toBe(ROWS);
    expect(ids).toHaveLength(ROWS);
    const { logs } = app.deps.db.t;
    const stored = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, user.id));
    const byAge = stored.toSorted((a, b) => b.createdAt - a.createdAt || b.id - a.id);
    expect(ids).toEqual(byAge.map(({ id }) => id));
  });

  test("has the types and the time that were asked for, and no cell that runs", async () => {
    const trail = await file(`/api/log/export?username=ada&type=4,7`, admin);
    expect(idsOf(trail.lines)).toHaveLength((ROWS / 9) * 2);
    const { answer } = await file(`/api/log/export?username=ada&type=4&start_timestamp=${NOW - 10}`, admin);
    expect(answer.text).toContain(`"'=cmd|""x""!A0,\nnext"`);
    const part = await file(
      `/api/log/export?username=ada&type=4&start_timestamp=${NOW - 11}&end_timestamp=${NOW - 11}`,
      admin,
    );
    expect(idsOf(part.lines)).toHaveLength(167);
  });

  test("says who did what from where in the reader's language, and keeps that from the user's own file", async () => {
    const target = await app.createUser({ username: "target" });
    const headers = { ...admin.headers, "user-agent": "curl/8.5" };
    await app.call("POST", "/api/user/manage", { id: target.id, action: "disable" }, { ...admin, headers });
    await app.call("POST", "/api/user/manage", { id: target.id, action: "enable" }, { ...admin, headers });
    const { lines } = await file(`/api/log/export?username=target&type=3,4,7`, admin, "en");
    expect(lines[1]).toContain(",3,");
    expect(lines.slice(1).map((line) => line.split(",").slice(4, 13).join(","))).toEqual([
      `target,user.enable,An administrator enabled the account,${admin.id},keeper,127.0.0.1,curl/8.5,session,{}`,
      `target,user.disable,An administrator disabled the account,${admin.id},keeper,127.0.0.1,curl/8.5,session,{}`,
    ]);
    const own = await app.createUser({ username: "own" });
    await app.call("PUT", "/api/user/", { id: own.id, display_name: "Own" }, admin);
    const self = await file("/api/log/self/export?username=ada&channel=1", own, "en");
    expect(self.lines.length).toBe(2);
    expect(self.lines[1]).toContain("own,user.update,");
    expect(self.answer.text).not.toContain("keeper");
    expect(self.answer.text).not.toContain("127.0.0.1");
    expect((await app.call("GET", "/api/log/export", undefined, own)).status).toBe(403);
  });

  test("has of a call what it cost and what answered it", async () => {
    for (const [path, as] of [
      ["/api/log/export?model_name=gpt-4o", admin],
      ["/api/log/self/export?model_name=gpt-4o", user],
    ] as const) {
      const { lines } = await file(path, as);
      expect(lines).toHaveLength(2);
      expect(lines[0]).toEndWith(",request_id,upstream_model,first_token_ms,cache_tokens,cost_usd");
      expect(lines[1]).toEndWith(",claude-sonnet-4,500,200,0.00525");
    }
  });

  test("an administrator's export stands in the trail itself", async () => {
    await file("/api/log/export?type=3,7", admin);
    const { lines } = await file("/api/log/export?type=3", admin, "en");
    expect(lines[1]).toContain("keeper,log.export,Exported the log 3");
    expect(lines[2]).toContain('keeper,log.export,"Exported the log 3, 7"');
  });

  test("one at a time for an account; whoever leaves may begin anew", async () => {
    const leaving = new AbortController();
    const first = await fetch(`${app.url}/api/log/export?username=ada`, {
      headers: admin.headers,
      signal: leaving.signal,
    });
    const reader = first.body?.getReader();
    await reader?.read();
    const second = await app.call<{ code: string }>("GET", "/api/log/export", undefined, admin);
    // The first may be through already where the whole file fits into the sockets' buffers: 4,500 short rows do not.
    expect([second.status, second.body?.code]).toEqual([429, "log_export_running"]);
    expect((await app.call("GET", "/api/log/self/export", undefined, user)).status).toBe(200);
    leaving.abort();
    await until(async () => {
      const again = await app.call("GET", "/api/log/export?type=6", undefined, admin);
      return again.status === 200 || undefined;
    });
  });
});
