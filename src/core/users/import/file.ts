// A CSV file of accounts as rows: what each asks for, and what is wrong with it by its line.
// Refuses unknown columns by name: a misspelt "gruop" must not look like a file without groups.
import { Failure, refuse } from "../../../shared/failures.ts";
import type { FailureCode } from "../../../shared/failure-codes.ts";
import { readBlock } from "../../../shared/tsv.ts";
import { EXPORTED_HEADS } from "../user-csv.ts";

/** More belong into several files: a run is looked at by somebody. */
const MOST_ROWS = 10_000;
export const MOST_CHARACTERS = 2_000_000;
const MAX_CELL = 1000;

const HEADS = [
  "id",
  "username",
  "email",
  "display_name",
  "password",
  "group",
  "remark",
  "credit_usd",
] as const;
type Head = (typeof HEADS)[number];

/** What a line asks for; empty: nothing of it. */
export interface ImportRow extends Record<Exclude<Head, "id" | "credit_usd">, string> {
  /** As spreadsheets number them: the heads stand in line 1. */
  line: number;
  /** 0: found by its name, or new. */
  id: number;
  /** Quota units to be added, or taken. */
  credit: number;
}

export interface ImportProblem {
  /** 0: the whole file. */
  line: number;
  code: FailureCode;
  params?: Readonly<Record<string, string | number>>;
}

/** Spreadsheets of some countries have semicolons. */
function separatorOf(text: string): "\t" | "," | ";" {
  const end = text.search(/[\r\n]/);
  const head = end < 0 ? text : text.slice(0, end);
  const counts = ([",", ";", "\t"] as const).map((sign) => [head.split(sign).length, sign] as const);
  return counts.reduce((best, each) => (each[0] > best[0] ? each : best))[1];
}

/** Our own export defuses formulas by a quote before them; here it goes again. */
const plain = (cell: string): string => cell.replace(/^'(?=[=+\-@\t\r])/, "").trim();

function headsOf(cells: readonly string[]): (Head | undefined)[] {
  const heads = cells.map((cell) => plain(cell).toLowerCase());
  const known = heads.map((name) => HEADS.find((head) => head === name));
  const unknown = heads.find(
    (name, at) => known[at] === undefined && name !== "" && !EXPORTED_HEADS.includes(name),
  );
  if (unknown !== undefined) throw refuse("import_column_unknown", { column: unknown.slice(0, 40) });
  const twice = known.find((head, at) => head !== undefined && known.indexOf(head) !== at);
  if (twice !== undefined) throw refuse("import_column_twice", { column: twice });
  if (!known.includes("id") && !known.includes("username")) throw refuse("import_column_missing");
  return known;
}

/** Whole units of an amount in dollars; undefined: it is none. */
function creditOf(text: string, perUnit: number): number | undefined {
  const typed = text.replace(/^([+-]?)\$/, "$1").replaceAll(/[,\s](?=\d{3})/g, "");
  if (typed === "") return 0;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)$/.test(typed)) return undefined;
  const units = Math.round(Number(typed) * perUnit);
  return Number.isSafeInteger(units) ? units : undefined;
}

/** Throws Failures where nothing of the file could be read. */
export function readImport(text: string, perUnit: number): { rows: ImportRow[]; problems: ImportProblem[] } {
  if (text.length > MOST_CHARACTERS) throw refuse("import_too_large", { limit: MOST_ROWS });
  const whole = text.replace(/^\uFEFF/, "");
  const [head = [], ...lines] = readBlock(whole, separatorOf(whole));
  if (head.every((cell) => cell.trim() === "")) throw refuse("import_empty");
  const heads = headsOf(head);
  const rows: ImportRow[] = [];
  const problems: ImportProblem[] = [];
  lines.forEach((cells, at) => {
    const line = at + 2;
    const values = new Map<Head, string>();
    heads.forEach((name, column) => {
      if (name !== undefined) values.set(name, plain(cells[column] ?? ""));
    });
    const filled = [...values.values()].filter((value) => value !== "");
    if (filled.length === 0) return;
    const of = (name: Head) => values.get(name) ?? "";
    const credit = creditOf(of("credit_usd"), perUnit);
    const id = of("id") === "" ? 0 : Number(of("id"));
    if (cells.length > heads.length && cells.slice(heads.length).some((cell) => cell.trim() !== ""))
      problems.push({ line, code: "import_cells_many" });
    else if (filled.some((value) => value.length > MAX_CELL))
      problems.push({ line, code: "import_cell_long" });
    else if (credit === undefined)
      problems.push({ line, code: "import_amount", params: { column: "credit_usd" } });
    else if (!Number.isSafeInteger(id) || id < 0) problems.push({ line, code: "import_id" });
    else
      rows.push({
        line,
        id,
        credit,
        username: of("username"),
        email: of("email"),
        display_name: of("display_name"),
        password: of("password"),
        group: of("group"),
        remark: of("remark"),
      });
  });
  if (rows.length === 0 && problems.length === 0) throw refuse("import_empty");
  if (rows.length + problems.length > MOST_ROWS) throw refuse("import_too_large", { limit: MOST_ROWS });
  return { rows, problems };
}

/** A refusal of a rule, as the problem of a line. */
export function problemOf(line: number, error: unknown): ImportProblem {
  if (!(error instanceof Failure)) throw error;
  return { line, code: error.code, ...(error.params ? { params: error.params } : {}) };
}
