// Every kind of letter, in both languages: plain text and HTML of the same words under the site's name and logo, with nothing
// that a name, a link or an account's label could smuggle into the markup. A kind that is not in the table fails.
import { describe, expect, test } from "bun:test";
import { channelDisabledNotice, lowQuotaNotice, testNotice } from "../../../src/core/users/notice-texts.ts";
import { letterOf, noticeLetter } from "../../../src/core/users/letter-form.ts";
import * as texts from "../../../src/core/users/letter-texts.ts";
import type { LetterWords } from "../../../src/core/users/letter-form.ts";
import type { Letter } from "../../../src/net/mail.ts";
import type { Language } from "../../../src/shared/enums.ts";
import { LANGUAGES } from "../../../src/shared/enums.ts";

const SITE = 'Weir <b>&</b> "Co"';
const URL_HERE = "https://gate.example/x?a=1&b=2";
const OPTIONS: Record<string, string> = {
  SystemName: SITE,
  Logo: "/logo.png",
  ServerAddress: "https://gate.example/",
};
const deps = { options: { get: (key: string) => OPTIONS[key] ?? "" } } as unknown as Parameters<
  typeof letterOf
>[0];
const CHANGES = [
  "totp_added",
  "totp_removed",
  "passkey_added",
  "passkey_removed",
  "backup_renewed",
  "factors_reset",
];
const bound = (isBound: boolean) => ({ provider: "GitHub", account: "<i>ada</i>", isBound, url: URL_HERE });

/** By the function that has the words. */
const WORDS: Readonly<Record<keyof typeof texts, (language: Language) => LetterWords[]>> = {
  codeWords: (language) => [texts.codeWords(language, SITE, "123456")],
  alreadyWords: (language) => [texts.alreadyWords(language, SITE, { login: URL_HERE, reset: URL_HERE })],
  resetWords: (language) => [texts.resetWords(language, SITE, URL_HERE)],
  passwordWasResetWords: (language) => [texts.passwordWasResetWords(language, SITE, URL_HERE)],
  passwordChangedWords: (language) => [texts.passwordChangedWords(language, SITE, URL_HERE)],
  factorWords: (language) => CHANGES.map((change) => texts.factorWords(language, SITE, change, URL_HERE)),
  identityWords: (language) => [true, false].map((is) => texts.identityWords(language, SITE, bound(is))),
  emailChangedWords: (language) => [
    texts.emailChangedWords(language, SITE, { masked: "a***@mail.example", url: URL_HERE }),
  ],
  testWords: (language) => [texts.testWords(language, SITE)],
};

/** What leaves as a notice, by mail too. */
const noticesIn = (language: Language) => {
  const { title, content, type } = channelDisabledNotice({ id: 1, name: "<i>one</i>" }, "channel", {
    zh: "余额不足",
    en: "No credit",
  });
  return [
    lowQuotaNotice(language, "$1.00", "https://gate.example"),
    testNotice(language, SITE),
    { type, title: title[language], content: content[language] },
  ];
};

const CHINESE = /\p{Script=Han}/u;

describe.each(LANGUAGES)("in %s", (language) => {
  const letters: [string, Letter][] = [
    ...Object.entries(WORDS).flatMap(([name, words]) =>
      words(language).map((each): [string, Letter] => [name, letterOf(deps, "a@b.example", language, each)]),
    ),
    ...noticesIn(language).map((notice): [string, Letter] => [
      notice.type,
      noticeLetter(deps, "a@b.example", language, notice),
    ]),
  ];

  test.each(letters)(
    "%s has name, logo, both forms, and no markup of others",
    (_, { subject, text, html = "" }) => {
      expect(subject.length).toBeGreaterThan(3);
      expect(text).toEndWith(`\n\n${SITE}\n`);
      expect(html).toContain(`<html lang="${language}">`);
      expect(html).toContain('<img src="https://gate.example/logo.png"');
      expect(html).toContain("Weir &lt;b&gt;&amp;&lt;/b&gt; &quot;Co&quot;");
      expect(html).not.toMatch(/<b>|<i>/);
      // The same words: each paragraph of the text stands in the HTML.
      for (const line of text.split("\n").filter((each) => each !== ""))
        expect(html).toContain(Bun.escapeHTML(line));
      expect(CHINESE.test(subject + text)).toBe(language === "zh");
    },
  );

  test("no two kinds say the same", () => {
    expect(new Set(letters.map(([, { text }]) => text)).size).toBe(letters.length);
  });
});
