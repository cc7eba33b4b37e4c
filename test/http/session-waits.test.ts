// How long a signed-in visitor waits for an account whose row does not come: bounded on PostgreSQL, longer for whom memory has.
// Refuses to wait for seconds: the timers are in the test's hands.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { SessionSettings } from "../../src/http/session.ts";
import { claimsOf, signedInBy } from "../../src/http/session.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

type Settings = Pick<SessionSettings, "accounts" | "sessions" | "databaseKind">;

/** Settings under which the row comes never, and memory has the account, or not. */
function settings(databaseKind: Settings["databaseKind"], isKept: boolean): Settings {
  const accounts = { cachedUser: () => (isKept ? {} : undefined), user: () => new Promise(() => undefined) };
  return { databaseKind, accounts, sessions: {} } as unknown as Settings;
}

/** Whether the wait is over after so many milliseconds. */
async function isOver(asked: Settings, ms: number): Promise<boolean> {
  let over = false;
  const waiting = signedInBy(claimsOf({ id: 7, sessionVersion: 1 }, "sid"), asked).catch(() => {
    over = true;
  });
  void waiting;
  jest.advanceTimersByTime(ms);
  for (let turns = 0; turns < 10; turns++) await Promise.resolve();
  return over;
}

test("people before a screen are refused after five seconds, and those whom memory has wait until silence is known", async () => {
  expect(await isOver(settings("postgres", false), 5000)).toBe(true);
  expect(await isOver(settings("postgres", true), 6500)).toBe(false);
  expect(await isOver(settings("postgres", true), 8000)).toBe(true);
});

test("the embedded database bounds its waits itself: nobody is told that it is away where it is busy", async () => {
  expect(await isOver(settings("sqlite", false), 60_000)).toBe(false);
});
