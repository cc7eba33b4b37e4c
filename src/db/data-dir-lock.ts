// One process per data directory: balances are held in memory, so a second process would spend the same money twice.
// Refuses the second with a sentence; the operating system frees the lock when a process dies, however it dies.
import { Database } from "bun:sqlite";
import { accessSync, constants, mkdirSync } from "node:fs";
import { join } from "node:path";

/** The start is stopped with this sentence. */
export class DataDirInUse extends Error {
  constructor(dataDir: string) {
    super(
      `another weir process is running on the data directory ${dataDir}: stop it first, or set DATA_DIR.`,
    );
  }
}

/** The start is stopped with this sentence. */
export class DataDirUnusable extends Error {
  constructor(dataDir: string, reason: string) {
    super(`DATA_DIR is ${dataDir}, where nothing can be kept: ${reason}.`);
  }
}

/** Makes the directory where it is missing, and proves that files can be made in it. */
export function prepareDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new DataDirUnusable(dataDir, error instanceof Error ? error.message : String(error));
  }
}

/** Held until release(); SQLite's own file lock, which no crash leaves behind. */
export function lockDataDir(dataDir: string): { release(): void } {
  const lock = new Database(join(dataDir, "process.lock"), { create: true, readwrite: true });
  try {
    lock.run("pragma busy_timeout = 0");
    lock.run("begin exclusive");
  } catch {
    lock.close();
    throw new DataDirInUse(dataDir);
  }
  return {
    release() {
      lock.close();
    },
  };
}
