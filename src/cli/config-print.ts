// What `weir export`, `weir plan` and `weir apply` print for people: differences by section, prices in dollars, places with
// their lines; and the same as one JSON document for programs.
import type { ConfigAnswer } from "../http/config-answer.ts";
import type { ConfigFile } from "./config-file.ts";
import { writeYaml } from "./yaml.ts";

export interface Exported {
  document: Record<string, unknown>;
  secrets: readonly string[];
  unnamed: readonly string[];
}

/** A problem of the file, wherever it was found. */
export interface FileProblem {
  file: string;
  /** 0: the file as a whole. */
  line: number;
  path: readonly string[];
  code: string;
  message: string;
}

const MAX_VALUE = 160;

function valueText(value: unknown): string {
  if (value === null) return "–";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = /[\n\r]/.test(text) || text === "" || text !== text.trim() ? JSON.stringify(text) : text;
  return line.length > MAX_VALUE ? `${line.slice(0, MAX_VALUE)}…` : line;
}

const isRow = (value: unknown): boolean => typeof value === "object" && value !== null;

/** Dollars where the section is in dollars: conditions and units are not. */
function shown(section: string, value: unknown): string {
  return section === "prices" && typeof value === "number" ? `$${value}` : valueText(value);
}

const SIGNS: Readonly<Record<string, string>> = { add: "+", remove: "-", change: "~" };

function changeLines({ section, field, action, before, after }: ConfigAnswer["changes"][number]): string {
  const what = field === "" ? "" : `${field}: `;
  // What is secret has no value here.
  if (before === null && after === null) return `${what}(secret) ${action === "add" ? "is set" : "changes"}`;
  if (action === "add") return `${what}${shown(section, after)}`;
  if (action === "remove") return `${what}${shown(section, before)}`;
  const arrow = isRow(before) || isRow(after) ? "\n        → " : " → ";
  return `${what}${shown(section, before)}${arrow}${shown(section, after)}`;
}

/** By section and name, each field with what was and what will be. */
export function differenceText({ changes, removals }: ConfigAnswer): string[] {
  const lines: string[] = [];
  for (const [section, ofSection] of Map.groupBy(changes, (change) => change.section)) {
    lines.push("", section === "prices" ? "prices (dollars per million tokens, or per call)" : section);
    for (const [name, ofName] of Map.groupBy(ofSection, (change) => change.name)) {
      const [first] = ofName;
      const sign = SIGNS[first?.action ?? "change"] ?? "~";
      const calls = section === "prices" ? (removals.find((each) => each.name === name)?.calls ?? 0) : 0;
      const note = calls > 0 ? `   (${calls} calls in the last 7 days)` : "";
      if (ofName.length === 1 && first?.field === "")
        lines.push(`  ${sign} ${name} ${changeLines(first)}${note}`);
      else lines.push(`  ${sign} ${name}${note}`, ...ofName.map((change) => `      ${changeLines(change)}`));
    }
  }
  return lines;
}

export function guardText({ guards }: ConfigAnswer, acceptsGuards: boolean): string[] {
  return guards.map(({ message, blocking }) => {
    const verdict = blocking
      ? "cannot be accepted"
      : acceptsGuards
        ? "accepted"
        : "to be accepted with --accept-guards";
    return `guard: ${message} (${verdict})`;
  });
}

export function problemText({ file, line, path, message }: FileProblem): string {
  const place = line === 0 ? file : `${file}:${line}`;
  return path.length === 0 ? `${place}: ${message}` : `${place}: ${path.join(".")}: ${message}`;
}

/** What a judgement says of the document, as places of the file. */
export function problemsIn(answer: ConfigAnswer, file: string, read: ConfigFile): FileProblem[] {
  return answer.problems
    .map(({ path, code, message }) => ({ file, line: read.lineOf(path), path, code, message }))
    .toSorted((a, b) => a.line - b.line);
}

/** As a name of the environment: words in capitals, joined by underscores. */
function variable(...parts: string[]): string {
  const words = parts
    .join("_")
    .replace(/([a-z\d])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2");
  const name = words
    .replace(/[^A-Za-z\d]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .toUpperCase();
  return `\${${/^\d/.test(name) ? `_${name}` : name}}`;
}

/** The whole file, with comments where something secret stands in the site and not here. */
export function exportText({ document, secrets, unnamed }: Exported): string {
  const header = [
    "Settings of a Weir site: `weir plan FILE` tells what differs, `weir apply FILE` makes it so.",
    "Prices are dollars per million tokens, `call` dollars per call. Names that stand here are exact; with `prune: true` all others go.",
  ];
  return writeYaml(document, (path) => {
    if (path.length === 0) return header;
    if (path.length === 1 && path[0] === "options")
      return secrets.map((key) => `${key}: ${variable(key)}   (set; stays as it is where it is not named)`);
    if (path.length === 1 && path[0] === "channels")
      return unnamed.map(
        (name) => `left out, because several channels are called so: ${JSON.stringify(name)}`,
      );
    return path.length === 2 && path[0] === "channels"
      ? [`key: ${variable("CHANNEL", path[1] ?? "", "KEY")}`]
      : [];
  });
}
