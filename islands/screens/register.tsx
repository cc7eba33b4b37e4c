// Registration: name and password, the address and its code where the site asks for one, the invitation, the terms.
// Refuses to send what the server would refuse; whoever is through is signed in.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useState } from "react";
import { charactersIn, MAX_USERNAME } from "../../src/shared/name-limits.ts";
import { api, call, callForBody, failureMessage } from "../lib/api.ts";
import { bootData, status } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import type { Errors } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import type { Translate } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { isFactorAsked, keepSignedIn, placeAfter, signInFlags } from "../lib/sign-in.ts";
import type { FactorAsked, LegalPlaces, SignInAnswer } from "../lib/sign-in.ts";
import { useQuery } from "../lib/url-state.ts";
import { CodeFields } from "../ui/code-fields.tsx";
import { Notice } from "../ui/feedback.tsx";
import { TextField } from "../ui/form.tsx";
import { HumanCheckField, useHumanCheck } from "../ui/human-check.tsx";
import { OrLine, ProviderButtons } from "../ui/provider-buttons.tsx";
import { Terms } from "../ui/terms.tsx";
import { nextAddress } from "../lib/next-address.ts";
import { hasGoodLength, isHardToGuess, PasswordRules } from "./register/password-rules.tsx";
import type { RegisterValues } from "./register/values.ts";

const SecondStep = lazyPart(() => import("../ui/second-step.tsx"));

export default function RegisterScreen() {
  const t = useT();
  useSignals();
  const { register_enabled: isOpen, password_register_enabled: hasPassword } = status.value;
  const closed =
    isOpen === false ? t("register.closed") : hasPassword === false ? t("register.passwordClosed") : "";
  return (
    <section className="w-full max-w-90">
      <h1 className="mb-4">{t("register.title")}</h1>
      {closed === "" ? <RegisterForm /> : <Notice tone="info">{closed}</Notice>}
      {isOpen !== false && closed !== "" ? <Providers /> : null}
      <p className="mt-4 text-sm text-muted">
        {t("register.hasAccount")}{" "}
        <a className="link" href="/login">
          {t("register.signIn")}
        </a>
      </p>
    </section>
  );
}

interface Asked {
  /** The site wants a proven address. */
  code: boolean;
  terms: boolean;
}

function problemsOf(t: Translate, values: RegisterValues, asked: Asked): Errors<RegisterValues> {
  const { username, password, password2, email, verification_code: code } = values;
  const name = username.trim();
  return {
    ...(name === ""
      ? { username: t("register.usernameMissing") }
      : charactersIn(name) > MAX_USERNAME
        ? { username: t("register.usernameLong", { max: MAX_USERNAME }) }
        : {}),
    ...(asked.code && !email.includes("@") ? { email: t("register.emailMissing") } : {}),
    ...(asked.code && code === "" ? { verification_code: t("register.codeMissing") } : {}),
    ...(hasGoodLength(password)
      ? isHardToGuess(password, values)
        ? {}
        : { password: t("register.passwordWeak") }
      : { password: t("register.passwordWrong") }),
    ...(password2 === password ? {} : { password2: t("register.passwordsDiffer") }),
    ...(asked.terms && !values.accept_terms ? { accept_terms: t("register.termsMissing") } : {}),
  };
}

function RegisterForm() {
  const t = useT();
  useSignals();
  const query = useQuery();
  const rulesId = useId();
  const check = useHumanCheck();
  const [refusal, setRefusal] = useState("");
  const asked: Asked = {
    code: status.value.email_verification === true,
    terms: (status.value.terms_version ?? "") !== "",
  };
  const form = useForm<RegisterValues>({
    initial: {
      username: "",
      email: "",
      verification_code: "",
      password: "",
      password2: "",
      aff_code: query.aff ?? "",
      accept_terms: false,
    },
    validate: (values) => problemsOf(t, values, asked),
  });
  const plain = { ...form, isChanged: () => false };
  const { values } = form;

  const submit = async () => {
    setRefusal("");
    try {
      const isMade = await form.submit(async (now) => {
        await call(api.user.register.post(now, { query: check.query }));
      });
      if (isMade) await enter(values.username, values.password, nextAddress(query.next, location.origin));
    } catch (error) {
      setRefusal(failureMessage(error));
    } finally {
      check.renew();
    }
  };

  return (
    <>
      <form
        ref={form.element}
        noValidate
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          if (check.isReady) void submit();
          else setRefusal(t("login.check.wait"));
        }}
      >
        {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
        <TextField
          form={plain}
          name="username"
          label={t("register.username")}
          isRequired
          limit={MAX_USERNAME}
          input={{ autoComplete: "username", autoFocus: true, spellCheck: false }}
        />
        {asked.code ? <CodeFields form={plain} check={check} /> : null}
        <TextField
          form={plain}
          name="password"
          type="password"
          label={t("register.password")}
          isRequired
          input={{ autoComplete: "new-password" }}
        />
        <PasswordRules
          id={rulesId}
          password={values.password}
          context={values}
          hasError={form.errors.password !== undefined}
        />
        <TextField
          form={plain}
          name="password2"
          type="password"
          label={t("register.password2")}
          isRequired
          input={{ autoComplete: "new-password" }}
        />
        <TextField
          form={plain}
          name="aff_code"
          label={t("register.invitation")}
          isMono
          input={{ autoComplete: "off", maxLength: 32, spellCheck: false }}
        />
        {asked.terms ? (
          <Terms
            places={bootData<LegalPlaces>()}
            isAccepted={values.accept_terms}
            onChange={(isAccepted) => form.set("accept_terms", isAccepted)}
            error={form.errors.accept_terms}
          />
        ) : null}
        <HumanCheckField check={check} action="register" />
        <button
          type="submit"
          className="btn btn-primary w-full"
          aria-busy={form.isBusy}
          aria-disabled={form.isBusy || !check.isReady}
        >
          {form.isBusy ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
          {t("register.submit")}
        </button>
      </form>
      <Providers values={values} />
    </>
  );
}

/** A provider's account can stand in for a password; the invitation and the acceptance go along. */
function Providers({ values }: { values?: RegisterValues }) {
  useSignals();
  const query = useQuery();
  const [refusal, setRefusal] = useState("");
  const [asked, setAsked] = useState<FactorAsked>();
  if ((signInFlags().sign_in_providers ?? []).length === 0) return null;
  const take = (answer: SignInAnswer) => {
    if (isFactorAsked(answer)) return setAsked(answer);
    keepSignedIn(answer);
    location.assign(placeAfter(answer, query.next));
  };
  const aff = (values?.aff_code ?? query.aff ?? "").trim();
  return (
    <>
      {values === undefined ? null : <OrLine />}
      {refusal === "" ? null : <Notice tone="error">{refusal}</Notice>}
      {asked === undefined ? (
        <ProviderButtons
          flow={() => ({
            next: nextAddress(query.next, location.origin),
            ...(aff === "" ? {} : { aff }),
            ...(values?.accept_terms === true ? { accept_terms: true } : {}),
          })}
          onAnswer={take}
          onRefusal={setRefusal}
        />
      ) : (
        <SecondStep asked={asked} onSignedIn={take} onBack={() => setAsked(undefined)} />
      )}
    </>
  );
}

/** Signs in with what was just registered; where that needs more, the login page asks for it. */
async function enter(username: string, password: string, target: string): Promise<void> {
  try {
    const { data } = await callForBody(api.user.login.post({ username: username.trim(), password }));
    if ("require_2fa" in data) return location.assign("/login");
    keepSignedIn(data);
    location.assign(placeAfter(data, target));
  } catch {
    location.assign("/login");
  }
}
