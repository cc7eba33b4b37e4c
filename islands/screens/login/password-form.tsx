// Sign-in by name and password: the form of the login page.
// Refuses to forget the name on an error.
import { useState } from "react";
import { ApiFailure, api, callForBody, failureMessage } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import type { SignInAnswer } from "../../lib/sign-in.ts";
import { Notice } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/form.tsx";
import { HumanCheckField, useHumanCheck } from "../../ui/human-check.tsx";

export interface PasswordFormProps {
  /** The name's field offers this device's passkeys, too. */
  offersPasskeys: boolean;
  onAnswer: (answer: SignInAnswer, password: string, isDefault: boolean) => void | Promise<void>;
}

export function PasswordForm({ offersPasskeys, onAnswer }: PasswordFormProps) {
  const t = useT();
  const [refusal, setRefusal] = useState("");
  const check = useHumanCheck();
  const form = useForm({ initial: { username: "", password: "" } });
  // Nothing is changed here, so nothing can be reverted.
  const plain = { ...form, isChanged: () => false };

  const submit = async ({ username, password }: { username: string; password: string }) => {
    if (username.trim() === "" || password === "") {
      setRefusal(t("login.empty"));
      form.element.current
        ?.querySelector<HTMLInputElement>(`[name=${username.trim() === "" ? "username" : "password"}]`)
        ?.focus();
      return;
    }
    if (!check.isReady) return setRefusal(t("login.check.wait"));
    setRefusal("");
    try {
      const sent = { username: username.trim(), password };
      const answer = await callForBody(api.user.login.post(sent, { query: check.query }));
      // A second factor is asked for in the place of the account.
      await onAnswer(answer.data as SignInAnswer, password, answer.default_credentials);
    } catch (error) {
      if (!(error instanceof ApiFailure)) console.error(error);
      setRefusal(failureMessage(error));
      check.renew();
      const field = form.element.current?.querySelector<HTMLInputElement>("[name=password]");
      field?.focus();
      field?.select();
    }
  };

  return (
    <form
      ref={form.element}
      noValidate
      method="post"
      aria-describedby={refusal ? "login-refusal" : undefined}
      onSubmit={(event) => {
        event.preventDefault();
        void form.submit(submit);
      }}
    >
      {refusal === "" ? null : (
        <div id="login-refusal">
          <Notice tone="error">{refusal}</Notice>
        </div>
      )}
      <TextField
        form={plain}
        name="username"
        label={t("login.username")}
        input={{
          autoComplete: offersPasskeys ? "username webauthn" : "username",
          autoFocus: true,
          maxLength: 255,
          spellCheck: false,
        }}
      />
      <TextField
        form={plain}
        name="password"
        type="password"
        label={t("login.password")}
        input={{ autoComplete: "current-password", maxLength: 255 }}
      />
      <HumanCheckField check={check} action="login" />
      <button
        type="submit"
        className="btn btn-primary w-full"
        aria-busy={form.isBusy}
        aria-disabled={form.isBusy}
      >
        {form.isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
        {t("login.submit")}
      </button>
    </form>
  );
}
