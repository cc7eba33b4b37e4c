// weir move as people run it: a site that has served goes from its file to PostgreSQL and back, killed on its way, and every time
// the same books serve on. weir export --everything and weir import do the same by way of a file.
// Refuses the product's insides for what counts: the program is started, the answers come over the wire.
import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callPlan, startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { program, startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

/** Key and secret are the site's own, as they are where nobody set any. */
const OWN_FILES = { ENCRYPTION_KEY: "", SESSION_SECRET: "" };
/** How much later each kill comes; the long run is finer. */
const KILL_STEP_MS = Bun.env["WEIR_LONG"] === "1" ? 15 : 150;

let site: Site | undefined;
let database: TestDatabase | undefined;
const others: ServerProcess[] = [];
const directories: string[] = [];

afterEach(async () => {
  for (const other of others.splice(0)) await other.stop();
  await site?.remove();
  await database?.drop();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
  site = database = undefined;
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "weir-move-"));
  directories.push(directory);
  return directory;
}

interface Place {
  dataDir: string;
  databaseUrl?: string;
}

const envOf = ({ dataDir, databaseUrl = "" }: Place) => ({
  ...Bun.env,
  ...OWN_FILES,
  DATA_DIR: dataDir,
  DATABASE_URL: databaseUrl,
});

function run(
  at: Place,
  args: string[],
  more: Record<string, string> = {},
): { code: number; out: string; err: string } {
  const ended = Bun.spawnSync([...program(), ...args], { cwd: at.dataDir, env: { ...envOf(at), ...more } });
  return { code: ended.exitCode, out: ended.stdout.toString(), err: ended.stderr.toString() };
}

/** The exit code; null where it was killed first. */
async function moveFor(at: Place, to: string, killMs: number): Promise<number | null> {
  const child = Bun.spawn([...program(), "move", to], {
    cwd: at.dataDir,
    env: envOf(at),
    stdout: "ignore",
    stderr: "ignore",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), killMs);
  await child.exited;
  clearTimeout(timer);
  return child.exitCode;
}

async function serve({ dataDir, databaseUrl = "" }: Place): Promise<ServerProcess> {
  const server = await startServerProcess({ ...OWN_FILES, DATABASE_URL: databaseUrl }, { dataDir });
  others.push(server);
  return server;
}

/** A call with the key is answered and charged there, and the books are clean afterwards. */
async function expectServes(at: Place, key: string): Promise<void> {
  const server = await serve(at);
  expect((await callPlan(server.url, key, { id: "after" })).status).toBe(200);
  // From another directory too: a shared database knows who runs on it.
  if (at.databaseUrl) {
    const elsewhere = { dataDir: newDirectory(), databaseUrl: at.databaseUrl };
    expect(run(elsewhere, ["move", newDirectory()]).err).toContain("a server runs on the source");
  }
  await server.stop();
  expect(run(at, ["audit"])).toMatchObject({ code: 0, out: expect.stringContaining("No difference") });
}

const digestOf = (path: string): string => Bun.SHA256.hash(readFileSync(path), "hex");
const rowsOf = (text: string): string => text.slice(text.indexOf("\n"));

test("from the file to PostgreSQL and back: killed on the way it goes on; the same bytes, the same keys, books that serve on", async () => {
  site = await startSite({ env: OWN_FILES });
  database = await createTestDatabase("postgres");
  const { server } = site;
  const person = await site.person(1_000_000);
  const key = await person.key();
  for (let calls = 0; calls < 5; calls++) await callPlan(server.url, key, { id: `before ${calls}` });
  const here: Place = { dataDir: server.dataDir };
  const there: Place = { dataDir: server.dataDir, databaseUrl: database.databaseUrl ?? "" };

  // Beside a server an export is made; a move is not.
  expect(run(here, ["export", "--everything"])).toMatchObject({ code: 0 });
  expect(run(here, ["move", there.databaseUrl ?? ""]).code).toBe(1);
  await server.stop();
  const file = join(server.dataDir, "weir.sqlite");
  const before = digestOf(file);
  let kills = 0;
  for (let killMs = 100; ; killMs += KILL_STEP_MS, kills++) {
    const code = await moveFor(here, there.databaseUrl ?? "", killMs);
    if (code === 0) break;
    if (code === 1) {
      // Killed behind its last step: all is there, which is looked at below.
      expect(run(here, ["move", there.databaseUrl ?? ""]).err).toContain("the target has been used");
      break;
    }
    expect(code).toBeNull();
    expect(kills).toBeLessThan(400);
  }
  expect(kills).toBeGreaterThan(0);
  expect(digestOf(file)).toBe(before);
  const [own, moved] = [here, there].map((at) => run(at, ["export", "--everything"]).out);
  expect(moved === own).toBe(true);
  const again = run(here, ["move", there.databaseUrl ?? ""]);
  expect([again.code, again.err]).toEqual([1, expect.stringContaining("the target has been used")]);

  await expectServes(there, key);

  const back: Place = { dataDir: newDirectory() };
  const returned = run(there, ["move", back.dataDir, "--json"]);
  expect(returned.code).toBe(0);
  expect(run(there, ["move", back.dataDir]).err).toContain("is there already");
  expect(statSync(join(back.dataDir, "encryption.key")).mode & 0o777).toBe(0o600);
  expect(run(back, ["export", "--everything"]).out === run(there, ["export", "--everything"]).out).toBe(true);
  expect(existsSync(join(back.dataDir, "weir.sqlite.moving"))).toBe(false);
  await expectServes(back, key);
}, 240_000);

test("as a file, with the key under a passphrase: on another machine it serves on", async () => {
  site = await startSite({ env: OWN_FILES });
  const { server } = site;
  const key = await (await site.person(1_000_000)).key();
  await callPlan(server.url, key, { id: "before" });
  const here: Place = { dataDir: server.dataDir };
  const passphrase = { KEY_PASSPHRASE: "correct horse battery" };
  const bare = run(here, ["export", "--everything", "--with-key"]);
  expect([bare.code, bare.out, bare.err]).toEqual([1, "", expect.stringContaining("passphrase")]);
  const exported = run(here, ["export", "--everything", "--with-key"], passphrase);
  expect(exported.code).toBe(0);
  expect(exported.out).not.toContain(readFileSync(join(server.dataDir, "encryption.key"), "utf8").trim());
  const path = join(newDirectory(), "site.jsonl");
  await Bun.write(path, exported.out);

  const there: Place = { dataDir: newDirectory() };
  const wrong = run(there, ["import", path], { KEY_PASSPHRASE: "another passphrase" });
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("passphrase does not open")]);
  const entered = run(there, ["import", path], passphrase);
  expect([entered.code, entered.out]).toEqual([0, expect.stringContaining("Audit: no difference")]);
  expect(rowsOf(run(there, ["export", "--everything"]).out) === rowsOf(exported.out)).toBe(true);
  await expectServes(there, key);

  // Sealed with one key, and here is another one.
  const elsewhere: Place = { dataDir: newDirectory() };
  const refused = run(elsewhere, ["import", path], { ENCRYPTION_KEY: "a key of another site" });
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("is sealed with the key")]);
  await Bun.write(path, exported.out.slice(0, -30));
  expect(run(elsewhere, ["import", "--json", path], passphrase)).toMatchObject({
    code: 1,
    err: expect.stringContaining("cut off"),
  });
  expect(existsSync(join(elsewhere.dataDir, "weir.sqlite"))).toBe(false);
}, 120_000);
