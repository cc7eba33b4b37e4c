// Conversations of several tabs of one browser: each tab keeps its own open, and takes over what others made, changed and deleted.
// Refuses to take back what was changed here: where both changed one, this tab's stands.
import type { Conversation } from "./conversation.ts";

/** What storage and this tab had in common last, by id. */
export type Synced = ReadonlyMap<string, Conversation>;

export const syncedOf = (conversations: readonly Conversation[]): Synced =>
  new Map(conversations.map((each) => [each.id, each]));

const isSame = (a: Conversation, b: Conversation): boolean =>
  a === b || JSON.stringify(a) === JSON.stringify(b);

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
    if (synced.get(each.id) !== each) return [each];
    if (!other) return each.id === open ? [each] : [];
    return [isSame(each, other) ? each : other];
  });
  const isNew = added.length > 0 || kept.length < mine.length || kept.some((each, at) => each !== mine[at]);
  return isNew ? [...added, ...kept] : mine;
}
