// The first-run wizard: database, administrator, usage mode; then a way on to the first channel. Or a site that moves in.
// Refuses to lose what was typed: going back and failing keep every value.
import { useEffect, useRef, useState } from "react";
import { ApiFailure, api, call, failureMessage } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import type { Errors } from "../lib/form.ts";
import { t as translate, useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { KEYS, writeItem } from "../lib/storage.ts";
import { Notice } from "../ui/feedback.tsx";
import { AccountStep } from "./setup/account-step.tsx";
import { DatabaseStep } from "./setup/database-step.tsx";
import { ModeStep } from "./setup/mode-step.tsx";
import { DoneView, StepList } from "./setup/progress.tsx";
import type { SetupData, SetupValues } from "./setup/values.ts";
import { FIELD_OF_CODE, validateAccount } from "./setup/values.ts";

const MoveIn = lazyPart(() => import("./setup/move-in.tsx"));

const STEPS = ["database", "account", "mode"] as const;

export default function SetupScreen() {
  const t = useT();
  const { databaseType, databaseVersion, rootExists, isMoving } = bootData<SetupData>();
  const [step, setStep] = useState(0);
  const [isDone, setDone] = useState(false);
  const [isMoveIn, setMoveIn] = useState(isMoving);
  const [refusal, setRefusal] = useState("");
  const form = useForm<SetupValues>({
    initial: { username: "", password: "", confirmPassword: "", mode: "external" },
    validate: (values): Errors<SetupValues> =>
      rootExists || step < STEPS.indexOf("account") ? {} : validateAccount(values, translate),
  });
  const plain = { ...form, isChanged: () => false };
  const heading = useRef<HTMLHeadingElement>(null);
  const isMoved = useRef(false);

  // The first field of a step, or its heading: people and screen readers land where the step begins.
  useEffect(() => {
    if (!isMoved.current) return;
    const find = (selector: string) => form.element.current?.querySelector<HTMLElement>(selector);
    (find("input:checked") ?? find("input") ?? heading.current)?.focus();
  }, [step, form.element]);

  const go = (to: number) => {
    isMoved.current = true;
    setRefusal("");
    setStep(to);
  };

  const initialise = async (values: SetupValues) => {
    setRefusal("");
    const { username, password, confirmPassword, mode } = values;
    const body = {
      ...(rootExists ? {} : { username: username.trim(), password, confirmPassword }),
      SelfUseModeEnabled: mode === "self",
      DemoSiteEnabled: mode === "demo",
    };
    try {
      await call(
        api.setup.post({ ...body, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone }),
      ).catch((error: unknown) => {
        // A browser may know zones that the server has never heard of: the site begins in UTC then.
        if (!(error instanceof ApiFailure) || error.code !== "option_not_time_zone") throw error;
        return call(api.setup.post(body));
      });
    } catch (error) {
      const field = error instanceof ApiFailure ? FIELD_OF_CODE[error.code] : undefined;
      if (field === undefined) {
        if (!(error instanceof ApiFailure)) console.error(error);
        setRefusal(error instanceof ApiFailure ? failureMessage(error) : t("setup.failed"));
      } else {
        go(STEPS.indexOf("account"));
        form.fail(field, failureMessage(error));
      }
      return;
    }
    // Whoever just chose the password need not type it again; without this the login page asks.
    if (!rootExists) {
      const signedIn = await call(api.user.login.post({ username: username.trim(), password })).catch(
        () => undefined,
      );
      if (signedIn) writeItem(KEYS.user, JSON.stringify(signedIn));
    }
    setDone(true);
  };

  if (isDone) return <DoneView />;
  const name = STEPS[step] ?? "database";
  const isLast = step === STEPS.length - 1;
  return (
    <section className="mx-auto w-full max-w-[640px]">
      <h1>{t("setup.title")}</h1>
      {isMoveIn ? (
        <div className="mt-5">
          <MoveIn isRunning={isMoving} onBack={() => setMoveIn(false)} />
        </div>
      ) : (
        <>
          <p className="mt-1 text-muted">{t("setup.intro")}</p>
          <StepList names={STEPS} at={step} onOpen={go} />
        </>
      )}
      <form
        hidden={isMoveIn}
        ref={form.element}
        noValidate
        method="post"
        className="rounded-box border border-base-300 bg-base-100 px-5 py-4"
        onSubmit={(event) => {
          event.preventDefault();
          // The account is checked on its own step; going on needs nothing else.
          void form.submit(async (values) => (isLast ? initialise(values) : go(step + 1)));
        }}
      >
        <p className="text-xs text-muted">{t("setup.progress", { step: step + 1, count: STEPS.length })}</p>
        <h2 ref={heading} tabIndex={-1} className="mb-3 outline-none">
          {t(`setup.step.${name}`)}
        </h2>
        {name === "database" ? (
          <DatabaseStep type={databaseType} version={databaseVersion} onMoveIn={() => setMoveIn(true)} />
        ) : null}
        {name === "account" ? <AccountStep form={plain} rootExists={rootExists} /> : null}
        {name === "mode" ? <ModeStep form={plain} /> : null}
        {refusal === "" ? null : (
          <div className="mt-4">
            <Notice tone="error">{refusal}</Notice>
          </div>
        )}
        <WizardButtons
          isBusy={form.isBusy}
          isLast={isLast}
          onBack={step > 0 ? () => go(step - 1) : undefined}
        />
      </form>
    </section>
  );
}

interface WizardButtonsProps {
  isBusy: boolean;
  isLast: boolean;
  /** Undefined on the first step. */
  onBack: (() => void) | undefined;
}

function WizardButtons({ isBusy, isLast, onBack }: WizardButtonsProps) {
  const t = useT();
  return (
    <div className="mt-5 flex flex-wrap-reverse justify-end gap-2">
      {onBack ? (
        <button type="button" className="btn btn-default" disabled={isBusy} onClick={onBack}>
          {t("setup.back")}
        </button>
      ) : null}
      <button type="submit" className="btn btn-primary" disabled={isBusy} aria-busy={isBusy}>
        {isBusy && isLast ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
        {t(isLast ? "setup.submit" : "setup.next")}
      </button>
    </div>
  );
}
