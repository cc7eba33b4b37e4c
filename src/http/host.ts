// The check of the Host header that every kind of route makes first.
// Refuses a Host header that is missing, empty or no host: the server then has no address of the request, only its path.
import { Failure } from "../shared/failures.ts";
import { failureResponse } from "./failures.ts";
import { preferredLanguage } from "./messages.ts";

const H = 104;

/** By positions only: the relay's hot path asks too. */
export function hasUsableHost({ url }: Request): boolean {
  const host = url.indexOf("://") + 3;
  // Without a usable header the address is a bare path; "http" and "https" are all that may stand before the host.
  return host > 6 && host < 9 && url.charCodeAt(0) === H && url.charCodeAt(host) !== 47;
}

/**
 * Undefined when the request may go on. Called by each kind of route and not as one hook before routing: Elysia's
 * onRequest cost every call some six microseconds.
 */
export function refuseBadHost({ request }: { request: Request }): Response | undefined {
  if (hasUsableHost(request)) return undefined;
  const language = preferredLanguage(request) ?? "en";
  return failureResponse(new Failure("client", "host_invalid", { status: 400 }), language);
}
