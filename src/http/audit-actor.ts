// Who acts, as the audit trail writes it: account, address, program and way of proof, read out of a request.
import type { UserAccount } from "../core/deps.ts";
import type { AuditActor } from "../core/logs/audit.ts";
import type { Session } from "../core/users/sessions.ts";

interface Acting {
  actor: UserAccount;
  /** Undefined: an access token. */
  session: Session | undefined;
  address: string;
  request: Request;
}

export function auditActor({ actor, session, address, request }: Acting): AuditActor {
  return {
    id: actor.id,
    username: actor.username,
    role: actor.role,
    address,
    userAgent: request.headers.get("user-agent") ?? "",
    authMethod: session ? "session" : "access_token",
  };
}
