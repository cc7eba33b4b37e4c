// First state of the profile: the visitor's own account, its models and its invitation.
// The first hundred models come along; the rest is fetched when somebody opens the list.
import type { SignInProvider } from "../../islands/lib/sign-in.ts";
import type { PersonalData } from "../../islands/screens/personal.tsx";
import { modelsForUser } from "../core/channels/models.ts";
import { listSessions } from "../core/users/session-list.ts";
import { thresholdOf } from "../core/users/low-quota.ts";
import { ownSecurity } from "../core/users/own-security.ts";
import { ownLimits } from "../core/users/own-limits.ts";
import { getUser, ownSecrets } from "../core/users/users.ts";
import { hasSecret } from "../core/users/webhook-secret.ts";
import { invitationOf } from "./load-wallet.ts";
import type { LoaderContext } from "./page.ts";

const MODELS_AT_FIRST = 100;

export async function loadPersonal({
  deps,
  user,
  sessionId,
  status,
  remembered,
}: LoaderContext): Promise<PersonalData | undefined> {
  if (!user) return undefined;
  const { sign_in_providers: providers = [] } = status as { sign_in_providers?: SignInProvider[] };
  const [self, invitation, secrets, security, devices, limits] = await Promise.all([
    getUser(deps, user.id),
    invitationOf(deps, user),
    ownSecrets(deps, user),
    ownSecurity(deps, user.id, providers),
    listSessions(deps, user, sessionId),
    ownLimits(deps, user),
  ]);
  const models = modelsForUser(deps, user);
  return {
    self,
    invitation,
    models: models.slice(0, MODELS_AT_FIRST),
    modelCount: models.length,
    isExpanded: remembered?.("modelsExpanded") === "true",
    hasSecret: hasSecret(user.setting),
    threshold: thresholdOf(deps, user),
    ...secrets,
    security,
    devices,
    limits,
  };
}
