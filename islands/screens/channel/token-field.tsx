// A comma list as tokens: typed, pasted, chosen from suggestions, taken away one by one; long lists are cut until expanded.
// Refuses names that stand there already, with the text that the caller gives for it.
import { X } from "lucide-react";
import { useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import type { Form, Values } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { afterPress } from "../../lib/press.ts";
import { announce } from "../../lib/toasts.ts";
import { Field } from "../../ui/form.tsx";
import type { ControlProps } from "../../ui/form.tsx";
import { namesOf } from "./row.ts";

const SHOWN_AT_FIRST = 60;

export interface TokenFieldProps<V extends Values> {
  form: Form<V>;
  /** The value is the comma text. */
  name: keyof V & string;
  label: string;
  hint?: string | undefined;
  isRequired?: boolean;
  isMono?: boolean;
  isDisabled?: boolean;
  suggestions: readonly string[];
  placeholder?: string;
  /** The error where a typed name stands in the list already; without it such names are dropped. */
  repeated?: string;
}

/** What the field does to the list of names. */
function useTokens<V extends Values>({ form, name, repeated }: TokenFieldProps<V>) {
  const list = useRef<HTMLUListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  /** The token that Tab goes to. */
  const [at, setAt] = useState(0);
  const names = namesOf(String(form.values[name] ?? ""));
  const set = (next: readonly string[]) => form.set(name, next.join(",") as V[typeof name]);
  const buttons = () => list.current?.querySelectorAll<HTMLElement>("button");
  return {
    list,
    input,
    names,
    at,
    /** Adds typed names; false where one stands there already and that is an error. */
    add(typed: string): boolean {
      const fresh = namesOf(typed);
      if (fresh.length === 0) return false;
      if (repeated !== undefined && fresh.some((each) => names.includes(each))) {
        form.fail(name, repeated);
        return false;
      }
      set([...new Set([...names, ...fresh])]);
      return true;
    },
    /** Of a pasted list only what is missing is taken: nobody picks repeated names out of it by hand. */
    addMissing(pasted: string): void {
      set([...new Set([...names, ...namesOf(pasted)])]);
    },
    remove(index: number): void {
      const gone = names[index];
      if (gone === undefined) return;
      set(names.filter((_, place) => place !== index));
      announce("channel.removed", { name: gone });
      setAt(Math.max(0, index - 1));
      setTimeout(() => (buttons()?.[Math.max(0, index - 1)] ?? input.current)?.focus());
    },
    focus(index: number): void {
      setAt(index);
      buttons()?.[index]?.focus();
    },
  };
}

type Tokens = ReturnType<typeof useTokens>;

export function TokenField<V extends Values>(props: TokenFieldProps<V>) {
  const { form, name, isDisabled } = props;
  const t = useT();
  const [isExpanded, setExpanded] = useState(false);
  const tokens = useTokens(props);
  const { names } = tokens;
  const shown = isExpanded ? names : names.slice(0, SHOWN_AT_FIRST);
  return (
    <Field
      form={form}
      name={name}
      label={props.label}
      hint={props.hint}
      isRequired={props.isRequired === true}
    >
      {(control) => (
        <div className="token-box" data-disabled={isDisabled ? "" : undefined}>
          {shown.length > 0 ? (
            <TokenList
              tokens={tokens}
              shown={shown}
              label={props.label}
              isMono={props.isMono === true}
              isDisabled={isDisabled}
            />
          ) : null}
          {names.length > shown.length ? (
            <button
              type="button"
              className="btn btn-sm btn-ghost text-primary"
              onClick={() => setExpanded(true)}
            >
              {t("channel.showMore", { count: names.length - shown.length })}
            </button>
          ) : null}
          <TokenInput {...props} tokens={tokens} control={control} />
        </div>
      )}
    </Field>
  );
}

interface TokenListProps {
  tokens: Tokens;
  shown: readonly string[];
  label: string;
  isMono: boolean;
  isDisabled: boolean | undefined;
}

function TokenList({ tokens, shown, label, isMono, isDisabled }: TokenListProps) {
  const t = useT();
  const current = Math.min(tokens.at, shown.length - 1);
  const onKey = (index: number, event: KeyboardEvent) => {
    const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      if (to >= shown.length) tokens.input.current?.focus();
      else tokens.focus(Math.max(0, to));
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      tokens.remove(index);
    }
  };
  return (
    <ul ref={tokens.list} aria-label={label}>
      {shown.map((each, index) => (
        <li key={each} className={`badge badge-ghost badge-sm ${isMono ? "mono" : ""}`} title={each}>
          <span className="truncate">{each}</span>
          <button
            type="button"
            className="btn btn-ghost btn-square btn-xs"
            tabIndex={index === current ? 0 : -1}
            disabled={isDisabled}
            aria-label={t("channel.remove", { name: each })}
            onKeyDown={(event) => onKey(index, event)}
            onClick={() => tokens.remove(index)}
          >
            <X aria-hidden size={12} />
          </button>
        </li>
      ))}
    </ul>
  );
}

interface TokenInputProps<V extends Values> extends TokenFieldProps<V> {
  tokens: Tokens;
  control: ControlProps;
}

function TokenInput<V extends Values>({ tokens, control, ...props }: TokenInputProps<V>) {
  const id = useId();
  const [text, setText] = useState("");
  const { names, input } = tokens;
  const held = new Set(names);
  const add = () => {
    if (tokens.add(text)) setText("");
  };
  return (
    <>
      <input
        {...control}
        ref={input}
        className={props.isMono ? "mono" : ""}
        list={`${id}-offered`}
        autoComplete="off"
        spellCheck={false}
        disabled={props.isDisabled}
        placeholder={props.placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onBlur={() => {
          // A token more moves what is being pressed.
          afterPress(add);
          control.onBlur();
        }}
        onPaste={(event) => {
          const pasted = event.clipboardData.getData("text");
          if (!/[,，\n]/.test(pasted)) return;
          event.preventDefault();
          tokens.addMissing(pasted);
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing || event.ctrlKey || event.metaKey) return;
          if (event.key === "Enter" || event.key === ",") {
            event.preventDefault();
            add();
          } else if (event.key === "Backspace" && text === "" && names.length > 0) {
            event.preventDefault();
            tokens.remove(names.length - 1);
            setTimeout(() => input.current?.focus());
          }
        }}
      />
      <datalist id={`${id}-offered`}>
        {props.suggestions
          .filter((each) => !held.has(each))
          .slice(0, 300)
          .map((each) => (
            <option key={each} value={each} />
          ))}
      </datalist>
    </>
  );
}
