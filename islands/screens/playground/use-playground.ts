// The state of the playground: settings, conversations, the running answers, and what people do with them.
// Refuses a question while an answer runs.
import { useCallback, useMemo, useRef, useState } from "react";
import type { Dispatch, SetStateAction } from "react";
import type { Conversation, Message, Settings, Side, Stored } from "./conversation.ts";
import { newConversation } from "./conversation.ts";
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
    /** Asks a question after these messages. */
    send: (draft: Draft, after: readonly Message[] = conversation.messages) =>
      ask({ messages: [...after, questionOf(draft)], sides: sidesOf(settings) }),
    stop,
    ask,
    change,
    /** Opens a conversation that goes on with this model alone. */
    begin: (copy: Conversation, model: string | undefined) =>
      setStored((before) => ({
        ...before,
        conversations: [copy, ...before.conversations],
        current: copy.id,
        settings: usable({ ...before.settings, ...(model ? { model } : {}), other: "" }, data),
      })),
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

/** Deletes the open conversation; gives back what undoes it. */
function removeOpenConversation(before: Stored, setStored: SetStored): () => void {
  const left = before.conversations.filter(({ id }) => id !== before.current);
  const conversations = left.length > 0 ? left : [newConversation()];
  setStored({ ...before, conversations, current: conversations[0]?.id ?? "" });
  const at = before.conversations.findIndex(({ id }) => id === before.current);
  const removed = before.conversations[at];
  return () =>
    setStored((now) => {
      // What was asked meanwhile stays.
      const isThere = removed === undefined || now.conversations.some(({ id }) => id === removed.id);
      return isThere
        ? now
        : { ...now, conversations: now.conversations.toSpliced(at, 0, removed), current: removed.id };
    });
}
