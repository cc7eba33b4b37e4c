// The console's texts: t("area.key", {name}); switching the language re-renders whoever used useT.
// Refuses to show an empty text: an unknown key shows itself, a missing translation falls back to Chinese.
import { signal } from "@preact/signals-react";
import { useSignals } from "@preact/signals-react/runtime";
import type { Language } from "../../src/shared/enums.ts";

type Params = Record<string, string | number>;
export type Translate = (key: string, params?: Params) => string;

/** Changes only through setLanguage. */
export const language = signal<Language>("zh");

// i18next's format (flat keys, {{name}}, _one and _other by CLDR) without its 15 KB: every page would wait for them.
// test/islands/i18n.test.ts holds both against each other over every text.
const FALLBACK: Language = "zh";
const dictionaries: Record<Language, Map<string, string>> = { zh: new Map(), en: new Map() };
const plurals: Partial<Record<Language, Intl.PluralRules>> = {};

/** Adds texts of a language, "area.key" to text. */
export function addTexts(to: Language, texts: Record<string, string>): void {
  for (const key of Object.keys(texts)) dictionaries[to].set(key, texts[key] ?? "");
}

/** Makes a language the current one; everything that called useT renders again. */
export function setLanguage(to: Language): void {
  language.value = to;
}

/** The text as it is written: in its plural form where a number says which, else as it stands. */
function written(from: Language, key: string, count: unknown): string | undefined {
  const texts = dictionaries[from];
  if (typeof count !== "number") return texts.get(key);
  const form = (plurals[from] ??= new Intl.PluralRules(from)).select(count);
  return (
    (count === 0 ? texts.get(`${key}_zero`) : undefined) ?? texts.get(`${key}_${form}`) ?? texts.get(key)
  );
}

function translate(to: Language, key: string, params: Params | undefined): string {
  const text = written(to, key, params?.count) ?? written(FALLBACK, key, params?.count) ?? key;
  if (!params) return text;
  // React escapes; doing it twice would show &amp; to people. What a value says is never looked through again.
  return text.replace(/\{\{(\w+)\}\}/g, (hole, name: string) =>
    Object.hasOwn(params, name) ? String(params[name] ?? "") : hole,
  );
}

const fixed: Record<Language, Translate> = {
  zh: (key, params) => translate("zh", key, params),
  en: (key, params) => translate("en", key, params),
};

/** A translator of one language, whatever the current one is. */
export function translatorOf(to: Language): Translate {
  return fixed[to];
}

/** Text in the current language; outside of rendering (events, toasts) or below a component that called useT. */
export const t: Translate = (key, params) => translate(language.value, key, params);

/** True when the current language (or Chinese) has the key. */
export function hasText(key: string): boolean {
  return dictionaries[language.peek()].has(key) || dictionaries[FALLBACK].has(key);
}

/** `t`, and a subscription of the component to the language. */
export function useT(): Translate {
  useSignals();
  void language.value;
  return t;
}
