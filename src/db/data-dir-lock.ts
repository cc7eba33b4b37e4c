// One process per data directory: balances are held in memory, so a second process would spend the same money twice.
// Refuses the second with a sentence; the operating system frees the lock when a process dies, however it dies.
import { dlopen, FFIType, read } from "bun:ffi";
import { Database } from "bun:sqlite";
import { accessSync, closeSync, constants, mkdirSync, openSync } from "node:fs";
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

/** Held until release(), and never left behind by a crash. */
export function lockDataDir(dataDir: string): { release(): void } {
  const directory = openSync(dataDir, constants.O_RDONLY);
  // The directory itself is locked: a file in it could be removed, and the next process would make and lock another.
  if (lockHandle(directory) === "taken") {
    closeSync(directory);
    throw new DataDirInUse(dataDir);
  }
  // Older releases, and systems whose directories cannot be locked, know this file only.
  const lock = new Database(join(dataDir, "process.lock"), { create: true, readwrite: true });
  try {
    lock.run("pragma busy_timeout = 0");
    lock.run("begin exclusive");
  } catch {
    lock.close();
    closeSync(directory);
    throw new DataDirInUse(dataDir);
  }
  return {
    release() {
      lock.close();
      closeSync(directory);
    },
  };
}

/** A directory that one process at a time writes to; undefined while another does. Freed when the process dies. */
export function holdDirectory(path: string): { release(): void } | undefined {
  const directory = openSync(path, constants.O_RDONLY);
  if (lockHandle(directory) !== "taken") return { release: () => closeSync(directory) };
  closeSync(directory);
  return undefined;
}

const LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1", "libSystem.B.dylib"];
const ERRNO = process.platform === "darwin" ? "__error" : "__errno_location";
const EXCLUSIVE_NO_WAIT = 2 | 4;
/** EBADF, EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP: the file system has no such locks. Anything else: somebody holds it. */
const NOT_LOCKABLE = new Set([9, 22, 37, 38, 45, 77, 78, 95]);

/** Neither Bun nor Node offers flock: the C library does. */
function lockHandle(handle: number): "held" | "taken" | "unknown" {
  for (const name of LIBRARIES) {
    try {
      const { symbols } = dlopen(name, {
        flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 },
        [ERRNO]: { args: [], returns: FFIType.ptr },
      });
      if (symbols.flock(handle, EXCLUSIVE_NO_WAIT) === 0) return "held";
      const place = symbols[ERRNO]?.();
      return place && NOT_LOCKABLE.has(read.i32(place, 0)) ? "unknown" : "taken";
    } catch {
      // Another system's library.
    }
  }
  return "unknown";
}
