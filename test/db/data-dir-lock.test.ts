// One process per data directory, whatever the port.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataDirInUse, lockDataDir } from "../../src/db/data-dir-lock.ts";
import { startServerProcess } from "../support/server.ts";

test("a second holder is refused, and a released directory can be taken again", () => {
  const dir = mkdtempSync(join(tmpdir(), "weir-lock-"));
  const first = lockDataDir(dir);
  expect(() => lockDataDir(dir)).toThrow(DataDirInUse);
  first.release();
  lockDataDir(dir).release();
  rmSync(dir, { recursive: true, force: true });
});

test("a second server on the same data says so in one sentence and ends, and a killed one frees the directory", async () => {
  const server = await startServerProcess();
  const second = Bun.spawnSync([process.execPath, join(import.meta.dir, "../../src/main.ts")], {
    env: { ...Bun.env, PORT: "0", DATA_DIR: server.dataDir },
  });
  expect(second.exitCode).toBe(1);
  expect(second.stderr.toString()).toContain("another weir process is running on the data directory");
  await server.kill();
  await server.restart();
  expect((await fetch(`${server.url}/api/status`)).status).toBe(200);
  await server.remove();
});
