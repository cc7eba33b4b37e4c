// The rows of a map editor: keys and values with suggestions, added, pasted, removed and walked by keyboard.
// Refuses to hide what is wrong: the cell that the problem names is marked.
import { Plus, X } from "lucide-react";
import { useId, useRef, useState } from "react";
import type { ClipboardEvent, KeyboardEvent } from "react";
import { useT } from "../lib/i18n.ts";
import { cellOf, pastedPairs } from "../lib/json-map.ts";
import type { MapProblem } from "../lib/json-map.ts";
import { announce } from "../lib/toasts.ts";
import type { MapEditorProps } from "./map-editor.tsx";

export interface MapRow {
  id: number;
  key: string;
  cell: string;
}

let lastId = 0;
export const newRow = (key = "", cell = ""): MapRow => ({ id: ++lastId, key, cell });
export const isBlank = ({ key, cell }: MapRow) => key === "" && cell === "";

type Column = "key" | "cell";
const COLUMNS = ["key", "cell"] as const;

export interface MapTableProps extends MapEditorProps {
  rows: MapRow[];
  problem: MapProblem | undefined;
  onRows: (rows: MapRow[]) => void;
}

/** What hands and keyboard do to the rows. */
function useMapRows({ rows, onRows, kind }: MapTableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const addButton = useRef<HTMLButtonElement>(null);
  const [added, setAdded] = useState<MapRow[]>([]);
  // Empty rows live here only: the text does not know them.
  const shown = [...rows, ...added.filter((each) => !rows.some((row) => row.id === each.id))];

  const focus = (row: number, column: Column) => {
    setTimeout(() =>
      body.current?.querySelector<HTMLElement>(`[data-row="${row}"] [data-column="${column}"]`)?.focus(),
    );
  };
  const add = () => {
    setAdded([newRow()]);
    focus(shown.filter((row) => !isBlank(row)).length, "key");
  };
  const remove = (at: number) => {
    const gone = shown[at];
    setAdded([]);
    onRows(shown.filter((_, index) => index !== at));
    announce("form.map.removed", { key: gone?.key ?? "" });
    if (shown.length > 1) focus(Math.min(at, shown.length - 2), "key");
    else setTimeout(() => addButton.current?.focus());
  };
  const onPaste = (at: number, event: ClipboardEvent<HTMLInputElement>) => {
    const pairs = pastedPairs(event.clipboardData.getData("text"));
    if (!pairs) return;
    event.preventDefault();
    const fresh = pairs.map((pair) =>
      newRow(pair.key, pair.json === undefined ? (pair.cell ?? "") : cellOf(pair.json, kind)),
    );
    const target = shown[at];
    const start = target && isBlank(target) ? at : at + 1;
    setAdded([]);
    onRows([...shown.slice(0, start), ...fresh, ...shown.slice(at + 1)].filter((row) => !isBlank(row)));
    announce("form.map.pasted", { count: fresh.length });
  };
  const onKeyDown = (at: number, column: Column, event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (column === "key") focus(at, "cell");
      else if (at === shown.length - 1) add();
      else focus(at + 1, "key");
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = at + (event.key === "ArrowDown" ? 1 : -1);
      // With a list of suggestions open the arrows are the browser's.
      if (event.currentTarget.list || next < 0 || next >= shown.length) return;
      event.preventDefault();
      focus(next, column);
    } else if (event.key === "Backspace" && column === "key" && isBlank(shown[at] ?? newRow("x"))) {
      event.preventDefault();
      remove(at);
    }
  };
  const change = (at: number, patch: Partial<MapRow>) =>
    onRows(shown.map((row, index) => (index === at ? { ...row, ...patch } : row)));
  return { body, addButton, shown, change, add, remove, onPaste, onKeyDown };
}

type MapRows = ReturnType<typeof useMapRows>;

/** Whether the cell is the one that the problem names. */
function isWrong(problem: MapProblem | undefined, row: MapRow, column: Column): boolean {
  if (!problem || isBlank(row) || row.key !== problem.key) return false;
  return (problem.code === "duplicate" || problem.code === "emptyKey") === (column === "key");
}

export function MapTable(props: MapTableProps) {
  const { label, keyLabel, valueLabel, isDisabled } = props;
  const t = useT();
  const id = useId();
  const rows = useMapRows(props);
  return (
    <>
      {rows.shown.length > 0 ? (
        <table className="table mb-1 [&_td]:border-0 [&_td]:py-0.5 [&_td]:pr-1.5 [&_th]:border-0 [&_th]:py-0">
          <thead>
            <tr>
              <th scope="col">{keyLabel}</th>
              <th scope="col">{valueLabel}</th>
              <th scope="col">
                <span className="sr-only">{t("table.actions")}</span>
              </th>
            </tr>
          </thead>
          <tbody ref={rows.body}>
            {rows.shown.map((row, at) => (
              <tr key={row.id} data-row={at}>
                {COLUMNS.map((column) => (
                  <td key={column}>
                    <MapCell {...props} {...{ id, at, row, column }} edit={rows} />
                  </td>
                ))}
                <td>
                  <button
                    type="button"
                    className="btn btn-ghost btn-square btn-xs"
                    aria-label={t("form.map.remove", { key: row.key || String(at + 1) })}
                    title={t("form.map.remove", { key: row.key || String(at + 1) })}
                    disabled={isDisabled}
                    onClick={() => rows.remove(at)}
                  >
                    <X aria-hidden size={14} />
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p className="mt-1 text-xs text-muted">{t("form.map.none", { label })}</p>
      )}
      <button
        ref={rows.addButton}
        id={`${id}-add`}
        type="button"
        className="btn btn-sm btn-ghost"
        disabled={isDisabled}
        onClick={rows.add}
      >
        <Plus aria-hidden size={14} />
        {t("form.map.add")}
      </button>
      {COLUMNS.map((column) => {
        const suggestions = (column === "key" ? props.keySuggestions : props.valueSuggestions) ?? [];
        return suggestions.length === 0 ? null : (
          <datalist key={column} id={`${id}-${column}`}>
            {suggestions.slice(0, 500).map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        );
      })}
    </>
  );
}

interface MapCellProps extends MapTableProps {
  id: string;
  at: number;
  row: MapRow;
  column: Column;
  edit: MapRows;
}

function MapCell({ id, at, row, column, edit, ...props }: MapCellProps) {
  const t = useT();
  const isKey = column === "key";
  const suggestions = isKey ? props.keySuggestions : props.valueSuggestions;
  return (
    <input
      className="input mono"
      data-column={column}
      aria-label={t("form.map.cell", { column: isKey ? props.keyLabel : props.valueLabel, row: at + 1 })}
      aria-invalid={isWrong(props.problem, row, column) || undefined}
      inputMode={!isKey && props.kind === "number" ? "decimal" : undefined}
      list={suggestions && suggestions.length > 0 ? `${id}-${column}` : undefined}
      placeholder={isKey ? props.keyPlaceholder : props.valuePlaceholder}
      autoComplete="off"
      spellCheck={false}
      disabled={props.isDisabled}
      value={row[column]}
      onChange={(event) => edit.change(at, { [column]: event.target.value })}
      onPaste={(event) => edit.onPaste(at, event)}
      onKeyDown={(event) => edit.onKeyDown(at, column, event)}
    />
  );
}
