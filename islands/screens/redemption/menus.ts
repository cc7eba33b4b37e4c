// The menus of the redemption code screen: of a row and of the page.
// Refuses to offer a used code anything but copying and deletion.
import { Ban, CircleCheck, Copy, Pencil, Trash2 } from "lucide-react";
import type { CurlRequest } from "../../lib/curl.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { ShownList } from "../../lib/list-screen.ts";
import { onSelected } from "../../lib/list-screen.ts";
import type { ListState } from "../../lib/list.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { CodeRow } from "../../lib/wire.ts";
import { copyText } from "../../ui/copy-button.tsx";
import { curlItem, exportItem } from "../../ui/list-menu.ts";
import type { MenuGroups } from "../../ui/menu.tsx";
import { copyCodes, remove, setStatus } from "./actions.ts";
import { DISABLED, UNUSED } from "./row.ts";

export function rowMenu(t: Translate, list: ListState<CodeRow>, row: CodeRow): MenuGroups {
  return [
    [
      { id: "copy", label: t("redemption.copyOne"), icon: Copy, onSelect: () => void copyText(row.key) },
      ...(row.status === UNUSED
        ? [
            { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
            {
              id: "disable",
              label: t("common.disable"),
              icon: Ban,
              onSelect: () => void setStatus(list, [row], DISABLED),
            },
          ]
        : []),
      ...(row.status === DISABLED
        ? [
            {
              id: "enable",
              label: t("common.enable"),
              icon: CircleCheck,
              onSelect: () => void setStatus(list, [row], UNUSED),
            },
          ]
        : []),
    ],
    [
      {
        id: "delete",
        label: t("common.delete"),
        icon: Trash2,
        isDanger: true,
        onSelect: () => void remove(list, [row]),
      },
    ],
  ];
}

export interface PageMenuContext {
  t: Translate;
  screen: ShownList<CodeRow>;
  startExport: () => void;
  /** The page's call. */
  request: () => CurlRequest;
}

export function pageMenu({ t, screen, startExport, request }: PageMenuContext): MenuGroups {
  const selectOne = t("redemption.selectOne");
  return [
    [
      exportItem(t, startExport),
      {
        id: "copy",
        label: t("redemption.copySelected"),
        icon: Copy,
        onSelect: onSelected(screen, selectOne, copyCodes),
      },
      curlItem(t, request),
    ],
    [
      {
        id: "delete",
        label: t("redemption.deleteSelected"),
        icon: Trash2,
        isDanger: true,
        onSelect: onSelected(screen, selectOne, (rows) => void remove(screen.list, rows)),
      },
    ],
  ];
}
