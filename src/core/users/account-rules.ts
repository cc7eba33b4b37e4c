// What names and passwords of accounts must be, wherever they come from.
// Refuses names that cannot be told from others, and passwords that are the name or the address again.
import {
  charactersIn,
  MAX_DISPLAY_NAME,
  MAX_PASSWORD,
  MAX_USERNAME,
  MIN_PASSWORD,
} from "../../shared/name-limits.ts";
import { Failure } from "../../shared/failures.ts";
import { isCommonPassword } from "./common-passwords.ts";
import { foldName, isPlainName, isReservedName, nameKey } from "./folding.ts";

const CONTROL = /\p{Cc}/u;

/** A name that somebody types, as it is stored. Throws a Failure `username_invalid`. */
export function checkedUsername(typed: string): string {
  const name = foldName(typed);
  if (charactersIn(name) > MAX_USERNAME || !isPlainName(typed))
    throw new Failure("client", "username_invalid", { param: "username" });
  return name;
}

/** The same for whoever registers or renames themselves: not under a name that strangers take for the site's. */
export function checkedOwnUsername(typed: string): string {
  const name = checkedUsername(typed);
  if (isReservedName(name)) throw new Failure("client", "username_reserved", { param: "username" });
  return name;
}

export function checkedDisplayName(typed: string): string {
  const name = typed.trim();
  if (charactersIn(name) > MAX_DISPLAY_NAME || CONTROL.test(name))
    throw new Failure("client", "display_name_invalid", { param: "display_name" });
  return name;
}

export function checkPassword(password: string): void {
  const length = charactersIn(password);
  if (length < MIN_PASSWORD) throw new Failure("client", "password_short", { param: "password" });
  if (length > MAX_PASSWORD) throw new Failure("client", "password_long", { param: "password" });
}

/** What a guesser tries first: the commonest ones, one character again and again, or the account's own name or address. */
export function checkNewPassword(password: string, own: { username: string; mail: string }): void {
  checkPassword(password);
  const key = nameKey(password);
  const mail = own.mail.toLowerCase();
  const isOwn = [nameKey(own.username), mail, mail.slice(0, mail.indexOf("@"))].includes(key);
  if (isOwn || isCommonPassword(password) || new Set(password).size === 1)
    throw new Failure("client", "password_weak", { param: "password" });
}
