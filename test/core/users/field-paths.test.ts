// Paths into what an identity server answers: what is one, what it finds, and who a subject is.
import { describe, expect, test } from "bun:test";
import { parsePath, subjectAt, textAt, valueAt } from "../../../src/shared/field-paths.ts";

describe("a path", () => {
  test.each([
    ["sub", ["sub"]],
    ["data.user.id", ["data", "user", "id"]],
    ["emails.0.value", ["emails", "0", "value"]],
    ["https://site\\.example/roles", ["https://site.example/roles"]],
    ["a\\.b.c", ["a.b", "c"]],
  ])("%s has the steps %j", (text, steps) => {
    expect(parsePath(text)).toEqual(steps);
  });

  test.each([
    "",
    ".",
    "a.",
    ".a",
    "a..b",
    "a\\b",
    "a\\",
    "emails[0]",
    "emails.#.value",
    "@this",
    "$.a",
    "a.*",
    "a?b",
    "a|b",
    "a b",
    "a\nb",
    "a.b.c.d.e.f.g.h.i.j.k",
    "x".repeat(201),
  ])("%j is none", (text) => {
    expect(parsePath(text)).toBeUndefined();
    expect(valueAt({ a: { "": 1 }, "": 1 }, text)).toBeUndefined();
  });

  test("finds own values only, digits in lists and in objects", () => {
    const claims = { a: { "b.c": [{ d: "e" }], 7: "seven" }, n: null, no: false, zero: 0 };
    expect(valueAt(claims, "a.b\\.c.0.d")).toBe("e");
    expect(valueAt(claims, "a.7")).toBe("seven");
    expect(valueAt(claims, "no")).toBe(false);
    expect(valueAt(claims, "zero")).toBe(0);
    for (const path of [
      "n",
      "a.b\\.c.1",
      "a.b\\.c.00",
      "a.b\\.c.length",
      "constructor",
      "__proto__",
      "a.toString",
    ])
      expect([path, valueAt(claims, path)]).toEqual([path, undefined]);
    for (const claim of [undefined, null, "text", 7, []]) expect(valueAt(claim, "sub")).toBeUndefined();
  });

  test("gives texts for people, trimmed, and numbers as texts", () => {
    expect(textAt({ a: "  Ada " }, "a")).toBe("Ada");
    expect(textAt({ a: 12 }, "a")).toBe("12");
    for (const a of ["  ", true, {}, ["x"], Infinity]) expect(textAt({ a }, "a")).toBeUndefined();
  });
});

describe("a subject", () => {
  test("is a text or an integer that lost no digit", () => {
    expect(subjectAt({ id: 583231 }, "id")).toBe("583231");
    expect(subjectAt({ id: "f:1b:ada" }, "id")).toBe("f:1b:ada");
    expect(subjectAt({ id: Number.MAX_SAFE_INTEGER }, "id")).toBe("9007199254740991");
  });

  test("is nothing else", () => {
    const wrong = [2 ** 53, 1.5, NaN, true, null, "", {}, ["1"], "a\nb", "a\0", "\ud800", "x".repeat(256)];
    for (const id of wrong) expect([id, subjectAt({ id }, "id")]).toEqual([id, undefined]);
    expect(subjectAt({}, "id")).toBeUndefined();
  });
});
