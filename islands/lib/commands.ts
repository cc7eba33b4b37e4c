// The actions that screens register in the palette while they are shown; command-search.ts offers them. Rows of an area
// that may be found from anywhere are a line of finders/table.ts.
import { useEffect, useRef } from "react";

export interface Command {
  id: string;
  kind: "go" | "do" | "find";
  title: string;
  /** Further words to match: the other language, initials, ids. */
  words?: string;
  keys?: string;
  /** What it is, at the end of the line; its kind where absent. */
  note?: string;
  run: () => void;
}

/** In the order in which they were registered. */
export const registered = new Map<string, Command>();

/** Offers an action in the palette while the component is mounted; shown before everything else. */
export function useCommand(command: Command | undefined): void {
  const latest = useRef(command);
  latest.current = command;
  const id = command?.id;
  const title = command?.title;
  useEffect(() => {
    if (id === undefined || !latest.current) return undefined;
    const entry: Command = { ...latest.current, run: () => latest.current?.run() };
    registered.set(id, entry);
    return () => {
      registered.delete(id);
    };
  }, [id, title]);
}
