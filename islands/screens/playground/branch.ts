// A conversation that goes on from a message of another one.
import type { Conversation } from "./conversation.ts";
import { newId, turnsOf } from "./conversation.ts";

/** A copy of the conversation up to a message, as its model has seen it; undefined for an unknown message. */
export function branchOf(conversation: Conversation, id: string): Conversation | undefined {
  const { messages, clearedAt } = conversation;
  const at = messages.findIndex((each) => each.id === id);
  const last = messages[at];
  if (!last) return undefined;
  const side = last.side ?? 0;
  const turns = turnsOf(messages.slice(0, at + 1));
  const kept = turns.flatMap((turn) => {
    const { side: _, ...own } = turn.find((each) => (each.side ?? 0) === side) ?? turn[0] ?? last;
    return own;
  });
  // The cut may be at the other model's answer, which stays behind: its turn is what was cut.
  const cutTurn = turnsOf(messages).find((turn) => turn.some((each) => each.id === clearedAt)) ?? [];
  const cut = kept.find((each) => cutTurn.some(({ id: own }) => own === each.id));
  return { id: newId(), messages: kept, clearedAt: cut?.id ?? "", isBranch: true };
}
