// A forgotten password, first half: asks for the address and has a link sent.
// Refuses to say whether the address has an account: the answer is the same for all.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { ApiFailure, api, call, failureMessage } from "../lib/api.ts";
import { status } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { useLockTime } from "../lib/lock-time.ts";
import { Notice } from "../ui/feedback.tsx";
import { TextField } from "../ui/form.tsx";
import { HumanCheckField, useHumanCheck } from "../ui/human-check.tsx";

const LOCK_SECONDS = 30;

export default function ResetScreen() {
  const t = useT();
  useSignals();
  return (
    <section className="w-full max-w-90">
      <h1 className="mb-4">{t("reset.title")}</h1>
      {status.value.reset_enabled === false ? (
        <Notice tone="info">{t("reset.unavailable")}</Notice>
      ) : (
        <ResetForm />
      )}
      <p className="mt-4 text-sm">
        <a className="link" href="/login">
          {t("reset.back")}
        </a>
      </p>
    </section>
  );
}

function ResetForm() {
  const t = useT();
  const check = useHumanCheck();
  const lock = useLockTime();
  const [said, setSaid] = useState<{ tone: "info" | "error"; text: string }>();
  const form = useForm({
    initial: { email: "" },
    validate: ({ email }) => (email.includes("@") ? {} : { email: t("reset.emailMissing") }),
  });
  const plain = { ...form, isChanged: () => false };
  const isLocked = form.isBusy || lock.seconds > 0 || !check.isReady;

  const submit = async () => {
    setSaid(undefined);
    try {
      const isAsked = await form.submit(async ({ email }) => {
        await call(api.reset_password.get({ query: { email: email.trim(), ...check.query } }));
      });
      if (!isAsked) return;
      lock.start(LOCK_SECONDS);
      setSaid({ tone: "info", text: t("reset.sent") });
    } catch (error) {
      if (error instanceof ApiFailure && error.retryAfterSeconds !== undefined)
        lock.start(error.retryAfterSeconds);
      setSaid({ tone: "error", text: failureMessage(error) });
    } finally {
      check.renew();
    }
  };

  return (
    <form
      ref={form.element}
      noValidate
      method="post"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isLocked) void submit();
      }}
    >
      {said === undefined ? <p className="mb-4 text-muted">{t("reset.purpose")}</p> : null}
      {said === undefined ? null : <Notice tone={said.tone}>{said.text}</Notice>}
      <TextField
        form={plain}
        name="email"
        type="email"
        label={t("reset.email")}
        isRequired
        input={{ autoComplete: "email", autoFocus: true, maxLength: 254, spellCheck: false }}
      />
      <HumanCheckField check={check} action="reset" />
      <button
        type="submit"
        className="btn btn-primary w-full tabular-nums"
        aria-busy={form.isBusy}
        aria-disabled={isLocked}
      >
        {lock.seconds > 0 ? t("reset.againIn", { seconds: lock.seconds }) : t("reset.submit")}
      </button>
    </form>
  );
}
