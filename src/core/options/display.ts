// How the site shows money: QuotaDisplayType, and DisplayInCurrencyEnabled, which older consoles know alone.
// Refuses to let the two say different things: whoever saves one of them takes the other along.
import type { DisplayType } from "../../shared/quota-display.ts";
import type { OptionKey } from "./definitions.ts";
import type { OptionStore } from "./store.ts";

type ValueOf = (key: "QuotaDisplayType" | "DisplayInCurrencyEnabled") => unknown;

/** Whether amounts are money at all; both options may say no. */
export function isInCurrency(options: Pick<OptionStore, "get">): boolean {
  return options.get("DisplayInCurrencyEnabled") && options.get("QuotaDisplayType") !== "TOKENS";
}

/** What is in force, whichever of the two was written without the other. */
export function displayType(options: Pick<OptionStore, "get">): DisplayType {
  return isInCurrency(options) ? options.get("QuotaDisplayType") : "TOKENS";
}

/** What is written with a change of one of them. */
export function displayBeside(
  valueOf: ValueOf,
  key: OptionKey,
  value: string,
): [key: OptionKey, text: string][] {
  if (key === "QuotaDisplayType") return [["DisplayInCurrencyEnabled", String(value !== "TOKENS")]];
  if (key !== "DisplayInCurrencyEnabled") return [];
  const type = valueOf("QuotaDisplayType");
  if (value !== "true") return type === "TOKENS" ? [] : [["QuotaDisplayType", "TOKENS"]];
  return type === "TOKENS" ? [["QuotaDisplayType", "USD"]] : [];
}
