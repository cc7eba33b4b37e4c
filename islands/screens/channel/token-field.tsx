// A comma list as tokens: typed, pasted, chosen from suggestions, taken away one by one; long lists are cut until asked for.
// Refuses names that stand there already, with the text that the caller gives for it.
import { X } from "lucide-react";
import { useId, useRef, useState } from "react";
import type { KeyboardEvent } from "react";
import type { Form, Values } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { announce } from "../../lib/toasts.ts";
import { Field } from "../../ui/form.tsx";
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
  /** Said where a typed name stands in the list already; without it such names are dropped. */
  repeated?: string;
}

export function TokenField<V extends Values>(props: TokenFieldProps<V>) {
  const { form, name, suggestions, isDisabled } = props;
  const t = useT();
  const id = useId();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [isWhole, setWhole] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const names = namesOf(String(form.values[name] ?? ""));
  const held = new Set(names);
  const shown = isWhole ? names : names.slice(0, SHOWN_AT_FIRST);
  const current = Math.min(at, shown.length - 1);
  const set = (next: readonly string[]) => form.set(name, next.join(",") as V[typeof name]);

  const add = (typed: string) => {
    const fresh = namesOf(typed);
    if (fresh.length === 0) return;
    if (props.repeated !== undefined && fresh.some((each) => names.includes(each))) {
      form.fail(name, props.repeated);
      return;
    }
    set([...new Set([...names, ...fresh])]);
    setText("");
  };
  const remove = (index: number) => {
    const gone = names[index];
    if (gone === undefined) return;
    set(names.filter((_, place) => place !== index));
    announce("channel.removed", { name: gone });
    setAt(Math.max(0, index - 1));
    setTimeout(() => {
      const buttons = list.current?.querySelectorAll<HTMLElement>("button");
      (buttons?.[Math.max(0, index - 1)] ?? input.current)?.focus();
    });
  };
  const onTokenKey = (index: number, event: KeyboardEvent) => {
    const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      if (to >= shown.length) {
        input.current?.focus();
        return;
      }
      setAt(Math.max(0, to));
      list.current?.querySelectorAll<HTMLElement>("button")[Math.max(0, to)]?.focus();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      remove(index);
    }
  };

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
            <ul ref={list} aria-label={props.label}>
              {shown.map((each, index) => (
                <li
                  key={each}
                  className={`badge badge-ghost badge-sm ${props.isMono ? "mono" : ""}`}
                  title={each}
                >
                  <span className="truncate">{each}</span>
                  <button
                    type="button"
                    className="btn btn-ghost btn-square btn-xs"
                    tabIndex={index === current ? 0 : -1}
                    disabled={isDisabled}
                    aria-label={t("channel.remove", { name: each })}
                    onKeyDown={(event) => onTokenKey(index, event)}
                    onClick={() => remove(index)}
                  >
                    <X aria-hidden size={12} />
                  </button>
                </li>
              ))}
            </ul>
          ) : null}
          {names.length > shown.length ? (
            <button
              type="button"
              className="btn btn-sm btn-ghost text-primary"
              onClick={() => setWhole(true)}
            >
              {t("channel.showMore", { count: names.length - shown.length })}
            </button>
          ) : null}
          <input
            {...control}
            ref={input}
            className={props.isMono ? "mono" : ""}
            list={`${id}-offered`}
            autoComplete="off"
            spellCheck={false}
            disabled={isDisabled}
            placeholder={props.placeholder}
            value={text}
            onChange={(event) => setText(event.target.value)}
            onBlur={() => {
              add(text);
              control.onBlur();
            }}
            onPaste={(event) => {
              const pasted = event.clipboardData.getData("text");
              if (!/[,，\n]/.test(pasted)) return;
              event.preventDefault();
              // Of a whole list only what is missing is taken: nobody picks repeated names out of it by hand.
              set([...new Set([...names, ...namesOf(pasted)])]);
            }}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing || event.ctrlKey || event.metaKey) return;
              if (event.key === "Enter" || event.key === ",") {
                event.preventDefault();
                add(text);
              } else if (event.key === "Backspace" && text === "" && names.length > 0) {
                event.preventDefault();
                remove(names.length - 1);
                setTimeout(() => input.current?.focus());
              }
            }}
          />
          <datalist id={`${id}-offered`}>
            {suggestions
              .filter((each) => !held.has(each))
              .slice(0, 300)
              .map((each) => (
                <option key={each} value={each} />
              ))}
          </datalist>
        </div>
      )}
    </Field>
  );
}
