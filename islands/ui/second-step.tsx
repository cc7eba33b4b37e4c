// The second step of a sign-in: a code of the authenticator, one of the backup codes, or a passkey.
// Refuses to keep a flow that the server has given up: one begins anew then.
import { KeyRound } from "lucide-react";
import { useState } from "react";
import { failureMessage, isAbort, send } from "../lib/api.ts";
import { useForm } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { provePasskey } from "../lib/passkeys.ts";
import type { FactorAsked, SignedIn } from "../lib/sign-in.ts";
import { BusyButton } from "./busy-button.tsx";
import { Notice } from "./feedback.tsx";
import { isCodeComplete, OneTimeCode } from "./one-time-code.tsx";
import type { CodeValues } from "./one-time-code.tsx";

export interface SecondStepProps {
  asked: FactorAsked;
  onSignedIn: (answer: SignedIn) => void;
  /** Back to the first step. */
  onBack: () => void;
}

export default function SecondStep({ asked, onSignedIn, onBack }: SecondStepProps) {
  const t = useT();
  const has = (method: string) => asked.methods.includes(method);
  const [isBackup, setBackup] = useState(!has("totp") && has("backup"));
  const [refusal, setRefusal] = useState("");
  const [isAsking, setAsking] = useState(false);
  const form = useForm<CodeValues>({
    initial: { code: "" },
    secrets: ["code"],
    validate: ({ code }) => (isCodeComplete(code, isBackup) ? {} : { code: t("signin.codeMissing") }),
  });

  const attempt = async (run: () => Promise<SignedIn>) => {
    setRefusal("");
    try {
      onSignedIn(await run());
    } catch (error) {
      if (isAbort(error)) return;
      setRefusal(failureMessage(error));
      form.reset({ code: "" });
      form.element.current?.querySelector<HTMLElement>("[name=code]")?.focus();
    }
  };
  const submit = () =>
    form.submit(({ code }) =>
      attempt(() =>
        send<SignedIn>("POST", "/api/user/login/2fa", {
          body: { flow_token: asked.flow_token, code: code.trim() },
        }),
      ),
    );
  const askPasskey = async () => {
    setAsking(true);
    await attempt(async () =>
      send<SignedIn>("POST", "/api/user/passkey/login/finish", {
        body: { ...(await provePasskey("login")), flow_token_2fa: asked.flow_token },
      }),
    );
    setAsking(false);
  };

  return (
    <>
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      {has("totp") || has("backup") ? (
        <form
          ref={form.element}
          noValidate
          method="post"
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <p className="mb-4 text-muted">{t("signin.secondText")}</p>
          <OneTimeCode form={form} isBackup={isBackup} />
          <BusyButton isBusy={form.isBusy} className="btn-primary w-full">
            {t("signin.confirm")}
          </BusyButton>
        </form>
      ) : null}
      {has("passkey") ? (
        <BusyButton isBusy={isAsking} className="btn-default mt-2 w-full" onPress={() => void askPasskey()}>
          <KeyRound aria-hidden size={16} />
          {t("signin.usePasskey")}
        </BusyButton>
      ) : null}
      <div className="mt-4 flex flex-wrap justify-between gap-x-4 gap-y-2 text-sm">
        {has("totp") && has("backup") ? (
          <button
            type="button"
            className="link"
            onClick={() => {
              form.reset({ code: "" });
              setBackup(!isBackup);
            }}
          >
            {t(isBackup ? "signin.useCode" : "signin.useBackup")}
          </button>
        ) : null}
        <button type="button" className="link" onClick={onBack}>
          {t("signin.startOver")}
        </button>
      </div>
    </>
  );
}
