// The address and the code that proves it: asks for a code, counts down until another may be asked for.
import { useState } from "react";
import { api, call, ApiFailure, failureMessage } from "../lib/api.ts";
import type { Form } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { useLockTime } from "../lib/lock-time.ts";
import { announce } from "../lib/toasts.ts";
import { Field, TextField } from "./form.tsx";
import type { HumanCheck } from "./human-check.tsx";

const LOCK_SECONDS = 30;

/** By the names that the server's refusals use. */
export interface CodeValues extends Record<string, unknown> {
  email: string;
  verification_code: string;
}

interface CodeFieldsProps<V extends CodeValues> {
  form: Form<V>;
  /** What strangers are asked for; nobody asks those who are signed in. */
  check: Pick<HumanCheck, "query" | "isReady" | "renew">;
}

export function CodeFields<V extends CodeValues>({ form, check }: CodeFieldsProps<V>) {
  const t = useT();
  const lock = useLockTime();
  const [isBusy, setBusy] = useState(false);
  const [sentTo, setSentTo] = useState("");

  const send = async () => {
    const email = form.values.email.trim();
    if (!email.includes("@")) {
      form.fail("email", t("register.emailMissing"));
      form.element.current?.querySelector<HTMLElement>("[name=email]")?.focus();
      return;
    }
    setBusy(true);
    try {
      await call(api.verification.get({ query: { email, ...check.query } }));
      lock.start(LOCK_SECONDS);
      setSentTo(email);
      announce("register.codeSentNow");
      form.element.current?.querySelector<HTMLElement>("[name=verification_code]")?.focus();
    } catch (error) {
      form.fail("email", failureMessage(error));
      if (error instanceof ApiFailure && error.retryAfterSeconds !== undefined)
        lock.start(error.retryAfterSeconds);
      check.renew();
    } finally {
      setBusy(false);
    }
  };
  const isLocked = isBusy || lock.seconds > 0 || !check.isReady;

  return (
    <>
      <TextField
        form={form}
        name="email"
        type="email"
        label={t("register.email")}
        isRequired
        input={{ autoComplete: "email", maxLength: 254, spellCheck: false }}
      />
      <Field
        form={form}
        name="verification_code"
        label={t("register.code")}
        isRequired
        hint={sentTo === "" ? undefined : t("register.codeSent", { email: sentTo })}
      >
        {(control) => (
          <div className="flex gap-2">
            <input
              {...control}
              name="verification_code"
              className="input mono min-w-0 flex-1"
              inputMode="numeric"
              autoComplete="one-time-code"
              spellCheck={false}
              value={form.values.verification_code}
              onChange={(event) =>
                form.set(
                  "verification_code",
                  event.target.value.replaceAll(/\D/g, "").slice(0, 6) as V["verification_code"],
                )
              }
            />
            <button
              type="button"
              className="btn btn-default tabular-nums"
              aria-disabled={isLocked}
              aria-busy={isBusy}
              onClick={() => {
                if (!isLocked) void send();
              }}
            >
              {lock.seconds > 0
                ? t("register.sendAgainIn", { seconds: lock.seconds })
                : sentTo === ""
                  ? t("register.send")
                  : t("register.sendAgain")}
            </button>
          </div>
        )}
      </Field>
    </>
  );
}
