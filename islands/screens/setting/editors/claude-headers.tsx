// Headers that go along with calls to single Claude models, a line for each value: model, header, value.
// Refuses names that cannot be headers and values of several lines: the server would refuse them whole.
import { Plus, X } from "lucide-react";
import { useId, useRef, useState } from "react";
import { useT } from "../../../lib/i18n.ts";
import { parseMap } from "../../../lib/json-map.ts";
import { afterPress } from "../../../lib/press.ts";
import { announce } from "../../../lib/toasts.ts";
import type { OptionEditorProps } from "../editor-props.ts";
import { besideOf, JsonBeside, newId, useRowsOf } from "./json-beside.tsx";
import { FailureLine } from "./panel-block.tsx";

interface HeaderRow {
  id: number;
  model: string;
  header: string;
  value: string;
}

const COLUMNS = ["model", "header", "value"] as const;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Offered while typing: what people add most. */
const USUAL_HEADERS = ["anthropic-beta", "anthropic-version"];

/** Model -> header -> values; a value may stand alone. */
function readHeaders(text: string): HeaderRow[] | undefined {
  const { entries, problem } = parseMap(text);
  if (problem) return undefined;
  const rows: HeaderRow[] = [];
  for (const { key: model, json } of entries) {
    const inner = parseMap(json);
    if (inner.problem) return undefined;
    for (const { key: header, json: written } of inner.entries) {
      const values = [JSON.parse(written) as unknown].flat();
      if (!values.every((each) => typeof each === "string")) return undefined;
      for (const value of values) rows.push({ id: newId(), model, header, value });
    }
  }
  return rows;
}

const isBlank = ({ model, header, value }: HeaderRow) => model === "" && header === "" && value === "";

function writeHeaders(rows: readonly HeaderRow[]): string {
  const models = new Map<string, Map<string, string[]>>();
  for (const row of rows.filter((each) => !isBlank(each))) {
    const headers = models.get(row.model.trim()) ?? new Map<string, string[]>();
    models.set(row.model.trim(), headers);
    headers.set(row.header.trim(), [...(headers.get(row.header.trim()) ?? []), row.value]);
  }
  const object = Object.fromEntries(
    [...models].map(([model, headers]) => [model, Object.fromEntries(headers)]),
  );
  return JSON.stringify(object, null, 2);
}

const HEADERS = { read: readHeaders, write: writeHeaders };

/** What is wrong with a finished row: a key of the dictionary. */
function problemOf(row: HeaderRow): string | undefined {
  if (isBlank(row)) return undefined;
  if (row.model.trim() === "") return "editor.headers.noModel";
  return HEADER_NAME.test(row.header.trim()) ? undefined : "editor.headers.badName";
}

export function ClaudeHeaders(props: OptionEditorProps) {
  const t = useT();
  const id = useId();
  const body = useRef<HTMLDivElement>(null);
  const { rows, setRows } = useRowsOf(props.value, props.onChange, HEADERS);
  const [left, setLeft] = useState<ReadonlySet<number>>(new Set());
  const label = t(`option.title.${props.option.key}`);
  const change = (at: number, patch: Partial<HeaderRow>) =>
    setRows((rows ?? []).map((row, index) => (index === at ? { ...row, ...patch } : row)));
  const focusLast = () =>
    setTimeout(() => body.current?.querySelector<HTMLElement>("[data-row]:last-child input")?.focus());
  return (
    <JsonBeside {...besideOf(props)} label={label} isReadable={rows !== undefined}>
      {rows?.length === 0 ? <p className="text-dense text-muted">{t("form.map.none", { label })}</p> : null}
      <datalist id={`${id}-names`}>
        {USUAL_HEADERS.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div ref={body}>
        {rows?.map((row, at) => {
          const problem = left.has(row.id) ? problemOf(row) : undefined;
          return (
            <div
              key={row.id}
              data-row={at}
              role="group"
              aria-label={t("editor.row", { row: at + 1 })}
              className="grid grid-cols-[minmax(0,1fr)_2rem] gap-x-2 gap-y-1 border-b border-base-300 py-2 sm:grid-cols-[minmax(0,1fr)_minmax(0,1fr)_minmax(0,1.2fr)_2rem]"
              onBlur={(event) => {
                if (event.currentTarget.contains(event.relatedTarget)) return;
                afterPress(() => setLeft((before) => new Set(before).add(row.id)));
              }}
            >
              {COLUMNS.map((column) => (
                <input
                  key={column}
                  className="input mono max-sm:col-start-1"
                  aria-label={t("form.map.cell", { column: t(`editor.headers.${column}`), row: at + 1 })}
                  aria-invalid={
                    (problem === "editor.headers.noModel" && column === "model") ||
                    (problem === "editor.headers.badName" && column === "header") ||
                    undefined
                  }
                  placeholder={t(`editor.headers.${column}`)}
                  list={column === "header" ? `${id}-names` : undefined}
                  autoComplete="off"
                  spellCheck={false}
                  disabled={props.disabled}
                  value={row[column]}
                  onChange={(event) => change(at, { [column]: event.target.value })}
                />
              ))}
              <button
                type="button"
                className="btn btn-ghost btn-square btn-sm col-start-2 row-start-1 self-center sm:col-start-4"
                aria-label={t("form.map.remove", { key: row.header || String(at + 1) })}
                title={t("form.map.remove", { key: row.header || String(at + 1) })}
                disabled={props.disabled}
                onClick={() => {
                  announce("form.map.removed", { key: row.header });
                  setRows(rows.filter((_, index) => index !== at));
                  setTimeout(() => document.getElementById(`${id}-add`)?.focus());
                }}
              >
                <X aria-hidden />
              </button>
              {problem === undefined ? null : (
                <div className="col-span-full">
                  <FailureLine text={t(problem)} />
                </div>
              )}
            </div>
          );
        })}
      </div>
      <button
        id={`${id}-add`}
        type="button"
        className="btn btn-ghost btn-sm mt-1"
        disabled={props.disabled}
        onClick={() => {
          setRows([...(rows ?? []), { id: newId(), model: "", header: "", value: "" }]);
          focusLast();
        }}
      >
        <Plus aria-hidden size={14} />
        {t("editor.headers.add")}
      </button>
    </JsonBeside>
  );
}
