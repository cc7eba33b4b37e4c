// What option PriceRules and the maps that it builds on have to do with each other when one of them is saved.
// Refuses rules without a ratio or a price of the call: they would be no price.
import { refuse } from "../../shared/failures.ts";
import { definitionOf } from "./definitions.ts";
import type { OptionKey } from "./definitions.ts";

type BaseMap = "ModelRatio" | "ModelPrice";
/** Options as they are in force. */
type ValueOf = (key: BaseMap | "PriceRules") => unknown;

type Write = [key: OptionKey, text: string];

/** The change and what has to be written with it: a map that loses a model takes the model's rules along. */
export function withRules(valueOf: ValueOf, key: OptionKey, value: string): Write[] {
  const rules = rulesBeside(valueOf, key, value);
  return rules === undefined
    ? [[key, value]]
    : [
        [key, value],
        ["PriceRules", rules],
      ];
}

/** The text of option PriceRules beside this change; undefined = it stays. */
function rulesBeside(valueOf: ValueOf, key: OptionKey, value: string): string | undefined {
  if (key !== "PriceRules" && key !== "ModelRatio" && key !== "ModelPrice") return undefined;
  const named = definitionOf(key).kind.parse(value) as Record<string, unknown>;
  const mapOf = (map: BaseMap) => (key === map ? named : (valueOf(map) as Record<string, unknown>));
  const isPriced = (name: string) =>
    Object.hasOwn(mapOf("ModelRatio"), name) || Object.hasOwn(mapOf("ModelPrice"), name);
  if (key === "PriceRules") {
    const bare = Object.keys(named).find((name) => !isPriced(name));
    if (bare !== undefined) throw refuse("option_rules_without_price", { name: bare });
    return undefined;
  }
  const rules = Object.entries(valueOf("PriceRules") as Record<string, unknown>);
  const kept = rules.filter(([name]) => isPriced(name));
  return kept.length === rules.length ? undefined : JSON.stringify(Object.fromEntries(kept));
}
