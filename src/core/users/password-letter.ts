// The letter after an own password was changed, so that its owner hears of a change that somebody else made.
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { letterLanguage, letterOf, siteLink } from "./letter-form.ts";
import { passwordChangedWords } from "./letter-texts.ts";
import { postSteps } from "./outbox.ts";

/** A step of the change's transaction; nothing where the account has no address. Send soon after the commit. */
export function* passwordLetterSteps(
  tx: Orm,
  deps: Pick<Deps, "db" | "clock" | "options" | "seal">,
  row: { id: number; email: string; setting: string },
): Steps<void> {
  if (row.email === "") return;
  const language = letterLanguage(deps, row.setting);
  const words = passwordChangedWords(language, deps.options.get("SystemName"), siteLink(deps, "/reset"));
  const letter = letterOf(deps, row.email, language, words);
  yield* postSteps(tx, deps, { userId: row.id, kind: "password_changed", letter });
}
