// The dictionaries for pages: every locale file, read once, as flat "area.key" maps and translators.
// Refuses unknown areas quietly: a page of an area without a file has no texts of its own.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { addTexts, translatorOf } from "../../islands/lib/i18n.ts";
import type { Translate } from "../../views/document.tsx";
import { embeddedPath } from "../http/assets.ts";
import { LANGUAGES } from "../shared/enums.ts";
import type { Language } from "../shared/enums.ts";

/** Texts that the kit and the frame need on every page. */
const KIT_AREAS = ["common", "shell", "table", "form"];

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
      addTexts(language, flat);
    }
  }
  loaded = dictionaries;
  return dictionaries;
}

/** Everything the island may say, in one language: small enough to travel with the page. */
export function textsOf(language: Language, areas: readonly string[] = []): Record<string, string> {
  const dictionaries = load()[language];
  return Object.assign({}, ...[...KIT_AREAS, ...areas].map((area) => dictionaries[area] ?? {})) as Record<
    string,
    string
  >;
}

/** Translator for the server's own markup. */
export function translator(language: Language): Translate {
  load();
  return translatorOf(language);
}
