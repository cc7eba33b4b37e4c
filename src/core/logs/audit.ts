// The audit trail: who did what from where, as rows of the log beside the change itself.
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";

/** Who acts, and by what; undefined ids: the program itself. */
export interface AuditActor {
  id: number;
  username: string;
  role: number;
  address: string;
  userAgent: string;
  authMethod: "session" | "access_token" | "none";
}

export interface AuditEntry {
  /** 3 manage, 4 system, 7 login. */
  type: number;
  /** Whom it concerns: the row is theirs. */
  user: { id: number; username: string };
  /** A row of shared/audit-actions.ts, for instance `user.disable`. */
  action: string;
  params?: Record<string, string | number | boolean>;
  by: AuditActor;
  content: string;
}

/** Writes the row in the transaction of the change. */
export function* auditSteps(
  tx: Orm,
  { ledger }: Pick<Deps, "ledger">,
  { type, user, action, params = {}, by, content }: AuditEntry,
): Steps<void> {
  const isOther = by.id !== user.id;
  yield* ledger.logSteps(tx, {
    type,
    userId: user.id,
    username: user.username,
    content,
    other: {
      op: { action, params },
      ip: by.address,
      ua: by.userAgent.slice(0, 256),
      auth_method: by.authMethod,
      ...(isOther ? { admin_info: { admin_id: by.id, admin_username: by.username } } : {}),
    },
  });
}
