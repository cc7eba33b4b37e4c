// Users: who they are, what they have and used, and what the viewer's rank may do about it.
// Refuses to offer what the rank forbids; deleted accounts stay readable and have no actions.
import { useSignals } from "@preact/signals-react/runtime";
import { History, Upload } from "lucide-react";
import { useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData, user } from "../lib/boot.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useListScreen } from "../lib/list-screen.ts";
import type { PageRequest } from "../lib/list-screen.ts";
import { useRowById } from "../lib/row-by-id.ts";
import { toast, toastFailure } from "../lib/toasts.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { setQuery } from "../lib/url-state.ts";
import type { UserRow } from "../lib/wire.ts";
import { curlItem, exportItem } from "../ui/list-menu.ts";
import { ListScreen, NewButton } from "../ui/list-screen.tsx";
import type { MenuItem } from "../ui/menu.tsx";
import { ListViews } from "../ui/list-views.tsx";
import { BulkActions } from "./user/bulk-actions.tsx";
import type { BulkAction, BulkWhom } from "./user/bulk-values.ts";
import { manage } from "./user/actions.ts";
import { userColumns } from "./user/columns.tsx";
import { builtInViews, filterFields, filtersOf, setFilters, VIEW_FIELDS } from "./user/filters.ts";
import type { UserFilters } from "./user/filters.ts";
import { rowMenu } from "./user/menus.ts";
import { ENABLED, mayRead, mayTouch } from "./user/row.ts";
import type { UserPageData } from "./user/row.ts";

const UserDrawer = lazyPart(() => import("./user/drawer.tsx"));
const QuotaDrawer = lazyPart(() => import("./user/quota-drawer.tsx"));
const UserPlansDrawer = lazyPart(() => import("./user/plans-drawer.tsx"));
const BulkDrawer = lazyPart(() => import("./user/bulk-drawer.tsx"));
const ImportDrawer = lazyPart(() => import("./user/import-drawer.tsx"));
const RunPanel = lazyPart(() => import("./user/run-drawer.tsx"));

async function fetchUsers(filters: UserFilters & { sort: string }, { page, pageSize }: PageRequest) {
  const asked = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ""));
  const { items, total } = await call(
    api.user.search.get({ query: { ...asked, p: String(page), page_size: String(pageSize) } }),
  );
  return { rows: items, total };
}

interface Bulk {
  action: BulkAction;
  whom: BulkWhom;
  clear: () => void;
}

/** What is about to be done to the chosen accounts, or to all that match. */
function useBulk(filters: UserFilters) {
  const [bulk, setBulk] = useState<Bulk>();
  return {
    bulk,
    close: () => setBulk(undefined),
    begin: (rows: readonly UserRow[], all: number | undefined, clear: () => void, action: BulkAction) =>
      setBulk({
        action,
        clear,
        whom: all === undefined ? { rows } : { filters: setFilters(filters), count: all },
      }),
  };
}

/** The filtered list as the server writes it, all pages. */
function exportCsv(filters: Partial<UserFilters>): void {
  const query = new URLSearchParams(filters).toString();
  import("../lib/download.ts")
    .then(({ downloadFile }) => downloadFile(`/api/user/export?${query}`, "users.csv"))
    .then(() => toast({ key: "export", text: translate("user.exportDone") }), toastFailure);
}

const importItem = (t: Translate): MenuItem => ({
  id: "import",
  label: t("user.import.open"),
  icon: Upload,
  onSelect: () => setQuery({ import: 1 }),
});

const runsItem = (t: Translate): MenuItem => ({
  id: "runs",
  label: t("user.bulk.runs"),
  icon: History,
  onSelect: () => setQuery({ run: "all" }),
});

export default function UserScreen() {
  useSignals();
  const t = useT();
  const data = bootData<UserPageData>();
  const viewer = { id: user.value?.id ?? 0, role: user.value?.role ?? 0 };
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = filtersOf(query);
  const asked = { ...filters, sort: query.sort ?? "" };
  const screen = useListScreen<UserRow>({
    data,
    table,
    filters: asked,
    arranging: ["sort"],
    fetchPage: (request) => fetchUsers(asked, request),
  });
  const { bulk, close: closeBulk, begin } = useBulk(filters);
  const { refresh } = screen.list;
  const close = () => setQuery({ new: undefined, edit: undefined, quota: undefined, plans: undefined });
  const addressed = useRowById<UserRow>({
    id: query.edit ?? query.quota ?? query.plans,
    rows: screen.list.rows,
    load: (id) => call(api.user({ id: String(id) }).get()),
    onMissing: close,
  });
  const open = addressed && mayRead(viewer, addressed) ? addressed : undefined;
  const isPlans = query.edit === undefined && query.quota === undefined && open !== undefined;
  const isQuota =
    query.quota !== undefined && query.edit === undefined && open !== undefined && mayTouch(viewer, open);
  const isEditing = query.edit !== undefined && open !== undefined;
  useShortcut({ keys: "c", label: "user.new", run: () => setQuery({ new: 1 }) });
  const request = () => ({ path: "/api/user/search", query: { ...asked, p: page, page_size: pageSize } });

  return (
    <ListScreen
      screen={screen}
      columnsKey="users-table-columns"
      header={{
        title: t("shell.nav.users"),
        note: t("user.purpose"),
        action: <NewButton label={t("user.new")} />,
        overflow: [
          [exportItem(t, () => exportCsv(setFilters(filters))), importItem(t), runsItem(t)],
          [curlItem(t, request)],
        ],
      }}
      views={
        <ListViews
          list={screen}
          screen="user"
          builtIn={builtInViews(t, data)}
          fields={VIEW_FIELDS}
          columnsKey="users-table-columns"
        />
      }
      filters={{
        searchName: "keyword",
        searchLabel: t("user.search"),
        fields: filterFields(t, data),
      }}
      table={{
        columns: userColumns(t),
        rowKey: (row) => row.id,
        rowName: (row) => row.username,
        openQuery: (row) => (mayRead(viewer, row) ? { edit: row.id } : undefined),
        sort: table.sort,
        onSort: table.setSort,
        isSelectable: (row) => mayTouch(viewer, row) && row.id !== viewer.id,
        selectsFilter: true,
        bulk: (rows, clear, all) => <BulkActions onAct={(action) => begin(rows, all, clear, action)} />,
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
      {isPlans ? (
        <UserPlansDrawer key={open.id} row={open} onClose={close} onSaved={() => void refresh()} />
      ) : null}
      {bulk ? (
        <BulkDrawer
          action={bulk.action}
          whom={bulk.whom}
          groups={data.groups}
          onClose={closeBulk}
          onStarted={(run) => {
            bulk.clear();
            setQuery({ run });
          }}
        />
      ) : null}
      {query.import === "1" ? (
        <ImportDrawer
          onClose={() => setQuery({ import: undefined })}
          onStarted={(run) => setQuery({ import: undefined, run })}
        />
      ) : null}
      {query.run === undefined ? null : (
        <RunPanel
          run={query.run}
          onOpen={(run) => setQuery({ run })}
          onClose={() => setQuery({ run: undefined })}
          onFinished={() => void refresh()}
        />
      )}
    </ListScreen>
  );
}
