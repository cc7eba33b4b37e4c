// Registry of keyboard shortcuts: single keys, sequences ("g d") and chords ("mod+k"), one listener for all.
// Refuses to fire while somebody types, composes, or has a dialog open (chords excepted).
import { useEffect, useRef } from "react";
import { OWN_KEYS, readItem } from "./storage.ts";

export interface Shortcut {
  /** "c", "g d", "mod+k", "[", "shift+x". `mod` is Ctrl, or Cmd on Apple. */
  keys: string;
  /** Key of the dictionary, for the sheet of all shortcuts. */
  label: string;
  run: (event: KeyboardEvent) => void;
  /** Also fires while a dialog is open or a field has the focus (chords only). */
  everywhere?: boolean;
}

const SEQUENCE_MS = 1000;
const registered = new Set<Shortcut>();
let prefix = "";
let prefixAtMs = 0;

/** Latest registration of a key wins, so that a screen may take over a key of the frame. */
export function registerShortcut(shortcut: Shortcut): () => void {
  registered.add(shortcut);
  return () => {
    registered.delete(shortcut);
  };
}

/** What the sheet shows: each key once, in the order of registration. */
export function shortcuts(): Shortcut[] {
  const byKeys = new Map<string, Shortcut>();
  for (const shortcut of registered) byKeys.set(shortcut.keys, shortcut);
  return [...byKeys.values()];
}

/** Registers while the component is mounted; `run` may change with every render. */
export function useShortcut(shortcut: Shortcut | undefined): void {
  const latest = useRef(shortcut);
  latest.current = shortcut;
  const { keys, label, everywhere } = shortcut ?? {};
  useEffect(() => {
    if (keys === undefined || label === undefined) return undefined;
    return registerShortcut({
      keys,
      label,
      ...(everywhere ? { everywhere } : {}),
      run: (event) => latest.current?.run(event),
    });
  }, [keys, label, everywhere]);
}

function nameOf(event: KeyboardEvent): string {
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const chord = (event.metaKey || event.ctrlKey ? "mod+" : "") + (event.altKey ? "alt+" : "");
  // Shift is part of the character for signs ("?"), a modifier for letters.
  const shift = event.shiftKey && (event.key.length > 1 || /[a-z]/.test(name)) ? "shift+" : "";
  return chord + shift + name;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement)
    return !["checkbox", "radio", "button", "submit"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

function dialogIsOpen(): boolean {
  return document.querySelector("dialog[open]:not([data-beside])") !== null;
}

function handleKey(event: KeyboardEvent, nowMs = performance.now()): void {
  if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
  const name = nameOf(event);
  const isChord = name.startsWith("mod+") || name.startsWith("alt+");
  const busy = isTyping(event.target) || dialogIsOpen();
  if (!isChord && (busy || readItem(OWN_KEYS.shortcuts) === "off")) return;
  const sequence = prefix !== "" && nowMs - prefixAtMs < SEQUENCE_MS ? `${prefix} ${name}` : name;
  prefix = "";
  let found: Shortcut | undefined;
  for (const shortcut of registered) {
    if (shortcut.keys === sequence && (!busy || shortcut.everywhere)) found = shortcut;
  }
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if ([...registered].some(({ keys }) => keys.startsWith(`${name} `))) {
    prefix = name;
    prefixAtMs = nowMs;
  }
}

export function listenForKeys(): () => void {
  const onKey = (event: KeyboardEvent) => handleKey(event);
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

/** Keys as people read them: "Ctrl K", "⌘ K", "g d". */
export function keysText(keys: string): string {
  const apple = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);
  return keys
    .replace("mod+", apple ? "⌘ " : "Ctrl ")
    .replace("alt+", apple ? "⌥ " : "Alt ")
    .replace("shift+", apple ? "⇧ " : "Shift ")
    .replace(/ ([a-z])$/, (match, letter: string) =>
      keys.includes("+") ? ` ${letter.toUpperCase()}` : match,
    );
}
