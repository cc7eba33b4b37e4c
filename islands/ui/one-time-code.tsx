// The field of a one-time code: six digits that phones and password managers fill in, or one of the kept backup codes.
import type { Form, Values } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { Field } from "./form.tsx";

export interface CodeValues extends Values {
  code: string;
}

const DIGITS = 6;

export function OneTimeCode<V extends CodeValues>({
  form,
  isBackup = false,
}: {
  form: Form<V>;
  isBackup?: boolean;
}) {
  const t = useT();
  return (
    <Field
      form={{ ...form, isChanged: () => false }}
      name="code"
      label={t(isBackup ? "signin.backupCode" : "signin.code")}
      hint={t(isBackup ? "signin.backupHint" : "signin.codeHint")}
    >
      {(control) => (
        <input
          // Another field, not another text in the same one: keyboards and fill-ins follow.
          key={String(isBackup)}
          {...control}
          name="code"
          className="input mono"
          data-autofocus
          autoFocus
          inputMode={isBackup ? "text" : "numeric"}
          autoComplete={isBackup ? "off" : "one-time-code"}
          autoCapitalize="off"
          spellCheck={false}
          maxLength={isBackup ? 24 : undefined}
          value={form.values.code}
          onChange={({ target: { value } }) =>
            form.set("code", (isBackup ? value : value.replaceAll(/\D/g, "").slice(0, DIGITS)) as V["code"])
          }
        />
      )}
    </Field>
  );
}

/** Whether enough was typed to be sent. */
export function isCodeComplete(code: string, isBackup: boolean): boolean {
  return isBackup ? code.trim() !== "" : code.length === DIGITS;
}
