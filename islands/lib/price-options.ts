// Prices as people type them, in dollars, and the site's options that they are kept in.
// Refuses an output price where input is free: outputs are priced as a multiple of inputs.
import { DEFAULT_QUOTA_PER_UNIT } from "../../src/shared/money.ts";
import { api, call } from "./api.ts";
import { status } from "./boot.ts";

export interface TypedPrice {
  isPerCall: boolean;
  /** Dollars per million tokens; of a call in `input` where it is per call. */
  input: string;
  output: string;
}

export type PriceProblem = "price.wrong" | "price.bothMissing" | "price.freeInput";

function dollars(text: string): number | undefined {
  const trimmed = text.trim().replace(/^[$＄]/, "");
  if (!/^(\d+\.?\d*|\.\d+)$/.test(trimmed)) return undefined;
  return Number(trimmed);
}

export function isBlank({ input, output }: TypedPrice): boolean {
  return input.trim() === "" && output.trim() === "";
}

export function problemOf(price: TypedPrice): PriceProblem | undefined {
  if (isBlank(price)) return undefined;
  if (!price.isPerCall && (price.input.trim() === "" || price.output.trim() === ""))
    return "price.bothMissing";
  const input = dollars(price.input);
  if (input === undefined) return "price.wrong";
  if (price.isPerCall) return undefined;
  const output = dollars(price.output);
  if (output === undefined) return "price.wrong";
  return input === 0 && output > 0 ? "price.freeInput" : undefined;
}

/** 12 figures: a third stays a third, and 0.1 is not 0.1000…1. */
const tidy = (value: number): number => Number(value.toPrecision(12));

/** In the order in which they are written: a model is never for sale at half of what was typed. */
const KEYS = ["CompletionRatio", "ModelPrice", "ModelRatio"] as const;
type Tables = Record<(typeof KEYS)[number], Record<string, number>>;

/** What the tables get for the typed prices; a ratio of 1 is one unit of quota per token. */
export function tablesOf(prices: ReadonlyMap<string, TypedPrice>, quotaPerUnit: number): Tables {
  const tables: Tables = { CompletionRatio: {}, ModelPrice: {}, ModelRatio: {} };
  for (const [model, price] of prices) {
    const input = dollars(price.input);
    if (input === undefined || problemOf(price) !== undefined) continue;
    if (price.isPerCall) {
      tables.ModelPrice[model] = input;
      continue;
    }
    const output = dollars(price.output) ?? 0;
    tables.ModelRatio[model] = tidy((input * quotaPerUnit) / 1_000_000);
    tables.CompletionRatio[model] = input === 0 ? 1 : tidy(output / input);
  }
  return tables;
}

/** Adds the prices to what is set now; nothing that stands in the options is changed. Gives how many models got one. */
export async function savePrices(prices: ReadonlyMap<string, TypedPrice>): Promise<number> {
  const added = tablesOf(prices, status.peek().quota_per_unit || DEFAULT_QUOTA_PER_UNIT);
  const options = new Map((await call(api.option.get())).map(({ key, value }) => [key, value]));
  for (const key of KEYS) {
    if (Object.keys(added[key]).length === 0) continue;
    const now = JSON.parse(options.get(key) || "{}") as Record<string, number>;
    await call(api.option.put({ key, value: JSON.stringify({ ...added[key], ...now }) }));
  }
  return Object.keys(added.ModelRatio).length + Object.keys(added.ModelPrice).length;
}
