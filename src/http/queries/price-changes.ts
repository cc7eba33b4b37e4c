// Changes of prices as console calls send and get them: of plans, drafts, revisions and undos alike.
import { t } from "elysia";
import type { PriceChange } from "../../core/prices/changes.ts";
import { MAX_PLAN_CHANGES } from "../../shared/price-desk.ts";
import { plainText } from "../plain-text.ts";

export const revisionNumber = t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** An option that holds prices, and an entry of it; empty for an option that is one value. */
export const changePlace = { key: plainText(128), name: plainText(255) };

/** Number, text or JSON of one entry; null takes it away. The option's own kind judges it. */
const entryValue = t.Union([
  t.Null(),
  t.Number(),
  plainText(100_000),
  t.Record(t.String(), t.Unknown()),
  t.Array(t.Unknown()),
]);

export const sentChanges = t.Array(
  t.Object({
    ...changePlace,
    after: entryValue,
    before: t.Optional(entryValue),
    /** As the comparison with a source gave it. */
    taken: t.Optional(plainText(400)),
  }),
  { maxItems: MAX_PLAN_CHANGES },
);

/** As they are answered. */
export function plainChanges(changes: readonly PriceChange[]) {
  return changes.map(({ key, name, before, after, taken }) => ({
    key: key as string,
    name,
    before,
    after,
    ...(taken === undefined ? {} : { taken }),
  }));
}
