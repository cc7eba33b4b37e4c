// The status page for users: which models answer, how it was in the last 90 days, what the operator tells of them.
// Refuses to tell by colour alone: each strip of days says in words what it shows.
import { RefreshCw } from "lucide-react";
import type { Translate } from "./document.tsx";
import type { StatusTone } from "./node.tsx";

/** Days of one tone that follow one another. */
export interface DayRun {
  tone: StatusTone;
  from: number;
  length: number;
}

export interface ModelLine {
  name: string;
  state: string;
  tone: StatusTone;
  firstToken: string;
  share: string;
  runs: readonly DayRun[];
  /** What the strip shows, in words. */
  said: string;
}

export interface ModelStatusProps {
  t: Translate;
  title: string;
  summary: string;
  tone: StatusTone;
  at: string;
  notices: readonly { names: string; text: string; until: string }[];
  makers: readonly { title: string; models: readonly ModelLine[] }[];
  days: number;
  more: string;
}

/** The worse, the lower: colour alone says nothing to some. */
const TOP: Readonly<Record<StatusTone, number>> = { success: 0, warning: 6, error: 12, off: 16 };

/** One drawing of small days, cut by gaps that all strips share. */
function Days({ runs, said, days }: { runs: readonly DayRun[]; said: string; days: number }) {
  return (
    <svg
      className="w-full min-w-0"
      height="20"
      viewBox={`0 0 ${days * 4} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={said}
    >
      {runs.map(({ tone, from, length }) => (
        <rect
          key={from}
          data-tone={tone}
          fill={tone === "off" ? "var(--color-base-300)" : "var(--tone)"}
          x={from * 4}
          width={length * 4}
          y={TOP[tone]}
          height={20 - TOP[tone]}
        />
      ))}
      <rect width={days * 4} height="20" fill="url(#day-gaps)" />
    </svg>
  );
}

function Line({ name, state, tone, firstToken, share, runs, said, days }: ModelLine & { days: number }) {
  return (
    <li className="grid items-center gap-x-6 gap-y-1 border-b border-base-300 py-2 sm:grid-cols-2">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <code className="wrap-anywhere">{name}</code>
        <span className="status-word text-dense" data-tone={tone}>
          <span className="status" aria-hidden />
          {state}
        </span>
      </div>
      <div className="grid gap-1">
        <Days runs={runs} said={said} days={days} />
        <p className="flex flex-wrap justify-between gap-x-4 text-xs text-muted tabular-nums">
          <span>{share}</span>
          <span>{firstToken}</span>
        </p>
      </div>
    </li>
  );
}

export function ModelStatusView(props: ModelStatusProps) {
  const { t, title, summary, tone, at, notices, makers, days, more } = props;
  return (
    <div data-part="status" tabIndex={-1} className="grid gap-6 outline-0">
      <svg className="absolute" width="0" height="0" aria-hidden>
        <defs>
          <pattern id="day-gaps" width="4" height="20" patternUnits="userSpaceOnUse">
            <rect x="3" width="1" height="20" fill="var(--color-base-100)" />
          </pattern>
        </defs>
      </svg>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1>{title}</h1>
        <span className="grow text-dense text-muted" role="status">
          {at}
        </span>
        <a className="btn btn-default btn-sm" href="/status" data-get="status">
          <RefreshCw aria-hidden size={16} />
          {t("status.again")}
        </a>
      </header>
      {makers.length === 0 ? null : (
        <p className="status-word font-semibold whitespace-normal" data-tone={tone}>
          <span className="status" aria-hidden />
          {summary}
        </p>
      )}
      {notices.length > 0 ? (
        <ul className="grid gap-2">
          {notices.map(({ names, text, until }) => (
            <li key={`${names} ${text}`} className="alert alert-soft block" data-tone="warning">
              <b className="wrap-anywhere">{names}</b> <span className="wrap-anywhere">{text}</span>{" "}
              {until === "" ? null : <span className="whitespace-nowrap">{until}</span>}
            </li>
          ))}
        </ul>
      ) : null}
      {makers.map((maker) => (
        <section key={maker.title} className="grid gap-1" aria-label={maker.title}>
          <h2 className="text-base">{maker.title}</h2>
          <ul>
            {maker.models.map((model) => (
              <Line key={model.name} {...model} days={days} />
            ))}
          </ul>
        </section>
      ))}
      {makers.length === 0 ? <p className="text-muted">{t("status.noModels")}</p> : null}
      {more === "" ? null : (
        <p className="text-dense">
          <a className="link" href="/pricing">
            {more}
          </a>
        </p>
      )}
    </div>
  );
}
