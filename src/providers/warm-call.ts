// The smallest streamed call that shows whether a model answers: short, and without thinking where that can be said.
// Refuses models whose thinking has a budget of its own, which no short limit fits.
import { routeFor } from "./address.ts";
import { providerOf } from "./catalog.ts";
import { openaiTraits } from "../protocol/openai-models.ts";
import { thinkingOff } from "./thinking-off.ts";

const LIMIT = 16;
/** What thinks, or may: a shorter limit ends before there is an answer. */
const REASONING_LIMIT = 64;

const REASONING =
  /^o\d|^gpt-5|gpt-oss|think|reason|(?:^|[-/])r1\b|qwq|qwen3|gemini-(?:2\.5|[3-9])|grok-[3-9]|glm-(?:4\.[5-9]|[5-9])|kimi-k|magistral|minimax-m|deepseek-v(?:3\.[1-9]|[4-9])/;
/** Its budget is more than a limit this short may hold. */
const OWN_BUDGET = /claude.*thinking/;

/** Output tokens that the answer is limited to; undefined: the model is not called so. `model`: its name at the upstream. */
export function warmLimitOf(model: string): number | undefined {
  const name = model.toLowerCase();
  if (OWN_BUDGET.test(name)) return undefined;
  return REASONING.test(name.slice(name.lastIndexOf("/") + 1)) ? REASONING_LIMIT : LIMIT;
}

/** Whom a probe asks. */
interface WarmTarget {
  /** Of the channel. */
  type: number;
  /** As requested, and as the upstream knows it. */
  model: string;
  upstreamModel: string;
  /** Of `warmLimitOf`. */
  limit: number;
}

/** The body, as chat completions have it. */
export function warmBody({ type, model, upstreamModel, limit }: WarmTarget): Record<string, unknown> {
  const row = providerOf(type);
  const dialect = (row && routeFor(row, "chat", upstreamModel)?.route.dialect) ?? "openai-chat";
  // Reasoning models of OpenAI's know the newer name alone, to which conversions are indifferent.
  const limitName = openaiTraits(upstreamModel).efforts?.length ? "max_completion_tokens" : "max_tokens";
  return {
    model,
    messages: [{ role: "user", content: "hi" }],
    stream: true,
    [limitName]: limit,
    ...thinkingOff(type, dialect, upstreamModel),
  };
}
