// The first sign-in by a provider makes an account: what has to be accepted before, and the way back to the provider.
import { useState } from "react";
import { failureMessage } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import type { LegalPlaces } from "../../lib/sign-in.ts";
import { BusyButton } from "../../ui/busy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Terms } from "../../ui/terms.tsx";

export interface UnacceptedProps {
  name: string;
  places: LegalPlaces | null;
  onAccept: () => Promise<void>;
}

export function Unaccepted({ name, places, onAccept }: UnacceptedProps) {
  const t = useT();
  const [isAccepted, setAccepted] = useState(false);
  const [isMissing, setMissing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const submit = async () => {
    if (!isAccepted) return setMissing(true);
    setBusy(true);
    try {
      await onAccept();
    } catch (error) {
      setRefusal(failureMessage(error));
      setBusy(false);
    }
  };
  return (
    <form
      noValidate
      method="post"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p className="mb-4 text-muted">{t("signin.callback.termsText", { name })}</p>
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      <Terms
        places={places}
        isAccepted={isAccepted}
        onChange={(next) => {
          setAccepted(next);
          setMissing(false);
        }}
        error={isMissing ? t("signin.termsMissing") : undefined}
      />
      <BusyButton isBusy={isBusy} className="btn-primary w-full">
        {t("signin.callback.goOn", { name })}
      </BusyButton>
      <p className="mt-4 text-sm">
        <a className="link" href="/login">
          {t("signin.callback.others")}
        </a>
      </p>
    </form>
  );
}
