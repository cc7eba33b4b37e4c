// The parent alone, with workers that are a line of script: when it starts one again, when it gives up, and whom it asks to end.
// Refuses real workers: test/attack/workers.test.ts has them.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createParent } from "../../src/cluster/parent.ts";
import type { Parent } from "../../src/cluster/parent.ts";
import { limitsWarning } from "../../src/workers.ts";

/** Serves, and ends when it is told to, or when a signal comes; `more` is run when it serves. */
const worker = (more = "") => `
  process.on("message", ({ kind }) => kind === "retire" && process.exit(0));
  process.on("SIGTERM", () => process.exit(0));
  setInterval(() => {}, 1000);
  process.send({ kind: "serving" });
  ${more}`;

let parent: Parent | undefined;
afterEach(async () => {
  await parent?.stop();
  parent = undefined;
});

/** Serves, and its event loop never turns again from the moment in which it is told to end. */
const hung = `
  const hang = () => { for (;;); };
  process.on("message", hang);
  process.on("SIGTERM", hang);
  setInterval(() => {}, 1000);
  process.send({ kind: "serving" });`;
/** What a worker may take to end where a test waits for one that never does. */
const HUNG_LIMIT_MS = 300;
/** Everywhere else: a busy machine's workers are not killed. */
const END_LIMIT_MS = 10_000;

interface Started {
  parent: Parent;
  /** Indexes of the workers in the order of their starts, and what was logged. */
  starts: number[];
  said: { text: string; fields: Record<string, unknown> | undefined }[];
}

/** `scripts`: what the first, second, … process of all runs; the last one's goes on. */
function parentOf(workers: number, ...scripts: string[]): Started {
  return parentWithin(END_LIMIT_MS, workers, scripts);
}

function parentWithin(endLimitMs: number, workers: number, scripts: string[]): Started {
  const starts: number[] = [];
  const said: Started["said"] = [];
  const say = (text: string, fields?: Record<string, unknown>) => void said.push({ text, fields });
  const command = ["-e", `new Function("process", process.env.SCRIPT)(process)`];
  parent = createParent({
    workers,
    command: [process.execPath, ...command],
    environmentOf(index) {
      const script = scripts[Math.min(starts.length, scripts.length - 1)] ?? "";
      starts.push(index);
      return { ...Bun.env, SCRIPT: script };
    },
    endLimitMs,
    logger: { info: say, warn: say, error: say },
  });
  return { parent, starts, said };
}

async function until(look: () => boolean): Promise<void> {
  while (!look()) await Bun.sleep(5);
}

test("a worker that cannot start ends all of them: a wrong setting is no crash", async () => {
  const { parent: own, starts } = parentOf(2, worker(), "process.exit(1)");
  expect(await own.start()).toBe(false);
  expect(starts).toEqual([0, 1]);
});

test("one that crashes is started again, after pauses that grow", async () => {
  const crash = worker("setTimeout(() => process.exit(3), 1)");
  const { parent: own, starts, said } = parentOf(1, crash, crash, worker());
  expect(await own.start()).toBe(true);
  await until(() => starts.length === 3);
  const ends = said.filter(({ text }) => text.startsWith("a worker ended"));
  expect(ends.map(({ fields }) => [fields?.["code"], fields?.["inMs"]])).toEqual([
    [3, 500],
    [3, 1000],
  ]);
}, 20_000);

test("one that crashes while others are starting is started again when they serve", async () => {
  const place = mkdtempSync(join(tmpdir(), "weir-parent-"));
  const file = JSON.stringify(join(place, "pid"));
  const fs = `const fs = process.getBuiltinModule("node:fs");`;
  const crash = worker(
    `${fs} fs.writeFileSync(${file}, String(process.pid)); setTimeout(() => process.exit(3), 1);`,
  );
  // Serves when the parent has seen the other's end, whose number is free then.
  const late = `${fs}
    process.on("SIGTERM", () => process.exit(0));
    setInterval(() => {
      try {
        const pid = Number(fs.readFileSync(${file}, "utf8"));
        if (pid > 0) process.kill(pid, 0);
      } catch (error) {
        if (error.code === "ESRCH") process.send({ kind: "serving" });
      }
    }, 5);`;
  const { parent: own, starts, said } = parentOf(2, crash, late, worker());
  try {
    expect(await own.start()).toBe(true);
    await until(() => starts.length === 3);
    expect(starts).toEqual([0, 1, 0]);
    expect(said[0]?.fields).toMatchObject({ worker: 0, code: 3, inMs: 500 });
  } finally {
    rmSync(place, { recursive: true });
  }
}, 20_000);

test("a worker may ask that all begin anew, one after the other; a stop asks each and takes its exit code", async () => {
  const once = worker(`process.send({ kind: "roll" })`);
  const { parent: own, starts, said } = parentOf(2, worker(), once, worker());
  expect(await own.start()).toBe(true);
  await until(() => said.some(({ text }) => text === "all workers were replaced"));
  expect(starts).toEqual([0, 1, 0, 1]);
  expect(await own.stop()).toBe(0);
}, 20_000);

test("a roll ends at the first worker that cannot start, and the others stay", async () => {
  const { parent: own, starts, said } = parentOf(2, worker(), worker(), "process.exit(1)", worker());
  expect(await own.start()).toBe(true);
  await own.roll();
  expect(starts).toEqual([0, 1, 0]);
  expect(said.at(-1)?.text).toContain("the others stay as they are");
  // It is tried again like one that crashed.
  await until(() => starts.length === 4);
  expect(starts).toEqual([0, 1, 0, 0]);
}, 20_000);

test("a roll does not wait for a worker that is still starting", async () => {
  const crash = worker("setTimeout(() => process.exit(3), 1)");
  const { parent: own, starts, said } = parentOf(1, crash, "setInterval(() => {}, 1000)", worker());
  expect(await own.start()).toBe(true);
  await until(() => starts.length === 2);
  await own.roll();
  expect(said.at(-1)?.text).toBe("all workers were replaced");
  expect(starts).toEqual([0, 0, 0]);
}, 20_000);

test("a roll that is asked for during the start comes after it", async () => {
  const { parent: own, starts } = parentOf(2, worker());
  const starting = own.start();
  const rolled = own.roll();
  expect(await starting).toBe(true);
  await rolled;
  expect(starts).toEqual([0, 1, 0, 1]);
}, 20_000);

test("a worker whose event loop hangs is killed when its time to end is over, and told", async () => {
  const { parent: own, starts, said } = parentWithin(HUNG_LIMIT_MS, 2, [hung, worker()]);
  expect(await own.start()).toBe(true);
  const startedMs = performance.now();
  // Not in order, so that a supervisor sees it.
  expect(await own.stop()).toBe(1);
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(HUNG_LIMIT_MS - 1);
  const killed = said.filter(({ text }) => text.includes("is killed"));
  // A good one may need longer than that on a busy machine.
  expect(killed.map(({ fields }) => fields?.["worker"])).toContain(0);
  expect(starts).toEqual([0, 1]);
}, 20_000);

test("a roll kills a worker that hangs and goes on with its successor and the others", async () => {
  const { parent: own, starts, said } = parentWithin(HUNG_LIMIT_MS, 2, [hung, worker()]);
  expect(await own.start()).toBe(true);
  await own.roll();
  expect(said.at(-1)?.text).toBe("all workers were replaced");
  expect(starts).toEqual([0, 1, 0, 1]);
  // One that was killed did not crash: nobody starts a third.
  expect(said.filter(({ text }) => text.startsWith("a worker ended"))).toEqual([]);
}, 20_000);

test("limits that multiply by workers are warned of, and not where Valkey keeps them for all", () => {
  expect(limitsWarning({ valkey: undefined })).toContain("kept by each worker");
  const valkey = { url: "redis://127.0.0.1" } as unknown as Parameters<typeof limitsWarning>[0]["valkey"];
  expect(limitsWarning({ valkey })).toBeUndefined();
});
