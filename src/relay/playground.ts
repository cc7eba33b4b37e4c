// The playground's caller: a console session that picks a group in its body and pays from the user's balance.
// Refuses groups that the user may not use; there is no key, hence no key limits and no key charges.
import type { Deps, UserAccount } from "../core/deps.ts";
import { Failure } from "../shared/failures.ts";
import { mayUseGroup } from "./admission.ts";
import type { Caller } from "./admission.ts";
import { familyName } from "./model-name.ts";
import type { RelayBody } from "./read-body.ts";

export function playgroundCaller(
  deps: Pick<Deps, "options" | "routing">,
  user: UserAccount,
  body: RelayBody,
): Caller {
  const { model, group: asked } = body.json;
  if (typeof model !== "string" || model === "") throw new Failure("client", "playground_model_required");
  if (asked !== undefined && asked !== null && typeof asked !== "string")
    throw new Failure("forbidden", "playground_group_forbidden");
  const group = asked === undefined || asked === null || asked === "" ? user.group : asked;
  if (!mayUseGroup(deps, user, group)) throw new Failure("forbidden", "playground_group_forbidden");
  if (deps.routing.tiers(group, familyName(model)).length === 0)
    throw new Failure("no-channel", "playground_no_channel", { status: 500, params: { group, model } });
  return { user, token: undefined, tokenName: `playground-${group}`, group, pinned: undefined };
}
