// What log rows say in the language of whoever reads them; the wire's own field stays as old clients know it.
import enLog from "../../locales/en/log.json" with { type: "json" };
import zhLog from "../../locales/zh/log.json" with { type: "json" };
import type { LogJson } from "../core/logs/list.ts";
import { readInEnglish } from "../core/logs/readings.ts";
import { auditText, isAuditAction } from "../shared/audit-actions.ts";
import type { AuditParams } from "../shared/audit-actions.ts";
import { LogType } from "../shared/enums.ts";
import type { Language } from "../shared/enums.ts";
import { templateOf } from "./messages.ts";

/** The public text of an error by its code, where the row knows everything that the text names. */
function errorText({ content, other, model_name: model }: LogJson, language: Language): string | undefined {
  try {
    const { error_code: code, admin_info: admin } = JSON.parse(other) as {
      error_code?: string;
      admin_info?: { upstream_text?: string; internal?: string };
    };
    const template = code === undefined ? undefined : templateOf(code, language);
    // What the upstream said stands in the content of administrators' rows, in its own words.
    if (template === undefined || admin?.upstream_text || admin?.internal) return undefined;
    const id = /\(request id: [\w-]+\)$/.exec(content)?.[0];
    const text = template.replaceAll("{{model}}", model);
    return text.includes("{{") ? undefined : [text, ...(id === undefined ? [] : [id])].join(" ");
  } catch {
    return undefined;
  }
}

const LINES: Readonly<Record<Language, Readonly<Record<string, string>>>> = { zh: zhLog, en: enLog };

/** The line of the audit trail that the row's `op` stands for. */
function auditLine(other: string, language: Language): string | undefined {
  try {
    const { op } = JSON.parse(other) as { op?: { action?: unknown; params?: AuditParams } };
    if (!isAuditAction(op?.action)) return undefined;
    const lines = LINES[language];
    const template = lines[`op.${op.action}`];
    const word = (name: string, value: string) => lines[`op.word.${name}${value === "" ? "" : `.${value}`}`];
    return template === undefined ? undefined : auditText(template, op.params ?? {}, word);
  } catch {
    return undefined;
  }
}

function readText(row: LogJson, language: Language): string | undefined {
  const byCode = row.type === LogType.error && row.other !== "" ? errorText(row, language) : undefined;
  const byAction = row.other.includes('"op"') ? auditLine(row.other, language) : undefined;
  return byCode ?? byAction ?? (language === "zh" ? undefined : readInEnglish(row.content));
}

/** Rows with `text`, where the reader's language says what `content` says in other words. */
export function inLanguage(rows: readonly LogJson[], language: Language): LogJson[] {
  return rows.map((row) => {
    const text = readText(row, language);
    return text === undefined || text === row.content ? row : { ...row, text };
  });
}
