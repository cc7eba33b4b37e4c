// The ordered sum that made a charge: the same code and the same stored inputs as the ledger's.
// Refuses to show a made-up sum: rows without stored inputs show none.
import { useSignals } from "@preact/signals-react/runtime";
import { explainStored } from "../../../src/shared/cost.ts";
import type { CostLine } from "../../../src/shared/cost.ts";
import { status } from "../../lib/boot.ts";
import { formatMoney, formatNumber, siteDisplay } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { AppliedRules } from "./applied-rules.tsx";
import { costDisplay, costRows } from "./cost-rows.ts";
import type { CostRow } from "./cost-rows.ts";
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

const STEP_TEXT: Record<Exclude<CostRow["kind"], "line" | "group">, string> = {
  subtotal: "log.cost.subtotal",
  minimum: "log.cost.step.minimum",
  cap: "log.cost.step.cap",
  rounding: "log.cost.step.rounding",
  total: "log.cost.total",
};

function titleOf(t: Translate, kind: CostRow["kind"], groupRatio: number): string {
  if (kind === "group") return `${t("log.cost.groupRatio")} ${groupRatio}×`;
  return kind === "line" ? "" : t(STEP_TEXT[kind]);
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
  const display = siteDisplay(status.value);
  const rows = costRows(sum, row.quota, costDisplay(display));
  // What the model costs today, which may be another price.
  const priceHref = `/pricing?model=${encodeURIComponent(row.model_name)}&group=${encodeURIComponent(row.group)}`;
  const lines = rows.filter(({ kind }) => kind === "line");
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
            <th scope="col">{t(display.isUnits ? "log.cost.units" : "log.cost.amount")}</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(({ line, text }) =>
            line ? (
              <tr key={line.kind}>
                <th scope="row">{t(`log.line.${line.kind}`)}</th>
                <td>{formatNumber(line.count)}</td>
                <td>
                  <a className="underline decoration-dotted" href={priceHref}>
                    {t(PRICE_TEXT[line.per], { price: formatMoney(line.unitPrice, status.value) })}
                  </a>
                </td>
                <td>{ratioText(line.ratio)}</td>
                <td title={formatNumber(line.amount)}>{text}</td>
              </tr>
            ) : null,
          )}
        </tbody>
        <tfoot>
          {rows.slice(lines.length).map(({ kind, text }) => (
            <tr key={kind} className={kind === "total" ? "sum-total" : undefined}>
              <th scope="row" colSpan={4}>
                {titleOf(t, kind, sum.groupRatio)}
              </th>
              <td title={kind === "total" ? formatNumber(row.quota) : undefined}>{text}</td>
            </tr>
          ))}
        </tfoot>
      </table>
      {typeof other.user_group_ratio !== "number" || other.user_group_ratio < 0 ? null : (
        <p className="mt-1 text-xs text-muted">
          {t("log.cost.userGroupRatio", { ratio: Number(other.user_group_ratio.toFixed(6)) })}
        </p>
      )}
      <AppliedRules row={row} other={other} />
      {other.estimated ? <p className="mt-1 text-xs text-muted">{t("log.cost.estimated")}</p> : null}
      {sum.isCapped ? <p className="mt-1 text-xs text-muted">{t("log.cost.capped")}</p> : null}
      {sum.isMinimum ? <p className="mt-1 text-xs text-muted">{t("log.cost.minimum")}</p> : null}
    </section>
  );
}
