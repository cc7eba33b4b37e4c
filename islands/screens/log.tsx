// The usage log: figures and histogram of the filter, the table, and the detail that explains each charge.
// Refuses to filter on the page: every filter is the call's own, and stands in the address.
import { useSignals } from "@preact/signals-react/runtime";
import { useRef, useState } from "react";
import { bootData, nowMs, siteZone } from "../lib/boot.ts";
import { useCommand } from "../lib/commands.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { rowKeyOf } from "../lib/log-key.ts";
import { KEYS } from "../lib/storage.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { rangeOf } from "../lib/time-range.ts";
import { numberOf, setQuery } from "../lib/url-state.ts";
import { toastFailure } from "../lib/toasts.ts";
import type { Query } from "../lib/url-state.ts";
import type { LogRow } from "../lib/wire.ts";
import type { FilterField } from "../ui/filter-bar.tsx";
import { curlItem, exportItem, refreshItem } from "../ui/list-menu.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { ListViews } from "../ui/list-views.tsx";
import { TimeRangeField } from "../ui/time-range.tsx";
import { logColumns } from "./log/cells.tsx";
import { clearItem, rowMenu, trailItem } from "./log/menus.ts";
import type { LogPageData } from "./log/row.ts";
import { LOG_TYPES, typeKey, VIEW_FIELDS } from "./log/row.ts";
import { LiveButton, LogTop } from "./log/top.tsx";
import { DEFAULT_RANGE, logParameters, useLogs } from "./log/use-logs.ts";

const LogDetail = lazyPart(() => import("./log/detail.tsx"));
const LogClearing = lazyPart(() => import("./log/clearing.tsx"));
const UserPanel = lazyPart(() => import("./log/user-panel.tsx"));

/** Scrolled this far, somebody is reading below the newest rows. */
const READING_PX = 40;

/** All entries, and those of each type. */
const builtInViews = () =>
  LOG_TYPES.map(([id, key]): { id: string; label: string; query: Record<string, string> } => ({
    id: String(id),
    label: translate(key),
    query: id === 0 ? {} : { type: String(id) },
  }));

const filterFields = (isAdmin: boolean): FilterField[] => [
  { name: "token_name", label: translate("log.key") },
  { name: "group", label: translate("log.group") },
  { name: "request_id", label: translate("log.requestId") },
  ...(isAdmin
    ? [
        { name: "username", label: translate("log.user") },
        { name: "channel", label: translate("log.channelId"), inputMode: "numeric" as const },
      ]
    : []),
];

/** Every row of the filter in one stream of the server's; what is written while it runs belongs to the next one. */
function exportCsv(query: Query, isAdmin: boolean): void {
  const parameters = logParameters(query, isAdmin);
  const end = Math.min(Number(parameters.end_timestamp), Math.floor(Date.now() / 1000));
  const asked = { ...parameters, end_timestamp: String(end) };
  import("./log/export.ts").then(({ exportLog }) => exportLog(isAdmin, asked), toastFailure);
}

/** The detail of a row, or the panel of a user: the address says which. */
function LogPanels({ rows, query, isAdmin }: { rows: readonly LogRow[]; query: Query; isAdmin: boolean }) {
  const at = rows.findIndex((row) => rowKeyOf(row, isAdmin) === query.id);
  const opened = rows[at];
  const userId = isAdmin ? numberOf(query.user, 0, 1) : 0;
  if (opened) {
    return (
      <LogDetail
        row={opened}
        isAdmin={isAdmin}
        onClose={() => setQuery({ id: undefined })}
        onStep={(by) => {
          const next = rows[at + by];
          if (next) setQuery({ id: rowKeyOf(next, isAdmin) }, { replace: true });
        }}
      />
    );
  }
  return userId > 0 ? (
    <UserPanel
      id={userId}
      name={rows.find((row) => row.user_id === userId)?.username ?? ""}
      onClose={() => setQuery({ user: undefined })}
      onLog={(username) => setQuery({ user: undefined, username, p: undefined })}
    />
  ) : null;
}

export default function LogScreen() {
  const t = useT();
  useSignals();
  const data = bootData<LogPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const range = rangeOf(query, nowMs.value, siteZone.value, DEFAULT_RANGE);
  const [isLive, setLive] = useState(false);
  const area = useRef<HTMLDivElement>(null);
  const logs = useLogs({
    data,
    table,
    isLive,
    onLiveEnd: () => setLive(false),
    isReading: () =>
      query.id !== undefined ||
      query.user !== undefined ||
      (area.current?.querySelector(".table-box")?.scrollTop ?? 0) > READING_PX,
  });
  const { list } = logs.screen;
  const [isClearing, setClearing] = useState(false);
  const toggleLive = () => {
    if (!isLive && page !== 1) table.setPage(1);
    setLive(!isLive);
  };
  useShortcut({ keys: "l", label: "log.live", run: toggleLive });
  const startExport = () => exportCsv(query, isAdmin);
  useCommand({ id: "do log export", kind: "do", title: t("table.exportCsv"), run: startExport });
  const request = () => ({
    path: isAdmin ? "/api/log/" : "/api/log/self",
    query: { ...logParameters(query, isAdmin), p: page, page_size: pageSize },
  });

  const trailQuery = () => {
    const { username, start_timestamp: from, end_timestamp: to } = logParameters(query, isAdmin);
    return { ...(username ? { username } : {}), start_timestamp: from, end_timestamp: to };
  };

  return (
    <ListScreen
      screen={logs.screen}
      columnsKey={KEYS.logColumns}
      header={{
        title: t("log.title"),
        action: <LiveButton isLive={isLive} onToggle={toggleLive} />,
        overflow: [
          [refreshItem(t, list.refresh), exportItem(t, startExport), curlItem(t, request)],
          isAdmin ? [trailItem(t, trailQuery), clearItem(t, () => setClearing(true))] : [],
        ],
      }}
      top={<LogTop stat={logs.stat} histogram={logs.histogram} isZoomed={range.preset === undefined} />}
      views={
        <ListViews
          list={logs.screen}
          label={t("log.typeTitle")}
          screen="log"
          builtIn={builtInViews()}
          fields={VIEW_FIELDS}
          columnsKey={KEYS.logColumns}
        />
      }
      filters={{
        searchName: "model_name",
        searchLabel: t("log.searchModel"),
        searchHint: t("log.searchHint"),
        fields: filterFields(isAdmin),
        children: <TimeRangeField range={range} onChange={(patch) => setQuery({ ...patch, p: undefined })} />,
      }}
      notices={
        logs.waiting > 0 ? (
          <button
            type="button"
            className="btn btn-sm btn-default mx-auto mb-2 flex text-primary"
            onClick={logs.showWaiting}
          >
            {t("log.waiting", { count: logs.waiting })}
          </button>
        ) : null
      }
      wrapTable={(rows) => (
        <div ref={area} className="log-table">
          {rows}
        </div>
      )}
      table={{
        columns: logColumns(t, isAdmin, (id) => setQuery({ user: id })),
        rowKey: (row) => rowKeyOf(row, isAdmin),
        rowName: (row) => `${row.model_name || t(typeKey(row.type))} ${row.id}`,
        openQuery: (row) => ({ id: rowKeyOf(row, isAdmin) }),
        rowMenu: (row) => rowMenu({ t, isAdmin, onFilter: table.setFilters }, row),
        fresh: { count: logs.freshCount, text: t("log.freshLine") },
        isQuiet: isLive,
        empty: { title: t("log.empty"), text: t("log.emptyText") },
      }}
    >
      <LogPanels rows={list.rows} query={query} isAdmin={isAdmin} />
      {isClearing ? (
        <LogClearing onClose={() => setClearing(false)} onCleared={() => void list.refresh()} />
      ) : null}
    </ListScreen>
  );
}
