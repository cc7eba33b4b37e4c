// The usage log: figures of the filter, the table, and the detail that explains each charge.
// Refuses to filter on the page: every filter is the call's own, and stands in the address.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef, useState } from "react";
import { api, callWhole, call } from "../lib/api.ts";
import { bootData, nowMs, timeZone } from "../lib/boot.ts";
import { formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useList } from "../lib/list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { rangeOf } from "../lib/time-range.ts";
import { setQuery } from "../lib/url-state.ts";
import { Chip, Latency, Money, StatusDot, When } from "../ui/badges.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader, TabLinks } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { TimeRangeField } from "../ui/time-range.tsx";
import type { LogPageData, LogRow, LogStat } from "./log/row.ts";
import { FIRST_TOKEN_MS, LOG_TYPES, otherOf, typeKey, WHOLE_MS } from "./log/row.ts";

const LogDetail = lazyPart(() => import("./log/detail.tsx"));

const LIVE_MS = 5000;

export default function LogScreen() {
  const t = useT();
  useSignals();
  const data = bootData<LogPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const range = rangeOf(query, nowMs.value, timeZone.value, "7d");
  const [stat, setStat] = useState<LogStat>(data.stat);
  const [isLive, setLive] = useState(false);

  const filters = {
    type: query.type ?? "0",
    token_name: query.token_name ?? "",
    model_name: query.model_name ?? "",
    group: query.group ?? "",
    ...(isAdmin ? { username: query.username ?? "", channel: query.channel ?? "" } : {}),
  };
  const list = useList<LogRow>({
    initial: data,
    question: JSON.stringify([
      filters,
      query.range,
      query.start_timestamp,
      query.end_timestamp,
      page,
      pageSize,
    ]),
    async load() {
      const asked = rangeOf(query, Date.now(), timeZone.peek(), "7d");
      const period = {
        start_timestamp: String(asked.from),
        // Relative ranges end now; a little ahead, so that a fast call right now is in.
        end_timestamp: String(asked.preset ? asked.to + 60 : asked.to),
      };
      const parameters = { ...filters, ...period };
      const paging = { p: String(page), page_size: String(pageSize) };
      const [whole, figures] = await Promise.all([
        isAdmin
          ? callWhole(api.log.get({ query: { ...parameters, ...paging } }))
          : callWhole(api.log.self.get({ query: { ...parameters, ...paging } })),
        isAdmin
          ? call(api.log.stat.get({ query: parameters }))
          : call(api.log.self.stat.get({ query: parameters })),
      ]);
      setStat(figures as LogStat);
      const { items, total } = (whole as { data: { items: LogRow[]; total: number } }).data;
      return { rows: items, total };
    },
  });
  const { refresh } = list;
  const latest = useRef(refresh);
  latest.current = refresh;
  useEffect(() => {
    if (!isLive) return undefined;
    const timer = setInterval(() => void latest.current(), LIVE_MS);
    return () => clearInterval(timer);
  }, [isLive]);
  useShortcut({ keys: "l", label: "log.live", run: () => setLive((on) => !on) });

  const opened = list.rows.find((row) => String(row.id) === query.id);
  const at = opened ? list.rows.indexOf(opened) : -1;
  const isFiltered = Object.entries(filters).some(
    ([name, value]) => value !== "" && !(name === "type" && value === "0"),
  );

  const columns: Column<LogRow>[] = [
    {
      id: "time",
      title: t("log.time"),
      isIdentity: true,
      card: "title",
      cell: (row) => <When at={row.created_at} isAbsolute />,
    },
    {
      id: "type",
      title: t("log.typeTitle"),
      card: "badge",
      cell: (row) => <TypeWord row={row} text={t(typeKey(row.type))} />,
    },
    ...(isAdmin
      ? [
          {
            id: "user",
            title: t("log.user"),
            cell: (row: LogRow) => row.username || "–",
          } satisfies Column<LogRow>,
        ]
      : []),
    { id: "key", title: t("log.key"), cell: (row) => row.token_name || "–" },
    { id: "model", title: t("log.model"), cell: (row) => <ModelCell row={row} /> },
    ...(isAdmin
      ? [
          {
            id: "channel",
            title: t("log.channel"),
            cell: (row: LogRow) => <ChannelCell row={row} />,
          } satisfies Column<LogRow>,
        ]
      : []),
    { id: "group", title: t("log.group"), cell: (row) => (row.group ? <Chip>{row.group}</Chip> : "–") },
    {
      id: "duration",
      title: t("log.duration"),
      align: "end",
      cell: (row) =>
        row.type === 2 ? <Timing row={row} streamed={t("log.stream")} whole={t("log.notStream")} /> : "–",
    },
    {
      id: "in",
      title: t("log.tokensIn"),
      align: "end",
      cell: (row) => (row.type === 2 ? <TokensIn row={row} cached={t("log.cached")} /> : "–"),
    },
    {
      id: "out",
      title: t("log.tokensOut"),
      align: "end",
      cell: (row) => (row.type === 2 ? formatNumber(row.completion_tokens) : "–"),
    },
    {
      id: "cost",
      title: t("log.cost"),
      align: "end",
      cell: (row) => (row.quota !== 0 || row.type === 2 ? <Money quota={row.quota} /> : "–"),
    },
    {
      id: "content",
      title: t("log.content"),
      isHiddenByDefault: true,
      cell: (row) => <span title={row.content}>{row.content}</span>,
    },
  ];

  return (
    <>
      <PageHeader
        title={t("log.title")}
        action={
          <button
            type="button"
            className="btn btn-default"
            aria-pressed={isLive}
            onClick={() => setLive(!isLive)}
          >
            {isLive ? t("log.liveOn") : t("log.live")}
          </button>
        }
      />
      <dl className="figure-row">
        <Figure label={t("log.spend")} value={<Money quota={stat.quota} />} />
        <Figure label="RPM" value={formatNumber(stat.rpm)} />
        <Figure label="TPM" value={formatNumber(stat.tpm)} />
      </dl>
      <TabLinks
        label={t("log.typeTitle")}
        tabs={LOG_TYPES.map(([id, key]) => ({
          id: String(id),
          label: t(key),
          href: id === 0 ? "/log" : `/log?type=${id}`,
        }))}
        current={filters.type}
        onOpen={(id) => table.setFilters({ type: id === "0" ? undefined : id })}
      />
      <FilterBar
        searchName="model_name"
        searchLabel={t("log.searchModel")}
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
      <DataTable
        label={t("log.title")}
        columns={columns}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => `${row.model_name || t(typeKey(row.type))} ${row.id}`}
        rowHref={(row) => `/log?id=${row.id}`}
        onOpen={(row) => setQuery({ id: row.id })}
        columnsKey="logs-table-columns"
        page={page}
        pageSize={pageSize}
        onPage={table.setPage}
        onPageSize={table.setPageSize}
        isFiltered={isFiltered}
        onClearFilters={() =>
          table.setFilters({
            type: undefined,
            token_name: undefined,
            model_name: undefined,
            group: undefined,
            username: undefined,
            channel: undefined,
          })
        }
        empty={{ title: t("log.empty"), text: t("log.emptyText") }}
      />
      {opened ? (
        <LogDetail
          key={opened.id}
          row={opened}
          isAdmin={isAdmin}
          onClose={() => setQuery({ id: undefined })}
          onStep={(by) => {
            const next = list.rows[at + by];
            if (next) setQuery({ id: next.id }, { replace: true });
          }}
        />
      ) : null}
    </>
  );
}

function Figure({ label, value }: { label: string; value: React.ReactNode }) {
  return (
    <div className="figure">
      <dt>{label}</dt>
      <dd className="tabular-nums">{value}</dd>
    </div>
  );
}

function TypeWord({ row, text }: { row: LogRow; text: string }) {
  const tone = row.type === 5 ? "broken" : row.type === 2 ? "ok" : row.type === 1 ? "running" : "off";
  return <StatusDot tone={tone}>{text}</StatusDot>;
}

function ModelCell({ row }: { row: LogRow }) {
  const other = otherOf(row);
  if (row.model_name === "") return <>–</>;
  return (
    <span className="mono whitespace-nowrap">
      {row.model_name}
      {other.is_model_mapped && other.upstream_model_name ? (
        <span className="text-muted"> → {other.upstream_model_name}</span>
      ) : null}
    </span>
  );
}

function ChannelCell({ row }: { row: LogRow }) {
  const chain = otherOf(row).admin_info?.use_channel ?? [];
  if (row.channel === 0) return <>–</>;
  const text = chain.length > 1 ? chain.join(" → ") : String(row.channel);
  return (
    <span title={row.channel_name}>
      <Chip>{text}</Chip> <span className="text-muted">{row.channel_name}</span>
    </span>
  );
}

function Timing({ row, streamed, whole }: { row: LogRow; streamed: string; whole: string }) {
  const first = otherOf(row).frt ?? -1;
  return (
    <span className="inline-flex items-center justify-end gap-2" title={row.is_stream ? streamed : whole}>
      {row.is_stream && first >= 0 ? <Latency ms={first} thresholdsMs={FIRST_TOKEN_MS} /> : null}
      <Latency ms={row.use_time_ms} thresholdsMs={WHOLE_MS} />
    </span>
  );
}

function TokensIn({ row, cached }: { row: LogRow; cached: string }) {
  const cache = otherOf(row).cache_tokens ?? 0;
  return (
    <span className="tabular-nums">
      {formatNumber(row.prompt_tokens)}
      {cache > 0 ? (
        <span className="text-muted block text-xs">{`${cached} ${formatNumber(cache)}`}</span>
      ) : null}
    </span>
  );
}
