// A real pgbouncer before the run's PostgreSQL, on a port of its own: killed and started again at will.
// Refuses to be shared, so that a test's kill is nobody else's outage, and networks beyond loopback.
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensurePgbouncer } from "../../scripts/install-pgbouncer.ts";
import { freePort } from "./ports.ts";
import { asUnprivileged, UNPRIVILEGED_ID } from "./postgres.ts";
import { withParent } from "./server.ts";
import { nextLook } from "./turns.ts";

export interface Pgbouncer {
  /** postgres://… of the same database, through it. */
  url: string;
  /** SIGKILL: clients and servers lose their connections at once. */
  kill(): Promise<void>;
  /** On the same port again. */
  start(): Promise<void>;
  remove(): Promise<void>;
}

export interface PgbouncerSettings {
  mode: "session" | "transaction" | "statement";
  /** Server connections; 50 when absent. */
  poolSize?: number;
}

const START_MS = 10_000;

/** `databaseUrl`: where its connections go, whoever comes. */
export async function startPgbouncer(
  databaseUrl: string,
  { mode, poolSize = 50 }: PgbouncerSettings,
): Promise<Pgbouncer> {
  const program = ensurePgbouncer();
  const target = new URL(databaseUrl);
  const name = target.pathname.slice(1);
  const homeDir = mkdtempSync(join(tmpdir(), "weir-pgbouncer-"));
  chmodSync(homeDir, 0o755);
  const ownDir = join(homeDir, "own");
  mkdirSync(ownDir, { mode: 0o700 });
  const port = freePort();
  const logFile = join(ownDir, "log");
  const file = join(ownDir, "pgbouncer.ini");
  const server = `host=${target.hostname} port=${target.port} user=${target.username} password=${target.password}`;
  const settings = [
    "[databases]",
    `${name} = ${server}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    // Nobody else reaches the port.
    "auth_type = any",
    `pool_mode = ${mode}`,
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 200",
    // As released it tries a server that was away again after 15 s.
    "server_login_retry = 1",
    `logfile = ${logFile}`,
  ];
  writeFileSync(file, `${settings.join("\n")}\n`, { mode: 0o600 });
  const prefix = asUnprivileged();
  if (prefix.length > 0) for (const path of [ownDir, file]) chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  let child: Bun.Subprocess | undefined;

  async function start(): Promise<void> {
    rmSync(logFile, { force: true });
    child = Bun.spawn([...prefix, ...withParent(), program, "-q", file], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    const log = () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");
    const deadlineMs = performance.now() + START_MS;
    for (let looks = 0; !log().includes("process up"); looks++) {
      if (performance.now() > deadlineMs || child.exitCode !== null)
        throw new Error(`pgbouncer did not start\n${log()}`);
      await nextLook(looks);
    }
  }

  async function kill(): Promise<void> {
    child?.kill("SIGKILL");
    await child?.exited;
  }

  await start();
  return {
    url: `postgres://${target.username}:any@127.0.0.1:${port}/${name}`,
    start,
    kill,
    async remove() {
      await kill();
      rmSync(homeDir, { recursive: true, force: true });
    },
  };
}
