// The database and what hangs on it: schema, clock, connections, the key, the journal, the last backup.
// Refuses to change anything: no migration, no repair, no lease.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { openAsIs, SQLITE_FILE } from "../../db/connect.ts";
import type { Database } from "../../db/database.ts";
import { rawQuery } from "../../db/database.ts";
import { poolerMode, reachOnce } from "../../db/pooler.ts";
import type { PoolerMode } from "../../db/pooler.ts";
import { knownSchemas, schemaOf } from "../../db/migrate.ts";
import { BACKUP_LATE_SECONDS, backupAge, backupState } from "../backup/state.ts";
import { createSealer, KEY_FILE, keyFingerprint, keySecret } from "../kit/seal.ts";
import { findNodeId } from "../ledger/installation.ts";
import { countWaiting, surveyAll } from "../ledger/journal/journal.ts";
import { recover } from "../ledger/journal/recovery.ts";
import { findStorePosition } from "../ledger/node-lease.ts";
import { internalRow, opensCheck, ROTATION_KEY, SEAL_CHECK_KEY } from "../options/seal-keys.ts";
import type { CheckRow, Finding } from "./report.ts";
import { sizeText } from "./machine.ts";

export interface BookSettings {
  dataDir: string;
  databaseUrl: string;
  /** Past a pooler; empty where there is none. */
  databaseDirectUrl: string;
  encryptionKey: string;
  backupDir: string;
  nowMs: () => number;
}

/** Nodes refuse to start above the second; leases and windows of limits are cut by clocks. */
const SKEW_WARN_MS = 2000;
const SKEW_FAIL_MS = 30_000;
const SLOW_DATABASE_MS = 20;
const HOUR = 3600;

/** An open database, what was found before it on PostgreSQL, or why there is none. */
export type Opened = { db: Database; pooler?: Finding } | { finding: Finding };

/** What each way of handing out server connections leaves to the program. */
const MODES: Readonly<Record<PoolerMode, string>> = {
  none: "no pooler: straight to PostgreSQL",
  session: "a pooler in session mode: a connection keeps its server process",
  transaction: "a pooler in transaction mode: statements of one connection reach several server processes",
  statement: "a pooler in statement mode: it takes no transactions",
};

/** Every process listens on a connection of its own, for as long as it runs. */
const SESSION_SIZE = "Its pool_size must be at least DATABASE_POOL + 1 for each process of each node.";
const SET_DIRECT =
  "LISTEN hears nothing through it, and named statements hang: set DATABASE_DIRECT_URL to PostgreSQL itself, or pool_mode = session for this database.";

/** Which pooler stands before the database, and whether what needs a session has a way past it. */
async function poolerBefore({ databaseUrl, databaseDirectUrl }: BookSettings): Promise<Finding> {
  const mode = await poolerMode(databaseUrl);
  const figures = { mode };
  const text = MODES[mode];
  if (mode === "statement") return { status: "fail", text, advice: "Set pool_mode = session.", figures };
  if (databaseDirectUrl === "")
    return mode === "transaction"
      ? { status: "fail", text, advice: SET_DIRECT, figures }
      : { status: "ok", text, ...(mode === "session" ? { advice: SESSION_SIZE } : {}), figures };
  const past = await poolerMode(databaseDirectUrl);
  if (past !== "none" && past !== "session")
    return { status: "fail", text: `DATABASE_DIRECT_URL: ${MODES[past]}`, advice: SET_DIRECT, figures };
  const [there, direct] = [await reachOnce(databaseUrl), await reachOnce(databaseDirectUrl)];
  if (there.server !== direct.server)
    return {
      status: "fail",
      text: "DATABASE_DIRECT_URL and DATABASE_URL lead to different databases",
      advice: "Both must name the same database of one server, the one past the pooler.",
      figures,
    };
  return { status: "ok", text: `${text}; what needs a session goes by DATABASE_DIRECT_URL`, figures };
}

export async function openDatabase(settings: BookSettings): Promise<Opened> {
  const { dataDir, databaseUrl, databaseDirectUrl } = settings;
  if (databaseUrl === "" && !existsSync(join(dataDir, SQLITE_FILE)))
    return {
      finding: {
        status: "warn",
        text: `there is no site in ${dataDir} yet`,
        advice: "The first start makes it. Key, mail and upstreams cannot be looked at before.",
      },
    };
  try {
    if (databaseUrl === "") return { db: await openAsIs(settings) };
    const pooler = await poolerBefore(settings);
    if (pooler.status === "fail") return { finding: pooler };
    return { db: await openAsIs({ dataDir, databaseUrl: databaseDirectUrl || databaseUrl }), pooler };
  } catch (error) {
    return {
      finding: {
        status: "fail",
        text: error instanceof Error ? error.message : String(error),
        advice:
          "Start the database, or correct DATABASE_URL. Key, mail and upstreams could not be looked at: their settings lie in it.",
      },
    };
  }
}

export function bookChecks(db: Database, settings: BookSettings): CheckRow[] {
  return [
    { id: "database", look: () => speed(db) },
    { id: "schema", look: () => schema(db) },
    ...(db.kind === "postgres"
      ? [
          { id: "clock", look: () => clock(db, settings) },
          { id: "connections", look: () => connections(db) },
        ]
      : []),
    { id: "key", look: () => key(db, settings) },
    { id: "journal", look: () => journal(db, settings) },
    { id: "backup", look: () => backup(db, settings) },
  ];
}

async function speed(db: Database): Promise<Finding> {
  const tookMs: number[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const beganMs = performance.now();
    await db.orm.select({ one: sql`1` }).from(sql`(select 1) as t`);
    tookMs.push(performance.now() - beganMs);
  }
  const ms = Number((tookMs.toSorted((a, b) => a - b)[2] ?? 0).toFixed(2));
  const isSlow = db.kind === "postgres" && ms > SLOW_DATABASE_MS;
  const [row] =
    db.kind === "postgres"
      ? await rawQuery(db.orm, sql`select current_setting('server_version') as version`)
      : [];
  const name = db.kind === "postgres" ? `PostgreSQL ${row?.["version"]}` : "embedded SQLite";
  return {
    status: isSlow ? "warn" : "ok",
    text: `${name}, answers in ${ms} ms`,
    advice: "Run the database near the nodes: near an empty balance every call waits for it.",
    figures: { kind: db.kind, median_ms: ms },
  };
}

async function schema(db: Database): Promise<Finding> {
  const found = await schemaOf(db);
  const known = knownSchemas(db.kind);
  const newest = known.at(-1)?.version ?? 0;
  const figures = { version: found?.version ?? 0, known: newest };
  if (!found)
    return {
      status: "warn",
      text: "the database is empty",
      advice: "The first start makes the tables.",
      figures,
    };
  if (found.version > newest)
    return {
      status: "fail",
      text: `schema ${found.version} is newer than this program's ${newest}`,
      advice: "A newer release has been at work here: run that release.",
      figures,
    };
  if (!known.some(({ version, hash }) => version === found.version && hash === found.hash))
    return {
      status: "fail",
      text: `schema ${found.version} is of another build`,
      advice: "Run the build that made it, or begin with an empty DATA_DIR.",
      figures,
    };
  const isOld = found.version < newest;
  return {
    status: isOld ? "warn" : "ok",
    text: isOld
      ? `schema ${found.version}, this program's is ${newest}`
      : `schema ${found.version}, this program's`,
    advice: "The next start, or weir migrate, brings it up to date: make a backup first.",
    figures,
  };
}

async function clock(db: Database, { nowMs }: BookSettings): Promise<Finding> {
  const beforeMs = nowMs();
  const [row] = await rawQuery(db.orm, sql`select extract(epoch from clock_timestamp()) * 1000 as ms`);
  const afterMs = nowMs();
  const skewMs = Math.round((beforeMs + afterMs) / 2 - Number(row?.["ms"] ?? 0));
  const off = Math.abs(skewMs);
  return {
    status: off > SKEW_FAIL_MS ? "fail" : off > SKEW_WARN_MS ? "warn" : "ok",
    text: `this machine's clock is ${off} ms ${skewMs < 0 ? "behind" : "ahead of"} the database's`,
    advice: "Let a time service (chrony, systemd-timesyncd) set both clocks.",
    figures: { skew_ms: skewMs },
  };
}

async function connections(db: Database): Promise<Finding> {
  const [row] = await rawQuery(
    db.orm,
    sql`select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
      (select count(*) from pg_stat_activity where backend_type = 'client backend') as used`,
  );
  const [most, used] = [Number(row?.["most"] ?? 0), Number(row?.["used"] ?? 0)];
  return {
    status: most - used < 3 ? "fail" : used > most * 0.8 ? "warn" : "ok",
    text: `${used} of ${most} connections are taken`,
    advice: "Each process takes up to DATABASE_POOL + 1: raise max_connections, or stop what holds them.",
    figures: { used, most },
  };
}

async function key(db: Database, { dataDir, encryptionKey }: BookSettings): Promise<Finding> {
  const path = join(dataDir, KEY_FILE);
  const found = statSync(path, { throwIfNoEntry: false });
  const secret = keySecret(encryptionKey, dataDir);
  const from = encryptionKey === "" ? path : "ENCRYPTION_KEY";
  const proof = await internalRow(db, SEAL_CHECK_KEY).catch(() => undefined);
  if (proof === undefined) return { status: "ok", text: "nothing is sealed yet" };
  if (secret === "")
    return {
      status: "fail",
      text: `there is no encryption key: neither ENCRYPTION_KEY nor ${path}`,
      advice: "Put the key back that the database was sealed with: without it no stored API key opens.",
    };
  const fingerprint = keyFingerprint(secret);
  if ((await internalRow(db, ROTATION_KEY)) !== undefined)
    return {
      status: "fail",
      text: "a change of the encryption key has begun and not ended",
      advice: "Run weir rotate again with the same settings; it goes on where it stopped.",
    };
  if (!opensCheck(createSealer(secret), proof))
    return {
      status: "fail",
      text: `the key of ${from} (fingerprint ${fingerprint}) does not open this database`,
      advice: "Put the key back that the database was sealed with: without it no stored API key opens.",
      figures: { fingerprint },
    };
  const isOpen = encryptionKey === "" && found !== undefined && (found.mode & 0o077) !== 0;
  return {
    status: isOpen ? "warn" : "ok",
    text: `${from}, fingerprint ${fingerprint}, opens the database`,
    advice: `Others may read it: chmod 600 ${path}`,
    figures: { fingerprint },
  };
}

async function journal(db: Database, { dataDir }: BookSettings): Promise<Finding> {
  const nodeId = existsSync(dataDir) ? findNodeId(dataDir) : undefined;
  const stored = nodeId === undefined ? undefined : await findStorePosition(db, nodeId);
  if (!stored) return { status: "ok", text: "none yet" };
  const { findings } = recover(surveyAll(dataDir, stored), stored);
  const [first] = findings;
  if (first)
    return {
      status: "fail",
      text: `${first.sentence}${findings.length > 1 ? ` (and ${findings.length - 1} more)` : ""}`,
      advice:
        "The database was set back further than the journal reaches, or files are gone: weir journal check, enter and skip.",
      figures: { findings: findings.length },
    };
  const waiting = countWaiting(dataDir, stored);
  return {
    status: waiting > 1000 ? "warn" : "ok",
    text: waiting === 0 ? "the database has everything" : `${waiting} accepted entries wait for the database`,
    advice: "With the server running they are entered within a second; if they stay, see weir journal check.",
    figures: { waiting },
  };
}

async function backup(db: Database, { backupDir, dataDir, nowMs }: BookSettings): Promise<Finding> {
  const state = await backupState(db).catch(() => undefined);
  if (!state) return { status: "ok", text: "no tables yet" };
  const age = backupAge(state, Math.floor(nowMs() / 1000));
  const last =
    age === undefined ? "none was ever made" : `the last one is ${Math.floor(age / HOUR)} hours old`;
  const figures = { age_seconds: age ?? -1, bytes: state.bytes, failed: state.failedAt > 0 };
  if (backupDir === "")
    return {
      status: age === undefined || age > BACKUP_LATE_SECONDS ? "warn" : "ok",
      text: `BACKUP_DIR is not set, ${last}`,
      advice: "Set BACKUP_DIR, or run weir backup DIR by a timer; keep the encryption key elsewhere.",
      figures,
    };
  if (!isWritable(backupDir))
    return {
      status: "fail",
      text: `${backupDir} cannot be written to, ${last}`,
      advice: "Give the directory to the account that the server runs under.",
      figures,
    };
  if (state.failedAt > 0 || age === undefined || age > BACKUP_LATE_SECONDS)
    return {
      status: "warn",
      text: `${backupDir}: ${state.failedAt > 0 ? "the last try failed, " : ""}${last}`,
      advice: "The inbox says why; weir backup makes one now.",
      figures,
    };
  const isSameDisk = statSync(backupDir).dev === statSync(dataDir).dev && db.kind === "sqlite";
  return {
    status: isSameDisk ? "warn" : "ok",
    text: `${backupDir}: ${last}, ${sizeText(state.bytes)}`,
    advice:
      "It lies on the disk of the database and is lost with it: copy it elsewhere, or mount another disk there.",
    figures,
  };
}

function isWritable(path: string): boolean {
  try {
    // It is made at the first backup.
    accessSync(existsSync(path) ? path : join(path, ".."), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
