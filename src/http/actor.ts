// Who acts, as the audit trail tells it.
import type { UserAccount } from "../core/deps.ts";
import type { AuditActor } from "../core/logs/audit.ts";

/** What a route with a policy knows of its caller; without a session an access token came. */
export function actorOf({
  actor,
  request,
  address,
  session,
}: {
  actor: UserAccount;
  request: Request;
  address: string;
  session: object | undefined;
}): AuditActor {
  return {
    id: actor.id,
    username: actor.username,
    role: actor.role,
    address,
    userAgent: request.headers.get("user-agent") ?? "",
    authMethod: session ? "session" : "access_token",
  };
}
