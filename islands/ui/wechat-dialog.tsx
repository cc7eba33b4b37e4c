// WeChat: the picture that leads to the site's account, and the code that it answers with.
// Refuses to hide that codes end: their three minutes are counted from when the picture is shown.
import { useEffect, useState } from "react";
import { ApiFailure, failureMessage, send } from "../lib/api.ts";
import { boot } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { useLockTime } from "../lib/lock-time.ts";
import { signInFlags } from "../lib/sign-in.ts";
import type { LegalPlaces, SignInAnswer } from "../lib/sign-in.ts";
import { BusyButton } from "./busy-button.tsx";
import { Notice } from "./feedback.tsx";
import { TextField } from "./form.tsx";
import { HumanCheckField, useHumanCheck } from "./human-check.tsx";
import { Modal } from "./modal.tsx";
import { Terms } from "./terms.tsx";

const CODE_SECONDS = 180;

export interface WeChatDialogProps {
  intent: "signin" | "bind";
  acceptTerms?: boolean;
  aff?: string | undefined;
  onClose: () => void;
  /** With the answer of a sign-in. */
  onDone: (answer?: SignInAnswer) => void;
}

export default function WeChatDialog({
  intent,
  acceptTerms = false,
  aff,
  onClose,
  onDone,
}: WeChatDialogProps) {
  const t = useT();
  const check = useHumanCheck();
  const { seconds, start } = useLockTime();
  const [refusal, setRefusal] = useState("");
  const [asksTerms, setAsksTerms] = useState(false);
  const [isAccepted, setAccepted] = useState(acceptTerms);
  const isSignIn = intent === "signin";
  const form = useForm({
    initial: { code: "" },
    validate: ({ code }) => (code.trim() === "" ? { code: t("signin.wechatMissing") } : {}),
  });
  useEffect(() => start(CODE_SECONDS), [start]);

  const submit = async (code: string) => {
    if (isSignIn && !check.isReady) return setRefusal(t("signin.checkWait"));
    setRefusal("");
    try {
      const answer = await send<SignInAnswer>(
        "GET",
        isSignIn ? "/api/oauth/wechat" : "/api/oauth/wechat/bind",
        {
          query: {
            code: code.trim(),
            ...(isSignIn
              ? { ...check.query, aff: aff || undefined, accept_terms: isAccepted ? "true" : undefined }
              : {}),
          },
        },
      );
      onDone(isSignIn ? answer : undefined);
    } catch (error) {
      if (error instanceof ApiFailure && error.code === "terms_unaccepted") setAsksTerms(true);
      setRefusal(failureMessage(error));
      check.renew();
    }
  };
  const minutes = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

  return (
    <Modal title={t(isSignIn ? "signin.wechatTitle" : "signin.wechatBind")} onClose={onClose}>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void form.submit(({ code }) => submit(code));
        }}
      >
        <p className="text-muted">{t("signin.wechatText")}</p>
        <img
          className="mx-auto my-4 size-48 rounded-box bg-white object-contain"
          src={signInFlags().wechat_qrcode}
          alt={t("signin.wechatPicture")}
          width={192}
          height={192}
        />
        {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
        <TextField
          form={{ ...form, isChanged: () => false }}
          name="code"
          label={t("signin.wechatCode")}
          hint={seconds > 0 ? t("signin.wechatLeft", { time: minutes }) : t("signin.wechatOver")}
          isMono
          input={{ autoComplete: "one-time-code", autoFocus: true, maxLength: 64, spellCheck: false }}
        />
        {asksTerms ? (
          <Terms
            places={boot.peek().data as LegalPlaces | null}
            isAccepted={isAccepted}
            onChange={setAccepted}
          />
        ) : null}
        {isSignIn ? <HumanCheckField check={check} action="wechat" /> : null}
        <div className="flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <BusyButton isBusy={form.isBusy} className="btn-primary">
            {t(isSignIn ? "signin.wechatSubmit" : "signin.wechatBindSubmit")}
          </BusyButton>
        </div>
      </form>
    </Modal>
  );
}
