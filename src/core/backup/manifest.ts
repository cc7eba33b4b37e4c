// A bundle: a directory with a copy of the database and the manifest that says what it is, down to each byte.
// Refuses a manifest in which anything was changed, and formats of newer releases.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { WrappedKey } from "../kit/key-wrap.ts";
import { BackupRefused } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** Raised when an older release could not read what a newer one writes. */
const FORMAT = 1;
const MANIFEST_FILE = "manifest.json";
/** What is being written bears it; what is whole does not. */
export const PARTIAL = ".partial";
export const BUNDLE_NAME = /^weir-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

interface BackupCounts {
  users: number;
  tokens: number;
  channels: number;
  logs: number;
  credits: number;
}

export interface Manifest {
  format: number;
  /** Release that made it. */
  weir: string;
  /** The moment whose books it holds, Unix seconds. */
  createdAt: number;
  /** The database's own number (core/ledger/node-lease.ts): copies of one installation bear the same. */
  installation: number;
  database: {
    kind: "sqlite" | "postgres";
    /** Name in the bundle; empty where a dump is made by hand. */
    file: string;
    bytes: number;
    sha256: string;
  };
  schema: { version: number; hash: string };
  /** Where the journal of each node stands in this copy: what lies behind is not in it. */
  nodes: { id: string; mark: number }[];
  counts: BackupCounts;
  /** Of the newest log row, Unix seconds; 0: none. */
  newestLogAt: number;
  key: {
    /** Of the key that opens it (`keyFingerprint`). */
    fingerprint: string;
    /** The key itself under a passphrase, where that was asked for. */
    wrapped?: WrappedKey;
  };
  /** What the check found in the books as they were. */
  findings: Refusal[];
}

/** `weir-20261127T033000Z`: names sort as times do. */
export function bundleName(createdAt: number): string {
  return `weir-${new Date(createdAt * 1000).toISOString().replace(/[-:]|\.\d+/g, "")}`;
}

function textOf(manifest: Manifest): string {
  const sha256 = Bun.SHA256.hash(JSON.stringify(manifest), "hex");
  return `${JSON.stringify({ ...manifest, sha256 }, null, 2)}\n`;
}

/** Durable when it returns. */
export function writeManifest(dir: string, manifest: Manifest): void {
  const file = openSync(join(dir, MANIFEST_FILE), "wx", 0o600);
  try {
    writeSync(file, textOf(manifest));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

export const newManifest = (fields: Omit<Manifest, "format">): Manifest => ({ format: FORMAT, ...fields });

/** Throws BackupRefused. */
export function readManifest(dir: string): Manifest {
  if (dir.replace(/\/+$/, "").endsWith(PARTIAL)) throw new BackupRefused("unfinished", { path: dir });
  const path = join(dir, MANIFEST_FILE);
  if (!existsSync(path)) throw new BackupRefused("no_bundle", { path: dir });
  const text = readFileSync(path, "utf8");
  let manifest: Manifest;
  try {
    const { sha256: _, ...rest } = JSON.parse(text) as Manifest & { sha256: unknown };
    manifest = rest;
  } catch {
    throw new BackupRefused("manifest_damaged", { path: dir });
  }
  if (Number.isInteger(manifest.format) && manifest.format > FORMAT)
    throw new BackupRefused("newer_format", { path: dir, found: manifest.format });
  // Written again it is the same text, or it is not what was written.
  if (manifest.format !== FORMAT || textOf(manifest) !== text)
    throw new BackupRefused("manifest_damaged", { path: dir });
  return manifest;
}
