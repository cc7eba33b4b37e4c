// What a process tells the others of requests under the site's rate; the server here only listens.
import { expect, test } from "bun:test";
import type { ToldOwner } from "../../../src/core/kit/shared-scripts.ts";
import { createSharedRates } from "../../../src/core/limits/shared-rates.ts";
import type { RateClaim } from "../../../src/core/limits/shared-rates.ts";

test("a request that was refused beside others is taken back from the places of successes", () => {
  const told: ToldOwner[] = [];
  const rates = createSharedRates({
    isUp: () => true,
    isSettled: () => true,
    wasForgotten: () => false,
    tellAgainBy: () => undefined,
    ask: () => undefined,
    tell: (owners) => void told.push(...owners),
    close: () => undefined,
  });
  const claim = (): RateClaim => ({ rule: { windowMs: 60_000, total: 0, success: 9 }, userId: 7 });
  const [refused, granted] = [claim(), claim()];
  rates.begin(refused);
  // Asked about while nobody knows what becomes of the first one: the server has two open.
  expect(rates.asked(granted).calls).toBe(1);
  rates.begin(granted);
  rates.refuse(refused, false);
  rates.repeat(200);
  expect(told.map(({ calls }) => calls)).toEqual([1]);
  // What was told once is not told again.
  rates.repeat(200);
  rates.refuse(granted, true);
  expect(rates.repeat(200)).toBe(false);
  expect(told.map(({ calls }) => calls)).toEqual([1, 0]);
});
