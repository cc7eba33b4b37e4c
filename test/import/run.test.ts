// The procedure of an import on both databases: whole, in parts, stopped at every step, refused; and books that add up after it.
// Refuses to look at single rows' meanings: rows.test.ts and offers.test.ts do.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asc, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import { audit } from "../../src/core/ledger/audit.ts";
import { createSealer } from "../../src/core/kit/seal.ts";
import { connect } from "../../src/db/connect.ts";
import type { Database as WeirDatabase } from "../../src/db/database.ts";
import type { ImportSettings } from "../../src/import/context.ts";
import { parseSource } from "../../src/import/dsn.ts";
import { runImport } from "../../src/import/run.ts";
import type { ImportReport } from "../../src/import/report.ts";
import { reportLines } from "../../src/import/report-text.ts";
import { openSource } from "../../src/import/source.ts";
import { readState } from "../../src/import/state.ts";
import { verifyImport } from "../../src/import/verify.ts";
import { MIGRATED, testClock } from "../core/ledger/support.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { OLD_NOW, writeOldSite } from "./old-site.ts";

const seal = createSealer("a secret of tests only");
const directory = mkdtempSync(join(tmpdir(), "weir-import-"));
const OLD_SITE = join(directory, "one-api.db");

const SETTINGS: ImportSettings = {
  isDry: false,
  part: "all",
  logDays: 0,
  unlimitedPlanQuota: undefined,
  optionTexts: undefined,
};

class Killed extends Error {}

interface RunOptions {
  settings?: Partial<ImportSettings>;
  path?: string;
  /** After so many reports of progress the process is gone. */
  killAfter?: number;
}

/** One run, as a process would make it. Undefined target: a dry run. */
async function run(db: WeirDatabase | undefined, options: RunOptions = {}): Promise<ImportReport> {
  const source = await openSource(parseSource(options.path ?? OLD_SITE));
  let reports = 0;
  try {
    return await runImport({
      source,
      into: db && { db, seal, version: "test" },
      settings: { ...SETTINGS, isDry: !db, ...options.settings },
      clock: testClock(OLD_NOW * 1000),
      onProgress() {
        if (++reports === options.killAfter) throw new Killed();
      },
    });
  } finally {
    await source.close();
  }
}

/** Sealed and random columns say something else each time. */
const RANDOM = new Set(["keySealed", "secretSealed", "clientSecretSealed", "passkeyHandle", "setting"]);
const TABLES = [
  "users",
  "identities",
  "tokens",
  "channels",
  "channelKeys",
  "abilities",
  "redemptions",
  "logs",
  "rollups",
  "rollupsByUser",
  "rollupsByUserModel",
  "credits",
  "openings",
  "orders",
  "plans",
  "userPlans",
  "planPeriods",
  "totps",
  "backupCodes",
  "passkeys",
  "customProviders",
  "drawings",
  "tasks",
  "setups",
] as const;

/** Every imported row, in an order of its own. */
async function contents(db: WeirDatabase): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const name of TABLES) {
    const rows = await db.orm.select().from(db.t[name] as unknown as PgTable);
    found[name] = rows
      .map((row) => JSON.stringify(Object.entries(row).filter(([field]) => !RANDOM.has(field))))
      .toSorted();
  }
  return found;
}

const differencesIn = async (db: WeirDatabase): Promise<unknown[]> => (await audit(db)).differences;

beforeAll(() => writeOldSite(OLD_SITE));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe.each(DATABASE_KINDS)("an import into %s", (kind) => {
  const places: TestDatabase[] = [];
  const databases: WeirDatabase[] = [];
  let whole: WeirDatabase;
  let report: ImportReport;
  let expected: Record<string, string[]>;

  async function fresh(): Promise<WeirDatabase> {
    const place = await createTestDatabase(kind, MIGRATED);
    places.push(place);
    const db = await connect({ dataDir: place.dataDir, databaseUrl: place.databaseUrl ?? "" });
    databases.push(db);
    return db;
  }

  beforeAll(async () => {
    whole = await fresh();
    report = await run(whole);
    expected = await contents(whole);
  });
  afterAll(async () => {
    for (const db of databases) await db.close();
    for (const place of places) await place.drop();
  });

  test("brings everything along, and every sum agrees", async () => {
    expect(await differencesIn(whole)).toEqual([]);
    expect(report.family).toBe("new-api-v1");
    expect(report.tables).toMatchObject({
      users: { read: 4, carried: 4, rejected: 0 },
      tokens: { read: 2, carried: 2, rejected: 0 },
      logs: { read: 60, carried: 51, rejected: 9 },
      quota_data: { read: 2, carried: 1, rejected: 0 },
      top_ups: { read: 2, carried: 1, rejected: 0 },
      tasks: { read: 2, carried: 1, rejected: 1 },
    });
    expect(report.dropped).toEqual({ models: 1, fork_things: 1 });
    const { users } = whole.t;
    const rows = await whole.orm
      .select({
        id: users.id,
        quota: users.quota,
        used: users.usedQuota,
        group: users.group,
        plan: users.planGroup,
      })
      .from(users)
      .orderBy(asc(users.id));
    expect(rows).toEqual([
      { id: 1, quota: 500, used: 400, group: "default", plan: "" },
      // Its plan has 700 left.
      { id: 2, quota: 1200, used: 400, group: "default", plan: "vip" },
      { id: 3, quota: 500, used: 400, group: "default", plan: "" },
      { id: 9, quota: 500, used: 400, group: "default", plan: "" },
    ]);
  });

  test("is verified against its source, and everything that is off is named with both figures", async () => {
    async function verified() {
      const source = await openSource(parseSource(OLD_SITE));
      try {
        return await verifyImport({ source, logs: source, db: whole, seal });
      } finally {
        await source.close();
      }
    }
    const clean = await verified();
    expect([clean.differences, clean.auditDifferences, clean.servedOtherwise]).toEqual([
      [],
      0,
      // The old index had one way of the four that its channel names.
      ["default/claude-3-opus", "vip/gpt-4o", "vip/claude-3-opus"],
    ]);
    expect(clean.compared).toBeGreaterThan(60);
    expect(clean.repriced.rows).toBeGreaterThan(30);
    const { orders, rollups, tokens, users } = whole.t;
    const off = [
      [users, "planWallet", 2, "users.quota"],
      [tokens, "usedQuota", 1, "tokens.used_quota"],
      [orders, "moneyMinor", 1, "orders.money"],
    ] as const;
    const bump = (by: number) =>
      Promise.all(
        off.map(([table, field, id]) =>
          whole.orm
            .update(table as typeof users)
            .set({ [field]: sql`${(table as typeof users)[field as "planWallet"]} + ${by}` })
            .where(sql`id = ${id}`),
        ),
      );
    const hours = (by: number) =>
      whole.orm
        .update(rollups)
        .set({ count: sql`${rollups.count} + ${by}` })
        .where(sql`logged_count > 0`);
    await bump(1);
    await hours(1);
    const { differences, auditDifferences } = await verified();
    await bump(-1);
    await hours(-1);
    const named = differences.map(({ what, id, source, found }) => [
      what,
      id,
      Number(found) - Number(source),
    ]);
    for (const [, , id, what] of off) expect(named).toContainEqual([what, String(id), 1]);
    expect(named.some(([what]) => what === "log calls of a day")).toBe(true);
    expect(auditDifferences).toBeGreaterThan(0);
    expect((await verified()).differenceCount).toBe(0);
    const { totps } = whole.t;
    const [factor] = await whole.orm.select().from(totps);
    const sealed = (secretSealed: string) => whole.orm.update(totps).set({ secretSealed });
    await sealed(createSealer("a secret of somebody else").seal("user", "JBSWY3DPEHPK3PXP"));
    expect((await verified()).differences).toEqual([
      { what: "sealed texts that do not open", id: "all", source: "0", found: "1" },
    ]);
    await sealed(factor?.secretSealed ?? "");
    const never = await fresh();
    const source = await openSource(parseSource(OLD_SITE));
    expect(verifyImport({ source, logs: source, db: never, seal })).rejects.toThrow("nothing was imported");
    await source.close();
  });

  test("keeps its report, without the names in it", async () => {
    const twice = join(directory, `twice-${kind}.db`);
    copyFileSync(OLD_SITE, twice);
    const file = new Database(twice);
    file.run("update users set username = 'ANN' where id = 3");
    file.close();
    const db = await fresh();
    const named = await run(db, { path: twice });
    const samples = (each: ImportReport | undefined) =>
      each?.findings.find(({ code }) => code === "name_key_taken")?.samples;
    expect([samples(named), samples((await readState(db))?.report)]).toEqual([["3 (ANN)"], ["3"]]);
  });

  test("closes the site, counts as set up, and what comes next has a number of its own", async () => {
    const { options, setups, users } = whole.t;
    const [closed] = await whole.orm
      .select()
      .from(options)
      .where(sql`${options.key} = 'site.maintenance_enabled'`);
    expect(closed?.value).toBe("true");
    expect(await whole.orm.select().from(setups)).toHaveLength(1);
    const [next] = await whole.orm
      .insert(users)
      .values({ username: "next", usernameKey: "next" })
      .returning({ id: users.id });
    expect(next?.id).toBe(10);
    await whole.orm.delete(users).where(sql`${users.id} = 10`);
    const secret = await whole.orm
      .select()
      .from(options)
      .where(sql`${options.key} = 'SMTPToken'`);
    expect(seal.open("option", secret[0]?.value ?? "")).toBe("letter-secret");
  });

  test("numbers of people, keys and channels that are gone for good are given to nobody", async () => {
    const path = join(directory, `gone-${kind}.db`);
    copyFileSync(OLD_SITE, path);
    const file = new Database(path);
    file.run("update logs set user_id = 70, token_id = 80, channel_id = 90 where id = 3");
    file.close();
    const db = await fresh();
    await run(db, { path });
    const { channels, tokens, users } = db.t;
    const [user] = await db.orm
      .insert(users)
      .values({ username: "next", usernameKey: "next" })
      .returning({ id: users.id });
    const [token] = await db.orm
      .insert(tokens)
      .values({ userId: 1, keyHash: "h", keySealed: "", keyHead: "", keyTail: "", name: "next" })
      .returning({ id: tokens.id });
    const [channel] = await db.orm
      .insert(channels)
      .values({ type: 1, name: "next", models: "", group: "default" })
      .returning({ id: channels.id });
    expect([user?.id, token?.id, channel?.id]).toEqual([71, 81, 91]);
  });

  test("a call without a time does not say when the log begins: no hour is counted twice", async () => {
    const path = join(directory, `timeless-${kind}.db`);
    copyFileSync(OLD_SITE, path);
    const file = new Database(path);
    file.run("update logs set created_at = null where id = 5");
    file.close();
    const [db, twin] = [await fresh(), await fresh()];
    await run(db, { path });
    // The same hours as in the sums that the old program kept for its charts.
    const other = new Database(path);
    other.run(
      "insert into quota_data (id, user_id, username, model_name, created_at, token_used, count, quota) " +
        "select 1000 + id, user_id, 'ann', model_name, created_at - created_at % 3600, 120, 1, quota from logs where id in (2, 3, 4)",
    );
    other.close();
    await run(twin, { path });
    const calls = async (each: WeirDatabase) => (await each.orm.select().from(each.t.rollups)).length;
    expect(await calls(twin)).toBe(await calls(db));
    const total = async (each: WeirDatabase) =>
      (await each.orm.select().from(each.t.rollups)).reduce((sum, { quota }) => sum + quota, 0);
    expect(await total(twin)).toBe(await total(db));
  });

  test("is refused a second time, and by whoever has accounts", async () => {
    expect(run(whole)).rejects.toThrow("imported already");
    const used = await fresh();
    await used.orm.insert(used.t.users).values({ username: "somebody", usernameKey: "somebody" });
    expect(run(used)).rejects.toThrow("nothing is merged");
    expect(await used.orm.select({ id: used.t.users.id }).from(used.t.users)).toHaveLength(1);
  });

  test("that is stopped after every step goes on, and ends like one that was not", async () => {
    const db = await fresh();
    let kills = 0;
    for (;;) {
      // One step further each time: what the runs before have written is only passed over.
      const outcome = await run(db, { killAfter: kills + 1 }).catch((error: unknown) => error);
      if (!(outcome instanceof Killed)) {
        expect(outcome).toMatchObject({
          tables: report.tables,
          findings: report.findings,
          openings: report.openings,
        });
        break;
      }
      kills++;
    }
    expect(kills).toBeGreaterThan(10);
    expect(await contents(db)).toEqual(expected);
    expect(await differencesIn(db)).toEqual([]);
    expect(await readState(db)).toMatchObject({ stage: "done" });
  }, 60_000);

  test("beside another run: one of them ends with a sentence, and no sum is counted twice", async () => {
    // Sums without rows, whose numbers would tell of a second time by themselves.
    const path = join(directory, `sums-${kind}.db`);
    copyFileSync(OLD_SITE, path);
    const file = new Database(path);
    file.run("delete from logs where type <> 2");
    file.close();
    const how = { path, settings: { logDays: 1 } };
    const [alone, shared] = [await fresh(), await fresh()];
    await run(alone, how);
    const outcomes = await Promise.allSettled([run(shared, how), run(shared, how)]);
    const refusals = outcomes.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
    expect(refusals).toEqual([expect.stringContaining("another run of an import") as string]);
    expect(await contents(shared)).toEqual(await contents(alone));
    expect(await differencesIn(shared)).toEqual([]);
  });

  test("in two parts is the same as in one; the second alone is refused", async () => {
    const db = await fresh();
    expect(run(db, { settings: { part: "rest" } })).rejects.toThrow("--logs-first");
    await run(db, { settings: { part: "logs" } });
    expect(await db.orm.select({ id: db.t.users.id }).from(db.t.users)).toEqual([]);
    await run(db, { settings: { part: "rest" } });
    expect(await contents(db)).toEqual(expected);
  });

  test("that has begun goes on with its own source alone, as it was", async () => {
    const db = await fresh();
    await run(db, { killAfter: 3 }).catch(() => undefined);
    const other = join(directory, `other-${kind}.db`);
    writeOldSite(other, 12);
    const changed = new Database(other);
    changed.run("update users set username = 'another' where id = 1");
    changed.close();
    expect(run(db, { path: other })).rejects.toThrow("another source");
    const later = join(directory, `later-${kind}.db`);
    copyFileSync(OLD_SITE, later);
    const spent = new Database(later);
    spent.run("update users set quota = quota - 1 where id = 2");
    spent.close();
    expect(run(db, { path: later })).rejects.toThrow("has changed since");
    await run(db);
    expect(await contents(db)).toEqual(expected);
  });

  test("of the last days alone keeps the sums of all", async () => {
    const db = await fresh();
    const { tables } = await run(db, { settings: { logDays: 39 } });
    expect(tables["logs"]?.carried).toBeLessThan(51);
    expect(await differencesIn(db)).toEqual([]);
    const sums = (rows: string[] | undefined) =>
      rows?.map((row) => row.replaceAll(/\["logged\w+",\d+\],?/g, ""));
    expect(sums((await contents(db))["rollups"])).toEqual(sums(expected["rollups"]));
  });
});

test("a dry run says what the import does, and writes nothing", async () => {
  const before = readFileSync(OLD_SITE);
  const place = await createTestDatabase("sqlite");
  const db = await connect({ dataDir: place.dataDir, databaseUrl: "" });
  try {
    const dry = await run(undefined);
    const real = await run(db);
    expect(dry).toMatchObject({
      isDry: true,
      tables: real.tables,
      findings: real.findings,
      openings: real.openings,
    });
    expect(dry.expectedSeconds).toBeGreaterThan(0);
    for (const language of ["zh", "en"] as const) {
      const lines = reportLines(dry, language);
      expect(lines.join("\n")).toContain("fork_things");
      // Every text is there, and has all its values.
      expect(lines.filter((line) => /\{\{|finding\.|report\.|level\./.test(line))).toEqual([]);
      expect(lines.join("\n")).not.toContain("letter-secret");
    }
  } finally {
    await db.close();
    await place.drop();
  }
  expect(readFileSync(OLD_SITE).equals(before)).toBe(true);
});
