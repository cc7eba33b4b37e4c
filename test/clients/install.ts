// Gets the clients: Node's with npm, Python's with pip into an environment of their own, each in its own folder of the cache.
// Refuses to install into the project: what these programs bring is no part of it.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const INSTALL_LIMIT_MS = 600_000;
const CACHE = join(Bun.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "weir-clients");

/** Many of the clients need it, and the system's own may be older. */
const NODE = "node@24.21.0";

export type Registry = "npm" | "pip";

/** What a client needs: exact versions, of npm `name@1.2.3`, of pip `name==1.2.3`. */
export interface Need {
  registry: Registry;
  packages: readonly string[];
}

/** Where a client's programs lie; throws with the registry's words when it could not be had. */
export interface Installed {
  dir: string;
  /** Its programs, and for npm the newer Node. */
  bin: string[];
}

function run(command: string[], cwd: string): void {
  const child = Bun.spawnSync(command, {
    cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: INSTALL_LIMIT_MS,
    killSignal: "SIGKILL",
  });
  if (child.exitCode === 0) return;
  const words = `${child.stderr.toString()}\n${child.stdout.toString()}`.trim().split("\n");
  throw new Error(
    `${command[0]} ${command[1]} ended with ${child.exitCode ?? "a time-out"}: ${words.slice(-3).join(" / ")}`,
  );
}

function npm(packages: readonly string[]): string {
  const dir = join(CACHE, "npm", packages.join("+").replaceAll("/", "__"));
  const marker = join(dir, ".complete");
  if (existsSync(marker)) return dir;
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "package.json"), '{"private":true,"type":"module"}');
  run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...packages], dir);
  writeFileSync(marker, "");
  return dir;
}

/** A Python between 3.10 and 3.12, which every client of the table runs on. */
function python(): string {
  const candidates = ["python3.12", "python3.11", "python3.10", "python3"];
  for (const name of candidates) {
    const path = Bun.which(name);
    if (!path) continue;
    const version = Bun.spawnSync([path, "-c", "import sys; print(sys.version_info[1])"]);
    if (version.exitCode === 0 && [10, 11, 12].includes(Number(version.stdout.toString()))) return path;
  }
  throw new Error("no Python 3.10 to 3.12 on the path");
}

function pip(packages: readonly string[]): string {
  const dir = join(CACHE, "pip", packages.join("+"));
  const marker = join(dir, ".complete");
  if (existsSync(marker)) return dir;
  mkdirSync(dir, { recursive: true });
  run([python(), "-m", "venv", dir], CACHE);
  run([join(dir, "bin/pip"), "install", "-q", "--disable-pip-version-check", ...packages], dir);
  writeFileSync(marker, "");
  return dir;
}

export function install({ registry, packages }: Need): Installed {
  if (registry === "pip") {
    const dir = pip(packages);
    return { dir, bin: [join(dir, "bin")] };
  }
  const dir = npm(packages);
  return { dir, bin: [join(dir, "node_modules/.bin"), join(npm([NODE]), "node_modules/.bin")] };
}
