// First state of the profile: the visitor's own account, its models and its invitation.
// Refuses everybody else's account: only the visitor's own is read.
import { modelsForUser } from "../core/models.ts";
import { getUser } from "../core/users.ts";
import { invitationOf } from "./load-wallet.ts";
import type { LoaderContext } from "./page.ts";

export async function loadPersonal({ deps, user }: LoaderContext) {
  if (!user) return undefined;
  const [self, invitation] = await Promise.all([getUser(deps, user.id), invitationOf(deps, user)]);
  return {
    self,
    invitation,
    models: modelsForUser(deps, user),
    hasSecret: Boolean(user.setting.webhook_secret),
  };
}
