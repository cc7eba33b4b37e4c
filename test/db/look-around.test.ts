// Shared timers: everybody is called as often as they asked, together with whoever is due then, and nobody after the end.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createLookAround } from "../../src/db/look-around.ts";
import type { LookEvery } from "../../src/db/look-around.ts";

const stops: (() => void)[] = [];
let lookEvery: LookEvery;

beforeEach(() => {
  jest.useFakeTimers();
  lookEvery = createLookAround();
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
  jest.useRealTimers();
});

const looks = (ms: number, seen: string[], name: string): number =>
  stops.push(lookEvery(ms, () => seen.push(name)));

test("who is due at one moment is called in one turn of one timer, each as often as it asked", () => {
  const seen: string[] = [];
  looks(500, seen, "half");
  looks(1000, seen, "one");
  looks(5000, seen, "five");
  expect(jest.getTimerCount()).toBe(1);
  jest.advanceTimersByTime(10_000);
  const times = (name: string) => seen.filter((each) => each === name).length;
  expect([times("half"), times("one"), times("five")]).toEqual([20, 10, 2]);
  expect(seen.slice(0, 3)).toEqual(["half", "half", "one"]);
});

test("an interval that fits no other has a timer of its own", () => {
  const seen: string[] = [];
  looks(20, seen, "often");
  looks(500, seen, "half");
  jest.advanceTimersByTime(100);
  expect(seen).toEqual(["often", "often", "often", "often", "often"]);
});

test("who has stopped is not called again, and the last one takes the timer along", () => {
  const seen: string[] = [];
  const first = lookEvery(500, () => seen.push("first"));
  const second = lookEvery(500, () => {
    seen.push("second");
    first();
  });
  jest.advanceTimersByTime(1000);
  expect(seen).toEqual(["first", "second", "second"]);
  second();
  jest.advanceTimersByTime(5000);
  expect(seen).toHaveLength(3);
  expect(jest.getTimerCount()).toBe(0);
});
