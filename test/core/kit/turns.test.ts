// Statements that begin in turns.
// Refuses to count milliseconds: what comes first is what is told.
import { expect, spyOn, test } from "bun:test";
import { inTurns, nextTurn, pacer } from "../../../src/core/kit/turns.ts";

test("each begins in a turn of its own and all are waited for; after a rejection none begins any more", async () => {
  const began: string[] = [];
  const begin = (name: string) => async () => {
    began.push(name);
    for (let turns = 0; turns < 5; turns++) await nextTurn();
    return name;
  };
  const whole = inTurns(begin("a"), begin("b"), begin("c"));
  expect(began).toEqual(["a"]);
  expect(await whole).toEqual(["a", "b", "c"]);
  const fails = () => Promise.reject(new Error("away"));
  began.length = 0;
  const [outcome] = await Promise.allSettled([inTurns(begin("a"), fails, begin("c"))]);
  expect(outcome).toMatchObject({ status: "rejected", reason: { message: "away" } });
  for (let turns = 0; turns < 5; turns++) await nextTurn();
  expect(began).toEqual(["a"]);
});

test("paced work lets others come to their turn once it has had its own, not at each step", async () => {
  let nowMs = 0;
  const clock = spyOn(performance, "now").mockImplementation(() => nowMs);
  try {
    const turn = pacer();
    const took: boolean[] = [];
    for (const ms of [1, 1, 20, 1, 20]) {
      nowMs += ms;
      const waiting = turn();
      took.push(waiting !== undefined);
      await waiting;
    }
    expect(took).toEqual([false, false, true, false, true]);
  } finally {
    clock.mockRestore();
  }
});
