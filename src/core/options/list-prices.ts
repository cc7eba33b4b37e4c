// List prices of providers as of November 2026, in dollars per million tokens, for models that are younger than the
// tables of default-prices.ts. Refuses promotions and cheap hours: what a site sells by default is never below cost then.

/** Input, output, cached input, and a five-minute cache write; without the third, cached input costs what fresh does. */
type ListPrice = readonly [input: number, output: number, cached?: number, cacheWrite?: number];

/**
 * By model. Where a provider asks more for long prompts, this is the price of short ones; where it asks more at some hours,
 * the dearer hours'; where it has a passing discount, the price without it.
 */
export const LIST_PRICES: Readonly<Record<string, ListPrice>> = {
  // developers.openai.com/api/docs/pricing; to 272,000 tokens. gpt-5.6-sol was promised at 4 and 20 until 2026-11-21 only.
  "gpt-4.1": [2, 8, 0.5],
  "gpt-4.1-mini": [0.4, 1.6, 0.1],
  "gpt-4.1-nano": [0.1, 0.4, 0.025],
  o3: [2, 8, 0.5],
  "o3-pro": [20, 80],
  "o4-mini": [1.1, 4.4, 0.275],
  "gpt-5": [1.25, 10, 0.125],
  "gpt-5-mini": [0.25, 2, 0.025],
  "gpt-5-nano": [0.05, 0.4, 0.005],
  "gpt-5-pro": [15, 120],
  "gpt-5-codex": [1.25, 10, 0.125],
  "gpt-5.1": [1.25, 10, 0.125],
  "gpt-5.1-codex": [1.25, 10, 0.125],
  "gpt-5.1-codex-max": [1.25, 10, 0.125],
  "gpt-5.2": [1.75, 14, 0.175],
  "gpt-5.2-pro": [21, 168],
  "gpt-5.2-codex": [1.75, 14, 0.175],
  "gpt-5.3-codex": [1.75, 14, 0.175],
  "gpt-5.4": [2.5, 15, 0.25],
  "gpt-5.4-mini": [0.75, 4.5, 0.075],
  "gpt-5.4-nano": [0.2, 1.25, 0.02],
  "gpt-5.4-pro": [30, 180],
  "gpt-5.5": [5, 30, 0.5],
  "gpt-5.5-pro": [30, 180],
  "gpt-5.6-sol": [5, 30, 0.5],
  "gpt-5.6-terra": [2, 12, 0.2],
  "gpt-5.6-luna": [0.2, 1.2, 0.02],
  "gpt-6-astra": [10, 50, 1],
  "gpt-6-sol": [2, 10, 0.2],
  "gpt-6-luna": [0.1, 0.5, 0.01],
  "gpt-6.1-sol": [2, 10, 0.1],

  // platform.claude.com/docs/en/about-claude/pricing, and the overview page of each model; Haiku 5.5 to 100,000 tokens.
  // The first two are older models under the names that ask for thinking, priced like those without.
  "claude-sonnet-4-20250514-thinking": [3, 15, 0.3],
  "claude-opus-4-20250514-thinking": [15, 75, 1.5],
  "claude-opus-4-1": [15, 75, 1.5],
  "claude-opus-4-1-20250805": [15, 75, 1.5],
  "claude-sonnet-4-5": [3, 15, 0.3],
  "claude-sonnet-4-5-20250929": [3, 15, 0.3],
  "claude-haiku-4-5": [1, 5, 0.1],
  "claude-haiku-4-5-20251001": [1, 5, 0.1],
  "claude-opus-4-5": [5, 25, 0.5],
  "claude-opus-4-5-20251101": [5, 25, 0.5],
  "claude-opus-4-6": [5, 25, 0.5],
  "claude-sonnet-4-6": [3, 15, 0.3],
  "claude-opus-4-7": [5, 25, 0.5],
  "claude-opus-4-8": [5, 25, 0.5],
  "claude-opus-5": [5, 25, 0.5],
  "claude-sonnet-5": [2, 10, 0.2],
  "claude-fable-5": [10, 50, 1],
  "claude-fable-5-1": [10, 50, 0.25],
  "claude-opus-5-5": [4, 20, 0.2],
  "claude-sonnet-5-5": [2, 10, 0.1],
  "claude-haiku-5-5": [0.1, 0.5, 0.01],

  // ai.google.dev/gemini-api/docs/pricing; to 200,000 tokens. 3.6 to 3.8 Flash cost half of this until 2026-12-31.
  "gemini-2.5-pro": [1.25, 10, 0.125],
  "gemini-2.5-flash": [0.3, 2.5, 0.03],
  "gemini-2.5-flash-lite": [0.1, 0.4, 0.01],
  "gemini-3-flash-preview": [0.5, 3, 0.05],
  "gemini-3.1-pro-preview": [2, 12, 0.2],
  "gemini-3.1-flash-lite": [0.25, 1.5, 0.025],
  "gemini-3.5-flash": [1.5, 9, 0.15],
  "gemini-3.5-flash-lite": [0.3, 2.5, 0.03],
  "gemini-3.6-flash": [1.5, 7.5, 0.15],
  "gemini-3.7-flash": [1.5, 7.5, 0.15],
  "gemini-3.8-flash": [1.5, 7.5, 0.15],
  "gemini-embedding-001": [0.15, 0],
  "gemini-embedding-2": [0.2, 0],

  // docs.x.ai/developers/pricing; to 200,000 tokens.
  "grok-4": [3, 15, 0.75],
  "grok-4-fast-reasoning": [0.2, 0.5, 0.05],
  "grok-4-fast-non-reasoning": [0.2, 0.5, 0.05],
  "grok-4-1-fast-reasoning": [0.2, 0.5, 0.05],
  "grok-4-1-fast-non-reasoning": [0.2, 0.5, 0.05],
  "grok-code-fast-1": [0.2, 1.5, 0.02],
  "grok-4.20-0309-reasoning": [1.25, 2.5, 0.2],
  "grok-4.20-0309-non-reasoning": [1.25, 2.5, 0.2],
  "grok-4.3": [1.25, 2.5, 0.2],
  "grok-build-0.1": [1, 2],
  "grok-4.5": [2, 6, 0.5],
  "grok-4.6": [2, 6, 0.5],
  "grok-4.7": [2, 6, 0.5],

  // api-docs.deepseek.com/quick_start/pricing, peak hours. deepseek-v4-flash is answered by deepseek-flash.
  "deepseek-flash": [0.3, 1.2, 0.006],
  "deepseek-v4-flash": [0.3, 1.2, 0.006],
  "deepseek-v4-pro": [1.32, 3.96, 0.044],

  // alibabacloud.com/help/en/model-studio, Singapore; the shortest prompts where it asks by length.
  "qwen-max": [1.6, 6.4, 0.32],
  "qwen-flash": [0.05, 0.4, 0.01],
  "qwen3-max": [1.2, 6, 0.24],
  "qwen3-coder-plus": [1, 5, 0.2],
  "qwen3.6-plus": [0.5, 3, 0.05],
  "qwen3.7-max": [2.5, 7.5],
  "qwen3.8-max": [2, 6],
  "qwen3.8-flash": [0.15, 0.47, 0.016, 0.2],

  // platform.kimi.ai/docs/pricing
  "kimi-k2.5": [0.6, 3, 0.1],
  "kimi-k2.6": [0.95, 4, 0.16],
  "kimi-k3": [3, 15, 0.3],

  // docs.z.ai/guides/overview/pricing
  "glm-4.5": [0.6, 2.2, 0.11],
  "glm-4.5-air": [0.2, 1.1, 0.03],
  "glm-4.6": [0.6, 2.2, 0.11],
  "glm-4.7": [0.6, 2.2, 0.11],
  "glm-5": [1, 3.2],
  "glm-5.1": [1.4, 4.4, 0.26],
  "glm-5.2": [1.4, 4.4, 0.26],
  "glm-5.3": [1.4, 4.4, 0.26],

  // docs.mistral.ai/models; Large 4 costs half of this while it is a preview.
  "open-mistral-7b": [0.25, 0.25],
  "open-mixtral-8x7b": [0.7, 0.7],
  "mistral-medium-latest": [1.5, 7.5],
  "mistral-medium-3-5": [1.5, 7.5],
  "mistral-large-latest": [0.5, 1.5],
  "mistral-large-4": [1.36, 4.18, 0.14],
  "codestral-latest": [0.3, 0.9],
  "magistral-medium-latest": [2, 5],
  "ministral-8b-latest": [0.15, 0.15],

  // platform.minimax.io and docs.cohere.com, as models.dev carries them.
  "MiniMax-M2.5": [0.3, 1.2, 0.03],
  "MiniMax-M3": [0.35, 1.4, 0.07, 0.4],
  "command-a-03-2025": [2.5, 10],
};

/** 0.075 / 0.75 is 0.1, whatever doubles say. */
const ratio = (price: number, base: number): number => Number((price / base).toPrecision(12));

/** One table of ratios from the list; prices without the part that the table is about are left out. */
function table(of: (price: ListPrice) => number | undefined): Record<string, number> {
  return Object.fromEntries(
    Object.entries(LIST_PRICES).flatMap(([model, price]) => {
      const value = of(price);
      return value === undefined ? [] : [[model, value]];
    }),
  );
}

/** 1 = $2 per million input tokens. */
export const listedModelRatio = table(([input]) => ratio(input, 2));
export const listedCompletionRatio = table(([input, output]) => ratio(output, input));
export const listedCacheRatio = table(([input, , cached]) =>
  cached === undefined ? undefined : ratio(cached, input),
);
export const listedCreateCacheRatio = table(([input, , , write]) =>
  write === undefined ? undefined : ratio(write, input),
);
