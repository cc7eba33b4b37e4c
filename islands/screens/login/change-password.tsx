// A new password in place of the default one, right after signing in with it.
// Refuses the old password again, and lengths that the server would refuse.
import { useState } from "react";
import { MAX_PASSWORD, MIN_PASSWORD } from "../../../src/shared/name-limits.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { Notice } from "../../ui/feedback.tsx";
import { toast } from "../../lib/toasts.ts";
import { TextField } from "../../ui/form.tsx";

export function ChangePassword({ oldPassword, onDone }: { oldPassword: string; onDone: () => void }) {
  const t = useT();
  const [refusal, setRefusal] = useState("");
  const form = useForm({
    initial: { password: "", confirmation: "" },
    validate({ password, confirmation }) {
      const errors: Partial<Record<"password" | "confirmation", string>> = {};
      if (Array.from(password).length < MIN_PASSWORD) errors.password = t("login.change.short");
      else if (Array.from(password).length > MAX_PASSWORD) errors.password = t("login.change.long");
      else if (password === oldPassword) errors.password = t("login.change.same");
      if (confirmation !== password) errors.confirmation = t("login.change.differ");
      return errors;
    },
  });
  const plain = { ...form, isChanged: () => false };

  const submit = async ({ password }: { password: string }) => {
    setRefusal("");
    try {
      await call(api.user.self.put({ password, original_password: oldPassword }));
      toast({ text: t("login.change.done") });
      onDone();
    } catch (error) {
      setRefusal(failureMessage(error));
    }
  };

  return (
    <form
      ref={form.element}
      noValidate
      method="post"
      onSubmit={(event) => {
        event.preventDefault();
        void form.submit(submit);
      }}
    >
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      {/* Tells password managers whose password this is. */}
      <input
        type="text"
        name="username"
        autoComplete="username"
        value={user.peek()?.username ?? ""}
        readOnly
        hidden
      />
      <TextField
        form={plain}
        name="password"
        type="password"
        label={t("login.change.new")}
        hint={t("login.change.hint")}
        input={{ autoComplete: "new-password", autoFocus: true }}
      />
      <TextField
        form={plain}
        name="confirmation"
        type="password"
        label={t("login.change.confirm")}
        input={{ autoComplete: "new-password" }}
      />
      <div className="flex flex-wrap gap-2">
        <button type="submit" className="btn btn-primary grow" aria-busy={form.isBusy} disabled={form.isBusy}>
          {t("login.change.submit")}
        </button>
        <button type="button" className="btn btn-default" onClick={onDone}>
          {t("login.change.later")}
        </button>
      </div>
    </form>
  );
}
