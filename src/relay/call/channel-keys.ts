// One channel asked on the gateway's own account (tests, balances, model lists): key after key, until one is accepted.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import { KeyStatus } from "../../shared/enums.ts";
import { AttemptFailure, failureIn } from "./attempt.ts";
import { restKey } from "./findings.ts";

export interface ChannelKey {
  key: string;
  /** Place in the channel's list, from 0. */
  keyIndex: number;
}

/** Of a channel whose keys are all refused so many are asked, no more: each costs a call. */
export const MAX_KEYS_ASKED = 20;

/** What is asked of a channel without naming a model: lists, balances, tasks. It rests by itself, and no model with it. */
export const NO_MODEL = "";

/** Those that may be asked: what somebody switched off never is, what went off by itself only where nothing else is there. */
export function askableKeys(channel: Channel): ChannelKey[] {
  const all = channel.keys.map((key, keyIndex) => ({ key, keyIndex }));
  const statusOf = ({ keyIndex }: ChannelKey) => channel.keyRows[keyIndex]?.status;
  const on = all.filter((key) => statusOf(key) === KeyStatus.on);
  return on.length > 0 ? on : all.filter((key) => statusOf(key) === KeyStatus.autoOff);
}

/**
 * The keys in the order in which they are asked: those that rest, for this model or for all, come last. No turn of theirs is
 * taken from calls.
 */
export function keysInOrder(
  { keyring, clock }: Pick<Deps, "keyring" | "clock">,
  channel: Channel,
  model: string = NO_MODEL,
): ChannelKey[] {
  const nowMs = clock.monotonicMs();
  const keys = askableKeys(channel);
  const isFit = ({ keyIndex }: ChannelKey) => !keyring.restOf(channel, keyIndex, model, nowMs);
  const fit = keys.filter(isFit);
  const resting = keys.filter((key) => !isFit(key));
  return [...fit, ...resting].slice(0, MAX_KEYS_ASKED);
}

interface RefusedKey {
  keyIndex: number;
  failed: AttemptFailure;
}

/**
 * Asks with one key after the other until one is accepted; only a refusal of the key (an AttemptFailure with the verdict
 * "rejected" or "limited") moves on to the next, anything else is thrown. An answer that is not `isEnough` moves on as
 * well, and stands where no other key has a better one. Throws the failure of the last key when all were refused.
 */
export async function askInTurn<T>(
  keys: readonly ChannelKey[],
  ask: (key: string) => Promise<T>,
  isEnough: (answer: T) => boolean = () => true,
): Promise<{ answer: T; refused: RefusedKey[] }> {
  const refused: RefusedKey[] = [];
  let last: { answer: T } | undefined;
  for (const { key, keyIndex } of keys) {
    try {
      last = { answer: await ask(key) };
      if (isEnough(last.answer)) break;
    } catch (thrown) {
      if (!(thrown instanceof AttemptFailure) || !isRefusedKey(thrown)) throw failureIn(thrown);
      refused.push({ keyIndex, failed: thrown });
    }
  }
  if (last) return { answer: last.answer, refused };
  throw failureIn(refused.at(-1)?.failed);
}

/** Whether it is the key that was refused, so that another one may be asked. */
export function isRefusedKey({ verdict }: AttemptFailure): boolean {
  return verdict === "rejected" || verdict === "limited";
}

/**
 * The channel's keys in turn. In contrast to a relayed call a refused key rests only once another one was accepted: some
 * providers refuse every key that calls are made with on such an address (OpenAI's billing wants a session's).
 */
export async function askWithKeys<T>(
  deps: Pick<Deps, "keyring" | "clock" | "caps">,
  channel: Channel,
  ask: (key: string) => Promise<T>,
  isEnough?: (answer: T) => boolean,
): Promise<{ answer: T; refused: readonly RefusedKey[] }> {
  const found = await askInTurn(keysInOrder(deps, channel), ask, isEnough);
  for (const { keyIndex, failed } of found.refused) restKey(deps, { channel, keyIndex }, NO_MODEL, failed);
  return found;
}
