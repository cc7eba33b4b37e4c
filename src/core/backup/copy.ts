// One backup: the database as of one moment into a bundle, proved before it bears its name.
// Refuses to leave anything but `.partial` behind when it is killed, and to call whole what it has not read again.
import { accessSync, constants, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { openAsIs, SQLITE_FILE } from "../../db/connect.ts";
import type { ConnectSettings } from "../../db/connect.ts";
import { holdDirectory } from "../../db/data-dir-lock.ts";
import type { Database } from "../../db/database.ts";
import { copySqliteFile, damageIn, openSqliteCopy, reviseSqliteFile } from "../../db/sqlite.ts";
import { KeyWrapError, MIN_PASSPHRASE, wrapKey } from "../kit/key-wrap.ts";
import type { WrappedKey } from "../kit/key-wrap.ts";
import { keyFingerprint } from "../kit/seal.ts";
import { findNodeId } from "../ledger/installation.ts";
import { syncDirectory } from "../ledger/journal/files.ts";
import { surveyAll } from "../ledger/journal/journal.ts";
import { findStorePosition } from "../ledger/node-lease.ts";
import { checkBooks, inventoryOf } from "./check.ts";
import type { Inventory } from "./check.ts";
import { hashFile, refuseFullDisk, syncFile } from "./files.ts";
import { bundleName, newManifest, PARTIAL, writeManifest } from "./manifest.ts";
import type { Manifest } from "./manifest.ts";
import { DUMP_FILE, dumpTo, hasTool, SESSION_SECRETS } from "./postgres-tools.ts";
import { BackupRefused } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { removePartial, removeSuperfluous } from "./retention.ts";
import { noteBackup, noteFailedBackup } from "./state.ts";

export interface BackupOrder extends ConnectSettings {
  /** Where bundles lie; made when it is missing. */
  dir: string;
  /** Directories whose journals are waited for. */
  journalDirs: readonly string[];
  /** What the database is sealed with. */
  secret: string;
  /** Puts the key into the bundle, under it. */
  passphrase?: string;
  /** Removes what the rule of days, weeks and months has no place for, in the site's zone. */
  prunesIn?: string;
  /** Release of this program. */
  version: string;
  nowMs: () => number;
}

export interface MadeBackup {
  path: string;
  manifest: Manifest;
  /** Older bundles that went. */
  removed: number;
}

/** How long the entries that were accepted before the backup may take into the tables: a server does it in 50 ms. */
const ENTER_LIMIT_MS = 10_000;
const LOOK_MS = 20;

/** Throws BackupRefused; a failure is noted in the database where that can be written. */
export async function makeBackup(order: BackupOrder): Promise<MadeBackup> {
  const { dir } = order;
  refuseNoSite(order);
  // Older copies make room for a copy alone: what a person has to complete by hand replaces none.
  if (order.prunesIn !== undefined && order.databaseUrl !== "" && !hasTool("pg_dump")) {
    await noteFailure(order);
    throw new BackupRefused("no_tool", { tool: "pg_dump" });
  }
  const held = holdPlace(dir);
  try {
    removePartial(dir);
    const made = await writeBundle(order);
    await withDatabase(order, "write", (db) =>
      made.manifest.database.file === ""
        ? Promise.resolve()
        : noteBackup(db, made.manifest.createdAt, made.manifest.database.bytes),
    );
    const { installation } = made.manifest;
    const removed = order.prunesIn ? removeSuperfluous(dir, installation, order.prunesIn) : 0;
    return { ...made, removed };
  } catch (error) {
    await noteFailure(order);
    throw error;
  } finally {
    held.release();
  }
}

/** Where that can be written. */
async function noteFailure(order: BackupOrder): Promise<void> {
  const atSeconds = Math.floor(order.nowMs() / 1000);
  await withDatabase(order, "write", (db) => noteFailedBackup(db, atSeconds)).catch(() => undefined);
}

function refuseNoSite({ dataDir, databaseUrl }: BackupOrder): void {
  if (databaseUrl === "" && !existsSync(join(dataDir, SQLITE_FILE)))
    throw new BackupRefused("no_database", { path: dataDir });
}

/** One backup at a time writes to a place, so that an unfinished one that lies there was killed. */
function holdPlace(dir: string): { release(): void } {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new BackupRefused("no_place", { path: dir, reason: error instanceof Error ? error.message : "" });
  }
  const held = holdDirectory(dir);
  if (!held) throw new BackupRefused("busy", { path: dir });
  return held;
}

async function withDatabase<T>(
  settings: ConnectSettings,
  mode: "read" | "write",
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const db = await openAsIs(settings, mode);
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

async function wrapped({ secret, passphrase }: BackupOrder): Promise<WrappedKey | undefined> {
  if (passphrase === undefined) return undefined;
  return wrapKey(secret, passphrase).catch((error: unknown) => {
    throw error instanceof KeyWrapError && error.reason === "short"
      ? new BackupRefused("short_passphrase", { least: MIN_PASSPHRASE })
      : error;
  });
}

async function writeBundle(order: BackupOrder): Promise<Omit<MadeBackup, "removed">> {
  const { dir, dataDir, databaseUrl, secret, nowMs, version } = order;
  const wrappedKey = await wrapped(order);
  const bytes = await withDatabase(order, "read", async (db) => {
    for (const journalDir of order.journalDirs) await untilEntered(db, journalDir);
    return databaseUrl === "" ? fileBytes(dataDir) : databaseBytes(db);
  });
  refuseFullDisk(dir, bytes);
  let createdAt = Math.floor(nowMs() / 1000);
  while (existsSync(join(dir, bundleName(createdAt)))) createdAt++;
  const path = join(dir, bundleName(createdAt));
  const partial = path + PARTIAL;
  mkdirSync(partial, { mode: 0o700 });
  try {
    const content = await (databaseUrl === "" ? copySqlite(order, partial) : dumpPostgres(order, partial));
    const manifest = newManifest({
      weir: version,
      createdAt,
      ...content,
      key: { fingerprint: keyFingerprint(secret), ...(wrappedKey ? { wrapped: wrappedKey } : {}) },
    });
    writeManifest(partial, manifest);
    syncDirectory(partial);
    renameSync(partial, path);
    syncDirectory(dir);
    return { path, manifest };
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
}

/** What a directory's journal held when the backup began is in the tables: the copy has every call answered before it. */
async function untilEntered(db: Database, dataDir: string): Promise<void> {
  const nodeId = findNodeId(dataDir);
  const stored = nodeId === undefined ? undefined : await findStorePosition(db, nodeId);
  if (nodeId === undefined || !stored) return;
  const end = Math.max(0, ...surveyAll(dataDir, stored).map(({ last }) => last));
  const until = performance.now() + ENTER_LIMIT_MS;
  for (let { mark } = stored; mark < end; mark = (await findStorePosition(db, nodeId))?.mark ?? 0) {
    if (performance.now() > until) throw new BackupRefused("waiting", { count: end - mark });
    await Bun.sleep(LOOK_MS);
  }
}

function fileBytes(dataDir: string): number {
  const sizes = ["", "-wal"].map((ending) => {
    const found = statSync(join(dataDir, SQLITE_FILE + ending), { throwIfNoEntry: false });
    return found?.size ?? 0;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function databaseBytes(db: Database): Promise<number> {
  const [row] = await db.orm
    .select({ bytes: sql`d.bytes`.mapWith(Number) })
    .from(sql`(select pg_database_size(current_database()) as bytes) as d`);
  return row?.bytes ?? 0;
}

type Content = Inventory & Pick<Manifest, "database" | "findings">;

async function copySqlite({ dataDir, secret }: BackupOrder, partial: string): Promise<Content> {
  const copy = join(partial, SQLITE_FILE);
  copySqliteFile(join(dataDir, SQLITE_FILE), copy);
  // Whoever gets hold of the copy and the key must not sign sessions with it; people sign in again.
  reviseSqliteFile(copy, [`delete from ${SESSION_SECRETS}`]);
  syncFile(copy);
  const { inventory, findings } = await checkCopy(copy, secret);
  const hashed = hashFile(copy);
  return { ...inventory, findings, database: { kind: "sqlite", file: SQLITE_FILE, ...hashed } };
}

/** Throws BackupRefused where a file cannot be used; answers what is in it. */
export async function checkCopy(
  path: string,
  secret: string,
  fingerprint?: string,
): Promise<{ inventory: Inventory; findings: Refusal[] }> {
  const damage = damageIn(path);
  if (damage !== undefined) throw new BackupRefused("unreadable", { what: damage });
  const db = openSqliteCopy(path);
  try {
    return await checkDatabase(db, secret, fingerprint);
  } finally {
    await db.close();
  }
}

export async function checkDatabase(
  db: Database,
  secret: string,
  fingerprint?: string,
): Promise<{ inventory: Inventory; findings: Refusal[] }> {
  const inventory = await inventoryOf(db);
  return { inventory, findings: await checkBooks(db, secret, fingerprint) };
}

/** With PostgreSQL's own program; without it the manifest alone, beside which the operator puts a dump. */
async function dumpPostgres(order: BackupOrder, partial: string): Promise<Content> {
  const { databaseUrl, secret } = order;
  const { inventory, findings } = await withDatabase(order, "read", (db) => checkDatabase(db, secret));
  if (!hasTool("pg_dump"))
    return { ...inventory, findings, database: { kind: "postgres", file: "", bytes: 0, sha256: "" } };
  const file = join(partial, DUMP_FILE);
  await dumpTo(databaseUrl, file);
  syncFile(file);
  const hashed = hashFile(file);
  return { ...inventory, findings, database: { kind: "postgres", file: DUMP_FILE, ...hashed } };
}
