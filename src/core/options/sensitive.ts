// Options that could hand the site to somebody else: secrets, ways to sign in, and ways to be paid.
import { optionRows } from "./definitions.ts";

const GROUPS: ReadonlySet<string> = new Set([
  "server",
  "payment",
  "sign_in",
  "oidc",
  "github",
  "linuxdo",
  "wechat",
  "telegram",
  "turnstile",
  "security",
  "smtp",
]);

/** Whether root, with a second factor, proves itself afresh before it changes this. */
export function isSensitive(key: string): boolean {
  return optionRows.some((row) => row.key === key && (row.secret === true || GROUPS.has(row.group)));
}
