// Local storage and the cookies that mirror it for the server: every key of the specification, in one place.
// Refuses to throw: private windows and full disks only lose the memory.
import type { Boot } from "./boot.ts";

const YEAR_SECONDS = 365 * 24 * 3600;

/** Keys of the specification; their names are fixed. */
export const KEYS = {
  user: "user",
  status: "status",
  theme: "theme-mode",
  language: "i18nextLng",
  sidebar: "default_collapse_sidebar",
  footer: "footer_html",
  chats: "chats",
  pageSize: "page-size",
  channelColumns: "channels-table-columns",
  logColumns: "logs-table-columns",
  idSort: "id-sort",
  tagMode: "enable-tag-mode",
  batchDelete: "enable-batch-delete",
  modelsExpanded: "modelsExpanded",
  affiliate: "aff",
} as const;

/** Keys of our own. */
export const OWN_KEYS = {
  shortcuts: "shortcuts",
  recentCommands: "recent-commands",
  views: "saved-views",
  density: "table-density",
} as const;

export function readItem(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

export function writeItem(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Full or forbidden: the choice lasts until the page is left.
  }
}

export function removeItem(key: string): void {
  try {
    localStorage.removeItem(key);
  } catch {
    // As above.
  }
}

/** A JSON value that passes the check, or the fallback: what is stored may be old, foreign or broken. */
export function readJson<T>(key: string, isValid: (value: unknown) => value is T, fallback: T): T {
  const text = readItem(key);
  if (text === undefined) return fallback;
  try {
    const value: unknown = JSON.parse(text);
    return isValid(value) ? value : fallback;
  } catch {
    return fallback;
  }
}

/** Remembered for the server too: theme, language, sidebar and time zone decide the first paint. */
export function writeCookie(name: string, value: string): void {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${YEAR_SECONDS}; SameSite=Lax${secure}`;
}

/** Writes the keys that chat links, extensions and the specification read; the values are the server's. */
export function mirrorBoot({ status, user, language }: Boot): void {
  const flags = [
    "mj_notify_enabled",
    "enable_data_export",
    "enable_drawing",
    "enable_task",
    "quota_per_unit",
    "display_in_currency",
    "data_export_default_time",
    "system_name",
    "logo",
    "docs_link",
  ] as const;
  for (const name of flags) writeItem(name, String(status[name] ?? ""));
  writeItem(KEYS.status, JSON.stringify(status));
  writeItem(KEYS.footer, status.footer_html ?? "");
  writeItem(KEYS.chats, JSON.stringify(status.chats ?? []));
  writeItem(KEYS.language, language);
  if (user) writeItem(KEYS.user, JSON.stringify(user));
  else removeItem(KEYS.user);
}
