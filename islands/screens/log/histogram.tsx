// The strip above the log: entries by time with errors in red; drag or Shift+arrows choose a range, Enter zooms into it.
// Refuses to be pointer-only or colour-only: the cursor speaks, and the same numbers stand in a table.
import { useSignals } from "@preact/signals-react/runtime";
import { ZoomOut } from "lucide-react";
import { timeZone } from "../../lib/boot.ts";
import { useChartCursor } from "../../lib/chart-cursor.ts";
import type { Span } from "../../lib/chart-cursor.ts";
import { formatDateTime, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { LogBucket, LogHistogramData } from "../../lib/wire.ts";

export interface HistogramProps {
  data: LogHistogramData;
  /** Chooses a range in Unix seconds. */
  onZoom: (range: { from: number; to: number }) => void;
  /** Present while a chosen range is shown. */
  onReset?: (() => void) | undefined;
}

const HEIGHT = 56;
const MINUTE_STEP = 24 * 3600;

export function Histogram({ data, onZoom, onReset }: HistogramProps) {
  const t = useT();
  useSignals();
  const zone = timeZone.value;
  const { buckets, step } = data;
  const size = buckets.length;
  const most = Math.max(1, ...buckets.map(({ count, errors }) => count + errors));
  const total = sumOf(buckets, "count") + sumOf(buckets, "errors");
  const errors = sumOf(buckets, "errors");
  const zoom = (chosen: Span) => {
    const first = buckets[chosen.first];
    const last = buckets[chosen.last];
    cursor.clear();
    if (first && last) onZoom({ from: first.at, to: last.at + step });
  };
  const cursor = useChartCursor({ size, onOpen: zoom, onZoom: zoom, onClick: zoom });
  const { span } = cursor;

  const timeText = (seconds: number) =>
    formatDateTime(seconds * 1000, zone).slice(5, step >= MINUTE_STEP ? 10 : 16);
  const textOf = ({ first, last }: Span) => {
    const inside = buckets.slice(first, last + 1);
    const from = buckets[first]?.at ?? data.from;
    const to = (buckets[last]?.at ?? data.from) + step;
    const failed = sumOf(inside, "errors");
    const entries = sumOf(inside, "count") + failed;
    return t("log.histogram.span", {
      count: entries,
      from: timeText(from),
      to: timeText(to),
      entries: formatNumber(entries),
      errors: formatNumber(failed),
    });
  };
  const summary = t("log.histogram.summary", {
    count: total,
    entries: formatNumber(total),
    errors: formatNumber(errors),
  });
  const place = span ? (span.first + span.last + 1) / 2 / size : 0;
  return (
    <figure className="mb-3" aria-label={t("log.histogram.title")}>
      <figcaption className="flex min-h-7.5 flex-wrap items-center gap-2 text-dense text-muted">
        <span className="tabular-nums">{summary}</span>
        {data.isCut ? <span className="text-muted"> · {t("log.histogram.cut")}</span> : null}
        {onReset ? (
          <button type="button" className="btn btn-sm btn-ghost" onClick={onReset}>
            <ZoomOut aria-hidden size={14} />
            {t("log.histogram.reset")}
          </button>
        ) : null}
      </figcaption>
      <div
        className="chart-plot h-14"
        role="slider"
        tabIndex={0}
        aria-label={t("log.histogram.slider")}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, size - 1)}
        aria-valuenow={span?.last ?? Math.max(0, size - 1)}
        aria-valuetext={span ? textOf(span) : summary}
        {...cursor.handlers}
        onBlur={cursor.clear}
      >
        <svg
          viewBox={`0 0 ${Math.max(1, size)} ${HEIGHT}`}
          preserveAspectRatio="none"

          aria-hidden
        >
          {buckets.map((bucket, index) => (
            <Bar key={bucket.at} bucket={bucket} index={index} most={most} />
          ))}
          {span ? (
            <rect
              className="fill-base-content/15"
              x={span.first}
              y={0}
              width={span.last - span.first + 1}
              height={HEIGHT}
            />
          ) : null}
        </svg>
        {span ? (
          <div
            className="chart-tip min-w-0 px-2 py-0"
            aria-hidden
            style={{ left: `${place * 100}%` }}
            data-side={place > 0.5 ? "left" : "right"}
          >
            {textOf(span)}
          </div>
        ) : null}
      </div>
      <div className="flex justify-between text-xs text-muted" aria-hidden>
        <span>{size > 0 ? timeText(buckets[0]?.at ?? 0) : ""}</span>
        <span>{size > 2 ? timeText(buckets[Math.floor(size / 2)]?.at ?? 0) : ""}</span>
        <span>{size > 0 ? timeText((buckets.at(-1)?.at ?? 0) + step) : ""}</span>
      </div>
      <BucketTable buckets={buckets} zone={zone} />
    </figure>
  );
}

/** The same numbers for those who do not see the bars. */
function BucketTable({ buckets, zone }: { buckets: readonly LogBucket[]; zone: string }) {
  const t = useT();
  return (
    <details className="text-xs">
      <summary className="py-0.5 text-muted">{t("log.histogram.asTable")}</summary>
      <div className="max-h-60 overflow-auto">
        <table className="table sum-table">
          <thead>
            <tr>
              <th scope="col">{t("log.time")}</th>
              <th scope="col">{t("log.histogram.entries")}</th>
              <th scope="col">{t("log.histogram.errors")}</th>
            </tr>
          </thead>
          <tbody>
            {buckets
              .filter((bucket) => bucket.count + bucket.errors > 0)
              .map((bucket) => (
                <tr key={bucket.at}>
                  <th scope="row">{formatDateTime(bucket.at * 1000, zone).slice(0, 16)}</th>
                  <td>{formatNumber(bucket.count + bucket.errors)}</td>
                  <td>{formatNumber(bucket.errors)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function sumOf(buckets: readonly LogBucket[], field: "count" | "errors"): number {
  return buckets.reduce((sum, bucket) => sum + bucket[field], 0);
}

/** Errors stand at the bottom; whatever is there is at least one unit high, so that a single error is seen. */
function Bar({ bucket, index, most }: { bucket: LogBucket; index: number; most: number }) {
  const scale = (count: number) => (count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT));
  const bad = scale(bucket.errors);
  const good = Math.min(scale(bucket.count), HEIGHT - bad);
  return (
    <>
      {good > 0 ? (
        <rect
          className="fill-(--c1) data-[tone=broken]:fill-error"
          x={index + 0.08}
          y={HEIGHT - bad - good}
          width={0.84}
          height={good}
        />
      ) : null}
      {bad > 0 ? (
        <rect
          className="fill-(--c1) data-[tone=broken]:fill-error"
          data-tone="broken"
          x={index + 0.08}
          y={HEIGHT - bad}
          width={0.84}
          height={bad}
        />
      ) : null}
    </>
  );
}
