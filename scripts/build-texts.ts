// Which texts a screen needs as it comes up, read out of its built script, and every text of a language as one file.
// Refuses to guess finely: a name made up at run time brings every text below its beginning along.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LANGUAGES } from "../src/shared/enums.ts";
import type { Language } from "../src/shared/enums.ts";
import type { Entry } from "./build.ts";

const PLURAL = /_(zero|one|two|few|many|other)$/;
/** A quoted dotted name, or the beginning of a template that goes on with a value. */
const NAME = /["'`]([a-z]\w*(?:\.\w+)*\.?)(?=["'`]|\$\{)/g;

/** Tells whether a piece of script can ask for a key: by its whole name, or by the beginning of one. */
export function keysIn(code: string): (key: string) => boolean {
  const names = new Set([...code.matchAll(NAME)].map(([, name]) => name ?? ""));
  return (key) => {
    const base = key.replace(PLURAL, "");
    if (names.has(base)) return true;
    for (let end = base.lastIndexOf("."); end > 0; end = base.lastIndexOf(".", end - 1)) {
      const isArea = base.indexOf(".") === end;
      // `area.${name}` means the texts directly in the area; `area.part.${name}`, everything below the part.
      if (names.has(base.slice(0, end + 1)) && (!isArea || base.lastIndexOf(".") === end)) return true;
      // t(`${title}.note`) with a title that stands here.
      if (!isArea && names.has(base.slice(0, end))) return true;
    }
    return false;
  };
}

type Texts = Record<string, string>;

function readTexts(projectDir: string, language: Language): Texts {
  const dir = join(projectDir, "locales", language);
  return Object.fromEntries(
    readdirSync(dir)
      .sort()
      .flatMap((file) => {
        const texts = JSON.parse(readFileSync(join(dir, file), "utf8")) as Texts;
        const area = file.replace(/\.json$/, "");
        return Object.entries(texts).map(([key, text]) => [`${area}.${key}`, text] as const);
      }),
  );
}

/** Gives each entry its keys, and writes the files with all texts of the islands; returns their names by language. */
export function buildTexts(
  projectDir: string,
  outDir: string,
  entries: Record<string, Entry>,
  scripts: readonly string[],
): Record<Language, string> {
  const code = new Map(scripts.map((name) => [name, readFileSync(join(outDir, name), "utf8")]));
  const codeOf = (names: Iterable<string>) => [...names].map((name) => code.get(name) ?? "").join("\n");
  const texts = Object.fromEntries(
    LANGUAGES.map((language) => [language, readTexts(projectDir, language)]),
  ) as Record<Language, Texts>;
  const all = [...new Set(LANGUAGES.flatMap((language) => Object.keys(texts[language])))].sort();
  const { mount } = entries;
  for (const entry of Object.values(entries)) {
    const files = [entry, mount].flatMap((each) => (each ? [each.file, ...each.imports] : []));
    entry.keys = all.filter(keysIn(codeOf(new Set(files))));
  }
  const isNamed = keysIn(codeOf(scripts));
  return Object.fromEntries(
    LANGUAGES.map((language) => {
      const asked = Object.entries(texts[language]).filter(([key]) => isNamed(key));
      const json = JSON.stringify(Object.fromEntries(asked));
      const name = `texts-${language}-${Bun.hash(json).toString(36).slice(0, 8)}.json`;
      writeFileSync(join(outDir, name), json);
      return [language, name];
    }),
  ) as Record<Language, string>;
}
