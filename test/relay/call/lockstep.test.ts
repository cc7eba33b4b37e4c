// Guarantees: a call that is alone is never held, calls that are together go on together, and nobody waits forever.
import { expect, test } from "bun:test";
import { createLockstep } from "../../../src/relay/call/lockstep.ts";

/** An event loop whose next turn is the test's to call. */
function loop() {
  let waiting: (() => void)[] = [];
  return {
    next: (go: () => void) => waiting.push(go),
    turn() {
      const due = waiting;
      waiting = [];
      for (const go of due) go();
      return due.length;
    },
  };
}

test("a call that is alone goes on at once, before and after others were there", () => {
  const lockstep = createLockstep(loop().next);
  lockstep.enter();
  expect(lockstep.turn()).toBeUndefined();
  lockstep.enter();
  expect(lockstep.turn()).toBeInstanceOf(Promise);
  lockstep.leave();
  expect(lockstep.turn()).toBeUndefined();
});

test("calls under way at the same time wait for one turn and go on stage by stage", async () => {
  const { next, turn } = loop();
  const lockstep = createLockstep(next);
  const told: string[] = [];
  const call = async (name: string) => {
    lockstep.enter();
    await lockstep.turn();
    told.push(`first ${name}`);
    await Promise.resolve();
    told.push(`second ${name}`);
    lockstep.leave();
  };
  lockstep.enter();
  const calls = ["a", "b", "c"].map(call);
  expect(turn()).toBe(1);
  await Promise.all(calls);
  expect(told).toEqual(["first a", "first b", "first c", "second a", "second b", "second c"]);
});

test("a turn that has come does not serve the next calls: they get one of their own", async () => {
  const { next, turn } = loop();
  const lockstep = createLockstep(next);
  lockstep.enter();
  lockstep.enter();
  const before = lockstep.turn();
  turn();
  await before;
  const after = lockstep.turn();
  expect(after).not.toBe(before);
  expect(turn()).toBe(1);
  await after;
});

test("on the real event loop a turn comes by itself", async () => {
  const lockstep = createLockstep();
  lockstep.enter();
  lockstep.enter();
  expect(await lockstep.turn()).toBeUndefined();
});
