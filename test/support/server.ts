// The product as people start it: a process of its own on an empty data directory, killed and started again at will.
// The test command builds the binary and names it, so that what ships is what is tested, and a start takes a tenth of one
// from source; without that command a single test file runs the source.
// Refuses to share anything with the test's process but the port, and packages: scripts/test.ts reads it before they are there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./ports.ts";

const ROOT = join(import.meta.dir, "../..");
/** Set by scripts/test.ts to the path of the binary it built. */
export const BINARY_VARIABLE = "WEIR_TEST_BINARY";

/** A test that fails or is ended takes its processes with it: words to stand before theirs. */
export function withParent(): string[] {
  return process.platform === "linux" && Bun.which("setpriv") ? ["setpriv", "--pdeathsig", "KILL", "--"] : [];
}

/** The words that start the product, before its own arguments. */
export function program(): string[] {
  const binary = Bun.env[BINARY_VARIABLE];
  return binary ? [binary] : [process.execPath, join(ROOT, "src/main.ts")];
}

export interface ServerProcess {
  url: string;
  dataDir: string;
  /** Of the process that runs now; undefined when it has ended. */
  readonly pid: number | undefined;
  /** The code of the process that was started last, once it has ended; null for one that a signal ended. */
  exited(): Promise<number | null>;
  /** What the processes so far wrote to standard error, the program's log. */
  log(): string;
  /** SIGTERM and wait: everything that was answered is durable then. The exit code. */
  stop(): Promise<number>;
  /** SIGKILL at once. */
  kill(): Promise<number>;
  /** Starts again on the same data and port. */
  restart(): Promise<void>;
  /** Runs `weir audit` on the data of the stopped server; the text it printed. */
  audit(): { code: number; text: string };
  /** Runs any subcommand on its data, with further settings. */
  run(args: string[], more?: Record<string, string>): { code: number; text: string };
  remove(): Promise<void>;
}

/** Where a process runs when it is not on an empty directory, and what must stand before its words (limits, a library). */
export interface Place {
  dataDir?: string;
  prefix?: readonly string[];
  /** How long a start may take, in milliseconds; then it is ended and the start throws. */
  startLimitMs?: number;
}

export async function startServerProcess(
  env: Record<string, string> = {},
  place: Place = {},
): Promise<ServerProcess> {
  const dataDir = place.dataDir ?? mkdtempSync(join(tmpdir(), "weir-process-"));
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    ...Bun.env,
    PORT: String(port),
    HOST: "127.0.0.1",
    DATA_DIR: dataDir,
    LOG_LEVEL: "info",
    // A test is a whole office at one address; whoever tests the general limits switches them on.
    GLOBAL_API_RATE_LIMIT_ENABLE: "false",
    ...env,
  };
  let child: Bun.Subprocess<"ignore", "pipe", "pipe"> | undefined;
  let latest: Bun.Subprocess<"ignore", "pipe", "pipe"> | undefined;
  let written = "";

  async function start(): Promise<void> {
    latest = child = Bun.spawn([...withParent(), ...(place.prefix ?? []), ...program()], {
      cwd: dataDir,
      env: settings,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const started = child;
    // The line "serving" is the program's own word that it listens.
    const reader = started.stderr.getReader();
    const decoder = new TextDecoder();
    const limit = place.startLimitMs
      ? setTimeout(() => started.kill("SIGKILL"), place.startLimitMs)
      : undefined;
    let seen = "";
    while (!seen.includes('"serving"')) {
      const { value, done } = await reader.read();
      if (done) {
        clearTimeout(limit);
        child = undefined;
        throw new Error(`the server ended before it listened:\n${seen}`);
      }
      const text = decoder.decode(value, { stream: true });
      seen += text;
      written += text;
    }
    clearTimeout(limit);
    // Goes on reading, so that the pipe never fills up.
    void (async () => {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        written += decoder.decode(value, { stream: true });
      }
    })().catch(() => undefined);
  }

  async function end(signal: "SIGTERM" | "SIGKILL"): Promise<number> {
    child?.kill(signal);
    const code = (await child?.exited) ?? 0;
    child = undefined;
    return code;
  }

  try {
    await start();
  } catch (error) {
    if (place.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    throw error;
  }
  function run(args: string[], more: Record<string, string> = {}): { code: number; text: string } {
    const ended = Bun.spawnSync([...program(), ...args], { cwd: dataDir, env: { ...settings, ...more } });
    return { code: ended.exitCode, text: ended.stdout.toString() + ended.stderr.toString() };
  }
  return {
    url,
    dataDir,
    get pid() {
      return child && child.exitCode === null && child.signalCode === null ? child.pid : undefined;
    },
    async exited() {
      await latest?.exited;
      return latest?.exitCode ?? null;
    },
    log: () => written,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    restart: start,
    audit: () => run(["audit"]),
    run,
    async remove() {
      await end("SIGKILL");
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
