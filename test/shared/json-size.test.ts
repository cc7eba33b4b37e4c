// The cost and the outline of large JSON texts, read from their bytes, against what the engine's parser makes of them.
// Refuses chosen examples where any JSON will do.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isTooDense, outlineOf } from "../../src/shared/json-size.ts";

const encoded = (text: string): Uint8Array => new TextEncoder().encode(text);
const PLENTY = { members: 1e9, containers: 1e9, values: 1e9 };

/** What the bounds count, of a parsed value. */
function measure(value: unknown): { members: number; containers: number; values: number } {
  const sum = { members: 0, containers: 0, values: 0 };
  const walk = (inner: unknown): void => {
    if (typeof inner !== "object" || inner === null) return;
    const children = Object.values(inner);
    sum.containers += 1;
    sum.values += Math.max(0, children.length - 1);
    if (!Array.isArray(inner)) sum.members += children.length;
    for (const child of children) walk(child);
  };
  walk(value);
  return sum;
}

/** Longer strings lose their text; names of members keep theirs only when they are short. */
function shortened(value: unknown, maxString: number): unknown {
  if (typeof value === "string") return Buffer.byteLength(JSON.stringify(value)) - 2 > maxString ? "" : value;
  if (Array.isArray(value)) return value.map((each) => shortened(each, maxString));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      shortened(name, maxString) as string,
      shortened(each, maxString),
    ]),
  );
}

describe("the bounds", () => {
  test("hold exactly, whatever the strings contain", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        const value: unknown = JSON.parse(text);
        const bytes = encoded(JSON.stringify(value));
        const has = measure(value);
        expect(isTooDense(bytes, has)).toBe(false);
        for (const name of ["members", "containers", "values"] as const)
          if (has[name] > 0) expect(isTooDense(bytes, { ...PLENTY, [name]: has[name] - 1 })).toBe(true);
      }),
    );
  });
  test.each(["", '"', '"\\', '{"a', '{"a":"\\"', '"\\\\', "[[[["])("broken JSON (%j) ends", (text) => {
    expect(isTooDense(encoded(text), PLENTY)).toBe(false);
    expect(outlineOf(encoded(text), 4)).toBeString();
  });
  test("quotes behind backslashes do not end a string", () => {
    for (const text of ['\\"', "\\\\", '\\\\\\",', `${"x".repeat(200)}\\",[`])
      expect(isTooDense(encoded(`"${text}"`), { members: 0, containers: 0, values: 0 })).toBe(false);
  });
});

describe("the outline", () => {
  test("is the same JSON without its long strings", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.integer({ min: 0, max: 20 }), (text, maxString) => {
        const value: unknown = JSON.parse(text);
        const bytes = encoded(JSON.stringify(value));
        expect(JSON.parse(outlineOf(bytes, maxString))).toEqual(shortened(value, maxString));
      }),
    );
  });
});
