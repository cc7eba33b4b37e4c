// The row of figures above the charts: a number, how it compares with the time before, and its shape.
// Refuses a comparison where there was hardly anything before.
import type { ReactNode } from "react";
import { formatCompact } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { user } from "../../lib/boot.ts";
import { useSignals } from "@preact/signals-react/runtime";
import { Count, Money } from "../../ui/badges.tsx";
import { Sparkline } from "../../ui/chart-spark.tsx";
import { sumOf } from "../../lib/chart.ts";
import { changeText, hasBase } from "./sentences.ts";
import type { UsageSummary } from "../../lib/wire.ts";

const DAY = 86_400;

export interface FiguresProps {
  use: UsageSummary;
  /** Whether the figures are the visitor's own: only then does the balance belong to them. */
  isOwn: boolean;
  used: number;
}

export function Figures({ use, isOwn, used }: FiguresProps) {
  const t = useT();
  useSignals();
  const { lines } = use;
  const sums = { quota: sumOf(lines.quota), count: sumOf(lines.count), tokens: sumOf(lines.tokens) };
  const balance = user.value?.quota ?? 0;
  const minutes = Math.max(1, use.elapsed / 60);
  const perDay = use.elapsed > 0 ? (sums.quota / use.elapsed) * DAY : 0;
  const days = perDay > 0 && balance > 0 ? Math.floor(balance / perDay) : undefined;
  return (
    <dl className="tiles" aria-label={t("detail.figures")}>
      <Tile
        label={t(isOwn ? "detail.balance" : "detail.ownBalance")}
        value={<Money quota={balance} />}
        note={
          isOwn && days !== undefined && days < 1000 ? (
            t("detail.lasts", { count: days })
          ) : (
            <>
              {t("detail.used")} <Money quota={used} />
            </>
          )
        }
      />
      <Tile
        label={t("detail.measure.quota")}
        value={<Money quota={sums.quota} />}
        note={<Change now={sums.quota} before={use.previous.quota} />}
        line={lines.quota}
      />
      <Tile
        label={t("detail.measure.count")}
        value={<Count value={sums.count} />}
        note={<Change now={sums.count} before={use.previous.count} />}
        line={lines.count}
      />
      <Tile
        label={t("detail.measure.tokens")}
        value={<Count value={sums.tokens} />}
        note={<Change now={sums.tokens} before={use.previous.tokens} />}
        line={lines.tokens}
      />
      <Tile
        label={t("detail.rates")}
        title={t("detail.ratesText")}
        value={
          <>
            {rate(sums.count / minutes)} <small>/</small> {rate(sums.tokens / minutes)}
          </>
        }
        note={t("detail.ratesNote")}
      />
    </dl>
  );
}

/** Three figures that matter: 0.042, 1.37, 12.4k. */
function rate(value: number): string {
  if (value === 0) return "0";
  return value < 0.001 ? "<0.001" : formatCompact(Number(value.toPrecision(3)));
}

function Change({ now, before }: { now: number; before: number }) {
  const t = useT();
  if (hasBase(now, before)) return <>{changeText(t, now, before)}</>;
  return <>{t(now > 0 ? "detail.new" : "detail.noBefore")}</>;
}

function Tile({
  label,
  value,
  note,
  line,
  title,
}: {
  label: string;
  value: ReactNode;
  note: ReactNode;
  line?: readonly number[];
  title?: string;
}) {
  return (
    <div className="tile">
      <dt>{label}</dt>
      <dd className="tile-value" title={title}>
        {value}
      </dd>
      <dd className="tile-note">{note}</dd>
      {line ? (
        <dd className="absolute top-3.5 right-4 w-[30%] max-w-22 max-xl:hidden" aria-hidden>
          <Sparkline values={line} />
        </dd>
      ) : null}
    </div>
  );
}
