// What fetch is told of an upstream request besides its address: as it was sent, no redirects, no time limit but ours.
// Refuses spreads: every call makes one of these.
import { AS_SENT } from "../../net/decompress.ts";
import type { UpstreamRequest } from "./attempt.ts";

function withHost(headers: ConstructorParameters<typeof Headers>[0], host: string): Headers {
  const all = new Headers(headers);
  all.set("host", host);
  return all;
}

/** `host`: the Host header, where the address names a judged machine in the name's place (net/reach.ts). */
export function fetchInit(
  { proxy }: Pick<UpstreamRequest, "proxy">,
  { method = "GET", headers, body }: RequestInit,
  host: string | undefined,
  signal: AbortSignal,
): BunFetchRequestInit {
  const init: BunFetchRequestInit = {
    method,
    headers: host === undefined ? headers : withHost(headers, host),
    body,
    decompress: AS_SENT.decompress,
    redirect: "manual",
    signal,
    // Bun's own idle limit would cut a model that thinks for five minutes.
    timeout: false,
  };
  if (proxy !== "") init.proxy = proxy;
  return init;
}
