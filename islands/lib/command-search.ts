// What the palette offers: pages, actions of the frame, and what screens registered; and which of it a search finds.
// Refuses to match by one language only: titles are searched in both, Chinese also by pinyin initials.
import { theme } from "./boot.ts";
import { registered } from "./commands.ts";
import type { Command } from "./commands.ts";
import { visiblePages } from "./go-to.ts";
import { hasText, language, t, translatorOf } from "./i18n.ts";
import { setLanguage, setTheme } from "./shell.ts";
import { OWN_KEYS, readJson, writeItem } from "./storage.ts";

/** The title in the language that is not shown, and pinyin initials where the dictionary has them. */
function otherWords(key: string): string {
  const other = translatorOf(language.peek() === "zh" ? "en" : "zh")(key);
  const initials = hasText(`${key}.initials`) ? t(`${key}.initials`) : "";
  return `${other === key ? "" : other} ${initials}`;
}

export function allCommands(): Command[] {
  const pages: Command[] = visiblePages().map((entry) => ({
    id: `go ${entry.id}`,
    kind: "go",
    title: t(entry.title),
    words: `${otherWords(entry.title)} ${entry.id} ${entry.href}`,
    ...(entry.key === undefined ? {} : { keys: `g ${entry.key}` }),
    run: () => location.assign(entry.href),
  }));
  const isDark = theme.peek() === "dark";
  const frame: Command[] = [
    {
      id: "do theme",
      kind: "do",
      title: t(isDark ? "shell.do.light" : "shell.do.dark"),
      words: "theme dark light ztzt",
      run: () => setTheme(isDark ? "light" : "dark"),
    },
    {
      id: "do language",
      kind: "do",
      title: t("shell.do.language"),
      words: "language english chinese 中文 英文 yy",
      run: () => void setLanguage(language.peek() === "zh" ? "en" : "zh"),
    },
  ];
  return [...registered.values(), ...pages, ...frame];
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
