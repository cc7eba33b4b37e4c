// Registration by name and password, and the codes that prove an address for it.
// Refuses to tell whether an address has an account: a taken one gets another letter, and the caller the same answer.
import { and, eq, isNull } from "drizzle-orm";
import { randomBytes } from "node:crypto";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Language } from "../../shared/enums.ts";
import { sendMail } from "../../net/mail.ts";
import type { Letter } from "../../net/mail.ts";
import type { Deps } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";
import { termsVersion } from "./terms.ts";
import { checkedOwnUsername, checkNewPassword } from "./account-rules.ts";
import { beginFlow, consumeSteps, forgetFlow, newCode, proveCode } from "./auth-flows.ts";
import type { ProvenCode } from "./auth-flows.ts";
import { hashPassword } from "./credentials.ts";
import type { EntryLimits } from "./entry-limits.ts";
import type { MailAddress } from "./folding.ts";
import { letterOf, siteLink } from "./letter-form.ts";
import { alreadyWords, codeWords } from "./letter-texts.ts";
import { mailFor, ownerOfMail } from "./mail-rules.ts";
import { mailServer } from "./mail-server.ts";
import { addUser } from "./new-user.ts";
import { isOfAddress } from "./notify.ts";

/** From where a visitor comes, and what they read. */
export interface Visitor {
  address: string;
  /** What the browser says of itself; for the audit trail. */
  userAgent?: string;
  language: Language;
}

/** Sends now, or throws `mail_failed`: what is a secret never waits in a table. */
export async function sendNow(deps: Pick<Deps, "options" | "inbox">, letter: Letter): Promise<void> {
  const server = mailServer(deps);
  if (!server) throw refuse("smtp_missing");
  try {
    await sendMail(server, letter);
  } catch (error) {
    // Anybody may type an address that no server takes.
    if (!isOfAddress(error)) deps.inbox.raise({ kind: "mail" });
    throw error;
  }
  deps.inbox.gone("mail");
}

/** Sends a code to an address, or tells its owner that there is an account already. One letter in any case. */
export async function sendCode(
  deps: Deps,
  limits: EntryLimits,
  typed: string,
  { address, language }: Visitor,
): Promise<void> {
  const mail = mailFor(deps, typed);
  if (!mailServer(deps)) throw refuse("smtp_missing");
  const owner = await ownerOfMail(deps, mail.key);
  const site = deps.options.get("SystemName");
  let code = "";
  const flow = await beginFlow(deps, {
    kind: "email_code",
    subjectKey: mail.key,
    payload: mail.address,
    hash: (taken) => {
      const made = newCode(deps, "email_code", mail.key, taken);
      code = made.code;
      // Nobody reads the code of a taken address: its row counts for the limits alone.
      return owner ? sha256Hex(randomBytes(16).toString("hex")) : made.hash;
    },
  });
  const words = owner
    ? alreadyWords(language, site, {
        login: siteLink(deps, "/login"),
        reset: siteLink(deps, "/reset"),
      })
    : codeWords(language, site, code);
  try {
    await sendNow(deps, letterOf(deps, owner?.email ?? mail.address, language, words));
  } catch (error) {
    await forgetFlow(deps, flow);
    limits.letters.giveBack(address);
    throw error;
  }
}

export interface Registration {
  username: string;
  password: string;
  email: string;
  code: string;
  affCode: string;
  acceptsTerms: boolean;
}

/** Throws Failures `register_closed` and `register_password_closed`. */
export function refuseClosed({ options }: Pick<Deps, "options">): void {
  if (!options.get("RegisterEnabled")) throw refuse("register_closed");
  if (!options.get("PasswordRegisterEnabled")) throw refuse("register_password_closed");
}

/** Who invited: unknown codes are as good as none. */
export async function inviterOf({ db }: Pick<Deps, "db">, affCode: string): Promise<number | undefined> {
  const code = affCode.trim();
  if (code === "") return undefined;
  const { users } = db.t;
  const [row] = await db.orm
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.affCode, code), isNull(users.deletedAt)))
    .limit(1);
  return row?.id;
}

interface Proof {
  code: ProvenCode;
  mail: MailAddress;
}

/** The address, proven by its code; undefined where the site asks for none. */
async function provenMail(
  deps: Deps,
  limits: EntryLimits,
  { email, code }: Registration,
  address: string,
): Promise<Proof | undefined> {
  if (!deps.options.get("EmailVerificationEnabled")) return undefined;
  if (email.trim() === "" || code.trim() === "") throw refuse("register_code_missing");
  const mail = mailFor(deps, email);
  await limits.proofs.take(address);
  const proven = await proveCode(deps, "email_code", mail.key, code);
  if (!proven) throw wrongCode();
  limits.proofs.giveBack(address);
  // Letters go where the code went, however the address is typed now.
  return { code: proven, mail: { key: mail.key, address: proven.payload } };
}

function wrongCode(): Failure {
  return new Failure("client", "code_wrong", { param: "verification_code" });
}

/** Makes the account and answers its id. The caller has checked that registration is open and that a person asks. */
export async function register(
  deps: Deps,
  limits: EntryLimits,
  input: Registration,
  { address, userAgent = "", language }: Visitor,
): Promise<number> {
  if (input.username.trim() === "" || input.password === "") throw refuse("invalid_params");
  const username = checkedOwnUsername(input.username);
  checkNewPassword(input.password, { username, mail: input.email.trim() });
  const terms = termsVersion(deps);
  if (terms !== "" && !input.acceptsTerms)
    throw new Failure("client", "terms_unaccepted", { param: "accept_terms" });
  const proof = await provenMail(deps, limits, input, address);
  await limits.accounts.take(address);
  try {
    return await addUser(deps, {
      username,
      displayName: username,
      passwordHash: await hashPassword(input.password),
      mail: proof?.mail,
      inviterId: await inviterOf(deps, input.affCode),
      setting: JSON.stringify({ language }),
      termsVersion: terms === "" ? undefined : terms,
      origin: { address, userAgent, authMethod: "none" },
      // In the same transaction: a name that is taken does not burn the code, and one code makes one account.
      ...(proof
        ? {
            *before(tx) {
              if (!(yield* consumeSteps(tx, deps, proof.code))) throw wrongCode();
            },
          }
        : {}),
    });
  } catch (error) {
    limits.accounts.giveBack(address);
    throw error;
  }
}
