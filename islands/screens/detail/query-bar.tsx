// What the dashboard shows: the range of time, the width of a bar, and for administrators whose use.
// Refuses a width that would make too many bars.
import { useSignals } from "@preact/signals-react/runtime";
import { siteZone } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import { TimeRangeField } from "../../ui/time-range.tsx";
import { ScopeField } from "./scope.tsx";
import { DETAIL_PRESETS, fits } from "./usage-query.ts";
import type { UsageQuery } from "./usage-query.ts";

const STEPS = ["hour", "day", "week"] as const;

export interface QueryBarProps {
  usage: UsageQuery;
  isAdmin: boolean;
  onRange: (patch: Record<string, string | number | undefined>) => void;
}

export function QueryBar({ usage, isAdmin, onRange }: QueryBarProps) {
  const t = useT();
  useSignals();
  const { range, granularity, step: automatic } = usage;
  return (
    <div className="mb-3 flex flex-wrap items-center gap-2" role="search" aria-label={t("detail.filters")}>
      <TimeRangeField range={range} presets={DETAIL_PRESETS} zone={siteZone.value} onChange={onRange} />
      <select
        className="select select-sm w-auto"
        aria-label={t("detail.granularity")}
        value={granularity ?? "auto"}
        onChange={({ target }) =>
          setQuery({ granularity: target.value === "auto" ? undefined : target.value })
        }
      >
        <option value="auto">
          {granularity === undefined
            ? t("detail.granularity.autoOf", { step: t(`detail.granularity.${automatic}`) })
            : t("detail.granularity.auto")}
        </option>
        {STEPS.map((step) => (
          <option key={step} value={step} disabled={!fits(step, range)}>
            {t(`detail.granularity.${step}`)}
          </option>
        ))}
      </select>
      {isAdmin ? (
        <ScopeField scope={usage.scope} onChange={(patch) => setQuery({ ...patch, by: undefined })} />
      ) : null}
    </div>
  );
}
