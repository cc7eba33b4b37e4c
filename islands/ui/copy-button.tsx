// Copies a text and says so for a moment; when the clipboard refuses, a dialog offers the text for copying by hand.
// Refuses to copy silently: success is announced.
import { Check, Copy } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useT } from "../lib/i18n.ts";
import { showQuestion } from "./confirm.tsx";
import { announce } from "../lib/toasts.ts";

const TICK_MS = 1500;

/** Writes to the clipboard; on refusal opens the manual-copy dialog and answers false. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    announce("common.copied");
    return true;
  } catch {
    await showQuestion({ kind: "copy", text });
    return false;
  }
}

export interface CopyButtonProps {
  text: string | (() => string | Promise<string>);
  /** What is copied, for the accessible name: "Copy key". */
  label: string;
  withText?: boolean;
  className?: string;
}

/** A button has one look: two of them on top of each other hide its text. */
function hasLook(className: string): boolean {
  return /\bbtn-(?!sm)/.test(className);
}

export function CopyButton({ text, label, withText = false, className = "" }: CopyButtonProps) {
  const t = useT();
  const [isCopied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const done = await copyText(typeof text === "function" ? await text() : text);
    if (!done) return;
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), TICK_MS);
  };
  const Icon = isCopied ? Check : Copy;
  return (
    <button
      type="button"
      className={`${withText ? `btn btn-sm${hasLook(className) ? "" : " btn-default"}` : "btn btn-ghost btn-square btn-xs"} ${className}`}
      aria-label={withText ? undefined : label}
      title={withText ? undefined : label}
      onClick={(event) => {
        event.stopPropagation();
        void copy();
      }}
    >
      <Icon aria-hidden className={isCopied ? "text-success" : undefined} size={14} />
      {withText ? (isCopied ? t("common.copied") : label) : null}
    </button>
  );
}
