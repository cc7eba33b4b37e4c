// Sign-in with a name or e-mail and a password; default credentials raise the warning and can be changed at once.
// Refuses to forget the name on an error, and to go anywhere but to pages of this site.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { ApiFailure, api, callForBody, failureMessage } from "../lib/api.ts";
import { status, user } from "../lib/boot.ts";
import type { BootUser } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { KEYS, writeItem } from "../lib/storage.ts";
import { useQuery } from "../lib/url-state.ts";
import { confirm } from "../ui/confirm.tsx";
import { Notice } from "../ui/feedback.tsx";
import { TextField } from "../ui/form.tsx";
import { HumanCheckField, useHumanCheck } from "../ui/human-check.tsx";
import { ChangePassword } from "./login/change-password.tsx";
import { nextAddress } from "../lib/next-address.ts";

export default function LoginScreen() {
  const t = useT();
  useSignals();
  const query = useQuery();
  /** Set while the default password is being changed. */
  const [oldPassword, setOldPassword] = useState<string>();
  const visitor = user.value;
  const target = () => nextAddress(query.next, location.origin);
  const leave = () => location.assign(target());

  if (oldPassword !== undefined) {
    return (
      <section className="w-full max-w-90">
        <h1 className="mb-4">{t("login.change.title")}</h1>
        <ChangePassword oldPassword={oldPassword} onDone={leave} />
      </section>
    );
  }
  return (
    <section className="w-full max-w-90">
      <h1 className="mb-4">{t("login.title")}</h1>
      {query.expired === "true" ? (
        <Notice tone="info">{t("login.expired")}</Notice>
      ) : visitor ? (
        <Notice
          tone="info"
          action={
            <button type="button" className="btn btn-sm btn-default" onClick={leave}>
              {t("login.continue")}
            </button>
          }
        >
          {t("login.signedIn", { name: visitor.display_name || visitor.username })}
        </Notice>
      ) : null}
      <LoginForm
        onSignedIn={async (password, isDefault) => {
          if (!isDefault) return leave();
          const yes = await confirm({
            title: t("login.default.title"),
            text: t("login.default.text"),
            action: t("login.default.action"),
          });
          if (yes) setOldPassword(password);
          else leave();
        }}
      />
      <OtherWays />
    </section>
  );
}

/** Ways for those who cannot sign in: what the site has of them. */
function OtherWays() {
  const t = useT();
  useSignals();
  const { register_enabled: canRegister, reset_enabled: canReset } = status.value;
  if (canRegister !== true && canReset !== true) return null;
  return (
    <div className="mt-4 flex flex-wrap justify-between gap-x-4 gap-y-2 text-sm">
      {canRegister === true ? (
        <p className="text-muted">
          {t("login.noAccount")}{" "}
          <a className="link" href="/register">
            {t("login.register")}
          </a>
        </p>
      ) : null}
      {canReset === true ? (
        <a className="link" href="/reset">
          {t("login.forgot")}
        </a>
      ) : null}
    </div>
  );
}

function LoginForm({
  onSignedIn,
}: {
  onSignedIn: (password: string, isDefault: boolean) => void | Promise<void>;
}) {
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
      const { data } = answer;
      if ("require_2fa" in data) throw new Error("a second factor is asked for");
      const signedIn: BootUser = { quota: 0, ...data };
      writeItem(KEYS.user, JSON.stringify(data));
      user.value = signedIn;
      await onSignedIn(password, answer.default_credentials);
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
        input={{ autoComplete: "username", autoFocus: true, maxLength: 255, spellCheck: false }}
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
