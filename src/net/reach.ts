// Where a channel may connect: the upstream addresses that administrators typed, judged once and remembered.
// Refuses closed networks unless the operator or the channel opened them, and the metadata services of clouds in any case.
import ipaddr from "ipaddr.js";
import { Failure } from "../shared/failures.ts";
import { before, isPublicAddress, liesIn, systemLookup } from "./guard.ts";
import type { Lookup } from "./guard.ts";

/** How to send a request: `host` is the Host header where `url` names the judged address in the name's place. */
export interface EgressTarget {
  url: string;
  host?: string;
}

/** What of a channel decides: one object for each version of it, because verdicts are remembered by it. */
interface ReachChannel {
  readonly baseUrl: string;
  readonly setting: { readonly proxy?: unknown; readonly allow_networks?: unknown };
}

export interface Reach {
  /** Where to send a request to an address of the channel; answers at once where it is known. Throws `channel_address_closed`. */
  target(url: string, channel: ReachChannel): EgressTarget | Promise<EgressTarget>;
  /**
   * Closed networks that this address may lie in. The operator's are open only for the host that the channel itself
   * names: what a provider's answer points to is the provider's word.
   */
  networks(url: string, channel: ReachChannel): readonly string[];
  /** Whether every address of this URL's host lies in these networks; in the operator's where none are named. */
  opens(url: string, networks?: readonly string[]): Promise<boolean>;
}

interface Verdict {
  /** Scheme, host and port to connect to. */
  origin: string;
  host: string | undefined;
  /** On the steady clock. */
  untilMs: number;
}

/** As long as resolvers commonly keep a name. */
const NAME_MS = 30_000;
/** A name whose servers are silent for so long counts as one that does not resolve; calls wait for it. */
const LOOKUP_MS = 10_000;
/** A name that does not resolve here may still be known to a proxy: it is looked up again soon. */
const UNKNOWN_NAME_MS = 5_000;
/** Answers of a provider may name many hosts. */
const MAX_ORIGINS = 100;

/** What comes before the path, without a parser: every relayed call asks. */
function originEnd(url: string): number {
  const host = url.indexOf("://") + 3;
  for (let at = host; at < url.length; at++) {
    const c = url.charCodeAt(at);
    // "/", "?", "#" and "\", which parsers of web addresses read as "/".
    if (c === 47 || c === 63 || c === 35 || c === 92) return at;
  }
  return url.length;
}

function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? "";
}

/** Another channel may serve the call; the remedy is for administrators to read. */
function closed(reason: string): Failure {
  const internal = `${reason}; UPSTREAM_NETWORKS, or allow_networks in the channel's setting, opens networks`;
  return new Failure("no-channel", "channel_address_closed", { internal, retryable: true });
}

function allowedBy(channel: ReachChannel): readonly string[] {
  const { allow_networks: networks } = channel.setting;
  return Array.isArray(networks) ? networks.filter((entry) => typeof entry === "string") : [];
}

/**
 * `own`: the operator's networks, as CIDR ranges (environment variable UPSTREAM_NETWORKS). `isPinning` false: a proxy of
 * the whole process makes the connections, and may know hosts by their names only.
 */
export function createReach(
  own: readonly string[],
  clock: { monotonicMs(): number },
  lookup: Lookup = systemLookup,
  isPinning = true,
): Reach {
  const known = new WeakMap<ReachChannel, Map<string, Verdict>>();
  const lookUp: Lookup = (name) => before(AbortSignal.timeout(LOOKUP_MS), lookup(name));

  function networks(url: string, channel: ReachChannel): readonly string[] {
    const allowed = allowedBy(channel);
    const isNamed = channel.baseUrl !== "" && hostOf(channel.baseUrl) === hostOf(url);
    return isNamed ? [...own, ...allowed] : allowed;
  }

  /** Addresses of the name, all of them open; none when nobody here knows it. */
  async function openAddresses(hostname: string, allow: readonly string[]): Promise<readonly string[]> {
    const bare = hostname.replace(/^\[|\]$/g, "");
    if (ipaddr.isValid(bare)) {
      if (!isPublicAddress(bare, allow)) throw closed("address of a closed network");
      return [bare];
    }
    let addresses: readonly string[];
    try {
      addresses = await lookUp(bare);
    } catch {
      return [];
    }
    if (!addresses.every((address) => isPublicAddress(address, allow)))
      throw closed("name of a closed network");
    return addresses;
  }

  async function judged(origin: string, channel: ReachChannel): Promise<Verdict> {
    const url = URL.parse(origin);
    if (!url || !/^(https?|wss?):$/.test(url.protocol)) throw closed("no web address");
    const { proxy } = channel.setting;
    const hasProxy = typeof proxy === "string" && proxy !== "";
    if (hasProxy) await openAddresses(hostOf(proxy), [...own, ...allowedBy(channel)]);
    const isLiteral = ipaddr.isValid(url.hostname.replace(/^\[|\]$/g, ""));
    const nowMs = clock.monotonicMs();
    const plain = { origin, host: undefined };
    // A proxy resolves by itself, often just because the name server here does not tell the truth.
    if (hasProxy && !isLiteral) return { ...plain, untilMs: nowMs + NAME_MS };
    const addresses = await openAddresses(url.hostname, networks(origin, channel));
    if (isLiteral) return { ...plain, untilMs: Infinity };
    const [address] = addresses;
    if (address === undefined) return { ...plain, untilMs: nowMs + UNKNOWN_NAME_MS };
    // Without TLS nothing proves that the host of the next lookup is the one that was judged: the connection goes to the
    // address itself. With TLS the certificate proves it, and the name keeps its connections.
    if (url.protocol !== "http:" || !isPinning) return { ...plain, untilMs: nowMs + NAME_MS };
    const { host } = url;
    url.hostname = address.includes(":") ? `[${address}]` : address;
    return { origin: url.origin, host, untilMs: nowMs + NAME_MS };
  }

  const targetOf = (verdict: Verdict, url: string, end: number): EgressTarget =>
    verdict.host === undefined ? { url } : { url: verdict.origin + url.slice(end), host: verdict.host };

  async function opens(url: string, open = own): Promise<boolean> {
    const bare = hostOf(url).replace(/^\[|\]$/g, "");
    if (ipaddr.isValid(bare)) return liesIn(bare, open);
    const addresses = bare === "" ? [] : await lookUp(bare).catch(() => []);
    return addresses.length > 0 && addresses.every((address) => liesIn(address, open));
  }

  return {
    networks,
    opens,
    target(url, channel) {
      const end = originEnd(url);
      const origin = url.slice(0, end);
      let origins = known.get(channel);
      const verdict = origins?.get(origin);
      if (verdict && (verdict.untilMs === Infinity || verdict.untilMs > clock.monotonicMs()))
        return targetOf(verdict, url, end);
      if (!origins || origins.size >= MAX_ORIGINS) known.set(channel, (origins = new Map()));
      const fresh = origins;
      return judged(origin, channel).then((made) => {
        fresh.set(origin, made);
        return targetOf(made, url, end);
      });
    },
  };
}
