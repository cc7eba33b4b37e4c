// Every option acts or is hidden: the source is read for who asks for each option, and an option that nobody asks for, or a
// hidden one that somebody does, fails by its name. Reads the syntax, so that comments and other people's words count for nothing.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { optionRows } from "../../../src/core/options/definitions.ts";
import type { OptionKey } from "../../../src/core/options/definitions.ts";
import { optionGroups } from "../../../src/core/options/groups.ts";
import { hiddenRows, isHidden } from "../../../src/core/options/hidden.ts";

const ROOT = join(import.meta.dir, "../../..");

/** They keep options, describe them, or hand them on whole; none of that is acting on one. */
const KEEPERS = [
  "src/core/options/definitions.ts",
  "src/core/options/guards.ts",
  "src/core/options/hidden.ts",
  "src/core/options/groups.ts",
  // Copies what it is sent, for extensions and chat links.
  "islands/lib/storage.ts",
];

interface Read {
  file: string;
  /** An option's key, or the field of the status that carries it. */
  name: string;
  kind: "option" | "status";
}

/** What a file asks for: `.get("Key")`, `.text("Key")` and `valueOf` or `textOf(rows, "Key")`, by the key or a constant of it, and fields by their names. */
function readsIn(file: string, text: string): Read[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const constants = new Map<string, string>();
  const found: Read[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer)
      if (ts.isStringLiteral(node.initializer)) constants.set(node.name.text, node.initializer.text);
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const [key] = node.arguments;
      const isAsking = ["get", "text"].includes(node.expression.name.text);
      const name =
        key && ts.isStringLiteral(key)
          ? key.text
          : key && ts.isIdentifier(key)
            ? constants.get(key.text)
            : key && ts.isTemplateExpression(key) && key.head.text !== ""
              ? `${key.head.text}*`
              : undefined;
      if (isAsking && name !== undefined) found.push({ file, name, kind: "option" });
    }
    if (
      ts.isCallExpression(node) &&
      ts.isIdentifier(node.expression) &&
      ["valueOf", "textOf"].includes(node.expression.text)
    ) {
      const key = node.arguments[1];
      if (key && ts.isStringLiteral(key)) found.push({ file, name: key.text, kind: "option" });
    }
    if (ts.isPropertyAccessExpression(node)) found.push({ file, name: node.name.text, kind: "status" });
    if (ts.isBindingElement(node)) {
      const field = node.propertyName ?? node.name;
      if (ts.isIdentifier(field)) found.push({ file, name: field.text, kind: "status" });
    }
    // The navigation and the page table name the fields that rows follow.
    if (ts.isStringLiteral(node) && !ts.isLiteralTypeNode(node.parent))
      found.push({ file, name: node.text, kind: "status" });
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const files = ["src", "islands", "views"]
  .flatMap((room) => [...new Bun.Glob(`${room}/**/*.{ts,tsx}`).scanSync(ROOT)])
  .filter((file) => !KEEPERS.includes(file) && !file.startsWith("src/openapi/"));
const reads = files.flatMap((file) => readsIn(file, readFileSync(join(ROOT, file), "utf8")));

/** Only what is drawn reads the status; elsewhere a word like `price` is somebody else's. */
const DRAWING = /^(?:islands|views|src\/pages)\/|^src\/shared\/(?:navigation|quota-display)\.ts$/;

/** A name that is put together at run time asks for all that begin like it. */
const isNamed = (key: string, name: string): boolean =>
  name.length > 1 && name.endsWith("*") ? key.startsWith(name.slice(0, -1)) : name === key;

function readersOf({ key, public: field }: (typeof optionRows)[number], from = reads): string[] {
  const asked = from.filter(({ kind, name, file }) =>
    kind === "option"
      ? isNamed(key, name) && file.startsWith("src/")
      : field !== undefined && name === field && DRAWING.test(file),
  );
  return [...new Set(asked.map(({ file }) => file))];
}

describe("every option", () => {
  test.each(optionRows.filter(({ hidden }) => !hidden))("$key is asked for", (row) => {
    expect(readersOf(row)).not.toEqual([]);
  });

  test.each(optionRows.filter(({ hidden }) => hidden))("$key is hidden, and nothing acts on it", (row) => {
    const told = hiddenRows.find(({ keys }) => keys.includes(row.key))?.toldBy;
    expect(readersOf(row)).toEqual(told === undefined ? [] : [told]);
  });
});

describe("the hidden ones", () => {
  test("stand once, under a reason, and the rows of options say so", () => {
    const keys = hiddenRows.flatMap((row) => row.keys);
    expect(new Set(keys).size).toBe(keys.length);
    expect(hiddenRows.filter(({ reason }) => reason.length < 20)).toEqual([]);
    expect(optionRows.filter(({ key, hidden }) => hidden !== isHidden(key))).toEqual([]);
  });

  test("a group that no tab shows holds nothing else", () => {
    const shownByNone = new Set(optionGroups.filter(({ tab }) => tab === "none").map(({ id }) => id));
    const lost = optionRows.filter(({ group, hidden }) => shownByNone.has(group) && !hidden);
    expect(lost.map(({ key }) => key)).toEqual([]);
  });
});

test("reading a source finds what asks, and nothing that only mentions", () => {
  const row = (key: OptionKey) => optionRows.find((each) => each.key === key) as (typeof optionRows)[number];
  const found = (file: string, text: string, key: OptionKey) =>
    readersOf(row(key), readsIn(file, text)).length;
  expect(found("src/a.ts", 'options.get("Price")', "Price")).toBe(1);
  expect(found("src/a.ts", 'const KEY = "Price";\noptions.text(KEY)', "Price")).toBe(1);
  expect(found("islands/a.tsx", "status.peek().price", "Price")).toBe(1);
  expect(found("src/a.ts", "options.get(`inbox.letters.${kind}`)", "inbox.letters.disk")).toBe(1);
  expect(found("src/a.ts", "options.get(`inbox.letters.${kind}`)", "inbox.audit_hours")).toBe(0);
  for (const mention of [
    '// options.get("Price")',
    'options.set("Price", "1")',
    'const name = "Price";',
    "model.price",
    'const text = `options.get("Price")`;',
  ])
    expect([mention, found("src/a.ts", mention, "Price")]).toEqual([mention, 0]);
});
