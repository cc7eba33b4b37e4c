// The menus of the channel screen: of a row, of a tag's head, and of the page.
// Refuses to stand destructive acts beside others: they are the last group.
import {
  Ban,
  CircleCheck,
  Copy,
  FileTerminal,
  FlaskConical,
  ListChecks,
  Pencil,
  RotateCw,
  ScrollText,
  Trash2,
  Wallet,
  Wrench,
} from "lucide-react";
import { curlOf } from "../../lib/curl.ts";
import type { Translate } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import { copyText } from "../../ui/copy-button.tsx";
import type { MenuGroups } from "../../ui/menu.tsx";
import type { ListRow } from "./row.ts";
import { isTagRow, STATUS_DISABLED, STATUS_ENABLED } from "./row.ts";
import type { Channels } from "./use-channels.ts";

type Actions = typeof import("./actions.ts");

export interface MenuContext {
  t: Translate;
  channels: Channels;
  /** Loads the actions and runs one; failures are shown. */
  act: (work: (actions: Actions) => Promise<void>) => void;
}

export function rowMenu({ t, channels, act }: MenuContext, row: ListRow): MenuGroups {
  if (isTagRow(row)) {
    return [
      [
        {
          id: "edit",
          label: t("channel.tagEdit"),
          icon: Pencil,
          onSelect: () => setQuery({ tag_edit: row.tag }),
        },
        {
          id: "test",
          label: t("channel.tagTest"),
          icon: FlaskConical,
          onSelect: () => act((actions) => actions.testChannels(channels, row.channels)),
        },
      ],
      [
        {
          id: "enable",
          label: t("channel.tagEnable"),
          icon: CircleCheck,
          onSelect: () => act((actions) => actions.setTagStatus(channels, row, true)),
        },
        {
          id: "disable",
          label: t("channel.tagDisable"),
          icon: Ban,
          onSelect: () => act((actions) => actions.setTagStatus(channels, row, false)),
        },
      ],
    ];
  }
  const isOn = row.status === STATUS_ENABLED;
  return [
    [
      {
        id: "test",
        label: t("channel.test"),
        icon: FlaskConical,
        onSelect: () => act((actions) => actions.testChannels(channels, [row])),
      },
      {
        id: "test-models",
        label: t("channel.testModels"),
        icon: ListChecks,
        onSelect: () => setQuery({ test: row.id }),
      },
      {
        id: "balance",
        label: t("channel.updateBalance"),
        icon: Wallet,
        onSelect: () => act((actions) => actions.updateBalance(channels, row)),
      },
    ],
    [
      { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
      {
        id: "copy",
        label: t("channel.copy"),
        icon: Copy,
        onSelect: () => act((actions) => actions.copyOne(channels, row)),
      },
      { id: "log", label: t("channel.log"), icon: ScrollText, href: `/log?channel=${row.id}` },
    ],
    [
      isOn
        ? {
            id: "disable",
            label: t("common.disable"),
            icon: Ban,
            onSelect: () => act((actions) => actions.setStatus(channels, [row], STATUS_DISABLED)),
          }
        : {
            id: "enable",
            label: t("common.enable"),
            icon: CircleCheck,
            onSelect: () => act((actions) => actions.setStatus(channels, [row], STATUS_ENABLED)),
          },
    ],
    [
      {
        id: "delete",
        label: t("common.delete"),
        icon: Trash2,
        isDanger: true,
        onSelect: () => act((actions) => actions.remove(channels, [row])),
      },
    ],
  ];
}

export function pageMenu({ t, channels, act }: MenuContext): MenuGroups {
  const { summary, query, table } = channels;
  const disabled = summary.disabled + summary.auto_disabled;
  return [
    [
      {
        id: "test-all",
        label: t("channel.testAll"),
        icon: FlaskConical,
        isDisabled: channels.run !== undefined,
        onSelect: () => act((actions) => actions.testAll(channels)),
      },
      {
        id: "balances",
        label: t("channel.updateBalances"),
        icon: Wallet,
        onSelect: () => act((actions) => actions.updateBalances(channels)),
      },
    ],
    [
      {
        id: "refresh",
        label: t("common.refresh"),
        icon: RotateCw,
        onSelect: () => void channels.refresh(),
      },
      {
        id: "repair",
        label: t("channel.repair"),
        icon: Wrench,
        onSelect: () => act((actions) => actions.repair(channels)),
      },
      {
        id: "curl",
        label: t("table.copyCurl"),
        icon: FileTerminal,
        onSelect: () => {
          const { new: _new, edit: _edit, test: _test, tag_edit: _tag, ...filters } = query;
          void copyText(
            curlOf({
              path: "/api/channel/search",
              query: { ...filters, p: table.page - 1, page_size: table.pageSize },
            }),
          );
        },
      },
    ],
    [
      {
        id: "delete-disabled",
        label: t("channel.deleteDisabled", { count: disabled }),
        icon: Trash2,
        isDanger: true,
        isDisabled: disabled === 0,
        onSelect: () => act((actions) => actions.removeDisabled(channels)),
      },
    ],
  ];
}
