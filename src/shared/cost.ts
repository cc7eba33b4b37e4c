// A charge explained as ordered lines, computed by one function from the inputs that a log row stores.
// Refuses to guess: what the row does not hold makes no line. Ledger, log detail and pricing page share this code.
import { DEFAULT_QUOTA_PER_UNIT, MAX_QUOTA, roundHalfAway } from "./money.ts";
import { isDollars, TOKEN_KINDS } from "./price-row.ts";
import type { CallUnit, PriceCondition, TokenKind } from "./price-row.ts";
import { MAX_TOKEN_COUNT } from "./usage.ts";

const TOKENS_PER_MTOK = 1_000_000;

/** Largest ratio or dollar price that enters the formula; the option tables accept no more either. */
export const MAX_RATIO = 1e6;

/**
 * Dollars per million tokens. A ratio is units per token, so that what it means in dollars depends on how many units a
 * dollar has: at 500,000 ratio 1 is two dollars.
 */
export function dollarsPerMTok(ratio: number, quotaPerUnit: number): number {
  return ratio * (TOKENS_PER_MTOK / quotaPerUnit);
}

export function ratioOfDollars(dollars: number, quotaPerUnit: number): number {
  return dollars / (TOKENS_PER_MTOK / quotaPerUnit);
}

/** What a price per million means for a thousand tokens, in dollars: the echo beside a price field. */
export function dollarsPerThousandTokens(ratio: number, quotaPerUnit: number): number {
  return dollarsPerMTok(ratio, quotaPerUnit) / 1000;
}

type CostLineKind =
  | "fresh"
  | "cache_read"
  | "cache_write_5m"
  | "cache_write_1h"
  | "image_input"
  | "audio_input"
  | "output"
  | "thinking"
  | "image_output"
  | "audio_output"
  | "per_call"
  | "web_search"
  | "file_search";

/** A price of one kind of quantity, without a quantity. */
export interface PriceLine {
  kind: CostLineKind;
  /** Dollars: per million tokens, per call, or per thousand calls, as `per` says. */
  unitPrice: number;
  per: "mtok" | "call" | "kcall";
  /** Product of the ratios that made the unit price, or the size factor of a picture; 0 where a price stands alone. */
  ratio: number;
}

export interface CostLine extends PriceLine {
  /** Tokens or calls. */
  count: number;
  /** Quota before the group ratio, exact. */
  amount: number;
}

/** Dollars per million tokens of every kind. */
export type TokenRates = Readonly<Record<TokenKind, number>>;

/** Every ratio of a model; `callPrice` (dollars per call) replaces the token prices where it is set. */
export interface PriceRatios {
  callPrice: number | undefined;
  /** What `callPrice` is for one of; undefined: a call. */
  callUnit?: CallUnit | undefined;
  modelRatio: number;
  completionRatio: number;
  cacheRatio: number;
  cacheWriteRatio: number;
  cacheWrite1hRatio: number;
  imageRatio: number;
  audioRatio: number;
  audioCompletionRatio: number;
  /** Take the place of the ratios, which cannot say every price. */
  rates?: TokenRates | undefined;
}

/** Disjoint quantities of one call. */
export interface CostCounts {
  fresh: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  imageInput: number;
  audioInput: number;
  output: number;
  thinking: number;
  imageOutput: number;
  audioOutput: number;
  webSearchCalls: number;
  fileSearchCalls: number;
  /** Calls or pictures that a fixed price counts; 1 unless said otherwise, 0 when the call is not charged. */
  callCount: number;
}

/**
 * half-away: nearest whole unit, halves up (the text family). floor: cut (native Messages). The reference has both,
 * and its worked examples hold only with both, so the caller's protocol decides.
 */
export type CostRounding = "half-away" | "floor";

/** Everything that a charge is made of: disjoint quantities and the ratios in force when it was made. */
export interface CostInputs extends PriceRatios, CostCounts {
  /** Size times quality of a picture, on top of its price. */
  callFactor: number;
  /** Dollars per thousand calls. */
  webSearchPrice: number;
  fileSearchPrice: number;
  groupRatio: number;
  quotaPerUnit: number;
  rounding: CostRounding;
  /** Highest charge in quota: what was held back, for estimates; 0 for calls that are not charged. */
  quotaCap: number | undefined;
}

export interface CostSum {
  lines: CostLine[];
  /** Sum of the lines, exact, before the group ratio. */
  subtotal: number;
  groupRatio: number;
  /** Subtotal × group ratio, exact, before rounding. */
  exact: number;
  /** What is charged: a safe whole number of at least 0. */
  quota: number;
  /** The lines of a priced call gave nothing, so it costs one unit. */
  isMinimum: boolean;
  /** The cap was lower than the sum. */
  isCapped: boolean;
}

interface TokenPrice {
  kind: CostLineKind;
  count: keyof CostCounts;
  rate: TokenKind;
  ratio: (prices: PriceRatios) => number;
}

const output = (prices: PriceRatios) => prices.modelRatio * prices.completionRatio;

/** The kinds of token in the order in which they are shown, each with its price. */
const TOKEN_PRICES: readonly TokenPrice[] = [
  { kind: "fresh", count: "fresh", rate: "in", ratio: (p) => p.modelRatio },
  { kind: "cache_read", count: "cacheRead", rate: "cache_read", ratio: (p) => p.modelRatio * p.cacheRatio },
  {
    kind: "cache_write_5m",
    count: "cacheWrite5m",
    rate: "cache_write",
    ratio: (p) => p.modelRatio * p.cacheWriteRatio,
  },
  {
    kind: "cache_write_1h",
    count: "cacheWrite1h",
    rate: "cache_write_1h",
    ratio: (p) => p.modelRatio * p.cacheWrite1hRatio,
  },
  { kind: "image_input", count: "imageInput", rate: "image_in", ratio: (p) => p.modelRatio * p.imageRatio },
  { kind: "audio_input", count: "audioInput", rate: "audio_in", ratio: (p) => p.modelRatio * p.audioRatio },
  { kind: "output", count: "output", rate: "out", ratio: output },
  { kind: "thinking", count: "thinking", rate: "thinking", ratio: output },
  { kind: "image_output", count: "imageOutput", rate: "image_out", ratio: output },
  {
    kind: "audio_output",
    count: "audioOutput",
    rate: "audio_out",
    ratio: (p) => p.modelRatio * p.audioRatio * p.audioCompletionRatio,
  },
];

/** The unit prices of a model for one group, in the order of the lines of a charge. */
export function priceLines(
  prices: PriceRatios,
  groupRatio = 1,
  quotaPerUnit = DEFAULT_QUOTA_PER_UNIT,
): PriceLine[] {
  const safe = boundedInputs({ ...prices, groupRatio, quotaPerUnit });
  const group = safe.groupRatio;
  if (safe.callPrice !== undefined)
    return [{ kind: "per_call", unitPrice: safe.callPrice * group, per: "call", ratio: 0 }];
  const { rates } = safe;
  return TOKEN_PRICES.map(({ kind, rate, ratio }) => {
    const product = (rates ? ratioOfDollars(rates[rate], safe.quotaPerUnit) : ratio(safe)) * group;
    const unitPrice = rates ? rates[rate] * group : dollarsPerMTok(product, safe.quotaPerUnit);
    return { kind, unitPrice, per: "mtok", ratio: product };
  });
}

/** The one formula: each line is quantity × price, the sum takes the group ratio, the result is a whole number. */
export function explainCost(raw: Partial<CostInputs>): CostSum {
  return explainBounded(boundedInputs(raw));
}

/** The same for inputs that have come through boundedInputs already. */
export function explainBounded(inputs: CostInputs): CostSum {
  const lines: CostLine[] = [];
  const calls = (kind: CostLineKind, count: number, pricePerThousand: number) => {
    if (count <= 0) return;
    const amount = ((pricePerThousand * count) / 1000) * inputs.quotaPerUnit;
    lines.push({ kind, count, unitPrice: pricePerThousand, per: "kcall", ratio: 0, amount });
  };
  const { callPrice, callFactor, callCount, rates } = inputs;
  let tokens = 0;
  if (callPrice === undefined) {
    for (const { kind, count: field, rate, ratio } of TOKEN_PRICES) {
      const count = inputs[field];
      if (count <= 0) continue;
      tokens += count;
      if (rates) {
        const dollars = rates[rate];
        const amount = (count * dollars * inputs.quotaPerUnit) / TOKENS_PER_MTOK;
        const units = ratioOfDollars(dollars, inputs.quotaPerUnit);
        lines.push({ kind, count, unitPrice: dollars, per: "mtok", ratio: units, amount });
        continue;
      }
      const product = ratio(inputs);
      const amount = count * product;
      const unitPrice = dollarsPerMTok(product, inputs.quotaPerUnit);
      lines.push({ kind, count, unitPrice, per: "mtok", ratio: product, amount });
    }
  } else if (callCount > 0) {
    lines.push({
      kind: "per_call",
      count: callCount,
      unitPrice: callPrice,
      per: "call",
      ratio: callFactor === 1 ? 0 : callFactor,
      amount: callPrice * callFactor * callCount * inputs.quotaPerUnit,
    });
  }
  const base = sumOf(lines);
  calls("web_search", inputs.webSearchCalls, inputs.webSearchPrice);
  calls("file_search", inputs.fileSearchCalls, inputs.fileSearchPrice);
  const subtotal = sumOf(lines);
  const { groupRatio } = inputs;
  const exact = subtotal * groupRatio;
  // Only where the formula gives nothing at all: an amount that merely rounds to nothing stays nothing.
  const isMinimum = tokens > 0 && inputs.modelRatio * groupRatio > 0 && base * groupRatio <= 0;
  const full = integerQuota(isMinimum ? exact + 1 : exact, inputs.rounding);
  const cap = inputs.quotaCap ?? MAX_QUOTA;
  const quota = Math.min(full, cap);
  return { lines, subtotal, groupRatio, exact, quota, isMinimum, isCapped: full > cap };
}

function sumOf(lines: readonly CostLine[]): number {
  return lines.reduce((sum, line) => sum + line.amount, 0);
}

/** Below this, a distance to a half or whole unit is an artefact of binary fractions. */
const MAX_DRIFT = 1e-4;

/**
 * A whole, safe, non-negative number of units. The reference calculates in decimals; doubles may end a hair beside
 * the half or whole unit that the decimals hit, so such values are moved there before they are rounded.
 */
export function integerQuota(value: number, rounding: CostRounding): number {
  if (!(value > 0)) return 0;
  if (value >= MAX_QUOTA) return MAX_QUOTA;
  const half = Math.round(value * 2) / 2;
  const near = Math.abs(value - half) <= Math.min(value * 1e-14, MAX_DRIFT) ? half : value;
  return Math.min(rounding === "floor" ? Math.floor(near) : roundHalfAway(near), MAX_QUOTA);
}

/** Inputs of a call that cost nothing at a model that costs nothing: what a stored row leaves out. */
const NEUTRAL: CostInputs = {
  fresh: 0,
  cacheRead: 0,
  cacheWrite5m: 0,
  cacheWrite1h: 0,
  imageInput: 0,
  audioInput: 0,
  output: 0,
  thinking: 0,
  imageOutput: 0,
  audioOutput: 0,
  webSearchCalls: 0,
  fileSearchCalls: 0,
  callPrice: undefined,
  callCount: 1,
  callFactor: 1,
  modelRatio: 0,
  completionRatio: 1,
  cacheRatio: 1,
  cacheWriteRatio: 1.25,
  cacheWrite1hRatio: 2,
  imageRatio: 1,
  audioRatio: 1,
  audioCompletionRatio: 2,
  rates: undefined,
  webSearchPrice: 0,
  fileSearchPrice: 0,
  groupRatio: 1,
  quotaPerUnit: DEFAULT_QUOTA_PER_UNIT,
  rounding: "half-away",
  quotaCap: undefined,
};

const MAX_QUOTA_PER_UNIT = 1e12;

function isUsable(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** A price or ratio; adding 0 turns a negative zero into a plain one. */
function ratio(value: number | undefined, neutral: number): number {
  return isUsable(value) ? Math.min(value, MAX_RATIO) + 0 : neutral;
}

function quantity(value: number | undefined): number {
  return isUsable(value) ? Math.min(value, MAX_TOKEN_COUNT) + 0 : 0;
}

/** A kind without a price that makes sense costs nothing; a row that names none at all has no rates. */
function boundedRates(raw: TokenRates): TokenRates | undefined {
  if (typeof raw !== "object" || raw === null) return undefined;
  const rates = {} as Record<TokenKind, number>;
  for (const kind of TOKEN_KINDS) rates[kind] = isDollars(raw[kind]) ? raw[kind] + 0 : 0;
  return rates;
}

function integerCap(value: number): number {
  return isUsable(value) ? Math.floor(Math.min(value, MAX_QUOTA)) + 0 : 0;
}

/**
 * Inputs made safe: numbers that are not finite or below zero take the neutral value (a quantity 0), others are
 * capped. This is the last gate before the formula, whatever the readers of usage and options did before. Written out
 * field by field: every relayed call comes by here, and objects of one shape are what the engine is quick with.
 */
export function boundedInputs(raw: Partial<CostInputs>): CostInputs {
  const { callPrice, callCount, quotaCap } = raw;
  const quotaPerUnit = isUsable(raw.quotaPerUnit) ? Math.min(raw.quotaPerUnit, MAX_QUOTA_PER_UNIT) : 0;
  return {
    fresh: quantity(raw.fresh),
    cacheRead: quantity(raw.cacheRead),
    cacheWrite5m: quantity(raw.cacheWrite5m),
    cacheWrite1h: quantity(raw.cacheWrite1h),
    imageInput: quantity(raw.imageInput),
    audioInput: quantity(raw.audioInput),
    output: quantity(raw.output),
    thinking: quantity(raw.thinking),
    imageOutput: quantity(raw.imageOutput),
    audioOutput: quantity(raw.audioOutput),
    webSearchCalls: quantity(raw.webSearchCalls),
    fileSearchCalls: quantity(raw.fileSearchCalls),
    callPrice: isUsable(callPrice) ? ratio(callPrice, 0) : NEUTRAL.callPrice,
    // A number of calls or a cap that makes no sense is none; only what is left out means one call and no cap.
    callCount: callCount === undefined ? NEUTRAL.callCount : quantity(callCount),
    callFactor: ratio(raw.callFactor, NEUTRAL.callFactor),
    modelRatio: ratio(raw.modelRatio, NEUTRAL.modelRatio),
    completionRatio: ratio(raw.completionRatio, NEUTRAL.completionRatio),
    cacheRatio: ratio(raw.cacheRatio, NEUTRAL.cacheRatio),
    cacheWriteRatio: ratio(raw.cacheWriteRatio, NEUTRAL.cacheWriteRatio),
    cacheWrite1hRatio: ratio(raw.cacheWrite1hRatio, NEUTRAL.cacheWrite1hRatio),
    imageRatio: ratio(raw.imageRatio, NEUTRAL.imageRatio),
    audioRatio: ratio(raw.audioRatio, NEUTRAL.audioRatio),
    audioCompletionRatio: ratio(raw.audioCompletionRatio, NEUTRAL.audioCompletionRatio),
    rates: raw.rates === undefined ? undefined : boundedRates(raw.rates),
    webSearchPrice: ratio(raw.webSearchPrice, NEUTRAL.webSearchPrice),
    fileSearchPrice: ratio(raw.fileSearchPrice, NEUTRAL.fileSearchPrice),
    groupRatio: ratio(raw.groupRatio, NEUTRAL.groupRatio),
    quotaPerUnit: quotaPerUnit > 0 ? quotaPerUnit : DEFAULT_QUOTA_PER_UNIT,
    rounding: raw.rounding === "floor" ? "floor" : "half-away",
    quotaCap: quotaCap === undefined ? undefined : integerCap(quotaCap),
  };
}

/** Name of the field of a log row's `other` that stores the inputs of its charge. */
export const COST_FIELD = "cost";

/** Inputs as a log row stores them: neutral values are left out to keep rows narrow. */
export type StoredCost = Partial<CostInputs> & {
  /** Conditions of the price rules that acted on the call, in their order. */
  rules?: PriceCondition[];
};

const COST_NAMES = Object.keys(NEUTRAL) as (keyof CostInputs)[];

export function storeCost(inputs: CostInputs): StoredCost {
  const stored: Record<string, unknown> = {};
  for (const name of COST_NAMES) {
    const value = inputs[name];
    if (value !== undefined && value !== NEUTRAL[name]) stored[name] = value;
  }
  return stored;
}

/** The token columns of a log row, by their wire names. */
export interface RowCounts {
  prompt_tokens: number;
  completion_tokens: number;
}

/**
 * The explanation of a stored charge. Rows without stored inputs (written by other software) are explained from the
 * documented fields when `row` is given; such a sum may differ from the row's quota, which the caller shows as well.
 */
export function explainStored(other: Record<string, unknown>, row?: RowCounts): CostSum | undefined {
  const inputs = storedInputs(other, row);
  return inputs && explainCost(inputs);
}

/** The inputs of a row's charge: as stored, else from the documented fields. */
export function storedInputs(
  other: Record<string, unknown>,
  row?: RowCounts,
): Partial<CostInputs> | undefined {
  const stored = other[COST_FIELD];
  if (typeof stored === "object" && stored !== null) return stored as StoredCost;
  return row && documentedInputs(other, row);
}

/** Inputs from the documented fields of `other` (billing reference, sections 4 to 7 and 12). */
function documentedInputs(other: Record<string, unknown>, row: RowCounts): Partial<CostInputs> | undefined {
  const num = (name: string): number => {
    const value = other[name];
    return typeof value === "number" && Number.isFinite(value) ? value : 0;
  };
  if (typeof other["model_ratio"] !== "number" && typeof other["model_price"] !== "number") return undefined;
  const shared: Partial<CostInputs> = {
    groupRatio: typeof other["group_ratio"] === "number" ? other["group_ratio"] : 1,
    webSearchCalls: num("web_search_call_count"),
    webSearchPrice: num("web_search_price"),
    fileSearchCalls: num("file_search_call_count"),
    fileSearchPrice: num("file_search_price"),
  };
  const rounding: CostRounding = other["claude"] === true ? "floor" : "half-away";
  if (typeof other["model_price"] === "number" && other["model_price"] >= 0)
    return { ...shared, rounding, callPrice: other["model_price"] };
  const base: Partial<CostInputs> = {
    ...shared,
    rounding,
    modelRatio: num("model_ratio"),
    completionRatio: num("completion_ratio"),
    cacheRatio: num("cache_ratio"),
    output: row.completion_tokens,
  };
  const cacheRead = num("cache_tokens");
  if (other["audio"] === true || other["ws"] === true) {
    return {
      ...base,
      fresh: num("text_input"),
      output: num("text_output"),
      audioInput: num("audio_input"),
      audioOutput: num("audio_output"),
      audioRatio: num("audio_ratio"),
      audioCompletionRatio: num("audio_completion_ratio"),
    };
  }
  if (other["claude"] === true) {
    return {
      ...base,
      fresh: row.prompt_tokens,
      cacheRead,
      cacheWrite5m: num("cache_creation_tokens"),
      cacheWriteRatio: num("cache_creation_ratio"),
    };
  }
  const imageInput = num("image_output");
  // The original's formula forgets the cache where there are pictures; an explanation has to repeat that.
  if (imageInput > 0)
    return { ...base, fresh: row.prompt_tokens - imageInput, imageInput, imageRatio: num("image_ratio") };
  return { ...base, fresh: row.prompt_tokens - cacheRead, cacheRead };
}
