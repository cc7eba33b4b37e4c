// What the scripts of shared limits keep between two processes on a real Redis: sums of a budget by its periods, and whom the
// server has forgotten.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { AskedOwner } from "../../../src/core/kit/shared-scripts.ts";
import { createSharedWire, NO_ASKED, NO_TOLD } from "../../../src/core/kit/shared-wire.ts";
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
});
afterAll(async () => {
  valkey.close();
  await redis.remove();
});

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
  expect(one.wasForgotten()).toBe(false);
  await redis.command(
    "HDEL",
    "test:lim:processes",
    ...((await redis.command("HKEYS", "test:lim:processes")) as string[]),
  );
  await ask(one, { key: "known" });
  expect([one.wasForgotten(), one.wasForgotten()]).toEqual([true, false]);
  nowMs = valkey.upSinceMs() + 2999;
  expect([one.isUp(), one.isSettled()]).toEqual([true, false]);
  nowMs += 1;
  expect(one.isSettled()).toBe(true);
});
