// LiteLLM's table of prices: dollars per single token, by name and provider, with thresholds and tiers in field names.
// Refuses entries that are priced by pixels, characters and other things that calls are not counted in.
import { isDollars } from "../../../shared/price-row.ts";
import type { PriceRow, PriceRule, TokenKind, TokenPrices } from "../../../shared/price-row.ts";
import { BadEntry, badSource, collector, dollarsOf, isRecord, jsonOf } from "./source.ts";
import type { SourcePrices } from "./source.ts";

const PER_MILLION = 1e6;

const FIELD_KINDS: Readonly<Record<string, TokenKind>> = {
  input_cost_per_token: "in",
  output_cost_per_token: "out",
  output_cost_per_reasoning_token: "thinking",
  cache_read_input_token_cost: "cache_read",
  cache_creation_input_token_cost: "cache_write",
  cache_creation_input_token_cost_above_1hr: "cache_write_1h",
  input_cost_per_image_token: "image_in",
  output_cost_per_image_token: "image_out",
  input_cost_per_audio_token: "audio_in",
  output_cost_per_audio_token: "audio_out",
};

const TIERS: Readonly<Record<string, string>> = { priority: "priority", flex: "flex", batches: "batch" };

const FIELD = /^(.+?)(?:_above_(\d+)k_tokens)?(?:_(priority|flex|batches))?$/;

interface Place {
  kind: TokenKind;
  over: number | undefined;
  tier: string | undefined;
}

/** Which price a field is; undefined for fields that are none of a token. */
function placeOf(field: string): Place | undefined {
  const [, name = "", over, tier] = FIELD.exec(field) ?? [];
  const kind = Object.hasOwn(FIELD_KINDS, name) ? FIELD_KINDS[name] : undefined;
  if (kind === undefined) return undefined;
  return {
    kind,
    over: over === undefined ? undefined : Number(over) * 1000,
    tier: tier === undefined ? undefined : TIERS[tier],
  };
}

interface Group {
  over: number | undefined;
  tier: string | undefined;
  set: TokenPrices;
}

/** Without conditions first, then thresholds, then tiers, then both: of two that apply the narrower comes last and wins. */
function byWidth(a: Group, b: Group): number {
  const rank = ({ over, tier }: Group) => (tier === undefined ? 0 : 2) + (over === undefined ? 0 : 1);
  return rank(a) - rank(b) || (a.over ?? 0) - (b.over ?? 0);
}

function tokenRow(entry: Record<string, unknown>): PriceRow | undefined {
  const groups = new Map<string, Group>();
  for (const [field, value] of Object.entries(entry)) {
    const place = placeOf(field);
    if (!place) continue;
    const price = dollarsOf(value, field, PER_MILLION);
    if (price === undefined) continue;
    const key = `${place.over}|${place.tier}`;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { over: place.over, tier: place.tier, set: {} }));
    group.set[place.kind] = price;
  }
  const base = groups.get("undefined|undefined")?.set;
  if (base?.in === undefined && base?.out === undefined) return undefined;
  const row: PriceRow = { ...base, in: base.in ?? 0 };
  const when = [...groups.values()]
    .filter(({ over, tier }) => over !== undefined || tier !== undefined)
    .toSorted(byWidth)
    .map(({ over, tier, set }): PriceRule => ({
      ...(over === undefined ? {} : { over }),
      ...(tier === undefined ? {} : { tier }),
      set,
    }));
  return when.length > 0 ? { ...row, when } : row;
}

/** Prices by ranges of the prompt's length: the first is the base, each other one is over where it begins. */
function rangedRow(ranges: readonly unknown[]): PriceRow {
  const steps = ranges.map((entry) => {
    const range = isRecord(entry) ? entry["range"] : undefined;
    const start: unknown = Array.isArray(range) ? range[0] : undefined;
    const row = isRecord(entry) ? tokenRow(entry) : undefined;
    if (typeof start !== "number" || !Number.isSafeInteger(start) || start < 0 || !row)
      throw new BadEntry("number", "tiered_pricing");
    return { start, row };
  });
  steps.sort((a, b) => a.start - b.start);
  const [first, ...rest] = steps;
  if (!first || first.start !== 0) throw new BadEntry("number", "tiered_pricing");
  if (rest.length === 0) return first.row;
  return { ...first.row, when: rest.map(({ start, row }) => ({ over: start, set: row as TokenPrices })) };
}

const PIECES = [
  ["output_cost_per_video_per_second", "second"],
  ["output_cost_per_second", "second"],
  ["output_cost_per_image", "image"],
] as const;

function pieceRow(entry: Record<string, unknown>): PriceRow | undefined {
  for (const [field, unit] of PIECES) {
    const price = dollarsOf(entry[field], field);
    if (price !== undefined && price > 0) return { call: price, unit };
  }
  return undefined;
}

/** Dollars per thousand searches, the dearest of the sizes. */
function searchPrice(entry: Record<string, unknown>): number | undefined {
  const sizes = entry["search_context_cost_per_query"];
  if (!isRecord(sizes)) return undefined;
  const prices = Object.values(sizes).filter(isDollars);
  return prices.length > 0
    ? dollarsOf(Math.max(...prices), "search_context_cost_per_query", 1000)
    : undefined;
}

function rowOf(entry: Record<string, unknown>): PriceRow {
  const ranges = entry["tiered_pricing"];
  const row =
    (Array.isArray(ranges) && ranges.length > 0 ? rangedRow(ranges) : tokenRow(entry)) ?? pieceRow(entry);
  if (!row) throw new BadEntry("unit", typeof entry["mode"] === "string" ? entry["mode"] : "");
  const search = searchPrice(entry);
  return search === undefined ? row : { ...row, tools: { web_search: search } };
}

/** Rows by the names of the file; `provider/name` stays as it is. */
export function readLiteLlm(text: string): SourcePrices {
  const parsed = jsonOf(text, "litellm");
  if (!isRecord(parsed)) throw badSource("litellm");
  const entries = Object.entries(parsed).filter(([name]) => name !== "sample_spec");
  if (!entries.some(([, entry]) => isRecord(entry) && "litellm_provider" in entry))
    throw badSource("litellm");
  const found = collector();
  for (const [key, entry] of entries) {
    found.entry(key, (name, add) => {
      if (!isRecord(entry)) throw new BadEntry("number", "");
      found.limits(name, { context: entry["max_input_tokens"], maxOutput: entry["max_output_tokens"] });
      add(rowOf(entry));
    });
  }
  return found.result();
}
