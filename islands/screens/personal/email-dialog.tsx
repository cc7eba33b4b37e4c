// The address of one's own account is set or changed: a code goes to the new one, and what proves it comes back from there.
// Refuses nothing by itself: whether somebody else has the address, only its own mailbox is told.
import { useState } from "react";
import { ApiFailure, failureMessage, isAbort, send } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { toast } from "../../lib/toasts.ts";
import { BusyButton } from "../../ui/busy-button.tsx";
import { CodeFields } from "../../ui/code-fields.tsx";
import type { CodeValues } from "../../ui/code-fields.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Modal } from "../../ui/modal.tsx";

export interface EmailDialogProps {
  /** Empty: there is none yet. */
  before: string;
  onClose: () => void;
  onDone: (email: string) => void;
}

/** Whoever is signed in has shown to be a person. */
const NO_CHECK = { query: {}, isReady: true, renew: () => undefined };

export default function EmailDialog({ before, onClose, onDone }: EmailDialogProps) {
  const t = useT();
  const [refusal, setRefusal] = useState("");
  const form = useForm<CodeValues>({
    initial: { email: "", verification_code: "" },
    secrets: ["verification_code"],
    validate: ({ email, verification_code: code }) => ({
      ...(email.includes("@") ? {} : { email: t("register.emailMissing") }),
      ...(code === "" ? { verification_code: t("register.codeMissing") } : {}),
    }),
  });
  const submit = async ({ email, verification_code: code }: CodeValues) => {
    setRefusal("");
    try {
      await send("POST", "/api/oauth/email/bind", { body: { email: email.trim(), code } });
      toast({ text: t("personal.emailSet", { email: email.trim() }) });
      onDone(email.trim());
    } catch (error) {
      if (error instanceof ApiFailure && error.field === "email") throw error;
      if (error instanceof ApiFailure && error.field === "code") {
        const { code: name, status, message } = error;
        throw new ApiFailure(name, status, message, "verification_code");
      }
      if (!isAbort(error)) setRefusal(failureMessage(error));
    }
  };
  return (
    <Modal title={t(before === "" ? "personal.emailBind" : "personal.emailChange")} onClose={onClose}>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void form.submit(submit);
        }}
      >
        <p className="mb-3 text-muted">
          {before === "" ? t("personal.emailText") : t("personal.emailChangeText", { email: before })}
        </p>
        {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
        <CodeFields form={{ ...form, isChanged: () => false }} check={NO_CHECK} />
        <div className="flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <BusyButton isBusy={form.isBusy} className="btn-primary">
            {t(before === "" ? "personal.bind" : "personal.emailSave")}
          </BusyButton>
        </div>
      </form>
    </Modal>
  );
}
