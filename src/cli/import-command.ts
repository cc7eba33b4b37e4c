// `weir import SOURCE`: moves a site of one-api or new-api into an empty installation.
// Exit codes: 0 imported, or looked at; 1 refused, failed, or another site than its source; 2 usage. A second run goes on where a killed one stopped.
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import packageJson from "../../package.json" with { type: "json" };
import { systemClock } from "../core/kit/clock.ts";
import { encryptionSecret, KEY_FILE, keySecret } from "../core/kit/seal.ts";
import type { Sealer } from "../core/kit/seal.ts";
import { settleIn } from "../core/ledger/installation.ts";
import { syncDirectory } from "../core/ledger/journal/files.ts";
import { openSealer } from "../core/options/seal-keys.ts";
import { connect, connectBeside, SQLITE_FILE } from "../db/connect.ts";
import { lockDataDir, prepareDataDir } from "../db/data-dir-lock.ts";
import type { Database } from "../db/database.ts";
import { foldSqliteLog } from "../db/sqlite.ts";
import type { ImportSettings, Progress } from "../import/context.ts";
import { parseSource, sourceName, SourceRefused } from "../import/dsn.ts";
import { reportLines, verifyLines } from "../import/report-text.ts";
import type { ImportReport } from "../import/report.ts";
import { runImport } from "../import/run.ts";
import type { ImportInput } from "../import/run.ts";
import { openSource } from "../import/source.ts";
import { isEmptyTarget, readState, refuseServed } from "../import/state.ts";
import { verifyImport } from "../import/verify.ts";
import type { VerifyReport } from "../import/verify.ts";
import { isQuota } from "../shared/money.ts";

export interface ImportCommand {
  args: string[];
  dataDir: string;
  databaseUrl: string;
  encryptionKey: string;
  startsNew: boolean;
  say: (text: string) => void;
  /** Progress and refusals; the report alone goes to `say`. */
  tell: (text: string) => void;
}

const USAGE = `usage: weir import SOURCE [--dry-run] [--json] [--logs SOURCE] [--options FILE] [--log-days N]
                  [--unlimited-plan QUOTA] [--logs-first | --finish | --verify]

SOURCE is a SQLite file, user:password@tcp(host:3306)/database of MySQL or MariaDB, or postgres://… of one-api or new-api;
it is only read. --logs: its database of logs, where it had one of its own. --options: the answer of GET /api/option/ of
the old site. --verify compares an import with its source, before the site is opened. --logs-first copies the log while the old site runs; stop that one, then --finish brings the rest.
Ends with 0: done; 1: refused or failed; 2: usage. A run that was killed goes on where it stopped.`;

class UsageError extends Error {}

const PROGRESS_MS = 2000;
/** Until it is whole the embedded database has this name: nobody serves half a site. */
const IMPORTING_FILE = `${SQLITE_FILE}.importing`;

interface Asked {
  source: string;
  logs: string | undefined;
  isJson: boolean;
  /** Nothing is imported: what was is compared. */
  isVerify: boolean;
  settings: ImportSettings;
}

function wholeIn(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || !isQuota(value) || value < 1 || value > most)
    throw new UsageError(`--${name} takes a whole number from 1 to ${most}`);
  return value;
}

/** `{data: [{key, value}]}`, or the list or an object alone. */
function optionTexts(file: string): ReadonlyMap<string, string> {
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new SourceRefused(
      `${file} cannot be read as JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  const data = typeof read === "object" && read !== null && "data" in read ? read.data : read;
  const entries: unknown[] = Array.isArray(data)
    ? data
    : Object.entries(data ?? {}).map(([key, value]) => ({ key, value }));
  const texts = new Map<string, string>();
  for (const entry of entries) {
    const { key, value } = (entry ?? {}) as { key?: unknown; value?: unknown };
    if (typeof key === "string" && value !== null && value !== undefined)
      texts.set(key, typeof value === "string" ? value : JSON.stringify(value));
  }
  if (texts.size === 0)
    throw new SourceRefused(`${file} is no answer of GET /api/option/: it has no options`);
  return texts;
}

const MOST_DAYS = 36_500;

function asked(args: string[]): Asked {
  let parsed;
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: {
        "dry-run": { type: "boolean" },
        json: { type: "boolean" },
        logs: { type: "string" },
        options: { type: "string" },
        "log-days": { type: "string" },
        "unlimited-plan": { type: "string" },
        "logs-first": { type: "boolean" },
        finish: { type: "boolean" },
        verify: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  const [source] = positionals;
  if (source === undefined || positionals.length > 1) throw new UsageError("import takes one SOURCE");
  const runs = [values["logs-first"], values.finish, values.verify, values["dry-run"]].filter(Boolean);
  if (runs.length > 1)
    throw new UsageError("--dry-run, --logs-first, --finish and --verify are runs of their own");
  return {
    source,
    logs: values.logs,
    isJson: values.json === true,
    isVerify: values.verify === true,
    settings: {
      isDry: values["dry-run"] === true,
      part: values["logs-first"] ? "logs" : values.finish ? "rest" : "all",
      logDays: wholeIn("log-days", values["log-days"], MOST_DAYS) ?? 0,
      unlimitedPlanQuota: wholeIn("unlimited-plan", values["unlimited-plan"], Number.MAX_SAFE_INTEGER),
      optionTexts: values.options === undefined ? undefined : optionTexts(values.options),
    },
  };
}

/** One line now and then; a step that begins is always told. */
function teller(tell: (text: string) => void): (progress: Progress) => void {
  let lastMs = -Infinity;
  let lastStep = "";
  return ({ step, done, total, leftSeconds }) => {
    const nowMs = performance.now();
    if (step === lastStep && nowMs - lastMs < PROGRESS_MS) return;
    lastMs = nowMs;
    lastStep = step;
    const left = leftSeconds === undefined ? "" : `, about ${leftSeconds} s left`;
    tell(`${step}: ${done} of ${total} rows${left}`);
  };
}

/** Where it goes: a database that takes the place of the embedded one at the end, or the one that DATABASE_URL names. */
async function openTarget(command: ImportCommand): Promise<{ db: Database; keep: () => void }> {
  const { dataDir, databaseUrl } = command;
  if (databaseUrl !== "") return { db: await connect(command), keep: () => undefined };
  const final = join(dataDir, SQLITE_FILE);
  const draft = join(dataDir, IMPORTING_FILE);
  if (existsSync(final)) {
    const before = await connect(command);
    // Begun by the setup screen, on the database that it serves: it goes on there.
    const state = await readState(before);
    if (state && state.stage !== "done") return { db: before, keep: () => undefined };
    const isEmpty = await isEmptyTarget(before);
    // Its write-ahead log is folded in now: the file alone is the whole of it.
    await before.close();
    if (!isEmpty)
      throw new SourceRefused(
        `${final} has accounts or a log of its own: an import goes into an empty installation`,
      );
    // Whoever looked at the empty site has left its numbers and secrets in it.
    if (!existsSync(draft)) copyFileSync(final, draft);
  }
  return {
    db: await connect(command, undefined, undefined, IMPORTING_FILE),
    keep() {
      if (!foldSqliteLog(draft))
        throw new SourceRefused(`${draft} is held by another program: end it, then run the import again`);
      for (const path of [final, draft])
        for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
      renameSync(draft, final);
      syncDirectory(dataDir);
    },
  };
}

/** What is read, and how it is told. */
type Reading = Omit<ImportInput, "into">;

/** Into the database that the command names, under the lock of its directory. */
async function importInto(command: ImportCommand, reading: Reading): Promise<ImportReport> {
  const { dataDir, databaseUrl, startsNew } = command;
  prepareDataDir(dataDir);
  const lock = lockDataDir(dataDir);
  try {
    const { db, keep } = await openTarget(command);
    let report: ImportReport;
    try {
      await refuseServed(db);
      await settleIn(db, dataDir, startsNew);
      const seal = await sealerOf(command, db);
      // Killed between its last batch and the name of its file: nothing is left to be read.
      const state = await readState(db);
      report =
        databaseUrl === "" && state?.stage === "done" && state.report
          ? state.report
          : await runImport({ ...reading, into: { db, seal, version: packageJson.version } });
    } finally {
      await db.close();
    }
    if (reading.settings.part !== "logs") keep();
    return report;
  } finally {
    lock.release();
  }
}

function sealerOf({ dataDir, encryptionKey }: ImportCommand, db: Database): Promise<Sealer> {
  const now = Math.floor(systemClock.nowMs() / 1000);
  return openSealer(db, encryptionSecret(encryptionKey, dataDir), now);
}

/** The server may be running: nothing is written. */
async function verifySite(command: ImportCommand, { source, logs = source }: Reading): Promise<VerifyReport> {
  const { dataDir, databaseUrl } = command;
  if (databaseUrl === "" && !existsSync(join(dataDir, SQLITE_FILE)))
    throw new SourceRefused(`there is no site in ${dataDir}: import one first, or set DATA_DIR`);
  // Nor are its tables changed by another release's program.
  const db = await connectBeside(command, () => lockDataDir(dataDir).release());
  try {
    const secret = keySecret(command.encryptionKey, dataDir);
    if (secret === "")
      throw new SourceRefused(
        `there is no encryption key: neither ENCRYPTION_KEY nor ${join(dataDir, KEY_FILE)}`,
      );
    const seal = await openSealer(db, secret, Math.floor(systemClock.nowMs() / 1000));
    return await verifyImport({ source, logs, db, seal });
  } finally {
    await db.close();
  }
}

async function runAsked(command: ImportCommand, options: Asked): Promise<number> {
  const { settings, isJson, isVerify } = options;
  const { say, tell } = command;
  const place = parseSource(options.source);
  const source = await openSource(place);
  const logs = options.logs === undefined ? undefined : await openSource(parseSource(options.logs));
  const reading: Reading = { source, logs, settings, clock: systemClock, onProgress: teller(tell) };
  const answer = (report: object, lines: string[]) =>
    say(isJson ? JSON.stringify(report, null, 2) : lines.join("\n"));
  tell(`reading ${sourceName(place)}`);
  try {
    if (isVerify) {
      const report = await verifySite(command, reading);
      answer(report, verifyLines(report, "en"));
      return report.differenceCount + report.auditDifferences === 0 ? 0 : 1;
    }
    const report = settings.isDry
      ? await runImport({ ...reading, into: undefined })
      : await importInto(command, reading);
    answer(report, reportLines(report, "en"));
    return 0;
  } finally {
    await source.close();
    await logs?.close();
  }
}

export async function importCommand(command: ImportCommand): Promise<number> {
  try {
    return await runAsked(command, asked(command.args));
  } catch (error) {
    if (error instanceof UsageError) {
      command.tell(`${error.message}\n\n${USAGE}`);
      return 2;
    }
    if (!(error instanceof SourceRefused)) throw error;
    command.tell(`weir import: ${error.message}`);
    return 1;
  }
}
