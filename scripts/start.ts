// `bun run start`: installs packages when they are missing or stale, builds what changed, then serves.
// Refuses to start on a failed install or build.
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const PROJECT_DIR = dirname(import.meta.dir);
const LOCKFILE = join(PROJECT_DIR, "bun.lock");
/** Bun touches neither directory nor lockfile when nothing changed, so a marker of our own remembers the last install. */
const MARKER = join(PROJECT_DIR, "node_modules/.weir-installed");

function packagesAreCurrent(): boolean {
  if (!existsSync(join(PROJECT_DIR, "node_modules/elysia/package.json"))) return false;
  if (!existsSync(MARKER)) return false;
  return statSync(MARKER).mtimeMs >= statSync(LOCKFILE).mtimeMs;
}

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, {
    cwd: PROJECT_DIR,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) process.exit(child.exitCode ?? 1);
}

if (packagesAreCurrent()) {
  // Imported only now: it needs the packages.
  const { buildFrontEnd } = await import("./build.ts");
  await buildFrontEnd();
} else {
  await run([process.execPath, "install", "--frozen-lockfile"]);
  await Bun.write(MARKER, "");
  // A process of its own: this one looked for packages before they were there, and remembers that.
  await run([process.execPath, join(PROJECT_DIR, "scripts/build.ts")]);
}

// The server takes this process's place, so that signals reach it directly.
const command = [process.execPath, join(PROJECT_DIR, "src/main.ts"), ...process.argv.slice(2)];
if (process.execve && process.platform !== "win32") {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(Bun.env)) if (value !== undefined) env[name] = value;
  env.NODE_ENV ??= "production";
  process.execve(process.execPath, command, env);
} else {
  await run(command);
}
