// Pictures, sounds and files behind addresses, fetched for upstreams that only take them inline.
// Refuses to fetch by itself: the guarded fetch it is given decides which addresses may be asked.
import { parseDataUrl } from "../protocol/json.ts";
import type { MediaPart } from "../protocol/media.ts";
import { Failure } from "../shared/failures.ts";

export interface FetchedMedia {
  mime: string;
  /** Base64. */
  data: string;
}

/** Fetches one address under the gateway's rules for addresses that a person typed; throws a client Failure. */
export type MediaFetch = (url: string) => Promise<FetchedMedia>;

const AT_ONCE = 4;
/** More pictures than any model takes: fetching them all would be somebody's load test of somebody else's server. */
const MAX_MEDIA = 64;

/** Replaces the address of each part by what stands there. */
export async function inlineMedia(parts: readonly MediaPart[], fetchMedia: MediaFetch): Promise<void> {
  if (parts.length > MAX_MEDIA)
    throw new Failure("client", "media_too_many", { params: { limit: MAX_MEDIA } });
  const queue = [...parts];
  const work = async (): Promise<void> => {
    for (let part = queue.shift(); part; part = queue.shift()) {
      if (part.source.kind !== "url") continue;
      const { mime, data } = await fetchMedia(part.source.url);
      part.source = { kind: "base64", mime, data };
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, work));
}

/** The gateway's own rules for addresses in requests. */
export function createMediaFetch(): MediaFetch {
  return (url) => {
    const inline = parseDataUrl(url);
    if (inline) return Promise.resolve(inline);
    return Promise.reject(new Failure("client", "media_unreachable"));
  };
}
