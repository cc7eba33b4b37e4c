// Everything that the audit trail tells of, as rows: the action and the type of its log row. The console's line is
// `log.op.<action>`, the log's own sentence stands in core/logs/sentences.ts.
import { LogType } from "./enums.ts";

const { manage, system, login } = LogType;

export const auditActions = {
  "user.create": manage,
  "user.update": manage,
  "user.quota": manage,
  "user.password": manage,
  "user.disable": manage,
  "user.enable": manage,
  "user.delete": manage,
  "user.promote": manage,
  "user.demote": manage,
  "user.remove": manage,
  "user.factor_reset": manage,
  "user.group": manage,
  "user.letter": manage,
  "user.unbind": manage,
  "user.sessions_revoke": manage,
  "plan.create": manage,
  "plan.update": manage,
  "plan.delete": manage,
  "plan.grant": manage,
  "plan.cancel": manage,
  "plan.refund": manage,
  "redemption.create": manage,
  "redemption.update": manage,
  "order.complete": manage,
  "order.refund": manage,
  "option.set": manage,
  "provider.create": manage,
  "provider.update": manage,
  "provider.delete": manage,
  "cost.set": manage,
  "cost.delete": manage,
  "cost.import": manage,
  "log.clear": manage,
  "log.export": manage,
  "account.registered": system,
  "account.names": system,
  "account.deleted": system,
  "account.erased": system,
  "email.set": system,
  "password.changed": system,
  "password.reset": system,
  "identity.bound": system,
  "identity.unbound": system,
  "identity.claimed": system,
  "totp.enabled": system,
  "totp.disabled": system,
  "backup.renewed": system,
  "passkey.added": system,
  "passkey.renamed": system,
  "passkey.removed": system,
  "token.renewed": system,
  "key.rotated": system,
  "session.revoked": system,
  "session.revoked_others": system,
  "login.ok": login,
  "login.rescue": login,
  "login.failed": login,
  "login.locked": login,
} as const satisfies Record<string, number>;

export type AuditAction = keyof typeof auditActions;

/** What a row's sentence names. */
export type AuditParams = Readonly<Record<string, string | number | boolean>>;

/** Of a text out of a row, which another build may have written. */
export function isAuditAction(text: unknown): text is AuditAction {
  return typeof text === "string" && Object.hasOwn(auditActions, text);
}

/** The sentence with its placeholders filled in; `words` says what codes among the values are called. */
export function auditText(
  template: string,
  params: AuditParams,
  words: (name: string, value: string) => string | undefined,
): string {
  const text = template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = String(params[name] ?? "");
    return words(name, value) ?? value;
  });
  return text.trim();
}
