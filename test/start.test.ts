// Starts that cannot succeed: one sentence that names the variable, status 1, and no stack.
// Each is the program itself in a process of its own.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

function start(settings: Record<string, string>): { code: number; text: string } {
  const dataDir = mkdtempSync(join(tmpdir(), "weir-start-"));
  const run = Bun.spawnSync([process.execPath, join(import.meta.dir, "../src/main.ts")], {
    env: { ...Bun.env, PORT: "0", HOST: "127.0.0.1", DATA_DIR: dataDir, LOG_LEVEL: "info", ...settings },
    timeout: 20_000,
  });
  rmSync(dataDir, { recursive: true, force: true });
  return { code: run.exitCode, text: run.stdout.toString() + run.stderr.toString() };
}

test.each([
  [{ DATA_DIR: "/dev/null/weir" }, "weir cannot start: DATA_DIR is /dev/null/weir"],
  [{ HOST: "999.1.1.1" }, 'weir cannot start: HOST is "999.1.1.1"'],
  [{ DATABASE_URL: "postgres://who:pass-word@127.0.0.1:1/x" }, "weir cannot start: DATABASE_URL names"],
  [{ UPSTREAM_NETWORKS: "lan" }, 'weir cannot start: UPSTREAM_NETWORKS holds "lan"'],
  [{ PORT: "70000" }, "weir cannot start: PORT must be"],
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
