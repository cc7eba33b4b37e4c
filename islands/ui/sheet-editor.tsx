// The field over a sheet's current cell while it is edited.
// Refuses to close over what cannot be taken: it stays, with the reason beneath.
import { useEffect, useId, useRef } from "react";
import type { KeyboardEvent } from "react";
import { moveOf } from "./sheet-moves.ts";
import type { SheetSize } from "./sheet-moves.ts";
import type { useSheet } from "./sheet-state.ts";

export function CellEditor<Row>({
  sheet,
  size,
  isLow,
  onDone,
}: {
  sheet: ReturnType<typeof useSheet<Row>>;
  size: SheetSize;
  /** Near the lower edge of the box: the reason stands above. */
  isLow: boolean;
  /** Gives the focus back to the grid. */
  onDone: () => void;
}) {
  const id = useId();
  const field = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const isByKey = useRef(false);
  const { t, column, row, selected, editor } = sheet;
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
    // What was typed is gone on with; what stood there is ready to be replaced.
    if (field.current instanceof HTMLInputElement && !sheet.editor?.isTyped) field.current.select();
  }, []);
  if (!editor || !column || row === undefined) return null;

  const leaveBy = (key: string, isShift: boolean) => {
    if (!sheet.commit()) return;
    onDone();
    const next = moveOf({ key, isShift: false, isMod: false }, selected, { ...size, hasHeads: false });
    if (next && !isShift) sheet.select(next);
    else if (isShift) {
      const opposite = key === "ArrowDown" ? "ArrowUp" : "ArrowLeft";
      const back = moveOf({ key: opposite, isShift: false, isMod: false }, selected, {
        ...size,
        hasHeads: false,
      });
      if (back) sheet.select(back);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const { key, shiftKey: isShift } = event;
    isByKey.current = true;
    if (key === "Escape") {
      event.stopPropagation();
      sheet.cancel();
      onDone();
    } else if (key === "Enter" && (event.ctrlKey || event.metaKey)) {
      sheet.commitAll();
      onDone();
    } else if (key === "Enter") leaveBy("ArrowDown", isShift);
    else if (key === "Tab") leaveBy("ArrowRight", isShift);
    else if (editor.isTyped && !column.choices && key.startsWith("Arrow") && !isShift) leaveBy(key, false);
    else return;
    event.preventDefault();
  };
  const common = {
    ref: field,
    "data-editor": "",
    className: "sheet-input size-full",
    "aria-label": t("sheet.cell", { column: column.label, row: sheet.nameOfRow }),
    "aria-invalid": editor.problem === undefined ? undefined : true,
    "aria-describedby": editor.problem === undefined ? undefined : id,
    value: editor.text,
    onKeyDown,
    onBlur: sheet.leave,
  };
  return (
    <>
      {column.choices ? (
        <select
          {...common}
          onPointerDown={() => {
            isByKey.current = false;
          }}
          onChange={(event) => {
            sheet.type(event.target.value);
            if (isByKey.current || !sheet.commit()) return;
            onDone();
          }}
        >
          {column.choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input
          {...common}
          inputMode={column.kind === "number" ? "decimal" : "text"}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => sheet.type(event.target.value)}
        />
      )}
      {editor.problem === undefined ? null : (
        <span
          id={id}
          role="alert"
          className={`absolute right-0 z-5 w-max max-w-64 rounded-field border border-error bg-base-100 px-2 py-1 text-left text-xs text-error ${isLow ? "bottom-full" : "top-full"}`}
        >
          {editor.problem}
        </span>
      )}
    </>
  );
}
