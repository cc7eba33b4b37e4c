// The warnings of a price plan in words, with the names and numbers that they are about.
import { hasText } from "./i18n.ts";
import type { Translate } from "./i18n.ts";

interface PlanWarning {
  code: string;
  key: string;
  name: string;
  params: Record<string, string | number>;
}

/** One sentence about what a plan would do. */
export function warningText(t: Translate, { code, key, name, params }: PlanWarning): string {
  const text = `plan.warning.${code}`;
  return hasText(text) ? t(text, { name: name === "" ? key : name, ...params }) : `${name} ${code}`;
}
