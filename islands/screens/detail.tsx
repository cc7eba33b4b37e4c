// The dashboard: figures, use over time split by model, user, channel or key, who used most, failures and speed.
// Refuses to sum on the page what the server has summed: every number is one of the call's, for the range in the address.
import { ArrowRight, Download, FileTerminal, RotateCw } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { address, bootData, nowMs, status, timeZone } from "../lib/boot.ts";
import { shareText, spanText, sumOf } from "../lib/chart.ts";
import { useChartCursor } from "../lib/chart-cursor.ts";
import type { Span } from "../lib/chart-cursor.ts";
import { useCommand } from "../lib/commands.ts";
import { csvText, downloadText } from "../lib/csv.ts";
import { curlOf } from "../lib/curl.ts";
import {
  formatCompact,
  formatDateTime,
  formatDollars,
  formatDuration,
  formatNumber,
  formatQuota,
} from "../lib/format.ts";
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
import { othersOf, rankedSeries } from "./detail/data.ts";
import type { DetailPageData, UseData, UseSeries } from "./detail/data.ts";
import { changeOf, Figures } from "./detail/figures.tsx";
import { FirstSteps } from "./detail/first-steps.tsx";
import { ScopeField } from "./detail/scope.tsx";
import { logHref, parametersOf, pathOf, useDetail } from "./detail/use-detail.ts";

const PLOT = 300;
const SMALL_PLOT = 96;
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

  const labelOf = (series: UseSeries) =>
    series.name !== ""
      ? series.name
      : use.by === "model"
        ? t("detail.noModel")
        : t(`detail.gone.${use.by}`, { id: series.id });
  const ranked = rankedSeries(use, labelOf, t("detail.other", { count: use.otherSize }));
  const shown = ranked.filter(({ id }) => !hidden.has(id));
  const only = shown.length === 1 && ranked.length > 1 ? shown[0]?.id : undefined;
  const filterOf = (id: string): Record<string, string> | undefined => {
    const series = use.series.find((each) => `${use.by} ${each.id}` === id);
    if (!series) return undefined;
    if (use.by === "model") return { model_name: series.id };
    if (use.by === "channel") return { channel: series.id };
    // Names are what the log filters by: who has none any more cannot be asked for.
    if (series.name === "") return undefined;
    return use.by === "user" ? { username: series.name } : { token_name: series.name };
  };
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

  const counts = use.lines.count;
  const sum = sumOf(use.lines[figure]);
  const calls = sumOf(counts);
  const perUnit = site.quota_per_unit || 500_000;
  const isMoney = figure === "quota" && site.display_in_currency !== false;
  const format = (value: number) => (figure === "quota" ? formatQuota(value, site) : formatNumber(value));
  const formatAxis = (value: number) =>
    isMoney ? formatDollars(value / perUnit).replace(/\.00$/, "") : formatCompact(value);
  const within = range.preset
    ? t(`detail.within.${range.preset}`)
    : t("detail.within.custom", {
        from: formatDateTime(use.from * 1000, zone).slice(5, 16),
        to: formatDateTime(use.to * 1000, zone).slice(5, 16),
      });
  const shownSum = sumOf(shown.map(({ total }) => total));
  const percent = hidden.size === 0 ? changeOf(sum, use.previous[figure]) : undefined;
  const sumPhrase = t(`detail.sum.${figure}`, {
    value: figure === "tokens" ? formatCompact(shownSum) : format(shownSum),
    count: shownSum,
  });
  const changePhrase =
    percent === undefined
      ? ""
      : t(percent > 0 ? "detail.phrase.more" : percent < 0 ? "detail.phrase.less" : "detail.phrase.same", {
          percent: formatNumber(Math.abs(percent)),
        });
  const sentence = t(changePhrase === "" ? "detail.sentence" : "detail.sentenceChange", {
    sum: sumPhrase,
    within,
    change: changePhrase,
  });
  const leader = ranked[0];
  const summary =
    leader && leader.id !== "other"
      ? t("detail.leader", { sentence, name: leader.label, share: shareText(leader.total, sum) })
      : sentence;

  const exportCsv = () => {
    const others = othersOf(use);
    const cell = (value = 0) => (figure === "quota" ? Number((value / perUnit).toFixed(12)) : value);
    const unit = figure === "quota" ? " (USD)" : "";
    const heads = [
      `${t("chart.time")} (${zone})`,
      `${t("chart.total")} · ${t(`detail.measure.${figure}`)}${unit}`,
      ...use.series.map(labelOf),
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
    downloadText(`usage-by-${use.by}-${use.from}-${use.to}.csv`, csvText(heads, rows));
  };
  useCommand({ id: "do detail export", kind: "do", title: t("table.export"), run: exportCsv });

  const steps = ["hour", "day", "week"] as const;
  const dimensions = isAdmin && scope === undefined ? DIMENSIONS.admin : DIMENSIONS.user;
  const isEmpty = calls === 0 && sumOf(use.errors) === 0;
  const failed = sumOf(use.errors);
  const axis = { at: use.at, to: use.to, step: use.step };
  const average = (first: number, last: number) => {
    const calls = sumOf(counts.slice(first, last + 1));
    return calls === 0 ? "–" : formatDuration(sumOf(use.ms.slice(first, last + 1)) / calls);
  };
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
      <div className="detail-bar" role="search" aria-label={t("detail.filters")}>
        <TimeRangeField range={range} presets={DETAIL_PRESETS} onChange={changeRange} />
        <select
          className="select select-sm"
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
      {phase === "refreshing" || phase === "loading" ? <div className="refresh-bar" aria-hidden /> : null}
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
          <div className="detail-main">
            <section className="detail-chart">
              <BarChart
                label={t(`detail.over.${figure}`)}
                caption={sentence}
                summary={summary}
                axis={axis}
                series={shown}
                cursor={cursor}
                height={PLOT}
                format={format}
                formatAxis={formatAxis}
                unit={isMoney ? perUnit : 1}
                isWhole={!isMoney}
                tools={
                  <div className="segments" role="group" aria-label={t("detail.measure")}>
                    {FIGURES.map((each) => (
                      <button
                        key={each}
                        type="button"
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
                  <a className="chart-more" href={hrefOf(pinned, 2, onlyFilter)}>
                    {pinned
                      ? t("detail.logOf", { time: spanText(axis, pinned.first, pinned.last, zone) })
                      : t("detail.log")}
                    <ArrowRight aria-hidden size={14} />
                  </a>
                }
              />
            </section>
            <section className="detail-ranks" aria-label={t("detail.shares")}>
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
                  format={figure === "tokens" ? formatCompact : format}
                  onToggle={toggle}
                />
              )}
            </section>
          </div>
          <div className="detail-pair">
            <BarChart
              label={t("detail.errors")}
              caption={t("detail.errorSentence", {
                value: formatNumber(failed),
                count: failed,
                share: shareText(failed, failed + calls) || "0%",
              })}
              summary={t("detail.errorSentence", {
                value: formatNumber(failed),
                count: failed,
                share: shareText(failed, failed + calls) || "0%",
              })}
              axis={axis}
              series={[{ id: "errors", label: t("detail.errors"), slot: 0, values: use.errors }]}
              isBroken
              cursor={cursor}
              height={SMALL_PLOT}
              format={formatNumber}
              formatAxis={formatCompact}
              empty={<p className="text-muted">{t("detail.noErrors")}</p>}
              foot={
                <a className="chart-more" href={hrefOf(pinned, 5)}>
                  {t("detail.errorLog")}
                  <ArrowRight aria-hidden size={14} />
                </a>
              }
            />
            <BarChart
              label={t("detail.speed")}
              caption={t("detail.speedSentence", {
                time: calls === 0 ? "–" : formatDuration(sumOf(use.ms) / calls),
              })}
              summary={t("detail.speedSentence", {
                time: calls === 0 ? "–" : formatDuration(sumOf(use.ms) / calls),
              })}
              axis={axis}
              series={[
                {
                  id: "speed",
                  label: t("detail.speed"),
                  slot: 0,
                  values: use.ms.map((ms, bar) => (counts[bar] ? ms / (counts[bar] ?? 1) : 0)),
                },
              ]}
              cursor={cursor}
              height={SMALL_PLOT}
              format={formatDuration}
              formatAxis={(ms) => (ms === 0 ? "0" : formatDuration(ms))}
              textOf={average}
              isWhole={false}
              unit={1000}
              empty={<p className="text-muted">{t("detail.empty")}</p>}
            />
          </div>
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
