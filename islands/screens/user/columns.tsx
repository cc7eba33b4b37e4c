// Columns of the user table.
import { Flag } from "lucide-react";
import { quotaText } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { UserRow } from "../../lib/wire.ts";
import { Chip, Count, Money, StatusDot, When } from "../../ui/badges.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { DISABLED, ENABLED, rankKey } from "./row.ts";

export function userColumns(t: Translate): Column<UserRow>[] {
  return [
    {
      id: "name",
      title: t("user.name"),
      isIdentity: true,
      card: "title",
      cell: (row) => (
        <span className="inline-flex flex-col min-w-0">
          <span className={row.DeletedAt === null ? "line-clamp-2" : "line-clamp-2 line-through"}>
            {row.username}
          </span>
          <span className="cell-sub truncate max-sm:hidden">
            #{row.id}
            {row.email === "" ? "" : ` · ${row.email}`}
          </span>
          <Notes row={row} t={t} />
        </span>
      ),
    },
    {
      id: "status",
      title: t("user.status"),
      card: "badge",
      cell: (row) => {
        if (row.DeletedAt !== null) return <StatusDot tone="off">{t("user.deleted")}</StatusDot>;
        if (row.status === ENABLED) return <StatusDot tone="ok">{t("user.status.enabled")}</StatusDot>;
        return row.status === DISABLED ? (
          <StatusDot tone="broken">{t("user.status.disabled")}</StatusDot>
        ) : (
          <StatusDot tone="off">{t("user.status.locked")}</StatusDot>
        );
      },
    },
    { id: "group", title: t("user.group"), card: "line", cell: (row) => <Chip>{row.group}</Chip> },
    { id: "role", title: t("user.role"), from: 760, cell: (row) => t(rankKey(row.role)) },
    {
      id: "quota",
      isSortable: true,
      title: t("user.quotaUsed"),
      align: "end",
      card: "fact",
      cell: (row) => (
        <span className="inline-flex flex-col items-end max-sm:flex-row max-sm:items-baseline max-sm:gap-2">
          <Money quota={row.quota} />
          <UsedQuota quota={row.used_quota} t={t} />
        </span>
      ),
    },
    {
      id: "requests",
      isSortable: true,
      from: 760,
      title: t("user.requests"),
      align: "end",
      cell: (row) => <Count value={row.request_count} />,
    },
    {
      id: "seen",
      isSortable: true,
      title: t("user.seen"),
      card: "line",
      cell: (row) => <When at={row.last_seen_at} never={t("user.neverSeen")} />,
    },
    {
      id: "inviter",
      from: 990,
      title: t("user.inviter"),
      cell: (row) =>
        row.inviter_id > 0 ? (
          <a className="link" href={`/user?keyword=${row.inviter_id}`}>
            #{row.inviter_id}
          </a>
        ) : (
          <span className="text-muted">{t("common.none")}</span>
        ),
    },
  ];
}

/** What administrators note: a mark with its word, and the remark, cut. */
function Notes({ row, t }: { row: UserRow; t: Translate }) {
  if (!row.flagged && row.remark === "") return null;
  return (
    <span className="cell-sub flex max-w-72 items-center gap-1.5" title={row.remark || undefined}>
      {row.flagged ? (
        <span className="inline-flex flex-none items-center gap-1 text-warning">
          <Flag aria-hidden size={12} />
          {t("user.flagged")}
        </span>
      ) : null}
      <span className="truncate">{row.remark}</span>
    </span>
  );
}

function UsedQuota({ quota, t }: { quota: number; t: Translate }) {
  const { text, exact } = quotaText(quota);
  return (
    <span className="cell-sub" title={exact}>
      {t("user.usedOf", { amount: text })}
    </span>
  );
}
