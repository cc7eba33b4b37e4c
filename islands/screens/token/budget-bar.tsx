// How much of a key's budget is spent in this period: calm, then to be looked at from four fifths on, then used up.
import { WARN_SHARE } from "../../../src/shared/key-limits.ts";
import { formatQuota } from "../../lib/format.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { Money } from "../../ui/badges.tsx";

type Budget = Pick<TokenRow, "budget_quota" | "budget_used">;

export function BudgetBar({ row, label }: { row: Budget; label: string }) {
  const { budget_quota: budget, budget_used: used } = row;
  const share = Math.max(0, Math.min(1, used / budget));
  return (
    <span
      className="latency inline-flex min-w-13 flex-col gap-0.75"
      data-tone={share >= 1 ? "broken" : share >= WARN_SHARE ? "attention" : "ok"}
      title={`${formatQuota(used)} / ${formatQuota(budget)}`}
    >
      <Money quota={used} />
      <span
        className="thin-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
