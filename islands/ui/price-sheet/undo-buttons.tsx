// The way back and forth on the price desk: each button says what it takes back or does again.
import { Redo2, Undo2 } from "lucide-react";
import { useSignals } from "@preact/signals-react/runtime";
import { useT } from "../../lib/i18n.ts";
import { keysText, useShortcut } from "../../lib/keys.ts";
import { announce } from "../../lib/toasts.ts";
import type { Desk } from "./desk.ts";

export function UndoButtons({ desk }: { desk: Desk }) {
  const t = useT();
  useSignals();
  const back = desk.undoable.value;
  const forth = desk.redoable.value;
  const { undo, redo } = stepsOf(desk);
  useShortcut({ keys: "mod+z", label: "desk.undo", run: undo });
  useShortcut({ keys: "mod+shift+z", label: "desk.redo", run: redo });
  const buttons = [
    { name: "undo", step: back, run: undo, Icon: Undo2, keys: "mod+z" },
    { name: "redo", step: forth, run: redo, Icon: Redo2, keys: "mod+shift+z" },
  ] as const;
  return (
    <span className="join">
      {buttons.map(({ name, step, run, Icon, keys }) => {
        const label = step === undefined ? t(`desk.${name}`) : t(`desk.${name}Step`, { step });
        return (
          <button
            key={name}
            type="button"
            className="btn btn-default btn-sm btn-square join-item pointer-coarse:size-11"
            aria-label={label}
            title={`${label} (${keysText(keys)})`}
            // Stays where the focus is: a disabled button would lose it with the last step.
            aria-disabled={step === undefined}
            onClick={run}
          >
            <Icon aria-hidden className={step === undefined ? "opacity-40" : undefined} />
          </button>
        );
      })}
    </span>
  );
}

/** Undo and redo that tell what they did. */
export function stepsOf(desk: Desk): { undo: () => void; redo: () => void } {
  return {
    undo() {
      const step = desk.undoable.peek();
      if (step === undefined) return;
      desk.undo();
      announce("desk.undone", { step });
    },
    redo() {
      const step = desk.redoable.peek();
      if (step === undefined) return;
      desk.redo();
      announce("desk.redone", { step });
    },
  };
}
