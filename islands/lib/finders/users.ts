// Users by id, name, display name (Han also by pinyin) and address, for the palette.
// Refuses to open the drawer of somebody whom the asking administrator may not change: the list shows them.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../api.ts";
import { t } from "../i18n.ts";
import { pinyinWords } from "../pinyin.ts";
import type { UserRow } from "../wire.ts";
import { namedRows } from "./finder.ts";
import type { Finder } from "./finder.ts";

export const users: Finder = {
  title: "shell.find.user",
  role: Role.admin,
  async find(question) {
    const rows = await namedRows<UserRow>(question, {
      area: "users",
      name: (row) => `${row.username} ${row.display_name}`,
      load: async (keyword, size, signal) => {
        const query = { keyword, page_size: size };
        return (await call(api.user.search.get({ query, fetch: signal ? { signal } : {} }))).items;
      },
    });
    return rows.map(({ id, username, display_name: shown, role }) => ({
      id: `find user ${id}`,
      kind: "find",
      title: shown === "" || shown === username ? username : `${username} (${shown})`,
      note: `${t("shell.find.user")} ${id}`,
      words: pinyinWords(`${username} ${shown}`),
      run: () =>
        location.assign(
          role < question.role ? `/user?edit=${id}` : `/user?keyword=${encodeURIComponent(username)}`,
        ),
    }));
  },
};
