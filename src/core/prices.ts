// Prices: what a model costs, what to hold back before a call, and what a call cost, with its explanation.
// Refuses every number that is not finite and positive: no input yields a negative, unsafe or missing charge.
import type { CostInputs, CostSum } from "../shared/cost.ts";
import { COST_FIELD, explainCost, storeCost } from "../shared/cost.ts";
import { DEFAULT_QUOTA_PER_UNIT, MAX_QUOTA, roundHalfAway } from "../shared/money.ts";
import type { Usage } from "../shared/usage.ts";
import { MAX_TOKEN_COUNT } from "../shared/usage.ts";
import { AUDIO_COMPLETION_RATIO, audioRatio, completionRatio } from "./completion-rules.ts";

type RatioTable = Readonly<Record<string, number>>;

export interface PriceTables {
  modelRatio: RatioTable;
  modelPrice: RatioTable;
  completionRatio: RatioTable;
  cacheRatio: RatioTable;
  createCacheRatio: RatioTable;
  imageRatio: RatioTable;
  groupRatio: RatioTable;
  quotaPerUnit: number;
}

/** What one model costs; `callPrice` set = a fixed price per call in dollars, all ratios are 0 then in the log. */
export interface ModelPricing {
  callPrice: number | undefined;
  modelRatio: number;
  completionRatio: number;
  cacheRatio: number;
  cacheWriteRatio: number;
  cacheWrite1hRatio: number;
  imageRatio: number;
  audioRatio: number;
  audioCompletionRatio: number;
}

/** The ratio at which models without a price are billed where they are allowed at all. */
export const MISSING_MODEL_RATIO = 37.5;

/** One-hour cache writes cost 2 where five-minute writes cost 1.25. */
const ONE_HOUR_WRITE = 2 / 1.25;

const own = (table: RatioTable, name: string): number | undefined =>
  Object.hasOwn(table, name) ? safeRatio(table[name]) : undefined;

function safeRatio(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Names of custom GPTs are priced under one alias each. */
function alias(name: string): string {
  if (name.startsWith("gpt-4-gizmo")) return "gpt-4-gizmo-*";
  if (name.startsWith("gpt-4o-gizmo")) return "gpt-4o-gizmo-*";
  return name;
}

/** The price of a requested model name, or undefined when neither price nor ratio is set. */
export function lookupPrice(tables: PriceTables, model: string): ModelPricing | undefined {
  const name = alias(model);
  const callPrice = own(tables.modelPrice, name);
  const ratio = own(tables.modelRatio, name);
  if (callPrice === undefined && ratio === undefined) return undefined;
  return pricingOf(tables, name, callPrice, ratio ?? 0);
}

/** The price that a model without one is billed at in self-use mode or for users who accepted it. */
export function missingPrice(tables: PriceTables, model: string): ModelPricing {
  return pricingOf(tables, alias(model), undefined, MISSING_MODEL_RATIO);
}

function pricingOf(
  tables: PriceTables,
  name: string,
  callPrice: number | undefined,
  modelRatio: number,
): ModelPricing {
  const cacheWriteRatio = own(tables.createCacheRatio, name) ?? 1.25;
  return {
    callPrice,
    modelRatio,
    completionRatio: completionRatio(name, tables.completionRatio),
    cacheRatio: own(tables.cacheRatio, name) ?? 1,
    cacheWriteRatio,
    cacheWrite1hRatio: cacheWriteRatio * ONE_HOUR_WRITE,
    imageRatio: own(tables.imageRatio, name) ?? 1,
    audioRatio: audioRatio(name),
    audioCompletionRatio: AUDIO_COMPLETION_RATIO,
  };
}

/** Missing groups cost 1; ratio 0 is free. */
export function groupRatioOf(tables: PriceTables, group: string): number {
  return own(tables.groupRatio, group) ?? 1;
}

/** A whole, safe, non-negative number of quota units. */
function toQuota(value: number): number {
  if (!Number.isFinite(value)) return value > 0 ? MAX_QUOTA : 0;
  return Math.min(Math.max(0, value), MAX_QUOTA);
}

export interface ReserveInputs {
  promptTokens: number;
  /** The largest of the request's limits on its output; 0 when it names none. */
  maxTokens: number;
  /** Option PreConsumedQuota: tokens to assume when the request names no limit. */
  preConsumedTokens: number;
  /** Pictures or other pieces that a fixed price counts. */
  callCount?: number;
  quotaPerUnit: number;
}

/** What to hold back before the call, cut to whole units (billing reference, section 3). */
export function estimateReserve(pricing: ModelPricing, groupRatio: number, inputs: ReserveInputs): number {
  if (pricing.callPrice !== undefined) {
    return Math.trunc(
      toQuota(pricing.callPrice * (inputs.callCount ?? 1) * inputs.quotaPerUnit * groupRatio),
    );
  }
  const limit = bounded(inputs.maxTokens);
  const tokens = limit > 0 ? bounded(inputs.promptTokens) + limit : bounded(inputs.preConsumedTokens);
  return Math.trunc(toQuota(tokens * pricing.modelRatio * groupRatio));
}

function bounded(value: number): number {
  return Number.isFinite(value) && value > 0 ? Math.min(value, MAX_TOKEN_COUNT) : 0;
}

export interface CostExtras {
  quotaPerUnit?: number;
  /** Pieces that a fixed price counts. */
  callCount?: number;
  /** Dollars per thousand calls; looked up by the caller from the model and the context size. */
  webSearchPrice?: number;
  fileSearchPrice?: number;
  /** "up": half away from zero (OpenAI family); "down": cut (Anthropic family). Default "up". */
  rounding?: "up" | "down";
}

export interface Charge {
  /** Whole units, at least 0. */
  quota: number;
  sum: CostSum;
  /** Fields of the log row's `other`. */
  other: Record<string, unknown>;
}

/** The charge of a call and its explanation, from one formula over disjoint quantities. */
export function cost(
  pricing: ModelPricing,
  groupRatio: number,
  usage: Usage,
  extras: CostExtras = {},
): Charge {
  const group = Number.isFinite(groupRatio) && groupRatio > 0 ? groupRatio : 0;
  const inputs: CostInputs = {
    fresh: bounded(usage.input.fresh),
    cacheRead: bounded(usage.input.cacheRead),
    cacheWrite5m: bounded(usage.input.cacheWrite5m),
    cacheWrite1h: bounded(usage.input.cacheWrite1h),
    imageInput: bounded(usage.input.image),
    audioInput: bounded(usage.input.audio),
    output: bounded(usage.output.text),
    thinking: bounded(usage.output.thinking),
    imageOutput: bounded(usage.output.image),
    audioOutput: bounded(usage.output.audio),
    webSearchCalls: bounded(usage.calls.webSearch),
    fileSearchCalls: bounded(usage.calls.fileSearch),
    callCount: extras.callCount === undefined ? 1 : bounded(extras.callCount),
    webSearchPrice: bounded(extras.webSearchPrice ?? 0),
    fileSearchPrice: bounded(extras.fileSearchPrice ?? 0),
    groupRatio: group,
    quotaPerUnit: extras.quotaPerUnit ?? DEFAULT_QUOTA_PER_UNIT,
    ...pricing,
  };
  const sum = explainCost(inputs);
  const rounded = extras.rounding === "down" ? Math.floor(sum.exact) : roundHalfAway(sum.exact);
  let quota = toQuota(rounded);
  const isPriced = pricing.callPrice === undefined && pricing.modelRatio * group > 0;
  // The smallest charge of a priced call: only where the formula gives nothing at all.
  if (isPriced && sum.exact <= 0) quota = hasTokens(inputs) ? 1 : 0;
  return { quota, sum, other: logFields(inputs, pricing) };
}

function hasTokens(inputs: CostInputs): boolean {
  return inputs.fresh + inputs.cacheRead + inputs.output + inputs.thinking > 0;
}

/** The documented fields of `other` (billing reference, section 12), and the inputs for the explanation. */
function logFields(inputs: CostInputs, pricing: ModelPricing): Record<string, unknown> {
  const byCall = pricing.callPrice !== undefined;
  const other: Record<string, unknown> = {
    model_ratio: byCall ? 0 : pricing.modelRatio,
    group_ratio: inputs.groupRatio,
    completion_ratio: byCall ? 0 : pricing.completionRatio,
    cache_tokens: inputs.cacheRead,
    cache_ratio: byCall ? 0 : pricing.cacheRatio,
    model_price: pricing.callPrice ?? -1,
  };
  const written = inputs.cacheWrite5m + inputs.cacheWrite1h;
  if (written > 0) {
    other.cache_creation_tokens = written;
    other.cache_creation_ratio = pricing.cacheWriteRatio;
  }
  if (inputs.imageInput > 0) {
    other.image = true;
    other.image_ratio = pricing.imageRatio;
    other.image_output = inputs.imageInput;
  }
  if (inputs.audioInput + inputs.audioOutput > 0) {
    other.audio = true;
    other.audio_input = inputs.audioInput;
    other.audio_output = inputs.audioOutput;
    other.text_input = inputs.fresh;
    other.text_output = inputs.output + inputs.thinking;
    other.audio_ratio = pricing.audioRatio;
    other.audio_completion_ratio = pricing.audioCompletionRatio;
  }
  if (inputs.webSearchCalls > 0) {
    other.web_search = true;
    other.web_search_call_count = inputs.webSearchCalls;
    other.web_search_price = inputs.webSearchPrice;
  }
  if (inputs.fileSearchCalls > 0) {
    other.file_search = true;
    other.file_search_call_count = inputs.fileSearchCalls;
    other.file_search_price = inputs.fileSearchPrice;
  }
  other[COST_FIELD] = storeCost(inputs);
  return other;
}

export const FILE_SEARCH_PRICE = 2.5;

const WEB_SEARCH_PRICES = {
  high: { low: 30, medium: 35, high: 50 },
  other: { low: 25, medium: 27.5, high: 30 },
} as const;

/** Dollars per thousand web searches (billing reference, section 5). */
export function webSearchPrice(model: string, contextSize: string): number {
  const isHigh = /^gpt-4(\.1|o)/.test(model) && !model.includes("mini");
  const prices = WEB_SEARCH_PRICES[isHigh ? "high" : "other"];
  return contextSize === "low" || contextSize === "high" ? prices[contextSize] : prices.medium;
}
