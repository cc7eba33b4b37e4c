// What every step of an import works with.
import type { Sealer } from "../core/kit/seal.ts";
import type { Family } from "./family.ts";
import type { Notes, OpeningSum } from "./report.ts";
import type { SourceDatabase } from "./source.ts";
import type { Sums, Target } from "./target.ts";

/** What the operator asked for besides the source. */
export interface ImportSettings {
  /** Nothing is written. */
  isDry: boolean;
  /** Only the log, while the old program runs; or all that is left. */
  part: "all" | "logs" | "rest";
  /** Calls and errors that are older become sums; 0: none do. */
  logDays: number;
  /** Units of each period of a plan that had no limit; undefined: such plans come switched off. */
  unlimitedPlanQuota: number | undefined;
  /** The old program's answer of `GET /api/option/`, by key: maps in force that its table lacks. */
  optionTexts: ReadonlyMap<string, string> | undefined;
}

export interface Progress {
  /** What is being read, a table of the source. */
  step: string;
  /** Rows so far, and of all tables. */
  done: number;
  total: number;
  /** Seconds; undefined while nobody can tell. */
  leftSeconds: number | undefined;
}

export interface ImportContext {
  source: SourceDatabase;
  family: Family;
  target: Target;
  notes: Notes;
  seal: Sealer;
  /** Unix seconds of the first run's beginning. */
  now: number;
  settings: ImportSettings;
  /** By kind, as the report has them. */
  openingSums: Record<string, OpeningSum>;
  /** So many more rows are done. */
  advance: (step: string, rows: number) => void;
}

/** Once the log is there. */
export interface TablesContext extends ImportContext {
  sums: Sums;
}
