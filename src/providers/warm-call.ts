// The smallest streamed call that shows whether a model answers: without thinking where its name tells how, and short.
// Refuses models whose thinking has a budget of its own, which no short limit fits.
import { nearestEffort, openaiTraits } from "../protocol/openai-models.ts";

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

/** The body, as chat completions have it. `model`: as requested; `limit`: of `warmLimitOf`. */
export function warmBody(model: string, upstreamModel: string, limit: number): Record<string, unknown> {
  const { efforts } = openaiTraits(upstreamModel);
  const effort = efforts && efforts.length > 0 ? nearestEffort("none", { efforts }) : undefined;
  return {
    model,
    messages: [{ role: "user", content: "hi" }],
    stream: true,
    ...(effort === undefined
      ? { max_tokens: limit }
      : { max_completion_tokens: limit, reasoning_effort: effort }),
  };
}
