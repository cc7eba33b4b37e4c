// The playground's caller: a console session that picks a group in its body and pays from the user's balance.
// Refuses groups that the user may not use; there is no key, hence no key limits and no key charges.
import type { Deps, UserAccount } from "../core/deps.ts";
import { refuseInMaintenance } from "../core/site/maintenance.ts";
import { mayUseGroup } from "../core/users/groups.ts";
import { mustEnrol } from "../http/session.ts";
import { UserStatus } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { modelNotFound } from "./call/admission.ts";
import type { Caller } from "./call/admission.ts";
import { asList, asObject } from "../protocol/json.ts";
import { familyName } from "./endpoints/model-name.ts";
import { patchedBody } from "./wire/patch-json.ts";
import type { RelayBody } from "./wire/read-body.ts";

/** The signed-in user; an access token is not enough, and the New-Api-User header must name the same user. */
export function sessionUser(
  { maintenance, options }: Pick<Deps, "maintenance" | "options">,
  request: Request,
  visitor: UserAccount | undefined,
): UserAccount {
  const { headers } = request;
  if (!visitor) {
    if (headers.has("authorization"))
      throw new Failure("auth", "access_token_not_supported", { status: 400 });
    throw new Failure("auth", "auth_not_signed_in");
  }
  const named = headers.get("new-api-user");
  if (named === null || named === "") throw new Failure("auth", "auth_user_header_missing");
  if (named !== String(visitor.id)) throw new Failure("auth", "auth_user_header_mismatch");
  if (visitor.status !== UserStatus.enabled) throw new Failure("forbidden", "auth_user_banned");
  refuseInMaintenance(maintenance, visitor.role);
  if (mustEnrol(options, visitor)) throw new Failure("forbidden", "second_factor_required");
  return visitor;
}

/** What older consoles keep with each message for themselves; some upstreams refuse a member that they do not know. */
const OWN_MEMBERS = ["id", "createAt"] as const;

/** The body without them; the same object where there are none. */
export function playgroundBody(body: RelayBody): RelayBody {
  const messages = asList(body.json["messages"]);
  const hasOwn = (message: unknown): boolean => {
    const known = asObject(message);
    return known !== undefined && OWN_MEMBERS.some((name) => Object.hasOwn(known, name));
  };
  if (!messages.some(hasOwn)) return body;
  const plain = messages.map((message) => {
    if (!hasOwn(message)) return message;
    const rest = { ...asObject(message) };
    for (const name of OWN_MEMBERS) delete rest[name];
    return rest;
  });
  return patchedBody(body, { messages: plain });
}

export function playgroundCaller(
  deps: Pick<Deps, "options" | "routing">,
  user: UserAccount,
  body: RelayBody,
): Caller {
  const { model, group: requested } = body.json;
  if (typeof model !== "string" || model === "") throw new Failure("client", "playground_model_required");
  if (requested !== undefined && requested !== null && typeof requested !== "string")
    throw new Failure("forbidden", "playground_group_forbidden");
  const group = requested === undefined || requested === null || requested === "" ? user.group : requested;
  if (!mayUseGroup(deps, user, group)) throw new Failure("forbidden", "playground_group_forbidden");
  if (deps.routing.tiers(group, familyName(model)).length === 0)
    throw deps.routing.knows(group, familyName(model))
      ? new Failure("no-channel", "playground_no_channel", { params: { group, model } })
      : modelNotFound(model);
  return {
    user,
    token: undefined,
    tokenName: `playground-${group}`,
    group,
    auto: undefined,
    pinned: undefined,
  };
}
