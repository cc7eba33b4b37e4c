// The section `options` of a settings file: every option by its name, but those that are sections of their own.
// Refuses secrets in plain text, unknown options with the nearest known ones, and values of another kind.
import type { OptionKind } from "../options/kinds.ts";
import { domains, lines } from "../options/kinds.ts";
import { displayBeside } from "../options/display.ts";
import { definitionOf, isOptionKey, optionRows } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import { PRICE_MAPS } from "../../shared/row-maps.ts";
import { GROUP_OPTIONS } from "./groups.ts";
import { checked, entriesOf, isRecord, wrong } from "./judge.ts";
import type { Judge, Path } from "./judge.ts";
import { secretOf } from "./variables.ts";

const SECTION_OF: ReadonlyMap<string, string> = new Map([
  ...PRICE_MAPS.map((key) => [key, "prices"] as const),
  ...GROUP_OPTIONS,
]);

/** What an option's value is in a file, with the refusal of anything else. */
const SHAPES = {
  bool: "config_not_bool",
  number: "config_not_number",
  list: "config_not_list",
  map: "config_not_map",
  text: "config_not_text",
} as const;
type Shape = keyof typeof SHAPES;

function shapeOf({ kind, default: shipped }: { kind: OptionKind<unknown>; default: string }): Shape {
  const value = kind.parse(shipped);
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return "number";
  if (Array.isArray(value)) return "list";
  return isRecord(value) ? "map" : "text";
}

/** How a list that is no JSON is written. */
function joined(kind: unknown, value: readonly unknown[]): string | undefined {
  if (kind === lines) return value.join("\n");
  return kind === domains ? value.join(",") : undefined;
}

/** The text that is stored for a file's value; undefined where the value is of another shape. */
function textFor(key: OptionKey, value: unknown): string | undefined {
  const definition = definitionOf(key);
  const shape = shapeOf(definition);
  if (typeof value === "string") return shape === "bool" || shape === "map" ? undefined : value;
  if (typeof value === "boolean") return shape === "bool" ? String(value) : undefined;
  if (typeof value === "number") return shape === "number" ? String(value) : undefined;
  if (Array.isArray(value)) {
    if (shape !== "list") return undefined;
    const text = joined(definition.kind, value);
    if (text === undefined) return JSON.stringify(value);
    return value.every((each) => typeof each === "string" && !/[\n,]/.test(each)) ? text : undefined;
  }
  return isRecord(value) && shape === "map" ? JSON.stringify(value) : undefined;
}

/** An option's value as files show it. */
function shownValue(key: OptionKey, text: string): unknown {
  const { kind } = definitionOf(key);
  try {
    return kind.parse(text);
  } catch {
    return text;
  }
}

const isSameText = (key: OptionKey, one: string, other: string): boolean =>
  one === other || Bun.deepEquals(shownValue(key, one), shownValue(key, other), true);

/** Options that are not as they are shipped, and the secrets that are set, by name alone. */
export function shownOptions(texts: ReadonlyMap<OptionKey, string>): {
  options: Record<string, unknown>;
  secrets: string[];
} {
  const options: Record<string, unknown> = {};
  const secrets: string[] = [];
  for (const key of optionRows.map((row) => row.key).toSorted()) {
    const { default: shipped, secret } = definitionOf(key);
    const text = texts.get(key) ?? shipped;
    if (SECTION_OF.has(key) || isSameText(key, text, shipped)) continue;
    if (secret === true) secrets.push(key);
    else options[key] = shownValue(key, text);
  }
  return { options, secrets };
}

/** How many letters must change to make one name of the other, capitals aside. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

const MOST_NEAR = 5;
const LONGEST = 128;

function nearest(name: string): string {
  const wanted = name.slice(0, LONGEST).toLowerCase();
  const ranked = optionRows
    .filter(({ key }) => !SECTION_OF.has(key))
    .map(({ key }): [number, string] => [distance(wanted, key.toLowerCase()), key]);
  return ranked
    .toSorted(([a, one], [b, other]) => a - b || (one < other ? -1 : 1))
    .slice(0, MOST_NEAR)
    .map(([, key]) => key)
    .join(", ");
}

function put(judge: Judge, key: OptionKey, text: string): void {
  const before = judge.state.texts.get(key) ?? "";
  if (isSameText(key, before, text)) return;
  const isSecret = definitionOf(key).secret === true;
  judge.changes.push({
    section: "options",
    name: key,
    field: "",
    action: isSecret && before === "" ? "add" : "change",
    before: isSecret ? null : shownValue(key, before),
    after: isSecret ? null : shownValue(key, text),
  });
  judge.options.push({ key, text });
}

function judgeOption(judge: Judge, path: Path, name: string, value: unknown): void {
  if (!isOptionKey(name)) return wrong(judge, path, "config_unknown", { name, allowed: nearest(name) });
  const section = SECTION_OF.get(name);
  if (section !== undefined) return wrong(judge, path, "config_elsewhere", { name, section });
  const definition = definitionOf(name);
  const text = definition.secret === true ? secretOf(judge, path, value) : textFor(name, value);
  if (text === undefined) {
    if (definition.secret !== true) wrong(judge, path, SHAPES[shapeOf(definition)]);
    return;
  }
  const isTaken = checked(judge, path, () => {
    definition.kind.parse(text);
    // What is stored already may stay, as it may in the console.
    if (!isSameText(name, text, judge.state.texts.get(name) ?? "")) definition.kind.check?.(text);
    return true;
  });
  if (isTaken === true) put(judge, name, text);
}

const DISPLAY_KEYS = ["QuotaDisplayType", "DisplayInCurrencyEnabled"] as const;

/**
 * A file that names one of the two options of display takes the other along, as whoever saves it in the console does: else it
 * would say what the site shows, and the site would show something else. A file that names both means both.
 */
function judgeDisplay(judge: Judge, named: Set<string>): void {
  const [key, other] = DISPLAY_KEYS.filter((each) => named.has(each));
  if (key === undefined || other !== undefined) return;
  const after = textsAfter(judge);
  for (const [beside, text] of displayBeside((each) => after.get(each), key, after.get(key) ?? "")) {
    named.add(beside);
    put(judge, beside, text);
  }
}

/** Options that the file does not name go back to what is shipped where it prunes; secrets stay, as they are in no export. */
export function judgeOptions(judge: Judge, value: unknown): void {
  const named = new Set<string>();
  for (const [name, sent] of entriesOf(judge, ["options"], value)) {
    named.add(name);
    judgeOption(judge, ["options", name], name, sent);
  }
  judgeDisplay(judge, named);
  if (!judge.prunes.has("options")) return;
  for (const { key, secret, default: shipped } of optionRows)
    if (!named.has(key) && secret !== true && !SECTION_OF.has(key)) put(judge, key, shipped);
}

/** The texts of options as they will be. */
export function textsAfter(judge: Judge): ReadonlyMap<OptionKey, string> {
  return new Map([...judge.state.texts, ...judge.options.map(({ key, text }) => [key, text] as const)]);
}
