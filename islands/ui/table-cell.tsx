// Cells of a table: the plain one, and the one that becomes an input in place.
// Refuses to lose an edit silently: a refused value rolls back and its text stands at the cell.
import { useEffect, useRef, useState } from "react";
import type { KeyboardEvent, ReactNode } from "react";
import { failureMessage } from "../lib/api.ts";
import { useT } from "../lib/i18n.ts";
import type { QuickEdit } from "./table-columns.ts";

interface EditableProps<Row> {
  row: Row;
  title: string;
  edit: QuickEdit<Row>;
  children: ReactNode;
}

export function EditableCell<Row>({ row, title, edit, children }: EditableProps<Row>) {
  const t = useT();
  const [draft, setDraft] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const input = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const isOpen = draft !== undefined;
  useEffect(() => {
    if (isOpen) input.current?.select();
  }, [isOpen]);

  const close = () => {
    setDraft(undefined);
    setTimeout(() => button.current?.focus());
  };
  const save = async (text: string) => {
    const before = String(edit.value(row));
    setFailure(undefined);
    close();
    if (text === before) return;
    try {
      await edit.save(row, text);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing) return;
    event.stopPropagation();
    if (event.key === "Enter") {
      event.preventDefault();
      void save(event.currentTarget.value);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  };

  if (isOpen) {
    return (
      <input
        ref={input}
        type={edit.kind}
        className="cell-input"
        aria-label={t("table.edit", { column: title })}
        min={edit.min}
        max={edit.max}
        value={draft}
        onClick={(event) => event.stopPropagation()}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={onKeyDown}
        onBlur={(event) => void save(event.target.value)}
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
          setDraft(String(edit.value(row)));
        }}
      >
        {children}
      </button>
      {failure ? (
        <span role="alert" className="field-error block">
          {failure}
        </span>
      ) : null}
    </>
  );
}
