// A charge explained as ordered lines, computed by one function from the inputs that a log row stores.
// Refuses to guess: what the row does not hold makes no line. Ledger, log detail and pricing page share this code.

/** Dollars per million input tokens at ratio 1; a ratio is dollars per million divided by this. */
export const DOLLARS_PER_MTOK_AT_RATIO_1 = 2;

export function dollarsPerMTok(ratio: number): number {
  return ratio * DOLLARS_PER_MTOK_AT_RATIO_1;
}

export function ratioOfDollars(dollars: number): number {
  return dollars / DOLLARS_PER_MTOK_AT_RATIO_1;
}

export type CostLineKind =
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

export interface CostLine {
  kind: CostLineKind;
  /** Tokens or calls. */
  count: number;
  /** Dollars: per million tokens, per call, or per thousand calls, as `per` says. */
  unitPrice: number;
  per: "mtok" | "call" | "kcall";
  /** Product of the ratios that made the unit price; 0 where a price stands by itself. */
  ratio: number;
  /** Quota before the group ratio, exact. */
  amount: number;
}

/** Everything that a charge is made of: disjoint quantities and the ratios in force when it was made. */
export interface CostInputs {
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
  /** Dollars per call; undefined bills by tokens. */
  callPrice: number | undefined;
  /** Calls or pictures that a fixed price counts; 1 unless said otherwise. */
  callCount: number;
  modelRatio: number;
  completionRatio: number;
  cacheRatio: number;
  cacheWriteRatio: number;
  cacheWrite1hRatio: number;
  imageRatio: number;
  audioRatio: number;
  audioCompletionRatio: number;
  /** Dollars per thousand calls. */
  webSearchPrice: number;
  fileSearchPrice: number;
  groupRatio: number;
  quotaPerUnit: number;
}

export interface CostSum {
  lines: CostLine[];
  /** Sum of the lines, exact, before the group ratio. */
  subtotal: number;
  groupRatio: number;
  /** Subtotal × group ratio, exact, before rounding. */
  exact: number;
}

/** The one formula: each line is quantity × price, the sum takes the group ratio. */
export function explainCost(inputs: CostInputs): CostSum {
  const lines: CostLine[] = [];
  const tokens = (kind: CostLineKind, count: number, ratio: number) => {
    if (count <= 0) return;
    lines.push({ kind, count, unitPrice: dollarsPerMTok(ratio), per: "mtok", ratio, amount: count * ratio });
  };
  const calls = (kind: CostLineKind, count: number, pricePerThousand: number) => {
    if (count <= 0) return;
    const amount = ((pricePerThousand * count) / 1000) * inputs.quotaPerUnit;
    lines.push({ kind, count, unitPrice: pricePerThousand, per: "kcall", ratio: 0, amount });
  };
  if (inputs.callPrice !== undefined) {
    lines.push({
      kind: "per_call",
      count: inputs.callCount,
      unitPrice: inputs.callPrice,
      per: "call",
      ratio: 0,
      amount: inputs.callPrice * inputs.callCount * inputs.quotaPerUnit,
    });
  } else {
    const model = inputs.modelRatio;
    const output = model * inputs.completionRatio;
    tokens("fresh", inputs.fresh, model);
    tokens("cache_read", inputs.cacheRead, model * inputs.cacheRatio);
    tokens("cache_write_5m", inputs.cacheWrite5m, model * inputs.cacheWriteRatio);
    tokens("cache_write_1h", inputs.cacheWrite1h, model * inputs.cacheWrite1hRatio);
    tokens("image_input", inputs.imageInput, model * inputs.imageRatio);
    tokens("audio_input", inputs.audioInput, model * inputs.audioRatio);
    tokens("output", inputs.output, output);
    tokens("thinking", inputs.thinking, output);
    tokens("image_output", inputs.imageOutput, output);
    tokens("audio_output", inputs.audioOutput, model * inputs.audioRatio * inputs.audioCompletionRatio);
  }
  calls("web_search", inputs.webSearchCalls, inputs.webSearchPrice);
  calls("file_search", inputs.fileSearchCalls, inputs.fileSearchPrice);
  const subtotal = lines.reduce((sum, line) => sum + line.amount, 0);
  return { lines, subtotal, groupRatio: inputs.groupRatio, exact: subtotal * inputs.groupRatio };
}

/** Name of the field of a log row's `other` that stores the inputs of its charge. */
export const COST_FIELD = "cost";

/** Inputs as a log row stores them: zeros and ones are left out to keep rows narrow. */
export type StoredCost = Partial<CostInputs>;

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
  modelRatio: 0,
  completionRatio: 1,
  cacheRatio: 1,
  cacheWriteRatio: 1.25,
  cacheWrite1hRatio: 2,
  imageRatio: 1,
  audioRatio: 1,
  audioCompletionRatio: 2,
  webSearchPrice: 0,
  fileSearchPrice: 0,
  groupRatio: 1,
  quotaPerUnit: 500_000,
};

export function storeCost(inputs: CostInputs): StoredCost {
  const stored: Record<string, number> = {};
  for (const [name, value] of Object.entries(inputs) as [keyof CostInputs, number | undefined][]) {
    if (value !== undefined && value !== NEUTRAL[name]) stored[name] = value;
  }
  return stored;
}

/** The explanation of a stored charge; undefined for rows that were written without one (foreign or very old). */
export function explainStored(other: Record<string, unknown>): CostSum | undefined {
  const stored = other[COST_FIELD];
  if (typeof stored !== "object" || stored === null) return undefined;
  const inputs = { ...NEUTRAL };
  for (const [name, value] of Object.entries(stored as Record<string, unknown>)) {
    if (name in NEUTRAL && typeof value === "number" && Number.isFinite(value))
      inputs[name as "fresh"] = value;
  }
  return explainCost(inputs);
}
