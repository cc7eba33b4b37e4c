// weir backup and weir restore as people run them: under load, killed in the middle, cut, altered, with another key, from a
// newer release; PostgreSQL with its own tools.
// Refuses the product's insides for what counts: programs are started, the books are read from outside.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { bundleName, readManifest, writeManifest } from "../../src/core/backup/manifest.ts";
import type { Manifest } from "../../src/core/backup/manifest.ts";
import { holdDirectory } from "../../src/db/data-dir-lock.ts";
import { BackupRefused } from "../../src/core/backup/refusal.ts";
import { restoreBundle } from "../../src/core/backup/restore.ts";
import { callPlan, IS_LONG, signIn, startSite } from "../attack/site.ts";
import type { Person, Site } from "../attack/site.ts";
import { openBooks } from "../support/books.ts";
import { until } from "../relay/support.ts";
import { createPostgresDatabase, postgresServer } from "../support/postgres.ts";
import { program, startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const PASSPHRASE = "a passphrase of some length";
/** Key and session secret are the site's own, as they are where nobody set any. */
const OWN_FILES = { ENCRYPTION_KEY: "", SESSION_SECRET: "" };
const LANES = 6;

interface Told {
  code: number;
  text: string;
  json: { ok?: boolean; path?: string; refused?: { code: string }; manifest?: Manifest; removed?: number };
}

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "weir-backup-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let places = 0;
const newPlace = (): string => join(scratch, `place-${++places}`);

function start(args: readonly string[], settings: Record<string, string>) {
  const env = { ...Bun.env, ...OWN_FILES, LC_ALL: "C", ...settings };
  return Bun.spawn([...program(), ...args], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
}

/** The subcommand beside this process, which answers for the upstream meanwhile. */
async function run(args: readonly string[], settings: Record<string, string>): Promise<Told> {
  const child = start(args, settings);
  const [out, problems, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const isJson = args.includes("--json") && out.startsWith("{");
  return { code, text: out + problems, json: isJson ? (JSON.parse(out) as Told["json"]) : {} };
}

/** Calls without end on a few lanes; ids of the answered ones. */
function startLoad(url: string, key: string) {
  const answered: string[] = [];
  let isOver = false;
  const lane = async () => {
    while (!isOver) {
      const { status, requestId, isWhole } = await callPlan(url, key, { id: "load" }, { stream: true });
      if (status === 200 && isWhole) answered.push(requestId);
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  return {
    answered,
    async stop() {
      isOver = true;
      await lanes;
    },
  };
}

describe("the embedded database", () => {
  let site: Site;
  let person: Person;
  let key: string;
  let bundle: string;
  let backups: string;
  const settings = () => ({ DATA_DIR: site.server.dataDir, KEY_PASSPHRASE: PASSPHRASE });
  const ownKey = () => join(site.server.dataDir, "encryption.key");

  beforeAll(async () => {
    site = await startSite({ env: OWN_FILES });
    person = await site.person(100_000_000);
    key = await person.key();
    backups = newPlace();
  });
  afterAll(() => site.remove());

  test("under load: whatever was answered before it began is in it; restored on an empty place it goes on", async () => {
    const { server, until } = site;
    const load = startLoad(server.url, key);
    await until(() => load.answered.length >= 40);
    const before = [...load.answered];
    const made = await run(["backup", backups, "--with-key", "--json"], settings());
    await load.stop();
    expect([made.code, made.json.ok]).toEqual([0, true]);
    bundle = made.json.path ?? "";
    expect(readdirSync(bundle).sort()).toEqual(["manifest.json", "weir.sqlite"]);
    expect(statSync(join(bundle, "weir.sqlite")).mode & 0o077).toBe(0);
    const secret = readFileSync(ownKey(), "utf8").trim();
    for (const name of readdirSync(bundle))
      expect(readFileSync(join(bundle, name)).includes(secret)).toBe(false);

    const dataDir = newPlace();
    const restored = await run(["restore", bundle], { ...settings(), DATA_DIR: dataDir });
    expect([restored.code, restored.text]).toEqual([0, expect.stringContaining("Restored into")]);
    const books = openBooks({ dataDir });
    const logged = new Set((await books.log(2)).map(({ requestId }) => requestId));
    expect(before.filter((id) => !logged.has(id))).toEqual([]);
    const [secrets] = await books.ask("select count(*) as n from session_secrets");
    expect(secrets).toEqual({ n: 0 });
    const { used } = await books.balance(person.id);

    const again = await startServerProcess(OWN_FILES, { dataDir });
    try {
      const node = (dir: string) => readFileSync(join(dir, "node.id"), "utf8");
      expect(node(dataDir)).not.toBe(node(server.dataDir));
      // Sessions of before end, passwords and keys are as they were.
      const old = await fetch(`${again.url}/api/user/self`, {
        headers: { cookie: person.cookie, "new-api-user": String(person.id) },
      });
      expect([old.status, (await signIn(again.url, person.username)).status]).toEqual([401, 200]);
      expect((await callPlan(again.url, key, { id: "after", words: 5, input: 10 })).status).toBe(200);
      await again.stop();
      expect(again.audit()).toMatchObject({ code: 0, text: expect.stringContaining("No difference") });
      expect(again.audit().text).not.toContain("wait");
      expect((await books.balance(person.id)).used).toBeGreaterThan(used);
    } finally {
      await again.remove();
      await books.close();
    }
  }, 60_000);

  test("of a stopped or killed server: the same books, row by row, with what only its journal had", async () => {
    const { server } = site;
    const last = await callPlan(server.url, key, { id: "last" });
    await server.kill();
    const made = await run(["backup", backups, "--json"], settings());
    expect(made.code).toBe(0);
    const dataDir = newPlace();
    expect(
      (await run(["restore", made.json.path ?? "", "--key", ownKey()], { DATA_DIR: dataDir })).code,
    ).toBe(0);
    const contents = (dir: string) => {
      const file = new Database(join(dir, "weir.sqlite"), { readonly: true });
      const tables = [
        "users",
        "tokens",
        "channels",
        "logs",
        "credits",
        "rollups",
        "redemptions",
        "channel_keys",
      ];
      const rows = tables.map((table) => file.query(`select * from ${table} order by 1, 2, 3`).all());
      file.close();
      return rows;
    };
    const found = contents(dataDir);
    expect(found).toEqual(contents(server.dataDir));
    expect(JSON.stringify(found[3])).toContain(last.requestId);
    await server.restart();
  }, 60_000);

  test("with the journal of the old directory the calls after the backup are there, too, once each", async () => {
    const { server } = site;
    const made = await run(["backup", backups, "--json"], settings());
    const later = [
      await callPlan(server.url, key, { id: "later" }),
      await callPlan(server.url, key, { id: "last" }),
    ];
    const dataDir = newPlace();
    const restore = (from: string) =>
      run(["restore", made.json.path ?? "", "--key", ownKey(), "--journal", from, "--json"], {
        DATA_DIR: dataDir,
      });
    expect((await restore(server.dataDir)).json.refused?.code).toBe("journal_busy");
    expect((await restore(backups)).json.refused?.code).toBe("no_journal");
    expect(readdirSync(dataDir)).toEqual([]);
    await server.kill();
    expect((await restore(server.dataDir)).code).toBe(0);
    const again = await startServerProcess(OWN_FILES, { dataDir });
    await again.stop();
    await server.restart();
    await server.stop();
    const [here, there] = [openBooks({ dataDir }), openBooks({ dataDir: server.dataDir })];
    try {
      const calls = (await here.log(2)).map(({ requestId }) => requestId);
      for (const { requestId } of later) expect(calls.filter((id) => id === requestId)).toHaveLength(1);
      expect(await here.balances()).toEqual(await there.balances());
      expect(again.audit()).toMatchObject({ code: 0, text: expect.stringContaining("No difference") });
    } finally {
      await here.close();
      await there.close();
      await again.remove();
      await server.restart();
    }
  }, 60_000);

  test("killed in the middle it leaves .partial alone, which nobody takes for a backup, and which the next removes", async () => {
    const place = newPlace();
    const killed = async (): Promise<string[]> => {
      const child = start(["backup", place], settings());
      while (child.exitCode === null) {
        if (existsSync(place) && readdirSync(place).length > 0) break;
        await new Promise(setImmediate);
      }
      child.kill("SIGKILL");
      await child.exited;
      return readdirSync(place);
    };
    // One that was through before it was seen says nothing.
    let left = await killed();
    for (let tries = 0; tries < 20 && !left.some((name) => name.endsWith(".partial")); tries++) {
      rmSync(place, { recursive: true });
      left = await killed();
    }
    expect(left).toEqual([expect.stringMatching(/^weir-\d{8}T\d{6}Z\.partial$/)]);
    const partial = join(place, left[0] ?? "");
    const tried = await run(["restore", partial], { ...settings(), DATA_DIR: newPlace() });
    expect([tried.code, tried.text]).toEqual([1, expect.stringContaining("was not finished")]);
    expect((await run(["backup", place], settings())).code).toBe(0);
    expect(readdirSync(place)).toEqual([expect.stringMatching(/^weir-\d{8}T\d{6}Z$/)]);
  }, 60_000);

  /** The bundle with something done to it. */
  function changed(change: (dir: string) => void): string {
    const dir = newPlace();
    cpSync(bundle, dir, { recursive: true });
    change(dir);
    return dir;
  }
  function flip(path: string, at: number): void {
    const bytes = readFileSync(path);
    const place = Math.floor(bytes.length * at);
    bytes[place] = (bytes[place] ?? 0) ^ (1 << (place % 8));
    writeFileSync(path, bytes);
  }
  function rewritten(change: (manifest: Manifest) => void): string {
    return changed((dir) => {
      const manifest = readManifest(dir);
      change(manifest);
      rmSync(join(dir, "manifest.json"));
      writeManifest(dir, manifest);
    });
  }
  const ownSources = () => ({ file: ownKey(), fromEnv: "", passphrase: "" });
  async function refusalOf(dir: string, more: { file?: string; passphrase?: string; dataDir?: string } = {}) {
    const dataDir = more.dataDir ?? newPlace();
    const sources = { ...ownSources(), ...more };
    const told = await restoreBundle(dir, { dataDir, databaseUrl: "" }, sources).then(
      () => "restored",
      (error: unknown) => (error instanceof BackupRefused ? error.code : String(error)),
    );
    return [told, existsSync(dataDir) ? readdirSync(dataDir) : []];
  }

  test("cut, flipped anywhere, of another key, of a newer release: refused by name, and nothing is there", async () => {
    const database = (dir: string) => join(dir, "weir.sqlite");
    const size = statSync(database(bundle)).size;
    const shortened = changed((dir) => truncateSync(database(dir), size - 4096));
    expect(await refusalOf(shortened)).toEqual(["cut", []]);
    expect(await refusalOf(changed((dir) => rmSync(database(dir))))).toEqual(["file_missing", []]);
    for (const at of IS_LONG ? Array.from({ length: 60 }, (_, n) => n / 60) : [0, 0.31, 0.99])
      expect(await refusalOf(changed((dir) => flip(database(dir), at)))).toEqual(["altered", []]);
    for (const at of [0.02, 0.4, 0.7, 0.999])
      expect(await refusalOf(changed((dir) => flip(join(dir, "manifest.json"), at)))).toEqual([
        "manifest_damaged",
        [],
      ]);
    const other = join(scratch, "other.key");
    writeFileSync(other, "another key of sixteen letters\n");
    expect(await refusalOf(bundle, { file: other })).toEqual(["other_key", []]);
    // Whoever makes the manifest fit the key still does not get a site that cannot read its secrets.
    const pretended = rewritten(({ key: told }) => {
      told.fingerprint = new Bun.CryptoHasher("sha256").update("x").digest("hex").slice(0, 16);
    });
    expect(await refusalOf(pretended)).toEqual(["other_key", []]);
    expect(await refusalOf(bundle, { file: "", passphrase: "" })).toEqual(["no_passphrase", []]);
    expect(await refusalOf(bundle, { file: "", passphrase: "not the passphrase" })).toEqual([
      "passphrase",
      [],
    ]);
    const keyless = rewritten(({ key: told }) => delete told.wrapped);
    expect(await refusalOf(keyless, { file: "" })).toEqual(["no_key", []]);
    expect(await refusalOf(rewritten(({ schema }) => schema.version++))).toEqual(["newer_schema", []]);
    expect(await refusalOf(rewritten((manifest) => manifest.format++))).toEqual(["newer_format", []]);
    expect(await refusalOf(rewritten(({ schema }) => (schema.hash = "0")))).toEqual(["other_build", []]);
    const used = newPlace();
    mkdirSync(used);
    writeFileSync(join(used, "weir.sqlite"), "");
    expect(await refusalOf(bundle, { dataDir: used })).toEqual(["target_used", ["weir.sqlite"]]);
    // A file that the manifest fits and SQLite does not.
    const damaged = changed((dir) => {
      const bytes = readFileSync(database(dir));
      bytes.fill(0xff, 4096 * 3, 4096 * 5);
      writeFileSync(database(dir), bytes);
      const manifest = readManifest(dir);
      manifest.database.sha256 = Bun.SHA256.hash(bytes, "hex");
      rmSync(join(dir, "manifest.json"));
      writeManifest(dir, manifest);
    });
    expect((await refusalOf(damaged))[0]).toBe("unreadable");

    // What others have put there since is theirs.
    const shared = newPlace();
    const theirs = join(shared, "encryption.key");
    const journalDir = newPlace();
    mkdirSync(journalDir);
    const disturbed = restoreBundle(bundle, { dataDir: shared, databaseUrl: "", journalDir }, ownSources());
    const told = disturbed.catch((error: unknown) => (error as BackupRefused).code);
    await until(async () => existsSync(join(shared, "weir.sqlite.restoring")) || undefined);
    writeFileSync(theirs, "another site's");
    expect(await told).toBe("no_journal");
    expect([readdirSync(shared), readFileSync(theirs, "utf8")]).toEqual([
      ["encryption.key"],
      "another site's",
    ]);

    // As people see it, in the language of their terminal.
    const at = { ...settings(), DATA_DIR: newPlace() };
    const said = await run(["restore", shortened], at);
    expect([said.code, said.text]).toEqual([
      1,
      expect.stringContaining(`weir.sqlite is cut: it has ${size - 4096} of ${size} bytes.`),
    ]);
    expect((await run(["restore", shortened], { ...at, LC_ALL: "zh_CN.UTF-8" })).text).toContain(
      `weir.sqlite 被截断：只有 ${size - 4096} 字节`,
    );
    expect((await run(["restore", shortened, "--json"], at)).json).toMatchObject({
      ok: false,
      refused: { code: "cut", params: { expected: size } },
    });
  }, 60_000);

  test("two into one directory: the second is refused and takes nothing away; what a killed one left is made anew", async () => {
    const dataDir = newPlace();
    mkdirSync(dataDir);
    for (const end of ["", "-journal", "-wal", "-shm"])
      writeFileSync(join(dataDir, `weir.sqlite.restoring${end}`), "half");
    const held = holdDirectory(dataDir);
    const before = readdirSync(dataDir).sort();
    expect(await refusalOf(bundle, { dataDir })).toEqual(["target_busy", expect.arrayContaining(before)]);
    held?.release();
    const both = await Promise.all([refusalOf(bundle, { dataDir }), refusalOf(bundle, { dataDir })]);
    expect(both.map(([told]) => told).sort()).toEqual(["restored", "target_busy"]);
    expect(readdirSync(dataDir).sort()).toEqual(["encryption.key", "weir.sqlite"]);
  });

  test("--check reads all of it and changes nothing; what is wrong in the books is told", async () => {
    const before = readFileSync(join(bundle, "weir.sqlite"));
    const checked = await run(["restore", bundle, "--check"], { DATA_DIR: site.server.dataDir });
    expect([checked.code, checked.text]).toEqual([0, expect.stringContaining("It is whole")]);
    expect(readdirSync(bundle).sort()).toEqual(["manifest.json", "weir.sqlite"]);
    expect(readFileSync(join(bundle, "weir.sqlite")).equals(before)).toBe(true);
    const wrong = changed((dir) => {
      const file = new Database(join(dir, "weir.sqlite"), { readwrite: true });
      file.run("update users set quota = quota + 1 where id = 2");
      file.run("update tokens set key_sealed = 's1.AAAA' where id = 1");
      file.close();
      const manifest = readManifest(dir);
      manifest.database.sha256 = Bun.SHA256.hash(readFileSync(join(dir, "weir.sqlite")), "hex");
      rmSync(join(dir, "manifest.json"));
      writeManifest(dir, manifest);
    });
    const found = await run(["restore", wrong, "--check", "--json"], { DATA_DIR: site.server.dataDir });
    expect([found.code, found.json]).toMatchObject([
      1,
      { ok: false, findings: [{ code: "found_secrets", params: { count: 1 } }, { code: "found_audit" }] },
    ]);
  }, 60_000);

  test("--prune makes room by the rule of days, and a second backup beside the first is refused", async () => {
    const place = newPlace();
    const first = await run(["backup", place, "--json"], settings());
    const { createdAt } = readManifest(first.json.path ?? "");
    // The same day's, older: the newest of a day stays.
    const older = join(place, bundleName(createdAt - 1));
    cpSync(first.json.path ?? "", older, { recursive: true });
    const manifest = readManifest(older);
    manifest.createdAt = createdAt - 1;
    rmSync(join(older, "manifest.json"));
    writeManifest(older, manifest);
    const held = holdDirectory(place);
    const refused = await run(["backup", place], settings());
    expect([refused.code, refused.text]).toEqual([
      1,
      expect.stringContaining("another backup is being written"),
    ]);
    held?.release();
    const second = await run(["backup", place, "--prune", "--json"], settings());
    expect([second.code, second.json.removed, existsSync(older)]).toEqual([0, expect.any(Number), false]);
    expect(existsSync(second.json.path ?? "")).toBe(true);
  }, 60_000);

  test("called wrongly, or where it cannot go, it says so", async () => {
    const place = newPlace();
    const { server } = site;
    const nowhere = { DATA_DIR: newPlace() };
    const cases: readonly (readonly [string[], Record<string, string>, number, string])[] = [
      [["backup"], settings(), 2, "set BACKUP_DIR"],
      [["backup", place, "--everything"], settings(), 2, "usage: weir backup"],
      [["restore"], settings(), 2, "usage: weir restore"],
      [["backup", place], nowhere, 1, "there is no site"],
      [["backup", place, "--with-key"], { DATA_DIR: server.dataDir }, 1, "set KEY_PASSPHRASE"],
      [
        ["backup", place, "--with-key"],
        { ...settings(), KEY_PASSPHRASE: "short" },
        1,
        "at least 12 characters",
      ],
      [
        ["backup", place],
        { ...settings(), ENCRYPTION_KEY: "another key of sixteen" },
        1,
        "has the fingerprint",
      ],
      [["backup", join(bundle, "manifest.json", "below")], settings(), 1, "cannot be written to"],
      [["restore", place], { DATA_DIR: newPlace() }, 1, "is no backup of weir"],
    ];
    for (const [args, env, code, text] of cases) {
      const told = await run(args, env);
      expect([args, told.code, told.text]).toEqual([args, code, expect.stringContaining(text)]);
    }
    expect(existsSync(place) ? readdirSync(place) : []).toEqual([]);
  }, 60_000);
});

describe("PostgreSQL by its own tools", () => {
  let site: Site;
  let person: Person;
  let key: string;
  let tools: Record<string, string>;
  const nodes: ServerProcess[] = [];
  const settings = () => ({ DATA_DIR: site.server.dataDir, DATABASE_URL: site.databaseUrl ?? "", ...tools });

  beforeAll(async () => {
    site = await startSite({ kind: "postgres", env: OWN_FILES });
    person = await site.person(100_000_000);
    key = await person.key();
    tools = { PATH: `${(await postgresServer()).binDir}:${Bun.env["PATH"] ?? ""}` };
  });
  afterAll(async () => {
    for (const node of nodes) await node.remove();
    await site.remove();
  });
  const calls = async (count: number): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const { requestId } = await callPlan(site.server.url, key, { id: "call" });
        await site.row(requestId);
        return requestId;
      }),
    );

  test("the printed lines bring back an older dump, and kept segments of the journal fill the hole behind it", async () => {
    const before = await calls(5);
    const made = await run(["backup", newPlace()], settings());
    expect(made.code).toBe(0);
    const restoreLine = /^ {2}(pg_restore .*)$/m.exec(made.text)?.[1] ?? "";
    const after = await calls(7);
    await site.server.stop();
    const before_ = await site.books.balance(person.id);
    await site.books.ask("drop schema public cascade");
    await site.books.ask("create schema public");
    const typed = Bun.spawnSync(["sh", "-c", restoreLine], { env: { ...Bun.env, ...settings() } });
    expect([typed.exitCode, typed.stderr.toString()]).toEqual([0, ""]);
    expect((await site.books.log(2)).length).toBe(5);
    // What signs sessions was in no dump: the next start makes another.
    const signing = () => site.books.ask("select value_sealed from session_secrets");
    expect(await signing()).toEqual([]);
    await site.server.restart();
    expect(await signing()).toHaveLength(1);
    for (const id of [...before, ...after]) await site.row(id);
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0, text: expect.stringContaining("No difference") });
    expect(await site.books.balance(person.id)).toEqual(before_);
    await site.server.restart();
  }, 120_000);

  test("weir restore into an empty database goes on with the same books; a used one and a cut dump are refused", async () => {
    // Another machine's journal had four calls more at that moment.
    await site.books.ask(
      "insert into nodes (node_id, history, mark, entered, journaled) values ('0123456789abcdef', 'h', 5, 5, 9)",
    );
    const made = await run(["backup", newPlace(), "--json"], settings());
    await site.books.ask("delete from nodes where node_id = '0123456789abcdef'");
    const bundle = made.json.path ?? "";
    expect([made.code, readdirSync(bundle).sort()]).toEqual([0, ["manifest.json", "weir.dump"]]);
    const keyFile = join(site.server.dataDir, "encryption.key");
    const args = ["restore", bundle, "--key", keyFile];
    const used = await run(args, { ...settings(), DATA_DIR: newPlace() });
    expect([used.code, used.text]).toEqual([1, expect.stringContaining("is not empty")]);

    const database = await createPostgresDatabase();
    try {
      const into = { ...tools, DATABASE_URL: database.url, DATA_DIR: newPlace() };
      const cut = newPlace();
      cpSync(bundle, cut, { recursive: true });
      truncateSync(join(cut, "weir.dump"), 5000);
      const refused = await run(["restore", cut, "--key", keyFile], { ...into, DATA_DIR: newPlace() });
      expect([refused.code, refused.text]).toEqual([1, expect.stringContaining("weir.dump is cut")]);
      expect((await run([...args, "--check"], into)).code).toBe(0);
      const restored = await run(args, into);
      expect([restored.code, restored.text]).toEqual([
        0,
        expect.stringContaining("Restored into the database"),
      ]);

      const books = openBooks({ dataDir: into.DATA_DIR, databaseUrl: database.url });
      expect(await books.balances()).toEqual(await site.books.balances());
      expect(await books.ask("select node_id from nodes where journaled <> mark or lease_until > 0")).toEqual(
        [],
      );
      const node = await startServerProcess(
        { ...OWN_FILES, DATABASE_URL: database.url },
        { dataDir: into.DATA_DIR },
      );
      nodes.push(node);
      expect((await callPlan(node.url, key, { id: "after" })).status).toBe(200);
      await node.stop();
      expect(node.audit()).toMatchObject({ code: 0 });
      expect((await books.log(2)).length).toBe((await site.books.log(2)).length + 1);
      await books.close();
    } finally {
      for (const node of nodes.splice(0)) await node.remove();
      await database.drop();
    }
  }, 120_000);

  test("without pg_dump the manifest is saved and the line printed, and nothing counts as a backup", async () => {
    const state = async () => {
      const sql = postgres(site.databaseUrl ?? "", { max: 1, onnotice: () => {} });
      const rows = await sql`select key, value from marks where key like 'backup:%' order by key`;
      await sql.end();
      return [...rows];
    };
    const before = await state();
    const made = await run(["backup", newPlace()], { ...settings(), PATH: scratch });
    expect([made.code, made.text]).toEqual([0, expect.stringContaining(`pg_dump -Fc --no-owner`)]);
    expect(await state()).toEqual(before);
    const bundle = /Manifest in (\S+):/.exec(made.text)?.[1] ?? "";
    expect(readManifest(bundle)).toMatchObject({ database: { kind: "postgres", file: "" } });
  }, 60_000);

  test("no copy makes room for half a one: by itself it is refused, and one completed by hand stays", async () => {
    const place = newPlace();
    const whole = await run(["backup", place, "--json"], settings());
    const without = { ...settings(), PATH: scratch };
    const byHand = await run(["backup", place], without);
    const half = /Manifest in (\S+):/.exec(byHand.text)?.[1] ?? "";
    const refused = await run(["backup", place, "--prune", "--json"], without);
    expect([refused.code, refused.json]).toMatchObject([1, { refused: { code: "no_tool" } }]);
    expect([existsSync(whole.json.path ?? ""), existsSync(half)]).toEqual([true, true]);
    const again = await run(["backup", place, "--prune", "--json"], settings());
    // The newest whole one of the day stays, and what a person completes is nobody's.
    expect([again.json.removed, existsSync(whole.json.path ?? ""), existsSync(half)]).toEqual([
      1,
      false,
      true,
    ]);
  }, 120_000);
});
