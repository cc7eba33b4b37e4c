// A name for the session of a call, for upstreams that keep caches by one: told where the channel wants it and the client told none.
// Refuses to pass on what a client calls its session: it is a keyed hash of user and name.
import type { Channel } from "../../core/channels/rows.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import { sessionHeaders } from "../../providers/session-headers.ts";
import type { Json } from "../endpoints/endpoint.ts";
import { sessionNameOf } from "../endpoints/session-name.ts";
import { scopedValue } from "../wire/passed-headers.ts";
import type { Call } from "./call.ts";

const HEADER = "x-session-id";

type HintedCall = Pick<Call, "request" | "endpoint" | "caller" | "body">;

/** 64 hex digits; undefined where nothing names a session. */
function hintOf(
  seal: Pick<Sealer, "mac">,
  { request, endpoint, caller, body }: HintedCall,
): string | undefined {
  const named = sessionNameOf(request.headers, endpoint.dialect, body);
  return named && scopedValue(seal, caller.user.id, `session ${named.value}`);
}

function isWanted({ setting }: Channel, { endpoint }: HintedCall): boolean {
  return setting["session_hint"] === true && endpoint.isConversation;
}

const takesHeader = (channel: Channel): boolean => sessionHeaders(channel.type, channel).includes(HEADER);

/** Adds the header of those providers that read one. */
export function hintHeader(
  headers: Record<string, string>,
  seal: Pick<Sealer, "mac">,
  channel: Channel,
  call: HintedCall,
): void {
  if (!isWanted(channel, call) || headers[HEADER] !== undefined || !takesHeader(channel)) return;
  const hint = hintOf(seal, call);
  if (hint !== undefined) headers[HEADER] = hint;
}

/** The same in the body, for OpenAI's dialects; undefined: it stays as it is. */
export function hintChanges(
  seal: Pick<Sealer, "mac">,
  channel: Channel,
  call: HintedCall,
  { dialect, body }: { dialect: string; body: Json },
): Record<string, unknown> | undefined {
  if (!isWanted(channel, call) || !dialect.startsWith("openai") || takesHeader(channel)) return undefined;
  if (body["prompt_cache_key"] !== undefined) return undefined;
  const hint = hintOf(seal, call);
  return hint === undefined ? undefined : { prompt_cache_key: hint };
}
