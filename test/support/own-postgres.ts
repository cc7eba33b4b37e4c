// A PostgreSQL of a test's own, on its own port and directory, that is stopped and started for real.
// Refuses to be shared: other tests' databases must not go away with it.
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asUnprivileged, freePort, reachablePrograms, UNPRIVILEGED_ID } from "./postgres.ts";

export interface OwnPostgres {
  /** postgres://… of the one database. */
  url: string;
  start(): Promise<void>;
  /** "fast" ends sessions in order, "immediate" is a crash. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  remove(): Promise<void>;
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

/** Durable, unlike the tests' common server: a crash of it must not lose what it committed. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const prefix = asUnprivileged();
  const homeDir = mkdtempSync(join(tmpdir(), "weir-own-postgres-"));
  chmodSync(homeDir, 0o755);
  const ownDir = join(homeDir, "own");
  mkdirSync(ownDir, { mode: 0o700 });
  const password = randomBytes(12).toString("hex");
  const passwordFile = join(ownDir, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (prefix.length > 0)
    for (const path of [ownDir, passwordFile]) chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const binDir = reachablePrograms(homeDir, prefix);
  const dataDir = join(ownDir, "data");
  // prettier-ignore
  await run([...prefix, join(binDir, "initdb"), "-D", dataDir, "-U", "weir", "-E", "UTF8", "--locale=C", "--no-sync",
    "--auth=password", `--pwfile=${passwordFile}`]);
  const port = freePort();
  const settings = [
    "listen_addresses = '127.0.0.1'",
    `unix_socket_directories = '${ownDir}'`,
    `port = ${port}`,
    "max_connections = 100",
    "shared_buffers = 32MB",
    "timezone = 'UTC'",
  ];
  writeFileSync(join(dataDir, "postgresql.auto.conf"), `${settings.join("\n")}\n`);
  const control = (...words: string[]) =>
    run([...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-l", join(ownDir, "server.log"), "-w", ...words]);
  // A test process that is killed leaves nothing running: a shell of its own session watches it.
  const stop = [...prefix, join(binDir, "pg_ctl"), "-D", dataDir, "-m", "immediate", "stop"];
  const quoted = stop.map((part) => `'${part}'`).join(" ");
  const script = `while kill -0 ${process.pid} 2>/dev/null && [ -d '${dataDir}' ]; do sleep 0.5; done; ${quoted}; rm -rf '${homeDir}'`;
  await run(["/bin/sh", "-c", `(setsid /bin/sh -c "$0" >/dev/null 2>&1 </dev/null &)`, script]);
  let isUp = false;
  const server: OwnPostgres = {
    url: `postgres://weir:${password}@127.0.0.1:${port}/postgres`,
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
    async remove() {
      await server.stop("immediate").catch(() => undefined);
      rmSync(homeDir, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}
