// Stacked bars over time: own SVG with a cursor that speaks, a tooltip, grid and labels, and the numbers as a table.
// Refuses to be pointer-only or colour-only, and to change its height: empty, loading and full are equally high.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import type { CSSProperties, ReactNode } from "react";
import { timeZone } from "../lib/boot.ts";
import { axisLabels, BAR, scaleOf, spanText, stackPaths, sumOf, totalsOf } from "../lib/chart.ts";
import type { ChartSeries, TimeAxis } from "../lib/chart.ts";
import type { ChartCursor } from "../lib/chart-cursor.ts";
import { useT } from "../lib/i18n.ts";

export interface BarChartProps {
  /** Name of the figure. */
  label: string;
  /** A sentence with the number; stands as caption. */
  caption: ReactNode;
  /** The same in words, for those who do not see the bars. */
  summary: string;
  /** Beside the caption: switches. */
  tools?: ReactNode;
  axis: TimeAxis;
  /** From the baseline up; hidden ones are left out by the caller. */
  series: readonly ChartSeries[];
  cursor: ChartCursor;
  /** Pixels of the plot. */
  height: number;
  format: (value: number) => string;
  /** Labels of the grid; `format` where absent. */
  formatAxis?: (value: number) => string;
  /** Values of a unit people think in, and whether it has no fractions. */
  unit?: number;
  isWhole?: boolean;
  /** Overrides the sum of the series, where it is no sum (an average). */
  textOf?: (first: number, last: number) => string;
  /** Shown over the empty plot. */
  empty?: ReactNode;
  /** Below the bars, at the right. */
  foot?: ReactNode;
  isBroken?: boolean;
}

export function BarChart(props: BarChartProps) {
  const t = useT();
  useSignals();
  const { label, axis, series, cursor, height, format, formatAxis = format } = props;
  const [isTable, setTable] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const [isHovered, setHovered] = useState(false);
  const zone = timeZone.value;
  const size = axis.at.length;
  const totals = totalsOf(series, size);
  const most = Math.max(0, ...totals);
  const scale = scaleOf(most, props.unit, props.isWhole);
  const paths = stackPaths(series, size, height, scale.top);
  const { span } = cursor;
  const inSpan = (values: readonly number[]) => (span ? sumOf(values.slice(span.first, span.last + 1)) : 0);
  const titleOf = (first: number, last: number) => spanText(axis, first, last, zone);
  const sumText = span ? (props.textOf?.(span.first, span.last) ?? format(inSpan(totals))) : "";
  const parts = span
    ? series
        .map((each) => ({ ...each, value: inSpan(each.values) }))
        .filter(({ value }) => value > 0)
        .toSorted((a, b) => b.value - a.value)
    : [];
  const isSingle = series.length === 1;
  const spoken = span
    ? [
        `${titleOf(span.first, span.last)}: ${sumText}`,
        ...(isSingle ? [] : parts.map((part) => `${part.label} ${format(part.value)}`)),
      ].join(", ")
    : props.summary;
  const middle = span ? (span.first + span.last + 1) / 2 / Math.max(1, size) : 0;
  return (
    <figure className="min-w-0" aria-label={label}>
      <figcaption className="mb-4 flex min-h-8 flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <span className="text-sm/5 font-semibold">{props.caption}</span>
        {props.tools}
      </figcaption>
      <div className="chart-body" style={{ "--plot": `${height}px` } as CSSProperties}>
        <div className="chart-scale" aria-hidden>
          {scale.ticks.toReversed().map((tick) => (
            <span key={tick} style={{ bottom: `${(tick / scale.top) * 100}%` }}>
              {formatAxis(tick)}
            </span>
          ))}
          <span style={{ bottom: 0 }}>{formatAxis(0)}</span>
          {/* The widest label decides the column's width. */}
          <i>{longest([formatAxis(0), ...scale.ticks.map(formatAxis)])}</i>
        </div>
        <div
          className="chart-plot"
          role="slider"
          tabIndex={0}
          aria-label={t("chart.cursor", { name: label })}
          aria-valuemin={1}
          aria-valuemax={Math.max(1, size)}
          aria-valuenow={(span?.last ?? Math.max(0, size - 1)) + 1}
          aria-valuetext={spoken}
          {...cursor.handlers}
          onPointerEnter={() => setHovered(true)}
          onPointerLeave={() => {
            setHovered(false);
            cursor.handlers.onPointerLeave();
          }}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
        >
          <svg viewBox={`0 0 ${Math.max(1, size) * BAR} ${height}`} preserveAspectRatio="none" aria-hidden>
            {scale.ticks.map((tick) => {
              const y = Math.round(height - (tick / scale.top) * height);
              return <path key={tick} className="chart-grid" d={`M0 ${y}H${size * BAR}`} />;
            })}
            {span ? (
              <rect
                className="chart-span"
                x={span.first * BAR}
                y={0}
                width={(span.last - span.first + 1) * BAR}
                height={height}
              />
            ) : null}
            {/* From the top of the stack down: see stackPaths. */}
            {series
              .map((each, index) => (
                <path
                  key={each.id}
                  className="chart-series"
                  data-slot={props.isBroken ? "broken" : each.slot}
                  d={paths[index]}
                />
              ))
              .toReversed()}
          </svg>
          {most === 0 && props.empty ? (
            <div className="absolute inset-0 flex flex-col items-center justify-center gap-0.5 px-2 text-center text-dense/5">
              {props.empty}
            </div>
          ) : null}
          {span && (isHovered || isFocused) ? (
            <div
              className="chart-tip"
              aria-hidden
              style={{ left: `${middle * 100}%` }}
              data-side={middle > 0.5 ? "left" : "right"}
            >
              <p className="text-muted">
                <span>{titleOf(span.first, span.last)}</span>
                <b className="text-base-content">{sumText}</b>
              </p>
              {isSingle
                ? null
                : parts.map((part) => (
                    <p key={part.id}>
                      <span className="chart-swatch" data-slot={part.slot} />
                      <span className="truncate">{part.label}</span>
                      <span>{format(part.value)}</span>
                    </p>
                  ))}
            </div>
          ) : null}
        </div>
        <div className="chart-axis" aria-hidden>
          {axisLabels(axis, zone).map(({ bar, text }) => (
            <span key={bar} style={{ left: `${((bar + 0.5) / size) * 100}%` }}>
              {text}
            </span>
          ))}
        </div>
      </div>
      <div className="flex min-h-7 flex-wrap items-start justify-between gap-x-4 text-xs/5">
        <details onToggle={(event) => setTable((event.target as HTMLDetailsElement).open)}>
          <summary className="w-fit cursor-pointer py-1 text-muted pointer-coarse:min-h-11 pointer-coarse:leading-9">
            {t("chart.asTable")}
          </summary>
          {isTable ? <ChartTable {...props} totals={totals} titleOf={titleOf} /> : null}
        </details>
        {props.foot}
      </div>
    </figure>
  );
}

function longest(texts: readonly string[]): string {
  return texts.reduce((found, text) => (text.length > found.length ? text : found), "");
}

function ChartTable({
  axis,
  series,
  totals,
  format,
  label,
  textOf,
  titleOf,
}: BarChartProps & { totals: number[]; titleOf: (first: number, last: number) => string }) {
  const t = useT();
  const columns = series.length > 1 ? series : [];
  return (
    <div
      className="mt-1 mb-2 max-h-70 overflow-auto whitespace-nowrap"
      role="region"
      aria-label={label}
      tabIndex={0}
    >
      <table className="table sum-table">
        <thead>
          <tr>
            <th scope="col">{t("chart.time")}</th>
            <th scope="col">{columns.length > 0 ? t("chart.total") : label}</th>
            {columns.map((each) => (
              <th key={each.id} scope="col">
                {each.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {axis.at.map((at, bar) =>
            (totals[bar] ?? 0) === 0 ? null : (
              <tr key={at}>
                <th scope="row">{titleOf(bar, bar)}</th>
                <td>{textOf?.(bar, bar) ?? format(totals[bar] ?? 0)}</td>
                {columns.map((each) => (
                  <td key={each.id}>{each.values[bar] ? format(each.values[bar] ?? 0) : "–"}</td>
                ))}
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}
