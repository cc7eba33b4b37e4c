// Gets the text of a source of prices from an address that somebody typed: by the guard, never by the worker, which could forge it.
// Refuses what is slow, large, private, a page for people, or another host than was named; each by a code of its own.
import { Failure, refuse } from "../../../shared/failures.ts";
import type { Deps } from "../../deps.ts";

const MEBIBYTE = 1024 * 1024;
const MAX_BYTES = 10 * MEBIBYTE;
const SOURCE_TIMEOUT_MS = 10_000;

/** Statuses by which a server says that this is not for everybody. */
const HIDDEN: readonly number[] = [401, 403];
/** Refusals after which the other of an instance's two lists may still be there. */
const TRY_OTHER: readonly string[] = ["price_source_hidden", "price_source_status", "price_source_html"];

/** What an instance of the family tells its prices under: the first that it shows. */
const INSTANCE_PATHS = ["/api/ratio_config", "/api/pricing"] as const;

export interface SourceRequest {
  address: string;
  /** Closed networks that the address may lie in. */
  allow: readonly string[];
  /** The proxy of the channel whose instance it is. */
  proxy?: string;
}

type Fetching = Pick<Deps, "guard">;

/** The address as it may be fetched. Throws price_source_address. */
export function sourceUrl(address: string): URL {
  const url = URL.parse(address.trim());
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw refuse("price_source_address");
  return url;
}

/** Settles like the work, or rejects once the time is over: a name server may be silent too. */
function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason instanceof Error ? signal.reason : new Error("too late"));
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
  });
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

/** The guard's refusal in the words of this errand. */
function told(error: unknown, timeoutMs: number): unknown {
  if (isTimeout(error) || (error instanceof Failure && isTimeout(error.cause)))
    return refuse("price_source_slow", { seconds: Math.ceil(timeoutMs / 1000) });
  if (!(error instanceof Failure)) return error;
  const { code, params, internal } = error;
  if (code === "address_refused")
    return new Failure("client", "price_source_private", internal === undefined ? {} : { internal });
  if (code === "address_redirected") return refuse("price_source_redirected", { ...params });
  if (code === "address_answer_too_large") return refuse("price_source_too_large", { ...params });
  if (code === "address_unreachable")
    return new Failure("client", "price_source_unreachable", internal === undefined ? {} : { internal });
  return error;
}

const BYTE_ORDER_MARK = "\uFEFF";

/** Whether it is a page for people, whatever its header says. */
const isPage = (text: string): boolean => /^\s*</.test(text.slice(0, 1000));

function textOf(status: number, headers: Headers, bytes: Uint8Array<ArrayBuffer>): string {
  if (HIDDEN.includes(status)) throw refuse("price_source_hidden", { status });
  if (status !== 200) throw refuse("price_source_status", { status });
  if (bytes.length === 0) throw refuse("price_source_empty");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("price_source_broken");
  }
  const type = headers.get("content-type") ?? "";
  if (type.startsWith("text/html") || isPage(text)) throw refuse("price_source_html");
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

async function fetchOne(
  deps: Fetching,
  { address, allow, proxy = "" }: SourceRequest,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<string> {
  const work = deps.guard(address, {
    // Nothing of this site goes along, a channel's key least of all.
    headers: { accept: "application/json", "user-agent": "weir" },
    maxBytes: MAX_BYTES,
    timeoutMs,
    allow,
    staysOnHost: true,
    signal,
    ...(proxy === "" ? {} : { proxy }),
  });
  let answer: Awaited<typeof work>;
  try {
    answer = await inTime(work, signal);
  } catch (error) {
    throw told(error, timeoutMs);
  }
  return textOf(answer.status, answer.headers, answer.bytes);
}

/** The source's text; all of it within the time, redirects and all. */
export function fetchSource(
  deps: Fetching,
  request: SourceRequest,
  timeoutMs = SOURCE_TIMEOUT_MS,
): Promise<string> {
  return fetchOne(
    deps,
    { ...request, address: sourceUrl(request.address).href },
    AbortSignal.timeout(timeoutMs),
    timeoutMs,
  );
}

/** The prices of another instance of the family, by its plain address or that of one of its lists. */
export async function fetchInstance(
  deps: Fetching,
  request: SourceRequest,
  timeoutMs = SOURCE_TIMEOUT_MS,
): Promise<string> {
  const url = sourceUrl(request.address);
  if (INSTANCE_PATHS.some((path) => url.pathname.endsWith(path)))
    return fetchSource(deps, request, timeoutMs);
  const signal = AbortSignal.timeout(timeoutMs);
  // People copy the address of the API, too.
  const base = url.origin + url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
  const [first, second] = INSTANCE_PATHS.map((path) => ({ ...request, address: base + path }));
  if (!first || !second) throw refuse("price_source_address");
  try {
    return await fetchOne(deps, first, signal, timeoutMs);
  } catch (error) {
    if (!(error instanceof Failure) || !TRY_OTHER.includes(error.code)) throw error;
    return await fetchOne(deps, second, signal, timeoutMs).catch((again: unknown) => {
      // The list that other instances are meant to read says best what is amiss.
      throw again instanceof Failure && TRY_OTHER.includes(again.code) ? error : again;
    });
  }
}
