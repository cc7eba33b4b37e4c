// Conversations of several tabs of one browser: each tab keeps its own open, and takes over what others made, changed and deleted.
// Refuses to take back what was changed here: where both changed one, this tab's stands.
import type { Conversation } from "./conversation.ts";

/** What storage and this tab had in common last: the conversation here, and how it was stored: pictures may not have fitted. */
interface Shared {
  mine: Conversation;
  /** Undefined: it is not in storage, and nobody deletes it there. */
  stored: string | undefined;
}

/** By id. */
export type Synced = ReadonlyMap<string, Shared>;

/** Conversations here, and what storage has of them. */
export function syncedOf(mine: readonly Conversation[], stored: readonly Conversation[] = mine): Synced {
  const texts = new Map(stored.map((each) => [each.id, JSON.stringify(each)]));
  return new Map(mine.map((each) => [each.id, { mine: each, stored: texts.get(each.id) }]));
}

/** This tab's conversations with what is stored; `open` is shown here and stays. The same list where nothing is new. */
export function mergedConversations(
  mine: readonly Conversation[],
  { open, synced, stored }: { open: string; synced: Synced; stored: readonly Conversation[] },
): readonly Conversation[] {
  const theirs = new Map(stored.map((each) => [each.id, each]));
  const own = new Set(mine.map(({ id }) => id));
  const added = stored.filter(({ id }) => !own.has(id) && !synced.has(id));
  const kept = mine.flatMap((each) => {
    const other = theirs.get(each.id);
    const last = synced.get(each.id);
    if (last?.mine !== each) return [each];
    if (!other) return each.id === open || last.stored === undefined ? [each] : [];
    const text = JSON.stringify(other);
    return [text === last.stored || text === JSON.stringify(each) ? each : other];
  });
  const isNew = added.length > 0 || kept.length < mine.length || kept.some((each, at) => each !== mine[at]);
  return isNew ? [...added, ...kept] : mine;
}
