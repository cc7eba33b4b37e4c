// The menus of the channel screen: of a row, of a tag's head, and of the page.
// Refuses to stand destructive acts beside others: they are the last group.
import {
  Ban,
  CircleCheck,
  Copy,
  FlaskConical,
  ListChecks,
  Megaphone,
  Pencil,
  ScrollText,
  Trash2,
  Wallet,
  Wrench,
} from "lucide-react";
import type { Translate } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import { curlItem, refreshItem } from "../../ui/list-menu.ts";
import type { MenuGroups } from "../../ui/menu.tsx";
import { withActions } from "./load-actions.ts";
import type { ListRow } from "./row.ts";
import { isTagRow, STATUS_DISABLED, STATUS_ENABLED } from "./row.ts";
import type { Channels } from "./use-channels.ts";

export interface MenuContext {
  t: Translate;
  channels: Channels;
}

export function rowMenu({ t, channels }: MenuContext, row: ListRow): MenuGroups {
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
          onSelect: () => withActions((actions) => actions.testChannels(channels, row.channels)),
        },
      ],
      [
        {
          id: "enable",
          label: t("channel.tagEnable"),
          icon: CircleCheck,
          onSelect: () => withActions((actions) => actions.setTagStatus(channels, row, true)),
        },
        {
          id: "disable",
          label: t("channel.tagDisable"),
          icon: Ban,
          onSelect: () => withActions((actions) => actions.setTagStatus(channels, row, false)),
        },
      ],
    ];
  }
  const isOn = row.status === STATUS_ENABLED;
  return [
    [
      {
        id: "test",
        label: t("channel.testNow"),
        icon: FlaskConical,
        onSelect: () => withActions((actions) => actions.testChannels(channels, [row])),
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
        onSelect: () => withActions((actions) => actions.updateBalance(channels, row)),
      },
    ],
    [
      { id: "edit", label: t("common.edit"), icon: Pencil, onSelect: () => setQuery({ edit: row.id }) },
      {
        id: "copy",
        label: t("channel.copy"),
        icon: Copy,
        onSelect: () => withActions((actions) => actions.copyOne(channels, row)),
      },
      { id: "log", label: t("channel.log"), icon: ScrollText, href: `/log?channel=${row.id}` },
      {
        id: "notice",
        label: t("channel.notice"),
        icon: Megaphone,
        onSelect: () => setQuery({ notices: "new", notice_channel: row.id }),
      },
    ],
    [
      isOn
        ? {
            id: "disable",
            label: t("common.disable"),
            icon: Ban,
            onSelect: () => withActions((actions) => actions.setStatus(channels, [row], STATUS_DISABLED)),
          }
        : {
            id: "enable",
            label: t("common.enable"),
            icon: CircleCheck,
            onSelect: () => withActions((actions) => actions.setStatus(channels, [row], STATUS_ENABLED)),
          },
    ],
    [
      {
        id: "delete",
        label: t("common.delete"),
        icon: Trash2,
        isDanger: true,
        onSelect: () => withActions((actions) => actions.remove(channels, [row])),
      },
    ],
  ];
}

export function pageMenu({ t, channels }: MenuContext): MenuGroups {
  const { summary, table } = channels;
  const disabled = summary.disabled + summary.auto_disabled;
  return [
    [
      {
        id: "test-all",
        label: t("channel.testAll"),
        icon: FlaskConical,
        isDisabled: channels.run !== undefined,
        onSelect: () => withActions((actions) => actions.testAll(channels)),
      },
      {
        id: "balances",
        label: t("channel.updateBalances"),
        icon: Wallet,
        onSelect: () => withActions((actions) => actions.updateBalances(channels)),
      },
    ],
    [
      refreshItem(t, channels.refresh),
      {
        id: "notices",
        label: t("channel.notices"),
        icon: Megaphone,
        onSelect: () => setQuery({ notices: 1 }),
      },
      {
        id: "route",
        label: t("channel.routeTitle"),
        icon: ListChecks,
        onSelect: () => setQuery({ route: 1 }),
      },
      {
        id: "repair",
        label: t("channel.repair"),
        icon: Wrench,
        onSelect: () => withActions((actions) => actions.repair(channels)),
      },
      curlItem(t, () => {
        const {
          new: _new,
          edit: _edit,
          test: _test,
          tag_edit: _tag,
          notices: _,
          route: _route,
          ...filters
        } = table.query;
        return {
          path: "/api/channel/search",
          query: { ...filters, p: table.page - 1, page_size: table.pageSize },
        };
      }),
    ],
    [
      {
        id: "delete-disabled",
        label: t("channel.deleteDisabled", { count: disabled }),
        icon: Trash2,
        isDanger: true,
        isDisabled: disabled === 0,
        onSelect: () => withActions((actions) => actions.removeDisabled(channels)),
      },
    ],
  ];
}
