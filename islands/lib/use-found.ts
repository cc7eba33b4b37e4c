// Rows that the palette's question finds on the server: asked once typing pauses, given up when the question changes.
// Refuses to show what an older question found, unless it fits the new one as well.
import { useEffect, useRef, useState } from "react";
import { user } from "./boot.ts";
import { findRows, isWorthAsking, matchCommands } from "./command-search.ts";
import type { Found } from "./command-search.ts";
import type { Command } from "./commands.ts";

/** Of no typing before the server is asked. */
const PAUSE_MS = 150;
const NOTHING: Found & { text: string } = { text: "", commands: [], isCut: false };

export interface FoundRows {
  commands: readonly Command[];
  isSearching: boolean;
  isCut: boolean;
}

/** `question` as it is typed; undefined while an input method composes. */
export function useFound(question: string | undefined): FoundRows {
  const [found, setFound] = useState(NOTHING);
  const asked = useRef(new Map<string, Promise<unknown>>());
  const text = question?.trim();
  const isAsked = text !== undefined && isWorthAsking(text);
  useEffect(() => {
    if (!isAsked) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const once = <T>(what: string, load: () => Promise<T>): Promise<T> => {
      const known = asked.current.get(what) as Promise<T> | undefined;
      if (known) return known;
      const running = load();
      asked.current.set(what, running);
      running.catch(() => asked.current.delete(what));
      return running;
    };
    const ask = () => {
      const role = user.peek()?.role ?? 0;
      findRows({ text, role, signal, once }).then(
        (rows) => setFound({ ...rows, text }),
        // Given up for a newer question.
        () => undefined,
      );
    };
    const timer = setTimeout(ask, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, isAsked]);
  if (!isAsked) return { commands: [], isSearching: false, isCut: false };
  if (found.text === text) return { ...found, isSearching: false };
  return { commands: matchCommands(found.commands, text), isSearching: true, isCut: false };
}
