// The report of an import as lines that a person can act on: gravest first, each finding with what it is about.
import enTexts from "../../locales/en/import.json" with { type: "json" };
import zhTexts from "../../locales/zh/import.json" with { type: "json" };
import type { Language } from "../shared/enums.ts";
import { FINDINGS } from "./findings.ts";
import type { FindingLevel } from "./findings.ts";
import type { Finding, ImportReport } from "./report.ts";
import type { VerifyReport } from "./verify.ts";

const TEXTS: Record<Language, Readonly<Record<string, string>>> = { zh: zhTexts, en: enTexts };
const LEVELS: readonly FindingLevel[] = ["lost", "off", "changed", "note"];

type Say = (name: string, params?: Readonly<Record<string, string | number>>) => string;

const sayIn =
  (language: Language): Say =>
  (name, params = {}) =>
    (TEXTS[language][name] ?? name).replace(/\{\{(\w+)\}\}/g, (_, hole: string) =>
      String(params[hole] ?? ""),
    );

function findingLines(say: Say, { code, table, count, samples }: Finding): string[] {
  const more = count - samples.length;
  const rest = more > 0 ? `; ${say("report.more", { count: more })}` : "";
  return [`  ${table} (${count}): ${say(`finding.${code}`)}`, `    ${samples.join("; ")}${rest}`];
}

/** A block of lines for each part; the whole of them is the report. */
export function reportLines(report: ImportReport, language: Language): string[] {
  const say = sayIn(language);
  const { tables, findings, dropped, openings, family, engine, seconds } = report;
  const lines = [say("report.source", { family, engine }), ...(report.isDry ? [say("report.dry")] : [])];
  lines.push("", say("report.tables"));
  for (const [table, count] of Object.entries(tables))
    lines.push(`  ${say("report.table", { table, ...count })}`);
  for (const level of LEVELS) {
    const found = findings.filter(({ code }) => FINDINGS[code] === level);
    if (found.length > 0)
      lines.push("", say(`level.${level}`), ...found.flatMap((each) => findingLines(say, each)));
  }
  if (Object.keys(dropped).length > 0) lines.push("", say("report.dropped"));
  for (const [table, count] of Object.entries(dropped))
    lines.push(`  ${say("report.droppedTable", { table, count })}`);
  if (Object.keys(openings).length > 0) lines.push("", say("report.openings"));
  for (const [kind, sum] of Object.entries(openings))
    lines.push(`  ${say("report.opening", { kind, ...sum })}`);
  lines.push("", say("report.seconds", { seconds }));
  if (report.expectedSeconds !== undefined)
    lines.push(say("report.expected", { seconds: report.expectedSeconds }));
  return lines;
}

/** What a verification found, differences first. */
export function verifyLines(report: VerifyReport, language: Language): string[] {
  const say = sayIn(language);
  const { compared, differenceCount, differences, servedOtherwise, repriced, auditDifferences } = report;
  const isClean = differenceCount === 0 && auditDifferences === 0;
  const lines = [say(isClean ? "verify.clean" : "verify.differences", { compared, count: differenceCount })];
  for (const { what, id, source, found } of differences)
    lines.push(`  ${say("verify.difference", { what, id, source, found })}`);
  lines.push(say("verify.audit", { count: auditDifferences }));
  if (servedOtherwise.length > 0)
    lines.push(
      say("verify.served", { count: servedOtherwise.length, ways: servedOtherwise.slice(0, 20).join("; ") }),
    );
  const { rows, same, unknown, models } = repriced;
  lines.push(say("verify.repriced", { rows, same, unknown }));
  for (const model of models) lines.push(`  ${say("verify.model", { ...model })}`);
  return lines;
}
