// What the sheets of groups share: the way back step by step, a group to choose, a text that is one step however it was
// typed. Refuses to take undo away from a field while somebody types in it.
import { useSignals } from "@preact/signals-react/runtime";
import { Plus, Redo2, Undo2 } from "lucide-react";
import { useId, useState } from "react";
import type { KeyboardEvent, ReactNode } from "react";
import { language, useT } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import type { Desk } from "./desk.ts";

const lists: Partial<Record<string, Intl.ListFormat>> = {};

/** Names as a list of the language: "a, b, and c". */
export function joinNames(names: readonly string[]): string {
  const to = language.value;
  return (lists[to] ??= new Intl.ListFormat(to, { type: "conjunction" })).format(names);
}

const isField = (target: EventTarget): boolean =>
  target instanceof HTMLTextAreaElement ||
  target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && target.type === "text");

/** Takes the last step back, or does it again, and says which. */
export function stepsOf(desk: Desk): { undo: () => void; redo: () => void } {
  return {
    undo: () => {
      const step = desk.undoable.peek();
      if (step === undefined) return;
      desk.undo();
      announce("desk.sheet.undone", { step });
    },
    redo: () => {
      const step = desk.redoable.peek();
      if (step === undefined) return;
      desk.redo();
      announce("desk.sheet.redone", { step });
    },
  };
}

function StepButton({ text, label, icon, onPress }: StepButtonProps) {
  return (
    <button
      type="button"
      className="btn btn-ghost btn-square btn-sm"
      aria-label={label}
      title={label}
      aria-disabled={text === undefined}
      onClick={onPress}
    >
      {icon}
    </button>
  );
}

interface StepButtonProps {
  /** What it takes back or does again. */
  text: string | undefined;
  label: string;
  icon: ReactNode;
  onPress: () => void;
}

/** A section of sheets: what it is for, the way back, and its keys (Ctrl Z, Ctrl Shift Z) outside of fields. */
export function GroupSection({
  desk,
  intro,
  tools,
  children,
}: {
  desk: Desk;
  intro: string;
  tools?: ReactNode;
  children: ReactNode;
}) {
  useSignals();
  const t = useT();
  const { undo, redo } = stepsOf(desk);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || isField(event.target) || event.altKey) return;
    if (!(event.ctrlKey || event.metaKey) || !["z", "y"].includes(event.key.toLowerCase())) return;
    event.preventDefault();
    if (event.shiftKey || event.key.toLowerCase() === "y") redo();
    else undo();
  };
  const [undoable, redoable] = [desk.undoable.value, desk.redoable.value];
  return (
    <div className="pt-4" onKeyDown={onKeyDown}>
      <div className="mb-3 flex items-start gap-3">
        <p className="max-w-[75ch] grow text-dense text-muted">{intro}</p>
        {tools}
        <div className="ml-auto flex flex-none">
          <StepButton
            text={undoable}
            label={
              undoable === undefined
                ? t("desk.sheet.nothingToUndo")
                : t("desk.sheet.undo", { step: undoable })
            }
            icon={<Undo2 aria-hidden size={16} />}
            onPress={undo}
          />
          <StepButton
            text={redoable}
            label={
              redoable === undefined
                ? t("desk.sheet.nothingToRedo")
                : t("desk.sheet.redo", { step: redoable })
            }
            icon={<Redo2 aria-hidden size={16} />}
            onPress={redo}
          />
        </div>
      </div>
      {children}
    </div>
  );
}

/** One of the groups there are, added by its button: arrows in a list alone must not add anything. */
export function GroupPicker({
  label,
  action,
  groups,
  onPick,
}: {
  label: string;
  action: string;
  groups: readonly string[];
  onPick: (group: string) => void;
}) {
  const id = useId();
  const [chosen, setChosen] = useState("");
  const group = groups.includes(chosen) ? chosen : (groups[0] ?? "");
  if (groups.length === 0) return null;
  return (
    <form
      className="flex min-w-0 items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        setChosen("");
        onPick(group);
      }}
    >
      <label htmlFor={id} className="sr-only">
        {label}
      </label>
      <select
        id={id}
        className="select w-40 min-w-0"
        value={group}
        onChange={(event) => setChosen(event.target.value)}
      >
        {groups.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
      <button type="submit" className="btn btn-default btn-sm">
        <Plus aria-hidden size={14} />
        {action}
      </button>
    </form>
  );
}

/** A text that is written when its field is left, or by Enter; Escape takes back what was typed. */
export function CommitText({
  value,
  label,
  placeholder,
  part,
  onCommit,
}: {
  value: string;
  label: string;
  placeholder?: string;
  part?: string;
  onCommit: (text: string) => void;
}) {
  const [typed, setTyped] = useState<string>();
  const commit = () => {
    const text = typed?.trim();
    setTyped(undefined);
    if (text !== undefined && text !== value) onCommit(text);
  };
  return (
    <input
      type="text"
      className="input"
      aria-label={label}
      placeholder={placeholder}
      data-part={part}
      autoComplete="off"
      value={typed ?? value}
      onChange={(event) => setTyped(event.target.value)}
      onBlur={commit}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing || event.altKey) return;
        if (event.key === "Enter") {
          event.preventDefault();
          commit();
        } else if (event.key === "Escape" && typed !== undefined) {
          event.preventDefault();
          event.stopPropagation();
          setTyped(undefined);
        }
      }}
    />
  );
}

/** What a thing was before it was changed, under it. */
export function Was({ children }: { children: ReactNode }) {
  return (
    <span className="mt-1 flex items-baseline gap-1.5 text-xs text-muted">
      <span className="status status-primary flex-none self-center" aria-hidden />
      <span className="min-w-0 wrap-anywhere">{children}</span>
    </span>
  );
}
