// What a new password must be, each rule ticked as soon as it is met.
import { Check, Dot } from "lucide-react";
import { charactersIn, MAX_PASSWORD, MIN_PASSWORD } from "../../../src/shared/name-limits.ts";
import { useT } from "../../lib/i18n.ts";

export interface PasswordContext {
  username: string;
  email: string;
}

export function hasGoodLength(password: string): boolean {
  const length = charactersIn(password);
  return length >= MIN_PASSWORD && length <= MAX_PASSWORD;
}

/** Neither the name or the address again, nor one character over and over. */
export function isHardToGuess(password: string, { username, email }: PasswordContext): boolean {
  const typed = password.trim().toLowerCase();
  const mail = email.trim().toLowerCase();
  const own = [username.trim().toLowerCase(), mail, mail.split("@")[0] ?? ""];
  return password !== "" && !own.includes(typed) && new Set(password).size > 1;
}

export function PasswordRules({
  id,
  password,
  context,
  hasError,
}: {
  id: string;
  password: string;
  context: PasswordContext;
  /** The field above has a line below it. */
  hasError: boolean;
}) {
  const t = useT();
  const rules = [
    [t("register.ruleLength", { min: MIN_PASSWORD, max: MAX_PASSWORD }), hasGoodLength(password)],
    [t("register.ruleOwn"), isHardToGuess(password, context)],
  ] as const;
  return (
    <ul id={id} className={`mb-4 text-xs ${hasError ? "" : "-mt-5"}`}>
      {rules.map(([text, isMet]) => (
        <li key={text} className={`flex items-center gap-1 ${isMet ? "text-success" : "text-muted"}`}>
          {isMet ? <Check aria-hidden size={14} /> : <Dot aria-hidden size={14} />}
          <span>{text}</span>
          <span className="sr-only">{isMet ? t("register.met") : t("register.unmet")}</span>
        </li>
      ))}
    </ul>
  );
}
