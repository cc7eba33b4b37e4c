// One's own API keys by name (Han also by pinyin), for the palette.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../api.ts";
import { t } from "../i18n.ts";
import { pinyinWords } from "../pinyin.ts";
import type { TokenRow } from "../wire.ts";
import { namedRows } from "./finder.ts";
import type { Finder } from "./finder.ts";

export const tokens: Finder = {
  title: "shell.find.token",
  role: Role.user,
  async find(question) {
    const rows = await namedRows<TokenRow>(question, {
      area: "tokens",
      name: (row) => row.name,
      load: (keyword, size, signal) =>
        call(api.token.search.get({ query: { keyword, page_size: size }, fetch: signal ? { signal } : {} })),
    });
    return rows.map((row) => ({
      id: `find token ${row.id}`,
      kind: "find",
      title: row.name,
      note: t("shell.find.token"),
      words: pinyinWords(row.name),
      // The list opens a key that is among its rows: the name narrows it to that one.
      run: () => location.assign(`/token?keyword=${encodeURIComponent(row.name)}&edit=${row.id}`),
    }));
  },
};
