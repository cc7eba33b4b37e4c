// The dashboard's bars as a table of numbers for spreadsheets.
// Refuses rounding: twelve decimals hold every unit of quota.
import { csvText } from "../../lib/csv.ts";
import { formatDateTime } from "../../lib/format.ts";
import type { Translate } from "../../lib/i18n.ts";
import { othersOf } from "./data.ts";
import { labelOf } from "./sentences.ts";
import type { UsageSummary } from "../../lib/wire.ts";

export function tableOf(
  t: Translate,
  use: UsageSummary,
  perUnit: number,
  zone: string,
): { name: string; text: string } {
  const { figure } = use;
  const others = othersOf(use);
  const cell = (value = 0) => (figure === "quota" ? Number((value / perUnit).toFixed(12)) : value);
  const heads = [
    `${t("chart.time")} (${zone})`,
    `${t("chart.total")} · ${t(`detail.measure.${figure}`)}${figure === "quota" ? " (USD)" : ""}`,
    ...use.series.map((series) => labelOf(t, use, series)),
    t("detail.other", { count: use.otherSize }),
    t("detail.errors"),
  ];
  const rows = use.at.map((at, bar) => [
    formatDateTime(at * 1000, zone),
    cell(use.lines[figure][bar]),
    ...use.series.map(({ values }) => cell(values[bar])),
    cell(others[bar]),
    use.errors[bar],
  ]);
  return { name: `usage-by-${use.by}-${use.from}-${use.to}.csv`, text: csvText(heads, rows) };
}
