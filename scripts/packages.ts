// Installs the packages when they are missing or stale, so that every command works on a fresh checkout.
// Refuses to go on after a failed install.
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const PROJECT_DIR = dirname(import.meta.dir);
const LOCKFILE = join(PROJECT_DIR, "bun.lock");
/** Bun touches neither directory nor lockfile when nothing changed, so a marker of our own remembers the last install. */
const MARKER = join(PROJECT_DIR, "node_modules/.weir-installed");

function areCurrent(): boolean {
  if (!existsSync(join(PROJECT_DIR, "node_modules/elysia/package.json"))) return false;
  if (!existsSync(MARKER)) return false;
  return statSync(MARKER).mtimeMs >= statSync(LOCKFILE).mtimeMs;
}

/**
 * Call it before anything that needs a package is imported. After an install the script begins anew: this process may
 * have looked for packages before they were there, and remembers that.
 */
export async function ensurePackages(): Promise<void> {
  if (areCurrent()) return;
  const install = Bun.spawn([process.execPath, "install", "--frozen-lockfile"], {
    cwd: PROJECT_DIR,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await install.exited) !== 0) process.exit(install.exitCode ?? 1);
  await Bun.write(MARKER, "");
  await becomes([process.execPath, ...process.argv.slice(1)]);
}

/** The command takes this process's place, so that signals reach it directly. */
export async function becomes(command: string[], more: Record<string, string> = {}): Promise<never> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(Bun.env)) if (value !== undefined) env[name] = value;
  if (process.execve && process.platform !== "win32")
    process.execve(process.execPath, command, { ...more, ...env });
  const child = Bun.spawn(command, {
    env: { ...more, ...env },
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  process.exit(await child.exited);
}
