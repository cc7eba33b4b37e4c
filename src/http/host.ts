// The one check before any routing.
// Refuses a Host header that is missing or shorter than four characters: the router would read another path out of it.
import { Failure } from "../shared/failures.ts";
import { failureResponse } from "./failures.ts";

const MIN_HOST_CHARS = 4;

/** Undefined when the request may go on. Runs before every call, the relay's too, hence by positions only. */
export function refuseShortHost({ request }: { request: Request }): Response | undefined {
  const { url } = request;
  const host = url.indexOf("://") + 3;
  // Without a Host header the address is a bare path; "http" and "https" are all that may stand before the host.
  if (host > 6 && host < 9 && url.indexOf("/", host) - host >= MIN_HOST_CHARS) return undefined;
  return failureResponse(new Failure("client", "host_invalid", { status: 400 }), request);
}
