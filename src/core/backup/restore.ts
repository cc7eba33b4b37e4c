// The way back: a bundle, proved byte by byte, becomes the database of an empty data directory or an empty PostgreSQL.
// Refuses, and changes nothing, where the bundle is cut, altered, of another key or of a newer release.
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { openAsIs, SQLITE_FILE } from "../../db/connect.ts";
import type { ConnectSettings } from "../../db/connect.ts";
import { holdDirectory } from "../../db/data-dir-lock.ts";
import { schemaOf } from "../../db/migrate.ts";
import { reviseSqliteFile } from "../../db/sqlite.ts";
import { KeyWrapError, unwrapKey } from "../kit/key-wrap.ts";
import { KEY_FILE, keyFingerprint } from "../kit/seal.ts";
import { findNodeId, NODE_FILE } from "../ledger/installation.ts";
import { syncDirectory } from "../ledger/journal/files.ts";
import { JOURNAL_NAME } from "../ledger/journal/journal.ts";
import { refuseSchema } from "./check.ts";
import { checkCopy, checkDatabase } from "./copy.ts";
import { hashFile, proveFile } from "./files.ts";
import { readManifest } from "./manifest.ts";
import type { Manifest } from "./manifest.ts";
import { listDump, restoreFrom } from "./postgres-tools.ts";
import { BackupRefused } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** Where the key of a bundle may come from, the first that is there. */
export interface KeySources {
  /** Path of a key file; empty: none was named. */
  file: string;
  /** ENCRYPTION_KEY. */
  fromEnv: string;
  /** KEY_PASSPHRASE, for the key in the bundle itself. */
  passphrase: string;
}

/** What is restored, and into which empty place. */
export interface RestoreOrder extends ConnectSettings {
  /** The data directory that the bundle is of, whose journal goes on behind it; undefined: none was named. */
  journalDir?: string;
}

export interface ProvedBundle {
  manifest: Manifest;
  secret: string;
  /** What is not right in the books, as they were. */
  findings: readonly Refusal[];
}

/** While it is copied; what stands there from a try that was killed is made anew. */
const DRAFT_FILE = `${SQLITE_FILE}.restoring`;

/** Throws BackupRefused. */
async function secretOf({ key }: Manifest, sources: KeySources): Promise<string> {
  const secret = await firstOf(key, sources);
  const found = keyFingerprint(secret);
  if (found !== key.fingerprint)
    throw new BackupRefused("other_key", { found, fingerprint: key.fingerprint });
  return secret;
}

async function firstOf({ fingerprint, wrapped }: Manifest["key"], sources: KeySources): Promise<string> {
  const { file, fromEnv, passphrase } = sources;
  if (file !== "") {
    if (!existsSync(file)) throw new BackupRefused("file_missing", { file, path: "." });
    return readFileSync(file, "utf8").trim();
  }
  if (fromEnv !== "") return fromEnv;
  if (!wrapped) throw new BackupRefused("no_key", { fingerprint });
  if (passphrase === "") throw new BackupRefused("no_passphrase");
  return unwrapKey(wrapped, passphrase).catch((error: unknown) => {
    if (!(error instanceof KeyWrapError)) throw error;
    throw error.reason === "passphrase"
      ? new BackupRefused("passphrase")
      : new BackupRefused("manifest_damaged");
  });
}

/** Everything that can be told of a bundle without restoring it. Throws BackupRefused. */
export async function checkBundle(bundle: string, sources: KeySources): Promise<ProvedBundle> {
  const manifest = readManifest(bundle);
  const { database, schema, key } = manifest;
  refuseSchema(database.kind, schema);
  const secret = await secretOf(manifest, sources);
  if (database.kind === "postgres") {
    if (database.file === "") throw new BackupRefused("no_dump");
    proveFile(bundle, manifest);
    await listDump(join(bundle, database.file));
    return { manifest, secret, findings: manifest.findings };
  }
  proveFile(bundle, manifest);
  const { findings } = await checkCopy(join(bundle, database.file), secret, key.fingerprint);
  return { manifest, secret, findings };
}

/** Restores into an empty directory, or an empty PostgreSQL. Throws BackupRefused; nothing is there then. */
export async function restoreBundle(
  bundle: string,
  target: RestoreOrder,
  sources: KeySources,
): Promise<ProvedBundle> {
  const manifest = readManifest(bundle);
  const { database, schema } = manifest;
  refuseSchema(database.kind, schema);
  if (database.kind === "postgres" && target.databaseUrl === "") throw new BackupRefused("needs_postgres");
  if (database.kind === "sqlite" && target.databaseUrl !== "") throw new BackupRefused("needs_sqlite");
  if (database.kind === "postgres" && target.journalDir !== undefined)
    throw new BackupRefused("journal_postgres");
  const secret = await secretOf(manifest, sources);
  // What the environment gives is not written to a disk.
  const into = { ...target, secret, keepsKey: sources.file !== "" || sources.fromEnv === "" };
  const { dataDir } = target;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  // Two into one directory would each take the other's files for those of a killed try.
  const held = holdDirectory(dataDir);
  if (!held) throw new BackupRefused("target_busy", { path: dataDir });
  try {
    refuseUsed(dataDir);
    const restore = database.kind === "sqlite" ? restoreSqlite : restorePostgres;
    return { manifest, secret, findings: await restore(bundle, manifest, into) };
  } finally {
    held.release();
  }
}

/** With what SQLite keeps beside it. */
function removeDraft(dataDir: string): void {
  for (const end of ["", "-journal", "-wal", "-shm"])
    rmSync(join(dataDir, DRAFT_FILE + end), { force: true });
}

function refuseUsed(dataDir: string): void {
  removeDraft(dataDir);
  // A disk of its own has that directory from the beginning.
  const found = readdirSync(dataDir).filter((name) => name !== "lost+found");
  if (found.length > 0)
    throw new BackupRefused("target_used", { path: dataDir, found: found.slice(0, 4).join(", ") });
}

/**
 * The next start enters what the journal has beyond the backup, and refuses by name where segments between are gone. The name
 * of the node goes along: by it the books know how far they are. `made` gets each path.
 */
function carryJournal(from: string, dataDir: string, { nodes }: Manifest, made: string[]): void {
  const id = findNodeId(from);
  const names =
    id !== undefined && nodes.some((each) => each.id === id)
      ? readdirSync(from).filter((name) => JOURNAL_NAME.test(name))
      : [];
  if (names.length === 0) throw new BackupRefused("no_journal", { path: from });
  const held = holdDirectory(from);
  if (!held) throw new BackupRefused("journal_busy", { path: from });
  try {
    for (const name of [...names, NODE_FILE]) hashFile(join(from, name), newPath(join(dataDir, name), made));
  } finally {
    held.release();
  }
}

interface Target extends RestoreOrder {
  secret: string;
  /** The key file is written, too. */
  keepsKey: boolean;
}

async function restoreSqlite(
  bundle: string,
  manifest: Manifest,
  { dataDir, secret, keepsKey, journalDir }: Target,
): Promise<Refusal[]> {
  const draft = join(dataDir, DRAFT_FILE);
  const made: string[] = [];
  try {
    proveFile(bundle, manifest, draft);
    // What the old node's journal had beyond this moment is not part of the copy: nobody is to wait for it.
    reviseSqliteFile(draft, ["update nodes set journaled = mark, lease_until = 0"]);
    const { findings } = await checkCopy(draft, secret, manifest.key.fingerprint);
    if (journalDir !== undefined) carryJournal(journalDir, dataDir, manifest, made);
    if (keepsKey) writeKey(newPath(join(dataDir, KEY_FILE), made), secret);
    renameSync(draft, join(dataDir, SQLITE_FILE));
    syncDirectory(dataDir);
    return findings;
  } catch (error) {
    // It was empty before; what others have put there since is theirs.
    removeDraft(dataDir);
    for (const path of made) rmSync(path, { force: true });
    throw error;
  }
}

async function restorePostgres(
  bundle: string,
  manifest: Manifest,
  { dataDir, databaseUrl, secret, keepsKey }: Target,
): Promise<Refusal[]> {
  const { file } = manifest.database;
  if (file === "") throw new BackupRefused("no_dump");
  proveFile(bundle, manifest);
  const db = await openAsIs({ dataDir, databaseUrl });
  try {
    if ((await schemaOf(db)) !== undefined) throw new BackupRefused("database_used");
    await restoreFrom(databaseUrl, join(bundle, file));
    // A dump that was made by hand may have it.
    await db.orm.delete(db.t.sessionSecrets);
    // As with the embedded database.
    const { nodes } = db.t;
    await db.orm.update(nodes).set({ journaled: sql`${nodes.mark}`, leaseUntil: 0 });
    const { findings } = await checkDatabase(db, secret, manifest.key.fingerprint);
    if (keepsKey) writeKey(join(dataDir, KEY_FILE), secret);
    syncDirectory(dataDir);
    return findings;
  } finally {
    await db.close();
  }
}

/** Noted before there is a file, so that half a one goes, too; what somebody else has put there is not. */
function newPath(path: string, made: string[]): string {
  if (!existsSync(path)) made.push(path);
  return path;
}

function writeKey(path: string, secret: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, `${secret}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  chmodSync(path, 0o600);
}
