// Plans of settings files as programs read them: of the console's calls and of the command line alike.
// Sentences stand beside their codes, in the reader's language.
import type { ConfigOutcome } from "../core/config/apply.ts";
import type { Language } from "../shared/enums.ts";
import { messageText } from "./messages.ts";

export function configAnswer({ status, plan }: ConfigOutcome, language: Language) {
  return {
    status,
    revision: plan.revision,
    plan_hash: plan.hash,
    changes: plan.changes,
    guards: plan.guards.map(({ code, name, params, isBlocking }) => ({
      code: code as string,
      name,
      message: messageText(code, language, params),
      blocking: isBlocking,
    })),
    removals: plan.removals,
    problems: plan.problems.map(({ path, code, params }) => ({
      path: [...path],
      code: code as string,
      message: messageText(code, language, params),
    })),
  };
}

export type ConfigAnswer = ReturnType<typeof configAnswer>;
