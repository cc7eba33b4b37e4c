// A dialog in the middle of the page, for a form of a few lines: focus is trapped, and given back to where it came from.
import { useEffect, useId, useRef } from "react";
import type { ReactNode } from "react";
import { giveFocusBack } from "../lib/focus.ts";
import { openLayer } from "../lib/toasts.ts";

export interface ModalProps {
  title: string;
  onClose: () => void;
  /** What Escape and a press beside the dialog would lose is too much to lose. */
  isHeld?: boolean;
  children: ReactNode;
}

/** Mount it while it is open. `data-autofocus` says where to begin. */
export function Modal({ title, onClose, isHeld = false, children }: ModalProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    const box = dialog.current;
    box?.showModal();
    const leaveLayer = box ? openLayer(box) : undefined;
    box?.querySelector<HTMLElement>("[data-autofocus], [autofocus], input:not([hidden])")?.focus();
    return () => {
      leaveLayer?.();
      box?.close();
      giveFocusBack(opener);
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className="modal"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!isHeld) onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current && !isHeld) onClose();
      }}
    >
      <div className="modal-box max-w-110 p-5">
        <h2 id={id} className="mb-2">
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  );
}
