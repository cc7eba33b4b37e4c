// The dictionaries for pages: every locale file, read once, as flat "area.key" maps and translators.
// A page of an area without a file has no texts of its own.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInstance } from "i18next";
import { addTexts } from "../../islands/lib/i18n.ts";
import type { Translate } from "../../views/document.tsx";
import { embeddedPath } from "../http/assets.ts";
import { LANGUAGES } from "../shared/enums.ts";
import type { Language } from "../shared/enums.ts";

/** Texts that the kit and the frame need on every page. */
const KIT_AREAS = ["common", "shell", "table", "form"];

// Keys are flat: colons and dots mean nothing. React escapes; doing it twice would show &amp; to people.
const dictionary = createInstance();
void dictionary.init({
  lng: "zh",
  fallbackLng: "zh",
  initAsync: false,
  keySeparator: false,
  nsSeparator: false,
  interpolation: { escapeValue: false },
  resources: { zh: { translation: {} }, en: { translation: {} } },
});
const translators = { zh: dictionary.getFixedT("zh"), en: dictionary.getFixedT("en") };

type Areas = Record<string, Record<string, string>>;
let loaded: Record<Language, Areas> | undefined;

function load(): Record<Language, Areas> {
  if (loaded) return loaded;
  const dictionaries: Record<Language, Areas> = { zh: {}, en: {} };
  for (const language of LANGUAGES) {
    const dir = join(embeddedPath("locales"), language);
    for (const file of readdirSync(dir)) {
      const area = file.replace(/\.json$/, "");
      const texts = JSON.parse(readFileSync(join(dir, file), "utf8")) as Record<string, string>;
      const flat: Record<string, string> = {};
      for (const [key, text] of Object.entries(texts)) flat[`${area}.${key}`] = text;
      dictionaries[language][area] = flat;
      // The islands that are drawn here read as they do in the browser.
      addTexts(language, flat);
      dictionary.addResources(language, "translation", flat);
    }
  }
  loaded = dictionaries;
  return dictionaries;
}

/** A plural form stands for its base. */
const PLURAL = /_(zero|one|two|few|many|other)$/;

/**
 * What the island may say as it comes up, in one language: small enough to travel with the page. `keys` leaves out what
 * only its parts say, which bring all texts along; absent: everything of the areas.
 */
export function textsOf(
  language: Language,
  areas: readonly string[] = [],
  keys?: ReadonlySet<string>,
): Record<string, string> {
  const dictionaries = load()[language];
  return Object.fromEntries(
    [...KIT_AREAS, ...areas].flatMap((area) =>
      Object.entries(dictionaries[area] ?? {}).filter(
        ([key]) => keys === undefined || keys.has(key) || keys.has(key.replace(PLURAL, "")),
      ),
    ),
  );
}

/** Translator for the server's own markup. */
export function translator(language: Language): Translate {
  load();
  return (key, params) => translators[language](key, { ...params });
}
