// Who acts, for the audit trail: the account, from where, and by what it showed who it is.
import type { UserAccount } from "../core/deps.ts";
import type { AuditActor } from "../core/logs/audit.ts";
import type { Session } from "../core/users/sessions.ts";

export function auditActorOf(caller: {
  actor: UserAccount;
  session: Session | undefined;
  address: string;
  request: Request;
}): AuditActor {
  const { actor, session, address, request } = caller;
  return {
    id: actor.id,
    username: actor.username,
    role: actor.role,
    address,
    userAgent: request.headers.get("user-agent") ?? "",
    authMethod: session ? "session" : "access_token",
  };
}
