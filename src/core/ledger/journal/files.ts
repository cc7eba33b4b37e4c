// How a journal file comes to be: filled and synced before the first entry, on the event loop or beside it.
// Refuses to leave a half-made file behind when the disk is full.
import { closeSync, constants, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { frameAt, itemsOf } from "./frames.ts";

export const SEGMENT_BYTES = 1024 * 1024;

export function syncDirectory(path: string): void {
  const directory = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** The whole text or no file, whenever the power goes. */
export function writeAtomically(dataDir: string, name: string, text: string): void {
  const draft = join(dataDir, `${name}.draft`);
  const file = openSync(draft, "w", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, join(dataDir, name));
  syncDirectory(dataDir);
}

/** Filled at once: writing into room that is there is a quarter quicker than growing, and no full disk stops it. */
export function createSegment(dataDir: string, path: string): string {
  const file = openSync(path, "wx", 0o600);
  try {
    const zeros = Buffer.alloc(SEGMENT_BYTES);
    for (let done = 0; done < SEGMENT_BYTES;) done += writeSync(file, zeros, done);
    fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  syncDirectory(dataDir);
  return path;
}

/** The same in the thread pool. */
export async function createSegmentLater(dataDir: string, path: string): Promise<string> {
  const file = await open(path, "wx", 0o600);
  try {
    try {
      await file.writeFile(Buffer.alloc(SEGMENT_BYTES));
      await file.sync();
    } finally {
      await file.close();
    }
    const directory = await open(dataDir, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
    return path;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** The entries of the frame that lies between two places of a file; throws when it is no longer whole. */
export function readFrame<T>(path: string, begin: number, end: number): T[] {
  const bytes = Buffer.alloc(end - begin);
  const file = openSync(path, constants.O_RDONLY);
  try {
    for (let done = 0; done < bytes.length;) {
      const count = readSync(file, bytes, done, bytes.length - done, begin + done);
      if (count === 0) break;
      done += count;
    }
  } finally {
    closeSync(file);
  }
  const frame = frameAt(bytes, 0);
  if (!frame) throw new Error(`${path} is damaged between bytes ${begin} and ${end}`);
  return itemsOf<T>(bytes, frame);
}
