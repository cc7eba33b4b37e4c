// State of a form: values, what changed, errors per field, validation on blur, drafts that survive a reload.
// Refuses to store secrets in drafts and to submit twice at once.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiFailure, LEAVING } from "./api.ts";
import { user } from "./boot.ts";
import { afterPress, watchPresses } from "./press.ts";

export type Values = Record<string, unknown>;
export type Errors<V> = Partial<Record<keyof V & string, string>>;

export interface FormOptions<V extends Values> {
  /** Values at load; a new object with other contents starts the form anew. */
  initial: V;
  /** Texts of what is wrong, already translated; called on blur and on submit. */
  validate?: (values: V) => Errors<V>;
  /** Keeps a draft in session storage under this key until the form is saved or closed. */
  draftKey?: string;
  /**
   * Keeps what was typed under this key where the session has run out, until the form is there again after the sign-in. Unlike
   * a draft it is for what exists already, and survives nothing else.
   */
  awayKey?: string;
  /** Fields that never go into a draft. */
  secrets?: readonly (keyof V & string)[];
}

export interface Form<V extends Values> {
  values: V;
  errors: Errors<V>;
  isDirty: boolean;
  isBusy: boolean;
  set: <K extends keyof V & string>(name: K, value: V[K]) => void;
  /** Called when a field loses the focus: from then on it is checked while typing. Waits for the end of a press. */
  touch: (name: keyof V & string) => void;
  isChanged: (name: keyof V & string) => boolean;
  revert: (name: keyof V & string) => void;
  reset: (values?: V) => void;
  fail: (name: keyof V & string, text: string) => void;
  /** Validates, runs, and puts a refused field's text at its field. False: nothing was saved. Other failures are thrown. */
  submit: (run: (values: V, changed: Partial<V>) => Promise<void>) => Promise<boolean>;
  /** Give it to the form element: the first wrong field gets the focus. */
  element: React.RefObject<HTMLFormElement | null>;
}

function same(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** Of this account: another one may sign in instead. */
const awayName = (key: string | undefined): string | undefined =>
  key === undefined ? undefined : `${user.peek()?.id ?? 0} ${key}`;

function readDraft<V extends Values>({ draftKey, awayKey }: FormOptions<V>): Partial<V> | undefined {
  const key = draftKey ?? awayName(awayKey);
  if (key === undefined) return undefined;
  try {
    const text = sessionStorage.getItem(`draft ${key}`);
    if (draftKey === undefined) dropDraft(key);
    return text ? (JSON.parse(text) as Partial<V>) : undefined;
  } catch {
    return undefined;
  }
}

function dropDraft(key: string | undefined): void {
  if (key === undefined) return;
  try {
    sessionStorage.removeItem(`draft ${key}`);
  } catch {
    // Without storage there was no draft either.
  }
}

/** Keeps what was typed, without secrets, when the page is left: for the login page or for good. */
function useSavedDraft<V extends Values>(latest: { current: { values: V; options: FormOptions<V> } }): void {
  const saveDraft = useCallback((isAway: boolean) => {
    const { values: current, options: now } = latest.current;
    const key = now.draftKey ?? (isAway ? awayName(now.awayKey) : undefined);
    if (key === undefined) return;
    const kept = Object.fromEntries(
      Object.entries(current).filter(
        ([name, value]) => !now.secrets?.includes(name) && !same(value, now.initial[name]),
      ),
    );
    try {
      if (Object.keys(kept).length === 0) sessionStorage.removeItem(`draft ${key}`);
      else sessionStorage.setItem(`draft ${key}`, JSON.stringify(kept));
    } catch {
      // A full storage loses the draft, not the form.
    }
  }, []);

  useEffect(() => {
    const onAway = () => saveDraft(true);
    const onHide = () => saveDraft(false);
    window.addEventListener(LEAVING, onAway);
    window.addEventListener("pagehide", onHide);
    return () => {
      window.removeEventListener(LEAVING, onAway);
      window.removeEventListener("pagehide", onHide);
    };
  }, [saveDraft]);
}

export function useForm<V extends Values>(options: FormOptions<V>): Form<V> {
  const { validate, draftKey } = options;
  const contents = JSON.stringify(options.initial);
  const initial = useMemo(() => options.initial, [contents]);
  const [base, setBase] = useState(initial);
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState<Errors<V>>({});
  const [isBusy, setBusy] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  /** Fields that were left, at once and not with the next render: several events may come before it. */
  const touched = useRef<ReadonlySet<string>>(new Set());
  /** The server's words at fields: they stay until the field's value changes, whatever is checked meanwhile. */
  const refused = useRef<Errors<V>>({});
  const rounds = useRef(0);
  const latest = useRef({ values, options });
  latest.current = { values, options };

  useEffect(() => {
    const draft = readDraft<V>(latest.current.options);
    setBase(initial);
    setValues(draft ? { ...initial, ...draft } : initial);
    setErrors({});
    refused.current = {};
    touched.current = new Set();
  }, [initial, draftKey]);

  useSavedDraft(latest);
  useEffect(watchPresses, []);

  const check = (next: V, names: ReadonlySet<string>) => {
    const found = latest.current.options.validate?.(next) ?? {};
    const asked = Object.fromEntries(Object.entries(found).filter(([name]) => names.has(name))) as Errors<V>;
    setErrors({ ...refused.current, ...asked });
  };
  const changedNames = Object.keys(values).filter((name) => !same(values[name], base[name]));

  return {
    values,
    errors,
    isBusy,
    element,
    isDirty: changedNames.length > 0,
    set(name, value) {
      const next = { ...latest.current.values, [name]: value };
      latest.current.values = next;
      setValues(next);
      delete refused.current[name];
      if (touched.current.has(name) || errors[name] !== undefined)
        check(next, new Set([...touched.current, ...Object.keys(errors)]));
    },
    touch(name) {
      const round = rounds.current;
      afterPress(() => {
        // The press has put the form back.
        if (round !== rounds.current) return;
        touched.current = new Set([...touched.current, name]);
        check(latest.current.values, touched.current);
      });
    },
    isChanged: (name) => !same(values[name], base[name]),
    revert(name) {
      const next = { ...latest.current.values, [name]: base[name] };
      latest.current.values = next;
      setValues(next);
    },
    reset(next = initial) {
      rounds.current++;
      dropDraft(draftKey);
      setBase(next);
      setValues(next);
      setErrors({});
      refused.current = {};
      touched.current = new Set();
    },
    fail(name, text) {
      refused.current = { ...refused.current, [name]: text };
      setErrors((before) => ({ ...before, [name]: text }));
    },
    async submit(run) {
      if (isBusy) return false;
      const current = latest.current.values;
      const found = validate?.(current) ?? {};
      setErrors(found);
      refused.current = {};
      touched.current = new Set(Object.keys(current));
      if (Object.keys(found).length > 0) {
        focusFirstWrong(element.current);
        return false;
      }
      setBusy(true);
      try {
        const changed = Object.fromEntries(changedNames.map((name) => [name, current[name]])) as Partial<V>;
        await run(current, changed);
        dropDraft(draftKey);
        setBase(current);
        return true;
      } catch (error) {
        if (error instanceof ApiFailure && error.field !== undefined && error.field in current) {
          refused.current = { [error.field]: error.message } as Errors<V>;
          setErrors(refused.current);
          focusFirstWrong(element.current);
          return false;
        }
        throw error;
      } finally {
        setBusy(false);
      }
    },
  };
}

/** After the errors are in the page. */
function focusFirstWrong(form: HTMLFormElement | null): void {
  setTimeout(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
}
