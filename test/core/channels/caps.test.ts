// Caps of channels and keys: a place is held until its lease ends, a minute is any sixty seconds, and nodes share exactly.
import { expect, test } from "bun:test";
import { createCaps } from "../../../src/core/channels/caps.ts";
import { shareOf } from "../../../src/core/kit/node-share.ts";
import type { Channel } from "../../../src/core/channels/rows.ts";
import type { SharedCaps } from "../../../src/core/channels/shared-caps.ts";

const NONE = { maxConcurrency: 0, rpmLimit: 0, tpmLimit: 0 };
const channelOf = (caps: Partial<typeof NONE>): Channel =>
  ({ id: 1, caps: NONE, isCapped: true, keyRows: [{ id: 7, ...NONE, ...caps }] }) as unknown as Channel;

test.each([
  [2, 1],
  [2, 2],
  [7, 3],
  [1, 4],
])("a cap of %i over %i nodes is shared whole, whoever gets what remains", (cap, nodes) => {
  for (const id of [1, 2, 3]) {
    const shares = Array.from({ length: nodes }, (_, rank) => shareOf(cap, { nodes, rank }, id));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(cap);
  }
});

test("no more calls at once than the cap; a lease ends once", () => {
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 });
  const channel = channelOf({ maxConcurrency: 2 });
  const leases = [0, 1].map(() => caps.take(channel, 0, 0, 0));
  expect(caps.hasRoom(channel, 0, 0, 0)).toBe(false);
  leases[0]?.release();
  leases[0]?.release();
  expect(caps.useOf(7).inFlight).toBe(1);
  expect(caps.hasRoom(channel, 0, 0, 0)).toBe(true);
});

test("in any sixty seconds no more requests and tokens than the caps, and what was spent counts in the place of what was expected", () => {
  let nowMs = 500;
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => nowMs });
  const channel = channelOf({ rpmLimit: 2, tpmLimit: 100 });
  const lease = caps.take(channel, 0, 10, nowMs);
  expect(caps.hasRoom(channel, 0, 90, nowMs)).toBe(true);
  lease.spend(60);
  expect(caps.hasRoom(channel, 0, 41, nowMs)).toBe(false);
  nowMs = 30_000;
  caps.take(channel, 0, 10, nowMs);
  expect(caps.hasRoom(channel, 0, 1, 60_499)).toBe(false);
  expect(caps.hasRoom(channel, 0, 1, 62_000)).toBe(true);
  expect(caps.hasRoom(channel, 0, 91, 62_000)).toBe(false);
});

test("less than was expected gives room back at once, whenever it is known", () => {
  let nowMs = 500;
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => nowMs });
  const channel = channelOf({ tpmLimit: 100 });
  const lease = caps.take(channel, 0, 90, nowMs);
  nowMs = 20_700;
  expect(caps.hasRoom(channel, 0, 11, nowMs)).toBe(false);
  lease.spend(10);
  expect(caps.hasRoom(channel, 0, 90, nowMs)).toBe(true);
  expect(caps.hasRoom(channel, 0, 91, nowMs)).toBe(false);
  // Beyond its minute nothing is left to give back, and what came since stays.
  const late = caps.take(channel, 0, 90, nowMs);
  nowMs += 62_000;
  caps.take(channel, 0, 90, nowMs);
  late.spend(0);
  expect(caps.hasRoom(channel, 0, 11, nowMs)).toBe(false);
});

test("what a session's turns take counts while it goes on, in the minute of each", () => {
  let nowMs = 0;
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => nowMs });
  const channel = channelOf({ tpmLimit: 100 });
  const lease = caps.take(channel, 0, 0, nowMs);
  for (const tokens of [60, 40]) {
    expect(caps.hasRoom(channel, 0, 10, nowMs)).toBe(true);
    lease.used(tokens);
    nowMs += 30_000;
  }
  expect(caps.hasRoom(channel, 0, 1, 59_000)).toBe(false);
  expect(caps.hasRoom(channel, 0, 60, 62_000)).toBe(true);
  expect(caps.hasRoom(channel, 0, 61, 62_000)).toBe(false);
  lease.release();
  expect(caps.hasRoom(channel, 0, 61, 62_000)).toBe(false);
});

test("a try that the other nodes refused counts in no minute, in whichever second they say so", async () => {
  let nowMs = 900;
  let refuse: () => void = () => undefined;
  const shared: SharedCaps = {
    isUp: () => true,
    ask: ([taken], _, told) =>
      new Promise((resolve) => {
        refuse = () => {
          if (taken) told.refused(taken.use, 1);
          resolve(false);
        };
      }),
    ended: () => undefined,
    close: () => undefined,
  };
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => nowMs }, shared);
  const channel = channelOf({ rpmLimit: 1, tpmLimit: 100 });
  const asked = caps.take(channel, 0, 90, nowMs).confirm();
  nowMs = 1100;
  // Somebody looks in the next second.
  expect(caps.hasRoom(channel, 0, 90, nowMs)).toBe(false);
  refuse();
  expect(await asked).toBe(false);
  nowMs = 1102;
  expect(caps.hasRoom(channel, 0, 90, nowMs)).toBe(true);
});

test("keys that lie idle make room once there are many: those that were deleted are among them", () => {
  const caps = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 });
  const keyed = (id: number) => ({ ...channelOf({}), keyRows: [{ id, ...NONE }] }) as unknown as Channel;
  caps.take(keyed(1), 0, 0, 0);
  for (let id = 2; id <= 50_001; id++) caps.take(keyed(id), 0, 0, 0).release();
  expect([1, 2, 66, 50_001].map((id) => caps.useOf(id).requests)).toEqual([1, 0, 1, 1]);
  expect(caps.useOf(1).inFlight).toBe(1);
});

test("room with one key wakes who can use it: who waits for another key is passed over, unless the channel itself was full", async () => {
  const woken: string[] = [];
  const twoKeys = (caps: Partial<typeof NONE>): Channel =>
    ({
      id: 1,
      caps: { ...NONE, ...caps },
      isCapped: true,
      keyRows: [7, 8].map((id) => ({ id, ...NONE, maxConcurrency: 1 })),
    }) as unknown as Channel;
  for (const caps of [{}, { maxConcurrency: 1 }]) {
    const state = createCaps({ place: () => ({ nodes: 1, rank: 0 }) }, { monotonicMs: () => 0 });
    const over = new AbortController();
    const wait = (name: string, keyIndex?: number) =>
      state
        .wait({ channelIds: [1], keyIndex }, 60_000, over.signal)
        .then(() => void (over.signal.aborted || woken.push(name)));
    const waits = [wait("bound to the other", 1), wait("bound", 0), wait("any")];
    state.take(twoKeys(caps), 0, 0, 0).release();
    await waits[1];
    over.abort();
    await Promise.all(waits);
  }
  expect(woken).toEqual(["bound", "bound to the other", "bound"]);
});
