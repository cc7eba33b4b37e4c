// The client's address: the socket's, or what a trusted proxy says.
// Refuses forwarded headers from any peer that is not listed in TRUSTED_PROXIES.
import ipaddr from "ipaddr.js";

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

export function parseRanges(list: readonly string[]): Range[] {
  return list.map((entry) => {
    if (entry.includes("/")) return ipaddr.parseCIDR(entry);
    const address = ipaddr.process(entry);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  });
}

/** True when the address lies in one of the ranges; anything that is not an address lies in none. */
export function inRanges(address: string, ranges: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some(([range, bits]) => parsed.kind() === range.kind() && parsed.match(range, bits));
}

interface PeerSource {
  requestIP(request: Request): { address: string } | null;
}

/** Of a visitor whose socket is gone: nobody's address, so in nobody's ranges, and one visitor in all limits. */
const UNKNOWN_ADDRESS = "unknown";

/**
 * Walks X-Forwarded-For from the right and takes the first address that is not a trusted proxy;
 * X-Real-IP when there is no such header.
 */
export function clientAddress(request: Request, server: PeerSource, trusted: readonly Range[]): string {
  const peer = normalise(server.requestIP(request)?.address ?? UNKNOWN_ADDRESS);
  if (trusted.length === 0 || !inRanges(peer, trusted)) return peer;
  const forwarded = (request.headers.get("x-forwarded-for") ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => ipaddr.isValid(entry));
  for (const entry of forwarded.reverse()) {
    if (!inRanges(entry, trusted)) return normalise(entry);
  }
  const real = request.headers.get("x-real-ip")?.trim() ?? "";
  return ipaddr.isValid(real) ? normalise(real) : peer;
}

/** IPv4 addresses mapped into IPv6 are written as IPv4. */
function normalise(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}
