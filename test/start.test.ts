// Starts that cannot succeed: one sentence that names the variable, status 1, and no stack. And what every start sets for itself.
// Each is the program itself in a process of its own.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPostgresDatabase } from "./support/postgres.ts";
import { program } from "./support/server.ts";

function start(settings: Record<string, string>): { code: number; text: string } {
  const dataDir = mkdtempSync(join(tmpdir(), "weir-start-"));
  const run = Bun.spawnSync(program(), {
    env: { ...Bun.env, PORT: "0", HOST: "127.0.0.1", DATA_DIR: dataDir, LOG_LEVEL: "info", ...settings },
    timeout: 20_000,
  });
  rmSync(dataDir, { recursive: true, force: true });
  return { code: run.exitCode, text: run.stdout.toString() + run.stderr.toString() };
}

test.each([
  [{ DATA_DIR: "/dev/null/weir" }, "weir cannot start: DATA_DIR is /dev/null/weir"],
  [{ HOST: "999.1.1.1" }, 'weir cannot start: HOST is "999.1.1.1"'],
  [
    { DATABASE_URL: "postgres://who:pass-word@127.0.0.1:1/x", DATABASE_WAIT_SECONDS: "0" },
    "weir cannot start: DATABASE_URL names",
  ],
  [{ DATABASE_WAIT_SECONDS: "soon" }, "weir cannot start: DATABASE_WAIT_SECONDS must be"],
  [{ UPSTREAM_NETWORKS: "lan" }, 'weir cannot start: UPSTREAM_NETWORKS holds "lan"'],
  [{ PORT: "70000" }, "weir cannot start: PORT must be"],
  [{ REDIS_URL: "nonsense:pass-word" }, "weir cannot start: REDIS_URL must look like redis://"],
  [{ REDIS_URL: "http://who:pass-word@127.0.0.1" }, "weir cannot start: REDIS_URL must look like redis://"],
  [
    { REDIS_URL: "valkeys://who:pass-word@127.0.0.1/first" },
    "weir cannot start: REDIS_URL must end with the number of a database",
  ],
])("with %j it says so", (settings, sentence) => {
  const { code, text } = start(settings);
  expect(text).toStartWith(sentence);
  expect(text.trim().split("\n")).toHaveLength(1);
  expect(text).not.toContain("pass-word");
  expect(code).toBe(1);
});

test("a port that is taken is named", () => {
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") });
  const { code, text } = start({ PORT: String(other.port) });
  expect([code, text.trim()]).toEqual([
    1,
    `weir cannot start: PORT ${other.port} is in use: stop the other program, or set PORT.`,
  ]);
  void other.stop(true);
});

test("a database that is not there is waited for, told, and given up after the time", () => {
  const begun = performance.now();
  const { code, text } = start({
    DATABASE_URL: "postgres://who:pass-word@127.0.0.1:1/x",
    DATABASE_WAIT_SECONDS: "2",
  });
  expect(performance.now() - begun).toBeGreaterThan(2000);
  expect(code).toBe(1);
  const lines = text.trim().split("\n");
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("waiting for the database");
  expect(lines[1]).toStartWith("weir cannot start: DATABASE_URL names a database that cannot be used");
  expect(text).not.toContain("pass-word");
});

test("a wrong password and an unknown database are refused at once", async () => {
  const database = await createPostgresDatabase();
  try {
    const unknown = new URL(database.url);
    unknown.pathname = "/nobody_made_it";
    const stranger = new URL(database.url);
    stranger.username = "nobody";
    stranger.password = "pass-word";
    for (const { href } of [unknown, stranger]) {
      const begun = performance.now();
      const { code, text } = start({ DATABASE_URL: href });
      expect([code, text.trim().split("\n").length]).toEqual([1, 1]);
      expect(text).toStartWith("weir cannot start: DATABASE_URL names a database that cannot be used");
      expect(performance.now() - begun).toBeLessThan(15_000);
    }
  } finally {
    await database.drop();
  }
});

test("freed memory is kept for a moment, and an operator's own word for how long stands", () => {
  // The allocator tells its options where it is asked to; one process for each of the two starts, before and after it is replaced.
  const told = (settings: Record<string, string>): string | undefined =>
    start({ PORT: "70000", MIMALLOC_VERBOSE: "1", ...settings })
      .text.match(/option '(?:purge_delay|purge_holes_min_interval)': \d+/g)
      ?.slice(-2)
      .join(", ");
  expect(told({})).toBe("option 'purge_delay': 2000, option 'purge_holes_min_interval': 4000");
  expect(told({ MIMALLOC_PURGE_DELAY: "50" })).toBe(
    "option 'purge_delay': 50, option 'purge_holes_min_interval': 4000",
  );
});
