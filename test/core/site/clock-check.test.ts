// A node's clock beside the database's at its start: warned of from two seconds on, refused beyond thirty.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../../src/core/kit/clock.ts";
import { ClockWrong, refuseWrongClock } from "../../../src/core/site/clock-check.ts";
import { silent, startBooks } from "../ledger/support.ts";
import type { TestBooks } from "../ledger/support.ts";

let shared: TestBooks;
let embedded: TestBooks;

beforeAll(async () => {
  [shared, embedded] = await Promise.all([startBooks("postgres"), startBooks("sqlite")]);
});
afterAll(() => Promise.all([shared.close(), embedded.close()]));

async function warnings({ db }: TestBooks, offSeconds: number): Promise<string[]> {
  const said: string[] = [];
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offSeconds * 1000 };
  await refuseWrongClock({ db, clock, logger: { ...silent, warn: (text) => void said.push(text) } });
  return said;
}

test("a clock that goes with the database's is not talked about, another one is", async () => {
  expect(await warnings(shared, 0)).toEqual([]);
  expect(await warnings(shared, 10)).toEqual(["this machine's clock differs from the database's"]);
  expect(await warnings(shared, -10)).toHaveLength(1);
});

test("one that is far off stops the start with a sentence", async () => {
  const refused = (offSeconds: number) =>
    warnings(shared, offSeconds).then(
      () => "",
      (error: unknown) => (error instanceof ClockWrong ? error.message : String(error)),
    );
  expect(await refused(45)).toContain("45 s ahead of the database's");
  expect(await refused(-45)).toContain("45 s behind the database's");
});

test("the embedded database has this machine's clock", async () => {
  expect(await warnings(embedded, 1000)).toEqual([]);
});
