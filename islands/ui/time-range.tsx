// Chooses a range of time: presets, two typed moments, arrows that shift by the range's own length.
// Refuses to fix what is relative: "last 24 hours" stays so in the address.
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { nowMs, timeZone } from "../lib/boot.ts";
import { formatDateTime } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { PRESETS, parseLocal, rangePatch, shiftRange } from "../lib/time-range.ts";
import type { Preset, TimeRange } from "../lib/time-range.ts";
import { setQuery } from "../lib/url-state.ts";

export interface TimeRangeFieldProps {
  range: TimeRange;
  onChange: (patch: Record<string, string | number | undefined>) => void;
  /** All of them where absent. */
  presets?: readonly Preset[];
  /** In which typed moments are read; the visitor's where absent. */
  zone?: string;
}

export function TimeRangeField({ range, onChange, presets = PRESETS, zone: named }: TimeRangeFieldProps) {
  const t = useT();
  useSignals();
  const visitors = timeZone.value;
  const zone = named ?? visitors;
  const asField = (seconds: number) =>
    formatDateTime(seconds * 1000, zone)
      .slice(0, 16)
      .replace(" ", "T");
  const change = (side: "from" | "to", text: string) => {
    const seconds = parseLocal(text, zone);
    if (seconds === undefined) return;
    const next = { from: range.from, to: range.to, [side]: seconds };
    if (next.from < next.to) onChange(rangePatch(next));
  };
  const isLatest = range.to >= Math.floor(nowMs.value / 1000) - 60;
  return (
    <div className="flex flex-wrap items-center gap-1" role="group" aria-label={t("table.range.label")}>
      <button
        type="button"
        className="btn btn-ghost btn-square btn-xs"
        aria-label={t("table.range.earlier")}
        onClick={() => onChange(rangePatch(shiftRange(range, -1)))}
      >
        <ChevronLeft aria-hidden />
      </button>
      <select
        className="select select-sm w-auto"
        aria-label={t("table.range.label")}
        value={range.preset ?? "custom"}
        onChange={(event) => {
          const preset = presets.find((each) => each === event.target.value);
          onChange(rangePatch(preset ?? { from: range.from, to: range.to }));
        }}
      >
        {presets.map((preset) => (
          <option key={preset} value={preset}>
            {t(`table.range.${preset}`)}
          </option>
        ))}
        <option value="custom">{t("table.range.custom")}</option>
      </select>
      {range.preset === undefined ? (
        <>
          <input
            type="datetime-local"
            className="input input-sm w-47"
            aria-label={t("table.range.from")}
            value={asField(range.from)}
            onChange={(event) => change("from", event.target.value)}
          />
          <span className="text-muted">–</span>
          <input
            type="datetime-local"
            className="input input-sm w-47"
            aria-label={t("table.range.to")}
            value={asField(range.to)}
            onChange={(event) => change("to", event.target.value)}
          />
        </>
      ) : null}
      <button
        type="button"
        className="btn btn-ghost btn-square btn-xs"
        aria-label={t("table.range.later")}
        disabled={isLatest}
        onClick={() => onChange(rangePatch(shiftRange(range, 1)))}
      >
        <ChevronRight aria-hidden />
      </button>
    </div>
  );
}

/** The range of a list with a button that asks anew: relative ranges end at that moment. */
export function PeriodFilter({ range, onQuery }: { range: TimeRange; onQuery: () => Promise<void> }) {
  const t = useT();
  return (
    <>
      <TimeRangeField range={range} onChange={(patch) => setQuery({ ...patch, p: undefined })} />
      <button type="button" className="btn btn-sm btn-default" onClick={() => void onQuery()}>
        {t("table.query")}
      </button>
    </>
  );
}
