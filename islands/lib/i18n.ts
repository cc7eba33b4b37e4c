// The console's texts over i18next: t("area.key", {name}); switching the language re-renders whoever used useT.
// Refuses to show an empty text: an unknown key shows itself, a missing translation falls back to Chinese.
import { signal } from "@preact/signals-react";
import { useSignals } from "@preact/signals-react/runtime";
import { createInstance } from "i18next";
import type { Language } from "../../src/shared/enums.ts";

type Params = Record<string, string | number>;
export type Translate = (key: string, params?: Params) => string;

/** Changes only through setLanguage. */
export const language = signal<Language>("zh");

const instance = createInstance();
void instance.init({
  lng: "zh",
  fallbackLng: "zh",
  initAsync: false,
  // Keys are flat: "table.empty.title" stands as it is, colons and dots mean nothing.
  keySeparator: false,
  nsSeparator: false,
  // React escapes; doing it twice would show &amp; to people.
  interpolation: { escapeValue: false },
  resources: { zh: { translation: {} }, en: { translation: {} } },
});

/** Adds texts of a language, "area.key" to text. */
export function addTexts(to: Language, texts: Record<string, string>): void {
  instance.addResources(to, "translation", texts);
}

/** Makes a language the current one; everything that called useT renders again. */
export function setLanguage(to: Language): void {
  language.value = to;
}

const fixed: Partial<Record<Language, Translate>> = {};

/** A translator of one language, whatever the current one is. */
export function translatorOf(to: Language): Translate {
  return (fixed[to] ??= instance.getFixedT(to) as unknown as Translate);
}

/** Text in the current language; outside of rendering (events, toasts) or below a component that called useT. */
export const t: Translate = (key, params) => translatorOf(language.value)(key, params);

/** True when the current language (or Chinese) has the key. */
export function hasText(key: string): boolean {
  return instance.exists(key, { lng: language.peek() });
}

/** `t`, and a subscription of the component to the language. */
export function useT(): Translate {
  useSignals();
  void language.value;
  return t;
}
