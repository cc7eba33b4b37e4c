// A titled part of a page that stands open; on phones it is one line until somebody opens it.
// Refuses to ask a script for the width: both forms are in the page, and the style chooses.
import { ChevronDown } from "lucide-react";
import { useState } from "react";
import type { ReactNode } from "react";

export interface PhoneFoldProps {
  /** Of the heading. */
  id: string;
  title: string;
  children: ReactNode;
}

export function PhoneFold({ id, title, children }: PhoneFoldProps) {
  const [isOpen, setOpen] = useState(false);
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
          {title}
          <ChevronDown aria-hidden size={16} className={isOpen ? "rotate-180 text-muted" : "text-muted"} />
        </button>
      </h2>
      <div className={isOpen ? "max-sm:pb-3" : "max-sm:hidden"}>{children}</div>
    </>
  );
}
