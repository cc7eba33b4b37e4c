// Model names in a sentence: the first few, and how many more there are.
import type { Translate } from "./i18n.ts";

const MOST_NAMED = 5;

export function namesText(t: Translate, names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  const named = names.slice(0, MOST_NAMED).join(", ");
  return more > 0 ? t("price.andMore", { names: named, count: more }) : named;
}
