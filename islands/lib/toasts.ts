// The store of toasts (keyed, with undo) and of what screen readers announce; `ui/feedback.tsx` shows it.
// Refuses to let failures vanish: they stay until closed, with their code and a way to copy the details.
import { signal } from "@preact/signals-react";
import { ApiFailure, failureMessage, isAbort } from "./api.ts";
import { t as translate } from "./i18n.ts";

export type Tone = "success" | "info" | "warning" | "error";

export interface Toast {
  /** The same key replaces the older toast. */
  key: string;
  tone: Tone;
  text: string;
  code?: string;
  requestId?: string;
  undo?: () => void | Promise<void>;
  /** Stays until it is closed or replaced, as failures do: what came of long work. */
  stays?: boolean;
}

const MOST = 3;

/** For the component that shows them. */
export const shown = signal<readonly Toast[]>([]);
export const spoken = signal("");
/** Dialogs that make the rest of the page inert, the topmost last: what is told while one is open stands inside it. */
export const layers = signal<readonly Element[]>([]);

/** A modal dialog has opened; the answer is called when it goes. */
export function openLayer(dialog: Element): () => void {
  layers.value = [...layers.peek(), dialog];
  return () => {
    layers.value = layers.peek().filter((each) => each !== dialog);
  };
}

export function toast(entry: Omit<Toast, "key" | "tone"> & { key?: string; tone?: Tone }): void {
  const full: Toast = { ...entry, key: entry.key ?? entry.text, tone: entry.tone ?? "success" };
  shown.value = [...shown.peek().filter(({ key }) => key !== full.key), full].slice(-MOST);
}

/** Shows what went wrong; calls given up on purpose show nothing. */
export function toastFailure(error: unknown, key?: string): void {
  if (isAbort(error)) return;
  const text = failureMessage(error);
  const failure = error instanceof ApiFailure ? error : undefined;
  if (!failure) console.error(error);
  toast({
    key: key ?? `failure ${failure?.code ?? text}`,
    tone: "error",
    text,
    ...(failure ? { code: failure.code } : {}),
    ...(failure?.requestId ? { requestId: failure.requestId } : {}),
  });
}

export function dismissToast(key: string): void {
  shown.value = shown.peek().filter((each) => each.key !== key);
}

export function clearToasts(): void {
  shown.value = [];
  spoken.value = "";
}

/** Says a text of the dictionary to screen readers only. */
export function announce(key: string, params?: Record<string, string | number>): void {
  spoken.value = "";
  // A new text node is needed for the same words to be read twice.
  queueMicrotask(() => {
    spoken.value = translate(key, params);
  });
}
