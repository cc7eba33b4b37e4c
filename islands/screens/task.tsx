// The task log: creative tasks (songs, lyrics) with their state, refreshing by itself while something runs.
// Refuses to show channels to ordinary users.
import { bootData } from "../lib/boot.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useTableQuery } from "../lib/table-query.ts";
import { useTaskScreen } from "../lib/task-screen.ts";
import type { TimeRange } from "../lib/time-range.ts";
import { setQuery } from "../lib/url-state.ts";
import type { TaskRow } from "../lib/wire.ts";
import type { FilterField } from "../ui/filter-bar.tsx";
import { curlItem, refreshItem } from "../ui/list-menu.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { PeriodFilter } from "../ui/time-range.tsx";
import { taskColumns } from "./task/columns.tsx";
import type { TaskPageData } from "./task/row.ts";
import { actionKey, statusLabel, TASK_STATUSES } from "./task/row.ts";

const TaskDetail = lazyPart(() => import("./task/detail.tsx"));

/** Relative ranges have no end: what is submitted right now belongs to them. */
const periodOf = ({ from, to, preset }: TimeRange) => ({
  start_timestamp: String(from),
  end_timestamp: preset ? "" : String(to),
});

const filterFields = (isAdmin: boolean): FilterField[] => [
  ...(isAdmin
    ? [{ name: "channel_id", label: translate("task.channelId"), inputMode: "numeric" as const }]
    : []),
  {
    name: "status",
    label: translate("task.statusTitle"),
    choices: TASK_STATUSES.map((value) => ({ value, label: translate(statusLabel(value)[1]) })),
  },
  {
    name: "action",
    label: translate("task.actionTitle"),
    choices: ["MUSIC", "LYRICS"].map((value) => ({ value, label: translate(actionKey(value)) })),
  },
  { name: "platform", label: translate("task.platform") },
];

export default function TaskScreen() {
  const t = useT();
  const data = bootData<TaskPageData>();
  const { isAdmin } = data;
  const table = useTableQuery(data.pageSize);
  const { query } = table;
  const screen = useTaskScreen<TaskRow>({
    data,
    table,
    filters: {
      task_id: query.task_id ?? "",
      platform: query.platform ?? "",
      action: query.action ?? "",
      status: query.status ?? "",
      ...(isAdmin ? { channel_id: query.channel_id ?? "" } : {}),
    },
    path: isAdmin ? "/api/task/" : "/api/task/self",
    defaultRange: "today",
    periodOf,
  });
  const { list } = screen;
  const opened = list.rows.find((row) => String(row.id) === query.id);

  return (
    <ListScreen
      screen={screen}
      columnsKey="task-table-columns"
      header={{
        title: t("shell.nav.tasks"),
        overflow: [[refreshItem(t, list.refresh), curlItem(t, screen.request)]],
      }}
      filters={{
        searchName: "task_id",
        searchLabel: t("task.searchId"),
        fields: filterFields(isAdmin),
        children: <PeriodFilter range={screen.range} onQuery={list.refresh} />,
      }}
      table={{
        columns: taskColumns(t, isAdmin),
        rowKey: (row) => row.id,
        rowName: (row) => row.task_id || `#${row.id}`,
        openQuery: (row) => ({ id: row.id }),
        empty: { title: t("task.empty"), text: t("task.emptyText") },
      }}
    >
      {opened ? (
        <TaskDetail row={opened} isAdmin={isAdmin} onClose={() => setQuery({ id: undefined })} />
      ) : null}
    </ListScreen>
  );
}
