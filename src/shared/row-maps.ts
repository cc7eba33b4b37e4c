// Rows in dollars to the maps of ratios that options hold, and back.
// Refuses to round what is charged: a ratio is kept with as few digits as give the same price, else as the double it is.
import { MAX_DOLLARS, TOKEN_KINDS } from "./price-row.ts";
import type { PriceRow, PriceRules, TokenKind } from "./price-row.ts";
import { audioOutput, audioRatio, completionRatio } from "./completion-rules.ts";

/** The options that together hold the prices of models, in the order in which they are shown. */
const RATIO_MAPS = [
  "ModelRatio",
  "CompletionRatio",
  "CacheRatio",
  "CreateCacheRatio",
  "CreateCache1hRatio",
  "ImageRatio",
  "AudioRatio",
  "AudioCompletionRatio",
  "ModelPrice",
] as const;
export const PRICE_MAPS = [...RATIO_MAPS, "PriceRules"] as const;

type RatioMap = (typeof RATIO_MAPS)[number];
export type PriceMaps = Record<RatioMap, Record<string, number>> & { PriceRules: Record<string, PriceRules> };

export function emptyMaps(): PriceMaps {
  return {
    ModelRatio: {},
    CompletionRatio: {},
    CacheRatio: {},
    CreateCacheRatio: {},
    CreateCache1hRatio: {},
    ImageRatio: {},
    AudioRatio: {},
    AudioCompletionRatio: {},
    ModelPrice: {},
    PriceRules: {},
  };
}

/** Price of a cache write for an hour over one for five minutes, where nobody says. */
export const ONE_HOUR_WRITE = 1.6;

const TOKENS_PER_MTOK = 1_000_000;
/** Digits that a ratio is written with where they suffice. */
const SHORT_DIGITS = 12;
/** What doubles are off by when they are multiplied and divided; more would move a charge. */
const DRIFT = 4e-16;

/** price / base with few digits where that gives the price back. */
function quotient(price: number, base: number): number {
  const exact = price / base;
  const short = Number(exact.toPrecision(SHORT_DIGITS));
  return Math.abs(short * base - price) <= DRIFT * price ? short : exact;
}

/** A product of doubles as the number that somebody once typed. */
function product(...factors: number[]): number {
  return Number(factors.reduce((all, each) => all * each, 1).toPrecision(SHORT_DIGITS));
}

function own<T>(map: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

/** Every model that has a price. */
export function pricedNames({
  ModelRatio,
  ModelPrice,
}: Pick<PriceMaps, "ModelRatio" | "ModelPrice">): string[] {
  return [...new Set([...Object.keys(ModelRatio), ...Object.keys(ModelPrice)])];
}

/**
 * What a model costs, in dollars; undefined where it has no price. The price of output is always told, since it is
 * charged even where only the model's name says what it is; other kinds are told where somebody priced them.
 */
export function rowOf(maps: PriceMaps, name: string, quotaPerUnit: number): PriceRow | undefined {
  const call = own(maps.ModelPrice, name);
  const rules = own(maps.PriceRules, name) ?? {};
  if (call !== undefined) {
    const { unit, tools, when } = rules;
    return { call, ...(unit && { unit }), ...(tools && { tools }), ...(when && { when }) };
  }
  const ratio = own(maps.ModelRatio, name);
  if (ratio === undefined) return undefined;
  const dollars = TOKENS_PER_MTOK / quotaPerUnit;
  const row: PriceRow = { in: product(ratio, dollars) };
  const put = (kind: TokenKind, factor: number | undefined, ...more: number[]) => {
    if (factor !== undefined) row[kind] = product(ratio, dollars, factor, ...more);
  };
  put("out", completionRatio(name, maps.CompletionRatio));
  put("cache_read", own(maps.CacheRatio, name));
  put("cache_write", own(maps.CreateCacheRatio, name));
  put("cache_write_1h", own(maps.CreateCache1hRatio, name));
  put("image_in", own(maps.ImageRatio, name));
  const sound = own(maps.AudioRatio, name);
  put("audio_in", sound);
  put("audio_out", own(maps.AudioCompletionRatio, name), sound ?? audioRatio(name));
  return { ...row, ...rules };
}

function clear(maps: PriceMaps, name: string): void {
  for (const map of PRICE_MAPS) delete maps[map][name];
}

/** What the maps of ratios cannot say: kinds without a map, all kinds of a model whose input is free, sound beside free sound. */
function rulesOf(row: PriceRow): PriceRules {
  const { unit, tools, when } = row;
  const rules: PriceRules = {};
  const absolute: TokenKind[] = row.in === 0 ? [...TOKEN_KINDS] : ["thinking", "image_out"];
  if (row.audio_in === 0 && row.in !== 0) absolute.push("audio_out");
  if (row.call === undefined) {
    for (const kind of absolute) {
      const price = row[kind];
      if (kind !== "in" && price !== undefined && (row.in !== 0 || price > 0)) rules[kind] = price;
    }
  }
  if (unit !== undefined) rules.unit = unit;
  if (tools !== undefined) rules.tools = tools;
  if (when !== undefined) rules.when = when;
  return rules;
}

/** Writes a row into the maps in place of what they had; undefined takes the model's price away. */
export function putRow(maps: PriceMaps, name: string, row: PriceRow | undefined, quotaPerUnit: number): void {
  clear(maps, name);
  if (!row) return;
  const rules = rulesOf(row);
  if (Object.keys(rules).length > 0) maps.PriceRules[name] = rules;
  if (row.call !== undefined) {
    maps.ModelPrice[name] = row.call;
    return;
  }
  const input = row.in ?? 0;
  maps.ModelRatio[name] = quotient(input, TOKENS_PER_MTOK / quotaPerUnit);
  if (input === 0) return;
  const put = (map: RatioMap, price: number | undefined, base = input) => {
    if (price !== undefined) maps[map][name] = quotient(Math.min(price, MAX_DOLLARS), base);
  };
  put("CompletionRatio", row.out);
  put("CacheRatio", row.cache_read);
  put("CreateCacheRatio", row.cache_write);
  put("CreateCache1hRatio", row.cache_write_1h);
  put("ImageRatio", row.image_in);
  put("AudioRatio", row.audio_in);
  const sound = row.audio_in ?? input * audioRatio(name);
  if (sound > 0) put("AudioCompletionRatio", row.audio_out, sound);
}

/** The row as it comes back from the maps: what is compared with prices in force. */
export function heldRow(name: string, row: PriceRow, quotaPerUnit: number): PriceRow {
  const maps = emptyMaps();
  putRow(maps, name, row, quotaPerUnit);
  return rowOf(maps, name, quotaPerUnit) ?? row;
}

/** What kinds without a price of their own cost, in dollars: every kind of a row that is priced by token. */
export function everyKind(row: PriceRow, name: string): Record<TokenKind, number> {
  const input = row.in ?? 0;
  const output = row.out ?? input * completionRatio(name, {});
  const write = row.cache_write ?? input * 1.25;
  const sound = row.audio_in ?? input * audioRatio(name);
  return {
    in: input,
    out: output,
    thinking: row.thinking ?? output,
    cache_read: row.cache_read ?? input,
    cache_write: write,
    cache_write_1h: row.cache_write_1h ?? write * ONE_HOUR_WRITE,
    image_in: row.image_in ?? input,
    image_out: row.image_out ?? output,
    audio_in: sound,
    audio_out: row.audio_out ?? audioOutput(name, output, sound),
  };
}
