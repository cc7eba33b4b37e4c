// Users: who they are, what they have and used, and what the viewer's rank may do about it.
// Refuses to offer what the rank forbids; deleted accounts stay readable and have no actions.
import { useSignals } from "@preact/signals-react/runtime";
import {
  ArrowDown,
  ArrowUp,
  Ban,
  CircleCheck,
  Coins,
  Copy,
  FileTerminal,
  Pencil,
  Plus,
  ScrollText,
  Trash2,
} from "lucide-react";
import { api, call } from "../lib/api.ts";
import { address, bootData, user } from "../lib/boot.ts";
import { curlOf } from "../lib/curl.ts";
import { formatNumber, formatQuota } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useRowById } from "../lib/row-by-id.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { patchUrl, setQuery } from "../lib/url-state.ts";
import { Chip, Money, StatusDot } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { copyText } from "../ui/copy-button.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { actionsFor, DISABLED, ENABLED, mayRead, mayTouch, rankKey } from "./user/row.ts";
import type { ManageAction, UserPageData } from "./user/row.ts";
import type { UserRow } from "../lib/wire.ts";

const UserDrawer = lazyPart(() => import("./user/drawer.tsx"));
const QuotaDrawer = lazyPart(() => import("./user/quota-drawer.tsx"));

const ICONS = {
  enable: CircleCheck,
  disable: Ban,
  promote: ArrowUp,
  demote: ArrowDown,
  delete: Trash2,
} as const;

export default function UserScreen() {
  useSignals();
  const t = useT();
  const data = bootData<UserPageData>();
  const viewer = { id: user.value?.id ?? 0, role: user.value?.role ?? 0 };
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const list = useList<UserRow>({
    initial: data,
    queryKey: JSON.stringify([query.keyword, query.group, page, pageSize]),
    async load() {
      const found = await call(
        api.user.search.get({
          query: {
            keyword: query.keyword ?? "",
            group: query.group ?? "",
            p: String(page),
            page_size: String(pageSize),
          },
        }),
      );
      return { rows: found.items, total: found.total };
    },
  });
  const close = () => setQuery({ new: undefined, edit: undefined, quota: undefined });
  const asked = useRowById<UserRow>(
    query.edit ?? query.quota,
    list.rows,
    (id) => call(api.user({ id: String(id) }).get()),
    close,
  );
  const open = asked && mayRead(viewer, asked) ? asked : undefined;
  const isQuota = query.edit === undefined && open !== undefined && mayTouch(viewer, open);
  const isEditing = query.edit !== undefined && open !== undefined;
  useShortcut({ keys: "c", label: "user.new", run: () => setQuery({ new: 1 }) });

  const manage = async (row: UserRow, action: ManageAction) => {
    if (action !== "enable") {
      const yes = await confirm({
        title: t(`user.ask.${action}`, { name: row.username }),
        text: t(`user.consequence.${action}`, { balance: formatQuota(row.quota) }),
        action: t(`user.act.${action}`, { name: row.username }),
        isDanger: action === "delete" || action === "disable",
        ...(action === "delete" ? { typed: row.username } : {}),
      });
      if (!yes) return;
    }
    try {
      await call(api.user.manage.post({ id: row.id, action }));
      const back: Partial<Record<ManageAction, ManageAction>> = {
        disable: "enable",
        promote: "demote",
        demote: "promote",
      };
      const undo = back[action];
      toast({
        key: `user ${row.id}`,
        text: t(`user.done.${action}`, { name: row.username }),
        ...(undo
          ? {
              undo: async () => {
                await call(api.user.manage.post({ id: row.id, action: undo }));
                await list.refresh();
              },
            }
          : {}),
      });
    } catch (error) {
      toastFailure(error);
    }
    await list.refresh();
  };

  const columns: Column<UserRow>[] = [
    {
      id: "name",
      title: t("user.name"),
      isIdentity: true,
      card: "title",
      cell: (row) => (
        <span className="inline-flex flex-col min-w-0">
          <span className={row.DeletedAt === null ? "" : "line-through"}>{row.username}</span>
          <span className="cell-sub">
            #{row.id}
            {row.email === "" ? "" : ` · ${row.email}`}
          </span>
        </span>
      ),
    },
    {
      id: "status",
      title: t("user.status"),
      card: "badge",
      cell: (row) => {
        if (row.DeletedAt !== null) return <StatusDot tone="off">{t("user.deleted")}</StatusDot>;
        if (row.status === ENABLED) return <StatusDot tone="ok">{t("user.status.enabled")}</StatusDot>;
        return row.status === DISABLED ? (
          <StatusDot tone="broken">{t("user.status.disabled")}</StatusDot>
        ) : (
          <StatusDot tone="off">{t("user.status.locked")}</StatusDot>
        );
      },
    },
    { id: "group", title: t("user.group"), cell: (row) => <Chip>{row.group}</Chip> },
    { id: "role", title: t("user.role"), cell: (row) => t(rankKey(row.role)) },
    {
      id: "quota",
      title: t("user.quotaUsed"),
      align: "end",
      cell: (row) => (
        <span className="inline-flex flex-col items-end">
          <Money quota={row.quota} />
          <span className="cell-sub">{t("user.usedOf", { amount: formatQuota(row.used_quota) })}</span>
        </span>
      ),
    },
    {
      id: "requests",
      title: t("user.requests"),
      align: "end",
      cell: (row) => formatNumber(row.request_count),
    },
    {
      id: "inviter",
      card: "hidden",
      title: t("user.inviter"),
      cell: (row) =>
        row.inviter_id > 0 ? (
          <a className="link" href={`/user?keyword=${row.inviter_id}`}>
            #{row.inviter_id}
          </a>
        ) : (
          <span className="text-muted">{t("common.none")}</span>
        ),
    },
  ];

  return (
    <>
      <PageHeader
        title={t("shell.nav.users")}
        note={t("user.purpose")}
        action={
          <button type="button" className="btn btn-primary" onClick={() => setQuery({ new: 1 })}>
            <Plus aria-hidden size={16} />
            {t("user.new")}
          </button>
        }
        overflow={[
          [
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () =>
                void copyText(
                  curlOf({
                    path: "/api/user/search",
                    query: { keyword: query.keyword, group: query.group, p: page, page_size: pageSize },
                  }),
                ),
            },
          ],
        ]}
      />
      <FilterBar
        searchName="keyword"
        searchLabel={t("user.search")}
        fields={[
          {
            name: "group",
            label: t("user.group"),
            choices: data.groups.map((name) => ({ value: name, label: name })),
          },
        ]}
        query={query}
        onChange={table.setFilters}
      />
      <DataTable
        label={t("shell.nav.users")}
        columns={columns}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.username}
        rowHref={(row) => (mayRead(viewer, row) ? patchUrl(address.peek(), { edit: row.id }) : undefined)}
        onOpen={(row) => (mayRead(viewer, row) ? setQuery({ edit: row.id }) : undefined)}
        isMuted={(row) => row.DeletedAt !== null || row.status !== ENABLED}
        columnsKey="users-table-columns"
        rowMenu={(row) => {
          if (row.DeletedAt !== null) return [];
          const actions = actionsFor(viewer, row);
          const item = (action: ManageAction) => ({
            id: action,
            label: t(`user.action.${action}`),
            icon: ICONS[action],
            isDanger: action === "delete",
            onSelect: () => void manage(row, action),
          });
          return [
            [
              ...(mayTouch(viewer, row)
                ? [
                    {
                      id: "edit",
                      label: t("common.edit"),
                      icon: Pencil,
                      onSelect: () => setQuery({ edit: row.id }),
                    },
                    {
                      id: "quota",
                      label: t("user.changeQuota"),
                      icon: Coins,
                      onSelect: () => setQuery({ quota: row.id }),
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
        }}
        page={page}
        pageSize={pageSize}
        onPage={table.setPage}
        onPageSize={table.setPageSize}
        isFiltered={(query.keyword ?? "") !== "" || (query.group ?? "") !== ""}
        onClearFilters={() => table.setFilters({ keyword: undefined, group: undefined })}
        empty={{ title: t("user.empty"), text: t("user.emptyText") }}
      />
      {query.new === "1" || isEditing ? (
        <UserDrawer
          key={isEditing ? open.id : "new"}
          row={isEditing ? open : undefined}
          groups={data.groups}
          onClose={close}
          onSaved={() => void list.refresh()}
        />
      ) : null}
      {isQuota ? (
        <QuotaDrawer key={open.id} row={open} onClose={close} onSaved={() => void list.refresh()} />
      ) : null}
    </>
  );
}
