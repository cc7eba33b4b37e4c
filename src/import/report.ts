// What an import did or would do, as facts: counts by table, findings, openings. Texts are made of it at the edge.
// Refuses to grow with the source: of each finding a few samples are kept, and how often it was met.
import type { SourceEngine } from "./dsn.ts";
import type { Family } from "./family.ts";
import type { FindingCode } from "./findings.ts";

export interface TableCount {
  read: number;
  carried: number;
  rejected: number;
}

export interface Finding {
  code: FindingCode;
  /** Of the source. */
  table: string;
  count: number;
  /** Ids and names, the first few. */
  samples: string[];
}

export interface OpeningSum {
  /** Rows that have one. */
  count: number;
  /** Sum of what counters have beyond their sums; may be negative. */
  usedQuota: number;
  requestCount: number;
}

export interface ImportReport {
  family: Family;
  engine: SourceEngine;
  isDry: boolean;
  tables: Record<string, TableCount>;
  findings: Finding[];
  /** Rows of tables that nothing here has a place for. */
  dropped: Record<string, number>;
  /** By kind: user, token, channel. */
  openings: Record<string, OpeningSum>;
  /** Of this run. */
  seconds: number;
  /** In a dry run: how long the real one will take. */
  expectedSeconds?: number;
}

/** As the database keeps it: a name in a sample would outlive the account that it was of. */
export function withoutNames(report: ImportReport): ImportReport {
  const findings = report.findings.map((each) =>
    each.table === "users"
      ? { ...each, samples: each.samples.map((sample) => sample.replace(/ \(.*\)$/s, "")) }
      : each,
  );
  return { ...report, findings };
}

const MOST_SAMPLES = 20;

/** What an import writes down on its way. */
export interface Notes {
  read(table: string, count?: number): void;
  carried(table: string, count?: number): void;
  /** The row is left out, for this reason. */
  rejected(table: string, code: FindingCode, sample: string | number): void;
  add(table: string, code: FindingCode, sample: string | number): void;
  readonly tables: Record<string, TableCount>;
  readonly findings: Finding[];
}

export interface NotesState {
  tables: Record<string, TableCount>;
  findings: Finding[];
}

/** `before`: what an earlier run had noted when it was stopped. */
export function createNotes(before: NotesState = { tables: {}, findings: [] }): Notes {
  const { tables, findings } = before;
  const tableOf = (table: string): TableCount => (tables[table] ??= { read: 0, carried: 0, rejected: 0 });
  const known = new Map(findings.map((each) => [`${each.table}:${each.code}`, each]));
  function add(table: string, code: FindingCode, sample: string | number): void {
    const id = `${table}:${code}`;
    let finding = known.get(id);
    if (!finding) {
      finding = { code, table, count: 0, samples: [] };
      known.set(id, finding);
      findings.push(finding);
    }
    finding.count++;
    if (finding.samples.length < MOST_SAMPLES) finding.samples.push(String(sample));
  }
  return {
    tables,
    findings,
    add,
    read(table, count = 1) {
      tableOf(table).read += count;
    },
    carried(table, count = 1) {
      tableOf(table).carried += count;
    },
    rejected(table, code, sample) {
      tableOf(table).rejected++;
      add(table, code, sample);
    },
  };
}
