// A key that costs nothing fills no log: ten error rows a minute for each key and reason, then one with the count.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { LogEntry } from "../../../src/core/deps.ts";
import { createErrorRows } from "../../../src/relay/call/error-rows.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const MINUTE_MS = 60_000;

function book() {
  let nowMs = 0;
  const written: LogEntry[] = [];
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const ledger = {
    async log(entry: LogEntry) {
      written.push(entry);
    },
  };
  const rows = createErrorRows({ ledger, logger }, () => nowMs);
  const entry = (userId: number, tokenId: number): LogEntry => ({
    type: 5,
    userId,
    tokenId,
    username: `u${userId}`,
    content: "broken",
  });
  return {
    rows,
    written,
    add: (userId: number, tokenId: number, reason = "r") =>
      rows.add({ userId, tokenId, reason }, () => entry(userId, tokenId)),
    advance(ms: number) {
      nowMs += ms;
    },
  };
}

const countOf = (row: LogEntry): number => Number(row.other?.["more_errors"] ?? 0);

describe("the rows of a minute", () => {
  test("are ten, then one that says how many more there were; the next minute begins anew", () => {
    const { rows, written, add, advance } = book();
    for (let i = 0; i < 1130; i++) add(1, 7);
    expect(written.length).toBe(10);
    advance(MINUTE_MS - 1);
    rows.sweep();
    expect(written.length).toBe(10);
    advance(1);
    rows.sweep();
    expect(written.length).toBe(11);
    expect(written.at(-1)).toMatchObject({ type: 5, userId: 1, tokenId: 7, other: { more_errors: 1120 } });
    expect(written.at(-1)?.content).toContain("1120");
    rows.sweep();
    expect(written.length).toBe(11);
    add(1, 7);
    expect(written.length).toBe(12);
    rows.close();
  });

  test("of another key, another reason, and of users without a key are counted apart", () => {
    const { rows, written, add } = book();
    for (let i = 0; i < 20; i++) {
      add(1, 7);
      add(1, 8);
      add(1, 7, "other");
      add(1, 0);
      add(2, 0);
    }
    expect(written.length).toBe(50);
    rows.close();
    expect(written.slice(50).map(countOf)).toEqual([10, 10, 10, 10, 10]);
  });

  test("where ten sufficed, nothing more is said", () => {
    const { rows, written, add, advance } = book();
    for (let i = 0; i < 10; i++) add(1, 7);
    advance(MINUTE_MS);
    rows.sweep();
    rows.close();
    expect(written.length).toBe(10);
  });

  test("are as many as keys of a crowd, in bounded memory: an early end still tells its count", () => {
    const { rows, written, add } = book();
    for (let key = 1; key <= 6000; key++) for (let i = 0; i < 12; i++) add(1, key);
    expect(written.filter((row) => countOf(row) > 0).length).toBe(6000 - 4096);
    rows.close();
    expect(written.filter((row) => countOf(row) === 2).length).toBe(6000);
  });

  test("with their counts are every failure there was, whatever the order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 5000 })), {
          maxLength: 400,
        }),
        (calls) => {
          const { rows, written, add, advance } = book();
          for (const [tokenId, ms] of calls) {
            advance(ms);
            if (ms % 7 === 0) rows.sweep();
            add(1, tokenId);
          }
          rows.close();
          const told = written.reduce((sum, row) => sum + (countOf(row) || 1), 0);
          expect(told).toBe(calls.length);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("on the wire", () => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway({ quota: 1000 });
  });
  afterAll(() => g.close());

  test("a poor key whose calls all fail is told of every one, and leaves ten rows", async () => {
    g.upstream.always({ status: 400, steps: ['{"error":{"message":"no such field","type":"invalid"}}'] });
    const statuses = await Promise.all(
      Array.from({ length: 60 }, async () => (await g.chat({ max_tokens: 1 })).status),
    );
    expect(new Set(statuses)).toEqual(new Set([400]));
    const errors = (await g.logs()).filter((row) => row.type === 5);
    expect(errors.length).toBe(10);
  });
});
