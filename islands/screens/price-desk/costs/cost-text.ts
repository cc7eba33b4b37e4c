// A cost row in words: what it charges, and what it is multiplied by.
import { formatDollars } from "../../../lib/format.ts";
import type { Translate } from "../../../lib/i18n.ts";
import type { CostLine } from "../../../lib/wire.ts";

/** "in $2.50 · out $10.00 per million", or the list; times what it is multiplied by. */
export function costText(
  t: Translate,
  { row, factor, group_ratio: ratio }: Pick<CostLine, "row" | "factor" | "group_ratio">,
): string {
  const times = factor * ratio === 1 ? "" : ` × ${Number((factor * ratio).toPrecision(6))}`;
  if (row === null) return t("cost.list") + times;
  if (row.call !== undefined) return t("cost.perCall", { price: formatDollars(row.call) }) + times;
  const kinds = (["in", "cache_read", "cache_write", "out"] as const).flatMap((kind) => {
    const price = row[kind];
    return price === undefined ? [] : [`${t(`cost.kind.${kind}`)} ${formatDollars(price)}`];
  });
  return t("cost.perMillion", { prices: kinds.join(" · ") }) + times;
}
