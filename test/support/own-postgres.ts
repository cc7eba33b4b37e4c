// A PostgreSQL of a test's own, on its own port and directory, that is stopped, paused and killed for real; with a standby
// that follows it and is promoted, and copies of its database that are put back.
// Refuses to be shared: other tests' databases must not go away with it.
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./ports.ts";
import { asUnprivileged, reachablePrograms, UNPRIVILEGED_ID } from "./postgres.ts";
import { descendantsOf } from "./processes.ts";

export interface OwnPostgres {
  /** postgres://… of the one database. */
  url: string;
  port: number;
  start(): Promise<void>;
  /** "fast" ends sessions in order, "immediate" is a crash. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  /** Keeps its state as it is now; it is stopped and started for that. */
  keep(): Promise<void>;
  /** A crash, after which it comes up in the state that was kept: what was committed since is gone. */
  setBack(): Promise<void>;
  /** SIGSTOP to all its processes: connections stay open, and nothing is answered until `resume`. */
  pause(): void;
  resume(): void;
  /** A second server that follows this one through `port`, which may lead to it by another way. */
  standby(port?: number): Promise<Standby>;
  /** The whole database as it is now, into a file. */
  dump(): Promise<string>;
  /** Puts such a file in the database's place; sessions that are open end. */
  putBack(file: string): Promise<void>;
  remove(): Promise<void>;
}

interface Standby extends OwnPostgres {
  /** From here on it is the one that is written to. */
  promote(): Promise<void>;
}

async function run(command: string[]): Promise<void> {
  // No pipes: the server inherits them, and their end would never come.
  const child = Bun.spawn(command, {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    env: { ...Bun.env, LC_ALL: "C" },
  });
  const code = await child.exited;
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}`);
}

/** A home that the server's user may read, and the directory in it that only they may. */
function makeHome(prefix: readonly string[]): { homeDir: string; ownDir: string } {
  const homeDir = mkdtempSync(join(tmpdir(), "weir-own-postgres-"));
  chmodSync(homeDir, 0o755);
  const ownDir = join(homeDir, "own");
  mkdirSync(ownDir, { mode: 0o700 });
  if (prefix.length > 0) chownSync(ownDir, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  return { homeDir, ownDir };
}

/** Durable, unlike the tests' common server: a crash of it must not lose what it committed. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const prefix = asUnprivileged();
  const { homeDir, ownDir } = makeHome(prefix);
  const password = randomBytes(12).toString("hex");
  const passwordFile = join(ownDir, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (prefix.length > 0) chownSync(passwordFile, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const binDir = reachablePrograms(homeDir, prefix);
  const dataDir = join(ownDir, "data");
  // prettier-ignore
  await run([...prefix, join(binDir, "initdb"), "-D", dataDir, "-U", "weir", "-E", "UTF8", "--locale=C", "--no-sync",
    "--auth=password", `--pwfile=${passwordFile}`]);
  return serve({ prefix, homeDir, ownDir, dataDir, binDir, password });
}

interface Home {
  /** Drops to the server's user. */
  prefix: string[];
  homeDir: string;
  ownDir: string;
  dataDir: string;
  binDir: string;
  password: string;
}

/** Starts the server of a directory, on a port of its own. */
async function serve(home: Home): Promise<OwnPostgres> {
  const { prefix, homeDir, ownDir, dataDir, binDir, password } = home;
  const port = freePort();
  const settings = [
    "listen_addresses = '127.0.0.1'",
    `unix_socket_directories = '${ownDir}'`,
    `port = ${port}`,
    "max_connections = 100",
    "shared_buffers = 32MB",
    // What a standby that was away for a while still needs.
    "wal_keep_size = 256MB",
    "timezone = 'UTC'",
  ];
  writeFileSync(join(dataDir, "postgresql.auto.conf"), `${settings.join("\n")}\n`, { flag: "a" });
  const control = (...words: string[]) =>
    run([...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-l", join(ownDir, "server.log"), "-w", ...words]);
  // A test process that is killed leaves nothing running: a shell of its own session watches it.
  const stop = [...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-m", "immediate", "stop"];
  const quoted = stop.map((part) => `'${part}'`).join(" ");
  const script = `while kill -0 ${process.pid} 2>/dev/null && [ -d '${homeDir}' ]; do sleep 0.5; done; ${quoted}; rm -rf '${homeDir}'`;
  await run(["/bin/sh", "-c", `(setsid /bin/sh -c "$0" >/dev/null 2>&1 </dev/null &)`, script]);
  let isUp = false;
  const url = `postgres://weir:${password}@127.0.0.1:${port}/postgres`;
  const signalAll = (signal: "SIGSTOP" | "SIGCONT") => {
    const pid = Number(readFileSync(join(dataDir, "postmaster.pid"), "utf8").split("\n")[0]);
    // It makes no more of them while it stands, and sees none end before all go on.
    if (signal === "SIGSTOP") process.kill(pid, signal);
    for (const each of descendantsOf(pid))
      try {
        process.kill(each, signal);
      } catch (error) {
        // It has ended meanwhile.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    if (signal === "SIGCONT") process.kill(pid, signal);
  };
  const server: OwnPostgres = {
    url,
    port,
    async start() {
      if (isUp) return;
      await control("-t", "60", "start");
      isUp = true;
    },
    async stop(mode) {
      if (!isUp) return;
      isUp = false;
      await control("-m", mode, "stop");
    },
    pause: () => signalAll("SIGSTOP"),
    resume: () => signalAll("SIGCONT"),
    standby: (through = port) => followed(home, through),
    async dump() {
      const file = join(ownDir, `${randomBytes(4).toString("hex")}.dump`);
      await run([...prefix, join(binDir, "pg_dump"), "-Fc", "-f", file, url]);
      return file;
    },
    async putBack(file) {
      const psql = [...prefix, join(binDir, "psql"), "-qX", "-v", "ON_ERROR_STOP=1", url, "-c"];
      const others =
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
      await run([...psql, others]);
      await run([
        ...psql,
        "drop schema if exists drizzle cascade; drop schema public cascade; create schema public",
      ]);
      await run([...prefix, join(binDir, "pg_restore"), "-d", url, "--no-owner", file]);
    },
    async keep() {
      await server.stop("fast");
      rmSync(`${dataDir}.kept`, { recursive: true, force: true });
      await run(["cp", "-a", dataDir, `${dataDir}.kept`]);
      await server.start();
    },
    async setBack() {
      await server.stop("immediate");
      rmSync(dataDir, { recursive: true, force: true });
      await run(["cp", "-a", `${dataDir}.kept`, dataDir]);
      await server.start();
    },
    async remove() {
      await server.stop("immediate").catch(() => undefined);
      rmSync(homeDir, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

async function followed(leader: Home, through: number): Promise<Standby> {
  const { prefix, binDir, password } = leader;
  const { homeDir, ownDir } = makeHome(prefix);
  const dataDir = join(ownDir, "data");
  // prettier-ignore
  await run([...prefix, join(binDir, "pg_basebackup"), "-D", dataDir, "-R", "--checkpoint=fast", "--no-sync",
    "-d", `postgres://weir:${password}@127.0.0.1:${through}/postgres`]);
  const server = await serve({ ...leader, homeDir, ownDir, dataDir });
  return {
    ...server,
    promote: () => run([...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-w", "promote"]),
  };
}
