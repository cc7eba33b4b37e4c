// Below the main chart: failed requests and response times of the same bars, with the same cursor.
// Refuses a clock of its own: what is pointed at above is pointed at here.
import { ArrowRight } from "lucide-react";
import type { ChartCursor } from "../../lib/chart-cursor.ts";
import { shareText, sumOf } from "../../lib/chart.ts";
import type { TimeAxis } from "../../lib/chart.ts";
import { formatCompact, formatDuration, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { BarChart } from "../../ui/chart-bars.tsx";
import { speedText } from "./sentences.ts";
import type { UsageSummary } from "../../lib/wire.ts";

const PLOT = 96;

export interface SideChartsProps {
  use: UsageSummary;
  axis: TimeAxis;
  cursor: ChartCursor;
  /** The log of the failures that are shown or pointed at. */
  errorHref: string;
}

export function SideCharts({ use, axis, cursor, errorHref }: SideChartsProps) {
  const t = useT();
  const { errors, ms } = use;
  const { count } = use.lines;
  const failed = sumOf(errors);
  const failedText = t("detail.errorSentence", {
    value: formatNumber(failed),
    count: failed,
    share: shareText(failed, failed + sumOf(count)) || "0%",
  });
  const speed = t("detail.speedSentence", { time: speedText(use) });
  return (
    <div className="mt-6 grid grid-cols-2 gap-x-10 gap-y-6 border-t border-base-300 pt-5 max-[900px]:grid-cols-1">
      <BarChart
        label={t("detail.errors")}
        caption={failedText}
        summary={failedText}
        axis={axis}
        series={[{ id: "errors", label: t("detail.errors"), slot: 0, values: errors }]}
        isBroken
        cursor={cursor}
        height={PLOT}
        format={formatNumber}
        formatAxis={formatCompact}
        empty={<p className="text-muted">{t("detail.noErrors")}</p>}
        foot={
          <a
            className="inline-flex min-h-7 items-center gap-1 text-primary hover:underline pointer-coarse:min-h-11"
            href={errorHref}
          >
            {t("detail.errorLog")}
            <ArrowRight aria-hidden size={14} />
          </a>
        }
      />
      <BarChart
        label={t("detail.speed")}
        caption={speed}
        summary={speed}
        axis={axis}
        series={[
          {
            id: "speed",
            label: t("detail.speed"),
            slot: 0,
            values: ms.map((sum, bar) => sum / Math.max(1, count[bar] ?? 0)),
          },
        ]}
        cursor={cursor}
        height={PLOT}
        format={formatDuration}
        formatAxis={(value) => (value === 0 ? "0" : formatDuration(value))}
        textOf={(first, last) => speedText(use, first, last)}
        isInteger={false}
        unit={1000}
        empty={<p className="text-muted">{t("detail.empty")}</p>}
      />
    </div>
  );
}
