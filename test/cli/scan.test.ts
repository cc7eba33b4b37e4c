// What YAML readers disagree about is refused with its line, and what the export writes is read back as it was.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readConfigText } from "../../src/cli/config-file.ts";
import { writeYaml } from "../../src/cli/yaml.ts";

/** `line: the beginning of the reason` of each problem, or the value. */
function read(text: string, isJson = false): unknown {
  const { value, problems } = readConfigText(text, isJson);
  return problems.length > 0 ? problems.map(({ line, message }) => `${line}: ${message}`) : value;
}

/** A text, the line that is refused, and words of the reason. */
const REFUSED: readonly [what: string, text: string, line: number, reason: string][] = [
  ["a name twice", "prices:\n  a: {in: 1}\n  b: {in: 1}\n  a: {in: 2}\n", 4, "line 2 already"],
  ["a name twice, once in quotes", "a: 1\nb: 2\n'a': 3\n", 3, "line 1 already"],
  ["a name twice, once with an escape", 'ab: 1\n"a\\u0062": 3\n', 2, "line 1 already"],
  ["a name twice in braces", "a: {b: 1,\n  c: 2,\n  b: 3}\n", 3, "line 1 already"],
  ["a name twice in a list's map", "a:\n  - b: 1\n    b: 2\n", 3, "line 2 already"],
  ["a section twice", "prices:\n  a: {in: 1}\nprices:\n  b: {in: 1}\n", 3, "line 1 already"],
  ["octal", "a: 1\nb: 012\n", 2, "octal"],
  ["octal with a sign", "b: -012\n", 1, "octal"],
  ["octal in a list", "b: [1, 010]\n", 1, "octal"],
  ["octal as a name", "007: x\n", 1, "octal"],
  ["a leading 0 that is not octal", "b: 08\n", 1, "octal"],
  ["hexadecimal", "b: 0x1F\n", 1, "decimal"],
  ["YAML 1.2's octal", "b: 0o17\n", 1, "decimal"],
  ["underscores in a number", "b: 1_000\n", 1, "underscores"],
  ["base 60", "b: 12:30:45\n", 1, "base 60"],
  ["no number", "b: .nan\n", 1, "no number"],
  ["infinity", "b: -.INF\n", 1, "no number"],
  ["more digits than a double keeps", "b: 9007199254740993\n", 1, "more digits"],
  ["Norway", "a: no\n", 1, "true or false to some readers"],
  ["Norway as a name", "a:\n  on: 1\n", 2, "true or false to some readers"],
  ["a number as a name", "1.0: x\n", 1, "read as a number"],
  ["null as a name", "~: x\n", 1, "no text"],
  ["an anchor", "a: &x 1\n", 1, "anchors"],
  ["an alias", "a: 1\nb: *x\n", 2, "aliases"],
  ["a tag", "a: !!str 1\n", 1, "tags"],
  ["a tag of somebody's", "a: 1\nb:\n  - !env KEY\n", 3, "tags"],
  ["a merge", "a:\n  <<: {b: 1}\n", 2, "merges"],
  ["a merge in quotes", "a:\n  '<<': {b: 1}\n", 1, "readers disagree"],
  ["a merge in braces", "a: {<<: {b: 1}}\n", 1, "merges"],
  ["a name over several lines", "? a\n: b\n", 1, "over several lines"],
  ["two documents", "a: 1\n---\nb: 2\n", 2, "one document"],
  ["the end of a document", "a: 1\n...\n", 2, "one document"],
  ["a directive", "%YAML 1.1\n---\na: 1\n", 1, "directives"],
  ["a tab", "a:\n\tb: 1\n", 2, "tab"],
  ["text over several lines without quotes", "a: x\n  y\n", 2, "needs quotes"],
  ["a colon within text", "a: b: c\n", 1, "colon"],
  ["a colon within a list's text", "a: [b: c]\n", 1, "comma"],
  ["a brace within braces", "a: {k: ${KEY}}\n", 1, "{ or ["],
  ["a value without a name", "a: 1\nb\n", 2, "a name and a colon"],
  ["a line too far in", "a:\n  b: {}\n    c: 1\n", 3, "belongs to nothing"],
  ["a line too far out", "a:\n    b: 1\n  c: 2\n", 3, "belongs to nothing"],
  ["an open quote", 'a: 1\nb: "x\n', 2, "does not end"],
  ["an open brace", "a: 1\nb: {c: 1\n", 2, "does not end"],
  ["text behind a quote", "a: 'b'c\n", 1, "nothing may follow"],
  ["a name of every object's", "prices:\n  constructor: {in: 1}\n", 2, "cannot be a name"],
  ["__proto__", "prices:\n  __proto__: {in: 1}\n", 2, "cannot be a name"],
];

describe("refused, with its line", () => {
  test.each(REFUSED)("%s", (_, text, line, reason) => {
    const { problems } = readConfigText(text);
    expect(problems[0]?.line).toBe(line);
    expect(problems[0]?.message).toContain(reason);
    // The same in a file that was written on Windows.
    expect(readConfigText(text.replaceAll("\n", "\r\n")).problems).toEqual(problems);
  });

  test("a name twice in JSON, where the last would win too", () => {
    expect(read('{"prices": {"a": {"in": 1},\n  "b": {},\n  "a": {"in": 2}}}', true)).toEqual([
      '3: "a" stands in line 1 already: a name may stand once',
    ]);
    expect(read('{"a": 1,}', true)).toEqual([expect.stringMatching(/^0: /)]);
  });

  test("every doubt at once, in the order of the lines", () => {
    expect(read("a: 010\nb: no\na: 1\n")).toEqual([
      expect.stringContaining("1: 010"),
      expect.stringContaining("2: no"),
      expect.stringContaining("3: "),
    ]);
  });
});

describe("read", () => {
  test.each<[text: string, value: unknown]>([
    ["", null],
    ["# nothing\n", null],
    ["---\na: 1 # one\n", { a: 1 }],
    ["\uFEFFa: 1\r\nb:\r\n  c: x\r\n", { a: 1, b: { c: "x" } }],
    ["a:\n- 1\n- b: 2\n  c: [3, {d: 4}]\n- - 5\ne: 6\n", { a: [1, { b: 2, c: [3, { d: 4 }] }, [5]], e: 6 }],
    ["a: |\n  012\n   no: yes\n\n  # kept\nb: >-\n  x\n  y\n", { a: "012\n no: yes\n\n# kept\n", b: "x y" }],
    [`a: "012"\nb: 'it''s'\n"c d": "x: y"\n`, { a: "012", b: "it's", "c d": "x: y" }],
    [
      "a: http://h:80/x#y\nb: ${KEY}\nc: gpt-4-gizmo-*\n",
      { a: "http://h:80/x#y", b: "${KEY}", c: "gpt-4-gizmo-*" },
    ],
    ["404: 500\ngpt-4-*: 1\n中文: 模型\n", { "404": 500, "gpt-4-*": 1, 中文: "模型" }],
    ["a: 0.5\nb: -1\nc: 1e3\nd: 0\ne: true\nf:\n", { a: 0.5, b: -1, c: 1000, d: 0, e: true, f: null }],
    ['a: "x\n  y"\nb: {c: 1,\n  d: [2,\n  3]}\n', { a: "x y", b: { c: 1, d: [2, 3] } }],
    ["hours: [01:00-04:00]\n", { hours: ["01:00-04:00"] }],
    ['{"a": {"b": [1, "}"]}}', { a: { b: [1, "}"] } }],
  ])("%j", (text, value) => {
    expect(read(text)).toEqual(value);
  });

  test("the line of a place, or of the nearest one around it", () => {
    const file = readConfigText(
      "# top\nprices:\n  m:\n    in: 1\n    when:\n      - over: 1\n        set: {in: 2}\n",
    );
    const places = [
      ["prices"],
      ["prices", "m", "in"],
      ["prices", "m", "when", "0", "set", "in"],
      ["prices", "m", "x"],
      ["z"],
    ];
    expect(places.map((path) => file.lineOf(path))).toEqual([2, 4, 7, 3, 0]);
  });
});

const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.constantFrom(
    "on",
    "1.0",
    "007",
    "a b",
    "x: y",
    "- z",
    "模型",
    "#",
    "a#b",
    "'q'",
    '"',
    "gpt-4-*",
    "404",
    "null",
  ),
);
const texts = fc.oneof(
  fc.string({ maxLength: 40, unit: "binary" }),
  fc.constantFrom(
    "",
    " x",
    "x ",
    "a\nb",
    "a\n",
    "a\n\n",
    "\na",
    "a\n  b\nc",
    "x: y\nz",
    "# no\ny",
    "012",
    "no",
    "~",
    "${KEY}",
    "|",
    "a\tb\nc",
    "yes\nno",
  ),
);
/** Whole numbers beyond those that a double keeps are refused. */
const number = fc
  .double({ noNaN: true, noDefaultInfinity: true })
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));
const scalar = fc.oneof(texts, fc.integer(), number, fc.boolean());
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(name, tie("tree"), { maxKeys: 4 }),
  ),
}));
/** Also `<<`: the runtime's reader merges what stands there even in quotes, so the scan refuses it. */
const isReserved = (key: string): boolean => key === "<<" || key in Object.prototype;
const holdsReserved = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  Object.entries(value).some(
    ([key, each]) => (!Array.isArray(value) && isReserved(key)) || holdsReserved(each),
  );

test("whatever is written is read back as it was, by the scan and by the runtime's reader alike", () => {
  const document = fc.dictionary(name, tree, { maxKeys: 5 }).filter((value) => !holdsReserved(value));
  fc.assert(
    fc.property(document, (value) => {
      const text = writeYaml(value, (path) => (path.length < 2 ? ["a comment: with 'all' {it} takes"] : []));
      // Of JSON: -0 is 0 there, and numbers are what a double prints.
      expect(read(text)).toEqual(Object.keys(value).length === 0 ? null : JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 500 },
  );
});
