// Redemption codes: made in batches, sold elsewhere, seen here as unused, disabled or used.
// Refuses to edit or enable a used code; the server holds the same rule.
import { useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { FETCH_ALL_PAGE_SIZE, useListScreen } from "../lib/list-screen.ts";
import type { PageRequest } from "../lib/list-screen.ts";
import type { ListState } from "../lib/list.ts";
import { useRowById } from "../lib/row-by-id.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { toast } from "../lib/toasts.ts";
import { setQuery } from "../lib/url-state.ts";
import type { CodeRow } from "../lib/wire.ts";
import { ExportProgress, useCsvExport } from "../ui/csv-export.tsx";
import { ListScreen, NewButton } from "../ui/list-screen.tsx";
import { ListViews } from "../ui/list-views.tsx";
import { BulkButton } from "../ui/table-selection.tsx";
import { copyCodes, remove, setStatus } from "./redemption/actions.ts";
import { codeColumns, csvColumns } from "./redemption/columns.tsx";
import { pageMenu, rowMenu } from "./redemption/menus.ts";
import { DISABLED, STATUS, UNUSED, USED } from "./redemption/row.ts";
import type { CodeBatch, RedemptionPageData } from "./redemption/row.ts";

const CodeDrawer = lazyPart(() => import("./redemption/drawer.tsx"));
const CreatedCodes = lazyPart(() => import("./redemption/created.tsx"));

const COLUMNS_KEY = "redemptions-table-columns";
const VIEW_FIELDS = ["keyword", "status"] as const;
type CodeFilters = Record<(typeof VIEW_FIELDS)[number], string>;

async function fetchCodes(filters: CodeFilters, { page, pageSize }: PageRequest) {
  const { items, total } = await call(
    api.redemption.search.get({ query: { ...filters, p: String(page), page_size: String(pageSize) } }),
  );
  return { rows: items, total };
}

function BulkActions({
  list,
  rows,
  clear,
}: {
  list: ListState<CodeRow>;
  rows: readonly CodeRow[];
  clear: () => void;
}) {
  const t = useT();
  return (
    <>
      <BulkButton label={t("redemption.copySelected")} onClick={() => copyCodes(rows)} />
      <BulkButton label={t("common.enable")} onClick={() => void setStatus(list, rows, UNUSED, { clear })} />
      <BulkButton
        label={t("common.disable")}
        onClick={() => void setStatus(list, rows, DISABLED, { clear })}
      />
      <BulkButton label={t("common.delete")} isDanger onClick={() => void remove(list, rows, clear)} />
    </>
  );
}

/** All codes, and those of each status. */
const builtInViews = () => [
  { id: "all", label: translate("common.all"), query: {} },
  ...[UNUSED, USED, DISABLED].map((status) => ({
    id: String(status),
    label: translate(STATUS[status]?.[1] ?? ""),
    query: { status: String(status) },
  })),
];

export default function RedemptionScreen() {
  const t = useT();
  const data = bootData<RedemptionPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = { keyword: query.keyword ?? "", status: query.status ?? "" };
  const fetchPage = (request: PageRequest) => fetchCodes(filters, request);
  const screen = useListScreen<CodeRow>({ data, table, filters, fetchPage });
  const { list } = screen;
  const [created, setCreated] = useState<CodeBatch>();
  const close = () => setQuery({ new: undefined, edit: undefined });
  const open = useRowById<CodeRow>({
    id: query.edit,
    rows: list.rows,
    load: (id) => call(api.redemption({ id }).get()),
    onMissing: close,
  });
  useShortcut({ keys: "c", label: "redemption.new", run: () => setQuery({ new: 1 }) });
  const csv = useCsvExport<CodeRow>(() => ({
    name: "codes",
    ...csvColumns(t),
    load: (at) => fetchPage({ page: at, pageSize: FETCH_ALL_PAGE_SIZE }),
    rowKey: (row) => row.id,
  }));
  const request = () => ({
    path: "/api/redemption/search",
    query: { ...filters, p: page, page_size: pageSize },
  });

  return (
    <ListScreen
      screen={screen}
      columnsKey={COLUMNS_KEY}
      header={{
        title: t("shell.nav.redemptions"),
        note: t("redemption.purpose"),
        action: <NewButton label={t("redemption.new")} />,
        overflow: pageMenu({ t, screen, startExport: csv.start, request }),
      }}
      top={
        <>
          {created ? <CreatedCodes batch={created} onClose={() => setCreated(undefined)} /> : null}
          <ExportProgress {...csv} />
        </>
      }
      views={
        <ListViews
          list={screen}
          screen="redemption"
          builtIn={builtInViews()}
          fields={VIEW_FIELDS}
          columnsKey={COLUMNS_KEY}
        />
      }
      filters={{ searchName: "keyword", searchLabel: t("redemption.search"), fields: [] }}
      table={{
        columns: codeColumns(t),
        rowKey: (row) => row.id,
        rowName: (row) => row.name,
        openQuery: (row) => ({ edit: row.id }),
        isMuted: (row) => row.status !== UNUSED,
        rowMenu: (row) => rowMenu(t, list, row),
        bulk: (rows, clear) => <BulkActions list={list} rows={rows} clear={clear} />,
        empty: {
          title: t("redemption.empty"),
          text: t("redemption.emptyText"),
          action: <NewButton label={t("redemption.new")} isSmall />,
        },
      }}
    >
      {query.new === "1" || open ? (
        <CodeDrawer
          key={open?.id ?? "new"}
          row={query.new === "1" ? undefined : open}
          onClose={close}
          onSaved={(batch) => {
            // The panel with the new codes says more than a toast would.
            if (batch) setCreated(batch);
            else toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </ListScreen>
  );
}
