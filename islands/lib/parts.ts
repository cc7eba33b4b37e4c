// Parts of a server-rendered page that a form or link names (`data-get="list pages"`): fetched from where it leads and put in
// place of what they hold (`data-part="list"`), with the address kept. Refuses to be needed: without it they navigate.
import { startChecked } from "./checked.ts";

/** A pause in typing; shorter ones would ask for every letter. */
const TYPING_MS = 250;

let loading: AbortController | undefined;
let pause: ReturnType<typeof setTimeout> | undefined;

const partNamed = (root: ParentNode, name: string) =>
  root.querySelector<HTMLElement>(`[data-part="${CSS.escape(name)}"]`);

/**
 * Fills the parts from a fresh render of an address. They keep their elements, so that what a live region now says is read
 * out. False: another address was asked for meanwhile. An answer that is no such page is opened instead.
 */
async function fill(url: string, names: readonly string[]): Promise<boolean> {
  loading?.abort();
  const mine = new AbortController();
  loading = mine;
  const parts = names.map((name) => partNamed(document, name));
  for (const part of parts) part?.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { headers: { accept: "text/html" }, signal: mine.signal });
    // Parsed, not inserted as text: scripts of the answer never run.
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = names.map((name) => partNamed(next, name));
    if (!answer.ok || answer.redirected || fresh.includes(null) || parts.includes(null))
      throw new Error(String(answer.status));
    if (mine.signal.aborted) return false;
    parts.forEach((part, at) => {
      part?.replaceChildren(...(fresh[at]?.childNodes ?? []));
      part?.removeAttribute("aria-busy");
    });
    document.title = next.title;
    return true;
  } catch {
    if (mine.signal.aborted) return false;
    location.assign(url);
    return false;
  }
}

/** Where a form leads: fields that are empty or not its own are no part of the address. */
function addressOf(form: HTMLFormElement): string {
  const url = new URL(form.action);
  url.search = "";
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string" && value !== "") url.searchParams.append(name, value);
  }
  return url.href;
}

/** Typing on goes on in one entry of the history: Back leads to before the search, not to half a word. */
async function go(url: string, names: readonly string[], isTyping = false): Promise<boolean> {
  clearTimeout(pause);
  if (!(await fill(url, names))) return false;
  const isSame =
    url === location.href || (isTyping && (history.state as { isTyping?: boolean } | null)?.isTyping);
  history[isSame ? "replaceState" : "pushState"]({ isTyping }, "", url);
  return true;
}

const namesOf = (element: HTMLElement): string[] => (element.dataset.get ?? "").split(" ");

/** What was pressed may be gone with its part: its successor gets the focus, else the part, whose beginning is shown. */
function focusAfter(id: string, name: string | undefined): void {
  if (document.activeElement !== document.body) return;
  const part = partNamed(document, name ?? "");
  const target = (id === "" ? null : document.getElementById(id)) ?? part;
  target?.focus({ preventScroll: true });
  if (part && part.getBoundingClientRect().top < 0) part.scrollIntoView();
}

function onClick(event: MouseEvent): void {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  const link =
    event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[data-get]") : null;
  if (!link) return;
  event.preventDefault();
  const names = namesOf(link);
  void go(link.href, names).then((isThere) => isThere && focusAfter(link.id, names.at(-1)));
}

const formOf = (event: Event) =>
  event.target instanceof Element ? event.target.closest<HTMLFormElement>("form[data-get]") : null;

function onSubmit(event: SubmitEvent): void {
  const form = formOf(event);
  if (!form) return;
  event.preventDefault();
  void go(addressOf(form), namesOf(form));
}

/** Choices take effect at once, texts after a pause; half a syllable of an input method is no search. */
function onInput(event: Event): void {
  const form = formOf(event);
  if (!form || (event instanceof InputEvent && event.isComposing)) return;
  // What has no name is no part of the address.
  if (!(event.target as Element).getAttribute("name")) return;
  const isText = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  clearTimeout(pause);
  const names = namesOf(form);
  if (isText) pause = setTimeout(() => void go(addressOf(form), names, true), TYPING_MS);
  else void go(addressOf(form), names);
}

/** Every part that stands in no other one: what Back leads to may differ in all of them. */
function onBack(): void {
  const outer = [...document.querySelectorAll<HTMLElement>("[data-part]")].filter(
    (part) => !part.parentElement?.closest("[data-part]"),
  );
  void fill(
    location.href,
    outer.map((part) => part.dataset.part ?? ""),
  );
}

export function startParts(): void {
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  document.addEventListener("input", onInput);
  // Browsers differ in whether a last input event follows it.
  document.addEventListener("compositionend", onInput);
  addEventListener("popstate", onBack);
  startChecked();
}
