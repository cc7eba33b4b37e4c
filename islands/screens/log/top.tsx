// What stands above the usage log: figures and histogram of the filter, and the button of the live tail.
import { useT } from "../../lib/i18n.ts";
import { rangePatch } from "../../lib/time-range.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { LogHistogramData, LogStat } from "../../lib/wire.ts";
import { Count, Money } from "../../ui/badges.tsx";
import { Histogram } from "./histogram.tsx";
import { DEFAULT_RANGE } from "./use-logs.ts";

export interface LogTopProps {
  stat: LogStat;
  histogram: LogHistogramData;
  /** A range that somebody chose is shown; the histogram offers the way back. */
  isZoomed: boolean;
}

export function LogTop({ stat, histogram, isZoomed }: LogTopProps) {
  const t = useT();
  return (
    <div className="lg:grid lg:grid-cols-[auto_minmax(0,1fr)] lg:gap-x-10">
      <dl className="figure-row">
        <Figure label={t("log.spend")} value={<Money quota={stat.quota} />} />
        <Figure label="RPM" title={t("log.rpm")} value={<Count value={stat.rpm} />} />
        <Figure label="TPM" title={t("log.tpm")} value={<Count value={stat.tpm} />} />
      </dl>
      <Histogram
        data={histogram}
        onZoom={(chosen) => setQuery({ ...rangePatch(chosen), p: undefined })}
        onReset={
          isZoomed
            ? () => setQuery({ ...rangePatch(DEFAULT_RANGE), range: undefined, p: undefined })
            : undefined
        }
      />
    </div>
  );
}

function Figure({ label, value, title }: { label: string; value: React.ReactNode; title?: string }) {
  return (
    <div className="figure" title={title}>
      <dt>{label}</dt>
      <dd className="tabular-nums">{value}</dd>
    </div>
  );
}

export function LiveButton({ isLive, onToggle }: { isLive: boolean; onToggle: () => void }) {
  const t = useT();
  return (
    <button type="button" className="btn btn-default gap-2" aria-pressed={isLive} onClick={onToggle}>
      <span className="status live-mark" aria-hidden />
      {isLive ? t("log.liveOn") : t("log.live")}
    </button>
  );
}
