// An authenticator is set up: a picture to scan with the secret beside it, and a first code that proves it was taken over.
import { encode } from "uqr";
import { useState } from "react";
import { failureMessage, send } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { BusyButton } from "../../ui/busy-button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Modal } from "../../ui/modal.tsx";
import { isCodeComplete, OneTimeCode } from "../../ui/one-time-code.tsx";
import type { CodeValues } from "../../ui/one-time-code.tsx";

/** What the server offers; nothing is in force before a right code came back. */
export interface TotpOffer {
  secret: string;
  uri: string;
  flow_token: string;
}

export interface TotpSetupProps {
  offer: TotpOffer;
  onClose: () => void;
  onEnabled: (backupCodes: readonly string[]) => void;
}

/** Dark modules as one path: each run of a line is one rectangle. */
function qrPath(text: string): { path: string; size: number } {
  const { data, size } = encode(text, { border: 2 });
  const parts: string[] = [];
  data.forEach((line, y) => {
    for (let x = 0; x < line.length; x++) {
      if (!line[x]) continue;
      const from = x;
      while (line[x + 1]) x++;
      parts.push(`M${from} ${y}h${x + 1 - from}v1H${from}z`);
    }
  });
  return { path: parts.join(""), size };
}

function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = qrPath(text);
  // Cameras want dark on light, whatever the theme.
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="mx-auto my-3 size-48 rounded-box bg-white"
    >
      <path d={path} fill="black" />
    </svg>
  );
}

export default function TotpSetup({ offer, onClose, onEnabled }: TotpSetupProps) {
  const t = useT();
  const [refusal, setRefusal] = useState("");
  const form = useForm<CodeValues>({
    initial: { code: "" },
    secrets: ["code"],
    validate: ({ code }) => (isCodeComplete(code, false) ? {} : { code: t("signin.codeMissing") }),
  });
  const submit = async ({ code }: CodeValues) => {
    setRefusal("");
    try {
      const { backup_codes: codes } = await send<{ backup_codes: string[] }>("POST", "/api/user/2fa/enable", {
        body: { code, flow_token: offer.flow_token },
      });
      onEnabled(codes);
    } catch (error) {
      setRefusal(failureMessage(error));
      form.reset({ code: "" });
      form.element.current?.querySelector<HTMLElement>("[name=code]")?.focus();
    }
  };
  return (
    <Modal title={t("personal.totpTitle")} onClose={onClose}>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void form.submit(submit);
        }}
      >
        <p className="text-muted">{t("personal.totpScan")}</p>
        <QrCode text={offer.uri} label={t("personal.totpPicture")} />
        <p className="text-sm text-muted">{t("personal.totpSecret")}</p>
        <p className="mb-3 flex items-center gap-2">
          <code className="mono text-sm break-all select-all">{offer.secret}</code>
          <CopyButton text={offer.secret} label={t("personal.totpCopy")} />
        </p>
        {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
        <OneTimeCode form={form} />
        <div className="flex flex-wrap justify-end gap-2">
          <button type="button" className="btn btn-default" onClick={onClose}>
            {t("common.cancel")}
          </button>
          <BusyButton isBusy={form.isBusy} className="btn-primary">
            {t("personal.totpEnable")}
          </BusyButton>
        </div>
      </form>
    </Modal>
  );
}
