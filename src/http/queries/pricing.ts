// Query string of the price list: the fields of its form and its links.
import { isOn, queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

/** Longer names have no details of their own: an address would not hold them. */
export const MOST_MODEL_NAME = 300;
export const MOST_VENDOR = 100;
const MOST_TOKENS = 1e10;

export const pricingFields = {
  keyword: queryText(200),
  vendor: queryText(MOST_VENDOR),
  quota_type: queryText(1),
  group: queryText(200),
  available: queryText(8),
  unit: queryText(8),
  input: queryText(20),
  output: queryText(20),
  cached: queryText(20),
  model: queryText(MOST_MODEL_NAME),
  p: queryText(20),
  page_size: queryText(20),
};

export interface PricingQuery {
  keyword: string;
  vendor: string;
  kind: "tokens" | "call" | undefined;
  group: string;
  onlyAvailable: boolean;
  unit: "price" | "ratio";
  /** Tokens of the calculator; undefined: not asked for. Cached ones are among the input. */
  input: number | undefined;
  output: number | undefined;
  cached: number | undefined;
  model: string;
  page: string | undefined;
  pageSize: string | undefined;
}

const SCALES: Readonly<Record<string, number>> = { k: 1e3, m: 1e6 };

/** Tokens as people write them: 1,000,000, 200k, 1.5M; what is no number counts as not sent. */
export function tokensOf(text: string | undefined): number | undefined {
  const [, digits, scale = ""] =
    /^(\d+(?:\.\d+)?)([km]?)$/i.exec((text ?? "").replace(/[,，\s_]/g, "")) ?? [];
  if (digits === undefined) return undefined;
  return Math.min(Math.round(Number(digits) * (SCALES[scale.toLowerCase()] ?? 1)), MOST_TOKENS);
}

const KINDS: Readonly<Record<string, "tokens" | "call">> = { "0": "tokens", "1": "call" };

export function pricingQueryOf(sent: Sent<typeof pricingFields>): PricingQuery {
  return {
    keyword: sent.keyword?.trim() ?? "",
    vendor: sent.vendor ?? "",
    kind: KINDS[sent.quota_type ?? ""],
    group: sent.group ?? "",
    onlyAvailable: isOn(sent.available),
    unit: sent.unit === "ratio" ? "ratio" : "price",
    input: tokensOf(sent.input),
    output: tokensOf(sent.output),
    cached: tokensOf(sent.cached),
    model: sent.model ?? "",
    page: sent.p,
    pageSize: sent.page_size,
  };
}

/** The address of the list, or of a model's details, that such a query asks for; what is the default is left out. */
export function pricingAddress(query: PricingQuery): string {
  const params = new URLSearchParams();
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined && value !== "") params.append(name, String(value));
  };
  add("model", query.model);
  add("keyword", query.keyword);
  add("vendor", query.vendor);
  add("quota_type", query.kind && (query.kind === "call" ? 1 : 0));
  add("group", query.group);
  add("available", query.onlyAvailable ? 1 : "");
  add("unit", query.unit === "ratio" ? "ratio" : "");
  add("input", query.input);
  add("output", query.output);
  add("cached", query.cached);
  add("page_size", query.pageSize);
  add("p", query.page === "1" ? "" : query.page);
  const text = params.toString();
  return text === "" ? "/pricing" : `/pricing?${text}`;
}
