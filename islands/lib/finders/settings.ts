// Options of the site by name, group, explanation (both languages, pinyin) and key, for the palette: each opens at its place.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../api.ts";
import { t } from "../i18n.ts";
import { MOST_FOUND } from "./finder.ts";
import type { Finder } from "./finder.ts";

export const settings: Finder = {
  title: "shell.find.setting",
  role: Role.root,
  async find({ text, once }) {
    const [rows, { findSettings, settingTitle, settingWords }] = await Promise.all([
      once("settings", () => call(api.option.rows.get({ query: {} }))),
      once("words of settings", () => import("../setting-words.ts")),
    ]);
    return findSettings(rows, text)
      .slice(0, MOST_FOUND)
      .map((row) => ({
        id: `find setting ${row.key}`,
        kind: "find",
        title: settingTitle(row),
        note: t("shell.find.setting"),
        words: settingWords(row),
        run: () => location.assign(`/setting?tab=${row.tab}#${encodeURIComponent(row.key)}`),
      }));
  },
};
