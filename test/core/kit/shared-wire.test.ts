// What the scripts of shared limits keep between two processes on a real Redis: sums of a budget by its periods, whom the server
// has forgotten, what is given in advance, and what an answer gave that came too late.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { NO_ASKED, NO_TOLD } from "../../../src/core/kit/shared-scripts.ts";
import type { AskedOwner } from "../../../src/core/kit/shared-scripts.ts";
import { createSharedWire } from "../../../src/core/kit/shared-wire.ts";
import type { SharedWire } from "../../../src/core/kit/shared-wire.ts";
import { openValkey } from "../../../src/db/valkey.ts";
import type { Valkey } from "../../../src/db/valkey.ts";
import { parseValkeyUrl } from "../../../src/db/valkey-url.ts";
import { startRedis } from "../../support/redis.ts";
import type { TestRedis } from "../../support/redis.ts";

let redis: TestRedis;
let valkey: Valkey;
let one: SharedWire;
let other: SharedWire;
let nowMs = 0;
const NONE = { units: 0, least: 0, tokens: 0 };

beforeAll(async () => {
  redis = await startRedis();
  const address = parseValkeyUrl(redis.url);
  if (typeof address !== "object") throw new Error("no address");
  const logger = { info: () => undefined, warn: () => undefined };
  // A busy machine answers late: what the server says is looked at here.
  valkey = await openValkey({
    address,
    prefix: "test:",
    monotonicMs: () => nowMs,
    logger,
    deadlineTicks: 2000,
  });
  one = createSharedWire(valkey, { monotonicMs: () => nowMs });
  other = createSharedWire(valkey, { monotonicMs: () => nowMs });
  await settled();
});
afterAll(async () => {
  for (const wire of [one, other]) wire.close();
  valkey.close();
  await redis.remove();
});

/** Each process has told an emptied server what it has open, and the time for that is over. */
async function settled(): Promise<void> {
  for (const wire of [one, other])
    while (!(await ask(wire, { key: "settled" }))) {
      nowMs += 1000;
      await Bun.sleep(5);
    }
}

/** Resolves when the words before it were heard: answers come in order. */
async function ask(wire: SharedWire, owner: Partial<AskedOwner> & { key: string }, amounts = NONE) {
  return wire.ask("begin", [{ ...NO_ASKED, windowMs: 60_000, ...owner }], amounts);
}

test("a budget whose period begins earlier than before counts what is settled from then on", async () => {
  const start = Math.floor(Date.now() / 1000);
  const day = { key: "cut", budget: 100, period: start - 1000, periodEnd: start + 90_000 };
  const week = { ...day, period: start - 2000, periodEnd: start + 600_000 };
  const over = { ...day, period: start - 9000, periodEnd: start - 5000 };
  for (const cut of [over, day, week]) await ask(one, cut);
  one.tell([{ ...NO_TOLD, key: "cut", windowMs: 60_000, units: 70 }], () => undefined);
  for (const cut of [week, day])
    expect(await ask(other, cut, { ...NONE, units: 30 })).toMatchObject({ kind: "granted", units: 30 });
  expect(await ask(one, week, { ...NONE, units: 40 })).toMatchObject({ why: "budget" });
  // Sums of periods that are over are not kept.
  const names = (await redis.command("HKEYS", "test:cut:o")) as string[];
  expect(names.filter((name) => name.startsWith("S:"))).toHaveLength(2);
});

test("a process hears once that the server has forgotten it, and is settled some seconds after a rise", async () => {
  await ask(one, { key: "known" });
  one.wasForgotten();
  await ask(one, { key: "known" });
  const toldAgain = Promise.withResolvers<void>();
  other.tellAgainBy(toldAgain.resolve);
  expect(one.wasForgotten()).toBe(false);
  await redis.command(
    "HDEL",
    "test:lim:processes",
    ...((await redis.command("HKEYS", "test:lim:processes")) as string[]),
  );
  // Nobody has told it yet what is open: this is no yes.
  expect(await ask(one, { key: "unknown" })).toBeUndefined();
  expect([one.wasForgotten(), one.wasForgotten()]).toEqual([true, false]);
  // Also a process that asks nothing hears of it.
  await toldAgain.promise;
  nowMs = valkey.upSinceMs() + 2999;
  expect([one.isUp(), one.isSettled()]).toEqual([true, false]);
  nowMs += 1;
  expect(one.isSettled()).toBe(true);
});

/** Scripts that Redis has run. */
async function questions(): Promise<number> {
  const text = String(await redis.command("INFO", "commandstats"));
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(text)?.[1]);
}

test("far from its edge most calls of a limit ask nobody, and no more than the limit pass over both processes", async () => {
  await settled();
  const limit = 3000;
  const owner = { key: "busy", maxRequests: limit, maxCalls: 1_000_000, maxTokens: 1_000_000 };
  const open = new Map([one, other].map((wire) => [wire, 0]));
  const before = await questions();
  let granted = 0;
  /** As many at once as callers have; those that pass end at once. */
  const burst = async (wire: SharedWire): Promise<void> => {
    const tokens = 10;
    const answers = Array.from({ length: 16 }, () => {
      const calls = open.get(wire) ?? 0;
      open.set(wire, calls + 1);
      return ask(
        wire,
        { ...owner, calls, tokens: calls * tokens, wantedTokens: tokens },
        { ...NONE, tokens },
      );
    });
    for (const answer of await Promise.all(answers)) {
      const calls = (open.get(wire) ?? 0) - 1;
      open.set(wire, calls);
      if (answer?.kind !== "granted") continue;
      granted += 1;
      const told = {
        ...NO_TOLD,
        key: "busy",
        windowMs: 60_000,
        calls,
        tokens: calls * tokens,
        tokensUsed: 7,
      };
      wire.tell([told], () => undefined);
    }
  };
  let asked = 0;
  while (asked < 2 * limit) {
    for (const wire of [one, other]) await burst(wire);
    asked += 32;
    if (asked === 1024) {
      // A question and a word for dozens of calls, not for each of them.
      expect(granted).toBe(1024);
      expect((await questions()) - before).toBeLessThan(1024 / 10);
    }
  }
  expect(granted).toBeLessThanOrEqual(limit);
  // What was given in advance and not used is had by whoever asks once its time is over.
  while (granted < limit) {
    nowMs += 1000;
    for (const wire of [one, other]) await burst(wire);
    await Bun.sleep(5);
  }
  for (const wire of [one, other]) await burst(wire);
  expect(granted).toBe(limit);
  // All that was used is known there, and nothing is open.
  nowMs += 1000;
  for (const wire of [one, other]) wire.close();
  // Of those that were refused last, every process tells in its next word of what is open.
  for (const wire of [one, other])
    wire.tell([{ ...NO_TOLD, key: "busy", windowMs: 60_000 }], () => undefined);
  await ask(one, { key: "settled" });
  expect(await redis.command("HGET", "test:busy:k:n", "s")).toBe(String(limit * 7));
  expect(await redis.command("HGETALL", "test:busy:o")).toEqual({});
});

test("what was given in advance is void once the server has forgotten it, and under another limit", async () => {
  const owner = { key: "void", maxCalls: 1_000_000 };
  for (let turn = 0; turn < 4; turn++) await ask(one, owner);
  const before = await questions();
  await ask(one, owner);
  expect(await questions()).toBe(before);
  await ask(one, { ...owner, maxCalls: 900_000 });
  expect(await questions()).toBeGreaterThan(before);
  await redis.flush();
  await ask(other, { key: "settled" });
  const after = await questions();
  await ask(one, owner);
  expect(await questions()).toBeGreaterThan(after);
});

/** A third process; `isDeaf`: it hears its answers after it has gone on without them. */
function third(): { wire: SharedWire; deafen: (isDeaf: boolean) => void } {
  let isDeaf = false;
  const wire = createSharedWire(
    {
      subscribe: valkey.subscribe,
      publish: (channel, text) => valkey.publish(channel, text),
      state: () => valkey.state(),
      isUp: () => valkey.isUp(),
      disbelieve: () => valkey.disbelieve(),
      upSinceMs: () => valkey.upSinceMs(),
      close: () => undefined,
      run<T>(...[script, keys, args, late]: Parameters<typeof valkey.run<T>>) {
        const answer = valkey.run<T>(script, keys, args, late);
        if (!isDeaf || !late) return answer;
        return answer?.then((found) => {
          queueMicrotask(() => found !== undefined && late(found));
          return undefined;
        });
      },
    },
    { monotonicMs: () => nowMs },
  );
  return { wire, deafen: (is) => void (isDeaf = is) };
}

test("processes that have ended leave no name, and others are given their part in advance", async () => {
  await settled();
  const before = Number(await redis.command("HLEN", "test:lim:processes"));
  // Long over: killed without a word.
  const gone = Array.from({ length: 50 }, (_, at) => [`gone-${at}`, "1"]).flat();
  await redis.command("HSET", "test:lim:processes", ...gone);
  for (let turn = 0; turn < 9; turn++) third().wire.close();
  await ask(one, { key: "settled" });
  expect(Number(await redis.command("HLEN", "test:lim:processes"))).toBeLessThanOrEqual(before);
  // Nor does a site that ended: each word of one that lives gives it another day.
  await redis.command("PEXPIRE", "test:lim:processes", "60000");
  one.tell([], () => undefined);
  await ask(one, { key: "settled" });
  expect(Number(await redis.command("PTTL", "test:lim:processes"))).toBeGreaterThan(60_000);
  const owner = { key: "part", maxCalls: 400 };
  for (let turn = 0; turn < 2; turn++) await ask(one, { ...owner, calls: turn });
  const asked = await questions();
  await ask(one, { ...owner, calls: 2 });
  expect(await questions()).toBe(asked);
});

test("what an answer gave in advance that came too late is given back, requests too", async () => {
  await settled();
  const { wire, deafen } = third();
  const owner = { key: "late", maxCalls: 1_000_000, maxRequests: 1_000_000 };
  await ask(wire, owner);
  deafen(true);
  expect(await ask(wire, { ...owner, calls: 1 })).toBeUndefined();
  deafen(false);
  // Two requests, and eight that nobody knew of.
  await ask(one, { key: "settled" });
  expect(await redis.command("HGET", "test:late:t:n", "s")).toBe("2");
  wire.close();
  await ask(one, { key: "settled" });
  const names = (await redis.command("HKEYS", "test:late:o")) as string[];
  expect(names.filter((name) => name.startsWith("B:"))).toEqual([]);
});

test("a call that goes on without an answer is one of those that were given in advance", async () => {
  await settled();
  const { wire, deafen } = third();
  const rate = { ...NO_ASKED, key: "spare", windowMs: 60_000, maxRequests: 1_000_000 };
  const key = { ...NO_ASKED, key: "beside", windowMs: 60_000, maxCalls: 9 };
  for (let turn = 0; turn < 2; turn++) await wire.ask("begin", [rate], NONE);
  deafen(true);
  expect(await wire.ask("begin", [rate, key], NONE)).toBeUndefined();
  deafen(false);
  wire.close();
  await ask(one, { key: "settled" });
  expect(await redis.command("HGET", "test:spare:t:n", "s")).toBe("3");
});

test("a request that was none is taken back also by the moment of another owner, not one out of its window", async () => {
  await settled();
  const answer = await ask(one, { key: "undone", maxRequests: 100 });
  if (answer?.kind !== "granted") throw new Error("refused");
  const sums: unknown[] = [];
  for (const undoneMoment of [answer.moment - 61_000, answer.moment + 500]) {
    one.tell(
      [{ ...NO_TOLD, key: "undone", windowMs: 60_000, undoneMoment, undone: 1, maxRequests: 100 }],
      () => undefined,
    );
    await ask(one, { key: "settled" });
    sums.push(await redis.command("HGET", "test:undone:t:n", "s"));
  }
  expect(sums).toEqual(["1", "0"]);
});
