// The one way out to addresses that people typed: media in requests, webhooks, image proxies, lists of models.
// Refuses private, loopback, link-local, carrier, mapped and metadata addresses, and connects to the address it checked.
import { lookup as lookupAll } from "node:dns/promises";
import ipaddr from "ipaddr.js";
import { Failure } from "../shared/failures.ts";
import { AS_SENT, unpacked } from "./decompress.ts";

/** All addresses of a name; passed in, so that tests can play a name server that changes its mind. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

export interface GuardOptions {
  method?: "GET" | "POST" | "HEAD";
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  /** Larger answers are broken off. */
  maxBytes: number;
  /** For all of it: names, connections, redirects and the body. */
  timeoutMs: number;
  /** Networks that an administrator opened, as CIDR or single addresses; other private addresses stay closed. */
  allow?: readonly string[];
  maxRedirects?: number;
  /** Redirects to another host, or from TLS to none, are refused with `address_redirected`. */
  staysOnHost?: boolean;
  /** Address of an outgoing proxy, which resolves names by itself; "" = none. */
  proxy?: string;
  signal?: AbortSignal;
}

interface GuardedAnswer {
  status: number;
  headers: Headers;
  bytes: Uint8Array<ArrayBuffer>;
}

export type Guard = (address: string, options: GuardOptions) => Promise<GuardedAnswer>;

type Address = ReturnType<typeof ipaddr.parse>;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const DEFAULT_REDIRECTS = 3;

export const systemLookup: Lookup = async (hostname) =>
  (await lookupAll(hostname, { all: true })).map(({ address }) => address);

/** Name servers can be silent for longer than any caller waits; rejects with the signal's reason. */
export async function before<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const ended = Promise.withResolvers<never>();
  const end = (): void => ended.reject(signal.reason);
  // Nobody may be waiting for what comes late.
  work.catch(() => undefined);
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([work, ended.promise]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

function refused(reason: string): Failure {
  return new Failure("client", "address_refused", { internal: reason });
}

/** Global unicast (RFC 4291, IANA registry); whatever else looks like unicast to a parser is unassigned or disguised. */
const GLOBAL_IPV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse("2000::"), 3];

/**
 * Where clouds hand their machines credentials: AWS and most others, AWS and Google over IPv6, Alibaba, Oracle, and
 * Azure's host, whose address is a public one. No range opens them, only an entry that names the very address.
 */
const METADATA: ReadonlySet<string> = new Set([
  "169.254.169.254",
  "169.254.170.2",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
]);

/** Whether the address lies in one of these networks; metadata services only where an entry names the very address. */
export function liesIn(text: string, networks: readonly string[]): boolean {
  return ipaddr.isValid(text) && isAllowed(ipaddr.process(text), networks);
}

function isAllowed(address: Address, allow: readonly string[]): boolean {
  return allow.some((entry) => {
    try {
      const range = entry.includes("/") ? ipaddr.parseCIDR(entry) : undefined;
      if (!range) return ipaddr.process(entry).toString() === address.toString();
      if (METADATA.has(address.toString())) return false;
      return range[0].kind() === address.kind() && address.match(range);
    } catch {
      return false;
    }
  });
}

/**
 * Whether anybody may make the gateway connect there. IPv4 in IPv6 clothes (mapped, 6to4, Teredo, NAT64) counts as what
 * it is: only plain global unicast passes.
 */
export function isPublicAddress(text: string, allow: readonly string[] = []): boolean {
  if (!ipaddr.isValid(text)) return false;
  // `process` unwraps ::ffff:a.b.c.d.
  const address = ipaddr.process(text);
  const isGlobal = address.kind() === "ipv4" || address.match(GLOBAL_IPV6);
  const isOpen = isGlobal && address.range() === "unicast" && !METADATA.has(address.toString());
  return isOpen || isAllowed(address, allow);
}

/**
 * The address to connect to: every address of the name must be open, so that no answer of a name server decides.
 * Behind a proxy a name that is unknown here stays a name.
 */
async function resolve(
  url: URL,
  allow: readonly string[],
  { lookup, signal, hasProxy }: { lookup: Lookup; signal: AbortSignal; hasProxy: boolean },
): Promise<string | undefined> {
  const bare = url.hostname.replace(/^\[|\]$/g, "");
  if (ipaddr.isValid(bare)) {
    if (!isPublicAddress(bare, allow)) throw refused("address of a closed network");
    return bare;
  }
  let addresses: readonly string[];
  try {
    addresses = await before(signal, lookup(bare));
  } catch {
    if (hasProxy && !signal.aborted) return undefined;
    throw new Failure("client", "address_unreachable", { internal: "name does not resolve" });
  }
  const [first] = addresses;
  if (first === undefined)
    throw new Failure("client", "address_unreachable", { internal: "name without address" });
  if (!addresses.every((address) => isPublicAddress(address, allow)))
    throw refused("name of a closed network");
  return hasProxy ? undefined : first;
}

function parsed(address: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(address, base);
  } catch {
    throw refused("no address");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw refused("protocol");
  if (url.username !== "" || url.password !== "") throw refused("credentials in the address");
  return url;
}

/** The request to the checked address itself; name and certificate stay those of the URL. */
function pinned(
  url: URL,
  address: string | undefined,
): { target: string; tls: { serverName: string } | undefined } {
  const target = new URL(url);
  if (address === undefined) {
    target.hash = "";
    return { target: target.href, tls: undefined };
  }
  target.hostname = address.includes(":") ? `[${address}]` : address;
  target.hash = "";
  return {
    target: target.href,
    tls: url.protocol === "https:" ? { serverName: url.hostname.replace(/^\[|\]$/g, "") } : undefined,
  };
}

function isSameHost(from: URL, to: URL): boolean {
  return from.hostname === to.hostname && (to.protocol === "https:" || to.protocol === from.protocol);
}

async function capped(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const tooLarge = (): Failure =>
    new Failure("client", "address_answer_too_large", {
      params: { limit: Math.floor(maxBytes / 1024 / 1024) },
    });
  if (announced > maxBytes) {
    response.body?.cancel().catch(() => {});
    throw tooLarge();
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  if (response.body) {
    for await (const part of response.body) {
      size += part.length;
      if (size > maxBytes) throw tooLarge();
      parts.push(part);
    }
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Makes the guard. The answer is read in full, whatever its status; throws Failures `address_refused`,
 * `address_unreachable`, `address_redirected` and `address_answer_too_large`. Redirects are followed hop by hop, each checked anew; from the
 * second host on no header of the caller goes along, and a redirected POST is refused.
 */
export function createGuard(lookup: Lookup = systemLookup, fetcher: typeof fetch = fetch): Guard {
  return async (address, options) => {
    const { allow = [], maxRedirects = DEFAULT_REDIRECTS, method = "GET", proxy = "" } = options;
    const timeout = AbortSignal.timeout(options.timeoutMs);
    const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout;
    let url = parsed(address);
    const { origin } = url;
    for (let hop = 0; ; hop++) {
      const { target, tls } = pinned(
        url,
        await resolve(url, allow, { lookup, signal, hasProxy: proxy !== "" }),
      );
      const headers: Record<string, string> = {
        "accept-encoding": "identity",
        ...(url.origin === origin ? options.headers : {}),
        host: url.host,
      };
      let response: Response;
      try {
        const sent = await fetcher(target, {
          ...AS_SENT,
          method,
          headers,
          redirect: "manual",
          signal,
          keepalive: false,
          ...(options.body === undefined ? {} : { body: options.body }),
          ...(tls ? { tls } : {}),
          ...(proxy === "" ? {} : { proxy }),
        } as RequestInit);
        // Asked for plain, a hostile server may pack all the same.
        response = unpacked(sent);
      } catch (error) {
        throw new Failure("client", "address_unreachable", { internal: String(error), cause: error });
      }
      const location = response.headers.get("location");
      if (REDIRECTS.has(response.status) && location !== null) {
        response.body?.cancel().catch(() => {});
        if (hop >= maxRedirects && options.staysOnHost === true)
          throw new Failure("client", "address_unreachable", { internal: "too many redirects" });
        if (hop >= maxRedirects) throw refused("too many redirects");
        if (method === "POST") throw refused("redirected POST");
        const next = parsed(location, url);
        if (options.staysOnHost === true && !isSameHost(url, next))
          throw new Failure("client", "address_redirected", { params: { host: next.host } });
        url = next;
        continue;
      }
      try {
        return {
          status: response.status,
          headers: response.headers,
          bytes: await capped(response, options.maxBytes),
        };
      } catch (error) {
        if (error instanceof Failure) throw error;
        throw new Failure("client", "address_unreachable", { internal: String(error), cause: error });
      }
    }
  };
}
