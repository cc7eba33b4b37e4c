// Before a hold is opened: whoever comes after a rest waits until the process knows what was written meanwhile.
// Refuses a database: what is held and refused is told by ledger.test.ts.
import { expect, test } from "bun:test";
import { reserve } from "../../../src/core/ledger/reserve.ts";
import type { ReserveDeps } from "../../../src/core/ledger/reserve.ts";
import type { UserAccount } from "../../../src/core/deps.ts";

test("a call whose body came for so long that the process rests wakes it, and is judged by what it knows then", async () => {
  const written = Promise.withResolvers<void>();
  let catchingUp: Promise<void> | undefined = written.promise;
  let judged = 0;
  const deps = {
    db: { use: () => catchingUp },
    health: { canRecord: () => judged++ < 0 },
  } as unknown as ReserveDeps;
  const request = { requestId: "one", user: {} as UserAccount, token: undefined, amount: 5 };
  const waiting = Promise.resolve(reserve(deps, request));
  expect(judged).toBe(0);
  catchingUp = undefined;
  written.resolve();
  expect(await waiting.catch((error: Error) => error)).toBeInstanceOf(Error);
  expect(judged).toBe(1);
  // In use it is judged at once.
  expect(() => reserve(deps, request)).toThrow();
});
