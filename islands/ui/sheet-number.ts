// Numbers in cells: read as they are typed and pasted, or refused in words.
import type { Translate } from "../lib/i18n.ts";
import { typedNumber } from "../lib/typed-number.ts";
import type { ParsedCell } from "./sheet-types.ts";

/** Longest piece of a text that is repeated in a sentence. */
const MOST_QUOTED = 24;

/** A number of at least 0 and at most `max`; null for an empty cell. */
export function parseNumber(t: Translate, text: string, max: number): ParsedCell {
  if (text.trim() === "") return { value: null };
  const { value, problem } = typedNumber(text);
  const quoted = text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED)}…` : text;
  if (problem !== undefined) return { problem: t(`sheet.number.${problem}`, { text: quoted }) };
  if (value > max) return { problem: t("sheet.number.max", { max }) };
  return { value };
}
