// What is typed and pasted into sheets: numbers of many countries, and blocks as spreadsheets copy them.
import { expect, test } from "bun:test";
import { blockText, readBlock } from "../../src/shared/tsv.ts";
import { typedNumber } from "../../islands/lib/typed-number.ts";

test.each([
  ["2.5", 2.5],
  [" 2.5 ", 2.5],
  ["$1,234.5", 1234.5],
  ["1.234,5", 1234.5],
  ["1,234,567", 1_234_567],
  ["1.234.567", 1_234_567],
  ["1 234,5", 1234.5],
  ["0,5", 0.5],
  [",5", 0.5],
  ["0,125", 0.125],
  ["12,3456", 12.3456],
  ["1.234", 1.234],
  ["１２．５", 12.5],
  ["＄３", 3],
  ["3。5", 3.5],
  ["¥7", 7],
  ["7 USD", 7],
  ["1e-7", 1e-7],
  [".5", 0.5],
  ["0", 0],
])("%p is read as %p", (text, value) => {
  expect(typedNumber(text)).toEqual({ value });
});

test.each([
  ["1,234", "ambiguous"],
  ["$12,345", "ambiguous"],
  ["-1", "negative"],
  ["−1,5", "negative"],
  ["abc", "number"],
  ["1,2,3", "number"],
  ["1,23,456", "number"],
  ["1.23.4", "number"],
  ["5%", "number"],
  ["1/2", "number"],
  ["Infinity", "number"],
  ["0x10", "number"],
  ["1e999", "number"],
  ["--1", "number"],
])("%p is refused: %p", (text, problem) => {
  expect(typedNumber(text)).toEqual({ problem: problem as "number" });
});

test("blocks are read as spreadsheets copy them", () => {
  expect(readBlock("a\tb\r\nc\td\r\n")).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  expect(readBlock("a")).toEqual([["a"]]);
  expect(readBlock("a\t\n\tb")).toEqual([
    ["a", ""],
    ["", "b"],
  ]);
  expect(readBlock('"two\nlines"\t"a ""word"""')).toEqual([["two\nlines", 'a "word"']]);
  // A sign of inches is no quote.
  expect(readBlock('5" disk\t"open')).toEqual([['5" disk', '"open']]);
});

test("what is copied is read back", () => {
  const rows = [
    ["a", 'say "hi"', ""],
    ["tab\there", "line\nbreak", "plain"],
  ];
  expect(readBlock(blockText(rows))).toEqual(rows);
});
