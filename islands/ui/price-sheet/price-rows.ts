// Entries of the options that hold prices as whole prices of models, in dollars, and back.
// Refuses to touch numbers that nobody meant to change.
import { completionRatio } from "../../../src/shared/completion-rules.ts";
import { emptyMaps, PRICE_MAPS, putRow, rowOf } from "../../../src/shared/row-maps.ts";
import type { PriceMaps } from "../../../src/shared/row-maps.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";
import type { Edit } from "./desk.ts";

/** What an entry is; null where there is none. */
type ValueOf = (key: string, name: string) => unknown;

export interface PriceRows {
  /** A model's price in dollars with the changes; undefined: it has none. */
  rowOf: (model: string) => PriceRow | undefined;
  storedRowOf: (model: string) => PriceRow | undefined;
  /** The price that a model would have after further edits. */
  rowAfter: (model: string, edits: readonly Edit[]) => PriceRow | undefined;
  /** The edits that whole prices would be; undefined takes a price away. `taken`: whose they are, by model. */
  editsOfRows: (
    rows: ReadonlyMap<string, PriceRow | undefined>,
    taken?: ReadonlyMap<string, string>,
  ) => Edit[];
}

/** The maps of one model, as far as they say something of it. */
function mapsOf(model: string, valueOf: (key: string, name: string) => unknown): PriceMaps {
  const maps = emptyMaps();
  for (const key of PRICE_MAPS) {
    const value = valueOf(key, model);
    if (value !== null) (maps[key] as Record<string, unknown>)[model] = value;
  }
  return maps;
}

/** Doubles differ by this when they are divided and multiplied back; a price that somebody meant differs by more. */
const DRIFT = 1e-9;

function isNear(one: unknown, other: unknown): boolean {
  return (
    typeof one === "number" && typeof other === "number" && Math.abs(one - other) <= DRIFT * Math.abs(other)
  );
}

export function priceRows({
  valueOf,
  storedValueOf,
}: {
  valueOf: ValueOf;
  storedValueOf: ValueOf;
}): PriceRows {
  const quotaPerUnit = (): number => Number(valueOf("QuotaPerUnit", "")) || 500_000;
  const editsOfRows: PriceRows["editsOfRows"] = (rows, taken) => {
    const maps = emptyMaps();
    const list: Edit[] = [];
    for (const [model, row] of rows) {
      putRow(maps, model, row, quotaPerUnit());
      const mark = taken?.get(model);
      const more = mark === undefined ? {} : { taken: mark };
      for (const key of PRICE_MAPS) {
        const before = valueOf(key, model);
        const fresh = maps[key][model] ?? null;
        // What nobody touched keeps the very number that is stored.
        const after = isNear(fresh, before) ? before : fresh;
        // Output that costs what the model's name says needs no entry that says so.
        const isDerived =
          key === "CompletionRatio" && before === null && isNear(after, completionRatio(model, {}));
        list.push({ key, name: model, after: isDerived ? null : after, ...more });
      }
    }
    return list;
  };
  return {
    rowOf: (model) => rowOf(mapsOf(model, valueOf), model, quotaPerUnit()),
    storedRowOf: (model) =>
      rowOf(mapsOf(model, storedValueOf), model, Number(storedValueOf("QuotaPerUnit", "")) || quotaPerUnit()),
    rowAfter(model, list) {
      const after = new Map(list.filter(({ name }) => name === model).map((edit) => [edit.key, edit.after]));
      const value: ValueOf = (key, name) => (after.has(key) ? after.get(key) : valueOf(key, name));
      return rowOf(mapsOf(model, value), model, quotaPerUnit());
    },
    editsOfRows,
  };
}
