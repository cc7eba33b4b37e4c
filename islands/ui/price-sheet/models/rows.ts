// Which models the sheet shows and in which order: by view, search, billing and sorting, all of it in the address.
// Refuses to take a row away while it is edited: what no longer fits the view stays until the view is opened again.
import { useSignals } from "@preact/signals-react/runtime";
import { useMemo, useState } from "react";
import { language } from "../../../lib/i18n.ts";
import {
  isInView,
  MODEL_VIEWS,
  modelQuestion,
  modelsShown,
  usedNames,
} from "../../../../src/shared/price-desk.ts";
import type { DeskPrices, ModelFacts, ModelView } from "../../../../src/shared/price-desk.ts";
import { priceName } from "../../../../src/shared/price-name.ts";
import { PRICE_MAPS } from "../../../../src/shared/row-maps.ts";
import type { Query } from "../../../lib/url-state.ts";
import type { SheetProps } from "../../sheet-types.ts";
import type { Desk } from "../desk.ts";
import { billingOf } from "./cells.ts";
import { BASE_COLUMNS, MORE_COLUMNS } from "./columns.ts";
import type { ModelColumnId } from "./columns.ts";

const MODEL_MAPS: ReadonlySet<string> = new Set(PRICE_MAPS);
const COLUMN_IDS: readonly string[] = [...BASE_COLUMNS, ...MORE_COLUMNS].map(({ id }) => id);

type Sort = NonNullable<SheetProps<string>["sort"]>;

/** "in" ascending, "-in" descending. */
export function sortOf({ sort = "" }: Query): Sort | undefined {
  const column = sort.replace(/^-/, "");
  return COLUMN_IDS.includes(column) ? { column, isDescending: sort.startsWith("-") } : undefined;
}

/** Ascending, descending, as it was. */
export function nextSort(sort: Sort | undefined, column: string): string | undefined {
  if (sort?.column !== column) return column;
  return sort.isDescending ? undefined : `-${column}`;
}

function changedModels(desk: Desk): Set<string> {
  return new Set(desk.changes.value.filter(({ key }) => MODEL_MAPS.has(key)).map(({ name }) => name));
}

export interface Facts extends ModelFacts {
  /** Calls of the last day that were refused for want of a price. */
  refusedOf: (name: string) => number;
}

function factsOf(desk: Desk, prices: DeskPrices): Facts {
  const makers = new Map(
    prices.makers.flatMap((maker) => maker.models.map((name) => [name, maker[language.value]] as const)),
  );
  const refused = new Map<string, number>();
  for (const [model, count] of Object.entries(prices.refused)) {
    const name = priceName(model);
    refused.set(name, (refused.get(name) ?? 0) + count);
  }
  return {
    billingOf: (name) =>
      desk.valueOf("ModelPrice", name) !== null
        ? "call"
        : desk.valueOf("ModelRatio", name) === null
          ? undefined
          : "tokens",
    isChanged: (name) => changedModels(desk).has(name),
    makerOf: (name) => makers.get(name) ?? "",
    used: usedNames(prices.served),
    refusedOf: (name) => refused.get(name) ?? 0,
  };
}

/** Rows without a value stand last, whichever way is sorted. */
function sortedBy(names: readonly string[], { column, isDescending }: Sort, desk: Desk): string[] {
  const sign = isDescending ? -1 : 1;
  if (column === "name") return names.toSorted((a, b) => (a < b ? -sign : sign));
  const valueOf = (name: string): number | string | undefined => {
    const row = desk.rowOf(name);
    return column === "billing"
      ? billingOf(row)
      : row?.[column as Exclude<ModelColumnId, "name" | "billing">];
  };
  const values = new Map(names.map((name) => [name, valueOf(name)]));
  return names.toSorted((a, b) => {
    const [one, other] = [values.get(a), values.get(b)];
    if (one === other) return a < b ? -1 : 1;
    if (one === undefined) return 1;
    if (other === undefined) return -1;
    return one < other ? -sign : sign;
  });
}

export interface ShownModels {
  rows: readonly string[];
  counts: Record<ModelView, number>;
  facts: Facts;
  /** Puts a new name on top, and the focus there. */
  add: (name: string) => void;
  goTo: { rowKey: string; columnId: string } | undefined;
  /** Looks again which models fit the view. */
  refresh: () => void;
  isKnown: (name: string) => boolean;
}

export function useShownModels(desk: Desk, prices: DeskPrices, query: Query): ShownModels {
  useSignals();
  const [added, setAdded] = useState<readonly string[]>([]);
  const [goTo, setGoTo] = useState<ShownModels["goTo"]>();
  const [looks, setLooks] = useState(0);
  const facts = useMemo(() => factsOf(desk, prices), [desk, prices, language.value]);
  const changed = changedModels(desk);
  const namesNow = () => [
    ...desk.namesOf("ModelRatio"),
    ...desk.namesOf("ModelPrice"),
    ...facts.used,
    ...changed,
  ];
  const question = modelQuestion(query);
  const sort = sortOf(query);
  const rows = useMemo(() => {
    // A set of this moment: asking for each name anew would count all changes for each.
    const shown = modelsShown(namesNow(), question, { ...facts, isChanged: (name) => changed.has(name) });
    const inOrder = sort ? sortedBy(shown, sort, desk) : shown;
    return [...added, ...inOrder.filter((name) => !added.includes(name))];
  }, [prices, facts, added, looks, JSON.stringify([question, sort])]);
  const counts = useMemo(() => {
    const now = { ...facts, isChanged: (name: string) => changed.has(name) };
    const found = { all: 0, unpriced: 0, changed: 0, used: 0 };
    for (const name of new Set(namesNow())) {
      for (const view of MODEL_VIEWS) if (isInView(name, view, now)) found[view] += 1;
    }
    return found;
  }, [facts, desk.changes.value]);
  return {
    rows,
    counts,
    facts,
    add(name) {
      setAdded([name, ...added.filter((each) => each !== name)]);
      setGoTo({ rowKey: name, columnId: "in" });
    },
    goTo,
    refresh: () => setLooks(looks + 1),
    isKnown: (name) => rows.includes(name) || namesNow().includes(name),
  };
}
