// API keys: the table, making and changing keys, ready code and chat links for each.
// Refuses to print a full key in the list: it is copied from its row or shown once after creation.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { api, callForBody } from "../lib/api.ts";
import { bootData, nowMs } from "../lib/boot.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useListScreen } from "../lib/list-screen.ts";
import type { PageRequest } from "../lib/list-screen.ts";
import type { ListState } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { toast } from "../lib/toasts.ts";
import { setQuery } from "../lib/url-state.ts";
import type { TokenRow } from "../lib/wire.ts";
import { Notice } from "../ui/feedback.tsx";
import { ListScreen, NewButton } from "../ui/list-screen.tsx";
import { ListViews } from "../ui/list-views.tsx";
import { BulkButton } from "../ui/table-selection.tsx";
import { copyKeys, remove, setStatus } from "./token/actions.ts";
import { STATUS, tokenColumns } from "./token/cells.tsx";
import { pageMenu, rowMenu } from "./token/menus.ts";
import type { TokenPageData } from "./token/row.ts";
import { stateOf } from "./token/row.ts";

const UsePanel = lazyPart(() => import("./token/use-panel.tsx"));
const TokenDrawer = lazyPart(() => import("./token/drawer.tsx"));
const RotateDrawer = lazyPart(() => import("./token/rotate-drawer.tsx"));

const COLUMNS_KEY = "tokens-table-columns";
const VIEW_FIELDS = ["keyword", "token", "status"] as const;
type TokenFilters = Record<(typeof VIEW_FIELDS)[number], string>;

async function fetchTokens(filters: TokenFilters, { page, pageSize }: PageRequest) {
  const paging = { p: String(page - 1), size: String(pageSize) };
  const found =
    filters.keyword === "" && filters.token === ""
      ? await callForBody(api.token.get({ query: { ...paging, status: filters.status } }))
      : await callForBody(api.token.search.get({ query: { ...paging, ...filters } }));
  return { rows: found.data, total: found.total ?? -1 };
}

function BulkActions({
  list,
  rows,
  clear,
}: {
  list: ListState<TokenRow>;
  rows: readonly TokenRow[];
  clear: () => void;
}) {
  const t = useT();
  return (
    <>
      <BulkButton label={t("token.copySelected")} onClick={() => copyKeys(rows)} />
      <BulkButton label={t("common.enable")} onClick={() => void setStatus(list, rows, 1)} />
      <BulkButton label={t("common.disable")} onClick={() => void setStatus(list, rows, 2)} />
      <BulkButton label={t("common.delete")} isDanger onClick={() => void remove(list, rows, clear)} />
    </>
  );
}

function PersonalUseNotice() {
  const t = useT();
  const [isClosed, setClosed] = useState(false);
  return isClosed ? null : (
    <Notice tone="info" onClose={() => setClosed(true)}>
      {t("token.personalUse")}
    </Notice>
  );
}

/** All keys, and those of each status. */
const builtInViews = () => [
  { id: "all", label: translate("common.all"), query: {} },
  ...[1, 2, 3, 4].map((status) => ({
    id: String(status),
    label: translate(STATUS[status]?.[1] ?? ""),
    query: { status: String(status) },
  })),
];

export default function TokenScreen() {
  const t = useT();
  useSignals();
  const data = bootData<TokenPageData>();
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const filters = { keyword: query.keyword ?? "", token: query.token ?? "", status: query.status ?? "" };
  const screen = useListScreen<TokenRow>({
    data,
    table,
    filters,
    fetchPage: (request) => fetchTokens(filters, request),
  });
  const { list } = screen;
  /** The keys that code is shown for. */
  const [used, setUsed] = useState<{ keys: readonly TokenRow[]; isNew: boolean }>({ keys: [], isNew: false });
  /** The key that gets a new secret. */
  const [rotating, setRotating] = useState<TokenRow>();
  const editing = list.rows.find((row) => String(row.id) === query.edit);
  useShortcut({ keys: "c", label: "token.new", run: () => setQuery({ new: 1 }) });

  return (
    <ListScreen
      screen={screen}
      columnsKey={COLUMNS_KEY}
      header={{
        title: t("token.title"),
        note: t("token.purpose"),
        action: <NewButton label={t("token.new")} />,
        overflow: pageMenu(t, screen, () => ({
          path: filters.keyword || filters.token ? "/api/token/search" : "/api/token/",
          query: { ...filters, p: page - 1, size: pageSize },
        })),
      }}
      top={
        <>
          <PersonalUseNotice />
          {used.keys.length > 0 ? (
            <UsePanel
              key={used.keys[0]?.id}
              {...used}
              models={data.models}
              notices={data.notices ?? []}
              pricesToCome={data.pricesToCome ?? []}
              onClose={() => setUsed({ keys: [], isNew: false })}
            />
          ) : null}
        </>
      }
      views={
        <ListViews
          list={screen}
          screen="token"
          builtIn={builtInViews()}
          fields={VIEW_FIELDS}
          columnsKey={COLUMNS_KEY}
        />
      }
      filters={{
        searchName: "keyword",
        searchLabel: t("token.searchName"),
        fields: [{ name: "token", label: t("token.key"), placeholder: "sk-…" }],
      }}
      table={{
        columns: tokenColumns(t, nowMs.value),
        rowKey: (row) => row.id,
        rowName: (row) => row.name || `#${row.id}`,
        openQuery: (row) => ({ edit: row.id }),
        isMuted: (row) => stateOf(row, nowMs.peek()) !== 1,
        rowMenu: (row) =>
          rowMenu(
            { t, list, onUse: (key) => setUsed({ keys: [key], isNew: false }), onRotate: setRotating },
            row,
          ),
        bulk: (rows, clear) => <BulkActions list={list} rows={rows} clear={clear} />,
        empty: {
          title: t("token.empty"),
          text: t("token.emptyText"),
          action: (
            <button type="button" className="btn btn-sm btn-primary" onClick={() => setQuery({ new: 1 })}>
              {t("token.new")}
            </button>
          ),
        },
      }}
    >
      {query.new === "1" || editing !== undefined ? (
        <TokenDrawer
          key={editing?.id ?? "new"}
          row={editing}
          isOpen
          data={data}
          onClose={() => setQuery({ new: undefined, edit: undefined })}
          onSaved={(keys) => {
            if (keys.length > 0) setUsed({ keys, isNew: true });
            toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
      {rotating ? (
        <RotateDrawer
          row={rotating}
          onClose={() => setRotating(undefined)}
          onRotated={(key) => {
            setRotating(undefined);
            setUsed({ keys: [key], isNew: true });
            toast({ text: t("common.saved") });
            void list.refresh();
          }}
        />
      ) : null}
    </ListScreen>
  );
}
