// The dashboard: figures, use over time split by model, user, channel or key, who used most, failures and speed.
// Refuses to sum on the page what the server has summed: every number is one of the call's, for the range in the address.
import { ArrowRight, Download, FileTerminal, RotateCw } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { address, bootData, nowMs, status, timeZone } from "../lib/boot.ts";
import { spanText, sumOf } from "../lib/chart.ts";
import { useChartCursor } from "../lib/chart-cursor.ts";
import type { Span } from "../lib/chart-cursor.ts";
import { useCommand } from "../lib/commands.ts";
import { downloadText } from "../lib/csv.ts";
import { curlOf } from "../lib/curl.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { leaveFor } from "../lib/leave.ts";
import { rangePatch } from "../lib/time-range.ts";
import { patchUrl, setQuery, useQuery } from "../lib/url-state.ts";
import type { Query } from "../lib/url-state.ts";
import { BarChart } from "../ui/chart-bars.tsx";
import { RankList } from "../ui/chart-ranks.tsx";
import { copyText } from "../ui/copy-button.tsx";
import { Notice } from "../ui/feedback.tsx";
import { PageHeader, TabLinks } from "../ui/page-header.tsx";
import { TimeRangeField } from "../ui/time-range.tsx";
import { askedOf, DETAIL_PRESETS, DIMENSIONS, FIGURES, fits } from "./detail/asked.ts";
import { filterOfSeries, rankedSeries } from "./detail/data.ts";
import type { DetailPageData, UseData } from "./detail/data.ts";
import { tableOf } from "./detail/export.ts";
import { Figures } from "./detail/figures.tsx";
import { FirstSteps } from "./detail/first-steps.tsx";
import { ScopeField } from "./detail/scope.tsx";
import { SideCharts } from "./detail/side-charts.tsx";
import { logHref, parametersOf, pathOf, useDetail } from "./detail/use-detail.ts";
import { formatsOf, labelOf, sentencesOf } from "./detail/words.ts";

const PLOT = 300;
const NOTHING: UseData = {
  from: 0,
  to: 0,
  step: "hour",
  by: "model",
  figure: "quota",
  at: [],
  lines: { quota: [], count: [], tokens: [] },
  series: [],
  otherSize: 0,
  errors: [],
  ms: [],
  previous: { quota: 0, count: 0, tokens: 0 },
  elapsed: 0,
};

export default function DetailScreen() {
  const t = useT();
  useSignals();
  const data = bootData<DetailPageData>();
  const { isAdmin } = data;
  const query = useQuery();
  const zone = timeZone.value;
  const site = status.value;
  const asked = askedOf(query, nowMs.value, zone, site, isAdmin);
  const { range, by, scope } = asked;
  const { use: found, phase, failure, refresh } = useDetail(data, query, asked);
  const use = found ?? NOTHING;
  // What is shown follows the data, what is pressed the address: between both lies one call.
  const { figure } = use;
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());

  useShortcut({ keys: "r", label: "common.refresh", run: () => void refresh() });

  const change = (patch: Record<string, string | number | undefined>) => setQuery(patch);
  const changeRange = (patch: Record<string, string | number | undefined>) => {
    const next = askedOf(merged(query, patch), Date.now(), zone, site, isAdmin);
    // A step that would make too many bars goes back to automatic.
    const isBad = next.granularity !== undefined && !fits(next.granularity, next.range);
    change(isBad ? { ...patch, granularity: undefined } : patch);
  };
  const zoom = ({ first, last }: Span) => {
    const from = use.at[first];
    const to = use.at[last + 1] ?? use.to;
    if (from !== undefined) changeRange({ ...rangePatch({ from, to }), granularity: undefined });
  };
  const spanRange = (span: Span | undefined) => ({
    from: (span && use.at[span.first]) ?? use.from,
    to: (span && use.at[span.last + 1]) ?? use.to,
  });
  const hrefOf = (span: Span | undefined, type: 2 | 5 = 2, more: Record<string, string> = {}) =>
    logHref(asked, { ...spanRange(span), type, more });

  const ranked = rankedSeries(
    use,
    (series) => labelOf(t, use, series),
    t("detail.other", { count: use.otherSize }),
  );
  const shown = ranked.filter(({ id }) => !hidden.has(id));
  const only = shown.length === 1 && ranked.length > 1 ? shown[0]?.id : undefined;
  const filterOf = (id: string) => filterOfSeries(use, id);
  const onlyFilter = only === undefined ? {} : (filterOf(only) ?? {});
  const cursor = useChartCursor({
    size: use.at.length,
    onZoom: zoom,
    onOpen: (span) => leaveFor(hrefOf(span, 2, onlyFilter)),
  });
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

  const formats = formatsOf(use, site);
  const { sentence, summary } = sentencesOf(t, use, formats, shown, ranked, range.preset, zone);
  const exportCsv = () => {
    const { name, text } = tableOf(t, use, site.quota_per_unit || 500_000, zone);
    downloadText(name, text);
  };
  useCommand({ id: "do detail export", kind: "do", title: t("table.export"), run: exportCsv });

  const steps = ["hour", "day", "week"] as const;
  const dimensions = isAdmin && scope === undefined ? DIMENSIONS.admin : DIMENSIONS.user;
  const isEmpty = sumOf(use.lines.count) === 0 && sumOf(use.errors) === 0;
  const axis = { at: use.at, to: use.to, step: use.step };
  const { pinned } = cursor;
  return (
    <>
      <PageHeader
        title={t("shell.nav.dashboard")}
        overflow={[
          [
            { id: "refresh", label: t("common.refresh"), icon: RotateCw, onSelect: () => void refresh() },
            { id: "export", label: t("table.export"), icon: Download, onSelect: exportCsv },
            {
              id: "curl",
              label: t("table.copyCurl"),
              icon: FileTerminal,
              onSelect: () => void copyText(curlOf({ path: pathOf(asked), query: parametersOf(asked) })),
            },
          ],
        ]}
      />
      <div className="mb-3 flex flex-wrap items-center gap-2" role="search" aria-label={t("detail.filters")}>
        <TimeRangeField range={range} presets={DETAIL_PRESETS} onChange={changeRange} />
        <select
          className="select select-sm w-auto"
          aria-label={t("detail.granularity")}
          value={asked.granularity ?? "auto"}
          onChange={(event) =>
            change({ granularity: event.target.value === "auto" ? undefined : event.target.value })
          }
        >
          <option value="auto">
            {asked.granularity === undefined
              ? t("detail.granularity.autoOf", { step: t(`detail.granularity.${asked.step}`) })
              : t("detail.granularity.auto")}
          </option>
          {steps.map((step) => (
            <option key={step} value={step} disabled={!fits(step, range)}>
              {t(`detail.granularity.${step}`)}
            </option>
          ))}
        </select>
        {isAdmin ? (
          <ScopeField scope={scope} onChange={(patch) => change({ ...patch, by: undefined })} />
        ) : null}
      </div>
      {phase === "refreshing" || phase === "loading" ? (
        <progress className="progress progress-primary -mt-0.5 block h-0.5 rounded-none" aria-hidden />
      ) : null}
      {failure ? (
        <Notice
          tone="error"
          action={
            <button type="button" className="btn btn-sm btn-default" onClick={() => void refresh()}>
              {t("common.retry")}
            </button>
          }
        >
          {failure}
        </Notice>
      ) : null}
      {found ? <Figures use={use} isOwn={scope === "me"} used={data.used} /> : null}
      {found && data.first && isEmpty ? <FirstSteps steps={data.first} /> : null}
      {!found || (data.first && isEmpty) ? null : (
        <>
          <div className="grid grid-cols-[minmax(0,1fr)_340px] gap-x-10 gap-y-6 max-xl:grid-cols-1">
            <section>
              <BarChart
                label={t(`detail.over.${figure}`)}
                caption={sentence}
                summary={summary}
                axis={axis}
                series={shown}
                cursor={cursor}
                height={PLOT}
                format={formats.format}
                formatAxis={formats.formatAxis}
                unit={formats.unit}
                isWhole={formats.isWhole}
                tools={
                  <div className="join" role="group" aria-label={t("detail.measure")}>
                    {FIGURES.map((each) => (
                      <button
                        key={each}
                        type="button"
                        className="btn btn-sm btn-default join-item"
                        aria-pressed={each === asked.figure}
                        onClick={() =>
                          setQuery({ show: each === "quota" ? undefined : each }, { replace: true })
                        }
                      >
                        {t(`detail.measure.${each}`)}
                      </button>
                    ))}
                  </div>
                }
                empty={
                  <>
                    <p className="font-semibold">{t("detail.empty")}</p>
                    <p className="text-muted">{t("detail.emptyText")}</p>
                  </>
                }
                foot={
                  <a
                    className="inline-flex min-h-7 items-center gap-1 text-primary hover:underline pointer-coarse:min-h-11"
                    href={hrefOf(pinned, 2, onlyFilter)}
                  >
                    {pinned
                      ? t("detail.logOf", { time: spanText(axis, pinned.first, pinned.last, zone) })
                      : t("detail.log")}
                    <ArrowRight aria-hidden size={14} />
                  </a>
                }
              />
            </section>
            <section className="[&>nav]:mb-1" aria-label={t("detail.shares")}>
              <TabLinks
                label={t("detail.by")}
                tabs={dimensions.map((each) => ({
                  id: each,
                  label: t(`detail.by.${each}`),
                  href: patchUrl(address.value, { by: each === "model" ? undefined : each }),
                }))}
                current={by}
                onOpen={(id) => {
                  setHidden(new Set());
                  change({ by: id === "model" ? undefined : id });
                }}
              />
              {ranked.length === 0 ? (
                <p className="text-muted py-6 text-center">{t("detail.noShares")}</p>
              ) : (
                <RankList
                  label={t("detail.ranks", { by: t(`detail.by.${use.by}`) })}
                  entries={ranked.map((each) => {
                    const filter = filterOf(each.id);
                    return {
                      id: each.id,
                      label: each.label,
                      slot: each.slot,
                      value: each.total,
                      isHidden: hidden.has(each.id),
                      href: filter && hrefOf(undefined, 2, filter),
                    };
                  })}
                  format={formats.formatShort}
                  onToggle={toggle}
                />
              )}
            </section>
          </div>
          <SideCharts use={use} axis={axis} cursor={cursor} errorHref={hrefOf(pinned, 5)} />
        </>
      )}
    </>
  );
}

function merged(query: Query, patch: Record<string, string | number | undefined>): Query {
  const both: Record<string, string | number | undefined> = { ...query, ...patch };
  return Object.fromEntries(
    Object.entries(both).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
