// Forbidden words are found wherever they stand, few or thousands of them.
import { describe, expect, test } from "bun:test";
import { createWordFilter } from "../../../src/core/kit/word-filter.ts";

const MANY = Array.from({ length: 10_000 }, (_, i) => `forbidden${i}x`);

describe.each([
  ["a few words", ["she", "Hers", "敏感词", "he said"]],
  ["ten thousand words", ["she", "Hers", "敏感词", "he said", ...MANY]],
])("%s", (_, words) => {
  const filter = createWordFilter(words);
  test.each([
    ["in the middle of a word", "ushers", true],
    ["in another case", "HERS", true],
    ["in Chinese text", "这是一个敏感词测试", true],
    ["behind a failed start of another", "sshhers", true],
    ["with a space in it", "what he said then", true],
    ["not at all", "nothing of that kind", false],
    ["only nearly", "her s", false],
    ["in an empty text", "", false],
  ])("%s", (__, text, isFound) => {
    expect(filter.find(text) !== undefined).toBe(isFound);
  });
});

test("the automaton finds exactly what substring search finds", () => {
  const words = [
    "a",
    "ab",
    "bab",
    "bc",
    "bca",
    "c",
    "caa",
    "aabx",
    "bbbb",
    "cacb",
    "abcabc",
    "ccc",
    "acca",
  ].slice(1);
  const filter = createWordFilter([...words, "zzzz1", "zzzz2"]);
  let seed = 7;
  const random = () => (seed = (seed * 16_807) % 2_147_483_647);
  for (let i = 0; i < 3000; i++) {
    const text = Array.from({ length: 1 + (random() % 9) }, () => "abcd"[random() % 4]).join("");
    expect([text, filter.find(text) !== undefined]).toEqual([
      text,
      words.some((word) => text.includes(word)),
    ]);
  }
});
