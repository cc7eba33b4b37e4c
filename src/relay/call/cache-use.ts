// What caches of prompts did for a call: how much of the prompt came from one, and what that was worth to who pays.
// Refuses to guess: a usage that was counted here says nothing of caches, and is left out.
import type { CacheUse } from "../../core/deps.ts";
import type { Usage } from "../../shared/usage.ts";
import { placedBy } from "./affinity.ts";
import type { Call } from "./call.ts";

/** `dearer`: what the call would have cost more (whole units) had it used this in place of what it did. */
export function cacheUseOf(
  call: Pick<Call, "endpoint" | "affinity" | "pinnedKey">,
  usage: Usage,
  dearer: (without: Usage) => number,
): CacheUse | undefined {
  const { fresh, cacheRead, cacheWrite5m, cacheWrite1h } = usage.input;
  const input = fresh + cacheRead + cacheWrite5m + cacheWrite1h;
  if (input === 0 || usage.estimated === true || !call.endpoint.isConversation) return undefined;
  const saved = input === fresh ? 0 : dearer(withoutCache(usage, input));
  const use: CacheUse = { input, read: cacheRead, saved };
  const place = placedBy(call);
  return place ? { ...use, ...place } : use;
}

function withoutCache(usage: Usage, fresh: number): Usage {
  const input = { ...usage.input, fresh, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
  return { ...usage, input };
}
