// A secret of the person's own (API key, access token) in the page: masked, copied without being shown, revealed on ask.
// Refuses to stay revealed: it hides after half a minute.
import { Eye, EyeOff } from "lucide-react";
import { useEffect, useState } from "react";
import { maskSecret } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { CopyButton } from "./copy-button.tsx";

const REVEAL_MS = 30_000;

export interface SecretProps {
  value: string;
  /** What it is, for the buttons: "API key". */
  label: string;
  /** Lists only offer copying. */
  canReveal?: boolean;
}

export function Secret({ value, label, canReveal = false }: SecretProps) {
  const t = useT();
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!isShown) return undefined;
    const timer = setTimeout(() => setShown(false), REVEAL_MS);
    return () => clearTimeout(timer);
  }, [isShown]);
  const Icon = isShown ? EyeOff : Eye;
  return (
    <span className="inline-flex items-center gap-1">
      <code className={isShown ? "break-all" : "whitespace-nowrap"}>
        {isShown ? value : maskSecret(value)}
      </code>
      {canReveal ? (
        <button
          type="button"
          className="btn btn-ghost btn-square btn-xs"
          aria-pressed={isShown}
          aria-label={t("form.secret.reveal", { label })}
          title={t("form.secret.reveal", { label })}
          onClick={() => setShown(!isShown)}
        >
          <Icon aria-hidden size={14} />
        </button>
      ) : null}
      <CopyButton text={value} label={t("form.secret.copy", { label })} />
    </span>
  );
}
