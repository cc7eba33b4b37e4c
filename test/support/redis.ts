// A Redis (or Valkey) of a test's own, on its own port, that is stopped, paused, emptied and started for real.
// Refuses persistence, networks beyond loopback, and any server that it has not started itself.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisClient, type Subprocess } from "bun";
import { ensureRedis } from "../../scripts/install-redis.ts";
import { freePort } from "./ports.ts";

export interface RedisSettings {
  /** Asked of clients; none where it is left out. */
  password?: string;
  /** Lines of the configuration file beside the usual ones: "maxmemory-policy allkeys-lru". */
  lines?: readonly string[];
}

export interface TestRedis {
  /** redis://[:password@]127.0.0.1:port */
  url: string;
  port: number;
  /** Of the process that runs now; undefined while it is stopped. */
  readonly pid: number | undefined;
  /** Starts it again, empty, on the same port; returns when it answers. */
  start(): Promise<void>;
  /** Ends it at once, as a crash does; returns when the process is gone. Safe to call twice, also while it is paused. */
  stop(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing is answered. */
  pause(): void;
  /** SIGCONT. What arrived meanwhile is answered now. */
  resume(): void;
  /** FLUSHALL: as if an operator emptied it. */
  flush(): Promise<void>;
  /** One command over a connection of its own, for looking: ["KEYS", "*"]. Rejects with the server's error. */
  command(name: string, ...args: string[]): Promise<unknown>;
  /** Ends it and removes its directory. */
  remove(): Promise<void>;
}

const START_MS = 10_000;

/** The test's process takes it along when it is killed (where the system has setpriv). */
function withTestProcess(): string[] {
  return process.platform === "linux" && Bun.which("setpriv") ? ["setpriv", "--pdeathsig", "KILL", "--"] : [];
}

/** Whether a server answers at all, be it that it wants a password. By a bare socket: a client would try again. */
async function isAnswered(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
  socket.once("data", () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.once("close", () => resolve(false));
  const isUp = await promise;
  socket.destroy();
  return isUp;
}

async function runOnce(url: string, name: string, args: string[]): Promise<unknown> {
  const client = new RedisClient(url, { autoReconnect: false, enableOfflineQueue: false });
  try {
    await client.connect();
    return (await client.send(name, args)) as unknown;
  } finally {
    client.close();
  }
}

/** Started and answering; some 20 ms. */
export async function startRedis({ password, lines = [] }: RedisSettings = {}): Promise<TestRedis> {
  const program = ensureRedis();
  const homeDir = mkdtempSync(join(tmpdir(), "weir-redis-"));
  const configFile = join(homeDir, "redis.conf");
  const logFile = join(homeDir, "server.log");
  const port = freePort();
  const url = `redis://${password ? `:${encodeURIComponent(password)}@` : ""}127.0.0.1:${port}`;
  const settings = [
    "bind 127.0.0.1",
    `port ${port}`,
    `dir ${homeDir}`,
    `logfile ${logFile}`,
    'save ""',
    "appendonly no",
    "daemonize no",
    ...(password ? [`requirepass ${JSON.stringify(password)}`] : []),
    ...lines,
  ];
  writeFileSync(configFile, `${settings.join("\n")}\n`, { mode: 0o600 });
  let child: Subprocess<"ignore", "ignore", "ignore"> | undefined;

  async function answers(process: Subprocess): Promise<void> {
    const deadlineMs = Date.now() + START_MS;
    while (!(await isAnswered(port))) {
      if (process.exitCode !== null || Date.now() > deadlineMs)
        throw new Error(`Redis did not start\n${await Bun.file(logFile).text()}`);
      await Bun.sleep(5);
    }
  }

  const redis: TestRedis = {
    url,
    port,
    get pid() {
      return child?.pid;
    },
    async start() {
      if (child) return;
      child = Bun.spawn([...withTestProcess(), program, configFile], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
      });
      await answers(child);
    },
    async stop() {
      const ended = child;
      child = undefined;
      ended?.kill("SIGKILL");
      await ended?.exited;
    },
    pause() {
      child?.kill("SIGSTOP");
    },
    resume() {
      child?.kill("SIGCONT");
    },
    async flush() {
      await runOnce(url, "FLUSHALL", []);
    },
    command: (name, ...args) => runOnce(url, name, args),
    async remove() {
      await redis.stop();
      rmSync(homeDir, { recursive: true, force: true });
    },
  };
  await redis.start();
  return redis;
}
