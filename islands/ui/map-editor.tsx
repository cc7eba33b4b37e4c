// A JSON map without JSON: rows of key and value, beside a text tab with the raw object; both stay in step.
// Refuses nothing silently: duplicates, empty names and wrong kinds are named where they stand; the form decides.
import { Plus, X } from "lucide-react";
import { useId, useRef, useState } from "react";
import type { ClipboardEvent, KeyboardEvent } from "react";
import type { Form, Values } from "../lib/form.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { cellOf, formatMap, jsonOf, parseMap, pastedPairs, writeMap } from "../lib/json-map.ts";
import type { MapKind, MapProblem } from "../lib/json-map.ts";
import { announce } from "../lib/toasts.ts";
import { Field } from "./form.tsx";

export interface MapEditorProps {
  /** Name of the whole: "Model mapping". */
  label: string;
  /** The JSON text; "" for none. */
  value: string;
  onChange: (text: string) => void;
  kind: MapKind;
  /** Heads of the two columns: "Asked model", "Sent model". */
  keyLabel: string;
  valueLabel: string;
  /** Names offered while typing. */
  keySuggestions?: readonly string[];
  valueSuggestions?: readonly string[];
  keyPlaceholder?: string;
  valuePlaceholder?: string;
  /** Attributes of the surrounding Field. */
  describedBy?: string | undefined;
  isInvalid?: boolean | undefined;
  isDisabled?: boolean | undefined;
}

interface Row {
  id: number;
  key: string;
  cell: string;
}

/** Text of what is wrong with a map, or undefined; for `validate` of a form. */
export function mapProblemText(text: string, kind: MapKind): string | undefined {
  const { problem } = parseMap(text, kind);
  return problem && problemText(problem);
}

function problemText({ code, line, column, key = "" }: MapProblem): string {
  return translate(`form.map.${code}`, { line, column, key });
}

let lastId = 0;
const newRow = (key = "", cell = ""): Row => ({ id: ++lastId, key, cell });
const isBlank = ({ key, cell }: Row) => key === "" && cell === "";

function rowsOf(text: string, kind: MapKind): Row[] {
  return parseMap(text, kind).entries.map(({ key, json }) => newRow(key, cellOf(json, kind)));
}

export function MapEditor(props: MapEditorProps) {
  const { label, value, onChange, kind } = props;
  const t = useT();
  const id = useId();
  const [isText, setText] = useState(false);
  const state = useRef<{ text: string; rows: Row[] }>(undefined);
  // The text is the one truth; rows are made anew only when it was changed by somebody else.
  if (state.current?.text !== value) state.current = { text: value, rows: rowsOf(value, kind) };
  const { problem } = parseMap(value, kind);
  const hasSyntax = problem?.code === "syntax" || problem?.code === "notObject";
  const showsText = isText || hasSyntax;

  const write = (rows: Row[]) => {
    const filled = rows.filter((row) => !isBlank(row));
    const text = writeMap(filled.map(({ key, cell }) => ({ key, json: jsonOf(cell, kind) })));
    state.current = { text, rows };
    onChange(text);
  };

  return (
    <div className="map-editor" role="group" aria-label={label} aria-describedby={props.describedBy}>
      <div className="join mb-2" role="tablist" aria-label={label}>
        {(["table", "text"] as const).map((tab) => {
          const isOn = (tab === "text") === showsText;
          return (
            <button
              key={tab}
              type="button"
              role="tab"
              className="btn btn-sm btn-default join-item"
              id={`${id}-${tab}`}
              aria-selected={isOn}
              aria-controls={`${id}-panel`}
              tabIndex={isOn ? 0 : -1}
              // Rows cannot show a text that is no object.
              disabled={tab === "table" && hasSyntax}
              onClick={() => setText(tab === "text")}
              onKeyDown={(event) => {
                if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
                event.preventDefault();
                const other = document.getElementById(`${id}-${tab === "table" ? "text" : "table"}`);
                other?.click();
                other?.focus();
              }}
            >
              {t(`form.map.${tab}`)}
            </button>
          );
        })}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${showsText ? "text" : "table"}`}>
        {showsText ? (
          <textarea
            className="textarea mono"
            rows={Math.min(14, Math.max(4, value.split("\n").length + 1))}
            spellCheck={false}
            aria-label={t("form.map.raw", { label })}
            aria-invalid={props.isInvalid || problem !== undefined || undefined}
            disabled={props.isDisabled}
            value={value}
            placeholder={'{\n  "…": "…"\n}'}
            onChange={(event) => onChange(event.target.value)}
            onBlur={(event) => {
              const formatted = formatMap(event.target.value);
              if (formatted !== value) onChange(formatted);
            }}
          />
        ) : (
          <MapTable {...props} rows={state.current.rows} problem={problem} onRows={write} />
        )}
      </div>
      {/* Inside a form that already names the error it is not said twice. */}
      {problem && !props.isInvalid ? (
        <p className="mt-1 text-xs text-error" role="status">
          {problemText(problem)}
        </p>
      ) : null}
    </div>
  );
}

interface MapTableProps extends MapEditorProps {
  rows: Row[];
  problem: MapProblem | undefined;
  onRows: (rows: Row[]) => void;
}

function MapTable(props: MapTableProps) {
  const { rows, onRows, problem, kind, label, keyLabel, valueLabel, isDisabled } = props;
  const t = useT();
  const id = useId();
  const body = useRef<HTMLTableSectionElement>(null);
  const [added, setAdded] = useState<Row[]>([]);
  // Empty rows live here only: the text does not know them.
  const shown = [...rows, ...added.filter((each) => !rows.some((row) => row.id === each.id))];
  /** Whether the cell is the one that the problem names. */
  const isWrong = (row: Row, column: "key" | "cell") => {
    if (!problem || isBlank(row) || row.key !== problem.key) return false;
    return (problem.code === "duplicate" || problem.code === "emptyKey") === (column === "key");
  };

  const focus = (row: number, column: "key" | "cell") => {
    setTimeout(() =>
      body.current?.querySelector<HTMLElement>(`[data-row="${row}"] [data-column="${column}"]`)?.focus(),
    );
  };
  const change = (at: number, patch: Partial<Row>) =>
    onRows(shown.map((row, index) => (index === at ? { ...row, ...patch } : row)));
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
    else setTimeout(() => document.getElementById(`${id}-add`)?.focus());
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
  const onKeyDown = (at: number, column: "key" | "cell", event: KeyboardEvent<HTMLInputElement>) => {
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

  return (
    <>
      {shown.length > 0 ? (
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
          <tbody ref={body}>
            {shown.map((row, at) => (
              <tr key={row.id} data-row={at}>
                {(["key", "cell"] as const).map((column) => {
                  const suggestions = column === "key" ? props.keySuggestions : props.valueSuggestions;
                  const head = column === "key" ? keyLabel : valueLabel;
                  return (
                    <td key={column}>
                      <input
                        className="input mono"
                        data-column={column}
                        aria-label={t("form.map.cell", { column: head, row: at + 1 })}
                        aria-invalid={isWrong(row, column) || undefined}
                        inputMode={column === "cell" && kind === "number" ? "decimal" : undefined}
                        list={suggestions && suggestions.length > 0 ? `${id}-${column}` : undefined}
                        placeholder={column === "key" ? props.keyPlaceholder : props.valuePlaceholder}
                        autoComplete="off"
                        spellCheck={false}
                        disabled={isDisabled}
                        value={row[column]}
                        onChange={(event) => change(at, { [column]: event.target.value })}
                        onPaste={(event) => onPaste(at, event)}
                        onKeyDown={(event) => onKeyDown(at, column, event)}
                      />
                    </td>
                  );
                })}
                <td>
                  <button
                    type="button"
                    className="btn btn-ghost btn-square btn-xs"
                    aria-label={t("form.map.remove", { key: row.key || String(at + 1) })}
                    title={t("form.map.remove", { key: row.key || String(at + 1) })}
                    disabled={isDisabled}
                    onClick={() => remove(at)}
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
        id={`${id}-add`}
        type="button"
        className="btn btn-sm btn-ghost"
        disabled={isDisabled}
        onClick={add}
      >
        <Plus aria-hidden size={14} />
        {t("form.map.add")}
      </button>
      {(["key", "cell"] as const).map((column) => {
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

/** A map as a field of a form: the value is the JSON text. Give `mapProblemText` to the form's validate. */
export function MapField<V extends Values>({
  form,
  name,
  hint,
  ...map
}: Omit<MapEditorProps, "value" | "onChange" | "describedBy" | "isInvalid"> & {
  form: Form<V>;
  name: keyof V & string;
  hint?: string | undefined;
}) {
  return (
    <Field form={form} name={name} label={map.label} hint={hint} isGroup>
      {(control) => (
        <MapEditor
          {...map}
          value={String(form.values[name] ?? "")}
          onChange={(text) => form.set(name, text as V[typeof name])}
          describedBy={control["aria-describedby"]}
          isInvalid={control["aria-invalid"]}
        />
      )}
    </Field>
  );
}
