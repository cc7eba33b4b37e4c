// Keys of one channel: they take turns, a rested one is passed over, and where all rest somebody still serves.
import { describe, expect, test } from "bun:test";
import { createCaps } from "../../../src/core/channels/caps.ts";
import { createKeyring } from "../../../src/core/channels/keyring.ts";
import type { Channel } from "../../../src/core/channels/rows.ts";

const channelOf = (...keys: string[]): Channel =>
  ({
    id: 1,
    type: 1,
    baseUrl: "https://upstream.example",
    keys,
    keyRows: keys.map((key, at) => ({ id: at + 1, hash: key, account: `${key} here`, status: 1 })),
    areAllOn: true,
    isCapped: false,
    keyMode: "polling",
    modelMapping: new Map([["alias", "m"]]),
  }) as unknown as Channel;
const failing = (nowMs: number, beganMs = nowMs) => ({ nowMs, beganMs });
const rest = (restMs: number) => ({ reason: "rejected", restMs, detail: "" }) as const;

test("keys take turns, and one that rests is passed over until its rest is over", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b", "c");
  const turns = (nowMs: number) => [1, 2, 3].map(() => ring.next(channel, "m", nowMs)?.key).join("");
  expect(turns(0)).toBe("abc");
  expect(ring.rest(channel, 1, rest(100), 0)).toBe(true);
  expect(turns(0)).toBe("aca");
  expect(turns(100)).toBe("bca");
});

test("where all rest, the one whose rest ends first is asked, in turns as in the first key's order", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b", "c");
  for (const [index, restMs] of [300, 100, 200].entries()) ring.rest(channel, index, rest(restMs), 0);
  expect(ring.next(channel, "m", 0)).toEqual({ key: "b", index: 1 });
  expect(ring.next(channel, "m", 0)).toEqual({ key: "b", index: 1 });
  expect(ring.first(channel, "m", 0)).toEqual({ key: "b", index: 1 });
});

test("the first key stays the first until it rests, and takes no turn", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b", "c");
  expect([1, 2].map(() => ring.first(channel, "m", 0)?.key)).toEqual(["a", "a"]);
  expect(ring.next(channel, "m", 0)?.key).toBe("a");
  ring.rest(channel, 0, rest(100), 0);
  expect(ring.first(channel, "m", 0)?.key).toBe("b");
  expect(ring.next(channel, "m", 0)?.key).toBe("b");
  ring.wake(channel, 0, "m", 0);
  expect(ring.first(channel, "m", 0)?.key).toBe("a");
});

test("the rest of the last key that works leaves nobody fit; a lone key never rests", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");
  expect(ring.rest(channel, 0, rest(100), 0)).toBe(true);
  expect(ring.rest(channel, 1, rest(100), 0)).toBe(false);
  const lone = { ...channelOf("a"), id: 2 };
  expect(ring.rest(lone, 0, rest(100), 0)).toBe(false);
  expect(ring.next(lone, "m", 0)).toEqual({ key: "a", index: 0 });
});

test("a key that is too slow for one model serves the others, under whatever name the model is requested", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");
  const limited = { reason: "limited", restMs: 100, detail: "slow", model: "alias" } as const;
  expect(ring.rest(channel, 0, limited, 0)).toBe(true);
  for (const model of ["m", "alias"]) expect(ring.first(channel, model, 0)?.key).toBe("b");
  expect(ring.first(channel, "other", 0)?.key).toBe("a");
  expect(ring.restOf(channel, 0, "m", 99)).toMatchObject({ restsUntilMs: 100, reason: "limited" });
  expect([ring.restOf(channel, 0, "m", 100), ring.restOf(channel, 0, "other", 0)]).toEqual([
    undefined,
    undefined,
  ]);
  // Nobody is left for that model only.
  expect(ring.rest(channel, 1, limited, 0)).toBe(false);
  expect(ring.rest(channel, 1, { ...limited, model: "other" }, 0)).toBe(true);
  expect(ring.areAllRejected(channel)).toBe(false);
  // An answer ends the rest of its own model.
  ring.wake(channel, 0, "alias", 0);
  expect(ring.first(channel, "m", 0)?.key).toBe("a");
  expect(ring.states(channel).map(({ models }) => [...models.keys()])).toEqual([[], ["m", "other"]]);
});

test("a rejected key rests for every model", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");
  ring.rest(channel, 0, rest(100), 0);
  for (const model of ["m", "other", ""]) expect(ring.first(channel, model, 0)?.key).toBe("b");
  ring.rest(channel, 1, rest(100), 0);
  expect(ring.areAllRejected(channel)).toBe(true);
});

test("a key whose provider named a time is not fit before it, and one whose rest we guessed is asked first", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b", "c");
  const limited = (index: number, restMs: number, untilUpstream: boolean) =>
    ring.rest(channel, index, { reason: "limited", restMs, detail: "", model: "m", untilUpstream }, 0);
  ring.rest(channel, 0, rest(10), 0);
  limited(1, 100, true);
  expect([ring.fitness(channel, "m", 0), ring.fitAtMs(channel, "m", 0)]).toEqual(["fit", 0]);
  limited(2, 200, false);
  expect([ring.fitness(channel, "m", 0), ring.next(channel, "m", 0)?.key]).toEqual(["resting", "c"]);
  limited(2, 300, true);
  expect([ring.fitness(channel, "m", 0), ring.fitAtMs(channel, "m", 0)]).toEqual(["patient", 10]);
  expect([ring.fitness(channel, "m", 10), ring.next(channel, "m", 10)?.key]).toEqual(["fit", "a"]);
  expect(ring.fitness(channel, "other", 0)).toBe("fit");
});

test("a call that began before the rest does not end it, the next one does; by hand it ends with its time alone", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");
  const limited = { reason: "limited", restMs: 60_000, detail: "", model: "m", untilUpstream: true } as const;
  const reasons = (nowMs: number) =>
    ["m", "other"].map((model) => ring.restOf(channel, 0, model, nowMs)?.reason);
  ring.rest(channel, 0, limited, 100);
  ring.rest(channel, 0, rest(1000), 200);
  ring.wake(channel, 0, "m", 99);
  expect(reasons(300)).toEqual(["rejected", "rejected"]);
  ring.wake(channel, 0, "m", 150);
  expect(reasons(300)).toEqual(["rejected", "rejected"]);
  expect(reasons(1200)).toEqual([undefined, undefined]);
  ring.rest(channel, 0, limited, 2000);
  ring.wake(channel, 0, "m", 2000);
  expect(reasons(2001)).toEqual([undefined, undefined]);
  expect(ring.isCalm(2001)).toBe(true);
  // Whatever fails or answers meanwhile: an hour is an hour.
  const hourMs = 3_600_000;
  ring.rest(channel, 0, { reason: "by_hand", restMs: hourMs, detail: "", untilUpstream: true }, 0);
  ring.rest(channel, 0, rest(1000), 10);
  expect(reasons(20)).toEqual(["by_hand", "by_hand"]);
  ring.rest(channel, 0, rest(2 * hourMs), 20);
  expect(reasons(30)).toEqual(["rejected", "rejected"]);
  ring.wake(channel, 0, "m", 40);
  expect(reasons(hourMs - 1)).toEqual(["by_hand", "by_hand"]);
  expect(reasons(hourMs)).toEqual([undefined, undefined]);
  ring.wake(channel, 0, "m", hourMs);
  expect(ring.isCalm(hourMs)).toBe(true);
});

describe("a model that fails with one key of several", () => {
  const newRing = () =>
    createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");

  test("rests with that key alone after three failures in a row, and says nothing of the channel", () => {
    const ring = newRing();
    expect([0, 1, 2].map(() => ring.failed(channel, 0, "m", failing(0)))).toEqual([false, false, true]);
    expect([1, 2, 3].map(() => ring.next(channel, "alias", 0)?.key)).toEqual(["b", "b", "b"]);
    expect(ring.next(channel, "other", 0)?.key).toBe("a");
    expect(ring.restOf(channel, 0, "m", 0)).toEqual({ restsUntilMs: 5000, reason: "down", detail: "" });
    expect(ring.states(channel, 0)[0]?.models.get("m")?.reason).toBe("down");
    expect(ring.states(channel, 5000)[0]?.models.size).toBe(0);
    // The last key that is fit speaks for the channel.
    expect([0, 1, 2].map(() => ring.failed(channel, 1, "m", failing(0)))).toEqual([false, false, false]);
  });

  test("is tried by one call when its rest is over; a failure doubles the rest, a success ends it", () => {
    const ring = newRing();
    for (let i = 0; i < 3; i++) ring.failed(channel, 0, "m", failing(0));
    const fifty = Array.from({ length: 50 }, () => ring.next(channel, "m", 5000)?.key);
    expect(fifty.filter((key) => key === "a")).toHaveLength(1);
    ring.failed(channel, 0, "m", failing(5000));
    expect(ring.next(channel, "m", 14_999)?.key).toBe("b");
    expect([1, 2].map(() => ring.next(channel, "m", 15_000)?.key).toSorted()).toEqual(["a", "b"]);
    ring.succeeded(channel, 0, "m", 15_000, 15_000);
    expect([1, 2].map(() => ring.next(channel, "m", 15_000)?.key).toSorted()).toEqual(["a", "b"]);
  });

  test("a call that ends without a word lets the next one find out; a stream that begins ends the rest on trial", () => {
    const ring = newRing();
    for (let i = 0; i < 3; i++) ring.failed(channel, 0, "m", failing(0));
    const turns = () =>
      [1, 2].map(() => ring.next(channel, "m", 5000)?.key).filter((key) => key === "a").length;
    expect([turns(), turns()]).toEqual([1, 0]);
    // Somebody who came before the one that tries it out.
    ring.abandoned(channel, 0, "m", 4999);
    expect(turns()).toBe(0);
    ring.abandoned(channel, 0, "m", 5000);
    expect(turns()).toBe(1);
    ring.opened(channel, 0, "m", 5000);
    expect([turns(), ring.failed(channel, 0, "m", failing(5000))]).toEqual([1, true]);
  });

  test("a lone key has no health beside its channel's", () => {
    const ring = newRing();
    const lone = channelOf("a");
    for (let i = 0; i < 9; i++) expect(ring.failed(lone, 0, "m", failing(0))).toBe(false);
    expect([ring.isCalm(0), ring.fitness(lone, "m", 0)]).toEqual([true, "fit"]);
  });
});

test("a failure of a call that began before the rest neither lengthens it nor ends what tries it out; its upstream's own time still counts", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");
  for (let i = 0; i < 3; i++) ring.failed(channel, 0, "m", failing(100));
  const until = ring.downUntil(channel, 0, "m");
  ring.take(channel, 0, "m", until);
  for (let i = 1; i < 4; i++) ring.failed(channel, 0, "m", failing(until + i, 50));
  expect(ring.downUntil(channel, 0, "m")).toBe(until);
  ring.succeeded(channel, 0, "m", until, until + 10);
  expect(ring.downUntil(channel, 0, "m")).toBe(0);
  const limited = { reason: "limited", restMs: 1000, detail: "", beganMs: 50 } as const;
  ring.rest(channel, 1, { ...limited, beganMs: 100 }, 100);
  ring.rest(channel, 1, limited, 900);
  const reason = (nowMs: number) => ring.restOf(channel, 1, "m", nowMs)?.reason;
  expect([reason(1099), reason(1100)]).toEqual(["limited", undefined]);
  ring.rest(channel, 1, { ...limited, untilUpstream: true }, 1200);
  expect([reason(2199), reason(2200)]).toEqual(["limited", undefined]);
  ring.rest(channel, 1, { ...rest(500), beganMs: 50 }, 2200);
  expect(reason(2300)).toBe("rejected");
});

test("a lone trouble is forgotten by time, whoever fails next or nobody: a rest an hour after its end, a failure after ten minutes", () => {
  const ring = createKeyring(createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 }));
  const channel = channelOf("a", "b");
  ring.rest(channel, 0, rest(1000), 0);
  expect([0, 1000, 3_600_000].map((nowMs) => ring.isCalm(nowMs))).toEqual([false, false, false]);
  expect(ring.isCalm(3_600_000 + 61_001)).toBe(true);
  ring.failed(channel, 0, "m", failing(4_000_000));
  expect([4_000_000, 4_600_000].map((nowMs) => ring.isCalm(nowMs))).toEqual([false, false]);
  expect(ring.isCalm(4_660_001)).toBe(true);
});
