// The menu of an account's row.
// Refuses to offer what the viewer's rank forbids; deleted accounts have no actions.
import {
  ArrowDown,
  ArrowUp,
  Ban,
  CalendarClock,
  CircleCheck,
  Coins,
  Copy,
  Pencil,
  ScrollText,
  Trash2,
} from "lucide-react";
import type { Translate } from "../../lib/i18n.ts";
import { patchUrl, setQuery } from "../../lib/url-state.ts";
import type { UserRow } from "../../lib/wire.ts";
import { copyText } from "../../ui/copy-button.tsx";
import type { MenuGroups } from "../../ui/menu.tsx";
import { actionsFor, mayTouch } from "./row.ts";
import type { ManageAction, Viewer } from "./row.ts";

const ICONS = {
  enable: CircleCheck,
  disable: Ban,
  promote: ArrowUp,
  demote: ArrowDown,
  delete: Trash2,
} as const;

export interface RowMenuContext {
  t: Translate;
  viewer: Viewer;
  onManage: (row: UserRow, action: ManageAction) => void;
}

export function rowMenu({ t, viewer, onManage }: RowMenuContext, row: UserRow): MenuGroups {
  if (row.DeletedAt !== null) return [];
  const actions = actionsFor(viewer, row);
  const item = (action: ManageAction) => ({
    id: action,
    label: t(`user.action.${action}`),
    icon: ICONS[action],
    isDanger: action === "delete",
    onSelect: () => onManage(row, action),
  });
  return [
    [
      ...(mayTouch(viewer, row)
        ? [
            { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
            {
              id: "quota",
              label: t("user.changeQuota"),
              icon: Coins,
              onSelect: () => setQuery({ quota: row.id }),
            },
            {
              id: "plans",
              label: t("user.plans"),
              icon: CalendarClock,
              onSelect: () => setQuery({ plans: row.id }),
            },
          ]
        : []),
      {
        id: "log",
        label: t("user.toLog"),
        icon: ScrollText,
        href: patchUrl("/log", { username: row.username, range: "30d" }),
      },
      {
        id: "copy",
        label: t("user.copyId"),
        icon: Copy,
        onSelect: () => void copyText(String(row.id)),
      },
    ],
    actions.filter((action) => action !== "delete").map(item),
    actions.filter((action) => action === "delete").map(item),
  ];
}
