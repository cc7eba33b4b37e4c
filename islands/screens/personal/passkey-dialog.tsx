// A passkey gets its name: a new one before the browser asks for finger or face, an old one when it is renamed.
import { useState } from "react";
import { failureMessage, isAbort, send } from "../../lib/api.ts";
import type { PasskeyRow } from "../../lib/account-security.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { addPasskey } from "../../lib/passkeys.ts";
import { toast } from "../../lib/toasts.ts";
import { BusyButton } from "../../ui/busy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { TextField } from "../../ui/form.tsx";
import { Modal } from "../../ui/modal.tsx";

const MAX_NAME = 50;

export interface PasskeyDialogProps {
  /** Undefined: a new one. */
  row: PasskeyRow | undefined;
  /** How many there are: a new one's name counts on. */
  count: number;
  onClose: () => void;
  onDone: () => void;
}

export default function PasskeyDialog({ row, count, onClose, onDone }: PasskeyDialogProps) {
  const t = useT();
  const [refusal, setRefusal] = useState("");
  const form = useForm({
    initial: { name: row?.name ?? t("personal.passkeyName", { number: count + 1 }) },
    validate: ({ name }) => (name.trim() === "" ? { name: t("form.required") } : {}),
  });
  const submit = async ({ name }: { name: string }) => {
    setRefusal("");
    try {
      if (row) await send("PUT", `/api/user/passkey/${row.id}`, { body: { name: name.trim() } });
      else await addPasskey(name.trim());
      toast({ text: t(row ? "common.saved" : "personal.passkeyAdded") });
      onDone();
    } catch (error) {
      if (!isAbort(error)) setRefusal(failureMessage(error));
    }
  };
  return (
    <Modal title={t(row ? "personal.passkeyRename" : "personal.passkeyAdd")} onClose={onClose}>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void form.submit(submit);
        }}
      >
        {row ? null : <p className="mb-3 text-muted">{t("personal.passkeyText")}</p>}
        {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
        <TextField
          form={{ ...form, isChanged: () => false }}
          name="name"
          label={t("personal.passkeyNameLabel")}
          isRequired
          input={{ autoComplete: "off", autoFocus: true, maxLength: MAX_NAME }}
        />
        <div className="flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <BusyButton isBusy={form.isBusy} className="btn-primary">
            {t(row ? "common.save" : "personal.passkeyCreate")}
          </BusyButton>
        </div>
      </form>
    </Modal>
  );
}
