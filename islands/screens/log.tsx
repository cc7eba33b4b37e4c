// The usage log: figures and histogram of the filter, the table, and the detail that explains each charge.
// Refuses to filter on the page: every filter is the call's own, and stands in the address.
import { Copy, Download, FileTerminal, Filter, RotateCw } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useRef, useState } from "react";
import { address, bootData, nowMs, timeZone } from "../lib/boot.ts";
import { curlOf } from "../lib/curl.ts";
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { useCommand } from "../lib/commands.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { KEYS } from "../lib/storage.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { rangeOf, rangePatch } from "../lib/time-range.ts";
import { numberOf, patchUrl, setQuery } from "../lib/url-state.ts";
import { Money } from "../ui/badges.tsx";
import { copyText } from "../ui/copy-button.tsx";
import { ExportProgress, useCsvExport } from "../ui/csv-export.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import type { MenuGroups } from "../ui/menu.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { DataTable } from "../ui/table.tsx";
import { TimeRangeField } from "../ui/time-range.tsx";
import { ViewTabs } from "../ui/view-tabs.tsx";
import { logColumns } from "./log/cells.tsx";
import { Histogram } from "./log/histogram.tsx";
import type { LogPageData, LogRow } from "./log/row.ts";
import { LOG_TYPES, rowKeyOf, typeKey, VIEW_FIELDS } from "./log/row.ts";
import { askRows, DEFAULT_RANGE, filtersOf, periodOf, useLogs } from "./log/use-logs.ts";

const LogDetail = lazyPart(() => import("./log/detail.tsx"));
const UserPanel = lazyPart(() => import("./log/user-panel.tsx"));

/** Scrolled this far, somebody is reading below the newest rows. */
const READING_PX = 40;

export default function LogScreen() {
  const t = useT();
  useSignals();
  const data = bootData<LogPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const range = rangeOf(query, nowMs.value, timeZone.value, DEFAULT_RANGE);
  const [isLive, setLive] = useState(false);
  const area = useRef<HTMLDivElement>(null);
  const logs = useLogs({
    data,
    query,
    page,
    pageSize,
    isLive,
    onLiveEnd: () => setLive(false),
    isReading: () =>
      query.id !== undefined ||
      query.user !== undefined ||
      (area.current?.querySelector(".table-box")?.scrollTop ?? 0) > READING_PX,
  });
  const { list, stat } = logs;
  const filters = filtersOf(query, isAdmin);

  const toggleLive = () => {
    if (!isLive && page !== 1) table.setPage(1);
    setLive(!isLive);
  };
  useShortcut({ keys: "l", label: "log.live", run: toggleLive });

  const parameters = () => ({ ...filters, ...periodOf(query, Date.now()) });
  const csv = useCsvExport<LogRow>(async () => {
    // What is written while the export runs belongs to the next one.
    const now = Math.floor(Date.now() / 1000);
    const asked = parameters();
    const { exportTable } = await import("./log/export.ts");
    const fixed = { ...asked, end_timestamp: String(Math.min(Number(asked.end_timestamp), now)) };
    return {
      name: `usage-${fixed.start_timestamp}-${fixed.end_timestamp}`,
      ...exportTable(isAdmin),
      load: (at, signal) => askRows(isAdmin, fixed, at, 100, signal),
      rowKey: (row) => `${rowKeyOf(row, isAdmin)} ${row.request_id ?? ""} ${row.type}`,
    };
  });
  useCommand({ id: "do log export", kind: "do", title: t("table.export"), run: csv.start });

  const opened = list.rows.find((row) => rowKeyOf(row, isAdmin) === query.id);
  const at = opened ? list.rows.indexOf(opened) : -1;
  const userId = isAdmin ? numberOf(query.user, 0, 1) : 0;
  const isFiltered = Object.entries(filters).some(
    ([name, value]) => value !== "" && !(name === "type" && value === "0"),
  );
  const clearFilters = () =>
    table.setFilters(Object.fromEntries(Object.keys(filters).map((name) => [name, undefined])));
  const columns = logColumns(t, isAdmin, (id) => setQuery({ user: id }));

  return (
    <>
      <PageHeader
        title={t("log.title")}
        action={
          <button type="button" className="btn btn-default gap-2" aria-pressed={isLive} onClick={toggleLive}>
            <span
              className="status border-[1.5px] border-muted bg-transparent in-aria-pressed:border-success in-aria-pressed:bg-success"
              aria-hidden
            />
            {isLive ? t("log.liveOn") : t("log.live")}
          </button>
        }
        overflow={[
          [
            {
              id: "refresh",
              label: t("common.refresh"),
              icon: RotateCw,
              onSelect: () => void list.refresh(),
            },
            { id: "export", label: t("table.export"), icon: Download, onSelect: csv.start },
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () =>
                void copyText(
                  curlOf({
                    path: isAdmin ? "/api/log/" : "/api/log/self",
                    query: { ...parameters(), p: page, page_size: pageSize },
                  }),
                ),
            },
          ],
        ]}
      />
      <div className="lg:grid lg:grid-cols-[auto_minmax(0,1fr)] lg:gap-x-10">
        <dl className="figure-row">
          <Figure label={t("log.spend")} value={<Money quota={stat.quota} />} />
          <Figure label="RPM" title={t("log.rpm")} value={formatNumber(stat.rpm)} />
          <Figure label="TPM" title={t("log.tpm")} value={formatNumber(stat.tpm)} />
        </dl>
        <Histogram
          data={logs.histogram}
          onZoom={(chosen) => setQuery({ ...rangePatch(chosen), p: undefined })}
          onReset={
            range.preset === undefined
              ? () => setQuery({ ...rangePatch(DEFAULT_RANGE), range: undefined, p: undefined })
              : undefined
          }
        />
      </div>
      <ViewTabs
        label={t("log.typeTitle")}
        screen="log"
        builtIn={LOG_TYPES.map(([id, key]) => ({
          id: String(id),
          label: t(key),
          query: (id === 0 ? {} : { type: String(id) }) as Record<string, string>,
        }))}
        fields={VIEW_FIELDS}
        query={query}
        onOpen={table.setFilters}
        columnsKey={KEYS.logColumns}
      />
      <FilterBar
        searchName="model_name"
        searchLabel={t("log.searchModel")}
        searchHint={t("log.searchHint")}
        fields={[
          { name: "token_name", label: t("log.key") },
          { name: "group", label: t("log.group") },
          ...(isAdmin
            ? [
                { name: "username", label: t("log.user") },
                { name: "channel", label: t("log.channelId"), inputMode: "numeric" as const },
              ]
            : []),
        ]}
        query={query}
        onChange={table.setFilters}
      >
        <TimeRangeField range={range} onChange={(patch) => setQuery({ ...patch, p: undefined })} />
      </FilterBar>
      <ExportProgress {...csv} />
      {logs.waiting > 0 ? (
        <button
          type="button"
          className="btn btn-sm btn-default mx-auto mb-2 flex text-primary"
          onClick={logs.showWaiting}
        >
          {t("log.waiting", { count: logs.waiting })}
        </button>
      ) : null}
      <div ref={area} className="log-table">
        <DataTable
          label={t("log.title")}
          columns={columns}
          list={list}
          rowKey={(row) => rowKeyOf(row, isAdmin)}
          rowName={(row) => `${row.model_name || t(typeKey(row.type))} ${row.id}`}
          rowHref={(row) => patchUrl(address.peek(), { id: rowKeyOf(row, isAdmin) })}
          onOpen={(row) => setQuery({ id: rowKeyOf(row, isAdmin) })}
          rowMenu={(row) => logMenu(t, row, isAdmin, table.setFilters)}
          columnsKey={KEYS.logColumns}
          fresh={{ count: logs.freshCount, text: t("log.freshLine") }}
          isQuiet={isLive}
          page={page}
          pageSize={pageSize}
          onPage={table.setPage}
          onPageSize={table.setPageSize}
          isFiltered={isFiltered}
          onClearFilters={clearFilters}
          empty={{ title: t("log.empty"), text: t("log.emptyText") }}
        />
      </div>
      {opened ? (
        <LogDetail
          row={opened}
          isAdmin={isAdmin}
          onClose={() => setQuery({ id: undefined })}
          onStep={(by) => {
            const next = list.rows[at + by];
            if (next) setQuery({ id: rowKeyOf(next, isAdmin) }, { replace: true });
          }}
        />
      ) : null}
      {userId > 0 && !opened ? (
        <UserPanel
          id={userId}
          name={list.rows.find((row) => row.user_id === userId)?.username ?? ""}
          onClose={() => setQuery({ user: undefined })}
          onLog={(username) => setQuery({ user: undefined, username, p: undefined })}
        />
      ) : null}
    </>
  );
}

/** Narrows the list to what a row has, and copies its request id. */
function logMenu(
  t: Translate,
  row: LogRow,
  isAdmin: boolean,
  onFilter: (patch: Record<string, string | undefined>) => void,
): MenuGroups {
  const only = (name: string, value: string, label: string) =>
    value === ""
      ? []
      : [
          {
            id: name,
            label: t("log.only", { value: label }),
            icon: Filter,
            onSelect: () => onFilter({ [name]: value }),
          },
        ];
  return [
    [
      ...only("model_name", row.model_name, row.model_name),
      ...only("token_name", row.token_name, row.token_name),
      ...(isAdmin ? only("username", row.username, row.username) : []),
      ...(isAdmin && row.channel > 0
        ? only("channel", String(row.channel), `${t("log.channel")} ${row.channel}`)
        : []),
    ],
    row.request_id
      ? [
          {
            id: "request",
            label: t("log.copyRequestId"),
            icon: Copy,
            onSelect: () => void copyText(row.request_id ?? ""),
          },
        ]
      : [],
  ];
}

function Figure({ label, value, title }: { label: string; value: React.ReactNode; title?: string }) {
  return (
    <div className="figure" title={title}>
      <dt>{label}</dt>
      <dd className="tabular-nums">{value}</dd>
    </div>
  );
}
