// The id of a quote: its prices themselves, sealed for whom they were told, so that any node can read them and nobody can make
// one. Nothing is stored. Refuses each wrong one by name: made elsewhere, somebody else's, or over.
import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { Deps } from "../../core/deps.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import type { CallPrice } from "../../core/prices/prices.ts";
import { Failure } from "../../shared/failures.ts";
import type { Caller } from "./admission.ts";
import type { GroupPrice } from "./auto-group.ts";

/** The id comes back in this header. */
const QUOTE_HEADER = "x-quote";
/** So long its prices stand. */
export const QUOTE_MS = 5 * 60_000;

interface Quoted {
  user: number;
  /** 0 in the playground. */
  key: number;
  model: string;
  expiresMs: number;
  prices: readonly GroupPrice[];
}

/** What was asked for belongs to the call, not to the price. */
function withoutRequest({ group, price }: GroupPrice): GroupPrice {
  return { group, price: price.rules ? { ...price, rules: { ...price.rules, request: {} } } : price };
}

/** An id that is good for this caller and model until `expiresMs`. */
export function sealQuote(
  seal: Sealer,
  { user, token }: Pick<Caller, "user" | "token">,
  { model, expiresMs, prices }: Pick<Quoted, "model" | "expiresMs" | "prices">,
): string {
  const quoted: Quoted = {
    user: user.id,
    key: token?.id ?? 0,
    model,
    expiresMs,
    prices: prices.map(withoutRequest),
  };
  return seal.sealBytes("quote", deflateRawSync(JSON.stringify(quoted))).toString("base64url");
}

function opened(seal: Sealer, id: string): Quoted {
  try {
    const bytes = inflateRawSync(seal.openBytes("quote", Buffer.from(id, "base64url")));
    return JSON.parse(bytes.toString("utf8")) as Quoted;
  } catch (error) {
    throw refused("quote_invalid", error);
  }
}

function refused(code: "quote_invalid" | "quote_foreign" | "quote_expired", cause?: unknown): Failure {
  return new Failure("client", code, { param: "X-Quote", cause });
}

/** The quote that a request names, as long as it stands. */
export interface NamedQuote {
  /** Frozen, by group. */
  prices: ReadonlyMap<string, CallPrice>;
  expiresMs: number;
}

/**
 * The quote that the request names; undefined where it names none. Throws Failures `quote_invalid`, `quote_foreign` and
 * `quote_expired`.
 */
export function namedQuote(
  { seal, clock }: Pick<Deps, "seal" | "clock">,
  headers: Headers,
  { user, token }: Pick<Caller, "user" | "token">,
  model: string,
): NamedQuote | undefined {
  const id = headers.get(QUOTE_HEADER);
  if (id === null) return undefined;
  const quoted = opened(seal, id.trim());
  if (quoted.user !== user.id || quoted.key !== (token?.id ?? 0) || quoted.model !== model)
    throw refused("quote_foreign");
  if (quoted.expiresMs <= clock.nowMs()) throw refused("quote_expired");
  const prices = new Map(quoted.prices.map(({ group, price }) => [group, price]));
  return { prices, expiresMs: quoted.expiresMs };
}

/** The prices by group of the quote that the request names. Throws as `namedQuote`. */
export function quotedPrices(
  deps: Pick<Deps, "seal" | "clock">,
  headers: Headers,
  caller: Pick<Caller, "user" | "token">,
  model: string,
): ReadonlyMap<string, CallPrice> | undefined {
  return namedQuote(deps, headers, caller, model)?.prices;
}
