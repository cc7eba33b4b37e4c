// Pictures of providers with a form of their own: addresses in, OpenAI's list out, inlined where the client asked so.
// Refuses answers without any picture, and pictures too large to be inlined; fewer than were asked for are delivered, for
// the provider has made and billed them.
import { scrub } from "../../protocol/classify.ts";
import { asString } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";
import { badAnswer, jsonResponse } from "../adapter-kit.ts";
import { realWait } from "../wait.ts";
import type { Wait } from "../wait.ts";

/** A picture larger than this is not inlined. */
export const MAX_INLINE_BYTES = 32 * 1024 * 1024;

const MAX_FETCHES = 3;
const FETCH_PAUSE_MS = 500;

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
async function inlined(call: AdapterCall, url: string): Promise<string> {
  const response = await call.fetch(url, { method: "GET", headers: {}, signal: call.signal });
  if (response.status !== 200 || !response.body) throw lost(`picture answered with ${response.status}`);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > MAX_INLINE_BYTES) throw lost(`picture larger than ${MAX_INLINE_BYTES} bytes`);
      parts.push(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
  return Buffer.concat(parts).toString("base64");
}

/** It was made and is paid for: asked of another channel it would be paid for again (`retry-rules.ts`). */
function lost(internal: string): Failure {
  return new Failure("upstream-down", "upstream_picture_lost", { internal });
}

/** The same with patience: fetching it again costs nothing, making it again does. Throws `upstream_picture_lost`. */
async function fetched(call: AdapterCall, url: string, wait: Wait): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await inlined(call, url);
    } catch (error) {
      if (call.signal.aborted) throw error;
      if (tries >= MAX_FETCHES)
        throw error instanceof Failure ? lost(error.internal ?? error.code) : lost(scrub(String(error)));
    }
    await wait(tries * FETCH_PAUSE_MS, call.signal);
  }
}

/** OpenAI's answer for pictures behind addresses. */
export async function picturesFrom(
  call: AdapterCall,
  urls: readonly string[],
  wait: Wait = realWait,
): Promise<Response> {
  if (call.body["response_format"] !== "b64_json")
    return picturesAnswer(
      call,
      urls.map((url) => ({ url })),
    );
  const data: Picture[] = [];
  let missed: unknown;
  // One after the other: several large ones at once would be held together.
  for (const url of urls) {
    try {
      data.push({ b64_json: await fetched(call, url, wait) });
    } catch (error) {
      if (call.signal.aborted) throw error;
      missed = error;
    }
  }
  if (data.length === 0 && missed !== undefined) throw missed;
  return picturesAnswer(call, data);
}

/** What came is delivered, and is what is charged, also where more was asked for. */
export function picturesAnswer(call: AdapterCall, data: readonly Picture[]): Response {
  if (data.length === 0) throw badAnswer("no pictures");
  return jsonResponse({ created: Math.floor(call.nowMs() / 1000), data });
}
