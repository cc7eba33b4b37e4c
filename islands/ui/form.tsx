// Fields: label above, hint below, the error in the hint's place, all wired for assistive technology.
// Refuses to echo secrets: an empty secret means "keep", what is typed is hidden until somebody wants to see it.
import { Eye, EyeOff, RotateCcw } from "lucide-react";
import { useId, useState } from "react";
import type { InputHTMLAttributes, ReactNode } from "react";
import { charactersIn } from "../../src/shared/name-limits.ts";
import type { Form, Values } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";

/** The last quarter of a limit is counted down. */
const NEAR_THE_LIMIT = 0.25;

/** What a control inside Field takes over. */
export interface ControlProps {
  id: string;
  "aria-invalid": boolean | undefined;
  "aria-describedby": string | undefined;
  required: boolean | undefined;
  onBlur: () => void;
}

interface CommonProps<V extends Values> {
  form: Form<V>;
  name: keyof V & string;
  label: string;
  hint?: ReactNode;
  isRequired?: boolean;
  isDisabled?: boolean;
  /** Characters that it takes: near the end, the label's line says how many are left. */
  limit?: number | undefined;
}

export interface FieldProps<V extends Values> extends CommonProps<V> {
  /** The control names itself (a group of inputs): the label is only its heading. */
  isGroup?: boolean;
  children: (control: ControlProps) => ReactNode;
}

/** Keeps the line of a hint that comes and goes with the value. */
export const NO_HINT = "\u00a0";

/** A line's room stands below every field, so that an error of one line moves nothing. */
export function Field<V extends Values>({
  form,
  name,
  label,
  hint,
  isRequired,
  isGroup,
  limit,
  children,
}: FieldProps<V>) {
  const t = useT();
  const Label = isGroup ? "span" : "label";
  const id = useId();
  const error = form.errors[name];
  const below = error ?? hint;
  const left = limit === undefined ? undefined : limit - charactersIn(String(form.values[name] ?? "").trim());
  const isNear = limit !== undefined && left !== undefined && left <= limit * NEAR_THE_LIMIT;
  const control: ControlProps = {
    id,
    "aria-invalid": error === undefined ? undefined : true,
    "aria-describedby":
      [below ? `${id}-below` : "", isNear ? `${id}-left` : ""].filter(Boolean).join(" ") || undefined,
    required: isRequired,
    onBlur: () => form.touch(name),
  };
  return (
    <div className={hint ? "mb-4" : error ? "mb-0.5" : "mb-6"} data-field={name}>
      <div className="mb-0.5 flex min-h-6 items-center gap-1">
        <Label className="text-dense font-semibold" {...(isGroup ? {} : { htmlFor: id })}>
          {label}
          {isRequired ? (
            <span className="text-error" aria-hidden>
              {" "}
              *
            </span>
          ) : null}
        </Label>
        {form.isChanged(name) ? (
          <button
            type="button"
            className="btn btn-ghost btn-xs px-1.5"
            aria-label={t("form.revert", { field: label })}
            title={t("form.revert", { field: label })}
            onClick={() => form.revert(name)}
          >
            <span className="status status-primary" aria-hidden />
            <RotateCcw aria-hidden size={12} />
          </button>
        ) : null}
        {isNear && left !== undefined ? (
          <span
            id={`${id}-left`}
            className={`ml-auto text-xs tabular-nums ${left < 0 ? "text-error" : "text-muted"}`}
          >
            {left < 0 ? t("form.tooMany", { count: -left }) : t("form.left", { count: left })}
          </span>
        ) : null}
      </div>
      {children(control)}
      {below ? (
        <p id={`${id}-below`} className={`mt-1 min-h-4.5 text-xs ${error ? "text-error" : "text-muted"}`}>
          {below}
        </p>
      ) : null}
    </div>
  );
}

type Passed = Pick<
  InputHTMLAttributes<HTMLInputElement>,
  "placeholder" | "autoComplete" | "autoFocus" | "maxLength" | "inputMode" | "spellCheck" | "list"
>;

export function TextField<V extends Values>({
  type = "text",
  isMono,
  suffix,
  input,
  ...field
}: CommonProps<V> & {
  type?: "text" | "email" | "url" | "password";
  isMono?: boolean;
  suffix?: ReactNode;
  input?: Passed;
}) {
  return (
    <Field {...field}>
      {(control) => {
        const box = (
          <input
            {...control}
            {...input}
            type={type}
            name={field.name}
            disabled={field.isDisabled}
            className={`${suffix ? "grow" : "input"} ${isMono ? "mono" : ""}`}
            value={String(field.form.values[field.name] ?? "")}
            onChange={(event) => field.form.set(field.name, event.target.value as V[typeof field.name])}
          />
        );
        return suffix ? (
          <div className="input" aria-invalid={control["aria-invalid"]}>
            {box}
            <span className="text-muted whitespace-nowrap">{suffix}</span>
          </div>
        ) : (
          box
        );
      }}
    </Field>
  );
}

/** Numbers stay text while they are typed; the form's value is a number, or undefined when empty or not a number. */
export function NumberField<V extends Values>({
  min,
  max,
  step,
  suffix,
  input,
  ...field
}: CommonProps<V> & {
  min?: number;
  max?: number;
  step?: number | "any";
  suffix?: ReactNode;
  input?: Passed;
}) {
  const value = field.form.values[field.name];
  const [text, setText] = useState<string>();
  const shown =
    text !== undefined && (text === "" ? undefined : Number(text)) === value ? text : String(value ?? "");
  return (
    <Field {...field}>
      {(control) => (
        <div className="input" aria-invalid={control["aria-invalid"]}>
          <input
            {...control}
            {...input}
            type="number"
            name={field.name}
            className="grow tabular-nums"
            min={min}
            max={max}
            step={step}
            disabled={field.isDisabled}
            value={shown}
            onChange={(event) => {
              setText(event.target.value);
              const number = event.target.value === "" ? undefined : Number(event.target.value);
              field.form.set(field.name, (Number.isNaN(number) ? undefined : number) as V[typeof field.name]);
            }}
          />
          {suffix ? <span className="text-muted whitespace-nowrap">{suffix}</span> : null}
        </div>
      )}
    </Field>
  );
}

export function TextAreaField<V extends Values>({
  rows = 3,
  isMono,
  placeholder,
  ...field
}: CommonProps<V> & { rows?: number; isMono?: boolean; placeholder?: string }) {
  return (
    <Field {...field}>
      {(control) => (
        <textarea
          {...control}
          name={field.name}
          rows={rows}
          placeholder={placeholder}
          disabled={field.isDisabled}
          spellCheck={isMono ? false : undefined}
          className={`textarea ${isMono ? "mono" : ""}`}
          value={String(field.form.values[field.name] ?? "")}
          onChange={(event) => field.form.set(field.name, event.target.value as V[typeof field.name])}
        />
      )}
    </Field>
  );
}

export interface Choice {
  value: string | number;
  label: string;
  isDisabled?: boolean;
}

export function SelectField<V extends Values>({
  choices,
  ...field
}: CommonProps<V> & { choices: readonly Choice[] }) {
  const value = field.form.values[field.name];
  return (
    <Field {...field}>
      {(control) => (
        <select
          {...control}
          name={field.name}
          className="select"
          disabled={field.isDisabled}
          value={String(value ?? "")}
          onChange={(event) => {
            const chosen = choices.find((each) => String(each.value) === event.target.value);
            if (chosen) field.form.set(field.name, chosen.value as V[typeof field.name]);
          }}
        >
          {choices.map((each) => (
            <option key={each.value} value={each.value} disabled={each.isDisabled}>
              {each.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A switch in one line with its label; the hint stands below. */
export function SwitchField<V extends Values>({ form, name, label, hint, isDisabled }: CommonProps<V>) {
  const id = useId();
  const error = form.errors[name];
  const below = error ?? hint;
  return (
    <div className="mb-4" data-field={name}>
      <label className="flex min-h-8 cursor-pointer items-center gap-4" htmlFor={id}>
        <span className="grow">
          {label}
          {form.isChanged(name) ? <span className="status status-primary ml-2" aria-hidden /> : null}
        </span>
        <input
          id={id}
          type="checkbox"
          role="switch"
          name={name}
          className="toggle"
          disabled={isDisabled}
          checked={form.values[name] === true}
          aria-describedby={below ? `${id}-below` : undefined}
          onChange={(event) => form.set(name, event.target.checked as V[typeof name])}
        />
      </label>
      {below ? (
        <p id={`${id}-below`} className={error ? "mt-1 text-xs text-error" : "mt-1 text-xs text-muted"}>
          {below}
        </p>
      ) : null}
    </div>
  );
}

/** `isSet`: the server has one; leaving the field empty keeps it. */
export function SecretField<V extends Values>({
  isSet,
  placeholder,
  rows,
  ...field
}: CommonProps<V> & { isSet: boolean; placeholder?: string; rows?: number }) {
  const t = useT();
  const [isShown, setShown] = useState(false);
  const value = String(field.form.values[field.name] ?? "");
  const set = (next: string) => field.form.set(field.name, next as V[typeof field.name]);
  const hint = field.hint ?? t(isSet ? "form.secret.keep" : "form.secret.none");
  const Icon = isShown ? EyeOff : Eye;
  return (
    <Field {...field} hint={hint}>
      {(control) =>
        rows === undefined ? (
          <div className="input" aria-invalid={control["aria-invalid"]}>
            <input
              {...control}
              type={isShown ? "text" : "password"}
              name={field.name}
              className="grow mono"
              autoComplete="new-password"
              spellCheck={false}
              placeholder={placeholder ?? (isSet ? "••••••••" : "")}
              value={value}
              onChange={(event) => set(event.target.value)}
            />
            <button
              type="button"
              className="btn btn-ghost btn-square btn-xs"
              aria-pressed={isShown}
              aria-label={t("form.secret.show")}
              onClick={() => setShown(!isShown)}
            >
              <Icon aria-hidden size={14} />
            </button>
          </div>
        ) : (
          <textarea
            {...control}
            name={field.name}
            rows={rows}
            className="textarea mono"
            autoComplete="off"
            spellCheck={false}
            placeholder={placeholder ?? (isSet ? "••••••••" : "")}
            value={value}
            onChange={(event) => set(event.target.value)}
          />
        )
      }
    </Field>
  );
}

/** A titled part of a form; folded ones show how many of their values are not the default. */
export function Section({
  title,
  count,
  isFolded,
  children,
}: {
  title: string;
  count?: number;
  isFolded?: boolean;
  children: ReactNode;
}) {
  const t = useT();
  if (isFolded === undefined) {
    return (
      <fieldset className="form-section">
        <legend>{title}</legend>
        {children}
      </fieldset>
    );
  }
  return (
    <details className="form-section" open={!isFolded || undefined}>
      <summary>
        {title}
        {count ? (
          <span className="badge badge-ghost badge-sm">{t("form.changedCount", { count })}</span>
        ) : null}
      </summary>
      <div>{children}</div>
    </details>
  );
}
