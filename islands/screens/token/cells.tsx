// Columns of the API key table.
// Refuses to print keys: they are masked, and copied from here.
import { AUTO_GROUP } from "../../../src/shared/auto-group.ts";
import { formatDateTime, formatQuota, maskSecret } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import { Chip, ChipLine, Money, StatusDot, When } from "../../ui/badges.tsx";
import type { StatusTone } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { BudgetBar } from "../../ui/budget-bar.tsx";
import { stateOf } from "./row.ts";
import type { TokenRow } from "../../lib/wire.ts";

export const STATUS: Record<number, [StatusTone, string]> = {
  1: ["ok", "token.status.enabled"],
  2: ["off", "token.status.disabled"],
  3: ["attention", "token.status.expired"],
  4: ["attention", "token.status.exhausted"],
};

export function tokenColumns(t: Translate, nowMs: number): Column<TokenRow>[] {
  return [
    {
      id: "name",
      title: t("token.name"),
      isIdentity: true,
      card: "title",
      cell: (row) => row.name || `#${row.id}`,
    },
    {
      id: "status",
      title: t("token.statusTitle"),
      card: "badge",
      cell: (row) => {
        const state = stateOf(row, nowMs);
        const [tone, key] = STATUS[state] ?? ["off", "common.unknown"];
        return (
          <StatusDot tone={tone}>
            {t(state === 1 && row.model_limits_enabled ? "token.status.limited" : key)}
          </StatusDot>
        );
      },
    },
    {
      id: "key",
      title: t("token.key"),
      cell: (row) => (
        <span className="inline-flex items-center gap-1 mono">
          {`sk-${maskSecret(row.key)}`}
          <CopyButton text={`sk-${row.key}`} label={t("token.copyKey", { name: row.name })} />
        </span>
      ),
    },
    {
      id: "quota",
      title: t("token.remaining"),
      align: "end",
      card: "fact",
      cell: (row) => <QuotaBar row={row} unlimited={t("common.unlimited")} />,
    },
    {
      id: "budget",
      title: t("token.budget"),
      align: "end",
      from: 760,
      card: "line",
      cell: (row) =>
        row.budget_quota > 0 ? (
          <span title={t("token.budgetOpens", { at: formatDateTime(row.budget_resets_at * 1000) })}>
            <BudgetBar
              budget={row.budget_quota}
              used={row.budget_used}
              label={t("token.budgetOf", { name: row.name })}
              per={t(`form.limits.per.${row.budget_period}`)}
            />
          </span>
        ) : (
          <span className="text-muted">{t("token.noBudget")}</span>
        ),
    },
    {
      id: "group",
      title: t("token.group"),
      from: 1100,
      cell: (row) =>
        row.group === "" ? (
          <span className="text-muted">{t("token.groupOwn")}</span>
        ) : (
          <Chip>{row.group === AUTO_GROUP ? t("token.groupAuto") : row.group}</Chip>
        ),
    },
    {
      id: "models",
      title: t("token.models"),
      isElastic: true,
      from: 760,
      cell: (row) =>
        row.model_limits_enabled ? (
          <ChipLine names={row.model_limits.split(",").filter((name) => name !== "")} />
        ) : (
          <span className="text-muted">{t("common.all")}</span>
        ),
    },
    {
      id: "ips",
      title: t("token.ips"),
      isHiddenByDefault: true,
      cell: (row) =>
        row.allow_ips ? (
          <span className="mono">{row.allow_ips.split("\n").join(", ")}</span>
        ) : (
          <span className="text-muted">{t("common.all")}</span>
        ),
    },
    {
      id: "expires",
      title: t("token.expires"),
      from: 760,
      cell: (row) => <When at={row.expired_time} never={t("common.never")} isAbsolute />,
    },
    {
      id: "created",
      title: t("token.created"),
      isHiddenByDefault: true,
      cell: (row) => <When at={row.created_time} />,
    },
    {
      id: "accessed",
      title: t("token.accessed"),
      from: 1100,
      card: "line",
      cell: (row) => <When at={row.accessed_time} never={t("token.neverUsed")} />,
    },
  ];
}

function QuotaBar({ row, unlimited }: { row: TokenRow; unlimited: string }) {
  if (row.unlimited_quota) return <span className="text-muted">{unlimited}</span>;
  const total = row.remain_quota + row.used_quota;
  const share = total <= 0 ? 0 : Math.max(0, Math.min(1, row.remain_quota / total));
  const used = formatQuota(row.used_quota);
  return (
    <span
      className="latency inline-flex min-w-13 flex-col gap-0.75"
      data-tone={share > 0.2 ? "ok" : share > 0 ? "attention" : "broken"}
      title={`${used} / ${formatQuota(total)}`}
    >
      <Money quota={row.remain_quota} />
      <span className="thin-bar" aria-hidden>
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
