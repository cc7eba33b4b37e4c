// The journal's watcher: how long the oldest entry waits for the tables, and what its writes took.
import { expect, test } from "bun:test";
import type { Journal } from "../../../../src/core/ledger/journal/journal.ts";
import { watchJournal } from "../../../../src/core/ledger/journal/watched.ts";

function journal() {
  let last = 0;
  let nowMs = 0;
  const took: number[] = [];
  const inner = {
    append(items: readonly string[]) {
      nowMs += 3;
      last += items.length;
    },
    setAside: () => undefined,
    get lastPosition() {
      return last;
    },
  } as unknown as Journal<string>;
  const watched = watchJournal(inner, { monotonicMs: () => nowMs, synced: (ms) => void took.push(ms) });
  return { watched, took, pass: (ms: number) => void (nowMs += ms) };
}

test("the age is that of the oldest entry which the tables have not, within a quarter of a second", () => {
  const { watched, took, pass } = journal();
  expect(watched.oldestMs(0)).toBe(0);
  watched.append(["a"]);
  pass(997);
  watched.append(["b", "c"]);
  pass(997);
  expect(watched.oldestMs(0)).toBe(2000);
  expect(watched.oldestMs(1)).toBe(1000);
  expect(watched.oldestMs(2)).toBe(1000);
  expect(watched.oldestMs(3)).toBe(0);
  // What was applied long ago makes nobody old.
  pass(3_600_000);
  watched.append(["d"]);
  pass(7);
  expect(watched.oldestMs(3)).toBe(10);
  expect(took).toEqual([3, 3, 3]);
});

test("an outage of days is dated by few moments, the oldest among them", () => {
  const { watched, pass } = journal();
  for (let index = 0; index < 5000; index++) {
    watched.append(["x"]);
    pass(997);
  }
  expect(watched.oldestMs(0)).toBe(5_000_000);
  const halfway = watched.oldestMs(2500);
  expect(halfway).toBeGreaterThanOrEqual(2_500_000);
  expect(halfway).toBeLessThan(2_600_000);
  expect(watched.oldestMs(4990)).toBeLessThan(30_000);
});

test("what the tables refuse is counted", () => {
  const { watched } = journal();
  watched.setAside({ position: 1, item: "a" }, "no", 0);
  expect(watched.refused()).toBe(1);
});
