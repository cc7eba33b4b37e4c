// What the shipped price table has for models without a price, and taking it: one change of prices, with a way back.
// Refuses to guess: until the table has answered, it has nothing.
import { useCallback, useEffect, useState } from "react";
import type { PriceRow } from "../../src/shared/price-row.ts";
import { api, call } from "./api.ts";
import { t } from "./i18n.ts";
import { namesText } from "./model-names.ts";
import { toast, toastFailure } from "./toasts.ts";

/** As many names as an address takes. */
const MOST_ASKED = 200;

export interface TablePrices {
  /** Models that the table has a price for. */
  found: readonly string[];
  /** The table's price of one of them. */
  rowOf: (model: string) => PriceRow | undefined;
  /** Of which day the prices are. */
  date: string;
  isBusy: boolean;
  /** Sets them; answers those that have a price now. */
  take: () => Promise<string[]>;
}

async function undo(revision: number, onPriced: () => Promise<void>): Promise<void> {
  try {
    await call(api.price.revisions({ id: revision }).undo.post({}));
    await onPriced();
  } catch (error) {
    toastFailure(error);
  }
}

/** `isAsked`: whether the reader may set prices at all. */
export function useTablePrices(
  models: readonly string[],
  isAsked: boolean,
  onPriced: () => Promise<void>,
): TablePrices {
  const [table, setTable] = useState({ rows: new Map<string, PriceRow>(), date: "" });
  const [isBusy, setBusy] = useState(false);
  const names = models.slice(0, MOST_ASKED).join(",");
  useEffect(() => {
    if (!isAsked || names === "") return;
    let isLatest = true;
    const ask = async () => {
      try {
        const { items, table: shipped } = await call(api.price.missing.get({ query: { models: names } }));
        const found = items.flatMap(({ name, row, guards }) =>
          row && guards.length === 0 ? [[name, row] as const] : [],
        );
        if (isLatest) setTable({ rows: new Map(found), date: shipped.date });
      } catch {
        // Prices can be typed all the same.
      }
    };
    void ask();
    return () => {
      isLatest = false;
    };
  }, [names, isAsked]);
  const take = useCallback(async () => {
    setBusy(true);
    try {
      const { set, unknown, guarded, revision } = await call(api.price.missing.post({ models: [...models] }));
      const rest = [...unknown, ...guarded];
      const text = t("price.saved", { count: set.length });
      toast({
        key: "prices",
        text:
          rest.length === 0
            ? text
            : `${text} ${t("price.notInTable", { count: rest.length, names: namesText(t, rest) })}`,
        ...(set.length === 0 ? { tone: "info" as const } : { undo: () => undo(revision, onPriced) }),
      });
      await onPriced();
      return set;
    } catch (error) {
      toastFailure(error);
      return [];
    } finally {
      setBusy(false);
    }
  }, [models, onPriced]);
  const asked = new Set(models);
  return {
    found: [...table.rows.keys()].filter((name) => asked.has(name)),
    rowOf: (model) => table.rows.get(model),
    date: table.date,
    isBusy,
    take,
  };
}
