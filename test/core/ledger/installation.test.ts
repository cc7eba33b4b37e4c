// A data directory that had a product never starts as new by itself, and a first start always does.
// Refuses to call the checks by hand: the product is started as people start it.
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { frameOf } from "../../../src/core/ledger/journal/frames.ts";
import { readEnv } from "../../../src/env.ts";
import { createPostgresDatabase } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";

const SENTENCE = /weir cannot start: .*belongs to an installation.*WEIR_NEW=1/;

test("a lost database file stops the next start, and every command, in one sentence; WEIR_NEW=1 begins anew", async () => {
  const server = await startServerProcess();
  await server.stop();
  const file = join(server.dataDir, "weir.sqlite");
  renameSync(file, `${file}.away`);
  for (const args of [[], ["audit"], ["migrate"], ["journal", "check"]]) {
    const { code, text } = server.run(args, { PORT: "0" });
    expect([args, code, text]).toEqual([args, 1, expect.stringMatching(SENTENCE) as string]);
    expect(existsSync(file)).toBe(false);
  }
  // An empty file, as `touch` and a failed restore leave it, is no database either.
  writeFileSync(file, "");
  expect(server.run([], { PORT: "0" }).text).toMatch(SENTENCE);
  // A site that is on its way in is named, and what goes on with it.
  writeFileSync(`${file}.importing`, "");
  expect(server.run([], { PORT: "0" }).text).toMatch(
    /weir\.sqlite\.importing .*run weir import, with the same source, again/,
  );
  rmSync(`${file}.importing`);
  renameSync(`${file}.away`, file);
  await server.restart();
  await server.stop();
  // Anew, when it is said; afterwards without saying it.
  for (const name of ["weir.sqlite", "weir.sqlite-wal", "weir.sqlite-shm"])
    rmSync(join(server.dataDir, name), { force: true });
  const anew = await startServerProcess({ DATA_DIR: server.dataDir, WEIR_NEW: "1" });
  await anew.stop();
  await server.restart();
  expect((await fetch(`${server.url}/api/status`)).status).toBe(200);
  await server.remove();
  await anew.remove();
});

test("an empty PostgreSQL beside a SQLite file, and another database than before, are refused", async () => {
  const [first, second] = [await createPostgresDatabase(), await createPostgresDatabase()];
  const server = await startServerProcess();
  await server.stop();
  const url = { DATABASE_URL: first.url, PORT: "0" };
  for (let start = 0; start < 2; start++) expect(server.run([], url).text).toMatch(SENTENCE);
  rmSync(join(server.dataDir, "node.id"));
  rmSync(join(server.dataDir, "database.id"));
  rmSync(join(server.dataDir, "encryption.key"));
  rmSync(join(server.dataDir, "journal-1.log"));
  expect(server.run([], url).text).toMatch(SENTENCE);
  await server.remove();

  const node = await startServerProcess({ DATABASE_URL: first.url });
  await node.stop();
  const other = await startServerProcess({ DATABASE_URL: second.url });
  await other.stop();
  expect(node.run([], { DATABASE_URL: second.url, PORT: "0" }).text).toMatch(SENTENCE);
  // A further node with a directory of its own is none of that.
  const further = await startServerProcess({
    DATABASE_URL: first.url,
    ENCRYPTION_KEY: readFileSync(join(node.dataDir, "encryption.key"), "utf8").trim(),
  });
  for (const each of [further, other, node]) await each.remove();
  for (const each of [first, second]) await each.drop();
}, 30_000);

test("an empty or foreign node id is refused with its path; a directory where only commands ran starts", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "weir-new-"));
  const helper = await startServerProcess();
  await helper.stop();
  for (const command of ["migrate", "audit"])
    expect(helper.run([command], { DATA_DIR: dataDir }).code).toBe(0);
  const server = await startServerProcess({ DATA_DIR: dataDir });
  await server.stop();
  const path = join(dataDir, "node.id");
  const id = readFileSync(path, "utf8");
  for (const wrong of ["", "\n", "another product's id"]) {
    writeFileSync(path, wrong);
    const { code, text } = helper.run([], { DATA_DIR: dataDir, PORT: "0" });
    expect([code, text]).toEqual([
      1,
      expect.stringMatching(/weir cannot start: .*node\.id holds .*no node id/) as string,
    ]);
  }
  writeFileSync(path, id);
  await server.restart();
  await server.remove();
  await helper.remove();
  rmSync(dataDir, { recursive: true, force: true });
});

test("a setting that keeps files or begins anew is checked like the others", () => {
  expect(readEnv({})).toMatchObject({ journalKeepMinutes: 15, startsNew: false });
  expect(readEnv({ JOURNAL_KEEP_MINUTES: "0", WEIR_NEW: "1" })).toMatchObject({
    journalKeepMinutes: 0,
    startsNew: true,
  });
  for (const wrong of ["-1", "1.5", "soon", "100000"])
    expect(() => readEnv({ JOURNAL_KEEP_MINUTES: wrong })).toThrow(/JOURNAL_KEEP_MINUTES/);
  expect(() => readEnv({ WEIR_NEW: "yes" })).toThrow(/WEIR_NEW/);
});

test("a dump from before the node was known is filled from the journal; where that begins later it is refused by name", async () => {
  const database = await createPostgresDatabase();
  const node = await startServerProcess({ DATABASE_URL: database.url });
  await node.stop();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  // The journal goes on at a position that the older database has never heard of.
  const [row] = await sql`select node_id, history from nodes`;
  const frame = frameOf(String(row?.["history"]), 3, [{}]);
  writeFileSync(join(node.dataDir, "journal-1.log"), frame);
  await sql`delete from nodes`;
  const refused = node.run([], { PORT: "0" });
  expect([refused.code, refused.text]).toEqual([
    1,
    expect.stringMatching(/weir cannot start: positions 1 to 2 of the journal are missing/) as string,
  ]);
  writeFileSync(join(node.dataDir, "journal-2.log"), frameOf(String(row?.["history"]), 1, [{}, {}]));
  await sql`delete from nodes`;
  await node.restart();
  await node.stop();
  expect(await sql`select mark, entered from nodes`).toMatchObject([{ mark: "3", entered: "3" }]);
  await sql.end();
  await node.remove();
  await database.drop();
}, 30_000);
