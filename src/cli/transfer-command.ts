// weir export --everything, weir import of such a file, and weir move: the whole site out, in, and over to the other database.
// Refuses what is not an empty target; a run that was killed goes on where it stopped when it is called again.
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { keyFingerprint, KEY_FILE } from "../core/kit/seal.ts";
import { syncDirectory, writeAtomically } from "../core/ledger/journal/files.ts";
import { KeyWrapError, unwrapKey, wrapKey } from "../core/kit/key-wrap.ts";
import { SQLITE_FILE } from "../db/connect.ts";
import { lockDataDir, prepareDataDir } from "../db/data-dir-lock.ts";
import { SchemaNotCurrent } from "../db/migrate.ts";
import { NoDatabase, openSnapshot } from "../db/snapshot.ts";
import { foldSqliteLog } from "../db/sqlite.ts";
import { exportLines } from "../transfer/export.ts";
import type { ExportOptions } from "../transfer/export.ts";
import { TransferRefused } from "../transfer/format.ts";
import type { Head } from "../transfer/format.ts";
import { textOf } from "../transfer/lines.ts";
import { bringIn, countRows, moveSite, refuseBusy, waitingIn } from "../transfer/move.ts";
import type { Transferred, TransferTarget } from "../transfer/move.ts";

export interface TransferContext {
  dataDir: string;
  databaseUrl: string;
  encryptionKey: string;
  /** KEY_PASSPHRASE. */
  keyPassphrase: string;
  version: string;
  /** DATA_DIR and those of its workers: where journals are. */
  directories: readonly string[];
  write: (text: string) => Promise<void>;
  say: (text: string) => void;
  /** Progress and refusals. */
  tell: (text: string) => void;
}

const EXPORT_USAGE = "usage: weir export --everything [--with-key] > FILE";
const MOVE_USAGE = `usage: weir move TO [--json]

TO is postgres://… of an empty database, or a directory that is to hold the embedded one. DATA_DIR and DATABASE_URL name the
source, which is only read; no server may run on either. Ends with 0: moved and proved equal; 1: refused or failed; 2: usage.
A run that was killed goes on where it stopped.`;
const IMPORT_USAGE =
  "usage: weir import FILE [--json], FILE of weir export --everything, or - for standard input";

/** Until it is whole the embedded database has this name: nobody serves half a site. */
const MOVING_FILE = `${SQLITE_FILE}.moving`;
const PROGRESS_MS = 2000;

/** The key in force, where it is at hand; "" where not. None is made. */
function keyAt({ encryptionKey, dataDir }: Pick<TransferContext, "encryptionKey" | "dataDir">): string {
  if (encryptionKey !== "") return encryptionKey;
  const path = join(dataDir, KEY_FILE);
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
}

async function optionsOf(context: TransferContext, withKey: boolean): Promise<ExportOptions> {
  const secret = keyAt(context);
  const fingerprint = secret === "" ? "" : keyFingerprint(secret);
  if (!withKey) return { release: context.version, key: { fingerprint } };
  if (secret === "")
    throw new TransferRefused("--with-key: there is no encryption key in DATA_DIR or ENCRYPTION_KEY");
  const wrapped = await wrapKey(secret, context.keyPassphrase);
  return { release: context.version, key: { fingerprint, wrapped } };
}

/** Sentences for the operator, and the code to end with; anything else is a fault of the program. */
async function told(context: TransferContext, name: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    const isSaid =
      error instanceof TransferRefused ||
      error instanceof KeyWrapError ||
      error instanceof NoDatabase ||
      error instanceof SchemaNotCurrent;
    if (!isSaid) throw error;
    context.tell(`weir ${name}: ${error.message}`);
    return 1;
  }
}

export function exportEverything(context: TransferContext, args: readonly string[]): Promise<number> {
  const rest = args.filter((arg) => arg !== "--everything" && arg !== "--with-key");
  if (rest.length > 0) {
    context.tell(EXPORT_USAGE);
    return Promise.resolve(2);
  }
  return told(context, "export", async () => {
    const options = await optionsOf(context, args.includes("--with-key"));
    const snapshot = await openSnapshot(context);
    try {
      const waiting = await waitingIn(snapshot, context.directories);
      if (waiting > 0)
        context.tell(
          `${waiting} settled calls stand in journals and not in the tables yet: they are not in this export.`,
        );
      for await (const { text } of exportLines(snapshot, options)) await context.write(text);
      if (options.key.wrapped) context.tell("The encryption key is in it, under the passphrase.");
      else
        context.tell(
          `The encryption key is not in it: without the key with the fingerprint ${options.key.fingerprint} nothing that is sealed opens.`,
        );
      return 0;
    } finally {
      await snapshot.close();
    }
  });
}

/** A line now and then: how many rows of how many, and how long the rest will take. */
function progressOf(tell: (text: string) => void, total: number): (table: string, rows: number) => void {
  const startedMs = performance.now();
  let lastMs = startedMs;
  let done = 0;
  return (table, rows) => {
    if (rows === 0) return tell(table);
    done += rows;
    const nowMs = performance.now();
    if (nowMs - lastMs < PROGRESS_MS) return;
    lastMs = nowMs;
    const left = Math.ceil((((nowMs - startedMs) / done) * Math.max(0, total - done)) / 1000);
    tell(total === 0 ? `${table}: ${done} rows` : `${table}: ${done} of ${total} rows, about ${left} s left`);
  };
}

interface Destination {
  target: TransferTarget;
  /** The embedded file takes its name. */
  keep: () => void;
  release: () => void;
}

/** Throws TransferRefused where there is a database already. `isLocked`: this process has the directory's lock. */
function destinationOf(to: { dataDir: string; databaseUrl: string }, isLocked: boolean): Destination {
  if (to.databaseUrl !== "")
    return { target: { ...to, file: SQLITE_FILE }, keep: () => undefined, release: () => undefined };
  const { dataDir } = to;
  prepareDataDir(dataDir);
  const lock = isLocked ? undefined : lockDataDir(dataDir);
  const release = () => lock?.release();
  const final = join(dataDir, SQLITE_FILE);
  if (existsSync(final)) {
    release();
    throw new TransferRefused(`${final} is there already: name a directory without a database`);
  }
  return {
    target: { ...to, file: MOVING_FILE },
    keep() {
      const draft = join(dataDir, MOVING_FILE);
      if (!foldSqliteLog(draft))
        throw new TransferRefused(
          `${draft} is whole and proved, and another program holds it: end that one, then run the same again`,
        );
      for (const end of ["-wal", "-shm"]) rmSync(draft + end, { force: true });
      renameSync(draft, final);
      syncDirectory(dataDir);
    },
    release,
  };
}

function report(context: TransferContext, { head, rows, books }: Transferred, isJson: boolean): void {
  const { figures, differences } = books;
  if (isJson) {
    context.say(JSON.stringify({ release: head.release, rows, books: figures, differences }, null, 2));
    return;
  }
  const filled = Object.entries(rows).filter(([, count]) => count > 0);
  context.say(`Rows: ${filled.map(([name, count]) => `${name} ${count}`).join(", ")}.`);
  context.say(
    `Books: balances ${figures.balance}, used ${figures.used} in ${figures.requests} calls; keys used ${figures.keys_used}, ` +
      `channels used ${figures.channels_used}; credits ${figures.credits}; log rows ${figures.log_rows} of ${figures.log_quota}.`,
  );
  context.say(
    differences.length === 0
      ? "Audit: no difference, as before. Every row is the same, byte by byte."
      : `Audit: ${differences.length} differences, the same as before. Every row is the same, byte by byte.`,
  );
}

/** Done when the site is proved: a refused one leaves no key behind. */
type KeepKey = () => void;

/** Where the embedded database goes into another directory, its key goes along. Throws TransferRefused for another key. */
function carryKey(context: TransferContext, dataDir: string): KeepKey {
  const from = join(context.dataDir, KEY_FILE);
  const to = join(dataDir, KEY_FILE);
  const nothing = () => undefined;
  if (context.encryptionKey !== "" || resolve(from) === resolve(to) || !existsSync(from)) return nothing;
  const secret = readFileSync(from, "utf8").trim();
  if (existsSync(to)) {
    if (readFileSync(to, "utf8").trim() === secret) return nothing;
    throw new TransferRefused(`${to} is another key than the site is sealed with: move it away`);
  }
  return () => {
    writeAtomically(dataDir, KEY_FILE, `${secret}\n`);
    context.say(`The encryption key was copied to ${to}.`);
  };
}

export function moveCommand(context: TransferContext, args: readonly string[]): Promise<number> {
  const [to, ...more] = args.filter((arg) => arg !== "--json");
  if (to === undefined || more.length > 0 || to.startsWith("-")) {
    context.tell(MOVE_USAGE);
    return Promise.resolve(2);
  }
  return told(context, "move", async () => {
    const { dataDir, databaseUrl } = context;
    const isServer = /^postgres(ql)?:\/\//.test(to);
    const place = isServer ? { dataDir, databaseUrl: to } : { dataDir: resolve(to), databaseUrl: "" };
    if (isServer && to === databaseUrl) throw new TransferRefused("source and target are the same database");
    prepareDataDir(dataDir);
    const lock = lockDataDir(dataDir);
    try {
      const source = await openSnapshot(context);
      try {
        await refuseBusy(source, context.directories);
        const { target, keep, release } = destinationOf(place, place.dataDir === resolve(dataDir));
        try {
          const how = {
            options: await optionsOf(context, false),
            tell: progressOf(context.tell, await countRows(source)),
          };
          const onProved = isServer ? undefined : carryKey(context, place.dataDir);
          const moved = await moveSite(source, target, { ...how, onProved });
          keep();
          report(context, moved, args.includes("--json"));
        } finally {
          release();
        }
      } finally {
        await source.close();
      }
    } finally {
      lock.release();
    }
    context.say(
      isServer
        ? "Set DATABASE_URL to it before the next start; the source is as it was."
        : `Start with DATA_DIR=${place.dataDir} and without DATABASE_URL; the source is as it was.`,
    );
    return 0;
  });
}

/** Whether what stands behind a word of `weir import` is such a file. */
export async function isExport(path: string): Promise<boolean> {
  if (path === "-") return true;
  const file = Bun.file(path);
  if (!(await file.exists())) return false;
  return (await file.slice(0, 16).text()).startsWith('{"weir":"export"');
}

/** Opens with what is at hand, or with the passphrase: then the key file is to be written. Throws TransferRefused for another key. */
async function keyFor(context: TransferContext, { key }: Head): Promise<KeepKey> {
  const own = keyAt(context);
  if (own !== "") {
    if (key.fingerprint !== "" && keyFingerprint(own) !== key.fingerprint)
      throw new TransferRefused(
        `the export is sealed with the key ${key.fingerprint}, and ENCRYPTION_KEY or DATA_DIR/${KEY_FILE} is ${keyFingerprint(own)}`,
      );
    return () => undefined;
  }
  if (!key.wrapped || context.keyPassphrase === "") {
    context.tell(
      `Put the key with the fingerprint ${key.fingerprint} into ENCRYPTION_KEY or DATA_DIR/${KEY_FILE} before the first start` +
        (key.wrapped ? ", or set KEY_PASSPHRASE: it is in the export." : "."),
    );
    return () => undefined;
  }
  const secret = await unwrapKey(key.wrapped, context.keyPassphrase);
  return () => {
    writeAtomically(context.dataDir, KEY_FILE, `${secret}\n`);
    context.say(`The encryption key of the export stands in ${join(context.dataDir, KEY_FILE)}.`);
  };
}

export function importExport(context: TransferContext, args: readonly string[]): Promise<number> {
  const [path, ...more] = args.filter((arg) => arg !== "--json");
  if (path === undefined || more.length > 0) {
    context.tell(IMPORT_USAGE);
    return Promise.resolve(2);
  }
  return told(context, "import", async () => {
    const { dataDir, databaseUrl } = context;
    prepareDataDir(dataDir);
    const lock = lockDataDir(dataDir);
    try {
      const { target, keep } = destinationOf({ dataDir, databaseUrl }, true);
      const file = path === "-" ? Bun.stdin : Bun.file(path);
      let keepKey: KeepKey | undefined;
      const entered = await bringIn(textOf(file.stream()), target, {
        options: await optionsOf(context, false),
        tell: progressOf(context.tell, 0),
        judge: async (head) => void (keepKey = await keyFor(context, head)),
        onProved: () => keepKey?.(),
      });
      keep();
      report(context, entered, args.includes("--json"));
    } finally {
      lock.release();
    }
    return 0;
  });
}
