// A change of a model's price, kind by kind, cut to what says something: kinds that only follow another one are left out.
import type { PriceLine } from "./cost.ts";

/** Dollars; null: there was, or will be, no such price. */
export interface PriceStep {
  kind: PriceLine["kind"];
  before: number | null;
  after: number | null;
}

/** Told in any case. */
const MAIN: ReadonlySet<PriceStep["kind"]> = new Set(["fresh", "output", "per_call"]);
/** Kinds that follow the price of output where nobody priced them; all others follow that of input. */
const LIKE_OUTPUT: ReadonlySet<PriceStep["kind"]> = new Set(["thinking", "image_output"]);
const NEAR = 1e-6;

/** By what the price is multiplied; undefined where it comes, goes or was free. */
function factorOf({ before, after }: PriceStep): number | undefined {
  return before === null || after === null || before === 0 ? undefined : after / before;
}

/** Whether the step is what its base's step makes of it: as much dearer, or as new, gone or free as it. */
function follows(step: PriceStep, base: PriceStep): boolean {
  const [own, others] = [factorOf(step), factorOf(base)];
  if (own !== undefined && others !== undefined)
    return Math.abs(own - others) <= NEAR * Math.max(own, others);
  const isAlike = (one: number | null, other: number | null) =>
    (one === null) === (other === null) && (one === 0) === (other === 0);
  return own === others && isAlike(step.before, base.before) && isAlike(step.after, base.after);
}

/** The steps that a person reads, and how many follow them. */
export function tellingSteps<Step extends PriceStep>(steps: readonly Step[]): { told: Step[]; more: number } {
  const byKind = new Map(steps.map((step) => [step.kind, step]));
  const told = steps.filter((step) => {
    if (MAIN.has(step.kind)) return true;
    const base = byKind.get(LIKE_OUTPUT.has(step.kind) ? "output" : "fresh");
    return !base || !follows(step, base);
  });
  return { told, more: steps.length - told.length };
}

/** Change in percent; undefined where there is none to tell. */
export function percentOf(before: number | null, after: number | null): number | undefined {
  if (before === null || after === null || before === 0) return undefined;
  return (after / before - 1) * 100;
}
