// Sums of money reckoned exactly: decimals as fractions of whole numbers, rounded once, half up.
// Refuses what is no plain decimal number: exponents, signs, groups of digits, other scripts' digits.

/** A fraction; the denominator is above 0. */
export interface Fraction {
  readonly n: bigint;
  readonly d: bigint;
}

/** The number that a plain decimal text says (`7.3`, `0.95`, `30`); undefined for anything else. */
export function decimalOf(text: string): Fraction | undefined {
  const [, whole, part = ""] = /^(\d{1,30})(?:\.(\d{1,30}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return { n: BigInt(whole + part), d: 10n ** BigInt(part.length) };
}

/** The decimal that a number's shortest text says: ratios that people typed, never sums of money. */
export function decimalOfNumber(value: number): Fraction {
  const found = decimalOf(String(value)) ?? decimalOf(value.toFixed(12));
  if (!found) throw new RangeError(`no decimal: ${value}`);
  return found;
}

export function times(...factors: readonly Fraction[]): Fraction {
  return factors.reduce(({ n, d }, each) => ({ n: n * each.n, d: d * each.d }), { n: 1n, d: 1n });
}

export function over({ n, d }: Fraction, divisor: bigint): Fraction {
  return { n, d: d * divisor };
}

/** Whole number nearest to it, halves upwards (1.005 in hundredths: 101). */
export function roundedHalfUp({ n, d }: Fraction): bigint {
  return (2n * n + d) / (2n * d);
}
