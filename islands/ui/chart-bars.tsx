// Stacked bars over time: own SVG with a cursor that speaks, a tooltip, grid and labels, and the numbers as a table.
// Refuses to be pointer-only or colour-only, and to change its height: empty, loading and full are equally high.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import type { CSSProperties, ReactNode } from "react";
import { siteZone } from "../lib/boot.ts";
import { axisLabels, BAR, scaleOf, spanText, stackPaths, sumOf, totalsOf } from "../lib/chart.ts";
import type { ChartSeries, Scale, TimeAxis } from "../lib/chart.ts";
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
  isInteger?: boolean;
  /** Overrides the sum of the series, where it is no sum (an average). */
  textOf?: (first: number, last: number) => string;
  /** Shown over the empty plot. */
  empty?: ReactNode;
  /** Below the bars, at the right. */
  foot?: ReactNode;
  isBroken?: boolean;
}

/** One of the series under the cursor. */
interface ChartPart extends ChartSeries {
  value: number;
}

/** What stands under the cursor: over which bars, how much in all, and of which series; undefined where it is nowhere. */
interface Reading {
  title: string;
  sumText: string;
  /** Highest first. */
  parts: readonly ChartPart[];
  /** Middle of the bars, as a share of the plot's width. */
  middle: number;
}

function readingOf(props: BarChartProps, totals: readonly number[], zone: string): Reading | undefined {
  const { axis, series, cursor, format } = props;
  const { span } = cursor;
  if (!span) return undefined;
  const inSpan = (values: readonly number[]) => sumOf(values.slice(span.first, span.last + 1));
  return {
    title: spanText(axis, span.first, span.last, zone),
    sumText: props.textOf?.(span.first, span.last) ?? format(inSpan(totals)),
    parts: series
      .map((each) => ({ ...each, value: inSpan(each.values) }))
      .filter(({ value }) => value > 0)
      .toSorted((x, y) => y.value - x.value),
    middle: (span.first + span.last + 1) / 2 / Math.max(1, axis.at.length),
  };
}

function spokenText({ series, summary, format }: BarChartProps, reading: Reading | undefined): string {
  if (!reading) return summary;
  const parts = series.length === 1 ? [] : reading.parts;
  return [
    `${reading.title}: ${reading.sumText}`,
    ...parts.map((part) => `${part.label} ${format(part.value)}`),
  ].join(", ");
}

export function BarChart(props: BarChartProps) {
  const t = useT();
  useSignals();
  const { label, axis, series, height, format, formatAxis = format } = props;
  const [isTable, setTable] = useState(false);
  const zone = siteZone.value;
  const size = axis.at.length;
  const totals = totalsOf(series, size);
  const most = Math.max(0, ...totals);
  const scale = scaleOf(most, props.unit, props.isInteger);
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
        <Plot {...props} scale={scale} isEmpty={most === 0} reading={readingOf(props, totals, zone)} />
        <div className="chart-axis" aria-hidden>
          {axisLabels(axis, zone).map(({ bar, text }) => (
            <span key={bar} style={{ left: `${((bar + 0.5) / size) * 100}%` }}>
              {text}
            </span>
          ))}
        </div>
      </div>
      <div className="flex min-h-7 flex-wrap items-start justify-between gap-x-4 text-xs/5">
        <details
          className="open:w-full"
          onToggle={(event) => setTable((event.target as HTMLDetailsElement).open)}
        >
          <summary className="py-1 text-muted pointer-coarse:min-h-11 pointer-coarse:leading-9">
            {t("chart.asTable")}
          </summary>
          {isTable ? (
            <ChartTable
              {...props}
              totals={totals}
              titleOf={(first, last) => spanText(axis, first, last, zone)}
            />
          ) : null}
        </details>
        {props.foot}
      </div>
    </figure>
  );
}

interface PlotProps extends BarChartProps {
  scale: Scale;
  isEmpty: boolean;
  reading: Reading | undefined;
}

/** The bars with the cursor on them; what it points at is spoken, and shown while it is there. */
function Plot(props: PlotProps) {
  const { label, axis, cursor, reading } = props;
  const t = useT();
  const [isFocused, setFocused] = useState(false);
  const [isHovered, setHovered] = useState(false);
  const size = axis.at.length;
  return (
    <div
      className="chart-plot"
      role="slider"
      tabIndex={0}
      aria-label={t("chart.cursor", { name: label })}
      aria-valuemin={1}
      aria-valuemax={Math.max(1, size)}
      aria-valuenow={(cursor.span?.last ?? Math.max(0, size - 1)) + 1}
      aria-valuetext={spokenText(props, reading)}
      {...cursor.handlers}
      onPointerEnter={() => setHovered(true)}
      onPointerLeave={() => {
        setHovered(false);
        cursor.handlers.onPointerLeave();
      }}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      <Bars {...props} />
      {props.isEmpty && props.empty ? (
        <div className="absolute inset-0 flex flex-col items-center justify-center gap-0.5 px-2 text-center text-dense/5">
          {props.empty}
        </div>
      ) : null}
      {reading && (isHovered || isFocused) ? (
        <Tip reading={reading} isSingle={props.series.length === 1} format={props.format} />
      ) : null}
    </div>
  );
}

function Bars({ axis, series, cursor, height, scale, isBroken }: PlotProps) {
  const size = axis.at.length;
  const paths = stackPaths(series, size, height, scale.top);
  const { span } = cursor;
  return (
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
            data-slot={isBroken ? "broken" : (each.look ?? each.slot)}
            d={paths[index]}
          />
        ))
        .toReversed()}
    </svg>
  );
}

interface TipProps {
  reading: Reading;
  /** One series: the sum says it all. */
  isSingle: boolean;
  format: (value: number) => string;
}

function Tip({ reading, isSingle, format }: TipProps) {
  const { title, sumText, parts, middle } = reading;
  return (
    <div
      className="chart-tip"
      aria-hidden
      style={{ left: `${middle * 100}%` }}
      data-side={middle > 0.5 ? "left" : "right"}
    >
      <p className="text-muted">
        <span>{title}</span>
        <b className="text-base-content">{sumText}</b>
      </p>
      {isSingle
        ? null
        : parts.map((part) => (
            <p key={part.id}>
              <span className="chart-swatch" data-slot={part.look ?? part.slot} />
              <span className="truncate">{part.label}</span>
              <span>{format(part.value)}</span>
            </p>
          ))}
    </div>
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
