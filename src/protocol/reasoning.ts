// Reasoning by effort word and by token budget, mapped both ways.
// Budgets are clamped to what the upstream allows.
import type { Reasoning } from "./canonical.ts";

const BUDGET_OF: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1024,
  low: 4096,
  medium: 10_240,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
};

/** Budget in tokens for an effort word; unknown words count as medium. */
function budgetOfEffort(effort: string): number {
  return BUDGET_OF[effort] ?? 10_240;
}

/** Effort word for a budget: the one whose own budget comes nearest from above. */
function effortOfBudget(tokens: number): "low" | "medium" | "high" {
  if (tokens <= 4096) return "low";
  return tokens <= 16_384 ? "medium" : "high";
}

/** The effort word of a reasoning wish, however it was said; undefined when it says nothing about strength. */
export function effortOf(reasoning: Reasoning | undefined): string | undefined {
  if (!reasoning || reasoning.mode === "off") return undefined;
  if (reasoning.effort !== undefined) return reasoning.effort;
  if (reasoning.budgetTokens === undefined || reasoning.budgetTokens < 0) return undefined;
  return effortOfBudget(reasoning.budgetTokens);
}

/** The budget of a reasoning wish; undefined when it says nothing about strength. */
export function budgetOf(reasoning: Reasoning | undefined): number | undefined {
  if (!reasoning || reasoning.mode === "off") return undefined;
  if (reasoning.budgetTokens !== undefined) return reasoning.budgetTokens;
  return reasoning.effort === undefined ? undefined : budgetOfEffort(reasoning.effort);
}
