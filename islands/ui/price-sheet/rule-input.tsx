// One labelled field of the rules editor, with what is wrong with it below, and a button that takes it out.
import { Plus, X } from "lucide-react";
import { useId, useRef } from "react";
import { useT } from "../../lib/i18n.ts";

export interface RuleInputProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
  /** The field has lost the focus: what is wrong with it may be said. */
  onLeave: () => void;
  /** Key of a text. */
  problem?: string | undefined;
  hint?: string;
  /** Written before the number. */
  prefix?: string;
  isNumber?: boolean;
  suggestions?: readonly string[];
  onRemove?: (() => void) | undefined;
}

export function RuleInput(props: RuleInputProps) {
  const { label, value, problem, hint, prefix, isNumber, suggestions = [] } = props;
  const t = useT();
  const id = useId();
  const about = [problem === undefined ? "" : `${id}-problem`, hint === undefined ? "" : `${id}-hint`];
  return (
    <div className="min-w-0">
      <label className="block text-xs text-muted first-letter:uppercase" htmlFor={id}>
        {label}
      </label>
      <div className="flex items-center gap-1">
        <span className="input min-w-0 grow" aria-invalid={problem !== undefined || undefined}>
          {prefix === undefined ? null : (
            <span className="text-muted" aria-hidden>
              {prefix}
            </span>
          )}
          <input
            id={id}
            className="min-w-0 grow tabular-nums"
            inputMode={isNumber ? "decimal" : undefined}
            autoComplete="off"
            spellCheck={false}
            list={suggestions.length > 0 ? `${id}-list` : undefined}
            aria-invalid={problem !== undefined || undefined}
            aria-describedby={about.join(" ").trim() || undefined}
            value={value}
            onChange={(event) => props.onChange(event.target.value)}
            onBlur={props.onLeave}
          />
        </span>
        {suggestions.length > 0 ? (
          <datalist id={`${id}-list`}>
            {suggestions.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        ) : null}
        {props.onRemove ? (
          <IconButton label={t("rule.edit.removeField", { name: label })} onClick={props.onRemove} />
        ) : null}
      </div>
      {problem === undefined ? null : (
        <p id={`${id}-problem`} className="mt-0.5 text-xs text-error" role="alert">
          {t(problem)}
        </p>
      )}
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className="mt-0.5 text-xs text-muted">
          {hint}
        </p>
      )}
    </div>
  );
}

export interface IconButtonProps {
  label: string;
  onClick: () => void;
  icon?: typeof X;
  isDisabled?: boolean;
}

export function IconButton({ label, onClick, icon: Icon = X, isDisabled = false }: IconButtonProps) {
  return (
    <button
      type="button"
      className="btn btn-ghost btn-square btn-sm aria-disabled:opacity-40"
      aria-label={label}
      title={label}
      // It keeps the focus at the end of a list.
      aria-disabled={isDisabled || undefined}
      onClick={isDisabled ? undefined : onClick}
    >
      <Icon aria-hidden size={14} />
    </button>
  );
}

/** What can be added, behind one word: buttons, because arrow keys on a list would choose at once. */
export function AddMenu({
  label,
  choices,
  onAdd,
}: {
  label: string;
  choices: readonly { id: string; text: string }[];
  onAdd: (id: string) => void;
}) {
  const details = useRef<HTMLDetailsElement>(null);
  if (choices.length === 0) return null;
  return (
    <details ref={details} className="mt-2">
      <summary className="btn btn-ghost btn-sm -ml-3 text-primary">
        <Plus aria-hidden size={14} />
        {label}
      </summary>
      <div className="mt-1 flex flex-wrap gap-1">
        {choices.map(({ id, text }) => (
          <button
            key={id}
            type="button"
            className="btn btn-default btn-xs"
            onClick={() => {
              if (details.current) details.current.open = false;
              onAdd(id);
            }}
          >
            {text}
          </button>
        ))}
      </div>
    </details>
  );
}
