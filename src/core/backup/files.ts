// Bytes of a bundle: copied and hashed in one go, durable when it returns; and the room that they need.
import { closeSync, fsyncSync, openSync, readSync, statfsSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Manifest } from "./manifest.ts";
import { BackupRefused } from "./refusal.ts";

const CHUNK_BYTES = 4 * 1024 * 1024;
/** Of the database's size, free on the disk that the copy goes to. */
const NEEDED_SHARE = 1.2;
const MIB = 1024 ** 2;

/** SHA-256 of a file in hex, and its bytes; `to` gets a copy that is durable when it returns. */
export function hashFile(path: string, to?: string): { sha256: string; bytes: number } {
  const hasher = new Bun.CryptoHasher("sha256");
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const from = openSync(path, "r");
  const target = to === undefined ? undefined : openSync(to, "wx", 0o600);
  let bytes = 0;
  try {
    for (;;) {
      const read = readSync(from, chunk, 0, chunk.length, null);
      if (read === 0) break;
      hasher.update(chunk.subarray(0, read));
      if (target !== undefined)
        for (let done = 0; done < read;) done += writeSync(target, chunk, done, read - done);
      bytes += read;
    }
    if (target !== undefined) fsyncSync(target);
  } finally {
    closeSync(from);
    if (target !== undefined) closeSync(target);
  }
  return { sha256: hasher.digest("hex"), bytes };
}

/** Throws BackupRefused where the bundle's file is not what its manifest says; `to` gets a copy that is proven. */
export function proveFile(bundle: string, { database }: Manifest, to?: string): void {
  const { file, bytes, sha256 } = database;
  const path = join(bundle, file);
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new BackupRefused("file_missing", { file, path: bundle });
  if (found.size !== bytes) throw new BackupRefused("cut", { file, found: found.size, expected: bytes });
  const hashed = hashFile(path, to);
  if (hashed.sha256 !== sha256)
    throw new BackupRefused("altered", { file, found: hashed.sha256, expected: sha256 });
}

export function syncFile(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Throws BackupRefused where the disk has not 1.2 times the database free. */
export function refuseFullDisk(dir: string, databaseBytes: number): void {
  const { bavail, bsize } = statfsSync(dir);
  const [free, needed] = [bavail * bsize, Math.ceil(databaseBytes * NEEDED_SHARE)];
  const text = (bytes: number) => `${Math.ceil(bytes / MIB)} MiB`;
  if (free < needed)
    throw new BackupRefused("no_space", { path: dir, free: text(free), needed: text(needed) });
}
