// A JSON map without JSON: rows of key and value, beside a text tab with the raw object; both stay in step.
// Refuses nothing silently: duplicates, empty names and wrong kinds are named where they stand; the form decides.
import { useId, useRef, useState } from "react";
import type { Form, Values } from "../lib/form.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { cellOf, formatMap, jsonOf, parseMap, writeMap } from "../lib/json-map.ts";
import type { MapKind, MapProblem } from "../lib/json-map.ts";
import { afterPress } from "../lib/press.ts";
import { Field } from "./form.tsx";
import { isBlank, MapTable, newRow } from "./map-table.tsx";
import type { MapRow } from "./map-table.tsx";

export interface MapEditorProps {
  /** Name of the map: "Model mapping". */
  label: string;
  /** The JSON text; "" for none. */
  value: string;
  onChange: (text: string) => void;
  kind: MapKind;
  /** Heads of the two columns: "Requested model", "Sent model". */
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

/** Text of what is wrong with a map, or undefined; for `validate` of a form. */
export function mapProblemText(text: string, kind: MapKind): string | undefined {
  const { problem } = parseMap(text, kind);
  return problem && problemText(problem);
}

function problemText({ code, line, column, key = "" }: MapProblem): string {
  return translate(`form.map.${code}`, { line, column, key });
}

function rowsOf(text: string, kind: MapKind): MapRow[] {
  return parseMap(text, kind).entries.map(({ key, json }) => newRow(key, cellOf(json, kind)));
}

export function MapEditor(props: MapEditorProps) {
  const { label, value, onChange, kind } = props;
  const t = useT();
  const id = useId();
  const [isText, setText] = useState(false);
  const state = useRef<{ text: string; rows: MapRow[] }>(undefined);
  // The text is the one truth; rows are made anew only when it was changed by somebody else.
  if (state.current?.text !== value) state.current = { text: value, rows: rowsOf(value, kind) };
  const { problem } = parseMap(value, kind);
  const hasSyntax = problem?.code === "syntax" || problem?.code === "notObject";
  const showsText = isText || hasSyntax;

  const write = (rows: MapRow[]) => {
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
              if (formatted !== value) afterPress(() => onChange(formatted));
            }}
          />
        ) : (
          <MapTable {...props} rows={state.current.rows} problem={problem} onRows={write} />
        )}
      </div>
      {/* Inside a form that already names the error it is not repeated. */}
      {problem && !props.isInvalid ? (
        <p className="mt-1 text-xs text-error" role="status">
          {problemText(problem)}
        </p>
      ) : null}
    </div>
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
