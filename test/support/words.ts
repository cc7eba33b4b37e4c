// The console's texts as people read them, for journeys that are walked in both languages.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JourneyLanguage } from "./hands.ts";

const LOCALES = join(import.meta.dir, "../../locales");

export type Words = (key: string, values?: Record<string, string | number>) => string;

/** By "area.name", filled; of a text that counts, the form for many. Throws where there is none. */
export function wordsOf(language: JourneyLanguage): Words {
  const areas = new Map<string, Record<string, string>>();
  return (key, values = {}) => {
    const [area = "", ...rest] = key.split(".");
    const known =
      areas.get(area) ??
      (JSON.parse(readFileSync(join(LOCALES, language, `${area}.json`), "utf8")) as Record<string, string>);
    areas.set(area, known);
    const name = rest.join(".");
    const text = known[name] ?? known[`${name}_other`];
    if (text === undefined) throw new Error(`no text ${key}`);
    return text.replaceAll(/\{\{(\w+)\}\}/g, (_, field: string) => String(values[field] ?? ""));
  };
}
