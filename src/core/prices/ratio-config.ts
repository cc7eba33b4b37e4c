// GET /api/ratio_config: this site's prices in the words of the family, so that other instances can take them over.
// Refuses to tell them as long as the operator has not switched ExposeRatioEnabled on, and to tell a price that would be too low
// where it is read: what ratios cannot say is an expression, and what neither can is left out.
import { DEFAULT_QUOTA_PER_UNIT } from "../../shared/money.ts";
import { TOKEN_KINDS } from "../../shared/price-row.ts";
import type { CallUnit, PriceRow, TokenKind } from "../../shared/price-row.ts";
import { everyKind, pricedNames, rowOf } from "../../shared/row-maps.ts";
import { priceMapsOf } from "./prices.ts";
import type { PriceTables } from "./prices.ts";

/** Names of the family's expressions for kinds of tokens; thoughts are a part of `c` there. */
const VARIABLES: readonly (readonly [string, TokenKind])[] = [
  ["p", "in"],
  ["c", "out"],
  ["cr", "cache_read"],
  ["cc", "cache_write"],
  ["cc1h", "cache_write_1h"],
  ["img", "image_in"],
  ["img_o", "image_out"],
  ["ai", "audio_in"],
  ["ao", "audio_out"],
];

function tier(title: string, row: PriceRow, name: string): string {
  const kinds = everyKind(row, name);
  const prices = { ...kinds, out: Math.max(kinds.out, kinds.thinking) };
  const sum = VARIABLES.map(([variable, kind]) => `${variable} * ${Number(prices[kind].toPrecision(10))}`);
  return `tier("${title}", ${sum.join(" + ")})`;
}

/**
 * A chain over the thresholds of a row, or its prices alone where ratios cannot say them (`isRated`); undefined where ratios
 * can, and of conditions that a chain does not know.
 */
function expressionOf(row: PriceRow, name: string, isRated: boolean): string | undefined {
  const { when = [] } = row;
  const steps = when.filter(({ over }) => over !== undefined);
  const isChain = steps.every(
    ({ over, set, times, ...others }, index) =>
      set !== undefined &&
      times === undefined &&
      Object.keys(others).length === 0 &&
      (over ?? 0) > (steps[index - 1]?.over ?? -1),
  );
  if (row.call !== undefined) return undefined;
  if (steps.length === 0 || steps.length < when.length || !isChain)
    return isRated ? `v1:${tier("base", row, name)}` : undefined;
  let text = "v1:";
  let current = row;
  let title = "base";
  for (const { over = 0, set } of steps) {
    text += `len <= ${over} ? ${tier(title, current, name)} : `;
    current = { ...current, ...set };
    title = `over_${over}`;
  }
  return text + tier(title, current, name);
}

/** What a fixed price is for one of where the family reads it: calls, and pictures of those that make them. */
const TOLD_UNITS: ReadonlySet<CallUnit> = new Set<CallUnit>(["call", "image"]);

/** The maps that other instances read. Ratio 1 is $2 there, whatever a dollar has units here. */
export function ratioConfig(tables: PriceTables) {
  const { quotaPerUnit } = tables;
  const maps = priceMapsOf(tables);
  const scale = DEFAULT_QUOTA_PER_UNIT / quotaPerUnit;
  const billing_mode: Record<string, string> = {};
  const billing_expr: Record<string, string> = {};
  const model_price: Record<string, number> = {};
  for (const name of pricedNames(maps)) {
    const row = rowOf(maps, name, quotaPerUnit);
    if (row?.call !== undefined && TOLD_UNITS.has(row.unit ?? "call")) model_price[name] = row.call;
    const rules = Object.hasOwn(maps.PriceRules, name) ? maps.PriceRules[name] : undefined;
    const isRated = TOKEN_KINDS.some((kind) => rules?.[kind] !== undefined);
    const expression = row && expressionOf(row, name, isRated);
    if (expression === undefined) continue;
    billing_mode[name] = "tiered_expr";
    billing_expr[name] = expression;
  }
  return {
    model_ratio:
      scale === 1
        ? maps.ModelRatio
        : Object.fromEntries(Object.entries(maps.ModelRatio).map(([name, ratio]) => [name, ratio * scale])),
    completion_ratio: maps.CompletionRatio,
    cache_ratio: maps.CacheRatio,
    create_cache_ratio: maps.CreateCacheRatio,
    create_cache_1h_ratio: maps.CreateCache1hRatio,
    image_ratio: maps.ImageRatio,
    audio_ratio: maps.AudioRatio,
    audio_completion_ratio: maps.AudioCompletionRatio,
    model_price,
    billing_mode,
    billing_expr,
  };
}
