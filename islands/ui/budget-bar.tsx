// How much of a budget is spent in its period: calm, then to be looked at from four fifths on, then used up.
import { WARN_SHARE } from "../../src/shared/key-limits.ts";
import { formatQuota } from "../lib/format.ts";

export interface BudgetBarProps {
  /** Units; the budget is above 0. */
  budget: number;
  used: number;
  /** What it is of. */
  label: string;
  /** Its period in words, where nothing beside it says it. */
  per?: string;
}

/** Spent and budget in words, and as a bar below. */
export function BudgetBar({ budget, used, label, per }: BudgetBarProps) {
  const share = Math.max(0, Math.min(1, used / budget));
  const words = `${formatQuota(used)} / ${formatQuota(budget)}`;
  return (
    <span
      className="latency inline-flex min-w-13 flex-col gap-0.75"
      data-tone={share >= 1 ? "broken" : share >= WARN_SHARE ? "attention" : "ok"}
    >
      <span className="whitespace-nowrap tabular-nums">
        {words}
        {per === undefined ? null : <span className="text-muted max-sm:hidden"> {per}</span>}
      </span>
      <span
        className="thin-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={words}
      >
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
