// Whatever happens to the journal's files: everything above the mark is entered, once and in order, or the start is
// refused by name. Refuses a crash's own traces as a reason: those never stop a start.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { frameOf, TAIL_BYTES } from "../../../../src/core/ledger/journal/frames.ts";
import { JournalDamaged, openJournal } from "../../../../src/core/ledger/journal/journal.ts";
import type { Journal } from "../../../../src/core/ledger/journal/journal.ts";
import { recover, surveyFile } from "../../../../src/core/ledger/journal/recovery.ts";
import type { StorePosition } from "../../../../src/core/ledger/journal/recovery.ts";
import { damages, sampleOf } from "../../../support/journal-damage.ts";
import type { DamagedFile } from "../../../support/journal-damage.ts";
import { silent } from "../support.ts";

const PLACES = Bun.env.WEIR_LONG === "1" ? Number.POSITIVE_INFINITY : 200;
const HISTORY = "00112233445566aa";
const FILE_BYTES = 2048;
const LAST = 24;

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "weir-journal-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** The same numbers in every run of a seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const entry = (position: number) => `entry ${position} ${"x".repeat(position % 7)}`;

function write(from: number, to: number): Buffer {
  const positions = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  return frameOf(HISTORY, from, positions.map(entry));
}

/** Writes as they come to lie in a file: each over the zeros of the one before, room or remains behind. */
function fileOf(name: string, writes: Buffer[], behind: Buffer = Buffer.alloc(0)): DamagedFile {
  const bytes = Buffer.alloc(FILE_BYTES);
  behind.copy(bytes, 300);
  let at = 0;
  for (const each of writes) {
    each.copy(bytes, at);
    at += each.length - TAIL_BYTES;
  }
  return { name, bytes };
}

/** Four files of one history: a kept one, two that wait and one whose room was used before. */
const FILES: DamagedFile[] = [
  fileOf("journal-1.log", [write(1, 3), write(4, 4), write(5, 8)]),
  fileOf("journal-2.log", [write(9, 9), write(10, 13)]),
  fileOf("journal-3.log", [write(14, 14), write(15, 18), write(19, 19)]),
  fileOf("journal-4.log", [write(20, 20), write(21, LAST)], write(4, 4)),
  { name: "journal-5.log", bytes: Buffer.alloc(FILE_BYTES) },
];

const booksAt = (mark: number, journaled: number): StorePosition => ({
  mark,
  journaled,
  history: HISTORY,
});

function everything(journal: Journal<string>, after: number): string[] {
  const items: string[] = [];
  for (;;) {
    const entries = journal.read(after, 5);
    if (entries.length === 0) return items;
    for (const { position, item } of entries) {
      expect(position).toBe(++after);
      items.push(item);
    }
  }
}

function expected(mark: number, end: number): string[] {
  return Array.from({ length: end - mark }, (_, index) => entry(mark + 1 + index));
}

/** What a start enters from such files; undefined when it refuses them. */
function start(files: readonly DamagedFile[], books: StorePosition): string[] | undefined {
  rmSync(dataDir, { recursive: true, force: true });
  dataDir = mkdtempSync(join(tmpdir(), "weir-journal-"));
  for (const { name, bytes } of files) writeFileSync(join(dataDir, name), bytes);
  const journal = openJournal<string>(dataDir, silent);
  try {
    journal.resume(books);
  } catch (error) {
    expect(error).toBeInstanceOf(JournalDamaged);
    expect(String(error)).toMatch(/position.*journal.*weir journal enter FILE.*weir journal skip \d+-\d+/);
    return undefined;
  }
  const entered = everything(journal, books.mark);
  journal.append(["after"]);
  journal.close();
  const again = openJournal<string>(dataDir, silent);
  again.resume(books);
  expect(everything(again, books.mark)).toEqual([...entered, "after"]);
  again.close();
  return entered;
}

const MARKS = [0, 7, 8, 12, 17, 22, 23, LAST];

test(`after any damage the whole rest is entered once, or the start is refused (${PLACES} places)`, () => {
  const random = randomOf(Math.floor(Math.random() * 1e9));
  const outcomes = { whole: 0, refused: 0 };
  const all = damages(FILES, random);
  for (const { label, files } of Number.isFinite(PLACES) ? sampleOf(all, PLACES, random) : all) {
    const mark = MARKS[Math.floor(random() * MARKS.length)] ?? 0;
    const entered = start(files, booksAt(mark, LAST));
    if (entered) expect([label, mark, entered]).toEqual([label, mark, expected(mark, LAST)]);
    outcomes[entered ? "whole" : "refused"]++;
  }
  expect(outcomes.whole).toBeGreaterThan(0);
  expect(outcomes.refused).toBeGreaterThan(0);
}, 600_000);

test("where the books had not yet heard of the last writes: no gap, nothing twice, nothing older lost", () => {
  const random = randomOf(Math.floor(Math.random() * 1e9));
  for (const { label, files } of sampleOf(damages(FILES, random), 2000, random)) {
    const mark = MARKS[Math.floor(random() * MARKS.length)] ?? 0;
    const journaled = mark + Math.floor(random() * (LAST - mark + 1));
    const books = booksAt(mark, journaled);
    const found = recover(
      files.map(({ name, bytes }) => surveyFile(name, bytes, books)),
      books,
    );
    if (found.findings.length > 0) continue;
    expect([label, found.end >= journaled]).toEqual([label, true]);
    let next = mark + 1;
    for (const { first, count } of found.chain) {
      expect([label, first <= next && first + count > next]).toEqual([label, true]);
      next = first + count;
    }
    expect([label, found.end]).toEqual([label, next - 1]);
  }
});

test("a write that a crash tore anywhere refuses no start, over room and over remains; its trace is warned about", () => {
  const last = write(LAST + 1, LAST + 3);
  const whole = FILES[3]?.bytes ?? Buffer.alloc(0);
  const at = write(20, 20).length - TAIL_BYTES + write(21, LAST).length - TAIL_BYTES;
  for (const remains of [Buffer.alloc(0), write(4, 4)]) {
    for (let bytes = 1; bytes < last.length; bytes++) {
      for (const how of ["its beginning", "its end"]) {
        const torn = Buffer.from(whole);
        remains.copy(torn, at + TAIL_BYTES);
        if (how === "its beginning") last.copy(torn, at, 0, bytes);
        else last.copy(torn, at + bytes, bytes);
        const books = booksAt(LAST - 1, LAST);
        const files = [...FILES.slice(0, 3), { name: "journal-4.log", bytes: torn }];
        const found = recover(
          files.map((file) => surveyFile(file.name, file.bytes, books)),
          books,
        );
        expect([how, bytes, found.findings]).toEqual([how, bytes, []]);
        const isWhole = how === "its beginning" && bytes >= last.length - TAIL_BYTES;
        expect([how, bytes, found.end]).toEqual([how, bytes, isWhole ? LAST + 3 : LAST]);
        const isSeen = torn.subarray(at, at + TAIL_BYTES).some((byte) => byte !== 0);
        if (!isWhole && isSeen) expect([how, bytes, found.warnings.length]).toEqual([how, bytes, 1]);
      }
    }
  }
});

test("empty, short and zeroed files, half-made ones, lost ones and damage below the mark refuse nothing", () => {
  const below = Buffer.from(FILES[0]?.bytes ?? Buffer.alloc(0));
  below.fill("damage", 0, 200);
  const kinds: DamagedFile[] = [
    { name: "journal-6.log", bytes: Buffer.alloc(0) },
    { name: "journal-7.log", bytes: Buffer.alloc(17) },
    { name: "journal-8.log", bytes: Buffer.alloc(1024 * 1024) },
    { name: "journal-9.log", bytes: Buffer.alloc(500_000) },
    { name: "journal-1.log", bytes: below },
  ];
  expect(start([...FILES.slice(1), ...kinds], booksAt(8, LAST))).toEqual(expected(8, LAST));
  expect(start(kinds, booksAt(LAST, LAST))).toEqual([]);
  expect(start([], booksAt(LAST, LAST))).toEqual([]);
});

test("frames lying twice, in another order, under other names and behind damage are entered once", () => {
  const copies = FILES.map(({ bytes }, index) => ({ name: `journal-${90 - index}.log`, bytes }));
  expect(start([...copies, ...FILES], booksAt(2, LAST))).toEqual(expected(2, LAST));
  const shuffled = fileOf("journal-1.log", []);
  let at = 11;
  shuffled.bytes.fill("?", 0, FILE_BYTES);
  for (const piece of [write(7, 9), write(1, 4), write(5, 6)]) {
    piece.copy(shuffled.bytes, at);
    at += piece.length + 13;
  }
  expect(start([shuffled], booksAt(3, 9))).toEqual(expected(3, 9));
});

test("two versions of a position are refused: nobody can know which was answered for", () => {
  const other = frameOf(HISTORY, 20, ["another call"]);
  const files = [...FILES, fileOf("journal-6.log", [other])];
  expect(() => start(files, booksAt(19, LAST))).not.toThrow();
  expect(start(files, booksAt(19, LAST))).toBeUndefined();
  expect(start(files, booksAt(20, LAST))).toEqual(expected(20, LAST));
});
