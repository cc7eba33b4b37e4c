// Second step: the administrator's name and password, with a strength meter.
// Refuses to ask when an administrator exists.
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { Notice } from "../../ui/feedback.tsx";
import { MAX_USERNAME } from "../../../src/shared/name-limits.ts";
import { SecretField, TextField } from "../../ui/form.tsx";
import type { SetupValues } from "./values.ts";
import { passwordStrength } from "./values.ts";

const LEVELS = [1, 2, 3, 4] as const;

export function AccountStep({ form, rootExists }: { form: Form<SetupValues>; rootExists: boolean }) {
  const t = useT();
  if (rootExists) return <Notice tone="info">{t("setup.account.exists")}</Notice>;
  return (
    <>
      <p className="mb-3 text-muted">{t("setup.account.text")}</p>
      <TextField
        form={form}
        name="username"
        label={t("setup.account.username")}
        hint={t("setup.account.usernameHint")}
        limit={MAX_USERNAME}
        input={{ autoComplete: "username", spellCheck: false }}
        isRequired
      />
      <SecretField
        form={form}
        name="password"
        label={t("setup.account.password")}
        hint={<Strength password={form.values.password} />}
        isSet={false}
        isRequired
      />
      <SecretField
        form={form}
        name="confirmPassword"
        label={t("setup.account.confirm")}
        hint={t("setup.account.confirmHint")}
        isSet={false}
        isRequired
      />
    </>
  );
}

/** Four bars and a word: the word carries the meaning. */
function Strength({ password }: { password: string }) {
  const t = useT();
  const level = passwordStrength(password);
  const tone = level >= 3 ? "ok" : level === 2 ? "attention" : "broken";
  return (
    <span className="flex items-center gap-2" data-tone={level === 0 ? "off" : tone}>
      <span className="flex flex-none gap-0.5" aria-hidden>
        {LEVELS.map((each) => (
          <span
            key={each}
            className={`h-1 w-6 rounded-full ${each <= level ? "bg-(--tone)" : "bg-base-300"}`}
          />
        ))}
      </span>
      <span>
        <span className="sr-only">{t("setup.strength.label")}: </span>
        {t(`setup.strength.${level}`)}
      </span>
    </span>
  );
}
