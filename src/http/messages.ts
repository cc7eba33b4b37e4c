// The texts of failures and of server sentences in both languages, and the choice of the language of a request.
// An unknown code falls back to the code itself, so that no answer is ever empty.
import enFailures from "../../locales/en/failure.json" with { type: "json" };
import zhFailures from "../../locales/zh/failure.json" with { type: "json" };
import type { Language } from "../shared/enums.ts";
import type { Failure, FailureParams } from "../shared/failures.ts";

const DICTIONARIES: Record<Language, Record<string, string>> = { zh: zhFailures, en: enFailures };

/** Cookie first, then the browser's preference, then Chinese. */
export function languageOf(request: Request): Language {
  const cookie = /(?:^|;\s*)i18nextLng=(zh|en)/.exec(request.headers.get("cookie") ?? "");
  if (cookie) return cookie[1] as Language;
  for (const part of (request.headers.get("accept-language") ?? "").split(",")) {
    const tag = part.trim().toLowerCase();
    if (tag.startsWith("zh")) return "zh";
    if (tag.startsWith("en")) return "en";
  }
  return "zh";
}

/** The sentence for a code with its placeholders filled in. */
export function messageText(code: string, language: Language, params: FailureParams = {}): string {
  const template = DICTIONARIES[language][code] ?? DICTIONARIES.zh[code] ?? code;
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(params[name] ?? ""));
}

/** The public text of a failure. */
export function failureText(failure: Failure, language: Language): string {
  return failure.text ?? messageText(failure.code, language, failure.params);
}
