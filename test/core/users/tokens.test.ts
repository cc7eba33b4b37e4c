// The making of API keys: length, alphabet, and that no character is likelier than another.
// Refuses luck: the random source is the test's own.
import { describe, expect, test } from "bun:test";
import { newTokenKey } from "../../../src/core/users/token-secret.ts";

describe("new API keys", () => {
  test("bytes that would favour some characters are thrown away, all others map evenly", () => {
    const counts = new Map<string, number>();
    let next = 0;
    let taken = 0;
    const fill = (bytes: Uint8Array<ArrayBuffer>) => bytes.map(() => next++ % 256);
    // 31 keys of 48 characters are six whole rounds through the 248 fair bytes.
    for (let round = 0; round < 31; round++) {
      let rest = 48;
      const key = newTokenKey((bytes) => {
        const filled = fill(bytes.subarray(0, Math.min(rest, bytes.length)));
        rest -= filled.filter((byte) => byte < 248).length;
        return filled;
      });
      expect(key).toMatch(/^[0-9A-Za-z]{48}$/);
      for (const character of key) counts.set(character, (counts.get(character) ?? 0) + 1);
      taken += key.length;
    }
    expect(taken).toBe(31 * 48);
    expect(counts.size).toBe(62);
    expect(new Set(counts.values())).toEqual(new Set([24]));
  });

  test("a thousand keys are all different", () => {
    expect(new Set(Array.from({ length: 1000 }, () => newTokenKey())).size).toBe(1000);
  });
});
