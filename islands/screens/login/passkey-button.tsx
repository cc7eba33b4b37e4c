// Sign-in by passkey: a button, and the list that browsers show below the name's field.
// Refuses to let the two ask at once: the button's ceremony ends the one that waits.
import { KeyRound } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { failureMessage, isAbort, send } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { authenticator, provePasskey } from "../../lib/passkeys.ts";
import type { PasskeyProof } from "../../lib/passkeys.ts";
import type { SignInAnswer } from "../../lib/sign-in.ts";
import { whenIdle } from "../../lib/when-idle.ts";
import { BusyButton } from "../../ui/busy-button.tsx";

export interface PasskeyButtonProps {
  /** Whether there is a name's field to offer passkeys below. */
  hasField: boolean;
  onAnswer: (answer: SignInAnswer) => void;
  onRefusal: (text: string) => void;
}

export function PasskeyButton({ hasField, onAnswer, onRefusal }: PasskeyButtonProps) {
  const t = useT();
  const [isBusy, setBusy] = useState(false);
  const latest = useRef({ onAnswer, onRefusal });
  latest.current = { onAnswer, onRefusal };

  const finish = async (proof: PasskeyProof) =>
    latest.current.onAnswer(
      await send<SignInAnswer>("POST", "/api/user/passkey/login/finish", { body: proof }),
    );

  useEffect(() => {
    if (!hasField) return undefined;
    let isGone = false;
    const offer = async () => {
      if (isGone || !(await authenticator.fillsFields())) return;
      // Nobody has asked for anything yet: a list that cannot be had is no failure, one that was used is.
      const proof = await provePasskey("login", { isAutofill: true });
      try {
        await finish(proof);
      } catch (error) {
        if (!isGone) latest.current.onRefusal(failureMessage(error));
      }
    };
    whenIdle(() => void offer().catch(() => undefined));
    return () => {
      isGone = true;
      void authenticator.stop().catch(() => undefined);
    };
  }, [hasField]);

  const press = async () => {
    setBusy(true);
    onRefusal("");
    try {
      await finish(await provePasskey("login"));
    } catch (error) {
      if (!isAbort(error)) onRefusal(failureMessage(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <BusyButton isBusy={isBusy} className="btn-default w-full" onPress={() => void press()}>
      <KeyRound aria-hidden size={16} />
      {t("signin.withPasskey")}
    </BusyButton>
  );
}
