// What log rows say in the language of whoever reads them; the wire's own field stays as old clients know it.
import type { LogJson } from "../core/logs/list.ts";
import { readInEnglish } from "../core/logs/readings.ts";
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

function readText(row: LogJson, language: Language): string | undefined {
  const byCode = row.type === LogType.error && row.other !== "" ? errorText(row, language) : undefined;
  return byCode ?? (language === "zh" ? undefined : readInEnglish(row.content));
}

/** Rows with `text`, where the reader's language says what `content` says in other words. */
export function inLanguage(rows: readonly LogJson[], language: Language): LogJson[] {
  return rows.map((row) => {
    const text = readText(row, language);
    return text === undefined || text === row.content ? row : { ...row, text };
  });
}
