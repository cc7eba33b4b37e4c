// weir import as people call it: what it refuses with which exit code, and where the site lies when it is done.
// Refuses to start a process for it: the command is a function of its arguments and its directory.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { importCommand } from "../../src/cli/import-command.ts";
import { audit } from "../../src/core/ledger/audit.ts";
import { connect } from "../../src/db/connect.ts";
import type { ImportReport } from "../../src/import/report.ts";
import { MIGRATED } from "../core/ledger/support.ts";
import { writeOldSite } from "../import/old-site.ts";
import { createTestDatabase } from "../support/postgres.ts";

const directory = mkdtempSync(join(tmpdir(), "weir-import-cli-"));
const source = join(directory, "old.db");

beforeAll(() => writeOldSite(source));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const weir = (name: string, ...args: string[]) => weirInto("", name, ...args);

async function weirInto(databaseUrl: string, name: string, ...args: string[]) {
  const said: string[] = [];
  const told: string[] = [];
  const code = await importCommand({
    args,
    dataDir: join(directory, name),
    databaseUrl,
    encryptionKey: "",
    startsNew: false,
    say: (text) => said.push(text),
    tell: (text) => told.push(text),
  });
  return { code, said: said.join("\n"), told: told.join("\n") };
}

const fileIn = (name: string, file: string): boolean => existsSync(join(directory, name, file));

test("wrong arguments end with 2 and the usage, a source that is none with 1", async () => {
  for (const args of [
    [],
    ["a", "b"],
    [source, "--log-days", "0"],
    [source, "--logs-first", "--finish"],
    [source, "--no-such"],
  ]) {
    const { code, told } = await weir("usage", ...args);
    expect([code, told.includes("usage: weir import SOURCE")]).toEqual([2, true]);
  }
  expect(await weir("usage", join(directory, "nowhere.db"))).toMatchObject({ code: 1, said: "" });
  const text = join(directory, "notes.txt");
  writeFileSync(text, "no database at all, but long enough to be read as one");
  expect((await weir("usage", text)).told).toContain("cannot be read as a SQLite database");
  expect(fileIn("usage", "weir.sqlite")).toBe(false);
});

test("a dry run makes no directory and says what would happen", async () => {
  const { code, said } = await weir("dry", source, "--dry-run", "--json");
  const report = JSON.parse(said) as ImportReport;
  expect([code, report.isDry, report.tables["users"]?.read]).toEqual([0, true, 4]);
  expect(existsSync(join(directory, "dry"))).toBe(false);
});

test("the site has its name only when it is whole; a second import is refused", async () => {
  expect((await weir("site", source, "--logs-first")).code).toBe(0);
  expect([fileIn("site", "weir.sqlite"), fileIn("site", "weir.sqlite.importing")]).toEqual([false, true]);
  const options = join(directory, "options.json");
  writeFileSync(options, JSON.stringify({ data: [{ key: "CompletionRatio", value: '{"own-model":3}' }] }));
  const done = await weir("site", source, "--finish", "--options", options);
  expect([done.code, done.told.includes("of")]).toEqual([0, true]);
  expect(done.said).toContain("new-api-v1 on sqlite");
  expect([fileIn("site", "weir.sqlite"), fileIn("site", "weir.sqlite.importing")]).toEqual([true, false]);
  // Killed before the file had its name: the next run gives it.
  renameSync(join(directory, "site", "weir.sqlite"), join(directory, "site", "weir.sqlite.importing"));
  const withoutTime = ({ said }: { said: string }): string => said.replace(/[\d.]+ seconds$/, "");
  expect(withoutTime(await weir("site", source))).toBe(withoutTime(done));
  expect([fileIn("site", "weir.sqlite"), fileIn("site", "weir.sqlite.importing")]).toEqual([true, false]);
  const again = await weir("site", source);
  expect([again.code, again.told.includes("empty installation")]).toEqual([1, true]);
  expect((await weir("site", source, "--verify")).code).toBe(0);
  expect(await weir("nowhere", source, "--verify")).toMatchObject({ code: 1, said: "" });
  const db = await connect({ dataDir: join(directory, "site"), databaseUrl: "" });
  try {
    expect((await audit(db)).differences).toEqual([]);
    const [row] = await db.orm
      .select()
      .from(db.t.options)
      .then((rows) => rows.filter(({ key }) => key === "CompletionRatio"));
    expect(row?.value).toContain("own-model");
  } finally {
    await db.close();
  }
});

test("a PostgreSQL that a server uses is refused, and is filled once that one is gone", async () => {
  const place = await createTestDatabase("postgres", MIGRATED);
  const databaseUrl = place.databaseUrl ?? "";
  const db = await connect({ dataDir: place.dataDir, databaseUrl });
  const { nodes, users } = db.t;
  try {
    const leaseUntil = sql`floor(extract(epoch from now())) + 30`;
    await db.orm.insert(nodes).values({ nodeId: "0123456789abcdef", history: "1", leaseUntil });
    const refused = await weirInto(databaseUrl, "served", source);
    expect([refused.code, refused.told]).toEqual([
      1,
      expect.stringContaining("a server uses the target") as string,
    ]);
    expect(await db.orm.select().from(users)).toEqual([]);
    await db.orm.update(nodes).set({ leaseUntil: 0 });
    expect((await weirInto(databaseUrl, "served", source)).code).toBe(0);
    expect(await db.orm.select({ id: users.id }).from(users)).toHaveLength(4);
  } finally {
    await db.close();
    await place.drop();
  }
});
