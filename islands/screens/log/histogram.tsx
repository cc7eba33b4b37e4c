// The strip above the log: entries by time with errors in red; drag or Shift+arrows choose a range, Enter zooms into it.
// Refuses to be pointer-only or colour-only: the cursor speaks, and the same numbers stand in a table.
import { useSignals } from "@preact/signals-react/runtime";
import { ZoomOut } from "lucide-react";
import { useRef, useState } from "react";
import type { KeyboardEvent, PointerEvent } from "react";
import { timeZone } from "../../lib/boot.ts";
import { formatDateTime, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { LogBucket, LogHistogramData } from "./row.ts";

export interface HistogramProps {
  data: LogHistogramData;
  /** Chooses a range in Unix seconds. */
  onZoom: (range: { from: number; to: number }) => void;
  /** Present while a chosen range is shown. */
  onReset?: (() => void) | undefined;
}

const HEIGHT = 56;
const MINUTE_STEP = 24 * 3600;

interface Span {
  first: number;
  last: number;
}

export function Histogram({ data, onZoom, onReset }: HistogramProps) {
  const t = useT();
  useSignals();
  const zone = timeZone.value;
  const { buckets, step } = data;
  const plot = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState<number>();
  const [anchor, setAnchor] = useState<number>();
  const [isDragging, setDragging] = useState(false);

  const size = buckets.length;
  const most = Math.max(1, ...buckets.map(({ count, errors }) => count + errors));
  const total = sumOf(buckets, "count") + sumOf(buckets, "errors");
  const errors = sumOf(buckets, "errors");
  const at = cursor === undefined ? undefined : Math.min(cursor, size - 1);
  const span: Span | undefined =
    at === undefined ? undefined : { first: Math.min(at, anchor ?? at), last: Math.max(at, anchor ?? at) };

  const timeText = (seconds: number) =>
    formatDateTime(seconds * 1000, zone).slice(5, step >= MINUTE_STEP ? 10 : 16);
  const textOf = ({ first, last }: Span) => {
    const inside = buckets.slice(first, last + 1);
    const from = buckets[first]?.at ?? data.from;
    const to = (buckets[last]?.at ?? data.from) + step;
    return t("log.histogram.span", {
      from: timeText(from),
      to: timeText(to),
      entries: formatNumber(sumOf(inside, "count") + sumOf(inside, "errors")),
      errors: formatNumber(sumOf(inside, "errors")),
    });
  };
  const zoom = (chosen: Span | undefined) => {
    const first = chosen && buckets[chosen.first];
    const last = chosen && buckets[chosen.last];
    setAnchor(undefined);
    setCursor(undefined);
    if (first && last) onZoom({ from: first.at, to: last.at + step });
  };
  const indexAt = (event: PointerEvent) => {
    const box = plot.current?.getBoundingClientRect();
    if (!box || box.width === 0) return 0;
    return Math.min(size - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * size)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const now = at ?? size - 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: size - 1 }[event.key];
    if (to !== undefined) {
      const next = Math.min(size - 1, Math.max(0, to));
      setAnchor(event.shiftKey ? (anchor ?? now) : undefined);
      setCursor(next);
    } else if (event.key === "Enter") zoom(span);
    else if (event.key === "Escape" && cursor !== undefined) {
      setCursor(undefined);
      setAnchor(undefined);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const summary = t("log.histogram.summary", {
    entries: formatNumber(total),
    errors: formatNumber(errors),
  });
  const place = span ? (span.first + span.last + 1) / 2 / size : 0;
  return (
    <figure className="histogram" aria-label={t("log.histogram.title")}>
      <figcaption>
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
        ref={plot}
        className="histogram-plot"
        role="slider"
        tabIndex={0}
        aria-label={t("log.histogram.slider")}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, size - 1)}
        aria-valuenow={at ?? Math.max(0, size - 1)}
        aria-valuetext={span ? textOf(span) : summary}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setCursor(undefined);
          setAnchor(undefined);
        }}
        onPointerDown={(event) => {
          if (event.button !== 0 || size === 0) return;
          event.currentTarget.setPointerCapture?.(event.pointerId);
          setDragging(true);
          setCursor(indexAt(event));
          setAnchor(indexAt(event));
        }}
        onPointerMove={(event) => {
          if (size > 0) setCursor(indexAt(event));
        }}
        onPointerUp={() => {
          if (!isDragging) return;
          setDragging(false);
          zoom(span);
        }}
        onPointerCancel={() => {
          setDragging(false);
          setAnchor(undefined);
        }}
        onPointerLeave={() => {
          if (!isDragging) setCursor(undefined);
        }}
      >
        <svg viewBox={`0 0 ${Math.max(1, size)} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden>
          {buckets.map((bucket, index) => (
            <Bar key={bucket.at} bucket={bucket} index={index} most={most} />
          ))}
          {span ? (
            <rect
              className="histogram-span"
              x={span.first}
              y={0}
              width={span.last - span.first + 1}
              height={HEIGHT}
            />
          ) : null}
        </svg>
        {span ? (
          <div
            className="histogram-tip"
            aria-hidden
            style={{ left: `${place * 100}%` }}
            data-side={place > 0.5 ? "left" : "right"}
          >
            {textOf(span)}
          </div>
        ) : null}
      </div>
      <div className="histogram-axis" aria-hidden>
        <span>{size > 0 ? timeText(buckets[0]?.at ?? 0) : ""}</span>
        <span>{size > 2 ? timeText(buckets[Math.floor(size / 2)]?.at ?? 0) : ""}</span>
        <span>{size > 0 ? timeText((buckets.at(-1)?.at ?? 0) + step) : ""}</span>
      </div>
      <details className="histogram-table">
        <summary>{t("log.histogram.asTable")}</summary>
        <div className="overflow-auto max-h-60">
          <table className="sum-table">
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
    </figure>
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
        <rect className="histogram-bar" x={index + 0.08} y={HEIGHT - bad - good} width={0.84} height={good} />
      ) : null}
      {bad > 0 ? (
        <rect
          className="histogram-bar"
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
