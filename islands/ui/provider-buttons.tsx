// One button for each provider that the site has switched on, in the order of its status; WeChat opens its picture instead.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { failureMessage } from "../lib/api.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { signInFlags, startProvider } from "../lib/sign-in.ts";
import type { ProviderFlow, SignInAnswer, SignInProvider } from "../lib/sign-in.ts";
import { BusyButton } from "./busy-button.tsx";

const WeChatDialog = lazyPart(() => import("./wechat-dialog.tsx"));

/** A picture by its address, else a sign or two that the operator chose, else the name's first letter. */
export function ProviderIcon({ icon, label }: Pick<SignInProvider, "icon" | "label">) {
  if (/^(https?:|data:image\/|\/(?!\/))/.test(icon))
    return <img className="size-4 object-contain" src={icon} alt="" width={16} height={16} />;
  const sign =
    icon !== "" && Array.from(icon).length <= 2 ? icon : (Array.from(label)[0] ?? "").toUpperCase();
  return (
    <span
      aria-hidden
      className="grid size-4 place-items-center rounded-sm border border-current text-[10px] leading-none font-semibold"
    >
      {sign}
    </span>
  );
}

export interface ProviderButtonsProps {
  /** What goes along to the provider's page and back. */
  flow: () => Pick<ProviderFlow, "next" | "aff" | "accept_terms">;
  /** WeChat's code is typed here: its answer comes without another page. */
  onAnswer: (answer: SignInAnswer) => void;
  onRefusal: (text: string) => void;
}

export function ProviderButtons({ flow, onAnswer, onRefusal }: ProviderButtonsProps) {
  const t = useT();
  useSignals();
  const [busy, setBusy] = useState("");
  const [isOpen, setOpen] = useState(false);
  const providers = signInFlags().sign_in_providers ?? [];
  const start = async ({ id, kind }: SignInProvider) => {
    onRefusal("");
    if (kind === "wechat") return setOpen(true);
    setBusy(id);
    try {
      await startProvider({ provider: id, intent: "signin", ...flow() });
    } catch (error) {
      onRefusal(failureMessage(error));
      setBusy("");
    }
  };
  if (providers.length === 0) return null;
  return (
    <>
      <ul className="flex flex-col gap-2" aria-label={t("signin.providers")}>
        {providers.map((provider) => (
          <li key={provider.id}>
            <BusyButton
              isBusy={busy === provider.id}
              className="btn-default w-full"
              onPress={() => void start(provider)}
            >
              <ProviderIcon icon={provider.icon} label={provider.label} />
              <span className="min-w-0 truncate">{t("signin.with", { name: provider.label })}</span>
            </BusyButton>
          </li>
        ))}
      </ul>
      {isOpen ? (
        <WeChatDialog
          intent="signin"
          acceptTerms={flow().accept_terms === true}
          aff={flow().aff}
          onClose={() => setOpen(false)}
          onDone={(answer) => {
            setOpen(false);
            if (answer) onAnswer(answer);
          }}
        />
      ) : null}
    </>
  );
}

/** "or", between two ways in. */
export function OrLine() {
  const t = useT();
  return (
    <p className="my-4 flex items-center gap-3 text-sm text-muted before:h-px before:grow before:bg-base-300 after:h-px after:grow after:bg-base-300">
      {t("signin.or")}
    </p>
  );
}
