// The state of the playground: settings, conversations, the running answer, and what people do with them.
// Refuses two answers at once, and to lose an answer that is already there when the page is left.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Dispatch, SetStateAction } from "react";
import { api, call } from "../../lib/api.ts";
import { useCompleteChoices } from "../../lib/complete-choices.ts";
import { announce } from "../../lib/toasts.ts";
import type { Conversation, Message, Settings, Stored } from "./conversation.ts";
import {
  contextOf,
  defaultSettings,
  newConversation,
  newId,
  readStored,
  updateMessage,
  writeStored,
} from "./conversation.ts";
import { bodyOf, requestAnswer } from "./request.ts";
import type { Group } from "./settings.tsx";
import { gptFirst } from "./settings.tsx";

export interface PlaygroundData {
  groups: Group[];
  /** Model, and the positions of the groups that serve it. */
  models: [string, number[]][];
  /** There are more groups or models than these. */
  isCut?: boolean;
}

const FAVOURITE = "gpt-4o-mini";

function modelsOf(data: PlaygroundData, group: string): string[] {
  const at = data.groups.findIndex(({ name }) => name === group);
  return gptFirst(data.models.filter(([, groups]) => groups.includes(at)).map(([name]) => name));
}

/** Settings whose group and model exist: what was stored may name a channel that is gone. Of a cut list nobody knows. */
function usable(settings: Settings, data: PlaygroundData): Settings {
  if (data.isCut && settings.group !== "" && settings.model !== "") return settings;
  const group = data.groups.some(({ name }) => name === settings.group)
    ? settings.group
    : (data.groups[0]?.name ?? "");
  const models = modelsOf(data, group);
  const model = [settings.model, FAVOURITE].find((name) => models.includes(name)) ?? models[0] ?? "";
  return { ...settings, group, model };
}

function start(data: PlaygroundData): Stored {
  const conversation = newConversation();
  return {
    settings: usable(defaultSettings(FAVOURITE, ""), data),
    conversations: [conversation],
    current: conversation.id,
  };
}

/** What the page brought, and behind a cut list all groups and every model of the chosen one. */
function useCompleteData(data: PlaygroundData, group: string): PlaygroundData {
  const isCut = data.isCut === true;
  const groups = useCompleteChoices<Group[]>(data.groups, isCut, async () => {
    const all = Object.entries(await call(api.user.self.groups.get())).map(([name, choice]) => ({
      name,
      ...choice,
    }));
    const [own] = data.groups;
    return all.sort((a, b) => Number(b.name === own?.name) - Number(a.name === own?.name));
  });
  const models = useCompleteChoices<string[]>(
    [],
    isCut && group !== "",
    () => call(api.user.models.get({ query: { group } })),
    group,
  );
  return useMemo(() => {
    if (!isCut || !groups.isComplete || !models.isComplete) return data;
    const at = groups.all.findIndex(({ name }) => name === group);
    return { groups: groups.all, models: models.all.map((name): [string, number[]] => [name, [at]]) };
  }, [data, group, isCut, groups.all, groups.isComplete, models.all, models.isComplete]);
}

type SetStored = Dispatch<SetStateAction<Stored>>;

/** Settings and conversations of this browser: read when the page has come alive, written whenever no answer runs. */
function useStored(page: PlaygroundData, isRunning: boolean) {
  const [stored, setStored] = useState<Stored>(() => start(page));
  const data = useCompleteData(page, stored.settings.group);
  /** False until local storage was read: the server's render cannot know it. */
  const [isLoaded, setLoaded] = useState(false);
  const latest = useRef(stored);
  latest.current = stored;

  useEffect(() => {
    const fresh = start(page);
    const found = readStored(fresh.settings);
    setStored(found ? { ...found, settings: usable(found.settings, page) } : fresh);
    setLoaded(true);
  }, [page]);
  useEffect(() => {
    if (data !== page) setStored((before) => ({ ...before, settings: usable(before.settings, data) }));
  }, [page, data]);

  useEffect(() => {
    if (isLoaded && !isRunning) writeStored(stored);
  }, [isLoaded, isRunning, stored]);
  useEffect(() => {
    if (!isRunning) return undefined;
    const save = () => writeStored(latest.current);
    window.addEventListener("pagehide", save);
    return () => {
      window.removeEventListener("pagehide", save);
    };
  }, [isRunning]);
  return { stored, setStored, latest, data, isLoaded };
}

type ChangeConversation = (id: string, next: (conversation: Conversation) => Conversation) => void;

function messageOf(part: Pick<Message, "role" | "content" | "status"> & Partial<Message>): Message {
  return { id: newId(), createAt: Date.now(), ...part };
}

/** Calls the model with these messages as the conversation so far; the answer is put behind them. */
function useAnswer(
  latest: { current: Stored },
  change: ChangeConversation,
  setRunning: (running: AbortController | undefined) => void,
) {
  return useCallback(
    async (messages: readonly Message[]) => {
      const { settings, current, conversations } = latest.current;
      const conversation = conversations.find(({ id }) => id === current);
      if (!conversation || settings.model === "") return;
      const reply = messageOf({ role: "assistant", content: "", status: "loading", model: settings.model });
      const controller = new AbortController();
      setRunning(controller);
      change(current, (before) => ({ ...before, messages: [...messages, reply] }));
      const body = bodyOf(settings, contextOf({ ...conversation, messages }));
      const done = await requestAnswer(body, controller.signal, (patch) =>
        change(current, (before) => updateMessage(before, reply.id, patch)),
      );
      setRunning(undefined);
      announce(done.status === "error" ? "playground.answerFailed" : "playground.answered");
    },
    [change],
  );
}

export function usePlayground(page: PlaygroundData) {
  const [running, setRunning] = useState<AbortController>();
  const { stored, setStored, latest, data, isLoaded } = useStored(page, running !== undefined);
  const change = useCallback<ChangeConversation>((id, next) => {
    setStored((before) => ({
      ...before,
      conversations: before.conversations.map((each) => (each.id === id ? next(each) : each)),
    }));
  }, []);
  const answer = useAnswer(latest, change, setRunning);
  const conversation = useMemo(
    () => stored.conversations.find(({ id }) => id === stored.current) ?? newConversation(),
    [stored],
  );
  const models = useMemo(() => modelsOf(data, stored.settings.group), [data, stored.settings.group]);

  return {
    isLoaded,
    settings: stored.settings,
    conversations: stored.conversations,
    conversation,
    models,
    isRunning: running !== undefined,
    groups: data.groups,
    setSettings: (patch: Partial<Settings>) => {
      // Of another group's models nothing is known yet: they are fetched with the page's own data.
      const known = page.isCut && patch.group !== undefined ? page : data;
      setStored((before) => ({ ...before, settings: usable({ ...before.settings, ...patch }, known) }));
    },
    resetSettings: () =>
      setStored((before) => ({ ...before, settings: usable(defaultSettings(FAVOURITE, ""), data) })),
    send(text: string) {
      const message = messageOf({ role: "user", content: text, status: "complete" });
      void answer([...conversation.messages, message]);
    },
    stop: () => running?.abort(),
    regenerate: (id: string) => {
      const at = conversation.messages.findIndex((each) => each.id === id);
      if (at > 0) void answer(conversation.messages.slice(0, at));
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
