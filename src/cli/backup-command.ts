// weir backup and weir restore: a whole, proved copy of the books beside a running server, and the way back.
// Refuses by name what is cut, altered, of another key or of a newer release; nothing is changed then.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { makeBackup } from "../core/backup/copy.ts";
import type { MadeBackup } from "../core/backup/copy.ts";
import { DUMP_FILE, dumpLine, restoreLine } from "../core/backup/postgres-tools.ts";
import { BackupRefused, refusalText } from "../core/backup/refusal.ts";
import type { Refusal } from "../core/backup/refusal.ts";
import { checkBundle, restoreBundle } from "../core/backup/restore.ts";
import type { ProvedBundle } from "../core/backup/restore.ts";
import { KEY_FILE, keySecret } from "../core/kit/seal.ts";
import type { Language } from "../shared/enums.ts";

export interface BackupContext {
  dataDir: string;
  databaseUrl: string;
  encryptionKey: string;
  keyPassphrase: string;
  /** BACKUP_DIR: where backups go that name no other place. */
  backupDir: string;
  language: Language;
  version: string;
  nowMs: () => number;
  /** The data directory and its workers': each has a journal. */
  journalDirs: readonly string[];
  /** Brings what waits in the journal into the tables where no server runs that would. */
  enterWaiting: () => Promise<void>;
  say: (text: string) => void;
  complain: (text: string) => void;
}

const BACKUP_USAGE = "usage: weir backup [DIR] [--with-key] [--prune[=ZONE]] [--json]";
const RESTORE_USAGE = "usage: weir restore BUNDLE [--check | --journal OLD_DATA_DIR] [--key FILE] [--json]";

/** Answers the exit code: 0 whole, 1 refused or with findings, 2 called wrongly. */
export async function backupCommand(context: BackupContext, args: readonly string[]): Promise<number> {
  const { say, complain, dataDir, databaseUrl } = context;
  const flags = args.filter((arg) => arg.startsWith("-"));
  const [named, ...more] = args.filter((arg) => !arg.startsWith("-"));
  const prune = flags.find((flag) => /^--prune(=|$)/.test(flag));
  const isKnown = flags.every((flag) => flag === prune || flag === "--with-key" || flag === "--json");
  const dir = named ?? context.backupDir;
  if (!isKnown || more.length > 0 || dir === "") {
    complain(dir === "" ? `${BACKUP_USAGE}\nName a directory, or set BACKUP_DIR.` : BACKUP_USAGE);
    return 2;
  }
  return told(context, flags.includes("--json"), async () => {
    const secret = keyOf(context);
    const withKey = flags.includes("--with-key");
    if (withKey && context.keyPassphrase === "") throw new BackupRefused("no_passphrase");
    await context.enterWaiting();
    const made = await makeBackup({
      dataDir,
      databaseUrl,
      dir: resolve(dir),
      journalDirs: context.journalDirs,
      secret,
      ...(withKey ? { passphrase: context.keyPassphrase } : {}),
      ...(prune === undefined ? {} : { prunesIn: prune.split("=")[1] || "UTC" }),
      version: context.version,
      nowMs: context.nowMs,
    });
    const { findings } = made.manifest;
    return {
      findings,
      json: { path: made.path, removed: made.removed, manifest: made.manifest },
      text: () => sayMade(made, say),
    };
  });
}

function keyOf({ encryptionKey, dataDir }: BackupContext): string {
  const found = keySecret(encryptionKey, dataDir);
  if (found === "") throw new BackupRefused("no_database", { path: dataDir });
  return found;
}

function sayMade({ path, manifest, removed }: MadeBackup, say: (text: string) => void): void {
  const { database, counts, key } = manifest;
  const size = `${(database.bytes / 1024 / 1024).toFixed(1)} MiB`;
  const inside = `${counts.users} users, ${counts.tokens} keys, ${counts.channels} channels, ${counts.logs} log rows`;
  if (database.file === "") {
    const file = join(path, DUMP_FILE);
    say(`Manifest in ${path}: ${inside}. pg_dump is not installed here; on a machine that has it:`);
    say(`  ${dumpLine(file)}`);
    say("A dump that is made this way is not checked, and does not count as the last backup.");
  } else say(`Backup in ${path}: ${size}, ${inside}; read again and checked.`);
  if (database.file === DUMP_FILE) {
    say("Back into an empty database by weir restore, or by PostgreSQL's own program:");
    say(`  ${restoreLine(join(path, DUMP_FILE))}`);
  }
  if (removed > 0) say(`Removed ${removed} older ${removed === 1 ? "backup" : "backups"}.`);
  say(
    key.wrapped
      ? `The encryption key (fingerprint ${key.fingerprint}) is in it, under the passphrase.`
      : `The encryption key is not in it. Keep a copy elsewhere: without the key with the fingerprint ${key.fingerprint} nothing opens.`,
  );
}

/** Answers the exit code, as above. */
export async function restoreCommand(context: BackupContext, args: readonly string[]): Promise<number> {
  const { complain, dataDir, databaseUrl, encryptionKey, keyPassphrase } = context;
  const rest = [...args];
  const at = rest.indexOf("--key");
  const [, keyFile = ""] = at < 0 ? [] : rest.splice(at, 2);
  const journalAt = rest.indexOf("--journal");
  const [, journal = ""] = journalAt < 0 ? [] : rest.splice(journalAt, 2);
  const flags = rest.filter((arg) => arg.startsWith("-"));
  const [bundle, ...more] = rest.filter((arg) => !arg.startsWith("-"));
  const isKnown = flags.every((flag) => flag === "--check" || flag === "--json");
  const isCheck = flags.includes("--check");
  const isCut = (at >= 0 && keyFile === "") || (journalAt >= 0 && (journal === "" || isCheck));
  if (!isKnown || bundle === undefined || more.length > 0 || isCut) {
    complain(RESTORE_USAGE);
    return 2;
  }
  return told(context, flags.includes("--json"), async () => {
    const own = join(dataDir, KEY_FILE);
    const sources = {
      // A check on the machine that made it needs nobody to fetch the key.
      file: keyFile || (isCheck && encryptionKey === "" && existsSync(own) ? own : ""),
      fromEnv: encryptionKey,
      passphrase: keyPassphrase,
    };
    const from = resolve(bundle);
    const carried = journal === "" ? {} : { journalDir: resolve(journal) };
    const proved = isCheck
      ? await checkBundle(from, sources)
      : await restoreBundle(from, { dataDir, databaseUrl, ...carried }, sources);
    return {
      // What was wrong in the books before the backup does not keep anybody from having them back.
      findings: isCheck ? proved.findings : [],
      json: { restored: !isCheck, manifest: proved.manifest, findings: proved.findings },
      text: () => sayProved(context, proved, { isCheck, hasJournal: journal !== "" }),
    };
  });
}

function sayProved(
  context: BackupContext,
  { manifest, findings }: ProvedBundle,
  { isCheck, hasJournal }: { isCheck: boolean; hasJournal: boolean },
): void {
  const { say, language, dataDir, nowMs } = context;
  const { counts, createdAt, newestLogAt } = manifest;
  const hours = Math.max(0, Math.floor((nowMs() / 1000 - createdAt) / 3600));
  const newest = newestLogAt === 0 ? "no log rows" : `newest log row ${timeText(newestLogAt)}`;
  say(
    `Backup of ${timeText(createdAt)}, ${hours} hours old: ${counts.users} users, ${counts.tokens} keys, ` +
      `${counts.channels} channels, ${counts.logs} log rows, ${newest}.`,
  );
  if (isCheck) {
    say(
      manifest.database.kind === "postgres"
        ? "The dump is whole and its contents can be listed; the books were checked when it was made."
        : findings.length === 0
          ? "It is whole: file, schema, key, secrets and sums."
          : "The file is whole.",
    );
    return;
  }
  for (const finding of findings) say(`Note: ${refusalText(finding, language)}.`);
  say(
    `Restored into ${manifest.database.kind === "postgres" ? "the database" : dataDir}. Start the server there.`,
  );
  say(
    hasJournal
      ? "People sign in again. The start enters the calls that the journal has beyond the backup, and names what it does not reach: see weir journal check."
      : "People sign in again. Calls after the moment of the backup are not in it: stop the old server, if it still runs.",
  );
}

const timeText = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");

interface Outcome {
  findings: readonly Refusal[];
  json: Record<string, unknown>;
  text: () => void;
}

/** One form for both commands: a text for people, or one JSON object on standard output. */
async function told(
  { say, complain, language }: BackupContext,
  isJson: boolean,
  work: () => Promise<Outcome>,
): Promise<number> {
  try {
    const { findings, json, text } = await work();
    const code = findings.length === 0 ? 0 : 1;
    if (isJson) say(JSON.stringify({ ok: code === 0, ...json, findings }));
    else {
      text();
      for (const finding of findings) complain(`${refusalText(finding, language)}.`);
    }
    return code;
  } catch (error) {
    if (!(error instanceof BackupRefused)) throw error;
    const { code, params } = error;
    if (isJson) say(JSON.stringify({ ok: false, refused: { code, params }, message: error.message }));
    else complain(`${refusalText({ code, params }, language)}.`);
    return 1;
  }
}
