// The audit trail: who did what from where, as rows of the log beside the change itself.
// Refuses secrets: what is no field of the row's action, or belongs to nobody but its owner, is never handed in.
import type { Orm, Steps } from "../../db/database.ts";
import { auditActions } from "../../shared/audit-actions.ts";
import type { AuditAction, AuditParams } from "../../shared/audit-actions.ts";
import type { Deps } from "../deps.ts";
import { auditSentence } from "./sentences.ts";

const MAX_AGENT_CHARS = 256;

/** From where somebody acts. */
export interface Origin {
  address: string;
  userAgent: string;
  authMethod: "session" | "access_token" | "none";
}

/** Who acts, and by what; id 0: the program itself. */
export interface AuditActor extends Origin {
  id: number;
  username: string;
  role: number;
}

export interface AuditEntry {
  /** Whom it concerns: the row is theirs. */
  user: { id: number; username: string };
  action: AuditAction;
  params?: AuditParams;
  by: AuditActor;
  /** Absent: the action's own sentence. */
  content?: string;
  /** Further fields of the row, for clients that knew them before. */
  more?: Readonly<Record<string, unknown>>;
}

/** The row's columns. */
export function auditRow({ user, action, params = {}, by, content, more }: AuditEntry) {
  const isOther = by.id !== user.id;
  return {
    type: auditActions[action],
    userId: user.id,
    username: user.username,
    content: content ?? auditSentence(action, params),
    other: {
      op: { action, params },
      ip: by.address,
      ua: by.userAgent.slice(0, MAX_AGENT_CHARS),
      auth_method: by.authMethod,
      ...(isOther ? { admin_info: { admin_id: by.id, admin_username: by.username } } : {}),
      ...more,
    },
  };
}

/** Writes the row in the transaction of the change. */
export function* auditSteps(tx: Orm, { ledger }: Pick<Deps, "ledger">, entry: AuditEntry): Steps<void> {
  yield* ledger.logSteps(tx, auditRow(entry));
}
