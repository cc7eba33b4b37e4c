// A table of an option's value beside its raw JSON: two tabs over one text, which stays the truth.
// Refuses to draw a table of what cannot be read: the text stands alone until it can.
import { useId, useMemo, useRef, useState } from "react";
import type { ReactNode } from "react";
import { useT } from "../../../lib/i18n.ts";
import { afterPress } from "../../../lib/press.ts";
import type { OptionEditorProps } from "../editor-props.ts";

/** The place of what is wrong in a JSON text; undefined where it can be read. */
export function jsonProblem(text: string): { line: number; column: number } | undefined {
  try {
    JSON.parse(text.trim() === "" ? "null" : text);
    return undefined;
  } catch {
    // Engines say the place each in their own words, if at all: the longest beginning that may still go on tells it.
    const lines = text.slice(0, brokenAt(text)).split("\n");
    return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
  }
}

const TOKEN = /\s+|"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[[\]{}:,]/y;

/** Where a text stops being made of JSON's words, or its brackets stop fitting; its end where something is missing. */
function brokenAt(text: string): number {
  const open: string[] = [];
  let last = "";
  for (let at = 0; at < text.length;) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return at;
    const word = token.trim();
    if (word !== "") {
      const isValue = !/^[\]}:,]$/.test(word);
      const isAfterValue = last !== "" && !/^[[{:,]$/.test(last);
      if (isValue === isAfterValue) {
        const isEmptyList = (last === "[" && word === "]") || (last === "{" && word === "}");
        if (!isEmptyList) return at;
      }
      if (word === "[" || word === "{") open.push(word);
      if (word === "]" && open.pop() !== "[") return at;
      if (word === "}" && open.pop() !== "{") return at;
      last = word;
    }
    at += token.length;
  }
  return text.length;
}

/** The text as people like to read it; unchanged while it is no JSON. */
export function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export interface JsonTextProps {
  /** Accessible name of the option. */
  label: string;
  value: string;
  onChange: (text: string) => void;
  isInvalid?: boolean | undefined;
  disabled?: boolean | undefined;
}

/** The raw text, laid out for reading; checked when it is left. */
export function JsonText({ label, value, onChange, isInvalid, disabled }: JsonTextProps) {
  const t = useT();
  const id = useId();
  const [problem, setProblem] = useState<string>();
  // What is stored stands on one line: it is laid out for reading, and is a change only once somebody types.
  const [typed, setTyped] = useState<{ text: string; of: string }>();
  const laid = useMemo(() => laidOut(value), [value]);
  const shown = typed?.of === value ? typed.text : laid;
  const check = (text: string) => {
    const place = jsonProblem(text);
    afterPress(() => setProblem(place ? t("editor.notJson", { ...place }) : undefined));
  };
  return (
    <>
      <textarea
        className="textarea mono"
        rows={Math.min(16, Math.max(4, shown.split("\n", 16).length + 1))}
        spellCheck={false}
        aria-label={t("form.map.raw", { label })}
        aria-invalid={isInvalid || problem !== undefined || undefined}
        aria-describedby={problem === undefined ? undefined : `${id}-problem`}
        disabled={disabled}
        value={shown}
        onChange={(event) => {
          const text = event.target.value;
          setTyped({ text, of: text });
          if (problem !== undefined) check(text);
          onChange(text);
        }}
        onBlur={(event) => check(event.target.value)}
      />
      {problem === undefined ? null : (
        <p id={`${id}-problem`} className="mt-1 text-xs text-error" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

interface Part {
  id: string;
  /** Translated. */
  label: string;
  isDisabled?: boolean;
}

export interface PartsProps {
  /** Accessible name of the whole. */
  label: string;
  parts: readonly Part[];
  /** Id of the one that is open. */
  open: string;
  onOpen: (id: string) => void;
  describedBy?: string | undefined;
  children: ReactNode;
}

/** A few views of the same thing as tabs; the arrow keys change them. */
export function Parts({ label, parts, open, onOpen, describedBy, children }: PartsProps) {
  const id = useId();
  const usable = parts.filter(({ isDisabled }) => !isDisabled);
  const step = (by: number) => {
    const at = usable.findIndex((part) => part.id === open);
    const next = usable[(at + by + usable.length) % usable.length];
    if (!next) return;
    onOpen(next.id);
    document.getElementById(`${id}-${next.id}`)?.focus();
  };
  return (
    <div role="group" aria-label={label} aria-describedby={describedBy} className="min-w-0">
      <div className="join mb-2 max-w-full overflow-x-auto" role="tablist" aria-label={label}>
        {parts.map((part) => (
          <button
            key={part.id}
            type="button"
            role="tab"
            className="btn btn-sm btn-default join-item flex-none"
            id={`${id}-${part.id}`}
            aria-selected={part.id === open}
            aria-controls={`${id}-panel`}
            tabIndex={part.id === open ? 0 : -1}
            disabled={part.isDisabled}
            onClick={() => onOpen(part.id)}
            onKeyDown={(event) => {
              if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
              event.preventDefault();
              step(event.key === "ArrowRight" ? 1 : -1);
            }}
          >
            {part.label}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${open}`}>
        {children}
      </div>
    </div>
  );
}

export interface JsonBesideProps extends JsonTextProps {
  /** Whether the table can show the text. */
  isReadable: boolean;
  describedBy?: string | undefined;
  /** The table. */
  children: ReactNode;
}

export function JsonBeside({ isReadable, describedBy, children, ...text }: JsonBesideProps) {
  const [isText, setText] = useState(false);
  return (
    <TableOrText
      label={text.label}
      describedBy={describedBy}
      isReadable={isReadable}
      isText={isText}
      onText={setText}
    >
      {isText || !isReadable ? <JsonText {...text} /> : children}
    </TableOrText>
  );
}

export interface TableOrTextProps extends Pick<JsonBesideProps, "label" | "describedBy" | "isReadable"> {
  isText: boolean;
  onText: (isText: boolean) => void;
  children: ReactNode;
}

/** The two tabs alone, for what has several texts. */
export function TableOrText({ isReadable, isText, onText, ...rest }: TableOrTextProps) {
  const t = useT();
  return (
    <Parts
      {...rest}
      parts={[
        { id: "table", label: t("form.map.table"), isDisabled: !isReadable },
        { id: "text", label: t("editor.rawJson") },
      ]}
      open={isText || !isReadable ? "text" : "table"}
      onOpen={(id) => onText(id === "text")}
    />
  );
}

/** Rows over a text: made anew only when somebody else changed it, so that unfinished rows stay. */
export function useRowsOf<Row>(
  value: string,
  onChange: (text: string) => void,
  kind: {
    /** Undefined: the text cannot be shown as rows. */
    read: (text: string) => Row[] | undefined;
    write: (rows: readonly Row[]) => string;
  },
): { rows: Row[] | undefined; setRows: (rows: Row[]) => void } {
  const state = useRef<{ text: string; rows: Row[] | undefined }>(undefined);
  const [, redraw] = useState(0);
  if (state.current?.text !== value) state.current = { text: value, rows: kind.read(value) };
  return {
    rows: state.current.rows,
    setRows(rows) {
      const text = kind.write(rows);
      // Unfinished rows change nothing that is saved: then the text stays as it was stored.
      const isSame = laidOut(text) === laidOut(value);
      state.current = { text: isSame ? value : text, rows };
      if (isSame) redraw((count) => count + 1);
      else onChange(text);
    },
  };
}

let lastId = 0;
/** A name for a row that nothing else has. */
export const newId = () => ++lastId;

/** What an editor passes on to its JsonBeside. */
export function besideOf({ value, onChange, failure, describedBy, disabled }: OptionEditorProps) {
  return { value, onChange, describedBy, disabled, isInvalid: failure === undefined ? undefined : true };
}
