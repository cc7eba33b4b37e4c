// Columns of the task table.
// Refuses channels to ordinary users.
import type { Translate } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { TaskRow } from "../../lib/wire.ts";
import { Moment, StatusDot } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { ChannelTag, Elapsed, ProgressRing, Reason } from "../../ui/task-cells.tsx";
import { actionKey, statusLabel } from "./row.ts";

export function taskColumns(t: Translate, isAdmin: boolean): Column<TaskRow>[] {
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
      from: 1100,
      cell: (row) => (row.finish_time > 0 ? <Moment at={row.finish_time} /> : null),
    },
    {
      id: "progress",
      title: t("task.progress"),
      card: "fact",
      cell: (row) => <ProgressRing progress={row.progress} isFailed={row.status === "FAILURE"} />,
    },
    {
      id: "elapsed",
      title: t("task.elapsed"),
      align: "end",
      card: "fact",
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
            from: 760,
            cell: (row: TaskRow) => <ChannelTag id={row.channel_id} />,
          } satisfies Column<TaskRow>,
        ]
      : []),
    { id: "platform", title: t("task.platform"), from: 1100, cell: (row) => row.platform || null },
    {
      id: "action",
      title: t("task.actionTitle"),
      card: "line",
      cell: (row) => <span className="badge badge-ghost badge-sm">{t(actionKey(row.action))}</span>,
    },
    {
      id: "task",
      title: t("task.taskId"),
      from: 990,
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
        const [tone, key] = statusLabel(row.status);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    },
    {
      id: "fail",
      title: t("task.failReason"),
      isElastic: true,
      card: "line",
      cell: (row) => <Reason text={row.fail_reason} />,
    },
  ];
}
