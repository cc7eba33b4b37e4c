// Pictures, sounds and files behind addresses, fetched for upstreams that only take them inline.
// It fetches nothing by itself: the guarded fetch it is given decides which addresses may be called.
import type { Outbound } from "../../net/worker.ts";
import { parseDataUrl } from "../../protocol/json.ts";
import type { MediaPart } from "../../protocol/media.ts";
import { Failure } from "../../shared/failures.ts";

interface FetchedMedia {
  mime: string;
  /** Base64. */
  data: string;
}

/**
 * Fetches one address under the gateway's rules for addresses that a person typed; `allow` names networks that the
 * channel's owner opened. Throws a client Failure.
 */
export type MediaFetch = (url: string, allow: readonly string[]) => Promise<FetchedMedia>;

const AT_ONCE = 4;
/** More pictures than any model takes: fetching them all would be somebody's load test of somebody else's server. */
const MAX_MEDIA = 64;

/** Replaces the address of each part by what stands there. */
export async function inlineMedia(
  parts: readonly MediaPart[],
  fetchMedia: MediaFetch,
  allow: readonly string[],
): Promise<void> {
  if (parts.length > MAX_MEDIA)
    throw new Failure("client", "media_too_many", { params: { limit: MAX_MEDIA } });
  const queue = [...parts];
  const work = async (): Promise<void> => {
    for (let part = queue.shift(); part; part = queue.shift()) {
      if (part.source.kind !== "url") continue;
      const { mime, data } = await fetchMedia(part.source.url, allow);
      part.source = { kind: "base64", mime, data };
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, work));
}

const MAX_BYTES = 20 * 1024 * 1024;
const TIMEOUT_MS = 20_000;

/** First bytes of what models take, for servers that send no or a meaningless type. */
const SIGNATURES: readonly [mime: string, at: number, bytes: string][] = [
  ["image/png", 0, "\x89PNG"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
  ["application/pdf", 0, "%PDF"],
  ["audio/wav", 8, "WAVE"],
  ["audio/mpeg", 0, "ID3"],
  ["audio/ogg", 0, "OggS"],
];

/** The type by its first bytes, else as the server says; throws for pages of text, which are no media. */
function mediaType(bytes: Uint8Array, declared: string | null): string {
  const head = Buffer.from(bytes.subarray(0, 16)).toString("latin1");
  const found = SIGNATURES.find(([, at, signature]) => head.startsWith(signature, at));
  if (found) return found[0];
  const mime = (declared ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (!/^(?:image|audio|video|application)\/[\w.+-]+$/.test(mime))
    throw new Failure("client", "media_unreachable", { internal: `not media: ${mime}` });
  return mime;
}

/** Fetches media by the way out of what people typed; anything but a full answer with status 200 is a refusal of the request. */
export function createMediaFetch(outbound: Outbound): MediaFetch {
  return async (url, allow) => {
    const inline = parseDataUrl(url);
    if (inline) return inline;
    const answer = await outbound(url, { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, allow });
    if (answer.status !== 200)
      throw new Failure("client", "media_unreachable", { internal: `status ${answer.status}` });
    const { bytes } = answer;
    const mime = mediaType(bytes, answer.headers.get("content-type"));
    return { mime, data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64") };
  };
}
