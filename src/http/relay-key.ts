// Finds the API key in a relay request, in every form that official clients and old proxies present it.
// A missing key is an empty one, whether it is good is decided by the caller.

export interface PresentedKey {
  /** Without `sk-` and without the channel suffix; "" when none was sent. */
  key: string;
  /** Text behind the key (`sk-KEY-12`): only administrators may name a channel. Undefined when there is none. */
  channel: string | undefined;
}

const SUBPROTOCOL_KEY = "openai-insecure-api-key.";
const PLACEHOLDER = "midjourney-proxy";

/** `realtime, openai-insecure-api-key.sk-…, openai-beta.realtime-v1` */
function fromSubprotocol(header: string): string {
  for (const entry of header.split(",")) {
    const name = entry.trim();
    if (name.startsWith(SUBPROTOCOL_KEY)) return name.slice(SUBPROTOCOL_KEY.length);
  }
  return "";
}

function withoutBearer(value: string): string {
  const trimmed = value.trim();
  return /^bearer\b/i.test(trimmed) ? trimmed.slice(6).trim() : trimmed;
}

function split(raw: string): PresentedKey {
  const bare = raw.startsWith("sk-") ? raw.slice(3) : raw;
  const dash = bare.indexOf("-");
  if (dash === -1) return { key: bare, channel: undefined };
  const rest = bare.slice(dash + 1);
  const next = rest.indexOf("-");
  return { key: bare.slice(0, dash), channel: next === -1 ? rest : rest.slice(0, next) };
}

/**
 * Order: WebSocket subprotocol, `x-api-key` (Anthropic clients), `x-goog-api-key` and `?key=` (Gemini clients),
 * `Authorization` with or without `Bearer`, `mj-api-secret` (also behind the placeholder of Midjourney clients).
 */
export function presentedKey(request: Request): PresentedKey {
  const { headers } = request;
  const authorization = headers.get("authorization");
  // By far the most common form first; the subprotocol only ever comes without it (browsers cannot set headers).
  if (authorization !== null && !headers.has("sec-websocket-protocol")) {
    const path = request.url;
    const isNative = path.includes("/v1/messages") || path.includes("/v1beta/");
    const value = withoutBearer(authorization);
    if (!isNative && value !== "" && value !== PLACEHOLDER) return split(value);
  }
  const offered = headers.get("sec-websocket-protocol");
  const candidates = [
    offered === null ? "" : fromSubprotocol(offered),
    headers.get("x-api-key") ?? "",
    fromQuery(request.url),
    headers.get("x-goog-api-key") ?? "",
    authorization ?? "",
    headers.get("mj-api-secret") ?? "",
  ];
  for (const candidate of candidates) {
    const value = withoutBearer(candidate);
    if (value !== "" && value !== PLACEHOLDER) return split(value);
  }
  return { key: "", channel: undefined };
}

function fromQuery(url: string): string {
  const at = url.indexOf("?");
  if (at === -1 || !url.includes("key=", at)) return "";
  return new URLSearchParams(url.slice(at + 1)).get("key") ?? "";
}
