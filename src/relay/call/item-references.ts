// Seals the items of an answer into ids of ours, for the user who got them, and opens such ids again: with the
// installation's key alone, so that every node can, and every start.
import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { Sealer } from "../../core/kit/seal.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import type { OpenItems, SealedItems, SealItems } from "../../protocol/openai-responses/references.ts";

/** Longer answers keep ids that say nothing: an id of that size would weigh more than the answer. */
const MAX_ID_CHARS = 96 * 1024;
/** No more than this was ever sealed; what is larger is nobody's. */
const MAX_ITEM_BYTES = 4 * 1024 * 1024;
/** What the references of one request may become together: bodies have bounds, and ids pack tightly. */
const MAX_OPENED_BYTES = 32 * 1024 * 1024;

export function itemSealer(seal: Sealer, userId: number): SealItems {
  return (items) => {
    const text = JSON.stringify([userId, items]);
    if (text.length > MAX_ITEM_BYTES) return undefined;
    const sealed = seal.sealBytes("item", deflateRawSync(text)).toString("base64url");
    return sealed.length > MAX_ID_CHARS ? undefined : sealed;
  };
}

/** For one request. */
export function itemOpener(seal: Sealer, userId: number): OpenItems {
  let leftBytes = MAX_OPENED_BYTES;
  return (sealed) => {
    if (sealed.length > MAX_ID_CHARS) return undefined;
    try {
      const packed = seal.openBytes("item", Buffer.from(sealed, "base64url"));
      const bytes = inflateRawSync(packed, {
        maxOutputLength: Math.max(1, Math.min(MAX_ITEM_BYTES, leftBytes)),
      });
      leftBytes -= bytes.length;
      const read = parseJson(bytes.toString("utf8"));
      if (!Array.isArray(read) || read[0] !== userId) return undefined;
      return asObject(read[1]) as SealedItems | undefined;
    } catch {
      return undefined;
    }
  };
}
