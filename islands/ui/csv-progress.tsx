// How far an export of a list is, and the button that ends it.
import { formatNumber } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { timeLeftText } from "../lib/time-left.ts";
import type { CsvExport } from "./csv-export.tsx";
import { MOST_EXPORTED } from "./csv-run.ts";

export interface CsvProgressProps extends Pick<CsvExport, "cancel"> {
  progress: NonNullable<CsvExport["progress"]>;
}

export default function CsvProgress({ progress, cancel }: CsvProgressProps) {
  const { done, total, elapsedMs } = progress;
  const numbers = { done: formatNumber(done), total: formatNumber(total) };
  return (
    <div className="mb-2 flex flex-wrap items-center gap-3 text-dense">
      <progress
        className="progress progress-primary w-auto min-w-30 grow"
        max={Math.max(1, total)}
        value={total < 0 ? undefined : done}
      />
      <span role="status" className="tabular-nums">
        {t(total < 0 ? "table.export.runningOpen" : "table.export.running", numbers)}{" "}
        <span className="text-muted">{timeLeftText(done, Math.min(total, MOST_EXPORTED), elapsedMs)}</span>
      </span>
      <button type="button" className="btn btn-sm btn-default" onClick={cancel}>
        {t("table.export.cancel")}
      </button>
    </div>
  );
}
