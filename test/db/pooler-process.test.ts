// The built program behind a real pgbouncer: it serves, hears of changes, and goes on when the pooler dies and comes back.
// Refuses a pooler in transaction mode that nothing leads past, as a start and as weir doctor say it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { callPlan, startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";
import { startPgbouncer } from "../support/pgbouncer.ts";
import type { Pgbouncer } from "../support/pgbouncer.ts";
import { createPostgresDatabase } from "../support/postgres.ts";
import type { PostgresDatabase } from "../support/postgres.ts";

/** A change is there within a second; two processes, a pooler and their lane want a processor meanwhile. */
const SOON_MS = 3000;

interface Report {
  checks: { id: string; status: string; text: string; advice?: string; figures?: { mode?: string } }[];
}

describe.each([
  ["session", false],
  ["transaction", true],
] as const)("pool_mode = %s", (mode, isPast) => {
  let database: PostgresDatabase;
  let pooler: Pgbouncer;
  let site: Site;
  beforeAll(async () => {
    database = await createPostgresDatabase();
    pooler = await startPgbouncer(database.url, { mode });
    site = await startSite({
      // The books are read without the pooler.
      databaseUrl: database.url,
      env: { DATABASE_URL: pooler.url, ...(isPast ? { DATABASE_DIRECT_URL: database.url } : {}) },
    });
  }, 60_000);
  afterAll(async () => {
    await site.remove();
    await pooler.remove();
    await database.drop();
  }, 30_000);

  const doctor = (more: Record<string, string> = {}) => {
    const { code, text } = site.server.run(["doctor", "--json"], more);
    const { checks } = JSON.parse(text) as Report;
    return {
      code,
      found: checks.find(({ id }) => id === "pooler") ?? checks.find(({ id }) => id === "database"),
    };
  };

  test("calls are served and booked, changes reach another process, and the pooler's death is an outage that heals", async () => {
    const person = await site.person(1_000_000_000_000);
    const key = await person.key();
    const answered: string[] = [];
    const call = async (url = site.server.url) => {
      const { status, requestId } = await callPlan(url, key, { id: "pooled", words: 3 });
      if (status === 200) answered.push(requestId);
      return status;
    };
    expect(await call()).toBe(200);
    expect((await site.row(answered[0] ?? "")).requestId).toBe(answered[0] ?? "");

    const other = await site.join();
    expect(await call(other.url)).toBe(200);
    const manage = (action: string) => site.root.send("POST", "/api/user/manage", { id: person.id, action });
    await manage("disable");
    await site.until(async () => (await call(other.url)) !== 200, SOON_MS);
    await manage("enable");
    await site.until(async () => (await call(other.url)) === 200, SOON_MS);

    await pooler.kill();
    // Rich enough for every node together: memory pays, the journal waits.
    expect(await call()).toBe(200);
    await pooler.start();
    const during = answered.at(-1) ?? "";
    expect((await site.row(during)).requestId).toBe(during);
    await site.until(() =>
      manage("disable")
        .then(() => true)
        .catch(() => false),
    );
    await site.until(async () => (await call(other.url)) !== 200, 2000);

    await other.stop();
    await site.server.stop();
    const known = new Set((await site.books.log(2)).map(({ requestId }) => requestId));
    expect(answered.filter((id) => !known.has(id))).toEqual([]);
    expect(site.server.audit()).toMatchObject({ code: 0 });
  }, 60_000);

  test("weir doctor tells the mode, and what is missing", () => {
    // Its upstreams stand in this process, which waits for it: they do not answer.
    const told = doctor();
    expect([told.found?.id, told.found?.status, told.found?.figures?.mode]).toEqual(["pooler", "ok", mode]);
    if (!isPast) return;
    const without = doctor({ DATABASE_DIRECT_URL: "" });
    expect([without.code, without.found?.status]).toEqual([1, "fail"]);
    expect(without.found?.text).toContain("transaction mode");
    expect(without.found?.advice).toContain("DATABASE_DIRECT_URL");
    const twice = doctor({ DATABASE_DIRECT_URL: pooler.url });
    expect(twice.found).toMatchObject({
      status: "fail",
      text: expect.stringContaining("DATABASE_DIRECT_URL: "),
    });
    const start = site.server.run(["serve"], { DATABASE_DIRECT_URL: "" });
    expect(start.code).toBe(1);
    expect(start.text).toContain(
      "weir cannot start: DATABASE_URL names a database that cannot be used: a pooler",
    );
  }, 60_000);
});
