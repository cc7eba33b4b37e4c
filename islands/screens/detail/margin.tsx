// What is earned, below what is used: revenue, cost and margin over the same time, and by channel, model, group or day.
// Refuses to draw an unknown cost as none: it is hatched, and said in words.
import { useEffect, useRef, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { siteZone, status } from "../../lib/boot.ts";
import { useChartCursor } from "../../lib/chart-cursor.ts";
import type { TimeAxis } from "../../lib/chart.ts";
import {
  formatDate,
  formatMoney,
  formatNumber,
  formatQuota,
  quotaText,
  siteDisplay,
} from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { rangePatch } from "../../lib/time-range.ts";
import { useSeen } from "../../lib/use-seen.ts";
import type { Margins } from "../../lib/wire.ts";
import { BarChart } from "../../ui/chart-bars.tsx";
import { FailureNotice } from "../../ui/feedback.tsx";
import { Segments } from "../../ui/segments.tsx";

const PLOT = 160;
const MOST_ROWS = 10;
const DIMENSIONS = ["channel", "model", "group", "day"] as const;
type Dimension = (typeof DIMENSIONS)[number];

export interface MarginPanelProps {
  /** Unix seconds, the end not included. */
  from: number;
  to: number;
  step: "hour" | "day" | "week";
  /** Root: may say what upstreams charge. */
  canWrite: boolean;
  onRange: (patch: Record<string, string | number | undefined>) => void;
}

/** Asked for once the panel comes near the window: it stands below what the dashboard is opened for. */
function useMargins({ from, to, step }: MarginPanelProps, by: Dimension, isSeen: boolean) {
  const [found, setFound] = useState<Margins>();
  const [failure, setFailure] = useState<string>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!isSeen) return undefined;
    let isGone = false;
    const query = {
      start_timestamp: String(from),
      end_timestamp: String(to - 1),
      granularity: step,
      by,
      time_zone: siteZone.peek(),
    };
    call(api.data.margin.get({ query })).then(
      (margins) => {
        if (isGone) return;
        setFound(margins);
        setFailure(undefined);
      },
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [from, to, step, by, round, isSeen]);
  return { found, failure, again: async () => setRound((value) => value + 1) };
}

export default function MarginPanel(props: MarginPanelProps) {
  const t = useT();
  const [by, setBy] = useState<Dimension>("channel");
  const box = useRef<HTMLDivElement>(null);
  const { found, failure, again } = useMargins(props, by, useSeen(box));
  if (failure !== undefined) return <FailureNotice text={failure} onRetry={again} />;
  if (!found) return <div ref={box} className="skeleton mt-8 h-64 rounded-box" aria-hidden />;
  const { total } = found;
  const isBlank = total.known_calls === 0 && total.cost === 0;
  return (
    <section className="mt-6 border-t border-base-300 pt-5" aria-labelledby="margin-title">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 id="margin-title" className="mr-auto">
          {t("detail.margin.title")}
        </h2>
        {isBlank ? null : (
          <Segments
            label={t("detail.margin.by")}
            of={DIMENSIONS}
            chosen={by}
            textOf={(each) => t(`detail.margin.by.${each}`)}
            onChoose={setBy}
          />
        )}
      </div>
      {isBlank ? (
        <p className="text-muted">
          {t("detail.margin.none")}{" "}
          {props.canWrite ? (
            <a className="link" href="/prices?section=costs">
              {t("detail.margin.enter")}
            </a>
          ) : null}
        </p>
      ) : (
        <div className="grid grid-cols-2 gap-x-10 gap-y-6 max-xl:grid-cols-1">
          <MarginChart margins={found} onRange={props.onRange} />
          <MarginTable margins={found} />
        </div>
      )}
    </section>
  );
}

/** "−$1.20": a loss has its sign, whatever the currency. */
function signed(units: number): string {
  return units < 0 ? `−${formatQuota(-units)}` : formatQuota(units);
}

function share(margin: number, revenue: number): string {
  return revenue > 0 ? `${Math.round((margin / revenue) * 100)}%` : "";
}

function sentenceOf(t: Translate, { total }: Margins): string {
  const percent = share(total.margin, total.known_revenue);
  return t(total.margin < 0 ? "detail.margin.lossSentence" : "detail.margin.sentence", {
    margin: formatQuota(Math.abs(total.margin)) + (percent === "" || total.margin < 0 ? "" : ` (${percent})`),
    revenue: formatQuota(total.known_revenue),
    cost: formatQuota(total.cost),
  });
}

function MarginChart({ margins, onRange }: { margins: Margins } & Pick<MarginPanelProps, "onRange">) {
  const t = useT();
  const { at, to, step, bars, total } = margins;
  const axis: TimeAxis = { at, to, step };
  const cursor = useChartCursor({
    size: at.length,
    onOpen: () => undefined,
    onZoom: ({ first, last }) => {
      const end = at[last + 1] ?? to;
      const start = at[first];
      if (start !== undefined) onRange({ ...rangePatch({ from: start, to: end }), granularity: undefined });
    },
  });
  const sentence = sentenceOf(t, margins);
  const { isUnits, rate, quotaPerUnit } = siteDisplay(status.value);
  const formatAxis = (value: number) =>
    isUnits ? formatNumber(value) : formatMoney(value / quotaPerUnit).replace(/\.00$/, "");
  const each = (of: (revenue: number, cost: number) => number) =>
    bars.known_revenue.map((revenue, bar) => Math.max(0, of(revenue, bars.cost[bar] ?? 0)));
  const series = [
    {
      id: "cost",
      label: t("detail.margin.cost"),
      slot: 0,
      values: each((revenue, cost) => Math.min(revenue, cost)),
    },
    {
      id: "margin",
      label: t("detail.margin.margin"),
      slot: 3,
      values: each((revenue, cost) => revenue - cost),
    },
    {
      id: "loss",
      label: t("detail.margin.loss"),
      slot: 0,
      look: "broken" as const,
      values: each((revenue, cost) => cost - revenue),
    },
    {
      id: "unknown",
      label: t("detail.margin.unknown"),
      slot: 0,
      look: "hatched" as const,
      values: bars.unknown_revenue,
    },
  ];
  const unknown = total.revenue - total.known_revenue;
  return (
    <div className="min-w-0">
      <BarChart
        label={t("detail.margin.title")}
        caption={sentence}
        summary={sentence}
        axis={axis}
        series={series}
        cursor={cursor}
        height={PLOT}
        format={formatQuota}
        formatAxis={formatAxis}
        isInteger={isUnits}
        unit={isUnits ? 1 : quotaPerUnit / rate}
        empty={<p className="text-muted">{t("detail.empty")}</p>}
      />
      <ul className="mt-1 flex flex-wrap gap-x-4 gap-y-1 text-xs text-muted">
        {series.map(({ id, label, slot, look, values }) =>
          values.some((value) => value > 0) ? (
            <li key={id} className="flex items-center gap-1.5">
              <span className="chart-swatch" data-slot={look ?? slot} aria-hidden />
              {label}
            </li>
          ) : null,
        )}
      </ul>
      {total.calls > total.known_calls ? (
        <p className="mt-2 text-xs text-muted">
          {t("detail.margin.unknownNote", {
            count: total.calls - total.known_calls,
            calls: formatNumber(total.calls - total.known_calls),
            amount: formatQuota(unknown),
          })}
        </p>
      ) : null}
      {total.lost > 0 ? (
        <p className="mt-1 text-xs text-muted">
          {t("detail.margin.lostNote", { amount: formatQuota(total.lost) })}
        </p>
      ) : null}
    </div>
  );
}

function MarginTable({ margins }: { margins: Margins }) {
  const t = useT();
  const [isWhole, setWhole] = useState(false);
  const { by, others } = margins;
  const rows = by === "day" ? margins.rows.filter(({ calls, cost }) => calls > 0 || cost > 0) : margins.rows;
  const shown = isWhole ? rows : rows.slice(0, MOST_ROWS);
  const nameOf = ({ id, name }: Margins["rows"][number]) => {
    if (by === "day") return formatDate(Number(id) * 1000, siteZone.value);
    if (by === "channel" && name === "") return t("detail.gone.channel", { id });
    return name === "" ? t("detail.noModel") : name;
  };
  return (
    <div className="min-w-0">
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t(`detail.margin.by.${by}`)}>
        <table className="table sum-table [&_thead]:whitespace-nowrap">
          <thead>
            <tr>
              <th scope="col">{t(`detail.margin.by.${by}`)}</th>
              <th scope="col">{t("detail.margin.revenue")}</th>
              <th scope="col">{t("detail.margin.cost")}</th>
              <th scope="col">{t("detail.margin.margin")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <MarginLine key={row.id} row={row} name={nameOf(row)} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown.length ? (
        <button type="button" className="link mt-1 text-dense" onClick={() => setWhole(true)}>
          {t("detail.margin.more", { count: rows.length - shown.length })}
        </button>
      ) : others > 0 ? (
        <p className="mt-1 text-xs text-muted">{t("detail.margin.others", { count: others })}</p>
      ) : null}
    </div>
  );
}

function MarginLine({ row, name }: { row: Margins["rows"][number]; name: string }) {
  const t = useT();
  const isKnown = row.known_calls > 0 || row.cost > 0;
  const isBelow = isKnown && row.margin < 0;
  return (
    <tr>
      <th scope="row" className="font-normal wrap-anywhere">
        {name}
        {isBelow ? <span className="badge badge-sm badge-error ml-2">{t("detail.margin.below")}</span> : null}
      </th>
      <td title={quotaText(row.revenue).exact}>{formatQuota(row.revenue)}</td>
      <td title={isKnown ? quotaText(row.cost).exact : undefined}>
        {isKnown ? formatQuota(row.cost) : <span className="text-muted">{t("detail.margin.isUnknown")}</span>}
      </td>
      <td className={`whitespace-nowrap ${isBelow ? "font-semibold text-error" : ""}`}>
        {isKnown ? (
          <>
            {signed(row.margin)} <span className="text-muted">{share(row.margin, row.known_revenue)}</span>
          </>
        ) : (
          <span className="text-muted">–</span>
        )}
      </td>
    </tr>
  );
}
