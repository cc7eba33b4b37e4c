// The machine: data directory, room and speed of its disk, open files, memory.
// Refuses to leave anything behind but what it measures with, which it removes.
import {
  closeSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
  accessSync,
  constants,
} from "node:fs";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";
import { SQLITE_FILE } from "../../db/connect.ts";
import { holdDirectory } from "../../db/data-dir-lock.ts";
import type { CheckRow, Finding } from "./report.ts";

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const SYNC_WRITES = 50;
const SYNC_BYTES = 4096;
/** Each group of calls waits for one such write. */
const SLOW_SYNC_MS = 10;
const LOW_SHARE = 0.1;
const NO_ROOM_BYTES = 256 * MIB;
const OPEN_FILES = 16_384;
/** What a node with a busy afternoon takes. */
const LOW_MEMORY = 256 * MIB;

export const sizeText = (bytes: number): string =>
  bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.ceil(bytes / MIB)} MiB`;

export function machineChecks(dataDir: string, databaseUrl: string): CheckRow[] {
  return [
    { id: "data", look: () => dataDirectory(dataDir, databaseUrl) },
    { id: "space", look: () => space(dataDir) },
    { id: "disk", look: () => syncSpeed(dataDir) },
    { id: "limits", look: limits },
  ];
}

function dataDirectory(dataDir: string, databaseUrl: string): Finding {
  const found = statSync(dataDir, { throwIfNoEntry: false });
  if (!found?.isDirectory())
    return {
      status: "warn",
      text: `${dataDir} does not exist yet`,
      advice: "The first start makes it. Where a site has run before, DATA_DIR names another place.",
    };
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return {
      status: "fail",
      text: `${dataDir} cannot be written to by this account (${process.getuid?.() ?? "?"})`,
      advice: "Give the directory to the account that the server runs under, or run this as that account.",
    };
  }
  const held = holdDirectory(dataDir);
  held?.release();
  const file = statSync(join(dataDir, SQLITE_FILE), { throwIfNoEntry: false });
  const parts = [
    dataDir,
    held ? "no server runs on it" : "a server runs on it",
    ...(databaseUrl === "" && file ? [`${SQLITE_FILE} ${sizeText(file.size)}`] : []),
  ];
  const isOpen = (found.mode & 0o077) !== 0;
  return {
    status: isOpen ? "warn" : "ok",
    text: parts.join(", ") + (isOpen ? `, mode ${(found.mode & 0o777).toString(8)}` : ""),
    ...(isOpen ? { advice: `Keys and books lie here: chmod 700 ${dataDir}` } : {}),
    figures: { running: held === undefined, bytes: file?.size ?? 0 },
  };
}

function space(dataDir: string): Finding {
  const { bavail, bsize, blocks } = statfsSync(nearest(dataDir));
  const [free, share] = [bavail * bsize, blocks > 0 ? bavail / blocks : 1];
  const isFull = free < NO_ROOM_BYTES;
  return {
    status: isFull ? "fail" : share < LOW_SHARE ? "warn" : "ok",
    text: `${sizeText(free)} free, ${Math.floor(share * 100)} % of the disk`,
    advice:
      "Calls are refused when the journal has no room: make space, shorten LOG_RETENTION_DAYS, move old backups.",
    figures: { free_bytes: free, free_share: Number(share.toFixed(3)) },
  };
}

/** The directory itself, or the one that it would be made in. */
function nearest(path: string): string {
  let at = path;
  while (!statSync(at, { throwIfNoEntry: false }) && at !== "/") at = join(at, "..");
  return at;
}

/** As the journal writes: into room that is there, each write durable when it returns. */
function syncSpeed(dataDir: string): Finding {
  if (!statSync(dataDir, { throwIfNoEntry: false }))
    return { status: "ok", text: "not measured: no directory yet" };
  const path = join(dataDir, `.doctor-${process.pid}`);
  const file = openSync(
    path,
    constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_DSYNC,
    0o600,
  );
  const tookMs: number[] = [];
  try {
    writeSync(file, Buffer.alloc(SYNC_BYTES * SYNC_WRITES));
    for (let at = 0; at < SYNC_WRITES; at++) {
      const beganMs = performance.now();
      writeSync(file, Buffer.alloc(SYNC_BYTES, 1), 0, SYNC_BYTES, at * SYNC_BYTES);
      tookMs.push(performance.now() - beganMs);
    }
  } finally {
    closeSync(file);
    rmSync(path, { force: true });
  }
  tookMs.sort((a, b) => a - b);
  const at = (share: number): number => Number((tookMs[Math.floor(tookMs.length * share)] ?? 0).toFixed(2));
  const [median, late] = [at(0.5), at(0.95)];
  return {
    status: median > SLOW_SYNC_MS ? "warn" : "ok",
    text: `a durable write takes ${median} ms, one of twenty ${late} ms`,
    advice: "Answers wait for such a write: put DATA_DIR on a local SSD, not on a network file system.",
    figures: { median_ms: median, p95_ms: late, writes: SYNC_WRITES },
  };
}

function limits(): Finding {
  const files = openFiles();
  const [free, all] = [freemem(), totalmem()];
  const isLow = files !== undefined && files < OPEN_FILES;
  const parts = [
    ...(files === undefined ? [] : [`${files} open files`]),
    `${sizeText(free)} of ${sizeText(all)} memory free`,
  ];
  return {
    status: isLow || free < LOW_MEMORY ? "warn" : "ok",
    text: parts.join(", "),
    advice: isLow
      ? "Each call takes two: LimitNOFILE=65536 under systemd, --ulimit nofile=65536 for a container."
      : "A busy node takes some hundred MB.",
    figures: { memory_free_bytes: free, ...(files === undefined ? {} : { open_files: files }) },
  };
}

/** What the system allows at most, to which the start raises itself; undefined where nobody tells. */
function openFiles(): number | undefined {
  try {
    const [, hard] = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return hard === "unlimited" ? 1_048_576 : Number(hard) || undefined;
  } catch {
    return undefined;
  }
}
