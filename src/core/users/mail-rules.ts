// Which e-mail addresses an account may have: the operator's list of domains, the rule about aliases, and that one address
// has one account.
// Refuses what only looks like a domain of the list: "x.org.evil.example", "evilx.org".
import { eq } from "drizzle-orm";
import { Failure } from "../../shared/failures.ts";
import type { FailureCode } from "../../shared/failure-codes.ts";
import type { Deps } from "../deps.ts";
import { foldDomain, foldMail } from "./folding.ts";
import type { MailAddress } from "./folding.ts";

const WILDCARD = "*.";

/** An entry of the list: a domain, or `*.` and a domain for everything below it. */
function isOfEntry(domain: string, entry: string): boolean {
  const isWild = entry.startsWith(WILDCARD);
  const known = foldDomain(isWild ? entry.slice(WILDCARD.length) : entry);
  if (known === undefined) return false;
  return isWild ? domain.endsWith(`.${known}`) : domain === known;
}

function refuseMail(code: FailureCode): Failure {
  return new Failure("client", code, { param: "email" });
}

/** The address as it is stored and compared. Throws Failures `mail_wrong`, `mail_domain_refused`, `mail_alias_refused`. */
export function mailFor({ options }: Pick<Deps, "options">, typed: string): MailAddress {
  const mail = foldMail(typed);
  if (!mail) throw refuseMail("mail_wrong");
  const [local = "", domain = ""] = mail.key.split("@");
  if (options.get("EmailDomainRestrictionEnabled")) {
    const isListed = options.get("EmailDomainWhitelist").some((entry) => isOfEntry(domain, entry.trim()));
    if (!isListed) throw refuseMail("mail_domain_refused");
  }
  if (options.get("EmailAliasRestrictionEnabled") && /[+.]/.test(local))
    throw refuseMail("mail_alias_refused");
  return mail;
}

type UserRow = Deps["db"]["t"]["users"]["$inferSelect"];

/** Whose address it is, deleted and banned accounts included. */
export async function ownerOfMail({ db }: Pick<Deps, "db">, key: string): Promise<UserRow | undefined> {
  const { users } = db.t;
  const [row] = await db.orm.select().from(users).where(eq(users.emailKey, key)).limit(1);
  return row;
}

/** For administrators, who may know whose addresses are taken. Throws a Failure `mail_taken`. */
export async function refuseTakenMail(deps: Pick<Deps, "db">, mail: MailAddress): Promise<void> {
  if (await ownerOfMail(deps, mail.key)) throw refuseMail("mail_taken");
}
