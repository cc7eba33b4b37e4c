// The console's own reader of texts says what i18next would: every text of both languages, in every plural form.
import { expect, test } from "bun:test";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInstance } from "i18next";
import { addTexts, hasText, language, setLanguage, translatorOf } from "../../islands/lib/i18n.ts";
import { LANGUAGES } from "../../src/shared/enums.ts";
import type { Language } from "../../src/shared/enums.ts";

function dictionary(of: Language): Record<string, string> {
  const dir = join(import.meta.dir, "../../locales", of);
  return Object.fromEntries(
    readdirSync(dir).flatMap((file) =>
      Object.entries(JSON.parse(readFileSync(join(dir, file), "utf8")) as Record<string, string>).map(
        ([key, text]) => [`${file.replace(/\.json$/, "")}.${key}`, text],
      ),
    ),
  );
}

/** Only Chinese has it: English falls back. */
const ONLY_CHINESE = { "sample.chinese": "只有中文：{{name}}", "sample.rows_other": "{{count}} 行" };

const texts = { zh: { ...dictionary("zh"), ...ONLY_CHINESE }, en: dictionary("en") };
const oracle = createInstance();
await oracle.init({
  lng: "zh",
  fallbackLng: "zh",
  initAsync: false,
  keySeparator: false,
  nsSeparator: false,
  interpolation: { escapeValue: false },
  resources: { zh: { translation: texts.zh }, en: { translation: texts.en } },
});
for (const each of LANGUAGES) addTexts(each, texts[each]);

test.each([...LANGUAGES])("every text of %s, filled in and in each plural form, is i18next's", (of) => {
  const names = new Set(
    Object.values(texts[of]).flatMap((text) =>
      [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name ?? ""),
    ),
  );
  // Values that look like the format itself, and like replacement patterns, stay as they are.
  const values = Object.fromEntries([...names].map((name) => [name, `$& {{other}} <b>${name}</b>`]));
  const ours = translatorOf(of);
  const theirs = oracle.getFixedT(of) as unknown as typeof ours;
  const keys = [...new Set([...Object.keys(texts.zh), ...Object.keys(texts.en)])];
  const bases = keys.map((key) => key.replace(/_(?:zero|one|other)$/, ""));
  expect(keys.length).toBeGreaterThan(1000);
  const given = [undefined, {}, ...[0, 1, 2, 1.5, 21].map((count) => ({ ...values, count }))];
  const asked = [...new Set([...keys, ...bases, "sample.nowhere"])];
  for (const params of given) {
    expect(asked.map((key) => [key, ours(key, params)])).toEqual(
      asked.map((key) => [key, theirs(key, params)]),
    );
  }
});

test("a text is there in the language of the page or in Chinese, else it is not", () => {
  const before = language.peek();
  setLanguage("en");
  expect([hasText("common.save"), hasText("sample.chinese"), hasText("sample.nowhere")]).toEqual([
    true,
    true,
    false,
  ]);
  expect(translatorOf("en")("sample.chinese", { name: "x" })).toBe("只有中文：x");
  setLanguage(before);
});
