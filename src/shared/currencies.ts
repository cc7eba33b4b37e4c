// Currencies that a rail may be paid in, with the places of their minor unit (ISO 4217).
// Refuses currencies that are not listed: a sum of unknown places could be wrong by a factor of a hundred.

const PLACES: Readonly<Record<number, string>> = {
  0: "bif clp djf gnf jpy kmf krw pyg rwf vnd vuv xaf xof xpf",
  2: "aed aud bdt bgn brl cad chf cny cop czk dkk egp eur gbp gel hkd huf idr ils inr kes kzt lkr mad mxn myr ngn nok nzd pen php pkr pln qar ron rsd sar sek sgd thb try twd uah usd uyu zar",
  3: "bhd jod kwd omr tnd",
};

const BY_CODE: ReadonlyMap<string, number> = new Map(
  Object.entries(PLACES).flatMap(([places, codes]) =>
    codes.split(" ").map((code) => [code, Number(places)] as const),
  ),
);

/** Minor units that a sum to be paid is a multiple of: Stripe takes sums of three places only where the last is 0. */
export function currencyStep(code: string): number {
  return currencyPlaces(code) === 3 ? 10 : 1;
}

/** The price of something for sale in minor units; undefined: not a sum that can be paid in this currency. */
export function payableOf(text: string, currency: string): number | undefined {
  const minor = minorOf(text, currency);
  return minor === undefined || minor % currencyStep(currency) === 0 ? minor : undefined;
}

/** Places of the minor unit; undefined: not taken. Codes in either case. */
export function currencyPlaces(code: string): number | undefined {
  return BY_CODE.get(code.toLowerCase());
}

/** `7300` of `CNY` as `73.00`: what rails and receipts write. */
export function minorText(minor: number, currency: string): string {
  const places = currencyPlaces(currency) ?? 2;
  const digits = String(Math.abs(minor)).padStart(places + 1, "0");
  const sign = minor < 0 ? "-" : "";
  if (places === 0) return sign + digits;
  return `${sign}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** Minor units that a plain decimal text says exactly (`73` = `73.00` = 7300); undefined: not a sum of this currency. */
export function minorOf(text: string, currency: string): number | undefined {
  const places = currencyPlaces(currency);
  const [, whole, part = ""] = /^(\d{1,9})(?:\.(\d+))?$/.exec(text) ?? [];
  if (places === undefined || whole === undefined) return undefined;
  if (/[1-9]/.test(part.slice(places))) return undefined;
  return Number(whole + part.slice(0, places).padEnd(places, "0"));
}
