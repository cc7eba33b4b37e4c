// What a fixed price is the price of one of: calls and pictures, seconds of a recording, thousands of characters.
// Refuses a call whose price is for a unit that its endpoint cannot count: charged as one call it could be sold below cost.
import type { CallPrice } from "../../core/prices/prices.ts";
import { Failure } from "../../shared/failures.ts";
import type { CallUnit } from "../../shared/price-row.ts";
import type { AnswerFacts, Endpoint } from "./endpoint.ts";

/** How many there are, times `callFactor` where the unit is a part or a multiple of what is counted. */
export interface CountedUnits {
  callCount: number;
  callFactor?: number;
}

/** Counts of what was sent; with the answer, where it says more. Before the call `json` is undefined. */
export type UnitCounter = (facts: Pick<AnswerFacts, "body" | "form" | "json">) => CountedUnits;

/** Units that need a counter of the endpoint's own. */
type CountedUnit = Exclude<CallUnit, "call" | "image">;

const isCounted = (unit: CallUnit | undefined): unit is CountedUnit =>
  unit !== undefined && unit !== "call" && unit !== "image";

/** Throws a client's failure where the model's fixed price is for what calls of this kind are not counted in. */
export function assertCountable(
  endpoint: Pick<Endpoint, "units">,
  { ratios }: CallPrice,
  model: string,
): void {
  const { callUnit } = ratios;
  if (!isCounted(callUnit) || endpoint.units?.[callUnit]) return;
  throw new Failure("client", "price_unit_uncounted", { params: { model, unit: callUnit } });
}

/** How many units a fixed price counts; nothing where that is one. */
export function countUnits(
  endpoint: Endpoint,
  { ratios }: CallPrice,
  facts: Pick<AnswerFacts, "body" | "form" | "json">,
): Partial<CountedUnits> {
  const { callUnit } = ratios;
  const counter = isCounted(callUnit) ? endpoint.units?.[callUnit] : undefined;
  if (counter) return counter(facts);
  return endpoint.pieces ? { callCount: endpoint.pieces(facts.body, facts.json) } : {};
}
