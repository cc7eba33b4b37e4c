// Columns of the redemption code table, and the cells of its export.
// Refuses to print codes: they are masked, and copied from here.
import { nowMs } from "../../lib/boot.ts";
import type { CsvCell } from "../../lib/csv.ts";
import { formatDateTime, maskSecret } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import { patchUrl } from "../../lib/url-state.ts";
import type { CodeRow } from "../../lib/wire.ts";
import { Money, StatusDot, When } from "../../ui/badges.tsx";
import type { StatusTone } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { dollarsText } from "../../ui/money-field.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { isExpired, STATUS } from "./row.ts";

export function codeColumns(t: Translate): Column<CodeRow>[] {
  return [
    { id: "name", title: t("redemption.name"), isIdentity: true, card: "title", cell: (row) => row.name },
    {
      id: "key",
      title: t("redemption.code"),
      cell: (row) => (
        <span className="inline-flex items-center gap-1 mono">
          {maskSecret(row.key)}
          <CopyButton text={row.key} label={t("redemption.copyNamed", { name: row.name })} />
        </span>
      ),
    },
    {
      id: "status",
      title: t("redemption.statusTitle"),
      card: "badge",
      cell: (row) => {
        const [tone, key]: readonly [StatusTone, string] = isExpired(row, nowMs.value / 1000)
          ? ["attention", "redemption.expired"]
          : (STATUS[row.status] ?? ["off", "common.unknown"]);
        return <StatusDot tone={tone}>{t(key)}</StatusDot>;
      },
    },
    {
      id: "quota",
      title: t("redemption.value"),
      align: "end",
      card: "fact",
      cell: (row) => <Money quota={row.quota} />,
    },
    {
      id: "expires",
      title: t("redemption.expires"),
      from: 760,
      cell: (row) => <When at={row.expired_time} never={t("common.never")} isAbsolute />,
    },
    {
      id: "created",
      title: t("redemption.createdAt"),
      from: 760,
      cell: (row) => <When at={row.created_time} />,
    },
    {
      id: "used",
      title: t("redemption.usedBy"),
      isElastic: true,
      card: "line",
      cell: (row) =>
        row.used_user_id > 0 ? (
          <span className="flex gap-x-2 whitespace-nowrap">
            <a
              className="link truncate"
              href={patchUrl("/user", { keyword: row.used_user_id, edit: row.used_user_id })}
            >
              {row.used_username || `#${row.used_user_id}`}
            </a>
            <span className="text-muted">
              <When at={row.redeemed_time} />
            </span>
          </span>
        ) : (
          <span className="text-muted">{t("common.none")}</span>
        ),
    },
  ];
}

/** Heads and cells of the export, in the same order. */
export function csvColumns(t: Translate): { heads: string[]; cells: (row: CodeRow) => CsvCell[] } {
  return {
    heads: [
      t("redemption.code"),
      t("redemption.name"),
      t("redemption.statusTitle"),
      t("redemption.csvDollars"),
      t("redemption.csvQuota"),
      t("redemption.createdAt"),
      t("redemption.usedBy"),
      t("redemption.usedAt"),
      t("redemption.csvExpires"),
    ],
    cells: (row) => [
      row.key,
      row.name,
      t(STATUS[row.status]?.[1] ?? "common.unknown"),
      dollarsText(row.quota),
      row.quota,
      formatDateTime(row.created_time * 1000),
      row.used_username,
      row.redeemed_time > 0 ? formatDateTime(row.redeemed_time * 1000) : "",
      row.expired_time > 0 ? formatDateTime(row.expired_time * 1000) : "",
    ],
  };
}
