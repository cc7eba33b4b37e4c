// Which texts travel with a page: what its script can show at once; everything else comes in one file.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { keysIn } from "../../scripts/build-texts.ts";
import { readManifest } from "../../src/http/assets.ts";
import { textsOf } from "../../src/pages/texts.ts";

describe("texts of a script", () => {
  const isAsked = keysIn(
    'let a=t("log.title"),b=t(`log.type.${x}`),c=t(`topup.${y}`),d=[{title:"shell.nav.logs"}].map(e=>t(`${e.title}.initials`));t("log.rows",{count:1})',
  );

  test("a whole name brings its text, also in its plural forms", () => {
    expect(["log.title", "log.rows_one", "log.rows_other"].map(isAsked)).toEqual([true, true, true]);
  });

  test("a name made at run time brings everything that begins like it", () => {
    expect(["log.type.all", "log.type.deep.er"].map(isAsked)).toEqual([true, true]);
    expect(["topup.title", "shell.nav.logs.initials"].map(isAsked)).toEqual([true, true]);
  });

  test("what nothing asks for stays behind", () => {
    expect(["log.other", "log.typeTitle", "shell.nav.users", "topup.deep.er"].map(isAsked)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});

test("a page carries its screen's texts in its language, and nothing of its closed parts", () => {
  const keys = new Set(["token.title", "common.save", "table.results_one"]);
  expect(textsOf("en", ["token"], keys)).toMatchObject({ "token.title": "API keys" });
  expect(Object.keys(textsOf("en", ["token"], keys)).toSorted()).toEqual([
    "common.save",
    "table.results_one",
    "token.title",
  ]);
  expect(Object.keys(textsOf("zh", ["token"])).length).toBeGreaterThan(100);
});

test("the built file of each language holds every text that any screen's script names", () => {
  const manifest = readManifest();
  for (const language of ["zh", "en"] as const) {
    const file = manifest.texts?.[language] ?? "";
    const texts = JSON.parse(readFileSync(join(import.meta.dir, "../../dist/a", file), "utf8")) as Record<
      string,
      string
    >;
    for (const { keys = [] } of Object.values(manifest.entries)) {
      const own = textsOf(language, ["log", "token", "channel", "personal"], new Set(keys));
      expect(texts).toMatchObject(own);
    }
    expect(texts["token.title"]).toBe(textsOf(language, ["token"])["token.title"]);
    expect(texts["failure.notFound"]).toBeUndefined();
  }
});
