// Pictures of providers with a form of their own: addresses in, OpenAI's list out, inlined where the client asked so.
// Refuses answers with fewer pictures than were asked (and paid) for, and pictures too large to be inlined.
import { asString } from "../../protocol/json.ts";
import type { AdapterCall } from "../adapter.ts";
import { badAnswer, jsonResponse } from "../adapter-kit.ts";

/** A picture larger than this is not inlined. */
export const MAX_INLINE_BYTES = 32 * 1024 * 1024;

export type Picture = { url: string } | { b64_json: string };

/** How many pictures the client asked for; fields of forms are text. */
export function pictureCount(call: AdapterCall): number {
  const n = Number(call.body["n"] ?? 1);
  return Number.isInteger(n) && n > 0 ? n : 1;
}

/** The size as numbers; undefined for "auto" and for none. */
export function pictureSize(call: AdapterCall): { width: number; height: number } | undefined {
  const found = /^(\d{2,5})[x*](\d{2,5})$/.exec(asString(call.body["size"]) ?? "");
  return found ? { width: Number(found[1]), height: Number(found[2]) } : undefined;
}

/** The bytes behind an address that the provider gave, in base64; fetched as far as the limit only. */
async function inlined(call: AdapterCall, url: string, maxBytes = MAX_INLINE_BYTES): Promise<string> {
  const response = await call.fetch(url, { method: "GET", headers: {}, signal: call.signal });
  if (response.status !== 200 || !response.body) throw badAnswer(`picture answered with ${response.status}`);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > maxBytes) throw badAnswer(`picture larger than ${maxBytes} bytes`);
      parts.push(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
  return Buffer.concat(parts).toString("base64");
}

/** OpenAI's answer for pictures behind addresses. */
export async function picturesFrom(
  call: AdapterCall,
  urls: readonly string[],
  maxBytes?: number,
): Promise<Response> {
  const isInline = call.body["response_format"] === "b64_json";
  const wanted = pictureCount(call);
  if (urls.length < wanted) throw badAnswer(`${urls.length} of ${wanted} pictures`);
  if (!isInline)
    return picturesAnswer(
      call,
      urls.map((url) => ({ url })),
    );
  const data: Picture[] = [];
  // One after the other: several large ones at once would be held together.
  for (const url of urls) data.push({ b64_json: await inlined(call, url, maxBytes) });
  return picturesAnswer(call, data);
}

export function picturesAnswer(call: AdapterCall, data: readonly Picture[]): Response {
  const wanted = pictureCount(call);
  if (data.length < wanted) throw badAnswer(`${data.length} of ${wanted} pictures`);
  return jsonResponse({ created: Math.floor(call.nowMs() / 1000), data });
}
