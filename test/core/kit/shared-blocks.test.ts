// Calls given in advance, where the server's words are the test's own: how much is told at once.
import { expect, test } from "bun:test";
import { createSharedBlocks } from "../../../src/core/kit/shared-blocks.ts";
import { NO_ASKED } from "../../../src/core/kit/shared-scripts.ts";

const NONE = { units: 0, tokens: 0 };

test("blocks that the server has forgotten are ended in words of at most 200 owners", () => {
  const words: number[] = [];
  const clock = { monotonicMs: () => 1 };
  const send = (owners: readonly unknown[]) => void words.push(owners.length);
  const blocks = createSharedBlocks({ clock, upSinceMs: () => 0, send });
  for (let key = 0; key < 450; key++) {
    const owner = { ...NO_ASKED, key: String(key), windowMs: 60_000, maxCalls: 9999 };
    // Whoever asks twice is given some.
    for (const given of [0, 8])
      blocks.question([owner], true, NONE).answered({ units: 0, moment: 5, given: [given] });
  }
  blocks.forget();
  expect(words).toEqual([200, 200, 50]);
});

test("a block whose answer or end nobody heard is ended by the next look, once", () => {
  const words: (readonly { key: string; isBlockOver: boolean }[])[] = [];
  let isHeard = true;
  const clock = { monotonicMs: () => 1 };
  const blocks = createSharedBlocks({
    clock,
    upSinceMs: () => 0,
    send(owners, missed) {
      words.push(owners);
      if (!isHeard) missed();
    },
  });
  const owner = { ...NO_ASKED, key: "key", windowMs: 60_000, maxCalls: 9999 };
  const over = { key: "key", isBlockOver: true, calls: 1 };
  const ask = () => blocks.question([owner], true, NONE);
  ask().answered({ units: 0, moment: 5, given: [0] });
  blocks.look(false);
  expect(words).toEqual([]);
  const unheard = ask();
  blocks.look(false);
  expect(words).toEqual([]);
  unheard.answered(undefined);
  isHeard = false;
  blocks.look(false);
  isHeard = true;
  for (const _ of [1, 2]) blocks.look(false);
  expect(words).toMatchObject([[over], [over]]);
});
