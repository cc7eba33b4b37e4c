// Keys of one channel: they take turns, a rested one is passed over, and where all rest somebody still serves.
import { expect, test } from "bun:test";
import { createKeyring } from "../../../src/core/channels/keyring.ts";
import type { Channel } from "../../../src/core/channels/rows.ts";

const channelOf = (...keys: string[]): Channel =>
  ({ id: 1, type: 1, baseUrl: "https://upstream.example", keys }) as unknown as Channel;
const rest = (restMs: number) => ({ reason: "rejected", restMs, detail: "" }) as const;

test("keys take turns, and one that rests is passed over until its rest is over", () => {
  const ring = createKeyring();
  const channel = channelOf("a", "b", "c");
  const turns = (nowMs: number) => [1, 2, 3].map(() => ring.next(channel, nowMs).key).join("");
  expect(turns(0)).toBe("abc");
  expect(ring.rest(channel, 1, rest(100), 0)).toBe(true);
  expect(turns(0)).toBe("aca");
  expect(turns(100)).toBe("bca");
});

test("where all rest, the one whose rest ends first is asked, in turns as in the first key's order", () => {
  const ring = createKeyring();
  const channel = channelOf("a", "b", "c");
  for (const [index, restMs] of [300, 100, 200].entries()) ring.rest(channel, index, rest(restMs), 0);
  expect(ring.next(channel, 0)).toEqual({ key: "b", index: 1 });
  expect(ring.next(channel, 0)).toEqual({ key: "b", index: 1 });
  expect(ring.first(channel, 0)).toEqual({ key: "b", index: 1 });
});

test("the first key stays the first until it rests, and takes no turn", () => {
  const ring = createKeyring();
  const channel = channelOf("a", "b", "c");
  expect([1, 2].map(() => ring.first(channel, 0).key)).toEqual(["a", "a"]);
  expect(ring.next(channel, 0).key).toBe("a");
  ring.rest(channel, 0, rest(100), 0);
  expect(ring.first(channel, 0).key).toBe("b");
  expect(ring.next(channel, 0).key).toBe("b");
  ring.wake(channel, 0);
  expect(ring.first(channel, 0).key).toBe("a");
});

test("the rest of the last key that works leaves nobody fit; a lone key never rests", () => {
  const ring = createKeyring();
  const channel = channelOf("a", "b");
  expect(ring.rest(channel, 0, rest(100), 0)).toBe(true);
  expect(ring.rest(channel, 1, rest(100), 0)).toBe(false);
  const lone = { ...channelOf("a"), id: 2 };
  expect(ring.rest(lone, 0, rest(100), 0)).toBe(false);
  expect(ring.next(lone, 0)).toEqual({ key: "a", index: 0 });
});
