// The texts of failures and of server sentences in both languages, and the choice of the language of a request.
// An unknown code falls back to the code itself, so that no answer is ever empty.
import enFailures from "../../locales/en/failure.json" with { type: "json" };
import zhFailures from "../../locales/zh/failure.json" with { type: "json" };
import type { OptionStore } from "../core/options/store.ts";
import type { Language } from "../shared/enums.ts";
import type { Failure, FailureParams } from "../shared/failures.ts";

const DICTIONARIES: Record<Language, Record<string, string>> = { zh: zhFailures, en: enFailures };

type Options = Pick<OptionStore, "get">;

/** What a person chose in the console. */
function chosenLanguage(request: Request): Language | undefined {
  const cookie = /(?:^|;\s*)i18nextLng=(zh|en)/.exec(request.headers.get("cookie") ?? "");
  return cookie ? (cookie[1] as Language) : undefined;
}

function acceptedLanguage(request: Request): Language | undefined {
  for (const part of (request.headers.get("accept-language") ?? "").split(",")) {
    const tag = part.trim().toLowerCase();
    if (tag.startsWith("zh")) return "zh";
    if (tag.startsWith("en")) return "en";
  }
  return undefined;
}

/** Cookie first, then the browser's preference; undefined where neither names a language of ours. */
export function preferredLanguage(request: Request): Language | undefined {
  return chosenLanguage(request) ?? acceptedLanguage(request);
}

/** The language of a page or a console call: what its visitor prefers, else the site's. */
export function languageOf(request: Request, options: Options): Language {
  return preferredLanguage(request) ?? options.get("site.language");
}

/**
 * The language in which whoever calls the gateway reads its own sentences: what the operator fixed for programs, else what
 * they ask for, and most ask for none. Only the playground has a cookie: there a person reads.
 */
export function relayLanguageOf(request: Request, options: Options): Language {
  const chosen = chosenLanguage(request);
  if (chosen) return chosen;
  const fixed = options.get("relay.language");
  return fixed === "auto" ? (acceptedLanguage(request) ?? options.get("site.language")) : fixed;
}

/** The sentence for a code as the dictionary has it; undefined for codes that it does not know. */
export function templateOf(code: string, language: Language): string | undefined {
  return Object.hasOwn(DICTIONARIES[language], code) ? DICTIONARIES[language][code] : undefined;
}

/** The sentence for a code with its placeholders filled in. */
export function messageText(code: string, language: Language, params: FailureParams = {}): string {
  const template = DICTIONARIES[language][code] ?? DICTIONARIES.zh[code] ?? code;
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(params[name] ?? ""));
}

/** The public text of a failure. */
export function failureText(failure: Failure, language: Language): string {
  const { code, variant, params } = failure;
  const key = variant === undefined ? code : `${code}.${variant}`;
  return failure.text ?? messageText(Object.hasOwn(DICTIONARIES.zh, key) ? key : code, language, params);
}

/** The message inside a provider's error object; undefined where the text is none. */
function providerWords(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } | string | null };
    const message = typeof error === "object" ? error?.message : error;
    return typeof message === "string" && message !== "" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** What an administrator reads of a failure: the provider's own words, else our text with the cause behind it. */
export function adminFailureText(failure: Failure, language: Language): string {
  const text = failureText(failure, language);
  const { internal, upstreamText } = failure;
  if (upstreamText) return upstreamText;
  if (internal === undefined || internal === "" || text.includes(internal)) return text;
  return providerWords(internal) ?? `${text.replace(/[.。]$/, "")}: ${internal}`;
}
