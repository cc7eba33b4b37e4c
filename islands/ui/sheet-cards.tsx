// The sheet on a phone: a card for each row, whose fields are tapped to be edited. The same columns, parsed and refused alike.
// Refuses to draw thousands of cards at once, and to scroll the page sideways.
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent, ReactNode } from "react";
import { useT } from "../lib/i18n.ts";
import { setCell } from "./sheet-edits.ts";
import { Before } from "./sheet-row.tsx";
import type { SheetColumn, SheetProps } from "./sheet-types.ts";

/** Cards at first, and with every "more". */
const PAGE = 30;
/** Fields of a card at first; with "more" all of that card. */
const FIELDS = 24;

export function SheetCards<Row>(props: SheetProps<Row>) {
  const t = useT();
  const { rows, keyOf, label } = props;
  const [most, setMost] = useState(PAGE);
  const rest = rows.length - most;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    if (!props.goTo) return;
    const { rowKey, columnId } = props.goTo;
    const at = rows.findIndex((row) => keyOf(row) === rowKey);
    const field = list.current?.children[at]?.querySelector<HTMLElement>(`[data-column-id="${columnId}"]`);
    field?.focus();
  }, [props.goTo]);
  return (
    <>
      <ul ref={list} aria-label={label} className="grid gap-1.5">
        {rows.slice(0, most).map((row) => (
          <Card key={keyOf(row)} props={props} row={row} />
        ))}
      </ul>
      {rest > 0 ? (
        <button
          type="button"
          className="btn btn-default my-2 min-h-11 w-full"
          onClick={() => setMost(most + PAGE)}
        >
          {t("sheet.more", { count: rest })}
        </button>
      ) : null}
    </>
  );
}

interface CardProps<Row> {
  props: SheetProps<Row>;
  row: Row;
}

function Card<Row>({ props, row }: CardProps<Row>) {
  const t = useT();
  const { columns, keyOf, ticked, onTick, onOpenRow } = props;
  const [isWhole, setWhole] = useState(false);
  const key = keyOf(row);
  const [first, ...fields] = columns;
  const shown = isWhole ? fields : fields.slice(0, FIELDS);
  const rest = fields.length - shown.length;
  if (!first) return null;
  const name = first.read(row);
  const text = <span className="min-w-0 font-medium wrap-anywhere">{first.render?.(row) ?? name}</span>;
  return (
    <li
      className="rounded-box border border-base-300 px-2 pb-1 text-sm data-ticked:border-primary"
      data-ticked={ticked?.has(key) || undefined}
    >
      <div className="flex min-h-11 items-center gap-1">
        {onTick ? (
          <label className="grid size-11 flex-none place-items-center">
            <input
              type="checkbox"
              className="checkbox"
              aria-label={t("sheet.tick", { row: name })}
              checked={ticked?.has(key) ?? false}
              onChange={(event) => onTick([key], event.target.checked)}
            />
          </label>
        ) : null}
        {onOpenRow ? (
          <button
            type="button"
            className="flex min-h-11 min-w-0 grow items-center text-left"
            onClick={() => onOpenRow(row)}
          >
            {text}
          </button>
        ) : (
          text
        )}
      </div>
      <div className="grid grid-cols-2 gap-x-2">
        {shown.map((column) => (
          <Field key={column.id} {...{ props, row, column, name }} />
        ))}
      </div>
      {rest > 0 ? (
        <button type="button" className="btn btn-ghost min-h-11 w-full" onClick={() => setWhole(true)}>
          {t("sheet.more", { count: rest })}
          <span className="sr-only"> {t("sheet.ofRow", { row: name })}</span>
        </button>
      ) : null}
    </li>
  );
}

interface FieldProps<Row> extends CardProps<Row> {
  column: SheetColumn<Row>;
  name: string;
}

/** The field of a card while it is edited. */
function useField<Row>({ props, row, column, name }: FieldProps<Row>) {
  const t = useT();
  const button = useRef<HTMLButtonElement>(null);
  const field = useRef<HTMLInputElement & HTMLSelectElement>(null);
  const isOpen = useRef(false);
  const [text, setText] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const isEdited = text !== undefined;
  useEffect(() => {
    if (isEdited) field.current?.focus();
  }, [isEdited]);
  const close = (isByKey: boolean) => {
    isOpen.current = false;
    setText(undefined);
    setProblem(undefined);
    if (isByKey) setTimeout(() => button.current?.focus());
  };
  return {
    button,
    field,
    text,
    problem,
    close,
    open() {
      isOpen.current = true;
      setText(column.read(row));
    },
    type(typed: string) {
      setText(typed);
      setProblem(undefined);
    },
    take(typed: string, isByKey: boolean) {
      if (!isOpen.current) return;
      const cells = { rows: [row], columns: [column], keyOf: props.keyOf, readOnly: t("sheet.readOnly") };
      const { writes, problems } = setCell(cells, 0, 0, typed);
      const step = t("sheet.step.set", { column: column.label, row: name });
      const [wrong] = writes.length > 0 ? (props.write(writes, step) ?? []) : problems;
      if (wrong) setProblem(wrong.problem);
      else close(isByKey);
    },
  };
}

function Field<Row>(own: FieldProps<Row>) {
  const { props, row, column, name } = own;
  const t = useT();
  const field = useField(own);
  const shown = column.render?.(row) ?? column.read(row);
  const before = props.changed?.(props.keyOf(row), column.id);
  const head = (
    <span className="block text-xs text-muted">
      {column.label} {column.unit}
    </span>
  );
  if (!column.parse || column.isReadOnly?.(row))
    return (
      <div className="min-h-11 px-1.5 py-1">
        {head}
        {shown === "" ? "–" : shown}
      </div>
    );
  const label = t("sheet.cell", { column: column.label, row: name });
  if (field.text !== undefined)
    return <OpenField {...{ column, label, head }} field={field} text={field.text} />;
  return (
    <button
      ref={field.button}
      type="button"
      className="min-h-11 rounded-field px-1.5 py-1 text-left tabular-nums"
      data-column-id={column.id}
      data-changed={before === undefined ? undefined : ""}
      data-muted={column.isMuted?.(row) || undefined}
      onClick={() => field.open()}
    >
      {head}
      <span className="sr-only">{t("sheet.ofRow", { row: name })} </span>
      {shown === "" ? "–" : shown}
      {before === undefined ? null : (
        <>
          {" "}
          <Before text={before} />
        </>
      )}
      <span className="sr-only"> {t("sheet.edit")}</span>
    </button>
  );
}

function OpenField<Row>({
  column,
  label,
  head,
  field,
  text,
}: {
  column: SheetColumn<Row>;
  label: string;
  head: ReactNode;
  field: ReturnType<typeof useField<Row>>;
  text: string;
}) {
  const id = useId();
  const { problem } = field;
  const common = {
    ref: field.field,
    className: column.choices ? "select" : "input",
    "aria-label": label,
    "aria-invalid": problem === undefined ? undefined : true,
    "aria-describedby": problem === undefined ? undefined : id,
    value: text,
    onBlur: () => field.take(text, false),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.nativeEvent.isComposing) return;
      if (event.key === "Escape") field.close(true);
      else if (event.key === "Enter") field.take(text, true);
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
  };
  return (
    <div className={problem === undefined ? "px-1.5 py-0.5" : "col-span-2 px-1.5 py-0.5"}>
      {head}
      {column.choices ? (
        <select
          {...common}
          onChange={(event) => {
            field.type(event.target.value);
            field.take(event.target.value, true);
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
          enterKeyHint="done"
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => field.type(event.target.value)}
        />
      )}
      {problem === undefined ? null : (
        <p id={id} role="alert" className="mt-1 text-xs text-error">
          {problem}
        </p>
      )}
    </div>
  );
}
