// The section `prices` of a settings file: rows in dollars per million tokens or per call, against the maps of ratios.
// Refuses rows without a price of the input or of the call: they would be free unseen.
import { isPriceName, isSameRow, readPriceRow, tidyDollars, TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceRow } from "../../shared/price-row.ts";
import { definitionOf } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import { emptyMaps, heldRow, PRICE_MAPS, pricedNames, putRow, rowOf } from "../../shared/row-maps.ts";
import type { PriceMaps } from "../../shared/row-maps.ts";
import { byName, entriesOf, isRecord, noteFields, wrong } from "./judge.ts";
import type { Judge, Path } from "./judge.ts";

const ROW_FIELDS: readonly string[] = ["call", "unit", ...TOKEN_KINDS, "tools", "when"];
const RULE_FIELDS: readonly string[] = [
  "over",
  "hours",
  "days",
  "tz",
  "from",
  "until",
  "tier",
  "size",
  "quality",
  "set",
  "times",
];
const SET_FIELDS: readonly string[] = [...TOKEN_KINDS, "call"];

function parsed(key: OptionKey, text: string): unknown {
  const { kind, default: shipped } = definitionOf(key);
  try {
    return kind.parse(text);
  } catch {
    return kind.parse(shipped);
  }
}

/** The maps that together hold the prices, as their texts say them. */
function mapsIn(texts: ReadonlyMap<OptionKey, string>): PriceMaps {
  const maps = emptyMaps();
  for (const key of PRICE_MAPS)
    Object.assign(maps[key], parsed(key, texts.get(key) ?? definitionOf(key).default));
  return maps;
}

export const quotaPerUnitIn = (texts: ReadonlyMap<OptionKey, string>): number =>
  Number(parsed("QuotaPerUnit", texts.get("QuotaPerUnit") ?? definitionOf("QuotaPerUnit").default));

/** A row as files show it: prices as people typed them. */
function shownRow(row: PriceRow): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const field of ROW_FIELDS) {
    const value = row[field as keyof PriceRow];
    if (value !== undefined) shown[field] = typeof value === "number" ? tidyDollars(value) : value;
  }
  return shown;
}

/** Every price in force, by name. */
export function shownPrices(texts: ReadonlyMap<OptionKey, string>): Record<string, Record<string, unknown>> {
  const maps = mapsIn(texts);
  const quotaPerUnit = quotaPerUnitIn(texts);
  const rows = pricedNames(maps).flatMap((name): [string, Record<string, unknown>][] => {
    const row = rowOf(maps, name, quotaPerUnit);
    return row ? [[name, shownRow(row)]] : [];
  });
  return Object.fromEntries(rows.toSorted(byName));
}

/** `when[0].set.in` as the path that it is. */
const pathOf = (place: string): string[] => place.split(/[.[\]]+/).filter((part) => part !== "");

function allowedAt(place: readonly string[]): readonly string[] | undefined {
  if (place.length === 1) return ROW_FIELDS;
  if (place[0] !== "when") return undefined;
  if (place.length === 3) return RULE_FIELDS;
  return place.length === 4 && place[2] === "set" ? SET_FIELDS : undefined;
}

function readRow(judge: Judge, path: Path, value: unknown): PriceRow | undefined {
  if (!isRecord(value)) {
    wrong(judge, path, "config_not_map");
    return undefined;
  }
  const { row, problem } = readPriceRow(value);
  if (!row) {
    const place = pathOf(problem);
    const name = place.at(-1) ?? "";
    const allowed = allowedAt(place);
    if (allowed && !allowed.includes(name))
      wrong(judge, [...path, ...place], "config_unknown", { name, allowed: allowed.join(", ") });
    else wrong(judge, [...path, ...place], "config_bad_price", { place: problem });
    return undefined;
  }
  const isOfCall = row.call !== undefined;
  const isOfTokens = TOKEN_KINDS.some((kind) => row[kind] !== undefined);
  if (isOfCall === isOfTokens || (!isOfCall && row.in === undefined)) {
    wrong(judge, path, isOfCall && isOfTokens ? "config_price_both" : "config_price_base");
    return undefined;
  }
  return row;
}

/** `quotaPerUnit`: as it will be, where the same file changes it. */
export function judgePrices(judge: Judge, value: unknown, quotaPerUnit: number): void {
  const { texts } = judge.state;
  const maps = mapsIn(texts);
  const current = quotaPerUnitIn(texts);
  const put = (name: string, row: PriceRow | undefined): void => {
    const fresh = emptyMaps();
    putRow(fresh, name, row, quotaPerUnit);
    for (const key of PRICE_MAPS) judge.prices.push({ key, name, after: fresh[key][name] ?? null });
    const before = rowOf(maps, name, current);
    const after = row && heldRow(name, row, quotaPerUnit);
    judge.rows.push({ name, before, after });
    noteFields(judge, { section: "prices", name }, before && shownRow(before), after && shownRow(after));
  };
  const named = new Set<string>();
  for (const [name, sent] of entriesOf(judge, ["prices"], value)) {
    const path = ["prices", name];
    named.add(name);
    if (!isPriceName(name)) {
      wrong(judge, path, "config_bad_name", { name });
      continue;
    }
    const row = readRow(judge, path, sent);
    if (row && !isSameRow(rowOf(maps, name, quotaPerUnit), heldRow(name, row, quotaPerUnit))) put(name, row);
  }
  if (!judge.prunes.has("prices")) return;
  for (const name of pricedNames(maps).toSorted()) if (!named.has(name)) put(name, undefined);
}
