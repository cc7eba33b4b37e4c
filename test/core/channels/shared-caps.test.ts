// Caps over a wire that only notes what it is told: a long call is told of again, before the server's hour is over.
import { expect, test } from "bun:test";
import { createSharedCaps } from "../../../src/core/channels/shared-caps.ts";
import type { CapUse } from "../../../src/core/channels/shared-caps.ts";
import type { ToldOwner } from "../../../src/core/kit/shared-scripts.ts";
import type { SharedWire } from "../../../src/core/kit/shared-wire.ts";

test("a call that is open for long is told again within the hour after which the server forgets it", async () => {
  let nowMs = 0;
  let hear: (told: readonly ToldOwner[]) => void = () => undefined;
  const wire: SharedWire = {
    isUp: () => true,
    isSettled: () => true,
    wasForgotten: () => false,
    tellAgainBy: () => undefined,
    close: () => undefined,
    ask: async () => ({ kind: "granted", units: 0, moment: 1 }),
    tell: (told) => hear(told),
  };
  const nextWord = () => new Promise<readonly ToldOwner[]>((resolve) => (hear = resolve));
  const caps = createSharedCaps(wire, { monotonicMs: () => nowMs });
  const use: CapUse = {
    name: "lim:channel:1",
    inFlight: 1,
    openTokens: 5,
    fullUntilMs: 0,
    opensAtMs: 0,
    told: "",
  };
  const taken = [{ use, caps: { maxConcurrency: 1, rpmLimit: 0, tpmLimit: 0 } }];
  const verdicts = { refused: () => undefined, overShare: () => undefined };
  expect(await caps.ask(taken, 5, verdicts)).toBe(true);
  // A word of nobody: it lives.
  expect(await nextWord()).toEqual([]);
  nowMs += 30 * 60_000;
  expect(await nextWord()).toMatchObject([{ key: "lim:channel:1", calls: 1, tokens: 5 }]);
  caps.close();
});
