// Models in use without a price, which the shipped table has one for: with one click they have it. Root sets them at once, with
// a way back; administrators get them as changes of their draft.
import { useSignals } from "@preact/signals-react/runtime";
import { useT } from "../../../lib/i18n.ts";
import { useTablePrices } from "../../../lib/table-prices.ts";
import type { SectionProps } from "../section-props.ts";
import type { Facts } from "./rows.ts";

export function TableOffer({ desk, canApply, reload, facts }: SectionProps & { facts: Facts }) {
  useSignals();
  const t = useT();
  const missing = [...facts.used].filter((name) => facts.billingOf(name) === undefined).sort();
  const table = useTablePrices(missing, true, reload);
  if (table.found.length === 0) return null;
  const count = table.found.length;
  const fillIn = () =>
    desk.writeRows(
      new Map(table.found.map((name) => [name, table.rowOf(name)])),
      t("desk.models.step.table", { count }),
    );
  return (
    <button
      type="button"
      className="btn btn-default btn-sm pointer-coarse:min-h-11"
      disabled={table.isBusy}
      aria-busy={table.isBusy}
      title={t("price.tableOf", { date: table.date })}
      onClick={() => (canApply ? void table.take() : fillIn())}
    >
      {t("price.useTable", { count })}
    </button>
  );
}
