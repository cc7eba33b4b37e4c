// Compiles the server with everything it serves into one executable, dist/weir.
// Refuses to read .env and bunfig.toml of the directory the binary is started in.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildLicenses, LICENSES_FILE } from "./build-licenses.ts";

/** The program and every Worker: Workers are not found by the bundler and must be named. */
const MAIN = "src/main.ts";
const WORKERS = ["src/db/reader-worker.ts", "src/relay/meter/token-worker.ts"];

const PROGRAMS = [MAIN, ...WORKERS].map((path) => `./${path}`);

/** Directories that the server reads from import.meta.dir at run time. */
const EMBEDDED = ["dist/a", "dist/manifest.json", `dist/${LICENSES_FILE}`, "views/public", "locales"];

/** With another main module: the same program for a test that asks it what no caller can. */
export async function compileProgram(
  projectDir: string,
  outfile: string,
  { target, main = MAIN }: { target?: string | undefined; main?: string } = {},
): Promise<void> {
  if (!existsSync(join(projectDir, "dist", LICENSES_FILE))) buildLicenses(projectDir, PROGRAMS);
  const child = Bun.spawn(
    [
      process.execPath,
      "build",
      "--compile",
      "--minify",
      "--bytecode",
      "--format=esm",
      // What is imported later is loaded later: the process that only makes room for another (src/main.ts), letters, …
      "--splitting",
      // What runs once at the start is not worth compiling; serve.ts returns to the usual policy.
      "--compile-jit-policy=8",
      // Where a package offers both, its modules: of the icons only those that are drawn come in (650 KB less to parse).
      "--conditions=module",
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      ...(target ? [`--target=${target}`] : []),
      ...EMBEDDED.flatMap((path) => ["--asset", `./${path}`]),
      ...[main, ...WORKERS].map((path) => `./${path}`),
      "--outfile",
      outfile,
    ],
    {
      cwd: projectDir,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: { ...Bun.env, NODE_ENV: "production" },
    },
  );
  const [problems, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`the binary does not build:\n${problems}`);
}

export async function buildBinary(projectDir: string, target?: string): Promise<string> {
  const outfile = join(projectDir, "dist", target ? `weir-${target.replace("bun-", "")}` : "weir");
  const startedMs = performance.now();
  buildLicenses(projectDir, PROGRAMS);
  await compileProgram(projectDir, outfile, { target });
  const megabytes = (statSync(outfile).size / 1024 / 1024).toFixed(0);
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(`binary: ${outfile.slice(projectDir.length + 1)}, ${megabytes} MB in ${seconds} s`);
  return outfile;
}
