// The product as people start it: a process of its own on an empty data directory, killed and started again at will.
// The test command builds the binary and names it, so that what ships is what is tested, and a start takes a tenth of one
// from source; without that command a single test file runs the source.
// Refuses to share anything with the test's process but the port, and packages: scripts/test.ts reads it before they are there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
/** Set by scripts/test.ts to the path of the binary it built. */
export const BINARY_VARIABLE = "WEIR_TEST_BINARY";

/** The words that start the product, before its own arguments. */
function program(): string[] {
  const binary = Bun.env[BINARY_VARIABLE];
  return binary ? [binary] : [process.execPath, join(ROOT, "src/main.ts")];
}

export interface ServerProcess {
  url: string;
  dataDir: string;
  /** SIGTERM and wait: everything that was answered is durable then. */
  stop(): Promise<void>;
  /** SIGKILL at once. */
  kill(): Promise<void>;
  /** Starts again on the same data and port. */
  restart(): Promise<void>;
  /** Runs `weir audit` on the data of the stopped server; the text it printed. */
  audit(): { code: number; text: string };
  remove(): Promise<void>;
}

async function freePort(): Promise<number> {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("") });
  const { port } = probe;
  await probe.stop(true);
  if (port === undefined) throw new Error("no free port");
  return port;
}

export async function startServerProcess(env: Record<string, string> = {}): Promise<ServerProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), "weir-process-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    ...Bun.env,
    PORT: String(port),
    HOST: "127.0.0.1",
    DATA_DIR: dataDir,
    LOG_LEVEL: "info",
    ...env,
  };
  let child: Bun.Subprocess<"ignore", "pipe", "pipe"> | undefined;

  async function start(): Promise<void> {
    child = Bun.spawn(program(), {
      cwd: dataDir,
      env: settings,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    // The line "serving" is the program's own word that it listens.
    const reader = child.stderr.getReader();
    const decoder = new TextDecoder();
    let seen = "";
    while (!seen.includes('"serving"')) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the server ended before it listened:\n${seen}`);
      seen += decoder.decode(value, { stream: true });
    }
    // Goes on reading, so that the pipe never fills up.
    void (async () => {
      for (;;) if ((await reader.read()).done) return;
    })().catch(() => undefined);
  }

  async function end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    child?.kill(signal);
    await child?.exited;
    child = undefined;
  }

  await start();
  return {
    url,
    dataDir,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    restart: start,
    audit() {
      const run = Bun.spawnSync([...program(), "audit"], {
        cwd: dataDir,
        env: settings,
      });
      return { code: run.exitCode, text: run.stdout.toString() + run.stderr.toString() };
    },
    async remove() {
      await end("SIGKILL");
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
