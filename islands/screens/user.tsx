// Users: who they are, what they have and used, and what the viewer's rank may do about it.
// Refuses to offer what the rank forbids; deleted accounts stay readable and have no actions.
import { useSignals } from "@preact/signals-react/runtime";
import { api, call } from "../lib/api.ts";
import { bootData, user } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useListScreen } from "../lib/list-screen.ts";
import type { PageRequest } from "../lib/list-screen.ts";
import { useRowById } from "../lib/row-by-id.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { setQuery } from "../lib/url-state.ts";
import type { UserRow } from "../lib/wire.ts";
import { curlItem } from "../ui/list-menu.ts";
import { ListScreen, NewButton } from "../ui/list-screen.tsx";
import { manage } from "./user/actions.ts";
import { userColumns } from "./user/columns.tsx";
import { rowMenu } from "./user/menus.ts";
import { ENABLED, mayRead, mayTouch } from "./user/row.ts";
import type { UserPageData } from "./user/row.ts";

const UserDrawer = lazyPart(() => import("./user/drawer.tsx"));
const QuotaDrawer = lazyPart(() => import("./user/quota-drawer.tsx"));

async function fetchUsers(filters: Record<"keyword" | "group", string>, { page, pageSize }: PageRequest) {
  const { items, total } = await call(
    api.user.search.get({ query: { ...filters, p: String(page), page_size: String(pageSize) } }),
  );
  return { rows: items, total };
}

export default function UserScreen() {
  useSignals();
  const t = useT();
  const data = bootData<UserPageData>();
  const viewer = { id: user.value?.id ?? 0, role: user.value?.role ?? 0 };
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = { keyword: query.keyword ?? "", group: query.group ?? "" };
  const screen = useListScreen<UserRow>({
    data,
    table,
    filters,
    fetchPage: (request) => fetchUsers(filters, request),
  });
  const { refresh } = screen.list;
  const close = () => setQuery({ new: undefined, edit: undefined, quota: undefined });
  const addressed = useRowById<UserRow>({
    id: query.edit ?? query.quota,
    rows: screen.list.rows,
    load: (id) => call(api.user({ id: String(id) }).get()),
    onMissing: close,
  });
  const open = addressed && mayRead(viewer, addressed) ? addressed : undefined;
  const isQuota = query.edit === undefined && open !== undefined && mayTouch(viewer, open);
  const isEditing = query.edit !== undefined && open !== undefined;
  useShortcut({ keys: "c", label: "user.new", run: () => setQuery({ new: 1 }) });
  const request = () => ({ path: "/api/user/search", query: { ...filters, p: page, page_size: pageSize } });

  return (
    <ListScreen
      screen={screen}
      columnsKey="users-table-columns"
      header={{
        title: t("shell.nav.users"),
        note: t("user.purpose"),
        action: <NewButton label={t("user.new")} />,
        overflow: [[curlItem(t, request)]],
      }}
      filters={{
        searchName: "keyword",
        searchLabel: t("user.search"),
        fields: [
          {
            name: "group",
            label: t("user.group"),
            choices: data.groups.map((name) => ({ value: name, label: name })),
          },
        ],
      }}
      table={{
        columns: userColumns(t),
        rowKey: (row) => row.id,
        rowName: (row) => row.username,
        openQuery: (row) => (mayRead(viewer, row) ? { edit: row.id } : undefined),
        isMuted: (row) => row.DeletedAt !== null || row.status !== ENABLED,
        rowMenu: (row) =>
          rowMenu({ t, viewer, onManage: (each, action) => void manage(each, action, refresh) }, row),
        empty: { title: t("user.empty"), text: t("user.emptyText") },
      }}
    >
      {query.new === "1" || isEditing ? (
        <UserDrawer
          key={isEditing ? open.id : "new"}
          row={isEditing ? open : undefined}
          groups={data.groups}
          onClose={close}
          onSaved={() => void refresh()}
        />
      ) : null}
      {isQuota ? (
        <QuotaDrawer key={open.id} row={open} onClose={close} onSaved={() => void refresh()} />
      ) : null}
    </ListScreen>
  );
}
