// weir doctor and weir health as people run them: a sound site, one with everything wrong, one whose database is away.
// Refuses to let a secret through, whatever is wrong with it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";
import { MIGRATED } from "../core/ledger/support.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { freePort } from "../support/ports.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { program } from "../support/server.ts";

const SECRETS = {
  ENCRYPTION_KEY: "the-encryption-key-of-this-test",
  SESSION_SECRET: "the-session-secret-of-this-test",
  KEY_PASSPHRASE: "the-passphrase-of-this-test",
  METRICS_TOKEN: "the-metrics-token-of-this-test",
};
const MAIL_TOKEN = "the-mail-token-of-this-test";

interface Report {
  ok: boolean;
  checks: { id: string; status: string; text: string; advice?: string; figures?: Record<string, unknown> }[];
}

let site: Site;
let mail: MailServerStand;
beforeAll(async () => {
  mail = await startMailServer();
  site = await startSite({ env: SECRETS });
  chmodSync(site.server.dataDir, 0o700);
  await site.set("SMTPServer", "127.0.0.1");
  await site.set("SMTPPort", String(mail.port));
  await site.set("SMTPFrom", "weir@mail.example");
  await site.set("SMTPToken", MAIL_TOKEN);
}, 60_000);
afterAll(async () => {
  await site.remove();
  await mail.close();
});

/** Beside this process, which is mail server and upstream. */
async function run(
  args: string[],
  more: Record<string, string> = {},
): Promise<{ code: number; text: string }> {
  const port = new URL(site.server.url).port;
  const env = {
    ...Bun.env,
    ...SECRETS,
    DATA_DIR: site.server.dataDir,
    PORT: port,
    HOST: "127.0.0.1",
    ...more,
  };
  const child = Bun.spawn([...program(), ...args], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, problems, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  for (const secret of [...Object.values(SECRETS), MAIL_TOKEN, "database-password"])
    expect(out + problems).not.toContain(secret);
  return { code, text: out + problems };
}

async function report(
  more: Record<string, string> = {},
): Promise<Report & { code: number; of: Record<string, string> }> {
  const { code, text } = await run(["doctor", "--json"], more);
  const told = JSON.parse(text) as Report;
  return { ...told, code, of: Object.fromEntries(told.checks.map(({ id, status }) => [id, status])) };
}

test("a sound site beside its server: every check with its figures, on one page and as JSON", async () => {
  const before = readdirSync(site.server.dataDir).sort();
  const told = await report();
  expect([told.code, told.ok, told.checks.filter(({ status }) => status === "fail")]).toEqual([0, true, []]);
  expect(told.of).toMatchObject({
    settings: "ok",
    data: "ok",
    disk: expect.stringMatching(/ok|warn/),
    database: expect.stringMatching(/ok|warn/),
    schema: "ok",
    key: "ok",
    journal: "ok",
    // Nobody has made one.
    backup: "warn",
    smtp: "ok",
    upstreams: "ok",
  });
  const figures = Object.fromEntries(told.checks.map((check) => [check.id, check.figures]));
  expect(figures["data"]).toMatchObject({ running: true });
  expect(figures["disk"]).toMatchObject({ median_ms: expect.any(Number), writes: 50 });
  expect(figures["upstreams"]).toMatchObject({ reached: 1, addresses: 1 });
  // Nothing that an upstream bills, and no key.
  expect(site.upstream.calls.map(({ path, body, headers }) => [path, body, headers.authorization])).toEqual([
    ["/", "", undefined],
  ]);
  expect(mail.letters).toEqual([]);
  const page = await run(["doctor"]);
  expect(page.code).toBe(0);
  for (const { id } of told.checks) expect(page.text).toMatch(new RegExp(`^(ok|warn) +${id} `, "m"));
  // What to do stands below what is not right, and only there.
  const lines = page.text.split("\n");
  for (const [at, line] of lines.entries())
    if (/^(ok|warn|fail) /.test(line))
      expect([line, lines[at + 1]?.includes("-> ")]).toEqual([line, !line.startsWith("ok")]);
  expect(page.text).not.toContain("Look at the channel's address");
  expect(readdirSync(site.server.dataDir).sort()).toEqual(before);
  expect((await run(["doctor", "--all"])).code).toBe(2);
}, 60_000);

test("what is wrong is told one by one, with what to do", async () => {
  await site.channel({ type: 1, name: "gone", models: "gone", base_url: `http://127.0.0.1:${freePort()}` });
  await site.channel({ type: 1, name: "nowhere", models: "nowhere", base_url: "https://weir-test.invalid" });
  await site.set("SMTPPort", String(freePort()));
  await site.set("ServerAddress", "https://gate.invalid");
  chmodSync(site.server.dataDir, 0o755);
  const told = await report({ BACKUP_DIR: join(site.server.dataDir, "node.id") });
  expect([told.code, told.ok]).toEqual([1, false]);
  expect(told.of).toMatchObject({
    data: "warn",
    smtp: "fail",
    dns: "fail",
    proxy: "warn",
    backup: expect.any(String),
  });
  const texts = told.checks.filter(({ status }) => status === "fail").map(({ text }) => text);
  expect(texts.filter((text) => /\(gone\) cannot be reached/.test(text))).toHaveLength(1);
  expect(texts.filter((text) => /\(nowhere\) cannot be reached/.test(text))).toHaveLength(1);
  expect(texts.find((text) => text.includes("not known here"))).toContain("weir-test.invalid");
  expect(told.checks.every(({ status, advice }) => status === "ok" || advice)).toBe(true);

  const other = await report({ ENCRYPTION_KEY: "another key of sixteen letters" });
  expect(other.of["key"]).toBe("fail");
  const file = new Database(join(site.server.dataDir, "weir.sqlite"), { readwrite: true });
  file.run("pragma busy_timeout = 5000");
  file.run("update schema_version set version = version + 1");
  const newer = await report();
  file.run("update schema_version set version = version - 1");
  file.close();
  expect(newer.checks.find(({ id }) => id === "schema")).toMatchObject({
    status: "fail",
    text: expect.stringContaining("is newer than this program's"),
  });
}, 60_000);

test("without its database, with a wrong setting, before the first start: it says that, and what it can", async () => {
  const away = await report({
    DATABASE_URL: `postgres://weir:database-password@127.0.0.1:${freePort()}/weir`,
  });
  expect([away.code, away.of["database"], away.of["disk"] !== undefined, away.of["smtp"]]).toEqual([
    1,
    "fail",
    true,
    undefined,
  ]);
  const wrong = await report({ BACKUP_AT: "half past three" });
  expect([wrong.code, wrong.checks.map(({ id, text }) => `${id}: ${text}`)]).toEqual([
    1,
    [expect.stringContaining("settings: BACKUP_AT must be a time of day")],
  ]);
  const nowhere = join(mkdtempSync(join(tmpdir(), "weir-doctor-")), "new");
  const fresh = await report({ DATA_DIR: nowhere });
  expect([fresh.code, fresh.of]).toMatchObject([0, { data: "warn", database: "warn" }]);
  rmSync(join(nowhere, ".."), { recursive: true, force: true });
}, 60_000);

test("PostgreSQL: its clock, its connections, no pooler between", async () => {
  const database = await createTestDatabase("postgres", MIGRATED);
  const told = await report({ DATABASE_URL: database.databaseUrl ?? "", DATA_DIR: database.dataDir });
  expect([told.code, told.of]).toMatchObject([
    0,
    { database: expect.stringMatching(/ok|warn/), schema: "ok", clock: "ok", connections: "ok" },
  ]);
  expect(told.checks.find(({ id }) => id === "database")?.text).toMatch(/^PostgreSQL \d+/);
  await database.drop();
}, 60_000);

test("health: the server's own word, and an error where there is none", async () => {
  expect([await run(["health"]), await run(["health", "--ready"])]).toMatchObject([{ code: 0 }, { code: 0 }]);
  const gone = await run(["health"], { PORT: String(freePort()) });
  expect([gone.code, gone.text]).toEqual([1, expect.stringContaining("no answer on port")]);
  expect((await run(["health", "--loud"])).code).toBe(2);
}, 60_000);
