// Calls by their whole request id, for the palette: the log row opens.
// Refuses beginnings of ids, and other people's calls to ordinary users: their own log is asked.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../api.ts";
import { t } from "../i18n.ts";
import { rowKeyOf } from "../log-key.ts";
import type { Finder } from "./finder.ts";

/** Local time to the millisecond and a counter, then random characters, underlines in between: src/http/request-id.ts. */
const REQUEST_ID = /^\d{4}[\d_]{10}\w{17,60}$/;
/** The log shows the row among those of its hour. */
const AROUND_SECONDS = 1800;
const MOST_ROWS = "3";

export const requests: Finder = {
  title: "shell.find.request",
  role: Role.user,
  async find({ text, role, signal }) {
    if (!REQUEST_ID.test(text)) return [];
    const isAdmin = role >= Role.admin;
    const query = { request_id: text, p: "1", page_size: MOST_ROWS };
    const { items } = await (isAdmin
      ? call(api.log.get({ query, fetch: { signal } }))
      : call(api.log.self.get({ query, fetch: { signal } })));
    return items.map((row) => {
      const address = new URLSearchParams({
        request_id: text,
        start_timestamp: String(row.created_at - AROUND_SECONDS),
        end_timestamp: String(row.created_at + AROUND_SECONDS),
        id: rowKeyOf(row, isAdmin),
      });
      return {
        id: `find request ${rowKeyOf(row, isAdmin)}`,
        kind: "find",
        title: text,
        note: row.model_name || t("shell.find.request"),
        run: () => location.assign(`/log?${address}`),
      };
    });
  },
};
