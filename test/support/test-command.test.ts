// The test command's own arithmetic: no crash, hang or load error may look like a success.
// Refuses to run the command on the project: figures come from texts and from tiny runs of their own.

import { afterAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repairPackage } from "../../scripts/install-postgres.ts";
import { groupFiles, isWaiting, partsOf, takePart } from "../../scripts/test-parts.ts";
import { failedTests, startsProduct, tally } from "../../scripts/test.ts";
import { slownessOf, stretchOf } from "./stretch.ts";
import { untilSo } from "./turns.ts";

const scratchDir = mkdtempSync(join(tmpdir(), "weir-tally-"));
afterAll(() => rmSync(scratchDir, { recursive: true, force: true }));

function runTests(name: string, source: string): { passed: number; failed: number } {
  const file = join(scratchDir, `${name}.test.ts`);
  writeFileSync(file, source);
  const child = Bun.spawnSync([process.execPath, "test", file], {
    cwd: scratchDir,
    stdout: "ignore",
    stderr: "pipe",
  });
  return tally(String(child.stderr), child.exitCode ?? 1);
}

const HEADER = 'import { test, expect } from "bun:test";\n';

test("passes and failures of a real run are counted as Bun prints them", () => {
  const source = `${HEADER}test("a", () => {}); test("b", () => {}); test("c", () => expect(1).toBe(2));`;
  expect(runTests("mixed", source)).toEqual({ passed: 2, failed: 1 });
  expect(runTests("good", `${HEADER}test("a", () => {});`)).toEqual({ passed: 1, failed: 0 });
});

test("what failed is named with its file, to be told once more at the end", () => {
  const report = [
    "test/a.test.ts:",
    "(pass) one [1.00ms]",
    "test/b.test.ts:",
    "(fail) two > three [2.00ms]",
    "test/c.test.ts:",
    "(pass) four [1.00ms]",
    "",
    "1 tests failed:",
    "(fail) two > three [2.00ms]",
  ];
  expect(failedTests(report)).toEqual(["test/b.test.ts: (fail) two > three [2.00ms]"]);
});

test("a failed test is told with its reason: neither the source around it nor what was printed before", () => {
  const report = [
    "test/a.test.ts:",
    "error: not of this test",
    "(pass) one [1.00ms]",
    "31 |   expect(weights).toEqual([]);",
    "error: expect(received).toEqual(expected)",
    "",
    '+   "/playground: 10.1 KB",',
    "      at <anonymous> (test/a.test.ts:31:32)",
    "(fail) two [2.00ms]",
  ];
  expect(failedTests(report)).toEqual([
    [
      "test/a.test.ts: (fail) two [2.00ms]",
      "    error: expect(received).toEqual(expected)",
      '    +   "/playground: 10.1 KB",',
      "          at <anonymous> (test/a.test.ts:31:32)",
    ].join("\n"),
  ]);
});

test("a file that does not load is a failure", () => {
  expect(runTests("broken", `${HEADER}import "./missing.ts"; test("a", () => {});`).failed).toBeGreaterThan(
    0,
  );
});

test("a run that ends in the middle counts what was told and one failure", () => {
  const source = `${HEADER}test("a", () => {}); test("b", () => process.exit(0));`;
  expect(runTests("exits", source).failed).toBeGreaterThan(0);
  expect(tally("x.test.ts:\n(pass) a [0.1ms]\n(pass) b [0.1ms]\n", 137)).toEqual({ passed: 2, failed: 1 });
});

test("a rejection nobody handles is a failure although every test passed", () => {
  const source = `${HEADER}test("a", () => { void Promise.reject(new Error("lost")); });`;
  expect(runTests("rejection", source).failed).toBeGreaterThan(0);
});

test("a bad exit code is a failure whatever the closing lines say, and colours do not hide figures", () => {
  const escape = String.fromCharCode(27);
  const text = `\n${escape}[32m 5 pass${escape}[0m\n 0 fail\n 9 expect() calls\nRan 5 tests across 1 file. [1.00s]\n`;
  expect(tally(text, 0)).toEqual({ passed: 5, failed: 0 });
  expect(tally(text, 1)).toEqual({ passed: 5, failed: 1 });
});

test("files fall into groups by folder, filters choose by path, empty groups vanish", () => {
  const files = [
    "./test/attack/d.test.ts",
    "./test/core/a.test.ts",
    "./test/e2e/b.test.ts",
    "./test/islands/c.test.tsx",
    "./test/rooms.test.ts",
  ];
  expect(groupFiles(files, []).map((group) => [group.name, group.files.length])).toEqual([
    ["server", 2],
    ["attack", 1],
    ["islands", 1],
    ["e2e", 1],
  ]);
  expect(groupFiles(files, ["core"]).map((group) => group.files)).toEqual([["./test/core/a.test.ts"]]);
  expect(groupFiles(files, ["nothing"])).toEqual([]);
});

test("every file is in one part; two heavy parts run at once, one attack of them, when nothing else is left one a core", () => {
  const numbers = Array.from({ length: 60 }, (_, at) => at);
  const files = ["core", "attack", "e2e"].flatMap((folder) =>
    numbers.map((at) => `./test/${folder}/${at}.test.ts`),
  );
  const queue = partsOf(groupFiles(files, []));
  expect(queue.flatMap((part) => part.files).toSorted()).toEqual(files.toSorted());
  const running: typeof queue = [];
  const take = () => running.push(...[takePart(queue, running)].flatMap((part) => part ?? []));
  for (let lane = 0; lane < 4; lane++) take();
  expect(running.map((part) => part.name)).toEqual(["e2e", "e2e", "server", "server"]);
  running.splice(0, 1);
  for (const part of queue.filter(({ name }) => name === "e2e")) queue.splice(queue.indexOf(part), 1);
  take();
  expect(running.at(-1)?.name).toBe("attack");
  running.splice(0, 1);
  take();
  expect(running.at(-1)?.name).toBe("server");
  const rest = queue.filter((part) => part.name === "attack");
  const heavy = running.filter(({ name }) => name === "attack" || name === "e2e");
  const left = rest.length;
  for (const cores of [1, 2, 4]) {
    const beside = [...heavy];
    for (let part = takePart(rest, beside, "any", cores); part; part = takePart(rest, beside, "any", cores))
      beside.push(part);
    expect(beside.length).toBe(Math.max(2, cores));
    // A lane that takes nothing ends; those that run go on with what is left.
    expect(takePart(rest, beside.slice(1), "any", cores)?.name).toBe("attack");
  }
  expect(rest.length).toBeLessThan(left);
  expect(takePart([], running)).toBeUndefined();
});

test("limits are stretched by what was measured: not by a few milliseconds of work, and never more than fivefold", () => {
  const ms = 1_000_000;
  expect([
    slownessOf(0, 0),
    slownessOf(19 * ms, 900 * ms),
    slownessOf(20 * ms, 20 * ms),
    slownessOf(20 * ms, 900 * ms),
  ]).toEqual([1, 1, 2, 46]);
  expect(stretchOf(46)).toBe(5);
});

test("what takes long is a part of its own and first; what waits runs in a lane of its own, in others only at the end", () => {
  const axe = "./test/e2e/axe.test.ts";
  const front = "./test/attack/front.test.ts";
  const queue = partsOf(groupFiles(["./test/e2e/a.test.ts", axe, front, "./test/core/a.test.ts"], []));
  expect(queue.map(({ files }) => files)).toEqual([
    [axe],
    ["./test/e2e/a.test.ts"],
    [front],
    ["./test/core/a.test.ts"],
  ]);
  const running = [takePart(queue, [], "waiting")].flatMap((part) => part ?? []);
  expect(running.map(isWaiting)).toEqual([true]);
  expect(takePart(queue, running, "waiting")).toBeUndefined();
  const left = partsOf(groupFiles([front, "./test/core/a.test.ts"], []));
  expect([takePart(left, []), takePart(left, [])].map((part) => part?.name)).toEqual(["server", "attack"]);
});

/** Runs .ci/run in a folder of its own, with a `bun` that does what it is told; after the run, what that wrote. */
async function runCi(name: string, bun: string): Promise<{ code: number; last: string; dir: string }> {
  const dir = join(scratchDir, name);
  for (const folder of [".ci", "bin", "node_modules"]) mkdirSync(join(dir, folder), { recursive: true });
  writeFileSync(join(dir, "bun.lock"), "");
  copyFileSync(join(import.meta.dir, "../../.ci/run"), join(dir, ".ci/run"));
  writeFileSync(join(dir, "bin/bun"), `#!/usr/bin/env bash\n${bun}\n`, { mode: 0o755 });
  const child = Bun.spawn(["bash", join(dir, ".ci/run")], {
    env: { ...process.env, PATH: `${join(dir, "bin")}:${process.env["PATH"]}` },
    stdout: "pipe",
    stderr: "ignore",
  });
  const text = await new Response(child.stdout).text();
  return { code: await child.exited, last: text.trimEnd().split("\n").at(-1) ?? "", dir };
}

test("CI's last line has its form when the packages cannot be installed, and nothing was run", async () => {
  const { code, last, dir } = await runCi("no-packages", '[ "$1" = install ] && exit 1; : >ran');
  expect({ code, last }).toEqual({ code: 1, last: "0 passed, 1 failed" });
  expect(existsSync(join(dir, "ran"))).toBe(false);
});

test("CI that is ended in the middle ends its check, too, with whatever that began", async () => {
  // The check's own child says when it is there, and when it is asked to end; the test command then ends CI.
  const childs = "trap ': >ended; exit' TERM; : >there; sleep 600 & wait";
  const check = `bash -c "${childs}" & wait`;
  const tests = 'until [ -e there ]; do sleep 0.01; done; kill -TERM "$PPID"';
  const { dir } = await runCi("ended", `case $1 in install) ;; run) ${check} ;; *) ${tests} ;; esac`);
  await untilSo(() => existsSync(join(dir, "ended")));
});

test("a test needs the binary that starts the product itself, through a helper, or through a helper's helper", () => {
  expect(
    ["test/start.test.ts", "test/attack/front.test.ts", "test/e2e/morning.test.ts"].map((file) =>
      startsProduct(file),
    ),
  ).toEqual([true, true, true]);
  expect(
    ["test/locales.test.ts", "test/core/channels/routing.test.ts"].map((file) => startsProduct(file)),
  ).toEqual([false, false]);
});

test("repairing the packaged PostgreSQL makes its library links, twice without harm", () => {
  const nativeDir = join(scratchDir, "native");
  mkdirSync(join(nativeDir, "bin"), { recursive: true });
  mkdirSync(join(nativeDir, "lib"));
  for (const program of ["initdb", "postgres", "pg_ctl"]) writeFileSync(join(nativeDir, "bin", program), "");
  writeFileSync(join(nativeDir, "lib/liba.so.1.2"), "");
  const links = [{ source: "native/lib/liba.so.1.2", target: "native/lib/liba.so.1" }];
  writeFileSync(join(nativeDir, "pg-symlinks.json"), JSON.stringify(links));
  repairPackage(nativeDir);
  repairPackage(nativeDir);
  expect(lstatSync(join(nativeDir, "lib/liba.so.1")).isSymbolicLink()).toBe(true);
  expect(lstatSync(join(nativeDir, "bin/initdb")).mode & 0o111).toBe(0o111);
});
