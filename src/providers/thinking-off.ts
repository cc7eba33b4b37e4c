// The words that switch a model's thinking off in a chat completion, by provider and model: without them the answer to a greeting
// is thoughts, and a short limit ends before any of it. Refuses to guess: who is in no row is told nothing, for several providers
// answer 400 to a word that a model does not know.
import type { DialectName } from "../protocol/canonical.ts";
import { nearestEffort, openaiTraits } from "../protocol/openai-models.ts";

interface ThinkingWords {
  /** Channel types. */
  types: readonly number[];
  /** Without the vendor in front, in small letters. */
  models: RegExp;
  /** Members of the body. */
  words: Readonly<Record<string, unknown>>;
}

const OLLAMA = 4;
const ALI = 17;
const OPENROUTER = 20;
const MOONSHOT = 25;
const ZHIPU = 26;
const SILICONFLOW = 40;
const DEEPSEEK = 43;
const VOLCENGINE = 45;
const XAI = 48;

const DISABLED = { thinking: { type: "disabled" } };
const NOT_ENABLED = { enable_thinking: false };
/** Open Qwen models that do both; those that do one of them say so in their names. */
const QWEN = String.raw`qwen3(?!.*(?:thinking|instruct|coder|next|max|omni))`;

/** The first that fits. Providers' documentation of their parameters, as of November 2026. */
const ROWS: readonly ThinkingWords[] = [
  // "enable_thinking", hybrid models.
  {
    types: [ALI],
    models: new RegExp(
      `^(?:${QWEN}|qwen-(?:plus|flash|turbo)|deepseek-v(?:3\\.[12]|4)|glm-(?:4\\.[5-9]|5)|kimi-k2\\.[56]$)`,
    ),
    words: NOT_ENABLED,
  },
  // "enable_thinking", "supports the following models"; 400 from all others.
  {
    types: [SILICONFLOW],
    models:
      /^(?:qwen3-(?:8b|14b|32b|30b-a3b)$|qwen3\.5-|hunyuan-a13b|glm-(?:4\.[67]|4\.5v|5)$|deepseek-v3\.(?:1-terminus|2)$)/,
    words: NOT_ENABLED,
  },
  // "Thinking mode": it is on by default.
  { types: [DEEPSEEK], models: /^deepseek-v4/, words: DISABLED },
  // "Deep thinking": GLM-4.5 and later.
  { types: [ZHIPU], models: /^glm-(?!.*thinking)(?:4\.[5-9]|[5-9])/, words: DISABLED },
  // "Use the thinking model": of K2.5 and K2.6 alone; K2.7 refuses the word.
  { types: [MOONSHOT], models: /^kimi-k2\.[56](?!\d)/, words: DISABLED },
  // "Deep thinking", switch: Seed from 1.6 on, and what the provider serves of others.
  {
    types: [VOLCENGINE],
    models: /^(?:doubao-seed-(?!.*thinking)(?:1[-.][68]|2)|deepseek-v3[-.][12]|glm-4[-.]7)/,
    words: DISABLED,
  },
  // "Reasoning tokens": where a model is not bound to reason ("mandatory").
  {
    types: [OPENROUTER],
    models: new RegExp(
      `^(?:${QWEN}|deepseek-(?:chat-)?v(?:3\\.[12]|4)|glm-(?:4\\.[5-9]|5)|kimi-k2\\.[56]$|gemini-2\\.5-flash)`,
    ),
    words: { reasoning: { enabled: false } },
  },
  // "Thinking", OpenAI compatibility.
  {
    types: [OLLAMA],
    models: new RegExp(`^(?:${QWEN}|deepseek-(?:r1|v3\\.[12]))`),
    words: { reasoning_effort: "none" },
  },
  // "Reasoning": it always does, and this is the least.
  { types: [XAI], models: /^grok-3-mini/, words: { reasoning_effort: "low" } },
];

/** Google's models that can be told how much to think: the older ones and Gemma refuse to be asked. */
const GEMINI_THINKS = /^gemini-(?:2\.5|[3-9])/;

/**
 * Members of a chat completion's body that have the model think as little as it can; empty: nothing is said of thinking.
 * `dialect`: what the upstream speaks. One that is converted for gets its own words by the conversion.
 */
export function thinkingOff(type: number, dialect: DialectName, model: string): Record<string, unknown> {
  const name = model.toLowerCase().slice(model.lastIndexOf("/") + 1);
  if (dialect === "anthropic") return { reasoning_effort: "none" };
  if (dialect === "gemini") return GEMINI_THINKS.test(name) ? { reasoning_effort: "none" } : {};
  const { efforts } = openaiTraits(model);
  const effort = efforts && efforts.length > 0 ? nearestEffort("none", { efforts }) : undefined;
  if (effort !== undefined) return { reasoning_effort: effort };
  return ROWS.find(({ types, models }) => types.includes(type) && models.test(name))?.words ?? {};
}
