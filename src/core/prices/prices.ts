// Prices: what a model costs, what to hold back before a call, and what a call cost, with its explanation.
// Refuses every number that is not finite and positive: no input yields a negative, unsafe or missing charge.
import type {
  CostCounts,
  CostLine,
  CostRounding,
  CostSum,
  PriceRatios,
  CostInputs,
  PriceLine,
} from "../../shared/cost.ts";
import {
  boundedInputs,
  COST_FIELD,
  explainBounded,
  MAX_RATIO,
  priceLines,
  ratioOfDollars,
  storeCost,
  integerQuota,
} from "../../shared/cost.ts";
import { effectiveRatio, overrideOf } from "../../shared/group-rules.ts";
import { DEFAULT_QUOTA_PER_UNIT } from "../../shared/money.ts";
import { priceName } from "../../shared/price-name.ts";
import type { Usage } from "../../shared/usage.ts";
import { MAX_TOKEN_COUNT, promptTokens } from "../../shared/usage.ts";
import { audioCompletionRatio, audioRatio, completionRatio } from "../../shared/completion-rules.ts";
import { everyKind, ONE_HOUR_WRITE, rowOf } from "../../shared/row-maps.ts";
import type { PriceMaps } from "../../shared/row-maps.ts";
import { FILE_SEARCH_PRICE, webSearchPrice } from "./piece-prices.ts";
import { settledPrices } from "./rules.ts";
import type { FrozenRules, RulePrices } from "./rules.ts";
import { TOKEN_KINDS } from "../../shared/price-row.ts";
import type { PriceRow, PriceRule, PriceRules } from "../../shared/price-row.ts";
import type { RequestFacts } from "../../shared/price-rules.ts";

type RatioTable = Readonly<Record<string, number>>;

export interface PriceTables {
  modelRatio: RatioTable;
  modelPrice: RatioTable;
  completionRatio: RatioTable;
  cacheRatio: RatioTable;
  createCacheRatio: RatioTable;
  createCache1hRatio: RatioTable;
  imageRatio: RatioTable;
  audioRatio: RatioTable;
  audioCompletionRatio: RatioTable;
  priceRules: Readonly<Record<string, PriceRules>>;
  toolPrices: RatioTable;
  groupRatio: RatioTable;
  /** group of users -> group that they use -> the ratio that replaces that group's own. */
  groupGroupRatio: Readonly<Record<string, RatioTable>>;
  quotaPerUnit: number;
}

/** What one model costs; `callPrice` set = a fixed price per call in dollars, all ratios are 0 then in the log. */
export type ModelPricing = PriceRatios;

/** The ratio at which models without a price are billed where they are allowed at all. */
export const MISSING_MODEL_RATIO = 37.5;

/** Dollars that a task costs where the operator set no price by the call. */
export const TASK_PRICE = 0.1;

const own = (table: RatioTable, name: string): number | undefined =>
  Object.hasOwn(table, name) ? safeRatio(table[name]) : undefined;

function safeRatio(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) && value >= 0 ? Math.min(value, MAX_RATIO) : undefined;
}

/** The price of a requested model name, or undefined when neither price nor ratio is set. */
export function lookupPrice(tables: PriceTables, model: string): ModelPricing | undefined {
  const name = priceName(model);
  const callPrice = own(tables.modelPrice, name);
  const ratio = own(tables.modelRatio, name);
  if (callPrice === undefined && ratio === undefined) return undefined;
  return pricingOf(tables, name, callPrice, ratio ?? 0);
}

/** The price that a model without one is billed at in self-use mode or for users who accepted it. */
export function missingPrice(tables: PriceTables, model: string): ModelPricing {
  return pricingOf(tables, priceName(model), undefined, MISSING_MODEL_RATIO);
}

function pricingOf(
  tables: PriceTables,
  name: string,
  callPrice: number | undefined,
  modelRatio: number,
): ModelPricing {
  const cacheWriteRatio = own(tables.createCacheRatio, name) ?? 1.25;
  const rules = rulesOf(tables, name);
  const completion = completionRatio(name, tables.completionRatio);
  const audio = own(tables.audioRatio, name) ?? audioRatio(name);
  const spoken = own(tables.audioCompletionRatio, name) ?? audioCompletionRatio(name, completion, audio);
  // Prices that no ratio can say: of thoughts, of pictures in answers, where input is free. A model without one is no gift by them.
  const isRated = spoken === undefined || TOKEN_KINDS.some((kind) => rules?.[kind] !== undefined);
  const row = callPrice === undefined && isRated ? rowIn(tables, name) : undefined;
  return {
    rates: row && everyKind(row, name),
    callPrice,
    callUnit: callPrice === undefined ? undefined : rules?.unit,
    modelRatio,
    completionRatio: completion,
    cacheRatio: own(tables.cacheRatio, name) ?? 1,
    cacheWriteRatio,
    cacheWrite1hRatio: own(tables.createCache1hRatio, name) ?? cacheWriteRatio * ONE_HOUR_WRITE,
    imageRatio: own(tables.imageRatio, name) ?? 1,
    audioRatio: audio,
    audioCompletionRatio: spoken ?? 1,
  };
}

/** What the price of a model is beyond the maps of ratios. */
const rulesOf = ({ priceRules }: PriceTables, name: string): PriceRules | undefined =>
  Object.hasOwn(priceRules, name) ? priceRules[name] : undefined;

/** The entries of the model's price that act under conditions, in their order; `model` as requested. */
export function priceRulesOf(tables: PriceTables, model: string): readonly PriceRule[] {
  return rulesOf(tables, priceName(model))?.when ?? [];
}

/** The tables by the names of their options. */
export function priceMapsOf(tables: PriceTables): PriceMaps {
  return {
    ModelRatio: tables.modelRatio,
    CompletionRatio: tables.completionRatio,
    CacheRatio: tables.cacheRatio,
    CreateCacheRatio: tables.createCacheRatio,
    CreateCache1hRatio: tables.createCache1hRatio,
    ImageRatio: tables.imageRatio,
    AudioRatio: tables.audioRatio,
    AudioCompletionRatio: tables.audioCompletionRatio,
    ModelPrice: tables.modelPrice,
    PriceRules: tables.priceRules,
  };
}

/** The model's whole price in dollars; `model` as requested. */
export function priceRowOf(tables: PriceTables, model: string): PriceRow | undefined {
  return rowIn(tables, priceName(model));
}

function rowIn(tables: PriceTables, name: string): PriceRow | undefined {
  return rowOf(priceMapsOf(tables), name, tables.quotaPerUnit);
}

/** Entries of a model's price that depend on the call; undefined where it has none. */
function frozenRules(tables: PriceTables, model: string): FrozenRules | undefined {
  const name = priceName(model);
  const { when = [] } = rulesOf(tables, name) ?? {};
  const row = when.length > 0 ? rowIn(tables, name) : undefined;
  return row && { name, row, when, request: {} };
}

/** What a group costs its caller. */
export interface CallerRatio {
  readonly groupRatio: number;
  /** The same number, where it stands for users of the caller's group alone. */
  readonly userGroupRatio: number | undefined;
  /** The caller's own group; undefined where that is the one that is used. */
  readonly userGroup: string | undefined;
}

/** What users of one group pay in another: missing groups cost 1; ratio 0 is free. */
export function groupRatioOf(tables: PriceTables, group: string, userGroup: string): CallerRatio {
  const maps = { ratios: tables.groupRatio, overrides: tables.groupGroupRatio };
  return {
    groupRatio: effectiveRatio(maps, group, userGroup),
    userGroupRatio: overrideOf(maps, group, userGroup),
    userGroup: userGroup === group ? undefined : userGroup,
  };
}

export interface ReserveInputs {
  promptTokens: number;
  /** The largest of the request's limits on its output; 0 when it names none. */
  maxTokens: number;
  /** Option PreConsumedQuota: tokens to assume when the request names no limit. */
  preConsumedTokens: number;
  /** Pictures or other pieces that a fixed price counts. */
  callCount?: number;
  /** Size times quality of a picture: pictureFactor. */
  callFactor?: number;
  quotaPerUnit: number;
}

/**
 * What to hold back before the call, cut to whole units (billing reference, section 3). At a fixed price it is the
 * charge itself, so tasks that are charged when they are submitted take it as their price too (section 10).
 */
export function estimateReserve(pricing: ModelPricing, groupRatio: number, inputs: ReserveInputs): number {
  const { callCount, callFactor, quotaPerUnit } = inputs;
  const limit = bounded(inputs.maxTokens);
  const tokens = limit > 0 ? bounded(inputs.promptTokens) + limit : bounded(inputs.preConsumedTokens);
  const safe = boundedInputs({
    ...pricing,
    groupRatio,
    quotaPerUnit,
    ...(callCount === undefined ? {} : { callCount }),
    ...(callFactor === undefined ? {} : { callFactor }),
  });
  const base =
    safe.callPrice === undefined
      ? tokens * safe.modelRatio
      : safe.callPrice * safe.callFactor * safe.callCount * safe.quotaPerUnit;
  return integerQuota(base * safe.groupRatio, "floor");
}

function bounded(value: number): number {
  return Number.isFinite(value) && value > 0 ? Math.min(value, MAX_TOKEN_COUNT) : 0;
}

/** The route a call came by, where it changes the charge or the row: native Messages, or a realtime session. */
export type CostSurface = "messages" | "realtime";

export interface CostExtras {
  quotaPerUnit?: number;
  /** Pieces that a fixed price counts; 0 for a call that is not charged. */
  callCount?: number;
  /** Size times quality of a picture: pictureFactor. */
  callFactor?: number;
  /** Dollars per thousand calls: webSearchPrice of the model and the context size. */
  webSearchPrice?: number;
  /** Dollars per thousand calls; the fixed price when absent. */
  fileSearchPrice?: number;
  surface?: CostSurface;
  /** Default: cut for native Messages (roundingOf), else to the nearest unit. */
  rounding?: CostRounding;
  /** Highest charge: quotaCapOf of the settle policy. */
  quotaCap?: number | undefined;
}

/** How the documented formulas of a surface round (billing reference, sections 4 and 6). */
export function roundingOf(surface: CostSurface | undefined): CostRounding {
  return surface === "messages" ? "floor" : "half-away";
}

export interface Charge {
  /** Whole units, at least 0; the same as `sum.quota`. */
  quota: number;
  lines: CostLine[];
  sum: CostSum;
  /** Fields of the log row's `other`. */
  other: Record<string, unknown>;
}

/**
 * The charge of a call and its explanation, from one formula over disjoint quantities. With them the formulas of the
 * text family, of native Messages and of audio are one; only the rounding differs. Two deliberate departures from
 * the original: cached tokens keep their price beside pictures and audio, and a call at a fixed price costs that
 * price also when no token was reported (callCount 0 makes it free).
 */
export function cost(
  pricing: ModelPricing,
  groupRatio: number,
  usage: Usage,
  extras: CostExtras = {},
): Charge {
  const { input, output, calls } = usage;
  const counts: CostCounts = {
    fresh: bounded(input.fresh),
    cacheRead: bounded(input.cacheRead),
    cacheWrite5m: bounded(input.cacheWrite5m),
    cacheWrite1h: bounded(input.cacheWrite1h),
    imageInput: bounded(input.image),
    audioInput: bounded(input.audio),
    output: bounded(output.text),
    thinking: bounded(output.thinking),
    imageOutput: bounded(output.image),
    audioOutput: bounded(output.audio),
    webSearchCalls: bounded(calls.webSearch),
    fileSearchCalls: bounded(calls.fileSearch),
    callCount: extras.callCount ?? 1,
  };
  const inputs = boundedInputs({
    ...pricing,
    ...counts,
    callFactor: extras.callFactor ?? 1,
    webSearchPrice: extras.webSearchPrice ?? 0,
    fileSearchPrice: extras.fileSearchPrice ?? FILE_SEARCH_PRICE,
    groupRatio,
    quotaPerUnit: extras.quotaPerUnit ?? DEFAULT_QUOTA_PER_UNIT,
    rounding: extras.rounding ?? roundingOf(extras.surface),
    quotaCap: extras.quotaCap,
  });
  // Prices of calls that were not made, and a cap that did not bite, are no part of the explanation.
  if (inputs.webSearchCalls === 0) inputs.webSearchPrice = 0;
  if (inputs.fileSearchCalls === 0) inputs.fileSearchPrice = 0;
  const sum = explainBounded(inputs);
  // A cap of nothing stays: at a higher price, too, the call costs nothing.
  if (!sum.isCapped && inputs.quotaCap !== 0) inputs.quotaCap = undefined;
  return { quota: sum.quota, lines: sum.lines, sum, other: logFields(inputs, extras.surface) };
}

/** The documented fields of `other` (billing reference, section 12), and the inputs for the explanation. */
function logFields(inputs: CostInputs, surface: CostSurface | undefined): Record<string, unknown> {
  const { callPrice, callFactor, callCount } = inputs;
  const ratio = (value: number): number => (callPrice === undefined ? value : 0);
  const other: Record<string, unknown> = {
    model_ratio: ratio(inputs.modelRatio),
    group_ratio: inputs.groupRatio,
    completion_ratio: ratio(inputs.completionRatio),
    cache_tokens: inputs.cacheRead,
    cache_ratio: ratio(inputs.cacheRatio),
    // Pictures: the price of all of them, size and quality included. An uncharged call still names its price.
    model_price: callPrice === undefined ? -1 : callPrice * callFactor * Math.max(callCount, 1),
  };
  const written = inputs.cacheWrite5m + inputs.cacheWrite1h;
  if (surface === "messages") other.claude = true;
  if (surface === "messages" || written > 0) {
    other.cache_creation_tokens = written;
    other.cache_creation_ratio = ratio(inputs.cacheWriteRatio);
  }
  if (inputs.cacheWrite1h > 0) {
    other.cache_creation_tokens_1h = inputs.cacheWrite1h;
    other.cache_creation_ratio_1h = ratio(inputs.cacheWrite1hRatio);
  }
  if (inputs.imageInput > 0) {
    other.image = true;
    other.image_ratio = ratio(inputs.imageRatio);
    // The documented name of the tokens of pictures in the INPUT.
    other.image_output = inputs.imageInput;
  }
  if (surface === "realtime" || inputs.audioInput + inputs.audioOutput > 0) {
    other[surface === "realtime" ? "ws" : "audio"] = true;
    other.audio_input = inputs.audioInput;
    other.audio_output = inputs.audioOutput;
    other.text_input = inputs.fresh;
    other.text_output = inputs.output + inputs.thinking;
    other.audio_ratio = ratio(inputs.audioRatio);
    other.audio_completion_ratio = ratio(inputs.audioCompletionRatio);
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

/** The unit prices of a model in a group, for the pricing page: the same kinds and order as the lines of a charge. */
export function modelPriceLines(
  tables: PriceTables,
  model: string,
  group: string,
  userGroup = group,
): PriceLine[] | undefined {
  const pricing = lookupPrice(tables, model);
  return (
    pricing && priceLines(pricing, groupRatioOf(tables, group, userGroup).groupRatio, tables.quotaPerUnit)
  );
}

/** How much of the web a search reads, as clients say it; what they do not say is medium. */
export type SearchSize = "low" | "medium" | "high";

/**
 * Everything that one call is charged by, frozen when it is reserved: settlement, retries, tasks and the turns of a
 * session read nothing else, so that a change of prices never reaches a call that has begun.
 */
export interface CallPrice extends CallerRatio {
  readonly ratios: ModelPricing;
  readonly quotaPerUnit: number;
  /** Dollars per thousand calls of hosted tools. */
  readonly tools: { readonly webSearch: Readonly<Record<SearchSize, number>>; readonly fileSearch: number };
  /** Names the tables that the price came from: the same text, the same revision on every node. */
  readonly revision: string;
  /** Entries that the call's length and tier decide about; undefined: the ratios are all. */
  readonly rules?: FrozenRules | undefined;
}

/**
 * Dollars per thousand calls of a hosted tool, where somebody set them: the model's own price, else that of the longest
 * beginning of its name ("tool:prefix*" of option ToolPrices), else that of the tool.
 */
function listedToolPrice(tables: PriceTables, model: string, tool: string): number | undefined {
  const rules = rulesOf(tables, priceName(model));
  const own = rules?.tools && Object.hasOwn(rules.tools, tool) ? rules.tools[tool] : undefined;
  if (own !== undefined) return own;
  const { toolPrices } = tables;
  let best = "";
  for (const key of Object.keys(toolPrices)) {
    if (!key.startsWith(`${tool}:`) || !key.endsWith("*") || key.length <= best.length) continue;
    if (model.startsWith(key.slice(tool.length + 1, -1))) best = key;
  }
  return safeRatio(toolPrices[best === "" ? tool : best]);
}

/** Dollars per thousand calls of hosted tools; `model` as requested decides what a web search costs. */
export function hostedToolPrices(tables: PriceTables, model: string): CallPrice["tools"] {
  const search = listedToolPrice(tables, model, "web_search");
  const webSearch = {
    low: search ?? webSearchPrice(model, "low"),
    medium: search ?? webSearchPrice(model, "medium"),
    high: search ?? webSearchPrice(model, "high"),
  };
  return { webSearch, fileSearch: listedToolPrice(tables, model, "file_search") ?? FILE_SEARCH_PRICE };
}

/** `model` as requested. */
export function freezePrice(
  model: string,
  ratios: ModelPricing,
  ratio: CallerRatio,
  { tables, revision }: { tables: PriceTables; revision: string },
): CallPrice {
  const { quotaPerUnit } = tables;
  const tools = hostedToolPrices(tables, model);
  const rules = frozenRules(tables, model);
  return { ratios, ...ratio, quotaPerUnit, tools, revision, rules };
}

/** The price as this request has it: entries about size, quality or tier act only on what asked for it. */
export function forRequest(price: CallPrice, facts: () => RequestFacts): CallPrice {
  return price.rules ? { ...price, rules: { ...price.rules, request: facts() } } : price;
}

/** The price of a request as its upstream got it: with the tier that it names there, where it names one. */
export function withTier(price: CallPrice, tier: string | undefined): CallPrice {
  const { rules } = price;
  if (!rules || rules.request.tier === tier) return price;
  return { ...price, rules: { ...rules, request: { ...rules.request, tier } } };
}

/** What else a charge depends on: facts of the call, none of them a price. */
export interface CallFacts extends Pick<
  CostExtras,
  "callCount" | "callFactor" | "surface" | "rounding" | "quotaCap"
> {
  searchSize?: SearchSize;
  /** Service tier that the upstream says it served. */
  servedTier?: string | undefined;
  /** A task, which has a price by the call whatever its model has. */
  isTask?: boolean;
}

/** The ratios that say the same as what the rules make of a price, beside the rates that are charged. */
function ruledRatios({ ratios, quotaPerUnit }: CallPrice, { rates, call }: RulePrices): ModelPricing {
  // Tasks have a price of the call also where their model is priced by token.
  if (ratios.callPrice !== undefined) return { ...ratios, callPrice: call ?? ratios.callPrice };
  const over = (price: number, base: number) => (base > 0 ? price / base : 1);
  return {
    callPrice: undefined,
    modelRatio: ratioOfDollars(rates.in, quotaPerUnit),
    completionRatio: over(rates.out, rates.in),
    cacheRatio: over(rates.cache_read, rates.in),
    cacheWriteRatio: over(rates.cache_write, rates.in),
    cacheWrite1hRatio: over(rates.cache_write_1h, rates.in),
    imageRatio: over(rates.image_in, rates.in),
    audioRatio: over(rates.audio_in, rates.in),
    audioCompletionRatio: over(rates.audio_out, rates.audio_in),
    rates,
  };
}

/** The ratios that the call is charged by, and the conditions of the entries that made them. */
export function settledRatios(
  price: CallPrice,
  input: number,
  servedTier: string | undefined,
): { ratios: ModelPricing; applied: RulePrices["applied"] } {
  const found = price.rules && settledPrices(price.rules, input, servedTier);
  if (!found || found.applied.length === 0) return { ratios: price.ratios, applied: [] };
  return { ratios: ruledRatios(price, found), applied: found.applied };
}

/** The charge of a call at its frozen price; `other.cost` keeps what a replay needs besides counts and ratios. */
export function costOf(price: CallPrice, usage: Usage, facts: CallFacts = {}): Charge {
  const { tools, rules } = price;
  const size = facts.searchSize ?? "medium";
  const { ratios, applied } = settledRatios(price, promptTokens(usage), facts.servedTier);
  const charge = cost(ratios, price.groupRatio, usage, {
    quotaPerUnit: price.quotaPerUnit,
    webSearchPrice: tools.webSearch[size],
    fileSearchPrice: tools.fileSearch,
    ...facts,
  });
  const stored = charge.other[COST_FIELD] as Record<string, unknown>;
  stored["revision"] = price.revision;
  // Whose ratio it was: a replay looks it up again.
  if (price.userGroup !== undefined) stored["user_group"] = price.userGroup;
  if (price.userGroupRatio !== undefined) charge.other["user_group_ratio"] = price.userGroupRatio;
  if (applied.length > 0) stored["rules"] = applied;
  // What was asked for decided about the entries: a replay has to know.
  if (rules && Object.values(rules.request).some((each) => each !== undefined))
    stored["asked"] = rules.request;
  if (usage.calls.webSearch > 0) stored["search_size"] = size;
  if (facts.servedTier !== undefined) stored["tier"] = facts.servedTier;
  if (facts.isTask === true) stored["task"] = true;
  return charge;
}
