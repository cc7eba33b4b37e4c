// A real PostgreSQL for tests: one server per run (or per file run by hand), a fresh database per call.
// Refuses durability (fsync off) and any server that it has not started itself.

import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import postgres from "postgres";
import { findPostgres } from "../../scripts/install-postgres.ts";
import { freePort } from "./ports.ts";

/** Names the directory that all processes of one `bun run test` share; scripts/test.ts sets it. */
export const RUN_DIR_VARIABLE = "WEIR_TEST_RUN_DIR";
/** The process whose end also ends the server; scripts/test.ts sets it beside the directory. */
export const RUN_OWNER_VARIABLE = "WEIR_TEST_RUN_PID";

export const UNPRIVILEGED_ID = 65534;
const START_ATTEMPTS = 5;
const TEMPLATE_LOCK = 7_264_011;

export interface PostgresServer {
  /** postgres://weir:…@127.0.0.1:port, without a database name. */
  origin: string;
  dataDir: string;
  binDir: string;
}

export interface PostgresDatabase {
  url: string;
  /** Ends what is still connected and removes the database. Safe to call twice. */
  drop(): Promise<void>;
}

/** A database that is prepared once per run (schema, migrations) and copied for each call. */
export interface PostgresTemplate {
  /** Lower-case letters, digits, underscores; the same name means the same contents. */
  name: string;
  /** Fills the empty database; must close its connections before it returns. */
  build(url: string): Promise<void>;
}

/** Runs a program to its end. Throws with what it printed where it fails. */
export function run(command: string[]): void {
  const child = Bun.spawnSync(command, {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...Bun.env, LC_ALL: "C" },
  });
  if (child.exitCode !== 0) {
    throw new Error(
      `${command.join(" ")} ended with ${child.exitCode}\n${String(child.stdout)}${String(child.stderr)}`,
    );
  }
}

/** PostgreSQL does not run as root: the prefix that drops to an unprivileged user, empty for other users. */
export function asUnprivileged(): string[] {
  if (process.getuid?.() !== 0) return [];
  const id = String(UNPRIVILEGED_ID);
  if (Bun.which("setpriv")) return ["setpriv", `--reuid=${id}`, `--regid=${id}`, "--clear-groups", "--"];
  if (Bun.which("su-exec")) return ["su-exec", `${id}:${id}`];
  throw new Error(
    "PostgreSQL does not run as root; install util-linux (setpriv) or run the tests as another user",
  );
}

/** The programs where the unprivileged user can read them: in place, else (checkout below a closed home) a copy. */
export function reachablePrograms(runDir: string, prefix: string[]): string {
  const binDir = findPostgres();
  if (!binDir) throw new Error("no PostgreSQL found; run `bun scripts/install-postgres.ts`");
  const probe = Bun.spawnSync([...prefix, join(binDir, "postgres"), "--version"], {
    stdout: "ignore",
    stderr: "ignore",
  });
  if (probe.exitCode === 0) return binDir;
  const copyDir = join(runDir, "programs");
  cpSync(dirname(binDir), copyDir, { recursive: true, verbatimSymlinks: true });
  return join(copyDir, "bin");
}

/**
 * Stops a server and removes the run's directory when the owner is gone, however it went (also kill -9). Bun runs no exit
 * handlers in tests and ends a slow file's children, so this is a shell of its own session.
 */
export function watchOwner(stop: readonly string[], runDir: string, ownerPid: number): void {
  const quoted = stop.map((part) => `'${part}'`).join(" ");
  const script = `while kill -0 ${ownerPid} 2>/dev/null; do sleep 0.2; done; ${quoted}; rm -rf '${runDir}'`;
  const setsid = Bun.which("setsid") ? "setsid " : "";
  run(["/bin/sh", "-c", `(${setsid}/bin/sh -c "$0" >/dev/null 2>&1 </dev/null &)`, script]);
}

function startServer(runDir: string, ownerPid: number): PostgresServer {
  const prefix = asUnprivileged();
  chmodSync(runDir, 0o755);
  const homeDir = join(runDir, "postgres");
  mkdirSync(homeDir, { mode: 0o700 });
  const password = randomBytes(12).toString("hex");
  const passwordFile = join(homeDir, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (prefix.length > 0)
    for (const path of [homeDir, passwordFile]) chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const binDir = reachablePrograms(runDir, prefix);
  const dataDir = join(homeDir, "data");
  // prettier-ignore
  run([...prefix, join(binDir, "initdb"), "-D", dataDir, "-U", "weir", "-E", "UTF8", "--locale=C", "--no-sync",
    "--auth=password", `--pwfile=${passwordFile}`]);
  const settings = [
    "listen_addresses = '127.0.0.1'",
    `unix_socket_directories = '${homeDir}'`,
    "max_connections = 400",
    "shared_buffers = 64MB",
    "fsync = off",
    "synchronous_commit = off",
    "full_page_writes = off",
    "autovacuum = off",
    "timezone = 'UTC'",
  ];
  writeFileSync(join(dataDir, "postgresql.auto.conf"), settings.join("\n") + "\n");
  const logFile = join(homeDir, "server.log");
  for (let attempt = 1; ; attempt++) {
    const port = freePort();
    try {
      // prettier-ignore
      run([...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-l", logFile, "-w", "-t", "30", "-o", `-p ${port}`, "start"]);
      const server = { origin: `postgres://weir:${password}@127.0.0.1:${port}`, dataDir, binDir };
      // prettier-ignore
      watchOwner([...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-m", "immediate", "-w", "stop"], runDir, ownerPid);
      return server;
    } catch (error) {
      // Somebody else may have taken the port in between; the log tells when it was another reason.
      const log = existsSync(logFile) ? readFileSync(logFile, "utf8") : "";
      if (attempt === START_ATTEMPTS || !/could not bind/.test(log))
        throw new Error(`${String(error)}\n${log}`);
    }
  }
}

/** The first process of a run starts a server, the others wait for what it writes down. */
export async function oncePerRun<T extends object>(
  name: string,
  start: (runDir: string, ownerPid: number) => T,
): Promise<T> {
  const shared = Bun.env[RUN_DIR_VARIABLE];
  const runDir = shared ?? mkdtempSync(join(tmpdir(), "weir-test-"));
  const ownerPid = Number((shared && Bun.env[RUN_OWNER_VARIABLE]) ?? process.pid);
  const description = join(runDir, `${name}.json`);
  try {
    mkdirSync(join(runDir, `${name}.lock`));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const deadlineMs = Date.now() + 60_000;
    while (Date.now() < deadlineMs) {
      if (existsSync(description)) {
        const answer = JSON.parse(readFileSync(description, "utf8")) as T | { error: string };
        if ("error" in answer) throw new Error(answer.error);
        return answer;
      }
      await Bun.sleep(50);
    }
    throw new Error(`another process of this test run did not get ${name} started within a minute`);
  }
  let outcome: T | { error: string };
  try {
    outcome = start(runDir, ownerPid);
  } catch (error) {
    outcome = { error: error instanceof Error ? error.message : String(error) };
  }
  const draft = `${description}.draft`;
  writeFileSync(draft, JSON.stringify(outcome), { mode: 0o600 });
  renameSync(draft, description);
  if ("error" in outcome) throw new Error(outcome.error);
  return outcome;
}

let server: Promise<PostgresServer> | undefined;
let admin: postgres.Sql | undefined;

/** The run's server, started on first need (about one second), stopped when its owner ends. */
export function postgresServer(): Promise<PostgresServer> {
  return (server ??= oncePerRun("postgres", startServer));
}

/** Stops the server of a run at once, when one was started. For scripts/test.ts; never throws. */
export function stopPostgres(runDir: string): void {
  const description = join(runDir, "postgres.json");
  if (!existsSync(description)) return;
  const answer = JSON.parse(readFileSync(description, "utf8")) as Partial<PostgresServer>;
  if (!answer.binDir || !answer.dataDir) return;
  const command = [
    ...asUnprivileged(),
    join(answer.binDir, "pg_ctl"),
    "-D",
    answer.dataDir,
    "-m",
    "immediate",
    "stop",
  ];
  Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" });
  rmSync(join(runDir, "postgres"), { recursive: true, force: true });
}

async function adminClient(): Promise<{ sql: postgres.Sql; origin: string }> {
  const { origin } = await postgresServer();
  admin ??= postgres(`${origin}/postgres`, { max: 4, onnotice: () => {}, idle_timeout: 5 });
  return { sql: admin, origin };
}

/** Builds a template once per run; a second process waits at an advisory lock and finds it there. */
async function ensureTemplate(template: PostgresTemplate): Promise<string> {
  if (!/^[a-z0-9_]{1,40}$/.test(template.name))
    throw new Error(`"${template.name}" cannot be a template's name`);
  const { sql, origin } = await adminClient();
  const name = `template_${template.name}`;
  const connection = await sql.reserve();
  try {
    await connection`select pg_advisory_lock(${TEMPLATE_LOCK})`;
    const existing = await connection`select 1 from pg_database where datname = ${name}`;
    if (existing.length === 0) {
      const draft = `draft_${template.name}`;
      await connection.unsafe(`drop database if exists ${draft} with (force)`);
      await connection.unsafe(`create database ${draft}`);
      await template.build(`${origin}/${draft}`);
      await connection.unsafe(`alter database ${draft} rename to ${name}`);
    }
  } finally {
    await connection`select pg_advisory_unlock(${TEMPLATE_LOCK})`;
    connection.release();
  }
  return name;
}

let strategy: Promise<string> | undefined;

/** Files are copied at half the work of writing every page to a log that nobody reads; before release 15 always. */
function copying(sql: postgres.Sql): Promise<string> {
  strategy ??= sql`show server_version_num`.then(([row]) =>
    Number(row?.["server_version_num"]) >= 150_000 ? "strategy file_copy" : "",
  );
  return strategy;
}

const builtTemplates = new Map<string, Promise<string>>();

/** A fresh database: empty, or a copy of the template. Drop it in `afterAll`; the run's end removes what is left. */
export async function createPostgresDatabase(template?: PostgresTemplate): Promise<PostgresDatabase> {
  const { sql, origin } = await adminClient();
  let source = "template1";
  if (template) {
    let building = builtTemplates.get(template.name);
    if (!building) builtTemplates.set(template.name, (building = ensureTemplate(template)));
    source = await building;
  }
  const name = `test_${randomBytes(8).toString("hex")}`;
  await sql.unsafe(`create database ${name} template ${source} ${await copying(sql)}`);
  return {
    url: `${origin}/${name}`,
    async drop() {
      await sql.unsafe(`drop database if exists ${name} with (force)`);
    },
  };
}

export const DATABASE_KINDS = ["sqlite", "postgres"] as const;
export type DatabaseKind = (typeof DATABASE_KINDS)[number];

export interface TestDatabase {
  kind: DatabaseKind;
  /** What DATABASE_URL would hold: undefined means the SQLite file in `dataDir`. */
  databaseUrl: string | undefined;
  /** An empty directory of its own, for the SQLite file, keys and journals. */
  dataDir: string;
  drop(): Promise<void>;
}

/** A place for one test's data on either database: `describe.each(DATABASE_KINDS)("… on %s", (kind) => …)`. */
export async function createTestDatabase(
  kind: DatabaseKind,
  template?: PostgresTemplate,
): Promise<TestDatabase> {
  const database = kind === "postgres" ? await createPostgresDatabase(template) : undefined;
  const dataDir = mkdtempSync(join(tmpdir(), "weir-data-"));
  return {
    kind,
    databaseUrl: database?.url,
    dataDir,
    async drop() {
      await database?.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
