// What people do with a single message of the conversation: asked anew, answered anew, taken out.
// Comes with the messages: before they are drawn nobody can do any of it.
import { turnsOf } from "./conversation.ts";
import type { Draft, Playground } from "./use-playground.ts";

/** Asks again in place of a question and everything after it; gives back what undoes that. */
export function resend(playground: Playground, id: string, draft: Draft): () => void {
  const { conversation, send, stop, change } = playground;
  const { messages } = conversation;
  const at = messages.findIndex((each) => each.id === id);
  send(draft, messages.slice(0, at));
  return () => {
    stop();
    change(conversation.id, (before) => ({ ...before, messages }));
  };
}

/** Both answers of a turn have their own: the other one stays as it is. */
export function regenerate({ conversation, ask }: Playground, id: string): void {
  const turn = turnsOf(conversation.messages).find((each) => each.some((message) => message.id === id));
  const [first] = turn ?? [];
  const at = conversation.messages.findIndex((each) => each.id === first?.id);
  const own = turn?.find((each) => each.id === id);
  if (!own || at <= 0) return;
  const kept = turn?.find((each) => each.id !== id);
  ask({ messages: conversation.messages.slice(0, at), sides: [own.side ?? 0], kept });
}

/** Takes one message out; gives back what undoes that. */
export function removeMessage({ conversation, change }: Playground, id: string): () => void {
  const { messages, clearedAt } = conversation;
  const at = messages.findIndex((each) => each.id === id);
  change(conversation.id, (before) => ({
    ...before,
    messages: before.messages.filter((each) => each.id !== id),
    // The cut stays where it was.
    clearedAt: before.clearedAt === id ? (messages[at - 1]?.id ?? "") : before.clearedAt,
  }));
  return () =>
    change(conversation.id, (before) => ({
      ...before,
      messages: before.messages.toSpliced(at, 0, ...messages.slice(at, at + 1)),
      clearedAt,
    }));
}
