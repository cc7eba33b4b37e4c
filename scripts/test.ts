// `bun run test [filter…] [--bun-test-flag…]`: gets what a fresh machine lacks, builds front end and binary, runs every
// test in groups and ends with "N passed, N failed"; `--long` runs in full what takes samples, and nothing else.
// Refuses to call an empty run, a crash or a hang a success.

import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { availableParallelism, freemem, tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { BINARY_VARIABLE, withParent } from "../test/support/server.ts";
import { ensureChromium } from "./install-chromium.ts";
import { ensureMariadb } from "./install-mariadb.ts";
import { ensurePgbouncer } from "./install-pgbouncer.ts";
import { ensurePostgres } from "./install-postgres.ts";
import { ensureRedis } from "./install-redis.ts";
import { ensurePackages } from "./packages.ts";
import { groupFiles, partsOf, takePart } from "./test-parts.ts";
import type { Group } from "./test-parts.ts";

const PROJECT_DIR = dirname(import.meta.dir);
const BUN = process.execPath;
/** Ends a hang. The run itself is meant to take less than half an hour; a busy machine is not a failure. */
const RUN_LIMIT_MS = 40 * 60_000;
/** The long run has hours in it on purpose; its own end is what ends a hang. */
const LONG_RUN_LIMIT_MS = 3 * 60 * 60_000;
/** Asks for the long run; not a flag of Bun's. */
const LONG_FLAG = "--long";
/** What tests that take samples read: "1" means everything. */
const LONG_VARIABLE = "WEIR_LONG";
/** What an operator may have exported must not reach the product under test. */
const PRODUCT_VARIABLES = [
  "PORT",
  "HOST",
  "DATA_DIR",
  "DATABASE_URL",
  "DATABASE_DIRECT_URL",
  "DATABASE_DIRECT_URL_FILE",
  "REDIS_URL",
  "REDIS_URL_FILE",
  "SESSION_SECRET",
  "ENCRYPTION_KEY",
  "TRUSTED_PROXIES",
  "LOG_LEVEL",
  "WEIR_NEW",
  "DRAIN_SECONDS",
  "DRAIN_DELAY_SECONDS",
  "DATABASE_POOL",
  "WORKERS",
  "WEIR_WORKER",
  "JOURNAL_KEEP_MINUTES",
  "DURABILITY",
  "BACKUP_DIR",
  "BACKUP_AT",
  "KEY_PASSPHRASE",
  "DATABASE_URL_FILE",
  "SESSION_SECRET_FILE",
  "ENCRYPTION_KEY_FILE",
  "NEW_ENCRYPTION_KEY_FILE",
  "KEY_PASSPHRASE_FILE",
  "METRICS_TOKEN",
  "METRICS_TOKEN_FILE",
  "ACCESS_LOG",
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_HEADERS",
  "OTEL_SERVICE_NAME",
  "OTEL_TRACES_SAMPLER",
  "OTEL_TRACES_SAMPLER_ARG",
  "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
];

/** What a run leaves on the disk, with room to spare. */
const RUN_BYTES = 6 * 1024 ** 3;

interface Tally {
  passed: number;
  failed: number;
}

interface Result extends Tally {
  /** Processor time of the process and of those that it waited for; nothing of PostgreSQL's. */
  cpuSeconds: number;
  /** What to look at, "test/core/a.test.ts: (fail) name [1.00ms]"; for reading only, `failed` counts. */
  failures: string[];
}

/** Every test file below test/, as "./test/…" with forward slashes, in a stable order. */
function findTestFiles(): string[] {
  if (!existsSync(join(PROJECT_DIR, "test"))) return [];
  const names = readdirSync(join(PROJECT_DIR, "test"), { recursive: true, encoding: "utf8" });
  return names
    .map((name) => `./test/${name.replaceAll("\\", "/")}`)
    .filter((name) => /\.test\.tsx?$/.test(name))
    .sort();
}

/** The attacks, and whatever else takes a sample of something larger: the long run is these. */
function hasLongForm(file: string): boolean {
  return (
    file.startsWith("./test/attack/") || readFileSync(join(PROJECT_DIR, file), "utf8").includes(LONG_VARIABLE)
  );
}

const IN_MEMORY = "/dev/shm";

/** Room enough, and programs may run there: some tests build one. */
function hasRoomInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    if (Math.min(bavail * bsize, freemem()) < RUN_BYTES) return false;
    return !/^\S+ \/dev\/shm \S+ \S*\bnoexec\b/m.test(readFileSync("/proc/mounts", "utf8"));
  } catch {
    return false;
  }
}

/**
 * Where the run's files lie: in memory where there is plenty, since tests kill processes, not machines, and what a
 * process wrote outlives it there too. A disk would make every durable write wait.
 */
function makeRunDir(): string {
  const runDir = mkdtempSync(join(hasRoomInMemory() ? IN_MEMORY : tmpdir(), "weir-run-"));
  // PostgreSQL runs as another user when the run is root's.
  chmodSync(runDir, 0o755);
  return runDir;
}

/**
 * Reads what one `bun test` printed. Its closing lines (" 5 pass", " 1 fail", " 1 error") count; without them the
 * process ended early, then the single results count and the early end is a failure of its own. A bad exit code with no
 * failure told is one too.
 */
export function tally(output: string, exitCode: number): Tally {
  const escape = String.fromCharCode(27);
  const text = output.replaceAll(new RegExp(`${escape}\\[[0-9;]*m`, "g"), "");
  const closing = text.lastIndexOf("\nRan ");
  if (closing < 0) {
    const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
    return { passed: count(/^\(pass\) /gm), failed: count(/^\(fail\) /gm) + 1 };
  }
  const summary = text.slice(0, closing).split("\n").slice(-12).join("\n");
  const figure = (word: string) => Number(new RegExp(`^ *(\\d+) ${word}s?$`, "m").exec(summary)?.[1] ?? 0);
  const failed = figure("fail") + figure("error");
  return { passed: figure("pass"), failed: failed === 0 && exitCode !== 0 ? 1 : failed };
}

/**
 * The failed tests that one `bun test` printed, each with its file: the end of a long log must tell them again. Bun's own
 * list of them, behind "2 tests failed:", names no files.
 */
export function failedTests(report: readonly string[]): string[] {
  let file = "";
  let told: string[] = [];
  const failures: string[] = [];
  for (const line of report) {
    if (/^\d+ tests? failed:$/.test(line)) break;
    if (/^\S+\.test\.tsx?:$/.test(line)) file = line;
    else if (line.startsWith("(pass) ")) told = [];
    else if (line.startsWith("(fail) ")) {
      failures.push([`${file} ${line}`, ...reasonIn(told)].join("\n"));
      told = [];
    } else told.push(line);
  }
  return failures;
}

/** Lines of a failed test's own words that are worth telling twice. */
const MOST_REASON_LINES = 14;

/** From what was printed since the test before: the error and what differed, without the excerpt of the source. */
function reasonIn(lines: readonly string[]): string[] {
  const from = Math.max(
    0,
    lines.findIndex((line) => /^(\w*[Ee]rror|panic)\b/.test(line)),
  );
  return lines
    .slice(from)
    .filter((line) => line.trim() !== "" && !/^\s*\d+ \|/.test(line))
    .slice(0, MOST_REASON_LINES)
    .map((line) => `    ${line}`);
}

/** Copies a child's output line by line under the group's name and keeps it for the count. */
async function relay(stream: ReadableStream<Uint8Array>, prefix: string, kept: string[]): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of stream) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      kept.push(line);
      process.stdout.write(`${prefix}${line}\n`);
    }
  }
  if (rest) {
    kept.push(rest);
    process.stdout.write(`${prefix}${rest}\n`);
  }
}

async function runGroup(
  group: Group,
  flags: string[],
  env: Record<string, string>,
  limitMs: number,
): Promise<Result> {
  // A run that is killed takes its tests with it.
  const seeded = env["WEIR_SEED"] ? ["--preload", "./test/support/seed.ts"] : [];
  const command = [...withParent(), BUN, "test", ...seeded, ...group.flags, ...flags, ...group.files];
  const child = Bun.spawn(command, {
    cwd: PROJECT_DIR,
    // Libraries as they ship; React's `act`, which islands are tested by, is in its development build alone.
    env: group.name === "islands" ? env : { ...env, NODE_ENV: "production" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: limitMs,
    killSignal: "SIGKILL",
  });
  // Bun reports on standard error; what tests print on standard output must not be taken for its figures.
  const report: string[] = [];
  const prefix = `[${group.name}${group.part ?? ""}] `;
  await Promise.all([relay(child.stdout, prefix, []), relay(child.stderr, prefix, report), child.exited]);
  const failures = failedTests(report);
  if (child.signalCode) {
    console.log(`${prefix}ended by ${child.signalCode}`);
    const last = report.findLast((line) => /^\((pass|fail)\) /.test(line)) ?? "the first test";
    failures.push(`${group.name} was ended by ${child.signalCode}, after ${last}`);
  }
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0n) / 1e6;
  return { ...tally(report.join("\n"), child.exitCode ?? 1), cpuSeconds, failures };
}

/** The one module that starts the product as a process of its own. */
const STARTER = join(PROJECT_DIR, "test/support/server.ts");
/** The one module that starts Redis or Valkey. */
const PGBOUNCER_STARTER = join(PROJECT_DIR, "test/support/pgbouncer.ts");
const REDIS_STARTER = join(PROJECT_DIR, "test/support/redis.ts");
const IMPORTS = { ts: new Bun.Transpiler({ loader: "ts" }), tsx: new Bun.Transpiler({ loader: "tsx" }) };

/** Whether a test imports a module of test/, itself or through its helpers. Types alone do not count. */
function reaches(file: string, module: string, seen = new Set<string>()): boolean {
  const path = join(PROJECT_DIR, file);
  if (path === module) return true;
  if (seen.has(path)) return false;
  seen.add(path);
  const { imports } = IMPORTS[path.endsWith("x") ? "tsx" : "ts"].scan(readFileSync(path, "utf8"));
  return imports.some(({ path: name }) => {
    const imported = relative(PROJECT_DIR, join(dirname(path), name));
    return name.startsWith(".") && imported.startsWith("test/") && reaches(imported, module, seen);
  });
}

/** Whether a test starts the product, itself or through its helpers. */
export function startsProduct(file: string): boolean {
  return reaches(file, STARTER);
}

function needsBinary(groups: readonly Group[]): boolean {
  return groups.some((group) => group.files.some((file) => startsProduct(file)));
}

/**
 * Programs, the front end and the binary, which it names in `env`. Returns how many of these steps failed; tests that need
 * them will say more.
 */
function prepare(groups: readonly Group[], env: Record<string, string>): number {
  let failed = 0;
  const step = (name: string, action: () => void) => {
    try {
      action();
    } catch (error) {
      failed++;
      console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  if (groups.some(({ name }) => name === "server" || name === "attack")) step("PostgreSQL", ensurePostgres);
  if (groups.some(({ files }) => files.some((file) => file.startsWith("./test/import/"))))
    step("MariaDB", ensureMariadb);
  if (groups.some(({ files }) => files.some((file) => reaches(file, PGBOUNCER_STARTER))))
    step("pgbouncer", ensurePgbouncer);
  if (groups.some(({ files }) => files.some((file) => reaches(file, REDIS_STARTER))))
    step("Redis", ensureRedis);
  if (groups.some((group) => group.name === "e2e")) step("Chromium", ensureChromium);
  step("build", () => {
    const isBinaryNeeded = needsBinary(groups);
    const build = Bun.spawnSync([BUN, "scripts/build.ts", ...(isBinaryNeeded ? ["--binary"] : [])], {
      cwd: PROJECT_DIR,
      env,
      stdin: "ignore",
      stdout: "inherit",
      stderr: "inherit",
    });
    if (build.exitCode !== 0) throw new Error(`it ended with ${build.exitCode}`);
    if (isBinaryNeeded) env[BINARY_VARIABLE] = join(PROJECT_DIR, "dist/weir");
  });
  return failed;
}

async function main(args: readonly string[]): Promise<Result> {
  const startedMs = Date.now();
  await ensurePackages();
  const isLong = args.includes(LONG_FLAG);
  const flags = args.filter((arg) => arg.startsWith("-") && arg !== LONG_FLAG);
  const files = findTestFiles();
  const groups = groupFiles(
    isLong ? files.filter(hasLongForm) : files,
    args.filter((arg) => !arg.startsWith("-")),
  );
  const runLimitMs = isLong ? LONG_RUN_LIMIT_MS : RUN_LIMIT_MS;
  // After the packages are there: it imports the database driver.
  const { RUN_DIR_VARIABLE, RUN_OWNER_VARIABLE, stopPostgres } = await import("../test/support/postgres.ts");
  const { stopMariadb } = await import("../test/support/mariadb.ts");
  const runDir = makeRunDir();
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(Bun.env)) {
    if (value !== undefined && !PRODUCT_VARIABLES.includes(name)) env[name] = value;
  }
  if (isLong) env[LONG_VARIABLE] = "1";
  env[RUN_DIR_VARIABLE] = runDir;
  env[RUN_OWNER_VARIABLE] = String(process.pid);
  env["TMPDIR"] = runDir;

  const total: Result = { passed: 0, failed: prepare(groups, env), cpuSeconds: 0, failures: [] };
  // A pattern may match nothing in a part, which Bun calls a failure.
  const queue = flags.length > 0 ? [...groups] : partsOf(groups);
  const running: Group[] = [];
  const runLane = async (lane: "any" | "waiting") => {
    for (let part = takePart(queue, running, lane); part; part = takePart(queue, running, lane)) {
      running.push(part);
      const partStartedMs = Date.now();
      const leftMs = Math.max(1000, runLimitMs - (partStartedMs - startedMs));
      const result = await runGroup(part, flags, env, leftMs);
      running.splice(running.indexOf(part), 1);
      const seconds = ((Date.now() - partStartedMs) / 1000).toFixed(1);
      const figures = `${result.passed} passed, ${result.failed} failed`;
      console.log(
        `${part.name}${part.part ?? ""}: ${figures} (${seconds} s, ${result.cpuSeconds.toFixed(1)} s of a processor)`,
      );
      total.cpuSeconds += result.cpuSeconds;
      total.passed += result.passed;
      total.failed += result.failed;
      total.failures.push(...result.failures);
    }
  };
  try {
    // Two more than cores, beside the lane that waits: tests of the server wait two thirds of their time, browsers half of theirs.
    const lanes = Math.max(2, availableParallelism() + 2);
    await Promise.all([runLane("waiting"), ...Array.from({ length: lanes }, () => runLane("any"))]);
  } finally {
    stopPostgres(runDir);
    stopMariadb(runDir);
    rmSync(runDir, { recursive: true, force: true });
  }
  return total;
}

if (import.meta.main) {
  let result: Result;
  try {
    result = await main(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    result = { passed: 0, failed: 1, cpuSeconds: 0, failures: [] };
  }
  console.log(`${result.cpuSeconds.toFixed(0)} s of a processor, PostgreSQL's beside`);
  if (result.passed + result.failed === 0) console.error("no tests were found");
  for (const failure of result.failures) console.log(failure);
  console.log(`${result.passed} passed, ${result.failed} failed`);
  process.exit(result.failed > 0 || result.passed === 0 ? 1 : 0);
}
