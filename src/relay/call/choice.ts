// Who is asked next: the channel, and the key of it, for attempts and for whoever wants to know beforehand. One code for both, so
// that they cannot disagree. Refuses to take a place or a turn for who only looks.
import type { ChosenKey } from "../../core/channels/keyring.ts";
import type { PickedChannel } from "../../core/channels/picker.ts";
import type { Channel } from "../../core/channels/rows.ts";
import { KeyStatus } from "../../shared/enums.ts";
import type { AttemptedRequest, AttemptPolicy, AttemptServices } from "./channel-attempts.ts";
import { responseUnavailable } from "./response-affinity.ts";

/** What the choice goes by. */
export interface Choice {
  services: Pick<AttemptServices, "deps" | "picker">;
  request: Pick<
    AttemptedRequest,
    "caller" | "model" | "pinned" | "pinnedKey" | "accountKey" | "prompt" | "isTest"
  >;
  policy: Pick<AttemptPolicy, "accepts" | "keepsToFirstKey">;
  /** Channels that are not asked again. */
  excluded: ReadonlySet<number>;
  /** Channels that could serve it and are full are added here. */
  full: Set<number>;
  /** How often the other nodes left no place on a channel, by its id, in this round. */
  refusals?: ReadonlyMap<number, number> | undefined;
  /** Nobody is asked: turns and trials stay as they are. */
  isPeek?: boolean;
}

/** Of the prompt, as far as it is known. */
export function tokensOf({ request }: Pick<Choice, "request">): number {
  return request.prompt?.tokens ?? 0;
}

export function nextChannel(run: Choice, nowMs: number): PickedChannel | undefined {
  const { services, request, policy, excluded, isPeek = false } = run;
  const { pinned, pinnedKey, model, caller } = request;
  const { group, auto } = caller;
  const { deps, picker } = services;
  if (pinned) {
    if (excluded.size > 0) return undefined;
    if (pinnedKey !== undefined)
      claimAccount(services, { channel: pinned, keyIndex: pinnedKey, model }, nowMs);
    return { channel: pinned, group };
  }
  const pick = (accepts: (channel: Channel) => boolean): PickedChannel | undefined => {
    if (auto) return picker.pickAmong(auto, model, excluded, nowMs, accepts, isPeek);
    const channel = picker.pick(group, model, excluded, nowMs, accepts, isPeek);
    return channel && { channel, group };
  };
  if (deps.keyring.isCalm(nowMs) && !deps.routing.hasLimits()) return pick(policy.accepts);
  const isFit = (channel: Channel, orResting: boolean): boolean => {
    if (!policy.accepts(channel)) return false;
    const refused = run.refusals?.get(channel.id);
    if (refused !== undefined && refused >= channel.keyRows.length) {
      run.full.add(channel.id);
      return false;
    }
    const fitness = deps.keyring.fitness(channel, model, nowMs, tokensOf(run));
    if (fitness === "full") run.full.add(channel.id);
    return fitness === "fit" || (orResting && fitness === "resting");
  };
  // Where all keys rest, one of them still serves: a refusal would help nobody.
  return pick((channel) => isFit(channel, false)) ?? pick((channel) => isFit(channel, true));
}

/** Only this account can serve: while it rests nobody is asked, and the client reads when to come again. */
function claimAccount(
  { deps, picker }: Choice["services"],
  { channel, keyIndex, model }: { channel: Channel; keyIndex: number; model: string },
  nowMs: number,
): void {
  if (channel.keyRows[keyIndex]?.status !== KeyStatus.on) throw responseUnavailable(false);
  const ofKey = deps.keyring.restOf(channel, keyIndex, model, nowMs);
  const ofChannel = ofKey ? undefined : picker.claim(channel, model, nowMs);
  if (!ofKey && !ofChannel) return;
  const untilMs = ofKey?.restsUntilMs ?? ofChannel?.untilMs ?? nowMs;
  const isLimit = (ofKey ?? ofChannel)?.reason === "limited";
  throw responseUnavailable(isLimit, Math.max(1, Math.ceil((untilMs - nowMs) / 1000)));
}

/** Place of the one key that may be asked; undefined: any of the channel's. */
export function boundKey({
  pinnedKey,
  accountKey,
}: Pick<AttemptedRequest, "pinnedKey" | "accountKey">): number | undefined {
  return pinnedKey ?? accountKey;
}

export function keyFor(run: Choice, channel: Channel, nowMs: number): ChosenKey | undefined {
  const { services, request, policy, isPeek = false } = run;
  const { keyring, caps } = services.deps;
  const { model, caller } = request;
  const pinnedKey = boundKey(request);
  const tokens = tokensOf(run);
  // A test asks a key on purpose, also one that is off.
  if (request.isTest) return { key: channel.keys[0] ?? "", index: 0 };
  if (pinnedKey !== undefined) {
    const isOpen = !channel.isCapped || caps.hasRoom(channel, pinnedKey, tokens, nowMs);
    return isOpen ? { key: channel.keys[pinnedKey] ?? "", index: pinnedKey } : undefined;
  }
  if (policy.keepsToFirstKey === true) return keyring.first(channel, model, nowMs, tokens, isPeek);
  // A lone key and the usual mode need to know nothing of the caller.
  if (channel.keyMode !== "affinity") return keyring.next(channel, model, nowMs, { tokens, isPeek });
  return keyring.next(channel, model, nowMs, { tokens, isPeek, sticky: `${caller.user.id} ${model}` });
}
