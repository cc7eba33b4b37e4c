// Columns of the drawing table.
// Refuses channels, submit codes and states to ordinary users.
import type { Translate } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { DrawingRow } from "../../lib/wire.ts";
import { Moment, StatusDot } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { ChannelTag, Elapsed, ProgressBar, Reason, ShortText } from "../../ui/task-cells.tsx";
import { actionKey, codeLabel, statusLabel } from "./row.ts";

export function drawingColumns(t: Translate, isAdmin: boolean): Column<DrawingRow>[] {
  const forAdmins = (column: Column<DrawingRow>) => (isAdmin ? [column] : []);
  return [
    {
      id: "submit",
      title: t("midjourney.submitted"),
      isIdentity: true,
      card: "title",
      cell: (row) => <Moment at={Math.floor(row.submit_time / 1000)} />,
    },
    {
      id: "elapsed",
      title: t("midjourney.elapsed"),
      align: "end",
      from: 760,
      card: "fact",
      cell: (row) =>
        row.finish_time > 0 ? <Elapsed fromMs={row.submit_time} toMs={row.finish_time} /> : null,
    },
    ...forAdmins({
      id: "channel",
      title: t("midjourney.channel"),
      from: 990,
      cell: (row) => <ChannelTag id={row.channel_id} />,
    }),
    {
      id: "action",
      title: t("midjourney.actionTitle"),
      ...(isAdmin ? { from: 760 } : { card: "badge" }),
      cell: (row) => <span className="badge badge-ghost badge-sm">{t(actionKey(row.action))}</span>,
    },
    {
      id: "task",
      title: t("midjourney.taskId"),
      from: isAdmin ? 1100 : 990,
      cell: (row) =>
        row.mj_id === "" ? null : (
          <span className="inline-flex items-center gap-1 mono">
            <ShortText text={row.mj_id} />
            <CopyButton text={row.mj_id} label={t("table.copyIdOf", { id: row.mj_id })} />
          </span>
        ),
    },
    ...forAdmins({
      id: "code",
      title: t("midjourney.submitResult"),
      from: 1280,
      cell: (row) => {
        const [tone, key] = codeLabel(row.code);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    }),
    ...forAdmins({
      id: "status",
      title: t("midjourney.statusTitle"),
      card: "badge",
      cell: (row) => {
        const [tone, key] = statusLabel(row.status);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    }),
    {
      id: "progress",
      title: t("midjourney.progress"),
      card: isAdmin ? "hidden" : "fact",
      cell: (row) => <ProgressBar progress={row.progress} isFailed={row.status === "FAILURE"} />,
    },
    {
      id: "image",
      title: t("midjourney.image"),
      cell: (row) => (row.image_url === "" ? null : <Thumbnail row={row} t={t} />),
    },
    {
      id: "prompt",
      title: t("midjourney.prompt"),
      isElastic: true,
      card: "line",
      cell: (row) => <ShortText text={row.prompt} />,
    },
    {
      id: "promptEn",
      title: t("midjourney.promptEn"),
      from: 1280,
      cell: (row) => <ShortText text={row.prompt_en} />,
      isHiddenByDefault: isAdmin,
    },
    {
      id: "fail",
      title: t("midjourney.failReason"),
      isElastic: true,
      card: "line",
      cell: (row) =>
        row.fail_reason === "" ? null : (
          <button
            type="button"
            className="block min-w-0 cursor-pointer text-left text-error"
            onClick={() => setQuery({ id: row.id })}
          >
            <Reason text={row.fail_reason} />
          </button>
        ),
    },
  ];
}

/** Opens the picture. */
function Thumbnail({ row, t }: { row: DrawingRow; t: Translate }) {
  return (
    <button
      type="button"
      className="block cursor-zoom-in pointer-coarse:inline-flex pointer-coarse:min-h-10 pointer-coarse:min-w-10 pointer-coarse:items-center"
      aria-label={t("midjourney.openImage", { id: row.mj_id || row.id })}
      onClick={() => setQuery({ image: row.id })}
    >
      <img
        src={row.image_url}
        alt=""
        loading="lazy"
        width={28}
        height={28}
        className="size-7 max-w-none rounded-sm bg-base-300 object-cover"
      />
    </button>
  );
}
