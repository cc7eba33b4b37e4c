// A titled part of a page that stands open; on phones it is one line until somebody opens it.
// Refuses to ask a script for the width: both forms are in the page, and the style chooses.
import { ChevronDown, ChevronUp } from "lucide-react";
import { useState } from "react";
import type { ReactNode } from "react";

export interface PhoneFoldProps {
  /** Of the heading. */
  id: string;
  title: string;
  /** What its line says on phones, where a button inside is named like the title. */
  foldTitle?: string;
  /** Open at first on phones too. */
  startsOpen?: boolean;
  children: ReactNode;
}

export function PhoneFold({ id, title, foldTitle = title, startsOpen = false, children }: PhoneFoldProps) {
  const [isOpen, setOpen] = useState(startsOpen);
  const Icon = isOpen ? ChevronUp : ChevronDown;
  return (
    <>
      <h2 id={id}>
        <span className="max-sm:hidden">{title}</span>
        <button
          type="button"
          className="flex min-h-11 w-full cursor-pointer items-center justify-between sm:hidden"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {foldTitle}
          <Icon aria-hidden size={16} className="text-muted" />
        </button>
      </h2>
      <div className={isOpen ? "max-sm:pb-3" : "max-sm:hidden"}>{children}</div>
    </>
  );
}
