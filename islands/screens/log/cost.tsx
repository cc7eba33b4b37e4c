// The ordered sum that made a charge: the same code and the same stored inputs as the ledger's.
// Refuses to show a made-up sum: rows without stored inputs show none.
import { useSignals } from "@preact/signals-react/runtime";
import { explainStored } from "../../../src/shared/cost.ts";
import type { CostLine } from "../../../src/shared/cost.ts";
import { status } from "../../lib/boot.ts";
import { formatDollars, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { Money } from "../../ui/badges.tsx";
import type { LogOther } from "./row.ts";
import type { LogRow } from "../../lib/wire.ts";

const PRICE_TEXT: Record<CostLine["per"], string> = {
  mtok: "log.cost.perMillion",
  call: "log.cost.perCall",
  kcall: "log.cost.perThousand",
};

/** At most six decimals, zeros cut: `1.25×`. */
function ratioText(ratio: number): string {
  return ratio === 0 ? "–" : `${Number(ratio.toFixed(6))}×`;
}

/** Whether the row says enough to show how its cost came about. */
export function isExplained(row: LogRow, other: LogOther): boolean {
  return explainStored(other, row) !== undefined;
}

export function CostSum({ row, other }: { row: LogRow; other: LogOther }) {
  const t = useT();
  useSignals();
  const sum = explainStored(other, row);
  if (!sum) return null;
  const perUnit = status.value.quota_per_unit || 500_000;
  const amount = (quota: number) => (
    <span title={`${formatNumber(quota)}`}>{formatDollars(quota / perUnit)}</span>
  );
  return (
    <section className="detail-section" aria-label={t("log.cost.title")}>
      <h3>{t("log.cost.title")}</h3>
      <table className="table sum-table">
        <thead>
          <tr>
            <th scope="col">{t("log.cost.item")}</th>
            <th scope="col">{t("log.cost.count")}</th>
            <th scope="col">{t("log.cost.price")}</th>
            <th scope="col">{t("log.cost.ratio")}</th>
            <th scope="col">{t("log.cost.amount")}</th>
          </tr>
        </thead>
        <tbody>
          {sum.lines.map((line) => (
            <tr key={line.kind}>
              <th scope="row">{t(`log.line.${line.kind}`)}</th>
              <td>{formatNumber(line.count)}</td>
              <td>{t(PRICE_TEXT[line.per], { price: formatDollars(line.unitPrice) })}</td>
              <td>{ratioText(line.ratio)}</td>
              <td>{amount(line.amount)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" colSpan={4}>
              {t("log.cost.subtotal")}
            </th>
            <td>{amount(sum.subtotal)}</td>
          </tr>
          <tr>
            <th scope="row" colSpan={4}>
              {t("log.cost.groupRatio")}
            </th>
            <td>{sum.groupRatio}×</td>
          </tr>
          <tr className="sum-total">
            <th scope="row" colSpan={4}>
              {t("log.cost.total")}
            </th>
            <td>
              <Money quota={row.quota} />
            </td>
          </tr>
        </tfoot>
      </table>
      {other.estimated ? <p className="mt-1 text-xs text-muted">{t("log.cost.estimated")}</p> : null}
      {sum.isCapped ? <p className="mt-1 text-xs text-muted">{t("log.cost.capped")}</p> : null}
      {sum.isMinimum ? <p className="mt-1 text-xs text-muted">{t("log.cost.minimum")}</p> : null}
    </section>
  );
}
