// Options that could hand the site to somebody else: secrets, ways to sign in, ways to be paid, and where requests go out by.
import type { OptionGroupId } from "./groups.ts";
import { optionRows } from "./definitions.ts";

const GROUPS: ReadonlySet<OptionGroupId> = new Set<OptionGroupId>([
  "server",
  "payment",
  "sign_in",
  "oidc",
  "github",
  "google",
  "discord",
  "linuxdo",
  "wechat",
  "telegram",
  "turnstile",
  "smtp",
  "worker",
]);

/** Whether root, with a second factor, proves itself afresh before it changes this. */
export function isSensitive(key: string): boolean {
  return optionRows.some((row) => row.key === key && (row.secret === true || GROUPS.has(row.group)));
}
