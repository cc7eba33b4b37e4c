// Pages of the console without a screen (not found, forbidden): the palette and the shortcuts come with the first use.
// Refuses to lose what woke it: the key or the press is repeated once somebody listens.
import type { Boot, ThemeMode } from "./boot.ts";
import { LANGUAGE_EVENT, PALETTE_EVENT, THEME_EVENT } from "./shell.ts";

/** Ctrl or Cmd K, and single characters outside of fields: what a shortcut may begin with. */
function isShortcut(event: KeyboardEvent): boolean {
  if (event.isComposing || event.altKey) return false;
  if (event.ctrlKey || event.metaKey) return event.key.toLowerCase() === "k";
  const isField = event.target instanceof Element && event.target.matches("input, textarea, select");
  return event.key.length === 1 && event.key !== " " && !isField;
}

function again(event: Event): Event {
  if (!(event instanceof KeyboardEvent)) return new Event(event.type);
  const { key, ctrlKey, metaKey, shiftKey } = event;
  return new KeyboardEvent(event.type, { key, ctrlKey, metaKey, shiftKey, bubbles: true, cancelable: true });
}

/** `load`: fetches the script that brings islands to life; it reads the boot data as they stand then. */
export function startLateIsland(load: (url: string) => Promise<unknown>): void {
  const island = document.querySelector<HTMLElement>("#island[data-late]");
  const boot = document.getElementById("boot");
  if (!island || !boot) return;
  const waiting: Event[] = [];
  let loading: Promise<unknown> | undefined;
  const listening = new AbortController();
  const { signal } = listening;

  const alive = new MutationObserver(() => {
    alive.disconnect();
    listening.abort();
    for (const event of waiting) document.dispatchEvent(again(event));
  });
  alive.observe(island, { attributeFilter: ["data-mounted"] });
  const wake = (event: Event) => {
    if (event instanceof KeyboardEvent) {
      if (!isShortcut(event)) return;
      event.preventDefault();
    }
    waiting.push(event);
    loading ??= load(island.dataset.late ?? "").catch((error: unknown) => {
      // The next use asks again.
      loading = undefined;
      waiting.length = 0;
      console.error(error);
    });
  };
  document.addEventListener("keydown", wake, { signal });
  document.addEventListener(PALETTE_EVENT, wake, { signal });

  const keep = (part: Partial<Boot>) => {
    boot.textContent = JSON.stringify({ ...(JSON.parse(boot.textContent ?? "{}") as object), ...part });
  };
  document.addEventListener(LANGUAGE_EVENT, (event) => keep((event as CustomEvent<Boot>).detail), { signal });
  document.addEventListener(
    THEME_EVENT,
    (event) => keep({ theme: (event as CustomEvent<ThemeMode>).detail }),
    { signal },
  );
}
