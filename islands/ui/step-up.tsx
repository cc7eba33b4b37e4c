// "Is it still you?": asked before a call that could take the account away; the call goes on after the proof (lib/step-up.ts).
// Refuses to show ways that the account does not have, and to shut without an answer.
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { failureMessage, isAbort, send } from "../lib/api.ts";
import { address, user } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { provePasskey } from "../lib/passkeys.ts";
import { signInFlags, startProvider } from "../lib/sign-in.ts";
import type { ProofMethod, ProofQuestion } from "../lib/step-up.ts";
import { BusyButton } from "./busy-button.tsx";
import { Notice } from "./feedback.tsx";
import { TextField } from "./form.tsx";
import { Modal } from "./modal.tsx";
import { OneTimeCode } from "./one-time-code.tsx";

const PROVIDER = "provider:";

interface ProofValues extends Record<string, unknown> {
  code: string;
  password: string;
}

/** The strongest and quickest first; leaving the page last. */
function inOrder(methods: readonly ProofMethod[]): ProofMethod[] {
  const known = ["passkey", "2fa", "password"].filter((each) => methods.includes(each));
  return [...known, ...methods.filter((each) => each.startsWith(PROVIDER))];
}

export default function StepUpDialog({ question }: { question: ProofQuestion }) {
  const t = useT();
  const methods = inOrder(question.methods);
  const [method, setMethod] = useState(methods[0]);
  const [isBackup, setBackup] = useState(false);
  const [refusal, setRefusal] = useState("");
  const form = useForm<ProofValues>({ initial: { code: "", password: "" }, secrets: ["code", "password"] });
  const providerOf = (id: ProofMethod) => id.slice(PROVIDER.length);
  const labelOf = (id: string) =>
    signInFlags().sign_in_providers?.find((provider) => provider.id === id)?.label ?? id;
  const nameOf = (each: ProofMethod) =>
    each.startsWith(PROVIDER)
      ? t("signin.proof.provider", { name: labelOf(providerOf(each)) })
      : t(`signin.proof.${each}`);

  const prove = async ({ code, password }: ProofValues) => {
    setRefusal("");
    try {
      if (method?.startsWith(PROVIDER)) {
        await startProvider({ provider: providerOf(method), intent: "verify", next: address.peek() });
        return;
      }
      const proof =
        method === "passkey"
          ? await provePasskey("verify")
          : method === "2fa"
            ? { code: code.trim() }
            : { password };
      await send("POST", "/api/verify", { body: { method, ...proof } });
      question.answer(true);
    } catch (error) {
      if (isAbort(error)) return;
      setRefusal(failureMessage(error));
      form.reset();
      form.element.current?.querySelector<HTMLElement>("input:not([hidden])")?.focus();
    }
  };
  const others = methods.filter((each) => each !== method);

  return (
    <Modal title={t("signin.proof.title")} onClose={() => question.answer(false)}>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void form.submit(prove);
        }}
      >
        <p className="mb-3 text-muted">
          {t(method === undefined ? "signin.proof.none" : "signin.proof.text")}
        </p>
        {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
        <input type="text" autoComplete="username" value={user.peek()?.username ?? ""} readOnly hidden />
        {method === "password" ? (
          <TextField
            form={{ ...form, isChanged: () => false }}
            name="password"
            type="password"
            label={t("signin.proof.passwordField")}
            input={{ autoComplete: "current-password", autoFocus: true }}
          />
        ) : method === "2fa" ? (
          <>
            <OneTimeCode form={form} isBackup={isBackup} />
            <button
              type="button"
              className="link mb-4 text-sm"
              onClick={() => {
                form.reset();
                setBackup(!isBackup);
              }}
            >
              {t(isBackup ? "signin.useCode" : "signin.useBackup")}
            </button>
          </>
        ) : method?.startsWith(PROVIDER) ? (
          <p className="mb-4">{t("signin.proof.leaves", { name: labelOf(providerOf(method)) })}</p>
        ) : null}
        <div className="flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={() => question.answer(false)}>
            {t("common.cancel")}
          </button>
          {method === undefined ? (
            <a className="btn btn-primary" href={`/login?next=${encodeURIComponent(address.peek())}`}>
              {t("signin.proof.signInAgain")}
            </a>
          ) : (
            <BusyButton isBusy={form.isBusy} className="btn-primary">
              {method === "passkey" ? <KeyRound aria-hidden size={16} /> : null}
              {method === "passkey" || method.startsWith(PROVIDER) ? nameOf(method) : t("signin.confirm")}
            </BusyButton>
          )}
        </div>
        {others.length === 0 ? null : (
          <div className="mt-4 border-t border-base-300 pt-3">
            <p className="text-sm text-muted">{t("signin.proof.instead")}</p>
            <ul className="mt-1 flex flex-wrap gap-x-4 gap-y-1 text-sm">
              {others.map((each) => (
                <li key={each}>
                  <button
                    type="button"
                    className="link"
                    onClick={() => {
                      setRefusal("");
                      setMethod(each);
                    }}
                  >
                    {nameOf(each)}
                  </button>
                </li>
              ))}
            </ul>
          </div>
        )}
      </form>
    </Modal>
  );
}
