// The smallest budget of thinking that each of Gemini's models takes.

/** The large models always think: this is their smallest budget. */
const ALWAYS_THINKS = /gemini-(?:2\.5|[3-9]).*-pro/;
const LEAST_BUDGET = 128;

/** The budget that comes nearest to not thinking at all. */
export function leastBudget(model: string): number {
  return ALWAYS_THINKS.test(model) ? LEAST_BUDGET : 0;
}
