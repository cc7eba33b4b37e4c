// The usage log as a table of texts and numbers for spreadsheets.
// Refuses what only administrators may see to everybody else.
import { status, timeZone } from "../../lib/boot.ts";
import { formatDateTime } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import type { CsvCell } from "../../lib/csv.ts";
import { CONSUME, ERROR, keyNameOf, otherOf, textOf, typeKey } from "./row.ts";
import type { LogRow } from "../../lib/wire.ts";

interface ExportColumn {
  title: string;
  isAdminOnly?: boolean;
  cell: (row: LogRow) => CsvCell;
}

function columns(): ExportColumn[] {
  const perUnit = status.peek().quota_per_unit || 500_000;
  const zone = timeZone.peek();
  const isCall = (row: LogRow) => row.type === CONSUME || row.type === ERROR;
  return [
    { title: `${t("log.time")} (${zone})`, cell: (row) => formatDateTime(row.created_at * 1000, zone) },
    { title: t("log.typeTitle"), cell: (row) => t(typeKey(row.type)) },
    { title: t("log.user"), isAdminOnly: true, cell: (row) => row.username },
    { title: t("log.key"), cell: (row) => keyNameOf(t, row) },
    { title: t("log.model"), cell: (row) => row.model_name },
    { title: t("log.mapped"), cell: (row) => otherOf(row).upstream_model_name },
    { title: t("log.channelId"), isAdminOnly: true, cell: (row) => (row.channel > 0 ? row.channel : "") },
    { title: t("log.channel"), isAdminOnly: true, cell: (row) => row.channel_name },
    { title: t("log.group"), cell: (row) => row.group },
    {
      title: t("log.stream"),
      cell: (row) => (isCall(row) ? t(row.is_stream ? "common.yes" : "common.no") : ""),
    },
    { title: `${t("log.duration")} (ms)`, cell: (row) => (isCall(row) ? row.use_time_ms : "") },
    {
      title: `${t("log.firstToken")} (ms)`,
      cell: (row) => {
        const first = otherOf(row).frt ?? -1;
        return first >= 0 ? first : "";
      },
    },
    { title: t("log.tokensIn"), cell: (row) => row.prompt_tokens },
    { title: t("log.cached"), cell: (row) => otherOf(row).cache_tokens ?? 0 },
    { title: t("log.tokensOut"), cell: (row) => row.completion_tokens },
    // Twelve decimals hold every unit of quota exactly; the sum of the column is the sum of the charges.
    { title: `${t("log.costTitle")} (USD)`, cell: (row) => Number((row.quota / perUnit).toFixed(12)) },
    { title: t("log.quota"), cell: (row) => row.quota },
    { title: t("log.requestId"), cell: (row) => row.request_id },
    { title: t("log.content"), cell: (row) => textOf(row) },
  ];
}

export function exportTable(isAdmin: boolean): { heads: string[]; cells: (row: LogRow) => CsvCell[] } {
  const own = columns().filter((column) => isAdmin || !column.isAdminOnly);
  return { heads: own.map(({ title }) => title), cells: (row) => own.map(({ cell }) => cell(row)) };
}
