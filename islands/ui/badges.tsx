// Small words with meaning: status dot and word, plain badges, money, times, durations with their threshold.
// Refuses colour as the only carrier: every dot has a word, every bar its number.
import { useSignals } from "@preact/signals-react/runtime";
import type { ReactNode } from "react";
import { nowMs, status, timeZone } from "../lib/boot.ts";
import {
  formatCompact,
  formatDateTime,
  formatDuration,
  formatNumber,
  formatWhen,
  quotaText,
  timeTitle,
} from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";

export type StatusTone = "ok" | "off" | "attention" | "broken" | "running";

export function StatusDot({
  tone,
  children,
  reason,
}: {
  tone: StatusTone;
  children: ReactNode;
  reason?: string | undefined;
}) {
  return (
    <span className="status-word" data-tone={tone}>
      <span className="status" aria-hidden />
      <span className="min-w-0">
        {children}
        {reason ? (
          <span className="status-reason" title={reason}>
            {reason}
          </span>
        ) : null}
      </span>
    </span>
  );
}

/** A plain grey word: group, type, tag. */
export function Chip({ children, title }: { children: ReactNode; title?: string | undefined }) {
  return (
    <span className="badge badge-ghost badge-sm" title={title}>
      {children}
    </span>
  );
}

/** The first two names (on phones one) and how many more, in one line: long names are cut, the number never. */
export function ChipLine({ names }: { names: readonly string[] }) {
  return (
    <span className="flex min-w-0 items-center gap-1">
      {names.slice(0, 2).map((name, at) => (
        <span
          key={name}
          title={name}
          className={`badge badge-ghost badge-sm min-w-8 ${at > 0 ? "shrink-9 max-sm:hidden" : ""}`}
        >
          <span className="truncate">{name}</span>
        </span>
      ))}
      {more(names.length - 1, "sm:hidden")}
      {more(names.length - 2, "max-sm:hidden")}
    </span>
  );
}

const more = (count: number, className: string) =>
  count > 0 ? <span className={`flex-none text-muted tabular-nums ${className}`}>+{count}</span> : null;

/** A group's ratio: blue above 1, amber above 3, red above 5, and the number itself. */
export function RatioBadge({ ratio }: { ratio: number }) {
  const tone = ratio > 5 ? "broken" : ratio > 3 ? "attention" : ratio > 1 ? "running" : "off";
  return (
    <span className="badge badge-ghost badge-sm tabular-nums" data-tone={tone}>
      {ratio}×
    </span>
  );
}

/** A number of things, shortened when it is large; then the exact one is in the title. */
export function Count({ value }: { value: number }) {
  const text = formatCompact(value);
  const exact = formatNumber(value);
  return (
    <span className="tabular-nums" title={text === exact ? undefined : exact}>
      {text}
    </span>
  );
}

/** Quota as the site shows it; the exact value is in the title. */
export function Money({ quota, className = "" }: { quota: number; className?: string }) {
  useSignals();
  const { text, exact } = quotaText(quota, status.value);
  return (
    <span className={`tabular-nums ${className}`} title={exact}>
      {text}
    </span>
  );
}

/** A time in Unix seconds: relative when younger than a day. None, 0 and -1 show the fallback. */
export function When({
  at,
  never,
  isAbsolute = false,
}: {
  at: number | null;
  never?: string;
  isAbsolute?: boolean;
}) {
  useT();
  useSignals();
  if (at === null || at <= 0) return <span className="text-muted">{never ?? "–"}</span>;
  const ms = at * 1000;
  const text = isAbsolute ? formatDateTime(ms, timeZone.value) : formatWhen(ms, nowMs.value, timeZone.value);
  return (
    <time
      className="whitespace-nowrap tabular-nums"
      dateTime={new Date(ms).toISOString()}
      title={timeTitle(ms, timeZone.value)}
    >
      {text}
    </time>
  );
}

/** A time of a list in Unix seconds: without the year while it is this one; the title has everything. */
export function Moment({ at }: { at: number }) {
  useSignals();
  if (at <= 0) return null;
  const zone = timeZone.value;
  const text = formatDateTime(at * 1000, zone);
  const isThisYear = text.startsWith(formatDateTime(nowMs.value, zone).slice(0, 4));
  return (
    <time
      className="whitespace-nowrap tabular-nums"
      dateTime={new Date(at * 1000).toISOString()}
      title={timeTitle(at * 1000, zone)}
    >
      {isThisYear ? text.slice(5) : text}
    </time>
  );
}

/** Milliseconds with a thin bar that grows and changes with the thresholds; the number is always there. */
export function Latency({ ms, thresholdsMs }: { ms: number; thresholdsMs: readonly number[] }) {
  const level = thresholdsMs.filter((limit) => ms >= limit).length;
  const tones =
    thresholdsMs.length > 2 ? ["ok", "running", "attention", "broken"] : ["ok", "attention", "broken"];
  const most = (thresholdsMs.at(-1) ?? 1) * 1.2;
  return (
    <span
      className="latency inline-flex min-w-13 flex-col gap-0.75"
      data-tone={tones[Math.min(level, tones.length - 1)]}
    >
      <span className="tabular-nums">{formatDuration(ms)}</span>
      <span className="thin-bar" aria-hidden>
        <span style={{ width: `${Math.min(100, Math.max(4, (ms / most) * 100))}%` }} />
      </span>
    </span>
  );
}
