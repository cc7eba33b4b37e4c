// A letter that root sends to see whether letters arrive: by what is saved, at once, and never through the outbox.
import type { Language } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { foldMail } from "./folding.ts";
import { letterOf } from "./letter-form.ts";
import { testWords } from "./letter-texts.ts";
import { sendNow } from "./registration.ts";

const MAX_REASON = 300;

/**
 * Sends it to the typed address, or the account's own, and answers which that was. Throws Failures `mail_wrong`,
 * `smtp_missing`, and `mail_test_failed` with what the server said.
 */
export async function sendTestLetter(
  deps: Pick<Deps, "options" | "inbox" | "logger">,
  actor: UserAccount,
  typed: string | undefined,
  language: Language,
): Promise<string> {
  const to = foldMail(typed?.trim() || actor.email);
  if (!to) throw new Failure("client", "mail_wrong", { param: "to" });
  const words = testWords(language, deps.options.get("SystemName"));
  try {
    await sendNow(deps, letterOf(deps, to.address, language, words));
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "mail_failed") throw error;
    // Root alone reads it, who typed the server's name and password.
    throw refuse("mail_test_failed", { reason: (error.internal ?? "").slice(0, MAX_REASON) });
  }
  return to.address;
}
