// OpenRouter's list of models: decimal strings in dollars per single token, with overrides by length and hour.
// Refuses prices that change from call to call, which the list marks by a negative number.
import type { PriceRow, PriceRule, TokenKind, TokenPrices } from "../../../shared/price-row.ts";
import { BadEntry, badSource, collector, isRecord, jsonOf } from "./source.ts";
import type { SourcePrices } from "./source.ts";

const PER_MILLION = 1e6;
const PER_THOUSAND = 1e3;

const FIELD_KINDS: Readonly<Record<string, TokenKind>> = {
  prompt: "in",
  completion: "out",
  internal_reasoning: "thinking",
  input_cache_read: "cache_read",
  input_cache_write: "cache_write",
  input_cache_write_1h: "cache_write_1h",
  audio: "audio_in",
  audio_output: "audio_out",
};

const DECIMAL = /^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** Undefined for what is absent; throws for what is no price. */
function priceOf(value: unknown, field: string, factor: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || !DECIMAL.test(value)) throw new BadEntry("number", field);
  const price = Number(value);
  if (price < 0) throw new BadEntry("variable", field);
  return Number((price * factor).toPrecision(12));
}

/** A kind that is listed as free while tokens cost is not charged apart by the list: it costs what its family does. */
function tokensOf(pricing: Record<string, unknown>): TokenPrices {
  const prices: TokenPrices = {};
  for (const [field, kind] of Object.entries(FIELD_KINDS)) {
    const price = priceOf(pricing[field], field, PER_MILLION);
    if (price === undefined) continue;
    if (price === 0 && kind !== "in" && kind !== "out") continue;
    prices[kind] = price;
  }
  return prices;
}

const HOUR = /^([01]?\d|2[0-4])(?::([0-5]\d))?/;

function clockOf(value: unknown): string {
  const match = HOUR.exec(typeof value === "number" ? String(value) : typeof value === "string" ? value : "");
  if (!match) throw new BadEntry("unit", "overrides");
  return `${(match[1] ?? "").padStart(2, "0")}:${match[2] ?? "00"}`;
}

function ruleOf(override: unknown): PriceRule {
  if (!isRecord(override)) throw new BadEntry("unit", "overrides");
  const { min_prompt_tokens: least, utc_start: start, utc_end: end } = override;
  const rule: PriceRule = {};
  if (least !== undefined && least !== null) {
    if (typeof least !== "number" || !Number.isSafeInteger(least) || least < 1)
      throw new BadEntry("number", "overrides");
    // From so many on, where ours are above so many.
    rule.over = least - 1;
  }
  if (start !== undefined && start !== null) {
    const to = clockOf(end);
    rule.hours = [`${clockOf(start)}-${to === "00:00" ? "24:00" : to}`];
    rule.tz = "UTC";
  }
  const set = tokensOf(isRecord(override["prices"]) ? override["prices"] : override);
  if ((rule.over === undefined && rule.hours === undefined) || Object.keys(set).length === 0)
    throw new BadEntry("unit", "overrides");
  return { ...rule, set };
}

function rowOf(model: Record<string, unknown>): PriceRow {
  const { pricing } = model;
  if (!isRecord(pricing)) throw new BadEntry("number", "pricing");
  const row: PriceRow = tokensOf(pricing);
  const request = priceOf(pricing["request"], "request", 1);
  const image = priceOf(pricing["image"], "image", 1);
  const search = priceOf(pricing["web_search"], "web_search", PER_THOUSAND);
  if (row.in === undefined && row.out === undefined) throw new BadEntry("number", "prompt");
  row.in ??= 0;
  const isTokenFree = row.in === 0 && (row.out ?? 0) === 0;
  // Beside tokens a fee per call is nothing that calls are counted in; alone it is the price.
  if (request !== undefined && request > 0) {
    if (!isTokenFree) throw new BadEntry("unit", "request");
    return { call: request };
  }
  if (isTokenFree && image !== undefined && image > 0) return { call: image, unit: "image" };
  if (search !== undefined && search > 0) row.tools = { web_search: search };
  const overrides = pricing["overrides"];
  if (overrides === undefined || overrides === null) return row;
  if (!Array.isArray(overrides)) throw new BadEntry("unit", "overrides");
  return overrides.length > 0 ? { ...row, when: (overrides as unknown[]).map(ruleOf) } : row;
}

/** Rows by the list's own ids, such as openai/gpt-5.4. */
export function readOpenRouter(text: string): SourcePrices {
  const parsed = jsonOf(text, "openrouter");
  const data: unknown = isRecord(parsed) ? parsed["data"] : undefined;
  if (!Array.isArray(data)) throw badSource("openrouter");
  const found = collector();
  for (const model of data as unknown[]) {
    found.entry(isRecord(model) ? model["id"] : model, (name, add) => {
      if (!isRecord(model)) throw new BadEntry("number", "");
      const top = isRecord(model["top_provider"]) ? model["top_provider"] : {};
      found.limits(name, { context: model["context_length"], maxOutput: top["max_completion_tokens"] });
      add(rowOf(model));
    });
  }
  return found.result();
}
