// Who a console call is by, as the audit trail tells it: account, address, browser, and what they showed to be let in.
import type { AuditActor, Origin } from "../core/logs/audit.ts";
import type { UserAccount } from "../core/deps.ts";
import type { Session } from "../core/users/sessions.ts";

interface Call {
  request: Request;
  address: string;
  /** Undefined: a system access token. */
  session?: Session | undefined;
}

/** Of a visitor, whom nobody vouches for yet. */
export function originOf({ request, address }: Omit<Call, "session">): Origin {
  return { address, userAgent: request.headers.get("user-agent") ?? "", authMethod: "none" };
}

/** Of a caller whom the policy let in. */
function originOfCall({ session, ...call }: Call): Origin {
  return { ...originOf(call), authMethod: session ? "session" : "access_token" };
}

export function auditActorOf({ actor, ...call }: Call & { actor: UserAccount }): AuditActor {
  const { id, username, role } = actor;
  return { ...originOfCall(call), id, username, role };
}

/** The same as who writes options. */
export function authorOf({ actor, ...call }: Call & { actor: UserAccount }) {
  return { userId: actor.id, username: actor.username, origin: originOfCall(call) };
}
