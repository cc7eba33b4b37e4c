// Names and addresses as the site compares them: two that look alike to people, or that one mailbox takes, have one key.
// Refuses what cannot be told apart from another name, and addresses that a mail server could read as something else.
import { domainToASCII } from "node:url";

const MAX_MAIL = 254;
const MAX_LOCAL = 64;

export interface MailAddress {
  /** As it is stored and written to: trimmed, its domain in ASCII. */
  address: string;
  /** What is unique: the same in lower case. */
  key: string;
}

/** One label or more before the last; nothing that a resolver would take for an address of the network. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z][a-z0-9-]{0,61}[a-z0-9])$/;
const LOCAL = /^[A-Za-z0-9._+\-'=&~]+$/;

/** A domain as mail servers know it; undefined: it is none. */
export function foldDomain(text: string): string | undefined {
  const ascii = domainToASCII(text).toLowerCase();
  return DOMAIN.test(ascii) ? ascii : undefined;
}

/**
 * Undefined: no address that letters go to. No NFKC: it would make one mailbox of two that differ. Quoted and commented
 * forms are none either: a mail program may read a list of receivers in them.
 */
export function foldMail(text: string): MailAddress | undefined {
  const typed = text.trim();
  const parts = typed.split("@");
  const [local = "", domainText = ""] = parts;
  if (parts.length !== 2 || local.length > MAX_LOCAL || !LOCAL.test(local)) return undefined;
  if (local.startsWith(".") || local.endsWith(".") || local.includes("..")) return undefined;
  // The parser below would take these for the end of a host, or drop them.
  if (/[\s\p{C}/\\?#:%[\]]/u.test(domainText)) return undefined;
  const domain = foldDomain(domainText);
  if (domain === undefined) return undefined;
  const address = `${local}@${domain}`;
  return address.length > MAX_MAIL ? undefined : { address, key: address.toLowerCase() };
}

/** The key of an address that is known to be stored; empty where it is none. */
export function mailKey(text: string): string {
  return foldMail(text)?.key ?? "";
}

/** A name as it is stored: compatible forms (full width, ligatures) become the plain ones. */
export function foldName(text: string): string {
  return text.normalize("NFKC").trim();
}

/** What is unique about a name. Folded here, because SQLite knows lower case of ASCII only. */
export function nameKey(name: string): string {
  return foldName(name).toLowerCase();
}

/** Control and format characters (zero width, direction), private use, halves of pairs, line and paragraph ends. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;
const LATIN = /\p{Script=Latin}/u;
/** Scripts whose letters pass for Latin ones. */
const LOOKALIKE = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}]/u;

/** Whether a name can be told from every other: what it shows is what it is. An `@` would make it somebody's address. */
export function isPlainName(name: string): boolean {
  const folded = foldName(name);
  if (folded === "" || UNSEEN.test(name) || UNSEEN.test(folded) || folded.includes("@")) return false;
  return !(LATIN.test(folded) && LOOKALIKE.test(folded));
}

/** Names that strangers would take for the site itself. */
const RESERVED: ReadonlySet<string> = new Set(["root", "admin", "system"]);

export function isReservedName(name: string): boolean {
  return RESERVED.has(nameKey(name));
}
