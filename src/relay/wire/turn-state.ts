// The state that an upstream gives a client for the turn under way (Codex): it goes out in an envelope of ours and comes
// back only to the channel and key that gave it, for the same user. Nothing is stored; other nodes read it, too.
import type { Sealer } from "../../core/kit/seal.ts";

export const TURN_STATE = "x-codex-turn-state";

/** Whose state it is. */
export interface TurnOwner {
  seal: Sealer;
  userId: number;
  channelId: number;
  /** The channel's key that was asked with. */
  key: string;
}

/** Longer ones are not passed on: with the envelope they would be too much for a header. */
const MAX_STATE_CHARS = 4096;

const keyMark = (seal: Sealer, key: string): string =>
  seal.mac(`turn ${key}`).toString("base64url").slice(0, 16);

function markOf({ seal, userId, channelId, key }: TurnOwner): string {
  return `${userId} ${channelId} ${keyMark(seal, key)} `;
}

/** The envelope for the client; undefined where there is nothing that could go into one. */
export function sealTurnState(owner: TurnOwner, state: string | null): string | undefined {
  if (state === null || state === "" || state.length > MAX_STATE_CHARS) return undefined;
  return owner.seal.seal("turn", markOf(owner) + state);
}

/** The upstream's own words again; undefined for anybody else's, and for what is no envelope of ours. */
export function openTurnState(owner: TurnOwner, envelope: string): string | undefined {
  const mark = markOf(owner);
  try {
    const text = owner.seal.open("turn", envelope);
    return text.startsWith(mark) ? text.slice(mark.length) : undefined;
  } catch {
    return undefined;
  }
}

/** Who gave it, as the envelope says: the channel, and how its key is known. Undefined for what is not this user's. */
export function turnStateHome(
  seal: Sealer,
  userId: number,
  envelope: string,
): { channelId: number; isKey: (key: string) => boolean } | undefined {
  let text: string;
  try {
    text = seal.open("turn", envelope);
  } catch {
    return undefined;
  }
  const [owner, channelId, mark] = text.split(" ", 3);
  if (owner !== String(userId)) return undefined;
  return { channelId: Number(channelId), isKey: (key) => keyMark(seal, key) === mark };
}
