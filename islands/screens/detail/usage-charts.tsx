// Use over time as bars, who used most beside it, failures and speed below: one cursor over all of them.
// Refuses to lose a colour or a choice while figures are fetched anew.
import { useSignals } from "@preact/signals-react/runtime";
import { ArrowRight } from "lucide-react";
import { useState } from "react";
import { address, status, siteZone } from "../../lib/boot.ts";
import { useChartCursor } from "../../lib/chart-cursor.ts";
import type { ChartCursor, Span } from "../../lib/chart-cursor.ts";
import { spanText } from "../../lib/chart.ts";
import { useT } from "../../lib/i18n.ts";
import { leaveFor } from "../../lib/leave.ts";
import { rangePatch } from "../../lib/time-range.ts";
import { patchUrl, setQuery } from "../../lib/url-state.ts";
import type { UsageSummary } from "../../lib/wire.ts";
import { BarChart } from "../../ui/chart-bars.tsx";
import { RankList } from "../../ui/chart-ranks.tsx";
import { TabLinks } from "../../ui/page-header.tsx";
import { Segments } from "../../ui/segments.tsx";
import { filterOfSeries, rankedSeries } from "./data.ts";
import type { RankedSeries } from "./data.ts";
import { formatsOf, labelOf, sentencesOf } from "./sentences.ts";
import type { Formats } from "./sentences.ts";
import { SideCharts } from "./side-charts.tsx";
import { DIMENSIONS, FIGURES } from "./usage-query.ts";
import type { Figure, UsageQuery } from "./usage-query.ts";
import { logHref } from "./use-detail.ts";

const PLOT = 300;

export interface UsageChartsProps {
  use: UsageSummary;
  usage: UsageQuery;
  isAdmin: boolean;
  onRange: (patch: Record<string, string | number | undefined>) => void;
}

/** Which series are shown; the others stand in the list, and what they leave is not drawn. */
function useShownSeries(use: UsageSummary) {
  const t = useT();
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const ranked = rankedSeries(
    use,
    (series) => labelOf(t, use, series),
    t("detail.other", { count: use.otherSize }),
  );
  const shown = ranked.filter(({ id }) => !hidden.has(id));
  const toggle = (id: string, isAlone: boolean) => {
    const others = ranked.map((each) => each.id).filter((each) => each !== id);
    if (isAlone) {
      const isAlready = !hidden.has(id) && others.every((each) => hidden.has(each));
      setHidden(new Set(isAlready ? [] : others));
      return;
    }
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    setHidden(next);
  };
  /** What the log is narrowed to where one series stands alone. */
  const only = shown.length === 1 && ranked.length > 1 ? shown[0]?.id : undefined;
  const onlyFilter = only === undefined ? {} : (filterOfSeries(use, only) ?? {});
  return { hidden, ranked, shown, toggle, showAll: () => setHidden(new Set()), onlyFilter };
}

type ShownSeries = ReturnType<typeof useShownSeries>;
type LogHref = (span: Span | undefined, type?: 2 | 5, more?: Record<string, string>) => string;

export function UsageCharts({ use, usage, isAdmin, onRange }: UsageChartsProps) {
  useSignals();
  const series = useShownSeries(use);
  const hrefOf: LogHref = (span, type = 2, more = {}) =>
    logHref(usage, {
      from: (span && use.at[span.first]) ?? use.from,
      to: (span && use.at[span.last + 1]) ?? use.to,
      type,
      more,
    });
  const cursor = useChartCursor({
    size: use.at.length,
    onZoom: ({ first, last }) => {
      const from = use.at[first];
      const to = use.at[last + 1] ?? use.to;
      if (from !== undefined) onRange({ ...rangePatch({ from, to }), granularity: undefined });
    },
    onOpen: (span) => leaveFor(hrefOf(span, 2, series.onlyFilter)),
  });
  const formats = formatsOf(use, status.value);
  return (
    <>
      <div className="grid grid-cols-[minmax(0,1fr)_340px] gap-x-10 gap-y-6 max-xl:grid-cols-1">
        <MainChart {...{ use, usage, series, cursor, formats, hrefOf }} />
        <Ranks {...{ use, usage, isAdmin, series, formats, hrefOf }} />
      </div>
      <SideCharts
        use={use}
        axis={{ at: use.at, to: use.to, step: use.step }}
        cursor={cursor}
        errorHref={hrefOf(cursor.pinned, 5)}
      />
    </>
  );
}

interface MainChartProps {
  use: UsageSummary;
  usage: UsageQuery;
  series: ShownSeries;
  cursor: ChartCursor;
  formats: Formats;
  hrefOf: LogHref;
}

function MainChart({ use, usage, series, cursor, formats, hrefOf }: MainChartProps) {
  const t = useT();
  const zone = siteZone.value;
  const { pinned } = cursor;
  const axis = { at: use.at, to: use.to, step: use.step };
  const { sentence, exact, summary } = sentencesOf({
    t,
    use,
    formats,
    shown: series.shown,
    all: series.ranked,
    preset: usage.range.preset,
    zone,
  });
  return (
    <section>
      <BarChart
        label={t(`detail.over.${use.figure}`)}
        caption={<span title={exact}>{sentence}</span>}
        summary={summary}
        axis={axis}
        series={series.shown}
        cursor={cursor}
        height={PLOT}
        format={formats.format}
        formatAxis={formats.formatAxis}
        unit={formats.unit}
        isInteger={formats.isInteger}
        tools={<FigureSwitch figure={usage.figure} />}
        empty={
          <>
            <p className="font-semibold">{t("detail.empty")}</p>
            <p className="text-muted">{t("detail.emptyText")}</p>
          </>
        }
        foot={
          <a
            className="inline-flex min-h-7 items-center gap-1 text-primary hover:underline pointer-coarse:min-h-11"
            href={hrefOf(pinned, 2, series.onlyFilter)}
          >
            {pinned
              ? t("detail.logOf", { time: spanText(axis, pinned.first, pinned.last, zone) })
              : t("detail.log")}
            <ArrowRight aria-hidden size={14} />
          </a>
        }
      />
    </section>
  );
}

/** What is counted: quota, calls or tokens. What is pressed is the address's; the chart follows with the figures. */
function FigureSwitch({ figure }: { figure: Figure }) {
  const t = useT();
  return (
    <Segments
      label={t("detail.measure")}
      of={FIGURES}
      chosen={figure}
      textOf={(each) => t(`detail.measure.${each}`)}
      onChoose={(each) => setQuery({ show: each === "quota" ? undefined : each }, { replace: true })}
    />
  );
}

interface RanksProps extends Omit<MainChartProps, "cursor"> {
  isAdmin: boolean;
}

/** Who used most, by model, user, channel or key. */
function Ranks({ use, usage, isAdmin, series, formats, hrefOf }: RanksProps) {
  const t = useT();
  const dimensions = isAdmin && usage.scope === undefined ? DIMENSIONS.admin : DIMENSIONS.user;
  const queryOf = (dimension: string) => ({ by: dimension === "model" ? undefined : dimension });
  const entryOf = ({ id, label, slot, total }: RankedSeries) => {
    const filter = filterOfSeries(use, id);
    return {
      id,
      label,
      slot,
      value: total,
      isHidden: series.hidden.has(id),
      href: filter && hrefOf(undefined, 2, filter),
    };
  };
  return (
    <section className="[&>nav]:mb-1" aria-label={t("detail.shares")}>
      <TabLinks
        label={t("detail.by")}
        tabs={dimensions.map((each) => ({
          id: each,
          label: t(`detail.by.${each}`),
          href: patchUrl(address.value, queryOf(each)),
        }))}
        current={usage.by}
        onOpen={(id) => {
          series.showAll();
          setQuery(queryOf(id));
        }}
      />
      {series.ranked.length === 0 ? (
        <p className="text-muted py-6 text-center">{t("detail.noShares")}</p>
      ) : (
        <RankList
          label={t("detail.ranks", { by: t(`detail.by.${use.by}`) })}
          entries={series.ranked.map(entryOf)}
          format={formats.formatShort}
          formatExact={formats.format}
          onToggle={series.toggle}
        />
      )}
    </section>
  );
}
