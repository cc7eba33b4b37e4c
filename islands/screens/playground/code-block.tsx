// A block of code: its language, a button that copies it, its colours as soon as they are there.
import type { ReactNode } from "react";
import { useMemo, useRef } from "react";
import { useT } from "../../lib/i18n.ts";
import { useSeen } from "../../lib/use-seen.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { useLoaded } from "./use-loaded.ts";

/** Longer code stays without colours. */
const MOST_COLOURED = 60_000;

export interface CodeBlockProps {
  text: string;
  /** As written behind the fence: "py". */
  language: string;
  /** Still growing: colours would have to be found anew with every piece. */
  isOpen: boolean;
}

export function CodeBlock({ text, language, isOpen }: CodeBlockProps) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(box);
  const wantsColours = isSeen && language !== "" && !isOpen && text.length <= MOST_COLOURED;
  const highlighter = useLoaded(wantsColours, () => import("./highlight.tsx"));
  const coloured = useMemo<ReactNode>(
    () => (wantsColours && highlighter ? highlighter.highlight(language, text) : undefined),
    [wantsColours, highlighter, language, text],
  );
  return (
    <div ref={box} className="min-w-0 overflow-hidden rounded-box border border-base-300">
      <div className="flex min-h-7 items-center justify-between gap-2 bg-base-200 pr-1 pl-3 text-xs text-muted">
        <span className="truncate">{language}</span>
        <CopyButton text={text} label={t("playground.copyCode")} />
      </div>
      <pre className="overflow-x-auto p-3 text-[13px] leading-5" tabIndex={0}>
        <code>{coloured ?? text}</code>
      </pre>
    </div>
  );
}
