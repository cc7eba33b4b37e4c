// Shared timers: everybody is called as often as they asked, together with whoever is due then, and nobody after the end.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createLookAround } from "../../src/db/look-around.ts";
import type { Look, LookAround, LookEvery } from "../../src/db/look-around.ts";
import { createPresence } from "../../src/db/presence.ts";

const stops: (() => void)[] = [];
let around: LookAround;
let lookEvery: LookEvery;

beforeEach(() => {
  jest.useFakeTimers();
  around = createLookAround();
  ({ lookEvery } = around);
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

/** Half a minute in which nobody uses the process. */
function restNow(): void {
  jest.advanceTimersByTime(30_000);
}

test("a process that nobody uses rests: who said so comes seldom, the others as ever, one timer for all", () => {
  const seen: string[] = [];
  stops.push(lookEvery(500, () => seen.push("half"), 2500));
  stops.push(lookEvery(400, () => seen.push("own"), 2500));
  stops.push(lookEvery(1000, () => seen.push("one"), 5000));
  const times = (name: string) => seen.filter((each) => each === name).length;
  jest.advanceTimersByTime(19_900);
  expect([times("half"), times("own"), times("one")]).toEqual([39, 49, 19]);
  jest.advanceTimersByTime(100);
  expect(jest.getTimerCount()).toBe(1);
  seen.length = 0;
  jest.advanceTimersByTime(60_000);
  expect([times("half"), times("own"), times("one")]).toEqual([24, 24, 12]);
  // Who must come every two seconds brings nobody else sooner.
  seen.length = 0;
  looks(2000, seen, "always");
  jest.advanceTimersByTime(60_000);
  expect([times("always"), times("half"), times("one")]).toEqual([30, 15, 10]);
});

test("the first use after a rest brings all who come seldom before it goes on, and the old pace", () => {
  const seen: Look[] = [];
  let always = 0;
  stops.push(lookEvery(500, (look) => seen.push(look), 2500));
  stops.push(lookEvery(1000, () => always++));
  around.use();
  expect(seen).toEqual([]);
  restNow();
  [seen.length, always] = [0, 0];
  around.use();
  expect(seen.map(({ isWaking }) => isWaking)).toEqual([true]);
  around.use();
  expect([seen.length, always]).toEqual([1, 0]);
  jest.advanceTimersByTime(10_000);
  expect(seen.slice(1)).toEqual(Array.from({ length: 20 }, () => ({ dueMs: 500, isWaking: false })));
  // In use every ten seconds it does not rest.
  for (let uses = 0; uses < 4; uses++) {
    around.use();
    jest.advanceTimersByTime(10_000);
  }
  expect(seen).toHaveLength(101);
});

/** The feed and a lease on these timers: when each came, in milliseconds. */
function feedAndLease({ lookEvery: every }: LookAround) {
  const [feed, lease]: [number[], number[]] = [[], []];
  stops.push(every(500, () => feed.push(performance.now()), 2500));
  stops.push(every(1000, () => lease.push(performance.now()), 5000));
  return { feed, lease };
}

const longest = (times: readonly number[]): number =>
  Math.max(...times.slice(1).map((ms, at) => ms - (times[at] ?? 0)));

test("whoever comes and goes within the steps of a rest keeps nobody else from their times", () => {
  const { feed, lease } = feedAndLease(around);
  restNow();
  feed.length = lease.length = 0;
  for (let reads = 0; reads < 40; reads++) {
    let looks = 0;
    const end = lookEvery(500, () => (looks++, end()));
    jest.advanceTimersByTime(499);
    expect(looks).toBe(0);
    jest.advanceTimersByTime(2201);
    expect(looks).toBe(1);
  }
  expect(longest(feed)).toBeLessThanOrEqual(3000);
  expect(longest(lease)).toBeLessThanOrEqual(5500);
  // Who ends before their first look changes nothing at all.
  jest.advanceTimersByTime(5000);
  feed.length = lease.length = 0;
  for (let reads = 0; reads < 20; reads++) {
    lookEvery(500, () => {})();
    jest.advanceTimersByTime(1300);
    lookEvery(500, () => {})();
    jest.advanceTimersByTime(1200);
  }
  expect([longest(feed), longest(lease), feed.length, lease.length]).toEqual([2500, 5000, 20, 10]);
});

test("the time that a rest's step has run counts for who looks when it is broken off", () => {
  const { feed } = feedAndLease(around);
  const seen: Look[] = [];
  stops.push(lookEvery(1000, (look) => seen.push(look), 5000));
  restNow();
  const sinceMs = performance.now() - (feed.at(-1) ?? 0);
  jest.advanceTimersByTime(2500 - sinceMs + 1700);
  seen.length = 0;
  around.use();
  expect(seen.map(({ dueMs }) => dueMs % 2500)).toEqual([1700]);
});

test("who is due with a step is called by it, whatever fraction of a millisecond a rest began or ended with", () => {
  const whole = performance.now.bind(performance);
  let fraction = 0;
  const now = jest.spyOn(performance, "now").mockImplementation(() => whole() + fraction);
  const due: number[] = [];
  stops.push(lookEvery(500, ({ dueMs }) => due.push(dueMs), 2500));
  for (let rests = 1; rests <= 200; rests++) {
    restNow();
    fraction = (rests * 0.618034) % 1;
    around.use();
    restNow();
    due.length = 0;
    jest.advanceTimersByTime(100_000);
    expect([due.length, Math.max(...due)]).toEqual([40, 2500]);
  }
  now.mockRestore();
});

test("reads that wait for PostgreSQL while the process rests have a timer of their own, and move nobody's times", () => {
  const { feed, lease } = feedAndLease(around);
  const presence = createPresence({ host: [], port: [] }, 3000);
  restNow();
  feed.length = lease.length = 0;
  for (let reads = 0; reads < 40; reads++) {
    const query = { executed: false, resolve() {}, reject() {} };
    presence.attend(query as never, "select 1");
    expect(jest.getTimerCount()).toBe(2);
    jest.advanceTimersByTime(100);
    query.resolve();
    jest.advanceTimersByTime(2600);
  }
  expect([longest(feed), longest(lease)]).toEqual([2500, 5000]);
  presence.close();
});

test("work that begins during a rest ends it with the next step, and what is kept here counts as old", () => {
  const seen: Look[] = [];
  let isAtWork = false;
  stops.push(lookEvery(500, (look) => seen.push(look), 2500));
  stops.push(around.restUnless(() => isAtWork));
  restNow();
  seen.length = 0;
  isAtWork = true;
  jest.advanceTimersByTime(2500);
  expect(seen.map(({ isWaking }) => isWaking)).toEqual([true]);
  jest.advanceTimersByTime(10_000);
  expect(seen).toHaveLength(21);
});

test("nobody rests while somebody is at work", () => {
  let [times, isAtWork] = [0, true];
  stops.push(lookEvery(500, () => times++, 2500));
  const end = around.restUnless(() => isAtWork);
  restNow();
  expect(times).toBe(60);
  isAtWork = false;
  jest.advanceTimersByTime(500);
  times = 0;
  restNow();
  expect(times).toBe(12);
  end();
});

test("a process that stood still is woken by its first use or step, once, as after a rest; by a step that is a little late nobody is", () => {
  const whole = performance.now.bind(performance);
  let stoodMs = 0;
  const now = jest.spyOn(performance, "now").mockImplementation(() => whole() + stoodMs);
  const seen: boolean[] = [];
  stops.push(lookEvery(500, ({ isWaking }) => seen.push(isWaking), 2500));
  const stand = (ms: number): void => {
    seen.length = 0;
    stoodMs += ms;
  };
  stand(15_000);
  around.use();
  jest.advanceTimersByTime(500);
  expect(seen).toEqual([false]);
  stand(16_000);
  around.use();
  around.use();
  expect(seen).toEqual([true]);
  jest.advanceTimersByTime(1000);
  expect(seen).toEqual([true, false, false]);
  stand(16_000);
  jest.advanceTimersByTime(1000);
  expect(seen).toEqual([true, false]);
  now.mockRestore();
});
