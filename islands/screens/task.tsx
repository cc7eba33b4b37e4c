// The task log: creative tasks (songs, lyrics) with their state, refreshing by itself while something runs.
// Refuses to show channels to ordinary users.
import { useSignals } from "@preact/signals-react/runtime";
import { FileTerminal, RotateCw } from "lucide-react";
import { address, bootData, nowMs, timeZone } from "../lib/boot.ts";
import { curlOf } from "../lib/curl.ts";
import { useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { askTasks, useTaskList } from "../lib/task-list.ts";
import { useTableQuery } from "../lib/table-query.ts";
import { rangeOf } from "../lib/time-range.ts";
import { patchUrl, setQuery } from "../lib/url-state.ts";
import { Moment, StatusDot } from "../ui/badges.tsx";
import { copyText, CopyButton } from "../ui/copy-button.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import type { Column } from "../ui/table-columns.ts";
import { DataTable } from "../ui/table.tsx";
import { ChannelTag, Elapsed, ProgressRing, ShortText } from "../ui/task-cells.tsx";
import { TimeRangeField } from "../ui/time-range.tsx";
import type { TaskPageData, TaskRow } from "./task/row.ts";
import { actionKey, statusWord, TASK_STATUSES } from "./task/row.ts";

const TaskDetail = lazyPart(() => import("./task/detail.tsx"));

export default function TaskScreen() {
  const t = useT();
  useSignals();
  const data = bootData<TaskPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query, page, pageSize } = table;
  const range = rangeOf(query, nowMs.value, timeZone.value, "today");
  const filters = {
    task_id: query.task_id ?? "",
    platform: query.platform ?? "",
    action: query.action ?? "",
    status: query.status ?? "",
    ...(isAdmin ? { channel_id: query.channel_id ?? "" } : {}),
  };
  const path = isAdmin ? "/api/task/" : "/api/task/self";
  const parameters = () => {
    const asked = rangeOf(query, Date.now(), timeZone.peek(), "today");
    return {
      ...filters,
      start_timestamp: String(asked.from),
      // Relative ranges have no end: what is submitted right now belongs to them.
      end_timestamp: asked.preset ? "" : String(asked.to),
      p: String(page),
      page_size: String(pageSize),
    };
  };
  const list = useTaskList<TaskRow>({
    initial: data,
    question: JSON.stringify([
      filters,
      query.range,
      query.start_timestamp,
      query.end_timestamp,
      page,
      pageSize,
    ]),
    load: (signal) => askTasks<TaskRow>(path, parameters(), signal),
  });
  const opened = list.rows.find((row) => String(row.id) === query.id);
  const isFiltered = Object.values(filters).some((value) => value !== "");

  return (
    <>
      <PageHeader
        title={t("shell.nav.tasks")}
        overflow={[
          [
            {
              id: "refresh",
              label: t("common.refresh"),
              icon: RotateCw,
              onSelect: () => void list.refresh(),
            },
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () => void copyText(curlOf({ path, query: parameters() })),
            },
          ],
        ]}
      />
      <FilterBar
        searchName="task_id"
        searchLabel={t("task.searchId")}
        fields={[
          ...(isAdmin
            ? [{ name: "channel_id", label: t("task.channelId"), inputMode: "numeric" as const }]
            : []),
          {
            name: "status",
            label: t("task.statusTitle"),
            choices: TASK_STATUSES.map((value) => ({ value, label: t(statusWord(value)[1]) })),
          },
          {
            name: "action",
            label: t("task.actionTitle"),
            choices: ["MUSIC", "LYRICS"].map((value) => ({ value, label: t(actionKey(value)) })),
          },
          { name: "platform", label: t("task.platform") },
        ]}
        query={query}
        onChange={table.setFilters}
      >
        <TimeRangeField range={range} onChange={(patch) => setQuery({ ...patch, p: undefined })} />
        <button type="button" className="btn btn-sm btn-default" onClick={() => void list.refresh()}>
          {t("table.query")}
        </button>
      </FilterBar>
      <DataTable
        label={t("shell.nav.tasks")}
        columns={taskColumns(t, isAdmin)}
        list={list}
        rowKey={(row) => row.id}
        rowName={(row) => row.task_id || `#${row.id}`}
        rowHref={(row) => patchUrl(address.peek(), { id: row.id })}
        onOpen={(row) => setQuery({ id: row.id })}
        columnsKey="task-table-columns"
        page={page}
        pageSize={pageSize}
        onPage={table.setPage}
        onPageSize={table.setPageSize}
        isFiltered={isFiltered}
        onClearFilters={() =>
          table.setFilters(Object.fromEntries(Object.keys(filters).map((name) => [name, undefined])))
        }
        empty={{ title: t("task.empty"), text: t("task.emptyText") }}
      />
      {opened ? (
        <TaskDetail row={opened} isAdmin={isAdmin} onClose={() => setQuery({ id: undefined })} />
      ) : null}
    </>
  );
}

function taskColumns(t: Translate, isAdmin: boolean): Column<TaskRow>[] {
  return [
    {
      id: "submit",
      title: t("task.submitted"),
      isIdentity: true,
      card: "title",
      cell: (row) => <Moment at={row.submit_time} />,
    },
    {
      id: "finish",
      title: t("task.finished"),
      cell: (row) => (row.finish_time > 0 ? <Moment at={row.finish_time} /> : null),
    },
    {
      id: "progress",
      title: t("task.progress"),
      cell: (row) => <ProgressRing progress={row.progress} isFailed={row.status === "FAILURE"} />,
    },
    {
      id: "elapsed",
      title: t("task.elapsed"),
      align: "end",
      cell: (row) =>
        row.finish_time > 0 ? (
          <Elapsed fromMs={row.submit_time * 1000} toMs={row.finish_time * 1000} />
        ) : null,
    },
    ...(isAdmin
      ? [
          {
            id: "channel",
            title: t("task.channel"),
            cell: (row: TaskRow) => <ChannelTag id={row.channel_id} />,
          } satisfies Column<TaskRow>,
        ]
      : []),
    { id: "platform", title: t("task.platform"), cell: (row) => row.platform || null },
    {
      id: "action",
      title: t("task.actionTitle"),
      cell: (row) => <span className="badge badge-ghost badge-sm">{t(actionKey(row.action))}</span>,
    },
    {
      id: "task",
      title: t("task.taskId"),
      cell: (row) =>
        row.task_id === "" ? null : (
          <span className="inline-flex items-center gap-1 mono">
            <button
              type="button"
              className="inline-block max-w-[22ch] truncate align-bottom"
              title={t("task.showJson")}
              onClick={() => setQuery({ id: row.id })}
            >
              {row.task_id}
            </button>
            <CopyButton text={row.task_id} label={t("table.copyIdOf", { id: row.task_id })} />
          </span>
        ),
    },
    {
      id: "status",
      title: t("task.statusTitle"),
      card: "badge",
      cell: (row) => {
        const [tone, key] = statusWord(row.status);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    },
    {
      id: "fail",
      title: t("task.failReason"),
      cell: (row) => <ShortText text={row.fail_reason} />,
    },
  ];
}
