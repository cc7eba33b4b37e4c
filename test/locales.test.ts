// Two languages are equal: the same files, keys and placeholders; no Chinese in the English texts, no empty text.
// Also: every key that code names exists.
import { describe, expect, test } from "bun:test";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { optionRows } from "../src/core/options/definitions.ts";

const ROOT = join(import.meta.dir, "..");
const LOCALES = join(ROOT, "locales");
/** Han, kana, Chinese punctuation and full-width forms; the full-width dollar sign of log texts is data. */
const CJK = /[\u2e80-\u2eff\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff03\uff05-\uff60]/;
const PLURAL = /_(zero|one|two|few|many|other)$/;

type Texts = Record<string, string>;

const files = (language: string) => readdirSync(join(LOCALES, language)).toSorted();
const textsOf = (language: string, file: string) =>
  JSON.parse(readFileSync(join(LOCALES, language, file), "utf8")) as Texts;
/** Chinese has one form where English has two. */
const baseKeys = (texts: Texts) =>
  [...new Set(Object.keys(texts).map((key) => key.replace(PLURAL, "")))].toSorted();
/** Each name once: some Chinese texts of the specification say the same in both languages. */
const placeholders = (text: string) =>
  [...new Set([...text.matchAll(/\{\{\s*(\w+)[^}]*\}\}/g)].map((match) => match[1] ?? ""))].toSorted();

test("both languages have the same files", () => {
  expect(files("en")).toEqual(files("zh"));
  expect(files("zh")).toContain("common.json");
});

describe.each(files("zh"))("%s", (file) => {
  const zh = textsOf("zh", file);
  const en = textsOf("en", file);

  test("has the same keys in both languages", () => {
    expect(baseKeys(en)).toEqual(baseKeys(zh));
  });

  test("has only texts, none of them empty, flat", () => {
    const wrong = [...Object.entries(zh), ...Object.entries(en)].filter(
      ([, text]) => typeof text !== "string" || text.trim() === "",
    );
    expect(wrong).toEqual([]);
  });

  test("has the same placeholders in both languages", () => {
    const wrong: string[] = [];
    for (const [key, text] of Object.entries(en)) {
      const base = key.replace(PLURAL, "");
      const other = zh[key] ?? zh[`${base}_other`] ?? zh[base] ?? "";
      if (placeholders(text).join() !== placeholders(other).join()) wrong.push(key);
    }
    expect(wrong).toEqual([]);
  });

  test("has no Chinese in English texts", () => {
    expect(Object.entries(en).filter(([, text]) => CJK.test(text))).toEqual([]);
  });

  test("has both English plural forms where it has one", () => {
    const wrong = Object.keys(en)
      // The code of a failure, no count of anything.
      .filter((key) => key !== "oauth_bound_other")
      .filter((key) => key.endsWith("_one") !== key.endsWith("_other") && PLURAL.test(key))
      .filter((key) => !(key.replace(PLURAL, "_one") in en && key.replace(PLURAL, "_other") in en));
    expect(wrong).toEqual([]);
  });
});

test("every key that code names exists in both languages", () => {
  const known = new Set<string>();
  for (const file of files("zh")) {
    const area = file.replace(/\.json$/, "");
    for (const key of baseKeys(textsOf("zh", file))) known.add(`${area}.${key}`);
    for (const key of Object.keys(textsOf("zh", file))) known.add(`${area}.${key}`);
  }
  const named =
    /\b(?:t|translate|announce|hasText)\(\s*"([a-z][\w-]*\.[^"]+)"|\b(?:label|title):\s*"((?:shell|table|form|common)\.[\w.-]+)"/g;
  const missing: string[] = [];
  let seen = 0;
  const sources = ["islands", "views", "src/pages", "src/shared"].flatMap((dir) => [
    ...new Bun.Glob(`${dir}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT }),
  ]);
  for (const file of sources) {
    const code = readFileSync(join(ROOT, file), "utf8").replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, "");
    for (const match of code.matchAll(named)) {
      const key = match[1] ?? match[2] ?? "";
      seen++;
      if (!known.has(key)) missing.push(`${file}: ${key}`);
    }
  }
  expect(missing).toEqual([]);
  expect(seen).toBeGreaterThan(50);
});

test("every value that an option may be chosen to have is called something", () => {
  const known = textsOf("zh", "setting.json");
  const values = optionRows.filter(({ hidden }) => !hidden).flatMap(({ kind }) => kind.values ?? []);
  expect(values).toContain("factor");
  expect(values.filter((value) => !(`choice.${value}` in known))).toEqual([]);
});
