// What pieces cost that no table prices: pictures by size and quality, searches by the model and how much of the web they read.
// These are the reference's numbers; an operator's own come first (hostedToolPrices of prices.ts).

const SIZE_FACTORS: Readonly<Record<string, number>> = {
  "256x256": 0.4,
  "512x512": 0.45,
  "1024x1024": 1,
  "1024x1792": 2,
  "1792x1024": 2,
};

/**
 * Size times quality of a picture at a fixed price (billing reference, section 8); the number of pictures is
 * callCount. `upstreamModel` is the mapped name.
 */
export function pictureFactor(upstreamModel: string, size = "", quality = ""): number {
  const bySize = Object.hasOwn(SIZE_FACTORS, size) ? (SIZE_FACTORS[size] ?? 1) : 1;
  if (upstreamModel !== "dall-e-3" || quality !== "hd") return bySize;
  return bySize * (bySize === 2 ? 1.5 : 2);
}

/** Dollars per thousand calls. */
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
