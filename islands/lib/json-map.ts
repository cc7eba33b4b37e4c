// A JSON object as ordered pairs: read with the line and column of what is wrong, duplicates seen, order kept.
// Refuses what JSON.parse refuses; on top of it names that stand twice, which JSON.parse would swallow.

export interface MapEntry {
  key: string;
  /** The value as JSON text: `"gpt-4o"`, `0.5`, `{"a":1}`. */
  json: string;
}

export interface MapProblem {
  code: "syntax" | "notObject" | "duplicate" | "emptyKey" | "notText" | "notNumber";
  /** From 1; of the place in the text. */
  line: number;
  column: number;
  /** The name that is wrong. */
  key?: string;
}

/** What every value of the map has to be. */
export type MapKind = "text" | "number" | "json";

export interface ParsedMap {
  entries: MapEntry[];
  problem: MapProblem | undefined;
}

const SPACE = /[\t\n\r ]/;

function placeOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

class Reader {
  at = 0;
  constructor(readonly text: string) {}

  space(): void {
    while (SPACE.test(this.text[this.at] ?? "")) this.at++;
  }

  is(character: string): boolean {
    this.space();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  /** End of the string that begins here; -1 when it does not end on its line. */
  string(): number {
    for (let end = this.at + 1; end < this.text.length; end++) {
      const character = this.text[end];
      if (character === "\\") end++;
      else if (character === '"') return end + 1;
      else if (character === "\n") return -1;
    }
    return -1;
  }

  /** End of the value that begins here: the next comma or brace outside of brackets and strings. */
  value(): number {
    let depth = 0;
    for (let end = this.at; end < this.text.length; end++) {
      const character = this.text[end] ?? "";
      if (character === '"') {
        const saved = this.at;
        this.at = end;
        const after = this.string();
        this.at = saved;
        if (after < 0) return -1;
        end = after - 1;
      } else if (character === "{" || character === "[") depth++;
      else if (character === "}" || character === "]") {
        if (depth === 0) return end;
        depth--;
      } else if (character === "," && depth === 0) return end;
    }
    return -1;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Where a piece of a text stops being JSON: the first position whose removal of the rest cannot be completed. */
function syntaxAt(text: string, at: number, key?: string): MapProblem {
  return { code: "syntax", ...placeOf(text, at), ...(key === undefined ? {} : { key }) };
}

/** Pairs in their order, up to the first thing that is wrong. An empty text is an empty map. */
export function parseMap(text: string, kind: MapKind = "json"): ParsedMap {
  const entries: MapEntry[] = [];
  if (text.trim() === "") return { entries, problem: undefined };
  const reader = new Reader(text);
  const fail = (problem: MapProblem): ParsedMap => ({ entries, problem });
  if (!reader.is("{")) {
    const code = parses(text) ? "notObject" : "syntax";
    return fail({ code, ...placeOf(text, reader.at) });
  }
  const seen = new Set<string>();
  let later: MapProblem | undefined;
  let isFirst = true;
  for (;;) {
    if (isFirst && reader.is("}")) break;
    isFirst = false;
    reader.space();
    const keyAt = reader.at;
    const keyEnd = text[keyAt] === '"' ? reader.string() : -1;
    const keyText = keyEnd < 0 ? "" : text.slice(keyAt, keyEnd);
    if (keyEnd < 0 || !parses(keyText)) return fail(syntaxAt(text, keyAt));
    const key = JSON.parse(keyText) as string;
    reader.at = keyEnd;
    if (!reader.is(":")) return fail(syntaxAt(text, reader.at, key));
    reader.space();
    const valueAt = reader.at;
    const valueEnd = reader.value();
    const json = valueEnd < 0 ? "" : text.slice(valueAt, valueEnd).trim();
    if (valueEnd < 0 || json === "" || !parses(json)) return fail(syntaxAt(text, valueAt, key));
    entries.push({ key, json });
    const wrong = seen.has(key) ? "duplicate" : key === "" ? "emptyKey" : wrongKind(json, kind);
    // A later error of syntax counts more: without it the text is no JSON at all.
    if (wrong) later ??= { code: wrong, ...placeOf(text, keyAt), key };
    seen.add(key);
    reader.at = valueEnd;
    if (reader.is("}")) break;
    if (!reader.is(",")) return fail(syntaxAt(text, reader.at, key));
  }
  reader.space();
  if (reader.at < text.length) return fail(syntaxAt(text, reader.at));
  return { entries, problem: later };
}

function wrongKind(json: string, kind: MapKind): "notText" | "notNumber" | undefined {
  if (kind === "text" && !json.startsWith('"')) return "notText";
  if (kind === "number" && !/^-?\d/.test(json)) return "notNumber";
  return undefined;
}

/** One pair per line; empty for no pairs, as "nothing set" is stored. */
export function writeMap(entries: readonly MapEntry[]): string {
  if (entries.length === 0) return "";
  const lines = entries.map(({ key, json }) => `  ${JSON.stringify(key)}: ${json}`);
  return `{\n${lines.join(",\n")}\n}`;
}

/** The text as people like to read it; unchanged while it is wrong. */
export function formatMap(text: string): string {
  const { entries, problem } = parseMap(text);
  if (problem && problem.code !== "duplicate" && problem.code !== "emptyKey") return text;
  return writeMap(
    entries.map(({ key, json }) => ({
      key,
      json: JSON.stringify(JSON.parse(json), null, 2).replaceAll("\n", "\n  "),
    })),
  );
}

/** What a cell shows for a value: texts without their quotes. */
export function cellOf(json: string, kind: MapKind): string {
  if (!json.startsWith('"')) return json;
  const text = JSON.parse(json) as string;
  // A text that would read as a number or a list keeps its quotes where both are allowed.
  return kind === "json" && parses(text) ? json : text;
}

/** The value of what was typed into a cell; what is no JSON counts as a text. */
export function jsonOf(cell: string, kind: MapKind): string {
  const text = cell.trim();
  if (kind === "text") return JSON.stringify(cell);
  if (kind === "number")
    return text !== "" && Number.isFinite(Number(text)) ? String(Number(text)) : JSON.stringify(cell);
  return parses(text) ? text : JSON.stringify(cell);
}

/** Rows of two columns as spreadsheets copy them (tabs), or of a pasted JSON object; undefined: plain text. */
export function pastedPairs(text: string): { key: string; json?: string; cell?: string }[] | undefined {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    const { entries, problem } = parseMap(trimmed);
    return problem && entries.length === 0 ? undefined : entries;
  }
  const lines = trimmed.split(/\r?\n/).filter((line) => line !== "");
  if (!lines.some((line) => line.includes("\t"))) return undefined;
  return lines.map((line) => {
    const [key = "", ...rest] = line.split("\t");
    return { key: key.trim(), cell: rest.join("\t").trim() };
  });
}
