// Channels by id, name (Han also by pinyin) and address, for the palette.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../api.ts";
import { t } from "../i18n.ts";
import { pinyinWords } from "../pinyin.ts";
import type { ChannelRow } from "../wire.ts";
import { namedRows } from "./finder.ts";
import type { Finder } from "./finder.ts";

export const channels: Finder = {
  title: "shell.find.channel",
  role: Role.admin,
  async find(question) {
    const rows = await namedRows<ChannelRow>(question, {
      area: "channels",
      name: (row) => row.name,
      load: (keyword, size, signal) =>
        call(
          api.channel.search.get({ query: { keyword, page_size: size }, fetch: signal ? { signal } : {} }),
        ),
    });
    return rows.map((row) => ({
      id: `find channel ${row.id}`,
      kind: "find",
      title: row.name,
      note: `${t("shell.find.channel")} ${row.id}`,
      words: pinyinWords(row.name),
      run: () => location.assign(`/channel?edit=${row.id}`),
    }));
  },
};
