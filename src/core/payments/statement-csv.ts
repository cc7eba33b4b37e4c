// A statement as one table for spreadsheets and bookkeeping: every movement is a line, and the lines add up to the closing balance.
// Refuses texts that a spreadsheet would run as a formula: people choose the names of keys, upstreams those of models.
import { BYTE_ORDER_MARK, csvLine } from "../../shared/csv.ts";
import type { Statement } from "./statement.ts";

const COLUMNS = [
  "line",
  "day",
  "time_utc",
  "kind",
  "reference",
  "model",
  "key",
  "calls",
  "tokens",
  "units",
  "dollars",
  "money",
  "currency",
] as const;

type Line = Partial<Record<(typeof COLUMNS)[number], string | number>>;

/** `units` of all lines but the last add up to those of the last. */
export function statementCsv(statement: Statement): string {
  const { quota_per_unit: perUnit } = statement;
  const amounts = (units: number): Line => ({ units, dollars: Number((units / perUnit).toFixed(6)) });
  const firstDay = `${statement.month}-01`;
  const lines: Line[] = [
    { line: "opening", day: firstDay, ...amounts(statement.opening) },
    ...statement.entries.map((entry) => ({
      line: entry.kind === "refund" ? "refund" : "credit",
      day: entry.day,
      time_utc: new Date(entry.at * 1000).toISOString().replace(/\.\d+Z$/, "Z"),
      kind: entry.kind,
      reference: entry.ref,
      ...amounts(entry.amount),
      money: entry.money,
      currency: entry.currency,
    })),
    ...statement.use.lines.map((use) => ({
      line: "use",
      day: use.day,
      model: use.model,
      key: use.name || String(use.token_id),
      calls: use.count,
      tokens: use.tokens,
      ...amounts(-use.quota),
    })),
    { line: "closing", ...amounts(statement.closing) },
  ];
  const rows = lines.map((line) => COLUMNS.map((name) => line[name] ?? ""));
  return BYTE_ORDER_MARK + [COLUMNS, ...rows].map(csvLine).join("");
}
