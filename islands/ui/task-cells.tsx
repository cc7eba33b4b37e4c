// Cells that the drawing log and the task log share: channel tag, progress, elapsed time, long texts.
// Refuses colour as the only carrier: late work says so in words, progress has its number.
import type { CSSProperties } from "react";
import { formatDuration } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { percentOf } from "../lib/task-screen.ts";
import { copyText } from "./copy-button.tsx";

/** A channel's id with a colour of its own; a click copies the id. */
export function ChannelTag({ id }: { id: number }) {
  if (id <= 0) return null;
  return (
    <button
      type="button"
      className="badge badge-ghost badge-sm cursor-pointer gap-1.5 before:size-2 before:rounded-xs before:bg-(--series) pointer-coarse:min-h-10"
      style={{ "--series": `var(--c${(id % 8) + 1})` } as CSSProperties}
      title={t("table.copyId")}
      aria-label={t("table.copyIdOf", { id })}
      onClick={() => void copyText(String(id))}
    >
      {id}
    </button>
  );
}

/** A bar with its number; what is no number stands as it is. */
export function ProgressBar({ progress, isFailed }: { progress: string; isFailed: boolean }) {
  const percent = percentOf(progress);
  if (percent === undefined) return progress === "" ? null : <span>{progress}</span>;
  return (
    <span
      className="inline-flex min-w-24 items-center gap-2 text-xs"
      data-tone={isFailed ? "attention" : percent >= 100 ? "ok" : "running"}
    >
      <span className="tabular-nums">{`${percent}%`}</span>
      <span className="thin-bar h-1 grow" aria-hidden>
        <span style={{ width: `${percent}%` }} />
      </span>
    </span>
  );
}

/** The same as a ring. */
export function ProgressRing({ progress, isFailed }: { progress: string; isFailed: boolean }) {
  const percent = percentOf(progress);
  if (percent === undefined) return progress === "" ? null : <span>{progress}</span>;
  const length = 2 * Math.PI * 7;
  return (
    <span
      className="inline-flex items-center gap-1.5 align-middle text-xs"
      data-tone={isFailed ? "attention" : percent >= 100 ? "ok" : "running"}
    >
      <svg width={18} height={18} viewBox="0 0 18 18" aria-hidden>
        <circle cx={9} cy={9} r={7} className="fill-none stroke-base-300 stroke-3" />
        <circle
          cx={9}
          cy={9}
          r={7}
          className="fill-none stroke-(--tone) stroke-3"
          strokeDasharray={`${(percent / 100) * length} ${length}`}
          transform="rotate(-90 9 9)"
        />
      </svg>
      <span className="tabular-nums">{`${percent}%`}</span>
    </span>
  );
}

const SLOW_MS = 60_000;

/** Time from submission to end; beyond a minute red, and called slow. */
export function Elapsed({ fromMs, toMs }: { fromMs: number; toMs: number }) {
  if (fromMs <= 0 || toMs < fromMs) return null;
  const ms = toMs - fromMs;
  const isSlow = ms > SLOW_MS;
  return (
    <span
      className={`tabular-nums whitespace-nowrap ${isSlow ? "text-error" : "text-success"}`}
      title={isSlow ? t("table.slow") : undefined}
    >
      {formatDuration(ms)}
      {isSlow ? <span className="sr-only"> {t("table.slow")}</span> : null}
    </span>
  );
}

/** One line of a long text, all of it in the title. */
export function ShortText({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <span className="short-text" title={text}>
      {text}
    </span>
  );
}

/** Why something failed: two lines, in cards one, all of it in the title. */
export function Reason({ text }: { text: string }) {
  if (text === "") return null;
  return (
    <span className="line-clamp-2 whitespace-normal max-sm:line-clamp-1" title={text}>
      {text}
    </span>
  );
}
