// Sign-in by every way that the site has: password, passkey, providers; a second step on the same card where one is asked for.
// Refuses to go anywhere but to pages of this site. Default credentials raise a warning and can be changed at once.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { status, user } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { nextAddress } from "../lib/next-address.ts";
import { isFactorAsked, keepSignedIn, placeAfter, signInFlags } from "../lib/sign-in.ts";
import type { FactorAsked, SignedIn, SignInAnswer } from "../lib/sign-in.ts";
import { useQuery } from "../lib/url-state.ts";
import { confirm } from "../ui/confirm.tsx";
import { Notice } from "../ui/feedback.tsx";
import { OrLine, ProviderButtons } from "../ui/provider-buttons.tsx";
import { ChangePassword } from "./login/change-password.tsx";
import { PasskeyButton } from "./login/passkey-button.tsx";
import { PasswordForm } from "./login/password-form.tsx";

const SecondStep = lazyPart(() => import("../ui/second-step.tsx"));

/** What was typed in the first step, where it is the default password. */
interface FirstStep {
  password: string;
  isDefault: boolean;
}

const NOTHING_TYPED: FirstStep = { password: "", isDefault: false };

export default function LoginScreen() {
  const t = useT();
  useSignals();
  const query = useQuery();
  /** Set while the default password is being changed, and where to go then. */
  const [change, setChange] = useState<{ oldPassword: string; place: string }>();
  const [step, setStep] = useState<{ asked: FactorAsked; first: FirstStep }>();

  const finish = async (answer: SignedIn, first: FirstStep) => {
    keepSignedIn(answer);
    const place = placeAfter(answer, query.next);
    if (first.isDefault) {
      const yes = await confirm({
        title: t("login.default.title"),
        text: t("login.default.text"),
        action: t("login.default.action"),
      });
      if (yes) return setChange({ oldPassword: first.password, place });
    }
    location.assign(place);
  };
  const take = async (answer: SignInAnswer, first = NOTHING_TYPED) => {
    if (isFactorAsked(answer)) setStep({ asked: answer, first });
    else await finish(answer, first);
  };

  if (change !== undefined) {
    return (
      <section className="w-full max-w-90">
        <h1 className="mb-4">{t("login.change.title")}</h1>
        <ChangePassword oldPassword={change.oldPassword} onDone={() => location.assign(change.place)} />
      </section>
    );
  }
  if (step !== undefined) {
    return (
      <section className="w-full max-w-90">
        <h1 className="mb-4">{t("login.second")}</h1>
        <SecondStep
          asked={step.asked}
          onSignedIn={(answer) =>
            void finish({ ...answer, next: answer.next ?? step.asked.next ?? "" }, step.first)
          }
          onBack={() => setStep(undefined)}
        />
      </section>
    );
  }
  return (
    <section className="w-full max-w-90">
      <h1 className="mb-4">{t("login.title")}</h1>
      <Greeting />
      <Ways onAnswer={take} />
      <OtherWays />
    </section>
  );
}

/** Why one is here: the session has ended, or there is one already. */
function Greeting() {
  const t = useT();
  useSignals();
  const query = useQuery();
  const visitor = user.value;
  if (query.expired === "true") return <Notice tone="info">{t("login.expired")}</Notice>;
  if (!visitor) return null;
  return (
    <Notice
      tone="info"
      action={
        <button
          type="button"
          className="btn btn-sm btn-default"
          onClick={() => location.assign(nextAddress(query.next, location.origin))}
        >
          {t("login.continue")}
        </button>
      }
    >
      {t("login.signedIn", { name: visitor.display_name || visitor.username })}
    </Notice>
  );
}

/** Password first, then what needs no typing. */
function Ways({ onAnswer }: { onAnswer: (answer: SignInAnswer, first?: FirstStep) => void | Promise<void> }) {
  const t = useT();
  useSignals();
  const query = useQuery();
  const [refusal, setRefusal] = useState("");
  const { passkey_login: hasPasskeys = false, sign_in_providers: providers = [] } = signInFlags();
  const hasPassword = status.value.password_login_enabled !== false;
  const hasOthers = hasPasskeys || providers.length > 0;
  return (
    <>
      {hasPassword ? (
        <PasswordForm
          offersPasskeys={hasPasskeys}
          onAnswer={(answer, password, isDefault) => onAnswer(answer, { password, isDefault })}
        />
      ) : hasOthers ? null : (
        <Notice tone="info">{t("login.passwordOff")}</Notice>
      )}
      {hasPassword && hasOthers ? <OrLine /> : null}
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      <div className="flex flex-col gap-2">
        {hasPasskeys ? (
          <PasskeyButton
            hasField={hasPassword}
            onAnswer={(answer) => void onAnswer(answer)}
            onRefusal={setRefusal}
          />
        ) : null}
        <ProviderButtons
          flow={() => ({ next: nextAddress(query.next, location.origin) })}
          onAnswer={(answer) => void onAnswer(answer)}
          onRefusal={setRefusal}
        />
      </div>
    </>
  );
}

/** Ways for those who cannot sign in: what the site has of them. */
function OtherWays() {
  const t = useT();
  useSignals();
  const { register_enabled: canRegister, reset_enabled: canReset } = status.value;
  if (canRegister !== true && canReset !== true) return null;
  return (
    <div className="mt-4 flex flex-wrap justify-between gap-x-4 gap-y-2 text-sm">
      {canRegister === true ? (
        <p className="text-muted">
          {t("login.noAccount")}{" "}
          <a className="link" href="/register">
            {t("login.register")}
          </a>
        </p>
      ) : null}
      {canReset === true ? (
        <a className="link" href="/reset">
          {t("login.forgot")}
        </a>
      ) : null}
    </div>
  );
}
