// The list of models.dev: providers, their models, and what those cost in dollars per million tokens.
// Refuses to choose among resellers: a name that several sell at different prices has its maker's, or none.
import { isSameRow } from "../../../shared/price-row.ts";
import type { PriceRow, TokenKind, TokenPrices } from "../../../shared/price-row.ts";
import { BadEntry, badSource, collector, dollarsOf, isRecord, jsonOf, overRules } from "./source.ts";
import type { ModelLimits, SourcePrices } from "./source.ts";

const FIELD_KINDS: Readonly<Record<string, TokenKind>> = {
  input: "in",
  output: "out",
  reasoning: "thinking",
  cache_read: "cache_read",
  cache_write: "cache_write",
  input_audio: "audio_in",
  output_audio: "audio_out",
};

/** Who makes models, by the names of the list; everybody else sells what others make. */
const MAKERS: ReadonlySet<string> = new Set([
  "openai",
  "anthropic",
  "google",
  "xai",
  "deepseek",
  "mistral",
  "moonshotai",
  "minimax",
  "zai",
  "zhipuai",
  "cohere",
  "perplexity",
  "alibaba",
  "llama",
]);

/** What the field context_over_200k means. */
const LONG_CONTEXT = 200_000;

function tokensOf(cost: Record<string, unknown>): TokenPrices {
  const prices: TokenPrices = {};
  for (const [field, kind] of Object.entries(FIELD_KINDS)) {
    const price = dollarsOf(cost[field], field);
    if (price !== undefined) prices[kind] = price;
  }
  return prices;
}

function rowOf(cost: unknown): PriceRow {
  if (!isRecord(cost)) throw new BadEntry("number", "cost");
  const row: PriceRow = tokensOf(cost);
  if (row.in === undefined && row.out === undefined) throw new BadEntry("number", "cost");
  row.in ??= 0;
  const steps = new Map<number, PriceRow>();
  const long = cost["context_over_200k"];
  if (isRecord(long)) steps.set(LONG_CONTEXT, tokensOf(long));
  const tiers = cost["tiers"];
  if (tiers !== undefined && !Array.isArray(tiers)) throw new BadEntry("unit", "tiers");
  for (const entry of (tiers ?? []) as unknown[]) {
    const tier = isRecord(entry) && isRecord(entry["tier"]) ? entry["tier"] : {};
    const { size } = tier;
    if (!isRecord(entry) || tier["type"] !== "context" || typeof size !== "number")
      throw new BadEntry("unit", "tiers");
    if (!Number.isSafeInteger(size) || size < 0) throw new BadEntry("number", "tiers");
    steps.set(size, tokensOf(entry));
  }
  for (const [size, set] of steps) if (Object.keys(set).length === 0) steps.delete(size);
  return steps.size > 0 ? { ...row, when: overRules(steps) } : row;
}

interface Offer {
  isMaker: boolean;
  row: PriceRow;
}

/** The maker's price; else the one that everybody asks. */
function chosen(offers: readonly Offer[]): PriceRow {
  const makers = offers.filter(({ isMaker }) => isMaker);
  const [first, ...rest] = makers.length > 0 ? makers : offers;
  if (!first || !rest.every(({ row }) => isSameRow(row, first.row))) throw new BadEntry("duplicate", "");
  return first.row;
}

/** Rows by model name. */
export function readModelsDev(text: string): SourcePrices {
  const parsed = jsonOf(text, "models.dev");
  if (!isRecord(parsed)) throw badSource("models.dev");
  const providers = Object.entries(parsed).filter(
    (entry): entry is [string, { models: Record<string, unknown> }] =>
      isRecord(entry[1]) && isRecord(entry[1]["models"]),
  );
  if (providers.length === 0) throw badSource("models.dev");
  const found = collector();
  const offers = new Map<string, Offer[]>();
  const limits = new Map<string, ModelLimits & { isMaker: boolean }>();
  for (const [provider, { models }] of providers) {
    const isMaker = MAKERS.has(provider);
    for (const [key, model] of Object.entries(models)) {
      found.entry(key, (name) => {
        if (!isRecord(model)) throw new BadEntry("number", "");
        const limit = isRecord(model["limit"]) ? model["limit"] : {};
        if (isMaker || !limits.get(name)?.isMaker)
          limits.set(name, {
            isMaker,
            context: limit["context"] as number,
            maxOutput: limit["output"] as number,
          });
        // Without a cost it is no offer.
        if (model["cost"] === undefined) return;
        const list = offers.get(name) ?? [];
        list.push({ isMaker, row: rowOf(model["cost"]) });
        offers.set(name, list);
      });
    }
  }
  for (const [name, list] of offers) found.entry(name, (_, add) => add(chosen(list)));
  for (const [name, limit] of limits) found.limits(name, limit);
  return found.result();
}
