// The operator's fetch worker: a small program elsewhere that makes a request in this server's place and hands back what
// came, so that strangers' hosts never learn the server's address. Speaks the protocol that such workers share.
// Refuses private addresses that are written out: what the worker's own network may hold is nobody's to ask for.
import { Failure } from "../shared/failures.ts";
import { isPublicAddress } from "./guard.ts";
import type { Guard, GuardOptions } from "./guard.ts";

export interface Worker {
  /** Without a slash at its end. */
  url: string;
  /** Shared with the worker, which serves nobody else; "" = none. */
  key: string;
  /** Closed networks that the worker itself may lie in. */
  allow: readonly string[];
  /** Plain http may be asked for too. */
  takesHttp: boolean;
}

export interface OutboundOptions extends GuardOptions {
  /** A JSON text. */
  body?: string;
  /** Headers that only a worker is told. */
  workerHeaders?: Record<string, string>;
}

/** Like a guard, to addresses that people typed; by way of the worker where the operator has one. */
export type Outbound = (address: string, options: OutboundOptions) => ReturnType<Guard>;

function refused(reason: string): Failure {
  return new Failure("client", "address_refused", { internal: reason });
}

function checkTarget(address: string, takesHttp: boolean): URL {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol)) throw refused("no web address");
  if (url.username !== "" || url.password !== "") throw refused("credentials in the address");
  if (url.protocol === "http:" && !takesHttp) throw new Failure("client", "worker_https_only");
  // Names are the worker's to look up; what is written out, also as 0x7f.1, the parser has made plain.
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const isLiteral = host.includes(":") || /^[\d.]+$/.test(host);
  if (isLiteral && !isPublicAddress(host)) throw refused("private address through the worker");
  if (host === "localhost" || host.endsWith(".localhost")) throw refused("the worker's own machine");
  return url;
}

/** What a worker says of itself, in place of what it was asked for. */
function workersOwnWord(bytes: Uint8Array): string | undefined {
  try {
    const said = JSON.parse(new TextDecoder().decode(bytes.subarray(0, 2000))) as unknown;
    if (typeof said !== "object" || said === null) return undefined;
    const { success, error } = said as { success?: unknown; error?: unknown };
    return success === false && typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Asks the worker for an address; the answer is the target's, under the caller's caps of size and time. Throws Failures
 * `address_refused`, `worker_https_only`, and those of the guard, by which the worker itself is reached.
 */
export async function askWorker(
  guard: Guard,
  worker: Worker,
  address: string,
  options: OutboundOptions,
): ReturnType<Guard> {
  const { href } = checkTarget(address, worker.takesHttp);
  const { method = "GET", headers, workerHeaders, body } = options;
  const isPlain = method === "GET" && headers === undefined && body === undefined;
  const asked = {
    url: href,
    key: worker.key,
    ...(isPlain ? {} : { method, headers: { ...headers, ...workerHeaders } }),
    // A JSON value, not a text of one: workers write it out themselves.
    ...(body === undefined ? {} : { body: JSON.parse(body) as unknown }),
  };
  const answer = await guard(`${worker.url}/`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(asked),
    maxBytes: options.maxBytes,
    timeoutMs: options.timeoutMs,
    allow: worker.allow,
    maxRedirects: 0,
    ...(options.signal ? { signal: options.signal } : {}),
  });
  const said = answer.status >= 400 ? workersOwnWord(answer.bytes) : undefined;
  if (said !== undefined) throw new Failure("client", "address_unreachable", { internal: `worker: ${said}` });
  return answer;
}
