// The subcommands of the binary: serve (default), audit, settle, journal, export, plan, apply, backup, restore, import, move,
// doctor, health, rotate, rescue, migrate, licenses, version.
// Refuses unknown subcommands with the list of the known ones.
import { ValkeyRefuses } from "./db/valkey.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { createApp, createServices } from "./app.ts";
import { workerDirsIn } from "./cluster/directories.ts";
import { audit, formatAudit } from "./core/ledger/audit.ts";
import { forgetMonths } from "./core/ledger/audit-months.ts";
import {
  NodeIdUnusable,
  refuseLostFile,
  TransferUnfinished,
  WouldStartNew,
} from "./core/ledger/installation.ts";
import { journalCommand } from "./core/ledger/journal/command.ts";
import { JournalDamaged } from "./core/ledger/journal/journal.ts";
import { createLogger } from "./core/kit/logger.ts";
import { NodeTaken } from "./core/ledger/node-lease.ts";
import { internalRow, RotationUnfinished, WrongEncryptionKey } from "./core/options/seal-keys.ts";
import { ClockWrong } from "./core/site/clock-check.ts";
import { prepareRescue } from "./core/users/rescue.ts";
import { connect, connectBeside, DatabaseUnreachable, openAsIs, SQLITE_FILE } from "./db/connect.ts";
import { DatabaseBusy } from "./db/database.ts";
import type { Database } from "./db/database.ts";
import {
  DataDirInUse,
  DataDirUnusable,
  holdDirectory,
  lockDataDir,
  prepareDataDir,
} from "./db/data-dir-lock.ts";
import { SchemaTooNew, SchemaUnknown } from "./db/migrate.ts";
import { EnvError, readEnv, readVariables } from "./env.ts";
import type { Env } from "./env.ts";
import { ImportUnfinished } from "./import/state.ts";
import { serve } from "./serve.ts";
import { settleJournals, waitingCalls } from "./settle.ts";

const COMMANDS: Record<
  string,
  { about: string; run: (env: Env, args: string[]) => Promise<number | undefined> }
> = {
  serve: {
    about: "serve the gateway and the console (default)",
    run: async (env) => {
      if (env.worker === undefined && env.databaseUrl !== "") await settleJournals(env, false);
      const services = await createServices(env);
      await serve(env, services, await createApp(services));
      return undefined;
    },
  },
  audit: {
    about:
      "[--full | --forget]: recompute every sum of the books and print each difference; closed months of the log too, or anew",
    run: async (env, args) => {
      const [how, ...more] = args;
      if (more.length > 0 || (how !== undefined && how !== "--full" && how !== "--forget")) {
        console.error("usage: weir audit [--full | --forget]");
        return 2;
      }
      const db = await openBeside(env);
      if (how === "--forget") await forgetMonths(db);
      const report = await audit(db, { isFull: how !== undefined });
      console.log(formatAudit(report));
      const waiting = await waitingCalls(db, env.dataDir);
      if (waiting > 0)
        console.log(
          `${waiting} accepted entries stand in the journal; the running server or the next start enters them.`,
        );
      await db.close();
      return report.differences.length === 0 ? 0 : 1;
    },
  },
  settle: {
    about: "enter what the journals of the directory and of its workers hold, server stopped",
    run: async (env) => {
      await settleJournals(env, true);
      console.log("The database has everything that the journals held.");
      return 0;
    },
  },
  journal: {
    about:
      "show | check | enter FILE | skip 101-150: what the journal has and the books do not, server stopped",
    run: (env, args) =>
      withStoppedServer(env, async (db) => {
        // What changes something is said of one directory: a worker's is named by DATA_DIR.
        const workers = args[0] === "show" || args[0] === "check" ? workerDirsIn(env.dataDir) : [];
        let code = 0;
        for (const dataDir of [env.dataDir, ...workers]) {
          if (workers.length > 0) console.log(`${dataDir}:`);
          const said = { db, dataDir, say: (line: string) => console.log(line) };
          code = Math.max(code, await journalCommand(said, args));
        }
        return code;
      }),
  },
  export: {
    about:
      "print the settings of the site as a file: prices, groups, options, channels, nothing secret; --everything: all there is, as lines",
    run: (env, args) =>
      args.includes("--everything") ? transfer(env, "export", args) : settings(env, "export", args),
  },
  plan: {
    about: "FILE: what applying such a file would change; ends with 3 where something would",
    run: (env, args) => settings(env, "plan", args),
  },
  apply: {
    about: "FILE [--plan HASH]: make the site as the file says, all of it or nothing",
    run: (env, args) => settings(env, "apply", args),
  },
  backup: {
    about:
      "[DIR] [--with-key] [--prune] [--json]: a whole, checked copy of the books, beside a running server too",
    run: (env, args) => backup(env, "backup", args),
  },
  restore: {
    about:
      "BUNDLE [--check] [--journal DIR] [--key FILE] [--json]: such a copy back into an empty DATA_DIR, or only checked",
    run: (env, args) => backup(env, "restore", args),
  },
  import: {
    about:
      "SOURCE [--dry-run]: move a site of one-api or new-api, or an export of everything, into an empty installation",
    run: (env, args) => importSite(env, args),
  },
  doctor: {
    about:
      "[--json]: look at settings, disk, database, key, mail and upstreams, and say what to do; changes nothing",
    run: (env, args) => doctor(env, args),
  },
  health: {
    about:
      "[--ready]: ask the server on this machine whether it lives (or takes calls); for supervisors, exit 0 or 1",
    run: (env, args) => health(env, args),
  },
  move: {
    about: "TO: the whole site into an empty PostgreSQL or directory, proved equal; server stopped",
    run: (env, args) => transfer(env, "move", args),
  },
  rotate: {
    about:
      "[--session [--now]]: a new encryption key (NEW_ENCRYPTION_KEY), or session secret, server stopped",
    run: (env, args) => withStoppedServer(env, async (db) => rotate(env, db, args)),
  },
  rescue: {
    about: "print a link that signs root in, once, within ten minutes; the server may be running",
    run: (env) => printRescue(env),
  },
  migrate: {
    about: "bring the database to the current schema and end",
    run: async (env) => {
      await (await openBeside(env)).close();
      console.log("The database has the current schema.");
      return 0;
    },
  },
  licenses: { about: "[--texts | --json]: what of others is in this program, and its terms", run: licenses },
  licences: { about: "the same", run: licenses },
  version: {
    about: "print the version",
    run: async () => {
      console.log(packageJson.version);
      return 0;
    },
  },
};

/** What is in the old site, brought over; loaded where it is asked for. */
async function importSite(env: Env, args: string[]): Promise<number> {
  const { isExport } = await import("./cli/transfer-command.ts");
  const named = args.find((arg) => arg !== "--json");
  if (named !== undefined && (await isExport(named))) return transfer(env, "import", args);
  const { importCommand } = await import("./cli/import-command.ts");
  return importCommand({
    ...env,
    args,
    say: (text) => console.log(text),
    tell: (text) => console.error(text),
  });
}

/** All there is, as lines or into another database; loaded where it is asked for. */
async function transfer(env: Env, verb: "export" | "import" | "move", args: string[]): Promise<number> {
  const { exportEverything, importExport, moveCommand } = await import("./cli/transfer-command.ts");
  const out = Bun.stdout.writer();
  const run = { export: exportEverything, import: importExport, move: moveCommand }[verb];
  return run(
    {
      ...env,
      version: packageJson.version,
      directories: [env.dataDir, ...workerDirsIn(env.dataDir)],
      async write(text) {
        await out.write(text);
        await out.flush();
      },
      say: (text) => console.log(text),
      tell: (text) => console.error(text),
    },
    args,
  );
}

async function rotate(env: Env, db: Database, args: string[]): Promise<number> {
  const { rotateCommand, RotateError } = await import("./cli/rotate-command.ts");
  const nowSeconds = Math.floor(Date.now() / 1000);
  try {
    return await rotateCommand({ ...env, db, nowSeconds, say: (line) => console.log(line) }, args);
  } catch (error) {
    if (!(error instanceof RotateError)) throw error;
    console.error(error.message);
    return 2;
  }
}

async function backup(env: Env, verb: "backup" | "restore", args: string[]): Promise<number> {
  const { backupCommand, restoreCommand } = await import("./cli/backup-command.ts");
  const context = {
    ...env,
    version: packageJson.version,
    nowMs: () => Date.now(),
    journalDirs: [env.dataDir, ...workerDirsIn(env.dataDir)],
    enterWaiting: () => enterWaiting(env),
    say: (text: string) => console.log(text),
    complain: (text: string) => console.error(text),
  };
  return (verb === "backup" ? backupCommand : restoreCommand)(context, args);
}

async function licenses(_: Env, args: string[]): Promise<number> {
  const { licensesCommand } = await import("./cli/licenses-command.ts");
  return licensesCommand(args, {
    say: (text) => console.log(text),
    complain: (text) => console.error(text),
  });
}

async function health(env: Env, args: string[]): Promise<number> {
  const { healthCommand } = await import("./cli/health-command.ts");
  const told = { say: (text: string) => console.log(text), complain: (text: string) => console.error(text) };
  return healthCommand({ ...env, ...told, ask: fetch }, args);
}

async function doctor(env: Env | EnvError, args: string[]): Promise<number> {
  const { doctorCommand } = await import("./cli/doctor-command.ts");
  const { providerOf } = await import("./providers/catalog.ts");
  const rest = {
    version: packageJson.version,
    nowMs: () => Date.now(),
    baseUrlOf: (type: number) => providerOf(type)?.baseUrl ?? "",
    say: (text: string) => console.log(text),
    complain: (text: string) => console.error(text),
  };
  return doctorCommand(
    env instanceof EnvError ? { ...rest, sentence: env.message } : { ...env, ...rest },
    args,
  );
}

/** A server that was killed has accepted what its tables lack; one that runs enters it by itself. */
async function enterWaiting(env: Env): Promise<void> {
  if (!existsSync(env.dataDir)) return;
  const held = holdDirectory(env.dataDir);
  if (!held) return;
  held.release();
  if (env.databaseUrl === "" && !existsSync(join(env.dataDir, SQLITE_FILE))) return;
  const db = await openAsIs(env);
  const waiting = await waitingCalls(db, env.dataDir).finally(() => db.close());
  if (waiting === 0) return;
  await settleJournals({ ...env, logLevel: "error" }, true);
}

/** For whoever can run the program on its data, and so holds all of it anyway. */
async function printRescue(env: Env): Promise<number> {
  const db = await openBeside(env);
  try {
    const nowSeconds = Math.floor(Date.now() / 1000);
    const token = await prepareRescue(db, { dataDir: env.dataDir, nowSeconds });
    if (token === undefined) {
      console.error("There is no root account yet: open the site, it begins with one.");
      return 1;
    }
    const address = (await internalRow(db, "ServerAddress")) || `http://localhost:${env.port}`;
    console.log(`${address.replace(/\/+$/, "")}/rescue#${token}`);
    console.log("Good once and for ten minutes: it signs root in, without a second factor.");
    return 0;
  } finally {
    await db.close();
  }
}

/** The directory's lock is held to the end: nobody may start on the data meanwhile. */
async function withStoppedServer(env: Env, work: (db: Database) => Promise<number>): Promise<number> {
  prepareDataDir(env.dataDir);
  const lock = lockDataDir(env.dataDir);
  refuseLostFile(env.dataDir, env.databaseUrl, env.startsNew);
  const db = await connect(env);
  try {
    return await work(db);
  } finally {
    await db.close();
    lock.release();
  }
}

/** Settings as a file: loaded where it is asked for, a start of the server has no use for it. */
async function settings(env: Env, verb: "export" | "plan" | "apply", args: string[]): Promise<number> {
  const { configCommand } = await import("./cli/config-command.ts");
  const { localSite, remoteSite, SiteError } = await import("./cli/config-site.ts");
  return configCommand({
    verb,
    args,
    variables: readVariables,
    async open(address) {
      if (address) return remoteSite(address, fetch);
      // A wrong DATA_DIR would be a new site, and its plan everything that the file says.
      if (env.databaseUrl === "" && !existsSync(join(env.dataDir, SQLITE_FILE)))
        throw new SiteError(
          `there is no site in ${env.dataDir}: set DATA_DIR, name a server by --url and --token, or run weir migrate for a new one`,
        );
      try {
        const services = await createServices(env, { logger: createLogger("error") });
        return localSite(services.deps, () => services.close());
      } catch (error) {
        if (!(error instanceof DataDirInUse)) throw error;
        throw new SiteError(
          `a server holds the data directory ${env.dataDir}: name it by --url and --token, or stop it first`,
        );
      }
    },
    say: (text) => console.log(text),
    complain: (text) => console.error(text),
  });
}

/** Opens the database while a server may be running on it: its tables are not changed under that server. */
function openBeside(env: Env): Promise<Database> {
  refuseLostFile(env.dataDir, env.databaseUrl, env.startsNew);
  return connectBeside(env, () => lockDataDir(env.dataDir).release());
}

function usage(): string {
  const rows = Object.entries(COMMANDS).map(([name, { about }]) => `  ${name.padEnd(10)}${about}`);
  return `weir ${packageJson.version}\n\nusage: weir [command]\n\n${rows.join("\n")}`;
}

/** Sentences for the operator; anything else is a fault of the program and shows its stack. */
function isOperatorError(error: unknown): error is Error {
  return (
    error instanceof EnvError ||
    error instanceof ClockWrong ||
    error instanceof SchemaTooNew ||
    error instanceof SchemaUnknown ||
    error instanceof WrongEncryptionKey ||
    error instanceof RotationUnfinished ||
    error instanceof ImportUnfinished ||
    error instanceof DataDirInUse ||
    error instanceof DataDirUnusable ||
    error instanceof DatabaseBusy ||
    error instanceof DatabaseUnreachable ||
    error instanceof JournalDamaged ||
    error instanceof NodeIdUnusable ||
    error instanceof NodeTaken ||
    error instanceof TransferUnfinished ||
    error instanceof ValkeyRefuses ||
    error instanceof WouldStartNew
  );
}

/** The innermost error: a failed query carries its whole text around the driver's sentence. */
function rootCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? (error.stack ?? error.message) : rootCause(error.cause);
}

/** Those know both ways to the database. */
const BOTH_WAYS = ["serve", "settle", "doctor"];

/** A single command does little, and much of it needs a session (dumps, snapshots): it goes past a pooler. */
function pastPooler(env: Env): Env {
  return env.databaseDirectUrl === ""
    ? env
    : { ...env, databaseUrl: env.databaseDirectUrl, databaseDirectUrl: "" };
}

export async function runCommand(args: string[]): Promise<void> {
  const name = args[0] ?? "serve";
  const command = COMMANDS[name];
  if (!command) {
    const asked = name === "help" || name === "--help" || name === "-h";
    (asked ? console.log : console.error)(usage());
    process.exit(asked ? 0 : 2);
  }
  try {
    const env = readEnv();
    const code = await command.run(BOTH_WAYS.includes(name) ? env : pastPooler(env), args.slice(1));
    if (code !== undefined) process.exit(code);
  } catch (error) {
    if (name === "doctor" && error instanceof EnvError) process.exit(await doctor(error, args.slice(1)));
    if (isOperatorError(error)) console.error(`weir cannot start: ${error.message}`);
    else createLogger("error").error("start failed", { error: rootCause(error) });
    process.exit(1);
  }
}
