// A sign-in or a binding that came to nothing: why, by whose word, and three ways on.
import { useState } from "react";
import { failureMessage } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { BusyButton } from "../../ui/busy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";

export interface Failure {
  text: string;
  code: string;
  /** The provider's own words. */
  said: string;
}

export interface FailedProps {
  failure: Failure;
  isSignedIn: boolean;
  canRetry: boolean;
  next: string | undefined;
  onRetry: () => Promise<void>;
}

const MOST_SAID = 200;

export function Failed({ failure, isSignedIn, canRetry, next, onRetry }: FailedProps) {
  const t = useT();
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const { text, code, said } = failure;
  const retry = async () => {
    setBusy(true);
    try {
      await onRetry();
    } catch (error) {
      setRefusal(failureMessage(error));
      setBusy(false);
    }
  };
  const back = next === undefined ? "" : `?next=${encodeURIComponent(next)}`;
  return (
    <>
      <Notice tone="error">
        <p className="break-words">{refusal || text}</p>
        {said === "" || said === text ? null : (
          <p className="mt-1 text-sm break-words">
            {t("signin.callback.said", { text: said.slice(0, MOST_SAID) })}
          </p>
        )}
        {code === "" ? null : <code className="mt-1 block text-xs text-muted">{code}</code>}
      </Notice>
      <div className="flex flex-col gap-2">
        {canRetry ? (
          <BusyButton isBusy={isBusy} className="btn-primary w-full" onPress={() => void retry()}>
            {t("signin.callback.retry")}
          </BusyButton>
        ) : null}
        <a className="btn btn-default w-full" href={isSignedIn ? "/personal#bindings" : `/login${back}`}>
          {t(isSignedIn ? "signin.callback.bindings" : "signin.callback.others")}
        </a>
        <a className="btn btn-ghost w-full" href={isSignedIn ? "/personal" : "/"}>
          {t(isSignedIn ? "signin.callback.profile" : "signin.callback.home")}
        </a>
      </div>
    </>
  );
}
