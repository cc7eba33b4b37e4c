// The menus of the API key screen: of a row and of the page.
import {
  Ban,
  CircleCheck,
  Copy,
  MessageSquare,
  Pencil,
  RefreshCcw,
  ScrollText,
  Terminal,
  Trash2,
} from "lucide-react";
import { chatLinks } from "../../lib/chat-links.ts";
import type { CurlRequest } from "../../lib/curl.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { ShownList } from "../../lib/list-screen.ts";
import { onSelected } from "../../lib/list-screen.ts";
import type { ListState } from "../../lib/list.ts";
import { toast } from "../../lib/toasts.ts";
import { patchUrl, setQuery } from "../../lib/url-state.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { copyText } from "../../ui/copy-button.tsx";
import { curlItem } from "../../ui/list-menu.ts";
import type { MenuGroups, MenuItem } from "../../ui/menu.tsx";
import { copyKeys, remove, setStatus } from "./actions.ts";
import { openChat } from "./open-chat.ts";

export interface RowMenuContext {
  t: Translate;
  list: ListState<TokenRow>;
  /** Shows code and links for a key. */
  onUse: (row: TokenRow) => void;
  /** Asks for a new secret. */
  onRotate: (row: TokenRow) => void;
}

export function rowMenu({ t, list, onUse, onRotate }: RowMenuContext, row: TokenRow): MenuGroups {
  return [
    [
      {
        id: "copy",
        label: t("token.copyKeyShort"),
        icon: Copy,
        onSelect: () => void copyText(`sk-${row.key}`),
      },
      { id: "use", label: t("token.use"), icon: Terminal, onSelect: () => onUse(row) },
      {
        id: "log",
        label: t("token.log"),
        icon: ScrollText,
        href: patchUrl("/log", { token_name: row.name, range: "30d" }),
      },
      { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
      { id: "rotate", label: t("token.rotate"), icon: RefreshCcw, onSelect: () => onRotate(row) },
      row.status === 1
        ? {
            id: "disable",
            label: t("common.disable"),
            icon: Ban,
            onSelect: () => void setStatus(list, [row], 2),
          }
        : {
            id: "enable",
            label: t("common.enable"),
            icon: CircleCheck,
            onSelect: () => void setStatus(list, [row], 1),
          },
    ],
    chatItems(t, row),
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

/** The site's chat clients, opened with this key; without any, an item that says so. */
function chatItems(t: Translate, row: TokenRow): MenuItem[] {
  const links = chatLinks();
  if (links.length === 0) {
    return [
      {
        id: "chat",
        label: t("shell.nav.chat"),
        icon: MessageSquare,
        onSelect: () => toast({ tone: "error", text: t("token.chatNone") }),
      },
    ];
  }
  return links.map((link, index) => ({
    id: `chat ${index}`,
    label: t("token.chatWith", { name: link.title }),
    icon: MessageSquare,
    onSelect: () => openChat(link.template, row.key, t("token.chatBroken")),
  }));
}

export function pageMenu(t: Translate, screen: ShownList<TokenRow>, request: () => CurlRequest): MenuGroups {
  const selectOne = t("token.selectOne");
  return [
    [
      {
        id: "copy",
        label: t("token.copySelected"),
        icon: Copy,
        onSelect: onSelected(screen, selectOne, copyKeys),
      },
      curlItem(t, request),
    ],
    [
      {
        id: "delete",
        label: t("token.deleteSelected"),
        icon: Trash2,
        isDanger: true,
        onSelect: onSelected(screen, selectOne, (rows) => void remove(screen.list, rows)),
      },
    ],
  ];
}
