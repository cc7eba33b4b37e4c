// A real MariaDB for tests of imports: one server per run (or per file run by hand), a fresh database per call.
// Refuses durability, networks beyond loopback, and any server that it has not started itself.
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { ensureMariadb } from "../../scripts/install-mariadb.ts";
import { freePort } from "./ports.ts";
import { asUnprivileged, oncePerRun, run, UNPRIVILEGED_ID, watchOwner } from "./postgres.ts";

interface MariadbServer {
  port: number;
  pidFile: string;
}

export interface MariadbDatabase {
  /** As Go's driver writes it: what an old program had in SQL_DSN. */
  dsn: string;
  /** Statements, one after another, as root. */
  execute(statements: readonly string[]): Promise<void>;
  /** Rows of one query. */
  query(statement: string): Promise<Record<string, unknown>[]>;
  drop(): Promise<void>;
}

/** Of every database here: nobody else reaches the port. */
const PASSWORD = "p@ss:w0rd";
const START_MS = 30_000;
const ENDS_WITH = "ready for connections";

function startServer(runDir: string, ownerPid: number): MariadbServer {
  const { server, install } = ensureMariadb();
  chmodSync(runDir, 0o755);
  const homeDir = join(runDir, "mariadb");
  mkdirSync(homeDir, { mode: 0o700 });
  // The run's own directory for temporary files is not that user's to write.
  const prefix = [...asUnprivileged(), "/usr/bin/env", `TMPDIR=${homeDir}`];
  if (asUnprivileged().length > 0) chownSync(homeDir, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const dataDir = join(homeDir, "data");
  const pidFile = join(homeDir, "server.pid");
  const logFile = join(homeDir, "server.log");
  // prettier-ignore
  run([...prefix, install, "--no-defaults", `--datadir=${dataDir}`, "--auth-root-authentication-method=normal", "--skip-test-db"]);
  const port = freePort();
  // prettier-ignore
  Bun.spawn([...prefix, server, "--no-defaults", `--datadir=${dataDir}`, "--bind-address=127.0.0.1", `--port=${port}`,
    `--socket=${join(homeDir, "s")}`, `--pid-file=${pidFile}`, `--log-error=${logFile}`, "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M", "--skip-log-bin", "--character-set-server=utf8mb4", "--default-time-zone=+00:00"],
    { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).unref();
  const log = () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");
  const deadlineMs = Date.now() + START_MS;
  while (!log().includes(ENDS_WITH)) {
    if (Date.now() > deadlineMs || log().includes("Aborting"))
      throw new Error(`MariaDB did not start\n${log()}`);
    Bun.sleepSync(50);
  }
  watchOwner(["/bin/sh", "-c", `kill -9 $(cat ${pidFile})`], runDir, ownerPid);
  return { port, pidFile };
}

let server: Promise<MariadbServer> | undefined;

/** Stops the server of a run at once, when one was started. For scripts/test.ts; never throws. */
export function stopMariadb(runDir: string): void {
  const pidFile = join(runDir, "mariadb/server.pid");
  if (!existsSync(pidFile)) return;
  try {
    process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
  } catch {
    // It has gone by itself.
  }
  rmSync(join(runDir, "mariadb"), { recursive: true, force: true });
}

/** The run's server is started on first need, which takes some three seconds. */
export async function createMariadbDatabase(): Promise<MariadbDatabase> {
  const { port } = await (server ??= oncePerRun("mariadb", startServer));
  const place = { adapter: "mysql", hostname: "127.0.0.1", port, max: 1 } as const;
  const admin = new SQL({ ...place, username: "root", password: "", database: "mysql" });
  const name = `test_${randomBytes(8).toString("hex")}`;
  await admin.unsafe(`create database ${name}`);
  // It reads, and nothing else: an import that wrote would be refused.
  await admin.unsafe(`create user '${name}'@'127.0.0.1' identified by '${PASSWORD}'`);
  await admin.unsafe(`grant select on ${name}.* to '${name}'@'127.0.0.1'`);
  const own = new SQL({ ...place, username: "root", password: "", database: name });
  return {
    dsn: `${name}:${PASSWORD}@tcp(127.0.0.1:${port})/${name}?charset=utf8mb4&parseTime=True`,
    async execute(statements) {
      for (const statement of statements) await own.unsafe(statement);
    },
    query: async (statement) => [...((await own.unsafe(statement)) as Record<string, unknown>[])],
    async drop() {
      await own.close();
      await admin.unsafe(`drop database if exists ${name}`);
      await admin.unsafe(`drop user if exists '${name}'@'127.0.0.1'`);
      await admin.close();
    },
  };
}
