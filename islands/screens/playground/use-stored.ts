// What the playground works with: settings and conversations of this browser, groups and models of the page.
// Refuses settings whose group or model is gone, and to lose an answer that is already there when the page is left.
import { useEffect, useMemo, useRef, useState } from "react";
import type { Dispatch, SetStateAction } from "react";
import { api, call } from "../../lib/api.ts";
import { useCompleteChoices } from "../../lib/complete-choices.ts";
import type { ModelNotice } from "../../lib/wire.ts";
import type { Settings, Stored } from "./conversation.ts";
import { defaultSettings, newConversation, readStored, storageKey, writeStored } from "./conversation.ts";
import { mergedConversations, syncedOf } from "./merge.ts";
import type { Synced } from "./merge.ts";
import type { Group } from "./settings.tsx";
import { gptFirst } from "./settings.tsx";

/** Units per prompt and per completion token where the group's ratio is 1; dollars per call alone; empty: none is set. */
export type BriefPrice = readonly number[];

export interface PlaygroundData {
  groups: Group[];
  /** Model, the positions of the groups that serve it, and its price. */
  models: [name: string, groups: number[], price?: BriefPrice][];
  /** There are more groups or models than these. */
  isCut?: boolean;
  /** The largest body of a call, in mebibytes. */
  mostBodyMb?: number;
  /** What administrators tell about the models. */
  notices?: ModelNotice[];
}

const FAVOURITE = "gpt-4o-mini";

export const standardSettings = (): Settings => defaultSettings(FAVOURITE, "");

export function modelsOf(data: PlaygroundData, group: string): string[] {
  const at = data.groups.findIndex(({ name }) => name === group);
  return gptFirst(data.models.filter(([, groups]) => groups.includes(at)).map(([name]) => name));
}

/** Settings whose group and models exist: what was stored may name a channel that is gone. Of a cut list nobody knows. */
export function usable(settings: Settings, data: PlaygroundData): Settings {
  if (data.isCut && settings.group !== "" && settings.model !== "") return settings;
  const group = data.groups.some(({ name }) => name === settings.group)
    ? settings.group
    : (data.groups[0]?.name ?? "");
  const models = modelsOf(data, group);
  const model = [settings.model, FAVOURITE].find((name) => models.includes(name)) ?? models[0] ?? "";
  const other = settings.other === "" || models.includes(settings.other) ? settings.other : model;
  return { ...settings, group, model, other };
}

function start(data: PlaygroundData): Stored {
  const conversation = newConversation();
  return {
    settings: usable(standardSettings(), data),
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
  const models = useCompleteChoices<[string, BriefPrice][]>(
    [],
    isCut && group !== "",
    () => call(api.user.models.priced.get({ query: { group } })),
    group,
  );
  return useMemo(() => {
    if (!isCut || !groups.isComplete || !models.isComplete) return data;
    const at = groups.all.findIndex(({ name }) => name === group);
    return {
      ...data,
      isCut: false,
      groups: groups.all,
      models: models.all.map(([name, price]): PlaygroundData["models"][number] => [name, [at], price]),
    };
  }, [data, group, isCut, groups.all, groups.isComplete, models.all, models.isComplete]);
}

/** Storage that other tabs write too: what they make, change and delete is taken over before this one writes. */
function useSharedTalks(latest: { current: Stored }, setStored: Dispatch<SetStateAction<Stored>>) {
  const state = useRef<{ synced: Synced; written: Stored | undefined }>({
    synced: new Map(),
    written: undefined,
  });
  const shared = useMemo(() => {
    const merge = () => {
      const before = latest.current;
      const stored = readStored(before.settings)?.conversations ?? [];
      const { synced } = state.current;
      const conversations = mergedConversations(before.conversations, {
        open: before.current,
        synced,
        stored,
      });
      if (conversations === before.conversations) return;
      // What changed here stays to be written.
      const changed = new Set(before.conversations.filter((each) => synced.get(each.id)?.mine !== each));
      const taken = conversations.filter((each) => !changed.has(each));
      state.current.synced = syncedOf(taken, stored);
      latest.current = { ...before, conversations };
      setStored((now) => ({
        ...now,
        conversations: mergedConversations(now.conversations, { open: now.current, synced, stored }),
      }));
    };
    const isWritten = (now: Stored) => {
      const { synced, written } = state.current;
      return (
        written?.settings === now.settings &&
        written.current === now.current &&
        now.conversations.length === synced.size &&
        now.conversations.every((each) => synced.get(each.id)?.mine === each)
      );
    };
    return {
      merge,
      read(next: Stored, found: Stored | undefined) {
        state.current = {
          synced: syncedOf(next.conversations, found?.conversations ?? []),
          written: undefined,
        };
      },
      save() {
        if (isWritten(latest.current)) return;
        merge();
        // What could not be written is not what others see: nothing of it counts as theirs.
        if (!writeStored(latest.current)) return;
        const stored = readStored(latest.current.settings)?.conversations;
        state.current = {
          synced: syncedOf(latest.current.conversations, stored ?? []),
          written: latest.current,
        };
      },
    };
  }, []);
  useEffect(() => {
    const onStorage = ({ key }: StorageEvent) => {
      if (key === storageKey()) shared.merge();
    };
    window.addEventListener("storage", onStorage);
    return () => window.removeEventListener("storage", onStorage);
  }, []);
  return shared;
}

/** Read when the page has come alive, written whenever no answer runs. */
export function useStored(page: PlaygroundData, isRunning: boolean) {
  const [stored, setStored] = useState<Stored>(() => start(page));
  const data = useCompleteData(page, stored.settings.group);
  /** False until local storage was read: the server's render cannot know it. */
  const [isLoaded, setLoaded] = useState(false);
  const latest = useRef(stored);
  latest.current = stored;

  useEffect(() => {
    const fresh = start(page);
    const found = readStored(fresh.settings);
    const next = found ? { ...found, settings: usable(found.settings, page) } : fresh;
    latest.current = next;
    setStored(next);
    shared.read(next, found);
    setLoaded(true);
  }, [page]);
  useEffect(() => {
    if (data !== page) setStored((before) => ({ ...before, settings: usable(before.settings, data) }));
  }, [page, data]);

  const shared = useSharedTalks(latest, setStored);
  useEffect(() => {
    if (isLoaded && !isRunning) shared.save();
  }, [isLoaded, isRunning, stored]);
  useEffect(() => {
    if (!isRunning) return undefined;
    const save = () => shared.save();
    window.addEventListener("pagehide", save);
    return () => {
      window.removeEventListener("pagehide", save);
    };
  }, [isRunning]);
  return { stored, setStored, latest, data, isLoaded };
}
