// The journal's promises: what was appended is read back in order, torn and foreign files never are, room is used anew.
// Refuses the tables; what the books make of the entries stands in ledger-sqlite.test.ts and ledger-postgres.test.ts.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal } from "../../../../src/core/ledger/journal/journal.ts";
import type { Journal } from "../../../../src/core/ledger/journal/journal.ts";
import type { StorePosition } from "../../../../src/core/ledger/journal/recovery.ts";
import { silent } from "../support.ts";

const LARGE = "x".repeat(64 * 1024);
const MEGABYTE = 1024 * 1024;

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "weir-journal-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const HISTORY = "00112233445566aa";

function booksAt(mark: number, fields: Partial<StorePosition> = {}): StorePosition {
  return { mark, journaled: mark, history: HISTORY, ...fields };
}

function reopen(mark: number, fields: Partial<StorePosition> = {}): Journal<string> {
  const journal = openJournal<string>(dataDir, silent, { keepMs: 0 });
  journal.resume(booksAt(mark, fields));
  return journal;
}

function everything(journal: Journal<string>, after: number, limit = 500): string[] {
  const items: string[] = [];
  for (let position = after; ;) {
    const entries = journal.read(position, limit);
    if (entries.length === 0) return items;
    for (const entry of entries) {
      expect(entry.position).toBe(++position);
      items.push(entry.item);
    }
  }
}

const durable = () => Promise.resolve();
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const files = () => readdirSync(dataDir).filter((name) => name.endsWith(".log"));

test("entries come back in order, at once and after a new start, whichever way they were appended", async () => {
  const journal = reopen(0);
  journal.append(["a", "ü 水"]);
  await journal.appendLater(["c"]);
  journal.append(["d"]);
  expect(everything(journal, 0, 2)).toEqual(["a", "ü 水", "c", "d"]);
  expect(journal.lastPosition).toBe(4);
  journal.close();
  const next = reopen(1);
  expect(everything(next, 1)).toEqual(["ü 水", "c", "d"]);
  next.append(["e"]);
  expect(everything(next, 3)).toEqual(["d", "e"]);
  next.close();
});

test("room is used anew: a hundred megabytes pass through two or three files", async () => {
  const journal = reopen(0);
  for (let round = 0; round < 1600; round++) {
    journal.append([`${round} ${LARGE}`]);
    journal.trim(journal.lastPosition - 1, durable);
    await turn();
  }
  expect(files().length).toBeLessThanOrEqual(3);
  for (const name of files()) expect(statSync(join(dataDir, name)).size).toBeLessThan(1.2 * MEGABYTE);
  journal.close();
  const next = reopen(1598);
  expect(everything(next, 1598).map((item) => Number.parseInt(item, 10))).toEqual([1598, 1599]);
  next.close();
}, 60_000);

test("what a file held before it was used anew is not read again, though its frames lie where new ones might", async () => {
  const journal = reopen(1000);
  const append = async (count: number) => {
    for (let each = 0; each < count; each++) {
      journal.append([LARGE]);
      journal.trim(journal.lastPosition, durable);
      await turn();
    }
  };
  await append(100);
  expect(files().length).toBeLessThanOrEqual(3);
  const { lastPosition } = journal;
  journal.close();
  const next = reopen(lastPosition - 1);
  expect([next.lastPosition, everything(next, lastPosition - 1).length]).toEqual([lastPosition, 1]);
  next.close();
});

test("nothing is overwritten before the books are durable: an older state of them finds all that followed", async () => {
  const journal = reopen(0);
  let isDurable = () => {};
  const later = new Promise<void>((resolve) => {
    isDurable = resolve;
  });
  for (let round = 0; round < 100; round++) {
    journal.append([`${round} ${LARGE}`]);
    journal.trim(journal.lastPosition, () => later);
    await turn();
  }
  const copies = mkdtempSync(join(tmpdir(), "weir-journal-"));
  for (const name of files()) copyFileSync(join(dataDir, name), join(copies, name));
  isDurable();
  await turn();
  journal.close();
  const own = dataDir;
  dataDir = copies;
  const lost = reopen(3);
  expect(everything(lost, 3).map((item) => Number.parseInt(item, 10))).toEqual(
    Array.from({ length: 97 }, (_, index) => index + 3),
  );
  lost.close();
  rmSync(copies, { recursive: true });
  dataDir = own;
});

test("while the books are far behind, everything waits in the files and comes in order; then the files go", async () => {
  const journal = reopen(0);
  const items = Array.from({ length: 15_000 }, (_, index) => `${index} ${"y".repeat(500)}`);
  for (let from = 0; from < items.length; from += 100) {
    if (from % 200 === 0) journal.append(items.slice(from, from + 100));
    else await journal.appendLater(items.slice(from, from + 100));
  }
  expect(files().length).toBeGreaterThan(6);
  const seen: string[] = [];
  for (let position = 0; position < items.length;) {
    const entries = journal.read(position, 300);
    seen.push(...entries.map((entry) => entry.item));
    position = entries.at(-1)?.position ?? Number.POSITIVE_INFINITY;
    journal.trim(position, durable);
    // What comes in between has its place behind all that waits.
    if (position === 6000) {
      journal.append(["in between"]);
      items.push("in between");
    }
    await turn();
  }
  expect(seen).toEqual(items);
  expect(files().length).toBeLessThanOrEqual(3);
  journal.close();
});

test("files of another journal are put away, not entered", () => {
  const fields = { history: "ffffffffffffffff" };
  const journal = reopen(5);
  journal.append(["from", "elsewhere"]);
  journal.close();
  const next = reopen(1, fields);
  expect(everything(next, 1)).toEqual([]);
  expect(readdirSync(dataDir).filter((name) => name.includes(".foreign-"))).toHaveLength(1);
  next.append(["own"]);
  next.close();
  const again = reopen(1, fields);
  expect(everything(again, 1)).toEqual(["own"]);
  again.close();
});

test("a gap behind the books refuses the start by name and changes nothing; a mark that fell back is filled", () => {
  const journal = reopen(5);
  journal.append(["six", "seven"]);
  journal.close();
  const before = readFileSync(join(dataDir, "journal-1.log"));
  expect(() => reopen(3)).toThrow(
    /positions? 4 to 5 of the journal are missing.*journal-1\.log.*weir journal enter FILE.*weir journal skip 4-5/,
  );
  expect(() => reopen(7, { journaled: 9 })).toThrow(/positions 8 to 9.*weir journal skip 8-9/);
  expect(readFileSync(join(dataDir, "journal-1.log")).equals(before)).toBe(true);
  const next = reopen(6, { journaled: 7 });
  expect(everything(next, 6)).toEqual(["seven"]);
  next.rewind(5);
  expect(everything(next, 5)).toEqual(["six", "seven"]);
  expect(() => next.rewind(2)).toThrow(/positions 3 to 5/);
  next.close();
});

test("what the books have stays for a while, so that older books get it again; then it is used anew", async () => {
  let nowMs = 1_000_000;
  const journal = openJournal<string>(dataDir, silent, { keepMs: 60_000, monotonicMs: () => nowMs });
  journal.resume(booksAt(0));
  const append = async (count: number) => {
    for (let each = 0; each < count; each++) {
      journal.append([`${journal.lastPosition} ${LARGE}`]);
      journal.trim(journal.lastPosition, durable);
      await turn();
    }
  };
  await append(60);
  journal.rewind(10);
  expect(everything(journal, 10).map((item) => Number.parseInt(item, 10))).toEqual(
    Array.from({ length: 50 }, (_, index) => index + 10),
  );
  journal.trim(60, durable);
  await turn();
  const many = files().length;
  expect(many).toBeGreaterThanOrEqual(4);
  nowMs += 60_001;
  await append(100);
  expect(() => journal.rewind(10)).toThrow(/positions 11 to/);
  journal.close();
});

test("after an older file was put back, or none is left, positions go on above the books", () => {
  const journal = reopen(0);
  journal.append(["a", "b"]);
  journal.close();
  for (const isLeft of [true, false]) {
    if (!isLeft) for (const name of files()) rmSync(join(dataDir, name));
    const next = reopen(40);
    expect(everything(next, 40)).toEqual([]);
    next.append(["c"]);
    expect(next.lastPosition).toBe(41);
    next.close();
    const again = reopen(40);
    expect(everything(again, 40)).toEqual(["c"]);
    again.close();
  }
});

test("what could not be written takes no position", () => {
  const journal = reopen(0);
  journal.append(["a"]);
  journal.close();
  expect(() => journal.append(["b"])).toThrow();
  expect(journal.lastPosition).toBe(1);
  const next = reopen(0);
  expect(everything(next, 0)).toEqual(["a"]);
  next.close();
});
