// Request ids stand in the text of every error, where clients look for statuses that are worth another try.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { newRequestId } from "../../src/http/request-id.ts";

/** What OpenCode takes for one (its list of messages that it retries). */
const LIKE_A_STATUS = /429|500|502|503|504|524/;

test("no id reads like a status that clients retry, whenever it is made", () => {
  const day = 86_400_000;
  fc.assert(
    fc.property(fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2030, 0, 1) }), (nowMs) => {
      expect(newRequestId(nowMs)).not.toMatch(LIKE_A_STATUS);
    }),
    { numRuns: 5000 },
  );
  // The 29th of April, the 2nd of May, ten to eleven: each by its very date or time.
  for (const nowMs of [
    Date.UTC(2026, 3, 29, 12),
    Date.UTC(2026, 4, 2, 12),
    Date.UTC(2026, 10, 23, 10, 50, 24),
  ])
    for (const ms of [0, day / 2, 429, 503]) expect(newRequestId(nowMs + ms)).not.toMatch(LIKE_A_STATUS);
});

test("ids are words that sort by their time and never repeat", () => {
  const ids = Array.from({ length: 2000 }, () => newRequestId(1_760_000_000_000));
  expect(new Set(ids).size).toBe(2000);
  for (const id of ids) expect(id).toMatch(/^\d{8}\w{23,}$/);
  expect(newRequestId(1_760_000_000_000) < newRequestId(1_760_000_061_000)).toBe(true);
});
