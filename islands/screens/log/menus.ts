// The menu of a log row: it narrows the list to what the row has, and copies its request id. And the clearing of old rows.
import { Copy, Eraser, FileClock, Filter } from "lucide-react";
import type { Translate } from "../../lib/i18n.ts";
import { toastFailure } from "../../lib/toasts.ts";
import type { LogRow } from "../../lib/wire.ts";
import { copyText } from "../../ui/copy-button.tsx";
import type { MenuGroups, MenuItem } from "../../ui/menu.tsx";

export interface RowMenuContext {
  t: Translate;
  isAdmin: boolean;
  onFilter: (patch: Record<string, string | undefined>) => void;
}

export function rowMenu({ t, isAdmin, onFilter }: RowMenuContext, row: LogRow): MenuGroups {
  const only = (name: string, value: string, label: string) =>
    value === ""
      ? []
      : [
          {
            id: name,
            label: t("log.only", { value: label }),
            icon: Filter,
            onSelect: () => onFilter({ [name]: value }),
          },
        ];
  return [
    [
      ...only("model_name", row.model_name, row.model_name),
      ...only("token_name", row.token_name, row.token_name),
      ...(isAdmin ? only("username", row.username, row.username) : []),
      ...(isAdmin && row.channel > 0
        ? only("channel", String(row.channel), `${t("log.channel")} ${row.channel}`)
        : []),
    ],
    row.request_id
      ? [
          {
            id: "request",
            label: t("log.copyRequestId"),
            icon: Copy,
            onSelect: () => void copyText(row.request_id),
          },
        ]
      : [],
  ];
}

/** Opens the clearing: what it deletes is counted there first. */
export function clearItem(t: Translate, onSelect: () => void): MenuItem {
  return { id: "clear", label: t("log.clearTitle"), icon: Eraser, isDanger: true, onSelect };
}

/** Who did what, within the range that is shown, as a file of the server's: every row, in one stream. */
export function trailItem(t: Translate, query: () => Record<string, string>): MenuItem {
  return {
    id: "trail",
    label: t("log.trail.export"),
    icon: FileClock,
    onSelect: () => void import("./export.ts").then(({ exportTrail }) => exportTrail(query()), toastFailure),
  };
}
