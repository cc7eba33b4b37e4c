// Shows the option that the address names after "#": scrolled to, marked for a moment, its control focused.
import type { Settings } from "./state.ts";

const MARKED_MS = 2500;
const CONTROLS = "input, select, textarea, button";

/** An option whose group is drawn by a panel has no line of its own: the card stands for it. */
function placeOf(settings: Settings, key: string): HTMLElement | null {
  const group = settings.rows.peek().get(key)?.group;
  return (
    document.getElementById(key) ?? (group === undefined ? null : document.getElementById(`group-${group}`))
  );
}

function reveal(settings: Settings): void {
  let key = "";
  try {
    key = decodeURIComponent(location.hash.slice(1));
  } catch {
    // No option is called like this.
  }
  const place = settings.rows.peek().has(key) ? placeOf(settings, key) : null;
  if (!place) return;
  place.scrollIntoView?.({ block: "center" });
  const control = place.querySelector<HTMLElement>(CONTROLS);
  if (!control) place.tabIndex = -1;
  (control ?? place).focus({ preventScroll: true });
  place.dataset.marked = "";
  setTimeout(() => delete place.dataset.marked, MARKED_MS);
}

/** Now and whenever the address names another one; returns its end. */
export function followMark(settings: Settings): () => void {
  const show = () => reveal(settings);
  show();
  window.addEventListener("hashchange", show);
  return () => window.removeEventListener("hashchange", show);
}
