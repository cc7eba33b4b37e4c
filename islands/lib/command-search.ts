// What the palette offers: pages, new things, actions of the frame, what screens registered, and rows that finders bring;
// and which of it a search finds.
// Refuses to match by one language only: titles are searched in both, Chinese also by pinyin and its initials.
import en from "../../locales/en/shell.json" with { type: "json" };
import zh from "../../locales/zh/shell.json" with { type: "json" };
import { Role } from "../../src/shared/enums.ts";
import { isAbort } from "./api.ts";
import { theme, user } from "./boot.ts";
import { registered } from "./commands.ts";
import type { Command } from "./commands.ts";
import type { Finder, Question } from "./finders/finder.ts";
import { FINDERS } from "./finders/table.ts";
import { visiblePages } from "./go-to.ts";
import { language, t } from "./i18n.ts";
import { pinyinWords } from "./pinyin.ts";
import { setLanguage, setTheme, signOut } from "./shell.ts";
import { OWN_KEYS, readJson, writeItem } from "./storage.ts";

/** A title of the frame in both languages, with the pinyin of the Chinese one: a page has the texts of its own only. */
function wordsOf(key: string): string {
  const name = key.replace(/^shell\./, "");
  const chinese = (zh as Record<string, string>)[name] ?? "";
  const english = (en as Record<string, string>)[name] ?? "";
  return `${english} ${chinese} ${pinyinWords(chinese)}`;
}

/** What can be made from anywhere. A screen that offers the same while it is shown has the same id. */
const NEW_THINGS = [
  { id: "do token new", title: "shell.new.token", role: Role.user, href: "/token?new=1" },
  { id: "do channel new", title: "shell.new.channel", role: Role.admin, href: "/channel?new=1" },
  { id: "do user new", title: "shell.new.user", role: Role.admin, href: "/user?new=1" },
  { id: "do redemption new", title: "shell.new.redemption", role: Role.admin, href: "/redemption?new=1" },
] as const;

export function allCommands(): Command[] {
  const role = user.peek()?.role ?? Role.guest;
  const pages: Command[] = visiblePages().map((entry) => ({
    id: `go ${entry.id}`,
    kind: "go",
    title: t(entry.title),
    words: `${wordsOf(entry.title)} ${entry.id} ${entry.href}`,
    ...(entry.key === undefined ? {} : { keys: `g ${entry.key}` }),
    run: () => location.assign(entry.href),
  }));
  // A page of everybody's, and therefore none of the console's navigation.
  pages.push({
    id: "go pricing",
    kind: "go",
    title: t("shell.top.pricing"),
    words: `${wordsOf("shell.top.pricing")} pricing prices`,
    run: () => location.assign("/pricing"),
  });
  const makes: Command[] = NEW_THINGS.filter((each) => role >= each.role).map(({ id, title, href }) => ({
    id,
    kind: "do",
    title: t(title),
    words: wordsOf(title),
    run: () => location.assign(href),
  }));
  const isDark = theme.peek() === "dark";
  const themeTitle = isDark ? "shell.do.light" : "shell.do.dark";
  const frame: Command[] = [
    {
      id: "do theme",
      kind: "do",
      title: t(themeTitle),
      words: `theme ${wordsOf(themeTitle)}`,
      run: () => setTheme(isDark ? "light" : "dark"),
    },
    {
      id: "do language",
      kind: "do",
      title: t("shell.do.language"),
      words: `language chinese english 中文 英文 ${wordsOf("shell.language")}`,
      run: () => void setLanguage(language.peek() === "zh" ? "en" : "zh"),
    },
    {
      id: "do sign out",
      kind: "do",
      title: t("shell.signOut"),
      words: `logout sign out ${wordsOf("shell.signOut")}`,
      run: () => void signOut(),
    },
  ];
  const own = [...registered.values()];
  const offered = new Set(own.map(({ id }) => id));
  return [...own, ...pages, ...makes.filter(({ id }) => !offered.has(id)), ...frame];
}

/** Every word of the search must occur; titles that begin with it come first. */
export function matchCommands(commands: readonly Command[], search: string): Command[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return orderByRecent(commands);
  const scored = commands.flatMap((command) => {
    const title = command.title.toLowerCase();
    const all = `${title} ${(command.words ?? "").toLowerCase()}`;
    if (!words.every((word) => all.includes(word))) return [];
    const first = words[0] ?? "";
    return [{ command, score: title.startsWith(first) ? 0 : title.includes(first) ? 1 : 2 }];
  });
  return scored.sort((a, b) => a.score - b.score).map(({ command }) => command);
}

/** "channel 42" and "qd 42" ask the finder of channels for 42; anything else is asked of every finder. */
function addressed(text: string, finders: readonly Finder[]): { finders: readonly Finder[]; text: string } {
  const [first = "", rest = ""] = text.split(/\s+(.*)/s);
  const named = finders.filter(({ title }) => wordsOf(title).toLowerCase().split(/\s+/).includes(first));
  return rest !== "" && named.length > 0 ? { finders: named, text: rest } : { finders, text };
}

export interface Found {
  commands: readonly Command[];
  /** Some area could not be searched. */
  isCut: boolean;
}

/** Names are shorter; the lists refuse what is much longer. */
const LONGEST_QUESTION = 200;

/** A single letter would find half of everything; a digit may be an id, a Han character a name. */
export function isWorthAsking(search: string): boolean {
  if (search.length > LONGEST_QUESTION) return false;
  return search.trim().length > 1 || /[^a-z\s]/i.test(search);
}

/** Rows of every area that the role may search. Throws only when the question was given up. */
export async function findRows(question: Question, all: readonly Finder[] = FINDERS): Promise<Found> {
  const allowed = all.filter(({ role }) => question.role >= role);
  const { finders, text } = addressed(question.text, allowed);
  const answers = await Promise.allSettled(finders.map((finder) => finder.find({ ...question, text })));
  question.signal.throwIfAborted();
  const failures = answers.flatMap((answer) =>
    answer.status === "rejected" ? [answer.reason as unknown] : [],
  );
  return {
    commands: answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : [])),
    isCut: failures.some((failure) => !isAbort(failure)),
  };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function orderByRecent(commands: readonly Command[]): Command[] {
  const recent = readJson(OWN_KEYS.recentCommands, isTextList, []);
  const place = (id: string) => (recent.includes(id) ? recent.indexOf(id) : recent.length);
  return [...commands].sort((a, b) => place(a.id) - place(b.id));
}

export function rememberCommand(id: string): void {
  const recent = readJson(OWN_KEYS.recentCommands, isTextList, []).filter((each) => each !== id);
  writeItem(OWN_KEYS.recentCommands, JSON.stringify([id, ...recent].slice(0, 8)));
}
