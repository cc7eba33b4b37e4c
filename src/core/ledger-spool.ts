// The last resort for settlements that the database would not take: a file of JSON lines, synced line by line.
// Refuses to apply a line twice: how far a file was replayed stands in the database, in the same transaction.
import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "./deps.ts";

export interface SpoolMark {
  key: string;
  value: number;
}

export interface SpoolTarget<T> {
  /** Applies one item and the mark together. `isOwn`: it was queued by this process. */
  apply(item: T, mark: SpoolMark, isOwn: boolean): void;
  readMark(key: string): number;
  dropMark(key: string): void;
}

export interface Spool<T> {
  /** Durable when it returns. */
  append(items: readonly T[]): void;
  /** Applies what earlier failures left; stops at the first line that fails again. Never throws. */
  replay(): void;
  /** Number of lines that wait. */
  readonly size: number;
}

const NAME = /^spool-([0-9a-f]{16})\.jsonl$/;

export function createSpool<T>(dataDir: string, target: SpoolTarget<T>, logger: Logger): Spool<T> {
  let ownFile: string | undefined;
  let size = 0;

  function replayFile(name: string): void {
    const path = join(dataDir, name);
    const key = `spool:${NAME.exec(name)?.[1]}`;
    // A torn last line was never acknowledged.
    const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
    const done = target.readMark(key);
    for (let index = done; index < lines.length; index++) {
      const item = parseLine<T>(lines[index] ?? "");
      if (item === undefined) continue;
      target.apply(item, { key, value: index + 1 }, name === ownFile);
      if (name === ownFile) size--;
    }
    rmSync(path);
    target.dropMark(key);
    if (name === ownFile) ownFile = undefined;
    logger.info("spool file was applied", { file: name, rows: lines.length - done });
  }

  return {
    append(items) {
      ownFile ??= `spool-${randomBytes(8).toString("hex")}.jsonl`;
      const file = openSync(join(dataDir, ownFile), "a", 0o600);
      try {
        writeSync(file, items.map((item) => `${JSON.stringify(item)}\n`).join(""));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      size += items.length;
    },
    replay() {
      try {
        for (const name of readdirSync(dataDir)) if (NAME.test(name)) replayFile(name);
      } catch (error) {
        logger.warn("spool file could not be applied yet", { error: String(error) });
      }
    },
    get size() {
      return size;
    },
  };
}

function parseLine<T>(line: string): T | undefined {
  try {
    return JSON.parse(line) as T;
  } catch {
    return undefined;
  }
}
