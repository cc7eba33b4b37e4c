// Gets a bill from its provider's address: by the guard, never by the worker, which could forge it.
// Refuses other hosts than were named, and to keep the key: it goes along with this one errand.
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";

export interface BillAddress {
  url: string;
  /** The provider's key for such reports; sent as it wants it, kept nowhere. */
  key: string;
}

const MAX_BYTES = 10 * 1024 * 1024;
const TIMEOUT_MS = 20_000;
const HEADER_TEXT = /^[\x21-\x7e]{1,1000}$/;

function addressOf(text: string): URL {
  const url = URL.parse(text.trim());
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw refuse("price_source_address");
  return url;
}

/** Anthropic's reports want their own header; everybody else takes a bearer. */
function headersOf(url: URL, key: string): Record<string, string> {
  const plain = { accept: "application/json", "user-agent": "weir" };
  if (key === "") return plain;
  if (!HEADER_TEXT.test(key)) throw refuse("bill_key");
  return url.pathname.includes("/organizations/") && key.startsWith("sk-ant-")
    ? { ...plain, "x-api-key": key, "anthropic-version": "2023-06-01" }
    : { ...plain, authorization: `Bearer ${key}` };
}

/** One page of it; `page` is what the page before named. Throws price_source_* by what was amiss, and bill_key. */
export async function fetchBill(
  deps: Pick<Deps, "guard" | "reach">,
  { url: text, key }: BillAddress,
  page: string | undefined,
): Promise<string> {
  const url = addressOf(text);
  if (page !== undefined) url.searchParams.set("page", page);
  let answer: Awaited<ReturnType<Deps["guard"]>>;
  try {
    answer = await deps.guard(url.href, {
      headers: headersOf(url, key),
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
      allow: deps.reach.networks(url.href, { baseUrl: url.href, setting: {} }),
      staysOnHost: true,
    });
  } catch (error) {
    throw told(error);
  }
  const { status, bytes } = answer;
  if (status === 401 || status === 403) throw refuse("price_source_hidden", { status });
  if (status !== 200) throw refuse("price_source_status", { status });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("price_source_broken");
  }
}

/** The guard's refusals by the codes that readers of sources know. */
const TOLD = {
  address_refused: "price_source_private",
  address_redirected: "price_source_redirected",
  address_answer_too_large: "price_source_too_large",
  address_unreachable: "price_source_unreachable",
} as const;

function told(error: unknown): unknown {
  if (!(error instanceof Failure)) return error;
  const code = (TOLD as Readonly<Record<string, (typeof TOLD)[keyof typeof TOLD]>>)[error.code];
  return code === undefined ? error : refuse(code, { ...error.params });
}
