// Rules of who may come in: what each operator says, of missing fields above all, what is no rule, and the words of a refusal.
import { describe, expect, test } from "bun:test";
import {
  POLICY_OPS,
  parsePolicy,
  parsePolicyText,
  refusalText,
  refusedBy,
} from "../../../src/shared/access-policy.ts";

const policyOf = (value: unknown) => {
  const parsed = parsePolicy(value);
  if ("problem" in parsed) throw new Error(`${parsed.problem.code} at ${parsed.problem.at}`);
  return parsed.policy;
};
const passes = (op: string, current: unknown, value?: unknown) =>
  refusedBy(
    policyOf({ conditions: [{ field: "f", op, ...(value === undefined ? {} : { value }) }] }),
    current === undefined ? {} : { f: current },
  ) === undefined;
/** A value that each operator takes. */
const valueFor = (op: string): unknown =>
  op === "in" || op === "not_in" ? ["x"] : op === "exists" || op === "not_exists" ? undefined : "1";

describe("a missing field", () => {
  test.each(POLICY_OPS.map((op) => [op]))("under %s", (op) => {
    for (const current of [undefined, null])
      expect([op, passes(op, current, valueFor(op))]).toEqual([op, op === "not_exists"]);
  });
});

describe("operators", () => {
  test.each([
    ["eq", "a", "a", true],
    ["eq", 3, "3", true],
    ["eq", "03", "3", false],
    ["eq", true, "true", true],
    ["eq", true, true, true],
    ["eq", ["a"], "a", false],
    ["ne", "a", "b", true],
    ["ne", "a", "a", false],
    ["ne", { a: 1 }, "b", false],
    ["gt", 10, 9, true],
    ["gt", "10", "9", true],
    ["gt", 9, 9, false],
    ["gte", 2, 2, true],
    ["gte", "2", 3, false],
    ["lt", "2026-01-01", "2026-02-01", true],
    ["lt", "abc", 5, false],
    ["lte", 5, 5, true],
    ["lte", true, 5, false],
    ["in", "b", ["a", "b"], true],
    ["in", 2, ["1", "2"], true],
    ["in", ["a"], ["a"], false],
    ["not_in", "c", ["a", "b"], true],
    ["not_in", "a", ["a"], false],
    ["not_in", ["c"], ["a"], false],
    ["contains", ["staff", "admin"], "admin", true],
    ["contains", ["administrators"], "admin", false],
    ["contains", "ada@x.org", "@x.org", true],
    ["contains", 12, 1, false],
    ["not_contains", ["staff"], "admin", true],
    ["not_contains", ["admin"], "admin", false],
    ["not_contains", 12, "3", false],
    ["exists", false, undefined, true],
    ["exists", "", undefined, true],
    ["not_exists", 0, undefined, false],
  ])("%s: %j against %j is %p", (op, current, value, isFine) => {
    expect(passes(op, current, value)).toBe(isFine);
  });
});

describe("groups", () => {
  const policy = policyOf({
    logic: "or",
    conditions: [{ field: "role", op: "eq", value: "admin" }],
    groups: [
      {
        logic: "and",
        conditions: [
          { field: "level", op: "gte", value: 2 },
          { field: "org.name", op: "eq", value: "weir" },
        ],
      },
    ],
  });
  test("join as they say, and the first unmet condition is the reason", () => {
    expect(refusedBy(policy, { role: "admin" })).toBeUndefined();
    expect(refusedBy(policy, { level: 2, org: { name: "weir" } })).toBeUndefined();
    expect(refusedBy(policy, { role: "user", level: 5 })).toEqual({
      field: "role",
      op: "eq",
      required: "admin",
      current: "user",
    });
    expect(refusedBy(policy, undefined)).toBeDefined();
    expect(refusedBy(undefined, {})).toBeUndefined();
  });
  test("that are met do not save a group joined by and", () => {
    const both = policyOf({
      groups: [
        { conditions: [{ field: "a", op: "exists" }] },
        { conditions: [{ field: "b", op: "exists" }] },
      ],
    });
    expect(refusedBy(both, { a: 1 })?.field).toBe("b");
    expect(refusedBy(both, { a: 1, b: 1 })).toBeUndefined();
  });
});

describe("what is no policy", () => {
  const condition = { field: "f", op: "exists" };
  const nested = (depth: number): unknown =>
    depth === 1 ? { conditions: [condition] } : { groups: [nested(depth - 1)] };
  test.each<[string, unknown, string, string]>([
    ["a list", [], "shape", ""],
    ["a text", "x", "shape", ""],
    ["another logic", { logic: "xor", conditions: [condition] }, "logic", "logic"],
    ["no condition", { logic: "and" }, "empty", ""],
    ["an empty group", { groups: [{}] }, "empty", "groups.0"],
    ["an unknown key", { conditions: [condition], not: [] }, "unknown", "not"],
    [
      "an unknown operator",
      { conditions: [{ field: "f", op: "like", value: "x" }] },
      "op",
      "conditions.0.op",
    ],
    [
      "an operator of every object",
      { conditions: [{ field: "f", op: "constructor" }] },
      "op",
      "conditions.0.op",
    ],
    ["a foreign path", { conditions: [{ field: "f[0]", op: "exists" }] }, "field", "conditions.0.field"],
    ["a list for eq", { conditions: [{ field: "f", op: "eq", value: [1] }] }, "value", "conditions.0.value"],
    ["no list for in", { conditions: [{ field: "f", op: "in", value: "a" }] }, "value", "conditions.0.value"],
    ["an empty list", { conditions: [{ field: "f", op: "in", value: [] }] }, "value", "conditions.0.value"],
    ["no value", { conditions: [{ field: "f", op: "ne" }] }, "value", "conditions.0.value"],
    ["51 conditions", { conditions: Array.from({ length: 51 }, () => condition) }, "many", ""],
    [
      "10,000 groups",
      { groups: Array.from({ length: 10_000 }, () => ({ conditions: [condition] })) },
      "many",
      "",
    ],
    [
      "51 conditions over groups",
      {
        groups: Array.from({ length: 17 }, () => ({
          conditions: [condition, condition, condition, condition],
        })),
      },
      "many",
      "groups.12",
    ],
    ["six levels", nested(6), "depth", "groups.0.groups.0.groups.0.groups.0.groups.0"],
  ])("%s", (_, value, code, at) => {
    expect(parsePolicy(value)).toEqual({ problem: { code, at } as never });
  });
  test("five levels and fifty conditions are one; nothing and {} let everybody in", () => {
    expect(policyOf(nested(5))).toBeDefined();
    expect(policyOf({ conditions: Array.from({ length: 50 }, () => condition) })).toBeDefined();
    for (const text of ["", "  ", "{}", "null"]) expect(parsePolicyText(text)).toEqual({ policy: undefined });
    expect(parsePolicyText("{")).toEqual({ problem: { code: "shape", at: "" } });
  });
  test("a tower of ten thousand levels costs no stack", () => {
    const text = `${'{"groups":['.repeat(10_000)}${"]}".repeat(10_000)}`;
    expect(parsePolicyText(text)).toMatchObject({
      problem: { code: expect.stringMatching(/depth|shape/) as never },
    });
  });
});

describe("the words of a refusal", () => {
  const refusal = { field: "level", op: "gte", required: "3", current: "1" } as const;
  const say = (template: string, claims: unknown = { level: 1, name: "Ada" }) =>
    refusalText(template, { provider: "Work", refusal, claims });
  test("name what is asked and what is there", () => {
    expect(say("{{provider}}: {{field}} {{op}} {{required}}, not {{ current }} ({{current.name}})")).toBe(
      "Work: level gte 3, not 1 (Ada)",
    );
    expect(say("{{secret}}{{current.missing}}.")).toBe(".");
  });
  test("stay short and on one line, and are read once", () => {
    expect(say("{{current.name}}", { name: "{{provider}}" })).toBe("{{provider}}");
    expect(say("{{current.name}}", { name: "a\r\nb\u202ec" })).toBe("a b c");
    expect(say("{{current.name}}", { name: "x".repeat(100) })).toBe(`${"x".repeat(59)}…`);
    expect(say("y".repeat(400))).toHaveLength(300);
  });
});
