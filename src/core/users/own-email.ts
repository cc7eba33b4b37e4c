// The address of one's own account: set or changed by the code that went to it.
// Refuses an address that nobody has proven, and tells the old one by letter where it was changed.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { isUniqueViolation } from "../../db/sql-state.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Language } from "../../shared/enums.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { consumeSteps, proveCode } from "./auth-flows.ts";
import type { EntryLimits } from "./entry-limits.ts";
import { letterLanguage, letterOf, siteLink } from "./letter-form.ts";
import { emailChangedWords } from "./letter-texts.ts";
import { mailFor } from "./mail-rules.ts";
import { maskedMail, postSteps, sendSoon } from "./outbox.ts";

/** Whether the account has an address already: a change asks for more than the first one. */
export async function hasEmail({ db }: Pick<Deps, "db">, userId: number): Promise<boolean> {
  const { users } = db.t;
  const [row] = await db.orm.select({ email: users.email }).from(users).where(eq(users.id, userId));
  return (row?.email ?? "") !== "";
}

/**
 * Gives the account the address that the code went to. Throws Failures `invalid_params`, those of the site's rules about
 * addresses, `code_wrong`, `mail_taken`, `too_many_attempts`.
 */
export async function setOwnEmail(
  deps: Deps,
  limits: Pick<EntryLimits, "proofs">,
  by: AuditActor,
  { email, code, asked }: { email: string; code: string; asked: Language | undefined },
): Promise<void> {
  if (email.trim() === "" || code.trim() === "") throw refuse("invalid_params");
  const mail = mailFor(deps, email);
  await limits.proofs.take(by.address);
  const wrong = () => new Failure("client", "code_wrong", { param: "code" });
  const proven = await proveCode(deps, "email_code", mail.key, code);
  if (!proven) throw wrong();
  limits.proofs.giveBack(by.address);
  const { users } = deps.db.t;
  try {
    await deps.db.atomic(function* (tx) {
      if (!(yield* consumeSteps(tx, deps, proven))) throw wrong();
      const [before] = yield* q(tx.select().from(users).where(eq(users.id, by.id)));
      if (!before) throw refuse("user_missing");
      // Letters go where the code went, however the address is typed now.
      const set = { email: proven.payload, emailKey: mail.key };
      yield* q(tx.update(users).set(set).where(eq(users.id, by.id)).returning({ id: users.id }));
      yield* auditSteps(tx, deps, {
        user: before,
        action: "email.set",
        params: { email: maskedMail(proven.payload) },
        by,
      });
      if (before.email === "" || before.emailKey === mail.key) return;
      const language = letterLanguage(deps, before.setting, asked);
      const words = emailChangedWords(language, deps.options.get("SystemName"), {
        masked: maskedMail(proven.payload),
        url: siteLink(deps, "/personal?tab=security"),
      });
      const letter = letterOf(deps, before.email, language, words);
      yield* postSteps(tx, deps, { userId: by.id, kind: "email_changed", letter });
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw new Failure("client", "mail_taken", { param: "email" });
    throw error;
  }
  await deps.accounts.userChanged(by.id);
  sendSoon(deps);
}
