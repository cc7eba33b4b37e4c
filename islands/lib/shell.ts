// What the frame around an island can do without React: theme, language, sidebar, dialogs, copy buttons, sign-out.
// Refuses to reload for a change of language: the frame is fetched anew and swapped, the island only renders again.
import type { Language } from "../../src/shared/enums.ts";
import { type Boot, type ThemeMode, readBoot } from "./boot.ts";
import { replaceParts } from "./fresh-parts.ts";
import { KEYS, removeItem, writeCookie, writeItem } from "./storage.ts";

/** Sent on document after the language changed; detail is the new page's boot data. */
export const LANGUAGE_EVENT = "weir:language";
/** Sent on document after the theme changed; detail is the mode. */
export const THEME_EVENT = "weir:theme";
/** Opens the command palette. */
export const PALETTE_EVENT = "weir:palette";

const THEME_NAMES: Record<ThemeMode, string> = { light: "paper", dark: "ink", system: "" };

export function setTheme(mode: ThemeMode): void {
  const html = document.documentElement;
  if (THEME_NAMES[mode]) html.dataset.theme = THEME_NAMES[mode];
  else delete html.dataset.theme;
  if (mode === "system") removeItem(KEYS.theme);
  else writeItem(KEYS.theme, mode);
  writeCookie(KEYS.theme, mode);
  markChoice("data-set-theme", mode);
  document.dispatchEvent(new CustomEvent(THEME_EVENT, { detail: mode }));
}

/** Keeps what the person has in front of them; falls back to a reload when the new frame cannot be had. */
export async function setLanguage(to: Language): Promise<void> {
  writeItem(KEYS.language, to);
  writeCookie(KEYS.language, to);
  try {
    const boot = readBoot(await replaceParts());
    if (boot) document.dispatchEvent(new CustomEvent<Boot>(LANGUAGE_EVENT, { detail: boot }));
  } catch {
    location.reload();
  }
}

function toggleSidebar(): void {
  const html = document.documentElement;
  const collapsed = html.dataset.sidebar !== "collapsed";
  if (collapsed) html.dataset.sidebar = "collapsed";
  else delete html.dataset.sidebar;
  writeItem(KEYS.sidebar, String(collapsed));
  writeCookie(KEYS.sidebar, String(collapsed));
  for (const button of document.querySelectorAll("[data-toggle-sidebar]")) {
    button.setAttribute("aria-expanded", String(!collapsed));
  }
}

function markChoice(attribute: string, value: string): void {
  for (const item of document.querySelectorAll(`[${attribute}]`)) {
    item.setAttribute("aria-checked", String(item.getAttribute(attribute) === value));
  }
}

/** Ends the session here and on the server. */
export async function signOut(): Promise<void> {
  await fetch("/api/user/logout").catch(() => undefined);
  removeItem(KEYS.user);
  location.assign("/login");
}

async function copyFrom(button: HTMLElement): Promise<void> {
  const source = button.dataset.copy ?? "";
  const text = source.startsWith("#") ? (document.querySelector(source)?.textContent ?? "") : source;
  try {
    await navigator.clipboard.writeText(text);
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1500);
  } catch {
    const range = document.createRange();
    const node = source.startsWith("#") ? document.querySelector(source) : button;
    if (node) range.selectNodeContents(node);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
  }
}

function onClick(event: MouseEvent): void {
  const target =
    event.target instanceof Element ? event.target.closest<HTMLElement>("button, [data-copy]") : null;
  if (!target) return;
  const { dataset } = target;
  const { setTheme: themeMode, setLanguage: to, dialog, copy } = dataset;
  if (themeMode) {
    setTheme(themeMode as ThemeMode);
    closePopover(target);
  } else if (to) {
    closePopover(target);
    void setLanguage(to as Language);
  } else if (dialog) {
    const found = document.getElementById(dialog);
    if (found instanceof HTMLDialogElement) found.showModal();
  } else if (copy !== undefined) void copyFrom(target);
  else if ("toggleSidebar" in dataset) toggleSidebar();
  else if ("palette" in dataset) document.dispatchEvent(new Event(PALETTE_EVENT));
  else if ("signOut" in dataset) void signOut();
  else if ("print" in dataset) print();
  else if ("send" in dataset) void import("./send.ts").then(({ sendFrom }) => sendFrom(target));
  else if ("closeDialog" in dataset) target.closest("dialog")?.close();
}

function closePopover(inside: Element): void {
  inside.closest<HTMLElement>("[popover]")?.hidePopover?.();
}

/** A click on the backdrop hits the dialog itself. */
function onBackdrop(event: MouseEvent): void {
  const target = event.target;
  if (target instanceof HTMLDialogElement && target.matches(".sheet-nav")) target.close();
}

/** Up and down walk through a menu that the frame opened. */
function onMenuKey(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const menu = event.target instanceof Element ? event.target.closest("[data-menu]") : null;
  if (!menu) return;
  const items = [...menu.querySelectorAll<HTMLElement>("button")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next = at + (event.key === "ArrowDown" ? 1 : -1);
  items[(next + items.length) % items.length]?.focus();
  event.preventDefault();
}

export function startShell(): void {
  document.addEventListener("click", onClick);
  document.addEventListener("click", onBackdrop);
  document.addEventListener("keydown", onMenuKey);
  document.addEventListener(
    "toggle",
    (event) => {
      const menu = event.target;
      if (!(menu instanceof HTMLElement) || menu.dataset.menu === undefined) return;
      const isOpen = (event as ToggleEvent).newState === "open";
      document.querySelector(`[popovertarget="${menu.id}"]`)?.setAttribute("aria-expanded", String(isOpen));
      if (isOpen) menu.querySelector<HTMLElement>('[aria-checked="true"], button')?.focus();
    },
    true,
  );
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.includes(`tz=${encodeURIComponent(zone)}`)) writeCookie("tz", zone);
}
