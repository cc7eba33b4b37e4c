// The state of the playground: settings, conversations, the running answers, and what people do with them.
// Refuses a question while an answer runs.
import { useCallback, useMemo, useRef, useState } from "react";
import type { Dispatch, SetStateAction } from "react";
import type { Conversation, Message, Settings, Side, Stored } from "./conversation.ts";
import { newConversation, turnsOf } from "./conversation.ts";
import type { ChangeConversation, Running } from "./use-answers.ts";
import { messageOf, useAsk, useLateCosts } from "./use-answers.ts";
import type { BriefPrice, PlaygroundData } from "./use-stored.ts";
import { modelsOf, standardSettings, usable, useStored } from "./use-stored.ts";

type SetStored = Dispatch<SetStateAction<Stored>>;

/** What a person writes: text, and pictures as data URLs. */
export interface Draft {
  text: string;
  images: readonly string[];
}

const NO_ANSWER: Running = new Map();

function questionOf({ text, images }: Draft): Message {
  const pictures = images.length > 0 ? { images } : {};
  return messageOf({ role: "user", content: text, status: "complete", ...pictures });
}

/** Who answers the next question. */
const sidesOf = ({ other }: Settings): Side[] => (other === "" ? [0] : [0, 1]);

export function usePlayground(page: PlaygroundData) {
  const [running, setRunning] = useState<Running>(NO_ANSWER);
  const latestRunning = useRef(running);
  latestRunning.current = running;
  const { stored, setStored, latest, data, isLoaded } = useStored(page, running.size > 0);
  const change = useCallback<ChangeConversation>((id, next) => {
    setStored((before) => ({
      ...before,
      conversations: before.conversations.map((each) => (each.id === id ? next(each) : each)),
    }));
  }, []);
  const ask = useAsk({ latest, change, setRunning });
  const { settings } = stored;
  const conversation = useMemo(
    () => stored.conversations.find(({ id }) => id === stored.current) ?? newConversation(),
    [stored],
  );
  useLateCosts(conversation, isLoaded, change);
  const models = useMemo(() => modelsOf(data, settings.group), [data, settings.group]);
  const prices = useMemo(
    () =>
      new Map<string, BriefPrice>(data.models.flatMap(([name, , price]) => (price ? [[name, price]] : []))),
    [data],
  );
  /** One answer, or every one. */
  const stop = (id?: string) => {
    for (const [each, controller] of latestRunning.current)
      if (id === undefined || id === each) controller.abort();
  };

  return {
    isLoaded,
    settings,
    conversations: stored.conversations,
    conversation,
    models,
    prices,
    running,
    isRunning: running.size > 0,
    groups: data.groups,
    mostBodyMb: data.mostBodyMb,
    setSettings: (patch: Partial<Settings>) => {
      // Of another group's models nothing is known yet: they are fetched with the page's own data.
      const known = page.isCut && patch.group !== undefined ? page : data;
      setStored((before) => ({ ...before, settings: usable({ ...before.settings, ...patch }, known) }));
    },
    resetSettings: () => setStored((before) => ({ ...before, settings: usable(standardSettings(), data) })),
    send: (draft: Draft) =>
      ask({ messages: [...conversation.messages, questionOf(draft)], sides: sidesOf(settings) }),
    stop,
    /** Asks again in place of a question and everything after it; gives back what undoes that. */
    resend(id: string, draft: Draft): () => void {
      const { messages } = conversation;
      const at = messages.findIndex((each) => each.id === id);
      ask({ messages: [...messages.slice(0, at), questionOf(draft)], sides: sidesOf(settings) });
      return () => {
        stop();
        change(conversation.id, (before) => ({ ...before, messages }));
      };
    },
    /** Both answers of a turn have their own: the other one stays as it is. */
    regenerate(id: string) {
      const turn = turnsOf(conversation.messages).find((each) => each.some((message) => message.id === id));
      const [first] = turn ?? [];
      const at = conversation.messages.findIndex((each) => each.id === first?.id);
      const own = turn?.find((each) => each.id === id);
      if (!own || at <= 0) return;
      const kept = turn?.find((each) => each.id !== id);
      ask({ messages: conversation.messages.slice(0, at), sides: [own.side ?? 0], kept });
    },
    /** Opens a conversation that goes on with the model that spoke last in it. */
    begin(copy: Conversation) {
      const { model } = copy.messages.at(-1) ?? {};
      setStored((before) => ({
        ...before,
        conversations: [copy, ...before.conversations],
        current: copy.id,
        settings: usable({ ...before.settings, ...(model ? { model } : {}), other: "" }, data),
      }));
    },
    remove: (id: string) => removeMessage(conversation, id, change),
    clearContext: () =>
      change(conversation.id, (before) => ({ ...before, clearedAt: before.messages.at(-1)?.id ?? "" })),
    restoreContext: () => change(conversation.id, (before) => ({ ...before, clearedAt: "" })),
    open: (id: string) => setStored((before) => ({ ...before, current: id })),
    create() {
      const fresh = newConversation();
      setStored((before) => ({
        ...before,
        conversations: [fresh, ...before.conversations],
        current: fresh.id,
      }));
    },
    removeConversation: () => removeOpenConversation(latest.current, setStored),
  };
}

export type Playground = ReturnType<typeof usePlayground>;

/** Gives back what undoes it. */
function removeMessage(conversation: Conversation, id: string, change: ChangeConversation): () => void {
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

/** Deletes the open conversation; gives back what undoes it. */
function removeOpenConversation(before: Stored, setStored: SetStored): () => void {
  const left = before.conversations.filter(({ id }) => id !== before.current);
  const conversations = left.length > 0 ? left : [newConversation()];
  setStored({ ...before, conversations, current: conversations[0]?.id ?? "" });
  return () => setStored((now) => ({ ...before, settings: now.settings }));
}
