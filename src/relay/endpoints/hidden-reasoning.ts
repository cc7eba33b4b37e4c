// Which models think behind closed doors: their upstream bills thoughts that it does not deliver, or only in summary.
// Refuses to look beyond names and the request's own words; a name it does not know delivers what it bills.
import { asObject } from "../../protocol/json.ts";
import { modelTraits } from "../../protocol/anthropic/models.ts";
import { leastBudget } from "../../protocol/gemini/thinking.ts";
import { openaiTraits } from "../../protocol/openai-models.ts";
import type { Json } from "./endpoint.ts";

/** Gemini since 2.5 thinks unless it is told not to; what it shows is a summary. */
const GEMINI = /^gemini-(?:2\.5|[3-9])|^gemini.*thinking/;
/** What draws is billed for what it delivers. */
const GEMINI_IMAGE = /^gemini-\S*image/;
const GROK = /^grok-(?:4|[5-9])(?!.*non-reasoning)/;
const RESEARCH = /deep-research/;

/** Words and budgets that switch thinking off. */
function isOff(body: Json): boolean {
  const effort = body["reasoning_effort"] ?? asObject(body["reasoning"])?.["effort"];
  return effort === "none" || asObject(body["thinking"])?.["type"] === "disabled";
}

/** The client asks for thoughts, in the words of any dialect. */
function asksForThoughts(body: Json): boolean {
  const thinking = asObject(body["thinking"]);
  return (
    (thinking !== undefined && thinking["type"] !== "disabled") ||
    typeof body["reasoning_effort"] === "string" ||
    asObject(body["reasoning"]) !== undefined ||
    asObject(body["output_config"])?.["effort"] !== undefined ||
    configOf(body) !== undefined
  );
}

function configOf(body: Json): Record<string, unknown> | undefined {
  const config = asObject(body["generationConfig"] ?? body["generation_config"]);
  return asObject(config?.["thinkingConfig"] ?? config?.["thinking_config"]);
}

export function keepsReasoning(model: string, body: Json): boolean {
  // A vendor in front of the name does not count.
  const name = model.slice(model.lastIndexOf("/") + 1);
  if (RESEARCH.test(name)) return true;
  // Told not to, these think as little as they can.
  if (GEMINI.test(name) && leastBudget(name) > 0) return !GEMINI_IMAGE.test(name);
  if (isOff(body)) return false;
  if (name.includes("claude")) {
    // Claude 3.7 delivered its thoughts in full; later ones are told in summary.
    if (!modelTraits(name).thinks || name.includes("claude-3-7")) return false;
    return name.endsWith("-thinking") || asksForThoughts(body);
  }
  if (GEMINI.test(name))
    return (
      !name.endsWith("-nothinking") && configOf(body)?.["thinkingBudget"] !== 0 && !GEMINI_IMAGE.test(name)
    );
  if (GROK.test(name)) return true;
  return /^(?:gpt-|o\d|codex)/.test(name) && thinks(name);
}

function thinks(name: string): boolean {
  const { efforts } = openaiTraits(name);
  // Names of OpenAI's that came later than this list are taken for reasoning ones; open weights show their thoughts.
  if (efforts === undefined) return !name.startsWith("gpt-oss");
  return efforts.length > 0 || name.startsWith("o1-");
}

/** Thinking tokens that the request fixes, in the words of any dialect; 0 = none. */
export function thinkingBudgetOf(body: Json): number {
  const thinking = asObject(body["thinking"]);
  const told =
    (thinking?.["type"] === "disabled" ? undefined : thinking?.["budget_tokens"]) ??
    asObject(body["reasoning"])?.["max_tokens"] ??
    configOf(body)?.["thinkingBudget"] ??
    configOf(body)?.["thinking_budget"];
  return typeof told === "number" && Number.isFinite(told) && told > 0 ? told : 0;
}
