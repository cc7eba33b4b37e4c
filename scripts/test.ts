// `bun run test [filter…] [--bun-test-flag…]`: gets what a fresh machine lacks, builds front end and binary, runs every
// test in groups and ends with "N passed, N failed". Refuses to call an empty run, a crash or a hang a success.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BINARY_VARIABLE } from "../test/support/server.ts";
import { ensureChromium } from "./install-chromium.ts";
import { ensurePostgres } from "./install-postgres.ts";
import { ensurePackages } from "./packages.ts";

const PROJECT_DIR = dirname(import.meta.dir);
const BUN = process.execPath;
/** All groups together stay below a quarter of an hour, also when one hangs. */
const RUN_LIMIT_MS = 14 * 60_000;
/** What an operator may have exported must not reach the product under test. */
const PRODUCT_VARIABLES = [
  "PORT",
  "HOST",
  "DATA_DIR",
  "DATABASE_URL",
  "REDIS_URL",
  "SESSION_SECRET",
  "ENCRYPTION_KEY",
  "TRUSTED_PROXIES",
  "LOG_LEVEL",
];

interface Group {
  name: "server" | "islands" | "e2e";
  files: string[];
  flags: string[];
}

interface Tally {
  passed: number;
  failed: number;
}

interface Result extends Tally {
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

/** A file belongs to the group of its first folder; everything that is neither islands nor e2e is a server test. */
export function groupFiles(files: readonly string[], filters: readonly string[]): Group[] {
  const wanted = files.filter(
    (file) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
  );
  const isIsland = (file: string) => file.startsWith("./test/islands/");
  // What needs a browser goes where the browser is made sure of.
  const isE2e = (file: string) => file.startsWith("./test/e2e/") || file.endsWith("/browser.test.ts");
  const preload = existsSync(join(PROJECT_DIR, "test/dom.ts")) ? ["--preload", "./test/dom.ts"] : [];
  const groups: Group[] = [
    {
      name: "server",
      files: wanted.filter((file) => !isIsland(file) && !isE2e(file)),
      flags: ["--timeout", "30000"],
    },
    { name: "islands", files: wanted.filter(isIsland), flags: [...preload, "--timeout", "30000"] },
    { name: "e2e", files: wanted.filter(isE2e), flags: ["--timeout", "60000"] },
  ];
  return groups.filter((group) => group.files.length > 0);
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
  const failures: string[] = [];
  for (const line of report) {
    if (/^\d+ tests? failed:$/.test(line)) break;
    if (/^\S+\.test\.tsx?:$/.test(line)) file = line;
    else if (line.startsWith("(fail) ")) failures.push(`${file} ${line}`);
  }
  return failures;
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
  const command = [BUN, "test", ...group.flags, ...flags, ...group.files];
  const child = Bun.spawn(command, {
    cwd: PROJECT_DIR,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: limitMs,
    killSignal: "SIGKILL",
  });
  // Bun reports on standard error; what tests print on standard output must not be taken for its figures.
  const report: string[] = [];
  const prefix = `[${group.name}] `;
  await Promise.all([relay(child.stdout, prefix, []), relay(child.stderr, prefix, report), child.exited]);
  const failures = failedTests(report);
  if (child.signalCode) {
    console.log(`${prefix}ended by ${child.signalCode}`);
    const last = report.findLast((line) => /^\((pass|fail)\) /.test(line)) ?? "the first test";
    failures.push(`${group.name} was ended by ${child.signalCode}, after ${last}`);
  }
  return { ...tally(report.join("\n"), child.exitCode ?? 1), failures };
}

/** Whether a test of these groups starts the product as a process of its own. */
function needsBinary(groups: readonly Group[]): boolean {
  const starts = (file: string) =>
    readFileSync(join(PROJECT_DIR, file), "utf8").includes("startServerProcess");
  return groups.some((group) => group.files.some(starts));
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
  if (groups.some((group) => group.name === "server")) step("PostgreSQL", ensurePostgres);
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
  const flags = args.filter((arg) => arg.startsWith("-"));
  const groups = groupFiles(
    findTestFiles(),
    args.filter((arg) => !arg.startsWith("-")),
  );
  // After the packages are there: it imports the database driver.
  const { RUN_DIR_VARIABLE, RUN_OWNER_VARIABLE, stopPostgres } = await import("../test/support/postgres.ts");
  const runDir = mkdtempSync(join(tmpdir(), "weir-run-"));
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(Bun.env)) {
    if (value !== undefined && !PRODUCT_VARIABLES.includes(name)) env[name] = value;
  }
  env[RUN_DIR_VARIABLE] = runDir;
  env[RUN_OWNER_VARIABLE] = String(process.pid);

  const total: Result = { passed: 0, failed: prepare(groups, env), failures: [] };
  const runOne = async (group: Group) => {
    const groupStartedMs = Date.now();
    const leftMs = Math.max(1000, RUN_LIMIT_MS - (groupStartedMs - startedMs));
    const result = await runGroup(group, flags, env, leftMs);
    const seconds = ((Date.now() - groupStartedMs) / 1000).toFixed(1);
    console.log(`${group.name}: ${result.passed} passed, ${result.failed} failed (${seconds} s)`);
    total.passed += result.passed;
    total.failed += result.failed;
    total.failures.push(...result.failures);
  };
  try {
    // Two cores, two lanes of about the same length: the browsers in one, everything else in the other.
    const runLane = async (lane: readonly Group[]) => {
      for (const group of lane) await runOne(group);
    };
    const isBrowsers = ({ name }: Group) => name === "e2e";
    await Promise.all([
      runLane(groups.filter((group) => !isBrowsers(group))),
      runLane(groups.filter((group) => isBrowsers(group))),
    ]);
  } finally {
    stopPostgres(runDir);
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
    result = { passed: 0, failed: 1, failures: [] };
  }
  if (result.passed + result.failed === 0) console.error("no tests were found");
  for (const failure of result.failures) console.log(failure);
  console.log(`${result.passed} passed, ${result.failed} failed`);
  process.exit(result.failed > 0 || result.passed === 0 ? 1 : 0);
}
