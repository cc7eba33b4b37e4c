// The letter about a way in that came or went: to the account's address, by the outbox, with the change itself.
import type { Orm, Steps } from "../../../db/database.ts";
import type { Deps } from "../../deps.ts";
import { letterOf, siteLink } from "../letter-form.ts";
import { identityWords } from "../letter-texts.ts";
import { letterLanguage } from "../letter-form.ts";
import { postSteps } from "../outbox.ts";
import type { UserRow } from "../users.ts";

/** Puts the letter in; none where the account has no address. */
export function* identityLetterSteps(
  tx: Orm,
  deps: Pick<Deps, "db" | "clock" | "seal" | "options">,
  user: Pick<UserRow, "id" | "email" | "setting">,
  change: { provider: string; account: string; isBound: boolean },
): Steps<void> {
  if (user.email === "") return;
  const language = letterLanguage(deps, user.setting, undefined);
  const words = identityWords(language, deps.options.get("SystemName"), {
    ...change,
    url: siteLink(deps, "/personal?tab=security"),
  });
  yield* postSteps(tx, deps, {
    userId: user.id,
    kind: change.isBound ? "identity_bound" : "identity_unbound",
    letter: letterOf(deps, user.email, language, words),
  });
}
