// Caps over a wire that only notes what it is told: a long call is told of again, before the server's hour is over, and what a
// call took is told whenever it is known.
import { expect, test } from "bun:test";
import { createSharedCaps } from "../../../src/core/channels/shared-caps.ts";
import type { CapUse } from "../../../src/core/channels/shared-caps.ts";
import type { ToldOwner } from "../../../src/core/kit/shared-scripts.ts";
import type { SharedWire } from "../../../src/core/kit/shared-wire.ts";

/** `beat`: what the process says by itself every two seconds. */
function createNoted() {
  let nowMs = 0;
  let beat: () => void = () => undefined;
  const words: (readonly ToldOwner[])[] = [];
  const heard: ((told: readonly ToldOwner[]) => void)[] = [];
  const wire: SharedWire = {
    isUp: () => true,
    isSettled: () => true,
    wasForgotten: () => false,
    tellAgainBy: (again) => void (beat = again),
    close: () => undefined,
    ask: async () => ({ kind: "granted", units: 0, moment: 1 }),
    tell(told) {
      words.push(told);
      heard.shift()?.(told);
    },
  };
  const caps = createSharedCaps(wire, { monotonicMs: () => nowMs });
  const use: CapUse = {
    name: "lim:channel:1",
    inFlight: 1,
    openTokens: 5,
    fullUntilMs: 0,
    opensAtMs: 0,
    told: "",
  };
  return {
    caps,
    use,
    words,
    beat: () => beat(),
    nextWord: () => new Promise<readonly ToldOwner[]>((resolve) => heard.push(resolve)),
    pass: (ms: number) => void (nowMs += ms),
  };
}
const VERDICTS = { refused: () => undefined, overShare: () => undefined };

test("a call that is open for long is told again within the hour after which the server forgets it", async () => {
  const { caps, use, words, beat, nextWord, pass } = createNoted();
  const taken = [{ use, caps: { maxConcurrency: 1, rpmLimit: 0, tpmLimit: 0 } }];
  expect(await caps.ask(taken, 5, VERDICTS)).toBe(true);
  // A word of nobody, by itself: it lives.
  expect(await nextWord()).toEqual([]);
  pass(30 * 60_000);
  beat();
  expect(words.at(-1)).toMatchObject([{ key: "lim:channel:1", calls: 1, tokens: 5 }]);
  caps.close();
});

test("what a call took is told also where it is known long after its place was given back", async () => {
  const { caps, use, words, beat } = createNoted();
  const taken = [{ use, caps: { maxConcurrency: 0, rpmLimit: 0, tpmLimit: 100 } }];
  await caps.ask(taken, 5, VERDICTS);
  use.inFlight = 0;
  use.openTokens = 0;
  caps.ended(taken, 5);
  expect(words).toMatchObject([[{ tokensUsed: 5 }]]);
  // Nothing is open, and all was told: it is forgotten here.
  beat();
  expect(words).toHaveLength(1);
  caps.ended(taken, 20);
  expect(words.slice(1)).toMatchObject([[{ key: "lim:channel:1", calls: 0, tokensUsed: 20 }]]);
  caps.close();
});
