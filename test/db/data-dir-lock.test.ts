// One process per data directory, whatever the port.
import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataDirInUse, lockDataDir } from "../../src/db/data-dir-lock.ts";
import { program, startServerProcess } from "../support/server.ts";

test("a second holder is refused, and a released directory can be taken again", () => {
  const dir = mkdtempSync(join(tmpdir(), "weir-lock-"));
  const first = lockDataDir(dir);
  expect(() => lockDataDir(dir)).toThrow(DataDirInUse);
  // A file could be removed and made anew: the directory itself is what is locked.
  rmSync(join(dir, "process.lock"));
  expect(() => lockDataDir(dir)).toThrow(DataDirInUse);
  first.release();
  lockDataDir(dir).release();
  rmSync(dir, { recursive: true, force: true });
});

test("a second server on the same data says so in one sentence and ends, and a killed one frees the directory", async () => {
  const server = await startServerProcess();
  const second = Bun.spawnSync(program(), {
    env: { ...Bun.env, PORT: "0", DATA_DIR: server.dataDir },
  });
  rmSync(join(server.dataDir, "process.lock"));
  const third = server.run([], { PORT: "0" });
  expect([third.code, third.text]).toEqual([
    1,
    expect.stringContaining("another weir process is running") as string,
  ]);
  expect(second.exitCode).toBe(1);
  expect(second.stderr.toString()).toContain("another weir process is running on the data directory");
  // A newer program's audit must not change the tables under a running server.
  expect(server.audit()).toMatchObject({ code: 0 });
  const file = new Database(join(server.dataDir, "weir.sqlite"));
  file.run("alter table schema_version rename to elsewhere");
  const { code, text } = server.audit();
  expect([code, text]).toEqual([1, expect.stringContaining("another weir process is running") as string]);
  file.run("alter table elsewhere rename to schema_version");
  file.close();
  // What lies there is nobody else's to read.
  for (const name of ["weir.sqlite", "encryption.key", "node.id", "journal-1.log"])
    expect([name, statSync(join(server.dataDir, name)).mode & 0o077]).toEqual([name, 0]);
  await server.kill();
  await server.restart();
  expect((await fetch(`${server.url}/api/status`)).status).toBe(200);
  await server.remove();
});
