// Parts of a screen that the first paint does not need (editors, dialogs): own chunk, fetched when the page is idle.
// Refuses to take part in the server render: it appears after hydration, when it is opened.
import { useEffect, useState, useSyncExternalStore } from "react";
import type { ComponentType } from "react";
import { loadAllTexts } from "./all-texts.ts";
import { whenIdle } from "./when-idle.ts";

const never = () => () => undefined;

/** Parts that are open and not there yet. */
const awaited = new Set<Promise<unknown>>();

/** Resolves when every part that is open now has been fetched, or could not be; says whether there was one. */
export async function openPartsFetched(): Promise<boolean> {
  return (await Promise.allSettled(awaited)).length > 0;
}

/** False on the server and while a server-rendered page comes to life, true from then on. */
export function useIsAlive(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  );
}

/**
 * `const Editor = lazyPart(() => import("./token/drawer.tsx"))`; the module's default export is the component. Render it
 * only while it is open. Once fetched it opens in the same frame as what was pressed, so that focus moves as if it had
 * always been there. A failed fetch is thrown to the crash box around the screen, whose Retry asks again. A `Meanwhile`
 * stands in its place until it is there, and stays when it cannot be had.
 */
export function lazyPart<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  Meanwhile?: ComponentType<Props>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  const get = async () => {
    const [module] = await Promise.all([load(), loadAllTexts()]);
    return (loaded = module.default);
  };
  // A failed early fetch is no failure: opening the part asks again and says so.
  const fetchEarly = () => void get().catch(() => undefined);
  whenIdle(fetchEarly);
  return function LazyPart(props: Props) {
    const isAlive = useIsAlive();
    const [Part, setPart] = useState(() => loaded);
    const [failure, setFailure] = useState<{ error: unknown }>();
    useEffect(() => {
      if (Part) return undefined;
      let isGone = false;
      const fetching = get().then(
        (part) => isGone || setPart(() => part),
        (error: unknown) => isGone || setFailure({ error }),
      );
      awaited.add(fetching);
      void fetching.finally(() => awaited.delete(fetching));
      return () => {
        isGone = true;
        awaited.delete(fetching);
      };
    }, [Part]);
    if (failure && !Meanwhile) throw failure.error;
    const Shown = isAlive && Part ? Part : Meanwhile;
    return Shown ? <Shown {...props} /> : null;
  };
}
