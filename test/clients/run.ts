// Runs a client as its user would: in a home and a project of its own, with nothing of this machine's settings, for so long and no longer.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Not below the system's temporary directory: Codex refuses a home there. */
const SCRATCH = join(Bun.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "weir-clients", "runs");

export interface Run {
  /** Null when it did not end in time. */
  code: number | null;
  stdout: string;
  stderr: string;
  /** Both, without colours. */
  text: string;
  seconds: number;
  /** The files that it left in the project's folder, by name. */
  files: Record<string, string>;
}

export interface Order {
  command: readonly string[];
  bin: readonly string[];
  env?: Record<string, string>;
  /** Files of the home (`~/…`) and of the project, by path. */
  files?: Record<string, string>;
  limitSeconds: number;
  /** Standard input; empty unless it is given. */
  input?: string;
}

export interface Place {
  home: string;
  project: string;
}

function group(): string[] {
  return process.platform === "linux" && Bun.which("setsid") ? ["setsid"] : [];
}

/** Ends a client and what it started: it leads a process group of its own. */
function end(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Runs it to its end, or ends it with everything that it started. */
export async function runClient(order: (place: Place) => Order): Promise<Run> {
  mkdirSync(SCRATCH, { recursive: true });
  const root = mkdtempSync(join(SCRATCH, "run-"));
  const place = { home: join(root, "home"), project: join(root, "project") };
  for (const dir of Object.values(place)) mkdirSync(dir, { recursive: true });
  const { command, bin, env = {}, files = {}, limitSeconds, input } = order(place);
  for (const [name, text] of Object.entries(files)) {
    const path = name.startsWith("~/") ? join(place.home, name.slice(2)) : join(place.project, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  Bun.spawnSync(["git", "init", "-q"], { cwd: place.project });
  const started = performance.now();
  const child = Bun.spawn([...group(), ...command], {
    cwd: place.project,
    env: {
      PATH: [...bin, "/usr/local/bin", "/usr/bin", "/bin"].join(":"),
      HOME: place.home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      NO_COLOR: "1",
      CI: "1",
      ...env,
    },
    stdin: input === undefined ? "ignore" : Buffer.from(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    end(child.pid);
    child.kill("SIGKILL");
  }, limitSeconds * 1000);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  clearTimeout(limit);
  end(child.pid);
  const left: Record<string, string> = {};
  for (const entry of readdirSync(place.project, { withFileTypes: true }))
    if (entry.isFile()) left[entry.name] = readFileSync(join(place.project, entry.name), "utf8");
  rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  return {
    code: isLate ? null : child.exitCode,
    stdout: Bun.stripANSI(stdout),
    stderr: Bun.stripANSI(stderr),
    text: Bun.stripANSI(`${stdout}\n${stderr}`),
    seconds: (performance.now() - started) / 1000,
    files: left,
  };
}
