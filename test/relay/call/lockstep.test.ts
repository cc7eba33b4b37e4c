// Guarantees: a call that is alone is never held, calls that are together go on together, and nobody waits forever.
import { expect, test } from "bun:test";
import { createLockstep, line, lineOnArrival } from "../../../src/relay/call/lockstep.ts";

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

/** What happens, in the order in which it does. */
function journal() {
  const { next, turn } = loop();
  const services = { lockstep: createLockstep(next), events: [] as string[] };
  const stage = (name: string) => (_: typeof services, call: string) => {
    services.events.push(`${name} ${call}`);
    return call;
  };
  return { services, turn, stage };
}

test("a line runs its stages in order, each with what the one before gave, and gives what the last one does", async () => {
  const { services } = journal();
  const length = line((_: typeof services, text: string) => text.length)
    .to(async (_, size) => size * 2)
    .to((_, doubled) => `${doubled}`);
  expect(await length.run(services, "abc")).toBe("6");
});

test("calls that arrived together finish each stage of a line before any of them begins the next", async () => {
  const { services, turn, stage } = journal();
  const calls = lineOnArrival(stage("one")).to(stage("two")).to(stage("three"));
  for (let i = 0; i < 3; i++) services.lockstep.enter();
  const running = ["a", "b", "c"].map((call) => calls.run(services, call));
  expect([services.events, turn()]).toEqual([[], 1]);
  await Promise.all(running);
  const expected = ["one", "two", "three"].flatMap((name) =>
    ["a", "b", "c"].map((call) => `${name} ${call}`),
  );
  expect(services.events).toEqual(expected);
});

test("a call that is alone waits for no turn of the event loop, and neither does a line that goes on", async () => {
  const { services, turn, stage } = journal();
  services.lockstep.enter();
  await lineOnArrival(stage("one")).to(stage("two")).run(services, "a");
  services.lockstep.enter();
  await line(stage("three")).run(services, "a");
  expect([services.events, turn()]).toEqual([["one a", "two a", "three a"], 0]);
});

test("a stage that fails ends the line with its error", async () => {
  const { services, stage } = journal();
  const failing = line(stage("one"))
    .to((): string => {
      throw new Error("no");
    })
    .to(stage("three"));
  expect(await failing.run(services, "a").catch((error: unknown) => String(error))).toBe("Error: no");
  expect(services.events).toEqual(["one a"]);
});
