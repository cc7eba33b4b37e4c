// Elysia reads out of the source of handlers and hooks what they use of their context, and whether they are waited for.
// Refuses that the binary's shortened source says less than the one that was written: a part that the framework does not
// find is undefined there, without a word.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { compileProgram } from "../../scripts/build-binary.ts";

const PROJECT_DIR = dirname(dirname(import.meta.dir));
const MAIN = "test/support/compiled-routes.ts";
const dir = mkdtempSync(join(tmpdir(), "weir-compiled-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function codeOf(command: string[]): Record<string, string> {
  const ended = Bun.spawnSync(command, { cwd: PROJECT_DIR, stdin: "ignore", timeout: 60_000 });
  if (ended.exitCode !== 0) throw new Error(ended.stderr.toString());
  return JSON.parse(ended.stdout.toString()) as Record<string, string>;
}

/** To wait for what is there already changes nothing. */
const plain = (code: string | undefined) => code?.replaceAll("await handler(c)", "handler(c)");

test("every route of the binary is compiled to what its written source is compiled to", async () => {
  const written = codeOf([process.execPath, MAIN]);
  const outfile = join(dir, "routes");
  await compileProgram(PROJECT_DIR, outfile, { main: MAIN });
  const built = codeOf([outfile]);
  expect(Object.keys(built)).toEqual(Object.keys(written));
  expect(Object.keys(built).length).toBeGreaterThan(150);
  const different = Object.keys(written).filter((name) => plain(built[name]) !== plain(written[name]));
  expect(different).toEqual([]);
  // Waited for as written: an error thrown later must still find the handler of errors.
  const unwaited = Object.keys(written).filter(
    (name) => written[name]?.includes("await handler(c)") && !built[name]?.includes("await handler(c)"),
  );
  expect(unwaited).toEqual([]);
  // The one part that the product must never take from there: who has called is asked of `Visitors`.
  expect(Object.keys(built).filter((name) => /getServer\(\)/.test(built[name] ?? ""))).toEqual([]);
}, 120_000);
