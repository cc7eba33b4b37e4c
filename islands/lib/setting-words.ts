// Which options a question finds: by words of their names, groups and explanations in both languages, by pinyin, by key.
// Loaded with the first search or the second tab: it brings the texts of every option in both languages along.
import type { OptionTexts } from "../../src/shared/setting-rows.ts";
import en from "../../locales/en/option.json" with { type: "json" };
import zh from "../../locales/zh/option.json" with { type: "json" };
import { addTexts, language } from "./i18n.ts";
import { pinyinWords } from "./pinyin.ts";

type Texts = Readonly<Record<string, string>>;
const TEXTS: Record<"en" | "zh", Texts> = { en, zh };

interface Named {
  key: string;
  texts?: OptionTexts | undefined;
}

export interface Findable extends Named {
  group: string;
}

const LANGUAGES = ["en", "zh"] as const;

interface Words {
  /** Key and titles, the pinyin of the Chinese one and its initials: what a question may be the beginning of. */
  titles: readonly string[];
  /** Key, names and groups. */
  names: string;
  all: string;
}

const known = new Map<string, Words>();

/** Gives the page the texts of every option: it came with those of one tab, in one language. */
export function addOptionTexts(): void {
  for (const to of ["en", "zh"] as const) {
    addTexts(
      to,
      Object.fromEntries(Object.entries(TEXTS[to]).map(([name, text]) => [`option.${name}`, text])),
    );
  }
}

const titleIn = (to: "en" | "zh", { key, texts }: Named): string =>
  texts?.title[to] ?? TEXTS[to][`title.${key}`] ?? "";

/** Everything that an option can be found by, in small letters. */
function wordsOf({ key, group, texts }: Findable): Words {
  const made = known.get(key);
  if (made) return made;
  const groups = LANGUAGES.map((to) => TEXTS[to][`group.${group}`] ?? "");
  const [english = "", title = ""] = LANGUAGES.map((to) => titleIn(to, { key, texts }));
  const help = LANGUAGES.map((to) => texts?.help[to] ?? TEXTS[to][`help.${key}`] ?? "").join(" ");
  const chinese = `${title} ${groups[1]}`;
  // "RetryTimes" is found by "retry times" as well.
  const spelled = key.replaceAll(/(?<=[a-z])(?=[A-Z])|[._]/g, " ");
  const names = `${key} ${spelled} ${english} ${title} ${groups.join(" ")} ${pinyinWords(chinese)}`;
  const words = {
    titles: [key, english, title, ...pinyinWords(title).split(" ")].map((each) => each.toLowerCase()),
    names: names.toLowerCase(),
    all: `${names} ${help}`.toLowerCase(),
  };
  known.set(key, words);
  return words;
}

/** Its name in the language of the page, wherever the page is. */
export function settingTitle(option: Findable): string {
  return titleIn(language.peek(), option) || option.key;
}

/** What a command of it is matched by. */
export function settingWords(option: Findable): string {
  return wordsOf(option).all;
}

/** Those in which every word of the question occurs; those that begin like it first, those of which only the explanation says it last. */
export function findSettings<Option extends Findable>(
  options: readonly Option[],
  question: string,
): Option[] {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const first = words[0] ?? "";
  const scored = options.flatMap((option) => {
    const { titles, names, all } = wordsOf(option);
    if (!words.every((word) => all.includes(word))) return [];
    if (!words.every((word) => names.includes(word))) return [{ option, score: 3 }];
    const isBeginning = titles.some((title) => title !== "" && title.startsWith(first));
    return [{ option, score: isBeginning ? 0 : titles.some((title) => title.includes(first)) ? 1 : 2 }];
  });
  return scored.toSorted((a, b) => a.score - b.score).map(({ option }) => option);
}
