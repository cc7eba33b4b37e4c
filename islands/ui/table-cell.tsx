// A cell that becomes an input in place.
// Refuses to lose an edit silently: a refused value rolls back and its text stands at the cell.
import { useEffect, useRef, useState } from "react";
import type { FocusEvent, KeyboardEvent, MouseEvent } from "react";
import { failureMessage } from "../lib/api.ts";
import { useT } from "../lib/i18n.ts";
import type { Column, EditableCellProps, QuickEdit } from "./table-columns.ts";

/** For `edit` of a column. */
export function editable<Row>(edit: QuickEdit<Row>): Column<Row>["edit"] {
  return { ...edit, Cell: EditableCell };
}

function EditableCell<Row>({ row, title, edit, children }: EditableCellProps<Row>) {
  const t = useT();
  const [draft, setDraft] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const input = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const isOpen = draft !== undefined;
  // Browsers may send a blur for an input that is taken away: what was saved or reverted is not saved again.
  const isDone = useRef(false);
  useEffect(() => {
    if (!isOpen) return;
    isDone.current = false;
    input.current?.focus();
    input.current?.select?.();
  }, [isOpen]);

  const open = () => {
    setFailure(undefined);
    setDraft(String(edit.value(row)));
  };
  const close = (keepsFocus: boolean) => {
    isDone.current = true;
    setDraft(undefined);
    if (keepsFocus) setTimeout(() => button.current?.focus());
  };
  const save = async (text: string, keepsFocus: boolean) => {
    if (isDone.current) return;
    const before = String(edit.value(row));
    const isNothing = text === before || (edit.kind === "number" && text.trim() === "");
    const wrong = isNothing ? undefined : edit.check?.(text);
    close(keepsFocus);
    setFailure(wrong);
    if (isNothing || wrong !== undefined) return;
    try {
      await edit.save(row, text);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement | HTMLSelectElement>) => {
    if (event.nativeEvent.isComposing) return;
    event.stopPropagation();
    if (event.key === "Enter") {
      event.preventDefault();
      void save(event.currentTarget.value, true);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close(true);
    }
  };

  if (isOpen) {
    const shared = {
      ref: input,
      className: "cell-input",
      "aria-label": t("table.edit", { column: title }),
      value: draft,
      onClick: (event: MouseEvent) => event.stopPropagation(),
      onKeyDown,
      onBlur: (event: FocusEvent<HTMLInputElement | HTMLSelectElement>) =>
        void save(event.target.value, false),
    } as const;
    if (edit.kind === "select") {
      return (
        <select {...shared} onChange={(event) => setDraft(event.target.value)}>
          {(edit.choices ?? []).map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.label}
            </option>
          ))}
        </select>
      );
    }
    return (
      <input
        {...shared}
        type={edit.kind}
        min={edit.min}
        max={edit.max}
        onChange={(event) => setDraft(event.target.value)}
      />
    );
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        className="cell-edit"
        data-quick-edit=""
        title={t("table.edit", { column: title })}
        onClick={(event) => {
          event.stopPropagation();
          open();
        }}
      >
        {children}
      </button>
      {failure ? (
        <span role="alert" className="mt-1 block w-max max-w-[26ch] text-xs whitespace-normal text-error">
          {failure}
        </span>
      ) : null}
    </>
  );
}
