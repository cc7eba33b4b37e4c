// Numbers as people and spreadsheets write them: with a currency sign, separated thousands, a comma for the point, full-width digits.
// Refuses to guess: "1,234" is a thousand to some and a little more than one to others.

export type TypedNumber =
  | { value: number; problem?: undefined }
  | { value?: undefined; problem: "number" | "negative" | "ambiguous" };

/** Currency signs and codes before or behind the number. */
const CURRENCY = /^(?:US\$|USD|CNY|RMB|[$¥€£])\s*|\s*(?:USD|CNY|RMB|[$¥€£元])$/giu;
const PLAIN = /^(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const GROUPED = { ",": /^\d{1,3}(?:,\d{3})+$/, ".": /^\d{1,3}(?:\.\d{3})+$/ } as const;

/** The text with plain digits and signs: input methods type them full-width. */
function plainSigns(text: string): string {
  return text
    .normalize("NFKC")
    .replaceAll("。", ".")
    .replaceAll("、", ",")
    .replaceAll(/[\u2212\u2010-\u2015]/gu, "-")
    .trim()
    .replaceAll(CURRENCY, "")
    .trim();
}

/** Whole part and fraction where both separators stand: the last one is the point. */
function withBoth(text: string): string | undefined {
  const point = text.lastIndexOf(",") > text.lastIndexOf(".") ? "," : ".";
  const thousands = point === "," ? "." : ",";
  const [whole = "", fraction = "", ...more] = text.split(point);
  if (more.length > 0 || !/^\d+$/.test(fraction) || !GROUPED[thousands].test(whole)) return undefined;
  return `${whole.replaceAll(thousands, "")}.${fraction}`;
}

/** Digits and a point of a text with commas; undefined where it is no number, "" where it is two. */
function withoutCommas(text: string): string | undefined {
  if (text.includes(".")) return withBoth(text);
  if (/^0?,\d+$/.test(text) || /^\d+,(?:\d{1,2}|\d{4,})$/.test(text)) return text.replace(",", ".");
  if (!GROUPED[","].test(text)) return undefined;
  return text.indexOf(",") === text.lastIndexOf(",") ? "" : text.replaceAll(",", "");
}

/** Digits and a point of what was typed or pasted, every digit as it stands there; or what is wrong with it. */
export function typedDigits(
  text: string,
): { digits: string; problem?: undefined } | { problem: NonNullable<TypedNumber["problem"]> } {
  let plain = plainSigns(text);
  if (plain.startsWith("-") && PLAIN.test(plain.slice(1).replaceAll(/[,\s]/g, "")))
    return { problem: "negative" };
  // Spaces between groups of three, as in French and Swedish.
  if (/^\d{1,3}(?:\s\d{3})+(?:[.,]\d+)?$/.test(plain)) plain = plain.replaceAll(/\s/g, "");
  if (plain.includes(",")) {
    const read = withoutCommas(plain);
    if (read === "") return { problem: "ambiguous" };
    plain = read ?? "";
  } else if (/\..*\./.test(plain) && GROUPED["."].test(plain)) plain = plain.replaceAll(".", "");
  return PLAIN.test(plain) ? { digits: plain } : { problem: "number" };
}

/** The number that was typed or pasted, or what is wrong with it. */
export function typedNumber(text: string): TypedNumber {
  const read = typedDigits(text);
  if (read.problem !== undefined) return { problem: read.problem };
  const value = Number(read.digits);
  return Number.isFinite(value) ? { value } : { problem: "number" };
}
