// What was typed into an option that holds many things, over what is stored of it now: others' changes of the same option stay.
import type { OptionControl, OptionRow } from "../../../src/shared/setting-rows.ts";
import { rebased } from "../../lib/price-entries.ts";
import { rebasedJson, rebasedNames } from "../../lib/rebase.ts";

/** The maps of prices: theirs is the way of the price desk, whichever screen they are typed in. */
export const isPriceMap = (row: OptionRow): boolean =>
  row.key === "PriceRules" ||
  ((row.group === "prices" || row.key === "GroupRatio") && row.kind === "number_map");

/** Options that hold many things: somebody else may have changed another of them meanwhile. */
const JSON_KINDS: readonly OptionControl[] = ["text_map", "number_map", "json_map", "json_list"];
const NAME_KINDS: readonly OptionControl[] = ["lines", "csv"];

/** What was typed, over what is stored now. */
export function overNewer(typed: string, before: OptionRow | undefined, now: OptionRow | undefined): string {
  if (!before || !now || now.secret || before.isLong) return typed;
  if (isPriceMap(now)) return rebased(now.key, before.value, typed, now.value);
  if (JSON_KINDS.includes(now.kind)) return rebasedJson(before.value, typed, now.value);
  if (!NAME_KINDS.includes(now.kind)) return typed;
  return rebasedNames(now.kind === "csv" ? "," : "\n", before.value, typed, now.value);
}

export const isOfMany = ({ kind }: OptionRow): boolean =>
  JSON_KINDS.includes(kind) || NAME_KINDS.includes(kind);
