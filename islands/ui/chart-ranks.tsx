// A ranked list with bars: name, value, share; each entry switches its series in the chart beside it on and off.
// Refuses pies: lengths can be read and compared, in both languages.
import { ArrowUpRight } from "lucide-react";
import { shareText } from "../lib/chart.ts";
import { useT } from "../lib/i18n.ts";

interface RankEntry {
  id: string;
  label: string;
  slot: number;
  value: number;
  isHidden: boolean;
  /** Where the entries behind the number are listed. */
  href?: string | undefined;
}

export interface RankListProps {
  label: string;
  entries: readonly RankEntry[];
  format: (value: number) => string;
  /** For the hover, where `format` shortens. */
  formatExact?: (value: number) => string;
  /** Alone: with Alt held, everything else is switched off. */
  onToggle: (id: string, isAlone: boolean) => void;
}

export function RankList({ label, entries, format, formatExact = format, onToggle }: RankListProps) {
  const t = useT();
  const total = entries.reduce((sum, { value }) => sum + value, 0);
  const most = Math.max(1e-9, ...entries.map(({ value }) => value));
  return (
    <ul className="pt-1" aria-label={label}>
      {entries.map((entry) => (
        <li key={entry.id} className="flex items-center" data-off={entry.isHidden || undefined}>
          <button
            type="button"
            className="rank"
            aria-pressed={!entry.isHidden}
            title={t("chart.toggle")}
            onClick={(event) => onToggle(entry.id, event.altKey)}
          >
            <span className="chart-swatch" data-slot={entry.slot} aria-hidden />
            <span className="truncate">{entry.label}</span>
            <span title={formatExact(entry.value)}>{format(entry.value)}</span>
            <span className="text-right text-muted">{shareText(entry.value, total)}</span>
            <span className="thin-bar" aria-hidden>
              <span data-slot={entry.slot} style={{ width: `${(entry.value / most) * 100}%` }} />
            </span>
          </button>
          {entry.href === undefined ? (
            <span className="w-6 flex-none" />
          ) : (
            <a
              className="btn btn-ghost btn-square btn-xs w-6 flex-none"
              href={entry.href}
              aria-label={t("chart.openLog", { name: entry.label })}
              title={t("chart.openLog", { name: entry.label })}
            >
              <ArrowUpRight aria-hidden />
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}
